# SPDX-License-Identifier: GPL-2.0-only
# `make help` lists the targets.

VERSION := 0.2.0
BUILD   ?= build
PREFIX  ?= /usr
LIBDIR  ?= $(PREFIX)/lib
MANDIR  ?= $(PREFIX)/share/man
SHAREDIR ?= $(PREFIX)/share/xdp-pacer
DOCDIR  ?= $(PREFIX)/share/doc/xdp-pacer
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
UNITDIR ?= $(LIBDIR)/systemd/system
ifeq ($(origin CC),default) # make's own is cc, which ?= would leave
CC      := gcc
endif
CLANG   ?= $(firstword $(foreach c,clang-19 clang-16 clang,$(shell command -v $(c))))
BPFTOOL ?= $(firstword $(shell command -v bpftool) /usr/sbin/bpftool)
PKG     := libxdp libbpf yaml-0.1 jansson libpcap libmicrohttpd libcurl libsystemd zlib
PKGLIBS := $(PKG) ncursesw # whose flags are for others' ideas of the C library

WARN    ?= -Wall -Wextra -Werror
CFLAGS  ?= -O2 -g
# Two builds are equal wherever they are made: no path of this machine gets into what is built.
SAME    := '-ffile-prefix-map=$(CURDIR)=.'
DEPEND   = -MMD -MP -MT $@ -MF $@.d
USER    := -std=gnu11 -D_GNU_SOURCE $(WARN) $(SAME) $(CPPFLAGS) -DPACER_VERSION='"$(VERSION)"' -Icommon -Iuser -I$(BUILD) \
	   $(shell pkg-config --cflags $(PKG))
LIBS    := -Wl,--as-needed $(shell pkg-config --libs $(PKGLIBS)) -lm
# For another machine (CC, PKG_CONFIG_* and MACHINE say which): where its headers are, and what runs its programs here.
MACHINE ?= $(shell uname -m)
SYSROOT ?=
RUN     ?=
ARCH    := $(shell echo $(MACHINE) | sed 's/x86_64/x86/; s/aarch64/arm64/')
BPF     := -O2 -g -target bpf -mcpu=v3 $(WARN) $(SAME) -D__TARGET_ARCH_$(ARCH) -Icommon -Ibpf -I$(BUILD) \
	   -I$(SYSROOT)/usr/include/$(MACHINE)-linux-gnu

CORE    := $(wildcard common/*.h)
# In no archive: where programs begin, and what stands in place of libraries that are loaded when they are needed.
LATE    := $(wildcard user/cli/late*.c)
MAINS   := user/cli/main.c user/bouncer/main.c user/plan/mkbuiltin.c $(LATE)
USERS   := $(filter-out $(MAINS),$(wildcard user/*/*.c))
OBJS    := $(USERS:%.c=$(BUILD)/%.o)
PURE    := $(filter $(BUILD)/user/config/% $(BUILD)/user/sets/% $(BUILD)/user/plan/%,$(OBJS))
ARCHIVE := $(BUILD)/user.a $(BUILD)/pure.a # of which a program links what it calls

# What a recipe says before it runs: in a word what it makes, with V=1 the whole command, with -s nothing.
ifeq ($(V),1)
says     =
else ifneq ($(findstring s,$(firstword -$(MAKEFLAGS))),)
says     = @
else
says     = @printf '  %-8s %s\n' $1 $@;
endif

.DELETE_ON_ERROR:
.PHONY: all debug unit check-unit sequences model model-fleet fuzzers fuzz prog check test-deb coverage mutants bench bench-document soak conformance test-vm test-arm64 test-faults demo format tidy check-clang compile_commands.json \
	install uninstall clean help

all: $(BUILD)/xdp-pacer $(BUILD)/xdp-pacer-crowdsec $(BUILD)/pacer.bpf.o ## build the programs and the object

# What is built with other flags than last time is built anew.
quoted = $(subst ','\'',$1)
$(BUILD)/flags $(BUILD)/unit/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(call quoted,$(CC) $(CFLAGS) $(USER) $(SANITIZE))' | cmp -s - $@ || \
		echo '$(call quoted,$(CC) $(CFLAGS) $(USER) $(SANITIZE))' > $@
FORCE:

# --- the object, and what is made of it ----------------------------------------------------------

$(BUILD)/mkbuiltin: $(BUILD)/user/plan/mkbuiltin.o $(BUILD)/pure.a
	$(call says,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)

$(BUILD)/builtin.h: $(BUILD)/mkbuiltin user/plan/builtin.yaml
	$(call says,BUILTIN)$(RUN) $< user/plan/builtin.yaml > $@

# The same source on the kernel's clock, and on a fake one: for replay and for the tests.
$(BUILD)/pacer.bpf.o $(BUILD)/shadow.bpf.o: CLOCK := clock
$(BUILD)/pacer_fake.bpf.o $(BUILD)/shadow_fake.bpf.o: CLOCK := fake
$(BUILD)/pacer.bpf.o $(BUILD)/pacer_fake.bpf.o: bpf/pacer.bpf.c
$(BUILD)/shadow.bpf.o $(BUILD)/shadow_fake.bpf.o: bpf/shadow.bpf.c
$(BUILD)/%.bpf.o: $(BUILD)/builtin.h
	$(call says,CLANG)$(CLANG) $(BPF) $(DEPEND) -Ibpf/$(CLOCK) -c $(filter %.c,$^) -o $@

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(call says,SKELETON)$(BPFTOOL) gen skeleton $< name $(*F)_bpf > $@ 2> $@.log || { cat $@.log; exit 1; }

# --- user space ----------------------------------------------------------------------------------

$(BUILD)/user/%.o: user/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) $(DEPEND) -c $< -o $@

$(BUILD)/user/live/object.o: $(BUILD)/pacer.skel.h $(BUILD)/shadow.skel.h
$(BUILD)/user/offline/replay.o: $(BUILD)/pacer_fake.skel.h
$(BUILD)/pure.a: $(PURE)
$(BUILD)/user.a: $(filter-out $(PURE),$(OBJS))

$(BUILD)/%.a:
	@rm -f $@
	$(call says,AR)$(AR) qcs $@ $^

PACER   := $(BUILD)/user/cli/main.o $(LATE:%.c=$(BUILD)/%.o) $(ARCHIVE)

$(BUILD)/xdp-pacer: $(PACER)
	$(call says,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)

$(BUILD)/xdp-pacer-crowdsec: $(BUILD)/user/bouncer/main.o $(ARCHIVE)
	$(call says,LINK)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)

# The same with the object by one compiler, whichever is CLANG: build/clang-14/xdp-pacer.
define by_compiler
$(BUILD)/$1/%: CLANG := $1
$(BUILD)/$1/%.bpf.o: bpf/%.bpf.c $(BUILD)/builtin.h
	@mkdir -p $$(@D)
	$$(call says,CLANG)$$(CLANG) $$(BPF) $$(DEPEND) -Ibpf/clock -c $$< -o $$@

$(BUILD)/$1/object.o: user/live/object.c $(BUILD)/flags $(BUILD)/$1/pacer.skel.h $(BUILD)/$1/shadow.skel.h
	$$(call says,CC)$$(CC) $$(CFLAGS) -I$$(@D) $$(USER) $$(DEPEND) -c $$< -o $$@

$(BUILD)/$1/xdp-pacer: $(BUILD)/$1/object.o $(PACER)
	$$(call says,LINK)$$(CC) $$(CFLAGS) $$(LDFLAGS) $$^ -o $$@ $$(LIBS)
endef
$(foreach c,clang-14 clang-16 clang-19,$(eval $(call by_compiler,$c)))

$(BUILD)/traffic $(BUILD)/flood: $(BUILD)/%: tests/net/%.c
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) $< -o $@

debug: ## build all for a debugger, with sanitizers, in build/debug
	$(MAKE) BUILD=$(BUILD)/debug CFLAGS="-O0 -g3 -fno-omit-frame-pointer $(SANITIZE)" all

# --- unit tests: objects of user/ built once with sanitizers, of which a test links what it calls ---

SANITIZE ?= -fsanitize=address,undefined -fno-sanitize-recover=undefined
# Without sanitizers -O2, since below it gcc warns of what a denied packet leaves unset and nobody then
# reads. Tables count as large early, so that both ways of moving them are met.
# Lines are enough for what sanitizers say; where variables are takes half of the compiler's time.
TESTG   ?= -g1
TESTC   := $(USER) $(TESTG) $(if $(strip $(SANITIZE)),-O1,-O2) -Itests/unit -Itests/model -DCOMPILE_MOVE_SETS=8
comma   := ,
SUITES  := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
# Those of common/ alone wait for nothing. What includes a skeleton is tested in tests/prog and tests/net, but object.c,
# for which a test of its own waits for that.
WINGED  := $(shell grep -lE '"(config|sets|plan|inspect|fleet|live|offline|estimate|keys|cli|episodes|bouncer)/|"(applied|at_work|banning|changed|fleet_many|set_oracle)\.h"' tests/unit/test_*.c)
ASKED   := $(T:%=$(BUILD)/unit/test_%)

ifneq ($(filter-out $(SUITES),$(ASKED)),)
$(error T=$(T): there is no $(patsubst $(BUILD)/%,tests/%.c,$(filter-out $(SUITES),$(ASKED))))
endif

unit: $(or $(ASKED),$(SUITES)) ## build the unit tests; run one of them: make unit T=window
	@set -e; for t in $(ASKED); do $$t; done

check-unit: $(SUITES) ## build and run all unit tests, without root
	@for t in $^; do $$t || failed="$$failed $$t"; done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# Long runs want no sanitizers: SANITIZE= BUILD=build/plain.
sequences: $(BUILD)/unit/test_sequences $(BUILD)/unit/test_chains $(BUILD)/unit/test_mixes $(BUILD)/unit/test_rows $(BUILD)/unit/test_by_hand $(BUILD)/unit/test_sets_by_hand $(BUILD)/unit/test_crowded ## change a pacer at random, for long (N= sequences of each kind, FROM= a seed, FAMILY= one kind)
	SEQUENCES=$(or $(N),1000) CHAINS=$(or $(N),1000)0 MIXES=$(or $(N),1000)0 ROWS=$(or $(N),1000)0 WALKS=$(or $(N),1000)0 FROM=$(or $(FROM),1) sh -c 'for t; do $$t || exit 1; done' sh $^

$(BUILD)/unit/user/%.o: user/%.c $(BUILD)/unit/flags
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(TESTC) $(SANITIZE) $(DEPEND) -c $< -o $@

$(BUILD)/unit/user.a: $(patsubst %.c,$(BUILD)/unit/%.o,$(filter-out %/object.c %/replay.c,$(USERS)))
$(WINGED:tests/%.c=$(BUILD)/%): $(BUILD)/unit/user.a
$(BUILD)/unit/user/live/object.o: $(BUILD)/pacer.skel.h $(BUILD)/shadow.skel.h
$(BUILD)/unit/test_object: $(BUILD)/unit/user/live/object.o
$(BUILD)/unit/test_object.o: $(BUILD)/builtin.h
# What others do between the steps of a move: before the archive, which has it without them.
$(BUILD)/unit/test_rotate: $(BUILD)/unit/stepped/rotate.o
$(BUILD)/unit/test_snapshot: $(BUILD)/unit/stepped/snapshot.o
$(BUILD)/unit/test_second_look: $(BUILD)/unit/stepped/still.o $(BUILD)/unit/stepped/ban_notes.o $(BUILD)/unit/stepped/notes.o
$(BUILD)/unit/test_calm: $(BUILD)/unit/bench/calm.o
$(BUILD)/unit/test_change $(BUILD)/unit/test_change_on_trial $(BUILD)/unit/test_change_expired $(BUILD)/unit/test_change_of_secret $(BUILD)/unit/test_allow $(BUILD)/unit/test_freeze $(BUILD)/unit/test_restore $(BUILD)/unit/test_save $(BUILD)/unit/test_sets $(BUILD)/unit/test_fleet_bans $(BUILD)/unit/test_bans $(BUILD)/unit/test_change_starved $(BUILD)/unit/test_successor $(BUILD)/unit/test_sequences $(BUILD)/unit/test_chains $(BUILD)/unit/test_mixes $(BUILD)/unit/test_rotations $(BUILD)/unit/test_rows $(BUILD)/unit/test_by_hand $(BUILD)/unit/test_sets_by_hand $(BUILD)/unit/test_crowded: LINK := -Wl,--wrap=syscall,--wrap=open
$(BUILD)/unit/test_change_on_trial: LINK += -Wl,--wrap=successor_free
$(BUILD)/unit/test_successor: LINK += -Wl,--wrap=sets_maps_clear,--wrap=sets_maps_share,--wrap=sets_maps_renew
$(BUILD)/unit/test_save: LINK += -Wl,--wrap=file_lock
$(BUILD)/unit/test_plot: LINK := -Wl,--wrap=rename
$(BUILD)/unit/test_state_file: LINK := $(patsubst %,-Wl$(comma)--wrap=%,flock unlinkat rename fstat fstatat fwrite fsync fclose read)
$(BUILD)/unit/test_load_trial: LINK := -Wl,--wrap=open,--wrap=fork,--wrap=nanosleep,--wrap=if_indextoname
$(BUILD)/unit/test_ends: LINK := -Wl,--wrap=write,--wrap=fopencookie
$(BUILD)/unit/test_follow: LINK := -Wl,--wrap=fopen
$(BUILD)/unit/test_notes: LINK := -Wl,--wrap=fopen,--wrap=getuid
$(BUILD)/unit/test_partners: LINK := -Wl,--wrap=reallocarray
$(BUILD)/unit/test_keyed $(BUILD)/unit/test_shared $(BUILD)/unit/test_tally: LINK := -Wl,--wrap=getrandom
$(BUILD)/unit/test_attached: LINK := -Wl,--wrap=mmap,--wrap=munmap,--wrap=reallocarray,--wrap=link_of_altname
$(BUILD)/unit/test_several: LINK := -Wl,--wrap=link_of_altname
$(BUILD)/unit/test_say: LINK := -Wl,--wrap=ends_hold,--wrap=ends_stream,--wrap=ends_blind
$(BUILD)/unit/test_snapshot: LINK := -Wl,--wrap=attached_follow,--wrap=attached_release
$(BUILD)/unit/test_tags: LINK := -Wl,--wrap=links_read,--wrap=link_has
$(BUILD)/unit/test_top_read: LINK := $(patsubst %,-Wl$(comma)--wrap=%,device_index if_indextoname watch_begin watch_end watch_look reading_take busiest_read)
$(BUILD)/unit/test_second_look: LINK := -Wl,--wrap=clock_gettime
$(BUILD)/unit/test_serve: LINK := -Wl,--wrap=ends_wait
$(BUILD)/unit/test_fleet_bans: LINK += -Wl,--wrap=ban_notes_lengths
$(BUILD)/unit/test_fleet_reserve: LINK := -Wl,--wrap=close
$(BUILD)/unit/test_fleet_number: LINK := -Wl,--wrap=poll
$(BUILD)/unit/test_agents: LINK := -Wl,--wrap=host_now_ns,--wrap=fork,--wrap=waitpid,--wrap=pipe2,--wrap=kill,--wrap=attached_find,--wrap=attached_release
$(BUILD)/unit/test_sole_agent: LINK := -Wl,--wrap=flock
$(BUILD)/unit/test_file_lock: LINK := -Wl,--wrap=clock_gettime
# The calls of failing.h.
$(BUILD)/unit/test_keys: LINK := -Wl,--wrap=open,--wrap=mkostemp,--wrap=write,--wrap=fsync,--wrap=fdatasync,--wrap=link,--wrap=fcntl,--wrap=fstat,--wrap=mmap,--wrap=posix_fallocate
$(BUILD)/unit/test_set_maps $(BUILD)/unit/test_set_starved: LINK := -Wl,--wrap=mmap,--wrap=mremap
$(BUILD)/unit/test_new_file: LINK := $(patsubst %,-Wl$(comma)--wrap=%,write fsync fchown fchmod close)
$(BUILD)/unit/test_http: LINK := -Wl,--wrap=clock_gettime,--wrap=poll
$(BUILD)/unit/test_timens: LINK := -Wl,--wrap=stat,--wrap=fopen,--wrap=clock_gettime,--wrap=clock_nanosleep
$(BUILD)/unit/test_pins: LINK := $(patsubst %,-Wl$(comma)--wrap=%,open openat opendir fdopendir readdir stat lstat statfs fstatfs setns syscall faccessat flock mkdir mkdirat renameat2 unlinkat if_nameindex fcntl)

$(BUILD)/unit/stepped/%.o: user/live/%.c $(BUILD)/unit/flags
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(TESTC) -DPACER_STEP_HOOK $(SANITIZE) $(DEPEND) -c $< -o $@

$(BUILD)/unit/bench/%.o: tests/bench/%.c $(BUILD)/unit/flags
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(TESTC) $(SANITIZE) $(DEPEND) -c $< -o $@

# Nothing is inlined: a packet path with sanitizers in each of its callers takes the compiler five times as long.
$(SUITES:=.o): $(BUILD)/%.o: tests/%.c $(BUILD)/unit/flags
	$(call says,CC)$(CC) $(TESTC) -Dalways_inline=unused $(SANITIZE) $(DEPEND) -c $< -o $@

$(SUITES): %: %.o
	$(call says,LINK)$(CC) $(CFLAGS) $(SANITIZE) $(filter %.o,$^) $(filter %.a,$^) $(LINK) -o $@ -lcmocka $(LIBS)

# --- every interleaving; the object under BPF_PROG_TEST_RUN; two CPUs hammering one key ------------

MODEL   := $(patsubst tests/%.c,$(BUILD)/%.o,$(wildcard tests/model/*.c))
MODELFLAGS ?= -O2

$(BUILD)/model/%.o: tests/model/%.c $(BUILD)/unit/flags
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(TESTC) $(MODELFLAGS) $(DEPEND) -c $< -o $@

model: $(BUILD)/test_model ## build the test of every interleaving, build/test_model
$(BUILD)/test_model: $(MODEL)
	$(call says,LINK)$(CC) $(CFLAGS) $(MODELFLAGS) $^ -o $@ -lcmocka

# The fleet's agent, in every state of a small fleet.
FLEET   := $(patsubst tests/%.c,$(BUILD)/%.o,$(wildcard tests/model/fleet/*.c))

$(BUILD)/model/fleet/%.o: tests/model/fleet/%.c $(BUILD)/unit/flags
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(TESTC) $(MODELFLAGS) -Itests/model/fleet $(DEPEND) -c $< -o $@

$(BUILD)/test_fleet: $(FLEET)
	$(call says,LINK)$(CC) $(CFLAGS) $(MODELFLAGS) $^ -o $@ -lcmocka

model-fleet: $(BUILD)/test_fleet ## every state of larger fleets: it takes long, and gigabytes
	$(BUILD)/test_fleet --long

# One call of the store's client a line; see tests/fleet/run.
$(BUILD)/fleet/store: tests/fleet/store.c $(BUILD)/unit/user.a
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(TESTC) $(SANITIZE) $(DEPEND) $(filter %.c %.a,$^) -o $@ $(LIBS)

# What a store carries; tests/fleet/load.c says how it is called.
$(BUILD)/fleet/load: tests/fleet/load.c $(ARCHIVE)
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) $(DEPEND) $(filter %.c %.a,$^) -o $@ $(LIBS) -lpthread

# --- fuzzing: libFuzzer with sanitizers, of what others can write --------------------------------------

FUZZCC  ?= clang-19
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZC    = $(USER) $(TESTG) -O1 -Itests/unit -Itests/fuzz -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZED  := $(patsubst %.c,$(BUILD)/fuzz/%.o,$(filter-out user/cli/% user/episodes/% %/object.c %/lapi.c,$(USERS)))

fuzzers: $(FUZZERS) ## build the fuzz targets, build/fuzz/NAME
fuzz: fuzzers ## look for inputs that break them, for long (NAMES= some, SECONDS= of each)
	tests/fuzz/run --seconds $(or $(SECONDS),600) $(NAMES)

$(BUILD)/fuzz/user/%.o: user/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call says,CC)$(FUZZCC) $(FUZZC) -fsanitize=fuzzer-no-link $(DEPEND) -c $< -o $@

$(BUILD)/fuzz/user/offline/replay.o: $(BUILD)/pacer_fake.skel.h
$(BUILD)/fuzz/user.a: $(FUZZED)
$(FUZZERS): $(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz/user.a
	$(call says,CC)$(FUZZCC) $(FUZZC) -fsanitize=fuzzer $(DEPEND) $< $(BUILD)/fuzz/user.a -o $@ $(LIBS)

PROG    := $(patsubst tests/prog/%.c,$(BUILD)/prog/%,$(wildcard tests/prog/test_*.c) tests/prog/guard.c tests/prog/steps.c)
HAMMER  := $(BUILD)/prog/hammer.bpf.o $(BUILD)/prog/hammer_fault.bpf.o

prog: $(PROG) $(HAMMER) $(BUILD)/prog/set.bpf.o $(BUILD)/prog/pacer_fake.bpf.o $(BUILD)/prog/shadow_fake.bpf.o ## build the tests that load the object; root runs them

$(BUILD)/prog/steps: PROGLIBS := -lunicorn
$(PROG:=.o): $(BUILD)/prog/%.o: tests/prog/%.c $(BUILD)/pacer.skel.h
	@mkdir -p $(@D)
	$(call says,CC)$(CC) $(CFLAGS) $(USER) $(DEPEND) -Itests/unit -Itests/prog -c $< -o $@

$(PROG): %: %.o $(ARCHIVE)
	$(call says,LINK)$(CC) $(CFLAGS) $^ -o $@ $(LIBS) -lcmocka -lpthread $(PROGLIBS)

$(BUILD)/prog/pacer_fake.bpf.o $(BUILD)/prog/shadow_fake.bpf.o: $(BUILD)/prog/%: $(BUILD)/%
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/prog/hammer_fault.bpf.o: FAULT := -DHAMMER_FAULT
$(HAMMER): tests/prog/hammer.bpf.c
	@mkdir -p $(@D)
	$(call says,CLANG)$(CLANG) $(BPF) $(DEPEND) -Itests/prog $(FAULT) -c $< -o $@

$(BUILD)/prog/set.bpf.o: tests/prog/set.bpf.c
	@mkdir -p $(@D)
	$(call says,CLANG)$(CLANG) $(BPF) $(DEPEND) -Itests/prog -c $< -o $@

# --- checks, measurements, tools -------------------------------------------------------------------

check: ## build everything and run every test, as root
	scripts/test

test-deb: ## build the Debian packages, and install, upgrade and purge them in a chroot, as root
	tests/packages/run

coverage: ## count what of common/ and user/ the tests reach, by file (as root)
	scripts/coverage

test-vm: all prog $(foreach c,14 16,$(BUILD)/clang-$c/xdp-pacer $(BUILD)/clang-$c/pacer.bpf.o) ## boot every kernel of Debian from 6.1 on, and write docs/kernels.md (BRIEF=1: fewer checks), as root
	tests/vm/matrix $(if $(BRIEF),--brief)

test-arm64: ## build for 64-bit ARM, run the unit tests and boot its kernels, under QEMU (BRIEF=1: fewer checks), as root
	tests/vm/arm64 $(if $(BRIEF),--brief)

test-faults: all ## fail and kill each verb at each call and allocation, for long, as root (NAMES= some verbs)
	tests/faults/run --long $(NAMES)

mutants: ## plant small faults and see that the tests find them (NAMES= some of them)
	tests/mutants/run $(NAMES)

soak: all ## ten minutes of traffic, changes and readers, as root; writes docs/soak.md (DURATION= seconds)
	tests/soak/run $(or $(DURATION),600) --document

conformance: all ## what limiters hold, ours beside nftables and hashlimit, as root; writes docs/conformance.md
	tests/conformance/run --document

bench: all ## print what a packet costs, as ratios in one run
	tests/bench/run

bench-document: ## keep the last run of the bench, and write docs/performance.md from it
	tests/bench/document --keep

demo: ## the pacer at work in two network namespaces
	scripts/demo

format: ## format the sources
	clang-format -i $(shell git ls-files '*.c' '*.h')

# How far the analyzer looks into a function: 225000 is its own default, and takes four times as long.
TIDY_NODES ?= 16000

tidy: $(BUILD)/pacer.skel.h $(BUILD)/shadow.skel.h $(BUILD)/pacer_fake.skel.h ## clang-tidy over user/
	clang-tidy --quiet $(USERS) $(MAINS) -- $(USER:-I$(BUILD)=-isystem $(BUILD)) \
		-Xclang -analyzer-config -Xclang max-nodes=$(TIDY_NODES)

# Warnings do not need the code: gcc has made that.
check-clang: $(BUILD)/pacer.skel.h $(BUILD)/shadow.skel.h $(BUILD)/pacer_fake.skel.h ## what clang warns of
	printf '%s\n' $(USERS) $(MAINS) $(wildcard tests/unit/test_*.c) | \
		xargs -n 8 $(CLANG) -fsyntax-only $(USER) -Itests/unit -Itests/model -DCOMPILE_MOVE_SETS=8

compile_commands.json: ## for editors and clangd, of these rules
	$(MAKE) V=1 -nB --no-print-directory all unit model prog | scripts/compile-commands > $@

# --- where it goes -----------------------------------------------------------------------------------

F2BDIR  ?= /etc/fail2ban/action.d

# Where the shells look: of zsh, Debian's has another place for packages than for what is made here.
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)

# As the manual, the command and README.md name them: docs/NAME.
GUIDES  := $(wildcard docs/*.md docs/*.svg docs/*.c)
MONITORING := $(wildcard docs/monitoring/*)
HEADERS := $(PREFIX)/include/xdp-pacer
# By a command, whose umask is anybody's.
WRITTEN := $(PKGCONFIGDIR)/xdp-pacer.pc $(UNITDIR)/xdp-pacer@.service $(UNITDIR)/xdp-pacer-fleet@.service \
	   $(BASHDIR)/xdp-pacer $(ZSHDIR)/_xdp-pacer
PLACES  := $(WRITTEN) $(PREFIX)/sbin/xdp-pacer $(LIBDIR)/bpf/pacer.bpf.o $(MANDIR)/man8/xdp-pacer.8 $(MANDIR)/man5/xdp-pacer-policy.5 \
	   $(SHAREDIR)/policy.schema.json $(LIBDIR)/sysusers.d/xdp-pacer.conf $(LIBDIR)/tmpfiles.d/xdp-pacer.conf $(F2BDIR)/xdp-pacer.conf \
	   $(PREFIX)/sbin/xdp-pacer-crowdsec $(MANDIR)/man8/xdp-pacer-crowdsec.8 \
	   $(SHAREDIR)/xdp-pacer-crowdsec.yaml $(DOCDIR)/README.md $(GUIDES:%=$(DOCDIR)/%) $(MONITORING:%=$(DOCDIR)/%)

install: all ## install under DESTDIR and PREFIX, with the core's headers
	install -D -m 755 $(BUILD)/xdp-pacer $(DESTDIR)$(PREFIX)/sbin/xdp-pacer
	install -D -m 644 $(BUILD)/pacer.bpf.o $(DESTDIR)$(LIBDIR)/bpf/pacer.bpf.o
	install -D -m 644 -t $(DESTDIR)$(HEADERS) $(CORE)
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man8 man/xdp-pacer.8
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man5 man/xdp-pacer-policy.5
	install -D -m 644 -t $(DESTDIR)$(SHAREDIR) docs/policy.schema.json
	install -D -m 644 -t $(DESTDIR)$(DOCDIR) README.md
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/docs $(GUIDES)
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/docs/monitoring $(MONITORING)
	install -d $(DESTDIR)$(PKGCONFIGDIR)
	printf 'prefix=%s\nName: xdp-pacer\nDescription: header-only packet pacing core\nVersion: %s\nCflags: -I$${prefix}/include/xdp-pacer\n' \
		$(PREFIX) $(VERSION) > $(DESTDIR)$(PKGCONFIGDIR)/xdp-pacer.pc
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|/usr/sbin/|$(PREFIX)/sbin/|' systemd/xdp-pacer@.service > $(DESTDIR)$(UNITDIR)/xdp-pacer@.service
	sed 's|/usr/sbin/|$(PREFIX)/sbin/|' systemd/xdp-pacer-fleet@.service > $(DESTDIR)$(UNITDIR)/xdp-pacer-fleet@.service
	install -D -m 644 systemd/xdp-pacer.sysusers $(DESTDIR)$(LIBDIR)/sysusers.d/xdp-pacer.conf
	install -D -m 644 systemd/xdp-pacer.tmpfiles $(DESTDIR)$(LIBDIR)/tmpfiles.d/xdp-pacer.conf
	install -d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR)
	$(BUILD)/xdp-pacer help --completion bash > $(DESTDIR)$(BASHDIR)/xdp-pacer
	$(BUILD)/xdp-pacer help --completion zsh > $(DESTDIR)$(ZSHDIR)/_xdp-pacer
	chmod 644 $(addprefix $(DESTDIR),$(WRITTEN))
	$(if $(DESTDIR),,systemd/installed $(LIBDIR))
	install -D -m 755 $(BUILD)/xdp-pacer-crowdsec $(DESTDIR)$(PREFIX)/sbin/xdp-pacer-crowdsec
	install -D -m 644 man/xdp-pacer-crowdsec.8 $(DESTDIR)$(MANDIR)/man8/xdp-pacer-crowdsec.8
	install -D -m 644 etc/crowdsec/bouncers/xdp-pacer-crowdsec.yaml \
		$(DESTDIR)$(SHAREDIR)/xdp-pacer-crowdsec.yaml
	install -D -m 644 etc/fail2ban/action.d/xdp-pacer.conf $(DESTDIR)$(F2BDIR)/xdp-pacer.conf

uninstall: ## take away what install put there
	rm -f $(addprefix $(DESTDIR),$(PLACES)) $(addprefix $(DESTDIR)$(HEADERS)/,$(notdir $(CORE)))
	for d in $(HEADERS) $(SHAREDIR) $(DOCDIR)/docs/monitoring $(DOCDIR)/docs $(DOCDIR); do \
		[ ! -d $(DESTDIR)$$d ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$$d; done
	$(if $(DESTDIR),,[ ! -d /run/systemd/system ] || systemctl daemon-reload)

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z0-9_.-]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F '|' '{ printf "  make %-22s %s\n", $$1, $$2 }'

-include $(wildcard $(BUILD)/*.d $(BUILD)/user/*/*.d $(BUILD)/unit/*.d $(BUILD)/unit/stepped/*.d $(BUILD)/unit/bench/*.d $(BUILD)/unit/user/*/*.d $(BUILD)/model/*.d \
	 $(BUILD)/model/fleet/*.d $(BUILD)/fleet/*.d \
	 $(BUILD)/fuzz/*.d $(BUILD)/fuzz/user/*/*.d $(BUILD)/prog/*.d $(BUILD)/clang-*/*.d)
