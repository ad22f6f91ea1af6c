# SPDX-License-Identifier: GPL-2.0-only
# What tests/bench/run builds, by the project's own rules: make -f tests/bench/bench.mk bench-tools
include Makefile

BENCH   := $(BUILD)/bench
TOOLS   := $(patsubst tests/bench/%.c,$(BENCH)/%.o,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))
DROPPING := $(BENCH)/dropping

.PHONY: bench-tools bench-core
bench-tools: all bench-core $(BENCH)/bench $(DROPPING)/xdp-pacer

# Of the core in user space alone: they want neither root nor a BPF object that loads.
bench-core: $(BENCH)/core $(BENCH)/capacity $(BENCH)/sets $(BENCH)/floods $(BENCH)/fleet

$(BENCH)/core: tests/bench/core/core.c $(BENCH)/calm.o $(ARCHIVE)
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) -Itests/bench $< $(BENCH)/calm.o $(ARCHIVE) -o $@ $(LIBS)

# It knows nothing of BPF.
$(BENCH)/calm.o: tests/bench/calm.c tests/bench/calm.h
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) -c $< -o $@

$(BENCH)/capacity: tests/bench/core/capacity.c $(CORE)
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) $< -o $@ -lm

$(BENCH)/sets: tests/bench/core/sets.c $(BUILD)/pure.a
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) $< $(BUILD)/pure.a -o $@ $(LIBS)

$(BENCH)/floods: tests/bench/core/floods.c tests/unit/floods.h $(CORE) $(BUILD)/pure.a
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) -Itests/unit $< $(BUILD)/pure.a -o $@ $(LIBS)

FLEET_PURE := $(patsubst %,user/fleet/%.c,member record heavy demand)
$(BENCH)/fleet: tests/bench/core/fleet.c tests/unit/fleet_many.h $(FLEET_PURE) $(wildcard user/fleet/*.h)
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) -Itests/unit -DFLEET_LANES_MAX=2 $< $(FLEET_PURE) -o $@

$(BENCH)/bench.bpf.o: tests/bench/bench.bpf.c tests/bench/bench.h bpf/clock/clock.bpf.h $(CORE)
	@mkdir -p $(@D)
	$(call says,CLANG)$(CLANG) $(BPF) -Ibpf/clock -Itests/bench -c $< -o $@

$(BENCH)/bench.skel.h: $(BENCH)/bench.bpf.o
	$(call says,SKELETON)$(BPFTOOL) gen skeleton $< name bench_bpf > $@

$(BENCH)/%.o: tests/bench/%.c $(wildcard tests/bench/*.h) $(BENCH)/bench.skel.h
	$(call says,CC)$(CC) $(CFLAGS) $(USER) -I$(BENCH) -Itests/bench -c $< -o $@

$(BENCH)/bench: $(TOOLS) $(ARCHIVE)
	$(call says,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS) -lpthread

# xdp-pacer with an object that drops what it admits.
$(DROPPING)/pacer.bpf.o: tests/bench/dropping.bpf.c bpf/judge.bpf.h $(BUILD)/pacer.bpf.o
	@mkdir -p $(@D)
	$(call says,CLANG)$(CLANG) $(BPF) -Ibpf/clock -c $< -o $@

$(DROPPING)/pacer.skel.h: $(DROPPING)/pacer.bpf.o
	$(call says,SKELETON)$(BPFTOOL) gen skeleton $< name pacer_bpf > $@

$(DROPPING)/object.o: user/live/object.c $(DROPPING)/pacer.skel.h $(BUILD)/shadow.skel.h
	$(call says,CC)$(CC) $(CFLAGS) -I$(DROPPING) $(USER) -c $< -o $@

$(DROPPING)/xdp-pacer: $(BUILD)/user/cli/main.o $(DROPPING)/object.o $(ARCHIVE)
	$(call says,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)
