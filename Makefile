# SPDX-License-Identifier: GPL-2.0-only
# `make help` lists the targets.

VERSION := 0.2.0
BUILD   ?= build
PREFIX  ?= /usr
LIBDIR  ?= $(PREFIX)/lib
CC      ?= gcc
CLANG   ?= $(firstword $(foreach c,clang-19 clang-16 clang,$(shell command -v $(c))))
BPFTOOL ?= $(firstword $(shell command -v bpftool) /usr/sbin/bpftool)
PKG     := libxdp libbpf yaml-0.1 jansson libpcap

WARN    := -Wall -Wextra -Werror
CFLAGS  ?= -O2 -g
USER    := -std=gnu11 -D_GNU_SOURCE $(WARN) -DPACER_VERSION='"$(VERSION)"' -Icommon -Iuser -I$(BUILD) \
	   $(shell pkg-config --cflags $(PKG))
LIBS    := $(shell pkg-config --libs $(PKG)) -lm
ARCH    := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
BPF     := -O2 -g -target bpf -mcpu=v3 $(WARN) -D__TARGET_ARCH_$(ARCH) -Icommon -Ibpf -I$(BUILD) \
	   -I/usr/include/$(shell uname -m)-linux-gnu

CORE    := $(wildcard common/*.h)
USERS   := $(wildcard user/*/*.c)
USERH   := $(wildcard user/*/*.h)
PURE    := $(addprefix $(BUILD)/user/,config/units.o config/policy.o plan/compile.o live/rotate.o plan/sampling.o plan/throttles.o)
OBJS    := $(filter-out %/mkbuiltin.o,$(USERS:%.c=$(BUILD)/%.o))

SANITIZE ?= -fsanitize=address,undefined -fno-sanitize-recover=undefined
# Without sanitizers -O2, since below it gcc warns of what a denied packet leaves unset and nobody then
# reads.
TESTC    := $(USER) -g $(if $(strip $(SANITIZE)),-O1,-O2) -Itests/unit -Itests/model
UNITS    := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))

.DELETE_ON_ERROR:
.PHONY: all install check mutants bench demo clean help format tidy unit prog

all: $(BUILD)/xdp-pacer $(BUILD)/pacer.bpf.o ## build the CLI and the object

$(BUILD)/mkbuiltin: $(PURE) $(BUILD)/user/plan/mkbuiltin.o
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)

$(BUILD)/builtin.h: $(BUILD)/mkbuiltin user/plan/builtin.yaml
	$< user/plan/builtin.yaml > $@

$(BUILD)/pacer.bpf.o: $(wildcard bpf/*.[ch]) bpf/clock/clock.bpf.h $(BUILD)/builtin.h $(CORE)
	$(CLANG) $(BPF) -Ibpf/clock -c bpf/pacer.bpf.c -o $@

$(BUILD)/pacer.skel.h: $(BUILD)/pacer.bpf.o
	$(BPFTOOL) gen skeleton $< name pacer_bpf > $@ 2> $@.log || { cat $@.log; exit 1; }

# The same source on a clock that is given: for replay and for the tests.
$(BUILD)/pacer_given.bpf.o: $(wildcard bpf/*.[ch]) bpf/given/clock.bpf.h $(BUILD)/builtin.h $(CORE)
	$(CLANG) $(BPF) -Ibpf/given -c bpf/pacer.bpf.c -o $@

$(BUILD)/pacer_given.skel.h: $(BUILD)/pacer_given.bpf.o
	$(BPFTOOL) gen skeleton $< name pacer_given_bpf > $@ 2> $@.log || { cat $@.log; exit 1; }

$(BUILD)/user/%.o: user/%.c $(USERH) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER) -c $< -o $@

$(BUILD)/user/live/loader.o: $(BUILD)/pacer.skel.h
$(BUILD)/user/offline/replay.o: $(BUILD)/pacer_given.skel.h

$(BUILD)/xdp-pacer: $(OBJS)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)

$(BUILD)/traffic $(BUILD)/flood: $(BUILD)/%: tests/net/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) $< -o $@

# A unit test links what it tests of user/: by its own name, and what that needs.
$(BUILD)/unit/test_policy:  MORE := user/config/policy.c user/config/units.c
$(BUILD)/unit/test_allowlist: MORE := user/live/allowlist.c
$(BUILD)/unit/test_units:   MORE := user/config/units.c
$(BUILD)/unit/test_rotate:  MORE := -DCOMPILE_MOVE_SETS=8 user/live/rotate.c user/plan/compile.c user/plan/sampling.c user/plan/throttles.c user/config/policy.c user/config/units.c
$(BUILD)/unit/test_compile: MORE := -DCOMPILE_MOVE_SETS=8 user/plan/compile.c user/plan/sampling.c user/plan/throttles.c user/config/policy.c user/config/units.c
$(BUILD)/unit/test_change: MORE := user/live/change.c user/live/allowlist.c user/live/grace.c user/live/rotate.c user/plan/compile.c user/plan/sampling.c user/plan/throttles.c user/config/policy.c user/config/units.c \
	   -Wl,--wrap=syscall,--wrap=open
$(BUILD)/unit/test_throttles: MORE := user/plan/compile.c user/plan/sampling.c user/plan/throttles.c user/config/policy.c user/config/units.c
$(BUILD)/unit/test_output_check: MORE := user/cli/output_check.c user/config/text.c user/plan/compile.c user/plan/sampling.c user/plan/throttles.c user/config/policy.c user/config/units.c -ljansson
$(BUILD)/unit/test_limit:   MORE := user/plan/compile.c user/plan/sampling.c user/plan/throttles.c user/config/policy.c user/config/units.c
$(BUILD)/unit/test_alloc:   MORE := user/plan/compile.c user/plan/sampling.c user/plan/throttles.c user/config/policy.c user/config/units.c
$(BUILD)/unit/test_keys:    MORE := user/keys/keys.c user/config/units.c
$(BUILD)/unit/test_sampler: MORE := user/plan/sampling.c
$(BUILD)/unit/test_estimate: MORE := user/estimate/estimator.c user/estimate/exact.c user/estimate/track.c
$(BUILD)/unit/test_pooled: MORE := user/estimate/pooled.c
$(BUILD)/unit/test_sample_merge: MORE := user/estimate/estimator.c
$(BUILD)/unit/test_tally: MORE := user/plan/tally.c user/config/units.c
$(BUILD)/unit/test_text: MORE := user/config/text.c
$(BUILD)/unit/test_emit: MORE := user/cli/emit.c -ljansson

# What others do between the steps of a move.
$(BUILD)/unit/test_rotate: TESTC += -DPACER_STEP_HOOK

$(BUILD)/unit/%: tests/unit/%.c $(wildcard tests/unit/*.h) $(USERS) $(USERH) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(TESTC) $(SANITIZE) $< $(MORE) -o $@ -lcmocka -lyaml -lm

unit: $(UNITS)

# -O2, since below it gcc warns of what a denied packet leaves unset and nobody then reads.
$(BUILD)/test_model: $(wildcard tests/model/*.[ch]) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(TESTC) -O2 $(wildcard tests/model/*.c) -o $@ -lcmocka

# The object under BPF_PROG_TEST_RUN; its twin on a given clock; two CPUs hammering one key.
PROG    := $(patsubst tests/prog/%.c,$(BUILD)/prog/%,$(wildcard tests/prog/test_*.c) tests/prog/guard.c)
HARNESS := $(wildcard tests/prog/*.h) tests/unit/oracle.h tests/unit/chi.h

prog: $(PROG) $(addprefix $(BUILD)/prog/,pacer_given.bpf.o hammer.bpf.o hammer_fault.bpf.o)

READER  := $(addprefix $(BUILD)/user/live/,snapshot.o change.o loader.o site.o pins.o targets.o allowlist.o grace.o samples.o)

$(BUILD)/prog/test_sample: MORE := $(READER)
$(BUILD)/prog/test_sample: $(READER)

$(PROG): $(BUILD)/prog/%: tests/prog/%.c $(HARNESS) $(CORE) $(PURE) $(BUILD)/pacer.skel.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER) -Itests/unit -Itests/prog $< $(PURE) $(MORE) -o $@ $(LIBS) -lcmocka -lpthread

$(BUILD)/prog/pacer_given.bpf.o: $(BUILD)/pacer_given.bpf.o
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/prog/hammer.bpf.o: tests/prog/hammer.bpf.c tests/prog/hammer.h $(CORE)
	@mkdir -p $(@D)
	$(CLANG) $(BPF) -Itests/prog -c $< -o $@

$(BUILD)/prog/hammer_fault.bpf.o: tests/prog/hammer.bpf.c tests/prog/hammer.h $(CORE)
	@mkdir -p $(@D)
	$(CLANG) $(BPF) -Itests/prog -DHAMMER_FAULT -c $< -o $@

tidy:
	clang-tidy --quiet $(USERS) -- $(USER:-I$(BUILD)=-isystem $(BUILD))

# Where the shells look: of zsh, Debian's has another place for packages than for what is made here.
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)

install: all ## install under DESTDIR and PREFIX, with the core's headers
	install -D -m 755 $(BUILD)/xdp-pacer $(DESTDIR)$(PREFIX)/sbin/xdp-pacer
	install -D -m 644 $(BUILD)/pacer.bpf.o $(DESTDIR)$(LIBDIR)/bpf/pacer.bpf.o
	install -d $(DESTDIR)$(PREFIX)/include/xdp-pacer
	install -m 644 $(CORE) $(DESTDIR)$(PREFIX)/include/xdp-pacer
	install -D -m 644 man/xdp-pacer.8 $(DESTDIR)$(PREFIX)/share/man/man8/xdp-pacer.8
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	printf 'prefix=%s\nName: xdp-pacer\nDescription: header-only packet pacing core\nVersion: %s\nCflags: -I$${prefix}/include/xdp-pacer\n' \
		$(PREFIX) $(VERSION) > $(DESTDIR)$(LIBDIR)/pkgconfig/xdp-pacer.pc
	install -d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR)
	$(BUILD)/xdp-pacer help --completion bash > $(DESTDIR)$(BASHDIR)/xdp-pacer
	$(BUILD)/xdp-pacer help --completion zsh > $(DESTDIR)$(ZSHDIR)/_xdp-pacer

check: ## build and run every test
	scripts/test

mutants: ## plant small faults and see that the tests find them (NAMES= some of them)
	tests/mutants/run $(NAMES)

bench: all ## print what a packet costs, as ratios in one run
	tests/bench/run

demo: ## the pacer at work in two network namespaces
	scripts/demo

format: ## format the sources
	clang-format -i $(shell git ls-files '*.c' '*.h')

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | column -t -s '|'
