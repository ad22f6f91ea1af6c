/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many machine instructions a packet takes, counted and not timed: the code that the kernel's
 * JIT has made of the object is run step by step in an emulated processor, with the object's own
 * maps as they are after some packets. Prints a line for each case: its name and the number, kernel
 * helpers left out. With -v, where they go.
 */
#include <bpf/btf.h>
#include <ctype.h>
#include <unicorn/unicorn.h>

#include "path.h"
#include "plan/shares.h"
#include "prog.h"
#include "sets/build.h"
#include "sets/set_maps.h"

#include "pacer.skel.h"

#define PAGE	    4096ull
#define LINES	    (16 * PROG_LINES) /* room for bans */
#define FUNCS_MAX   256
#define HELPERS_MAX 32
#define STACK_AT    0x7f0000000000ull
#define STACK_BYTES (64 * PAGE)
#define DATA_AT	    0x7e0000000000ull /* the frame and what the kernel says of it */
#define CPU_AT	    0x7d0000000000ull /* stands for all memory of this CPU */
#define TICK_AT	    0x7d8000000000ull /* but its tick and the time of that, */
#define WALK_AT	    0x7d9000000000ull /* and the packet's walk */
#define MAP_BYTES   512		      /* of an array of one pointer, in the kernel */
#define CPU_BYTES   (64 * PAGE)
#define RETURN_AT   0x7c0000000000ull /* to where the program returns */
#define SAMPLER_AT  0x7b0000000000ull
#define SET_AT	    0x7a0000000000ull /* its lines */
#define SET_MAP_AT  0x790000000000ull /* stands for the map that they are in */

#define RETURN 0xc3 /* the instruction */

struct function {
	uint64_t at, len;
	uint32_t steps;
	char name[64];
};

static struct emulation {
	struct prog prog;
	struct bpf_object *obj;
	uc_engine *cpu;
	uint8_t *code;
	struct bpf_insn *insn;
	struct bpf_prog_info info;
	struct function function[FUNCS_MAX];
	struct set_lines set;
	uint64_t ticks_at, walks_at; /* the maps */
	uint32_t frame_bytes;
	uint32_t steps, helpers;
	_Alignas(4096) union {
		struct pacer_sampler sampler;
		uint8_t page[(sizeof(struct pacer_sampler) / PAGE + 1) * PAGE];
	};
} emu;

static void must(uc_err error, const char *what)
{
	if (error != UC_ERR_OK)
		fail_msg("%s: %s", what, uc_strerror(error));
}

/* --- what the kernel has made of it ----------------------------------------------------------- */

static void read_sizes(struct bpf_prog_info *info)
{
	__u32 len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	assert_int_equal(bpf_obj_get_info_by_fd(emu.prog.fd, info, &len), 0);
	assert_in_range(info->nr_jited_func_lens, 1, FUNCS_MAX);
	assert_true(info->jited_prog_len > 0);
}

/* The functions' names are the BTF's. */
static void name_functions(const struct bpf_func_info *func, uint32_t n)
{
	struct btf *btf = btf__load_from_kernel_by_id(emu.info.btf_id);

	assert_non_null(btf);
	for (uint32_t i = 0; i < n; i++) {
		const struct btf_type *type = btf__type_by_id(btf, func[i].type_id);

		snprintf(emu.function[i].name, sizeof(emu.function[i].name), "%s",
			 btf__name_by_offset(btf, type->name_off));
	}
	btf__free(btf);
}

static void read_code(void)
{
	static struct bpf_func_info func[FUNCS_MAX];
	static uint64_t at[FUNCS_MAX];
	static uint32_t bytes[FUNCS_MAX];
	struct bpf_prog_info sizes, *info = &emu.info;
	__u32 len = sizeof(*info);

	read_sizes(&sizes);
	emu.code = calloc(1, sizes.jited_prog_len);
	emu.insn = calloc(1, sizes.xlated_prog_len);
	assert_true(emu.code && emu.insn);
	*info = (struct bpf_prog_info){
	    .jited_prog_insns = (unsigned long)emu.code,
	    .jited_prog_len = sizes.jited_prog_len,
	    .xlated_prog_insns = (unsigned long)emu.insn,
	    .xlated_prog_len = sizes.xlated_prog_len,
	    .jited_ksyms = (unsigned long)at,
	    .nr_jited_ksyms = sizes.nr_jited_ksyms,
	    .jited_func_lens = (unsigned long)bytes,
	    .nr_jited_func_lens = sizes.nr_jited_func_lens,
	    .func_info = (unsigned long)func,
	    .nr_func_info = sizes.nr_func_info,
	    .func_info_rec_size = sizeof(func[0]),
	};
	assert_int_equal(bpf_obj_get_info_by_fd(emu.prog.fd, info, &len), 0);
	if (!at[0])
		fail_msg("the kernel hides its addresses: see bpf_jit_harden");
	for (uint32_t i = 0; i < info->nr_jited_func_lens; i++)
		emu.function[i] = (struct function){at[i], bytes[i], 0, ""};
	if (info->nr_func_info == info->nr_jited_func_lens)
		name_functions(func, info->nr_func_info);
}

/* --- memory of the emulated processor -----------------------------------------------------------
 */

static bool is_there(uint64_t address)
{
	uint8_t byte;

	return uc_mem_read(emu.cpu, address, &byte, 1) == UC_ERR_OK;
}

static void make_memory(uint64_t address, uint64_t bytes, uint32_t prot)
{
	uint64_t page = address & ~(PAGE - 1), end = (address + bytes + PAGE - 1) & ~(PAGE - 1);

	for (; page < end; page += PAGE)
		if (!is_there(page))
			must(uc_mem_map(emu.cpu, page, PAGE, prot), "memory");
}

/* The memory of a map, in which the program and this process see the same. */
static void share_memory(uint64_t address, void *at, uint64_t bytes)
{
	bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
	if (!is_there(address))
		must(uc_mem_map_ptr(emu.cpu, address, bytes, UC_PROT_READ | UC_PROT_WRITE, at),
		     "a map's memory");
}

/*
 * An array with a value for each CPU has pointers to them, and one of maps to these: all go to the
 * same one.
 */
static void make_pointers(uint64_t address, uint64_t to)
{
	uint64_t page = address & ~(PAGE - 1), fake[PAGE / 8];

	for (size_t i = 0; i < PAGE / 8; i++)
		fake[i] = to;
	make_memory(page, 2 * PAGE, UC_PROT_READ | UC_PROT_WRITE);
	must(uc_mem_write(emu.cpu, page, fake, PAGE), "pointers");
	must(uc_mem_write(emu.cpu, page + PAGE, fake, PAGE), "pointers");
}

/* The code has the address of this map's value at `off`, or of the map itself. */
static void place_map(uint32_t id, bool of_value, uint32_t off, uint64_t address)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id);
	uint64_t value = of_value ? address - off : (address + PAGE - 1) & ~(PAGE - 1);

	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	close(fd);
	if (strstr(info.name, "control"))
		share_memory(value, emu.prog.control, sizeof(*emu.prog.control));
	else if (strstr(info.name, "policy"))
		share_memory(value, emu.prog.copy, 2 * sizeof(*emu.prog.copy));
	else if (!strcmp(info.name, "pacer_lines"))
		share_memory(value, emu.prog.lines, emu.prog.n_lines * sizeof(*emu.prog.lines));
	else if (!strcmp(info.name, "pacer_throttles"))
		share_memory(value, emu.prog.throttle,
			     PACER_THROTTLES * sizeof(*emu.prog.throttle));
	else if (!strcmp(info.name, "pacer_sets"))
		make_pointers(address, SET_MAP_AT);
	else if (info.type == BPF_MAP_TYPE_PERCPU_ARRAY || info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		make_pointers(address, CPU_AT);
	else
		make_memory(address, PAGE, UC_PROT_READ | UC_PROT_WRITE);
	if (!strcmp(info.name, "pacer_ticks"))
		emu.ticks_at = address;
	if (!strcmp(info.name, "pacer_walks"))
		emu.walks_at = address;
}

/* This map has the one pointer, and shares its page with other maps. */
static void place_apart(uint64_t map_at, uint64_t to)
{
	uint64_t fake[MAP_BYTES / 8];

	for (size_t i = 0; i < MAP_BYTES / 8; i++)
		fake[i] = to;
	must(uc_mem_write(emu.cpu, map_at, fake, sizeof(fake)), "the pointer");
}

/* "movabs $address, %reg" of a kernel address: where the next one is in the code. 0: nowhere. */
static size_t next_address(size_t from, uint64_t *address)
{
	for (; from + 10 <= emu.info.jited_prog_len; from++) {
		memcpy(address, emu.code + from + 2, sizeof(*address));
		if ((emu.code[from] & 0xfe) == 0x48 && (emu.code[from + 1] & 0xf8) == 0xb8 &&
		    *address >> 47 == 0x1ffff)
			return from + 10;
	}
	return 0;
}

/* A constant that is moved as an address is, and could be one by its highest bits. */
static bool looks_like_address(const struct bpf_insn *insn)
{
	uint64_t value = (uint64_t)(uint32_t)insn[1].imm << 32 | (uint32_t)insn->imm;

	return value >> 47 == 0x1ffff && (int64_t)value != (int32_t)value;
}

/* The n-th of them is the n-th address of a map in the BPF. */
static void place_maps(void)
{
	size_t n = emu.info.xlated_prog_len / sizeof(*emu.insn), from = 0, i;
	uint64_t address;

	for (i = 0; i + 1 < n; i++) {
		const struct bpf_insn *insn = &emu.insn[i];

		if (insn->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		i++;
		if (!insn->src_reg && looks_like_address(insn))
			from = next_address(from, &address);
		if (insn->src_reg != BPF_PSEUDO_MAP_FD && insn->src_reg != BPF_PSEUDO_MAP_VALUE)
			continue;
		from = next_address(from, &address);
		assert_true(from > 0);
		place_map(insn->imm, insn->src_reg == BPF_PSEUDO_MAP_VALUE, insn[1].imm, address);
	}
	assert_int_equal(next_address(from, &address), 0);
	place_apart(emu.ticks_at, TICK_AT);
	place_apart(emu.walks_at, WALK_AT);
}

static void place_code(void)
{
	size_t from = 0;

	for (uint32_t i = 0; i < emu.info.nr_jited_func_lens; i++) {
		const struct function *f = &emu.function[i];

		make_memory(f->at, f->len, UC_PROT_ALL);
		must(uc_mem_write(emu.cpu, f->at, emu.code + from, f->len), "code");
		from += f->len;
	}
	assert_int_equal(from, emu.info.jited_prog_len);
}

/* --- steps ---------------------------------------------------------------------------------- */

static struct function *function_at(uint64_t address)
{
	for (uint32_t i = 0; i < emu.info.nr_jited_func_lens; i++)
		if (address - emu.function[i].at < emu.function[i].len)
			return &emu.function[i];
	return NULL;
}

static void find_name(uint64_t address, char name[128])
{
	unsigned long long at;
	char line[256], type;
	FILE *f = fopen("/proc/kallsyms", "r");

	assert_non_null(f);
	strcpy(name, "?");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %c %127s", &at, &type, name) == 3 && at == address &&
		    tolower(type) == 't')
			break;
	fclose(f);
}

/* The kernel's name of the function that begins here. It takes long to find, so it is kept. */
static const char *kernel_name(uint64_t address)
{
	static struct {
		uint64_t at;
		char name[128];
	} known[HELPERS_MAX];
	size_t i;

	for (i = 0; i < HELPERS_MAX && known[i].at && known[i].at != address; i++)
		;
	assert_true(i < HELPERS_MAX);
	if (!known[i].at)
		find_name(address, known[i].name);
	known[i].at = address;
	return known[i].name;
}

/* The entry of an inner map, which are all that is asked by a call: a line of the set, or the
 * sampler. */
static uint64_t inner_entry(void)
{
	uint64_t map = 0, key_at = 0;
	uint32_t key = 0;

	must(uc_reg_read(emu.cpu, UC_X86_REG_RDI, &map), "rdi");
	if (map != SET_MAP_AT)
		return SAMPLER_AT;
	must(uc_reg_read(emu.cpu, UC_X86_REG_RSI, &key_at), "rsi");
	must(uc_mem_read(emu.cpu, key_at, &key, sizeof(key)), "a key");
	assert_in_range(key, 0, emu.set.n - 1);
	return SET_AT + (uint64_t)key * sizeof(*emu.set.line);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* What the kernel's function returns, as far as the packet path asks. */
static void call_kernel(uint64_t address)
{
	uint64_t result = 0;
	const char *name = kernel_name(address);

	if (strstr(name, "return_thunk"))
		return;
	emu.helpers++;
	if (strstr(name, "ktime_get")) {
		result = now_ns();
	} else if (strstr(name, "get_buff_len")) {
		result = emu.frame_bytes;
	} else if (strstr(name, "trie_lookup_elem")) {
		result = 0; /* nobody is on a list */
	} else if (strstr(name, "array_map_lookup_elem")) {
		result = inner_entry();
	} else if (strstr(name, "redirect_map")) {
		result = PACER_REDIRECT;
	} else {
		fail_msg("the packet path calls %s, which is not known here", name);
	}
	must(uc_reg_write(emu.cpu, UC_X86_REG_RAX, &result), "rax");
}

static void step(uc_engine *cpu, uint64_t address, uint32_t size, void *unused)
{
	struct function *f = function_at(address);

	(void)cpu;
	(void)size;
	(void)unused;
	if (!f) {
		call_kernel(address);
		return;
	}
	f->steps++;
	emu.steps++;
}

/* Kernel memory that is not known here: its functions only return, its data is 0. */
static bool unmapped(uc_engine *cpu, uc_mem_type type, uint64_t address, int size, int64_t value,
		     void *unused)
{
	uint8_t page[PAGE];

	(void)cpu;
	(void)value;
	(void)unused;
	memset(page, type == UC_MEM_FETCH_UNMAPPED ? RETURN : 0, sizeof(page));
	address &= ~(PAGE - 1);
	(void)size;
	return uc_mem_map(emu.cpu, address, PAGE, UC_PROT_ALL) == UC_ERR_OK &&
	       uc_mem_write(emu.cpu, address, page, PAGE) == UC_ERR_OK;
}

static void power_on(void)
{
	uc_hook hook[2];

	must(uc_open(UC_ARCH_X86, UC_MODE_64, &emu.cpu), "the emulator");
	must(uc_hook_add(emu.cpu, &hook[0], UC_HOOK_CODE, step, NULL, 1, 0), "a hook");
	must(uc_hook_add(emu.cpu, &hook[1], UC_HOOK_MEM_UNMAPPED, unmapped, NULL, 1, 0), "a hook");
	make_memory(STACK_AT, STACK_BYTES, UC_PROT_READ | UC_PROT_WRITE);
	make_memory(DATA_AT, 4 * PAGE, UC_PROT_READ | UC_PROT_WRITE);
	make_memory(CPU_AT, CPU_BYTES, UC_PROT_READ | UC_PROT_WRITE);
	make_memory(TICK_AT, PAGE, UC_PROT_READ | UC_PROT_WRITE);
	make_memory(WALK_AT, PAGE, UC_PROT_READ | UC_PROT_WRITE);
	share_memory(SAMPLER_AT, emu.page, sizeof(emu.page));
	share_memory(SET_AT, emu.set.line, emu.set.n * sizeof(*emu.set.line));
	place_code();
	place_maps();
}

/* The frame as a driver hands it over: the kernel's struct xdp_buff, and its data. */
static void put_frame(const struct frame *f)
{
	uint64_t data = DATA_AT + PAGE, buff[8] = {data, data + f->n, data, DATA_AT + 512};

	emu.frame_bytes = f->n;
	must(uc_mem_write(emu.cpu, DATA_AT, buff, sizeof(buff)), "xdp_buff");
	must(uc_mem_write(emu.cpu, data, f->b, f->n), "the frame");
}

/* One packet: its verdict. */
static uint32_t emulate(const struct frame *f)
{
	static const uint8_t zero[CPU_BYTES];
	uint64_t rsp = STACK_AT + STACK_BYTES - PAGE, ctx = DATA_AT, back = RETURN_AT, rax = 0;
	uint64_t tick[2] = {0, now_ns()}; /* the time is known of tick 0, which jiffies says here */

	put_frame(f);
	for (uint32_t i = 0; i < emu.info.nr_jited_func_lens; i++)
		emu.function[i].steps = 0;
	must(uc_mem_write(emu.cpu, CPU_AT, zero, sizeof(zero)), "this CPU's memory");
	must(uc_mem_write(emu.cpu, TICK_AT, tick, sizeof(tick)), "its tick");
	emu.steps = 0;
	emu.helpers = 0;
	must(uc_mem_write(emu.cpu, rsp, &back, sizeof(back)), "the stack");
	must(uc_reg_write(emu.cpu, UC_X86_REG_RSP, &rsp), "rsp");
	must(uc_reg_write(emu.cpu, UC_X86_REG_RDI, &ctx), "rdi");
	must(uc_emu_start(emu.cpu, emu.function[0].at, RETURN_AT, 0, 100000), "a packet");
	must(uc_reg_read(emu.cpu, UC_X86_REG_RAX, &rax), "rax");
	return rax;
}

/* --- cases ---------------------------------------------------------------------------------- */

#define LIMITS(list)   "rules: [{name: a, limits: [" list "]}]"
#define BANS(list)     "rules: [{name: a, ban: 1h, limits: [" list "]}]"
#define TUNNEL	       "in a tunnel" /* the packets of cases with this in their names are in one */
#define IPV6	       "IPv6"
#define SET	       "sets: [{name: those, of: [192.0.2.0/24]}]\n"
#define MATCHED(match) "rules: [{name: a, match: {" match "}, limits: [" ONE_AN_HOUR "]}]"
#define ONE_AN_HOUR    "{key: src, packets: 1, window: 1h, slots: 10}"
#define LADDER(value, wider)                                           \
	"{key: 'src/[32,28,24,20,16],[128,64,56,48]', packets: " value \
	", window: 1h, wider: " wider "}"
#define POOL(each)                                           \
	"pools: [{name: p, targets: ['cpu:0'], " each "}]\n" \
	"rules: [{name: a, over: pool p, limits: [" ONE_AN_HOUR "]}]"
#define SAMPLE(of) "sample: {of: " of ", k: 64, window: 24h}\n"
#define FLEET(list)                                                        \
	"fleet: {store: 'http://a', name: f}\nrules: [{name: a, limits: [" \
	"{fleet: yes, " list "}]}]"
#define FLEET_LANE "refused, window of a fleet, its key has a part"
#define MANY	   "{key: src, packets: 2000000000, window: 1h, slots: 10}"

/* So many rules with such a match each, below `top`; the last of them has the packet's port. */
#define RULES(n, match)		"#" #n "*" match
#define RULES_OF(top, n, match) top RULES(n, match)
/* tests/prog/guard compares the two. */
#define ONE_AND_MANY(by, top, match)                                                      \
	{"refused, one rule by a port and " by, RULES_OF(top, 1, match ", dport: %u"), 2, \
	 PACER_DROP},                                                                     \
	{                                                                                 \
		"refused, last of 256 rules by a port and " by,                           \
		    RULES_OF(top, 256, match ", dport: %u"), 2, PACER_DROP                \
	}

static const struct step_case {
	const char *name, *policy;
	uint32_t before; /* packets before */
	uint32_t verdict;
} cases[] = {
    {"refused, window", LIMITS(ONE_AN_HOUR), 2, PACER_DROP},
    {"refused, gap and window", LIMITS("{key: src, gap: 30m}, " ONE_AN_HOUR), 2, PACER_DROP},
    {"refused, gap", LIMITS("{key: src, gap: 30m}"), 2, PACER_DROP},
    {"refused, rate", LIMITS("{key: src, rate: 1/h, burst: 1}"), 2, PACER_DROP},
    {"refused, banned", BANS(ONE_AN_HOUR), 3, PACER_DROP},
    {"admitted, narrow window", LIMITS("{key: src, packets: 255, window: 1h, slots: 10}"), 2,
     PACER_PASS},
    {"admitted, window", LIMITS(MANY), 2, PACER_PASS},
    {"admitted, rate", LIMITS("{key: src, rate: 1000/s, burst: 1000}"), 2, PACER_PASS},
    {"admitted, nobody banned", BANS(MANY), 2, PACER_PASS},
    {"refused, two keys", LIMITS(ONE_AN_HOUR ", {key: dst, packets: 2000000000, window: 1h}"), 2,
     PACER_DROP},
    {"refused, ladder of five", LIMITS(LADDER("1", "x10")), 2, PACER_DROP},
    {"admitted, two keys", LIMITS(MANY ", {key: dst, packets: 2000000000, window: 1h}"), 2,
     PACER_PASS},
    {"admitted, ladder of five", LIMITS(LADDER("1000", "x4")), 2, PACER_PASS},
    {"refused, throttle", LIMITS("{key: all, uses: 1, cooldown: 1h}"), 1, PACER_DROP},
    {"admitted, throttle", LIMITS("{key: all, uses: 1000000, cooldown: 1s}"), 2, PACER_PASS},
    {"refused, match on a port", MATCHED("dport: 53"), 2, PACER_DROP},
    {"refused, match on addresses", MATCHED("src: 192.0.2.0/24, dst: 198.51.100.0/24"), 2,
     PACER_DROP},
    {"refused, match on addresses and a port",
     MATCHED("src: 192.0.2.0/24, dst: 198.51.100.0/24, proto: udp, dport: 53"), 2, PACER_DROP},
    {"admitted, match on a port", "rules: [{name: a, match: {dport: 53}, limits: [" MANY "]}]", 2,
     PACER_PASS},
    {"refused, a flow, match on a port",
     "rules: [{name: a, match: {dport: 53}, limits: [{key: flow, packets: 1, window: 1h}]}]", 2,
     PACER_DROP},
    {"refused, second of three rules",
     "rules: [{name: a, match: {proto: tcp}, limits: [" MANY "]}, "
     "{name: b, match: {proto: udp, dport: 53}, limits: [" ONE_AN_HOUR "]}, "
     "{name: c, limits: [{key: src, rate: 1000/s, burst: 1000}]}]",
     2, PACER_DROP},
    {"refused, by a verdict", "rules: [{name: a, match: {proto: udp, dport: 53}, verdict: drop}]",
     1, PACER_DROP},
    {"passed, of no rule", MATCHED("dport: 54"), 1, PACER_PASS},
    {"refused, last of 64 rules", RULES(64, "dport: %u"), 2, PACER_DROP},
    {"refused, last of 256 rules", RULES(256, "dport: %u"), 2, PACER_DROP},
    {"refused, last of 256 rules by addresses and a port",
     RULES(256, "src: 192.0.2.0/24, dst: 198.51.100.0/24, proto: udp, dport: %u"), 2, PACER_DROP},
    ONE_AND_MANY("the TTL", "", "ttl: 1-255"),
    ONE_AND_MANY("the payload", "", "payload: 0=0xa5a5a5a5"),
    ONE_AND_MANY("a set", SET, "src: '@those'"),
    ONE_AND_MANY("addresses of " IPV6, "", "src: '2001:db8::/32', dst: '2001:db8::/32'"),
    ONE_AND_MANY("what is " TUNNEL, "", "inner: yes"),
    {"refused, match on the TTL", MATCHED("ttl: 1-255"), 2, PACER_DROP},
    {"refused, a rule for tunnels",
     "rules: [{name: t, match: {inner: yes}, verdict: pass}, "
     "{name: a, limits: [" ONE_AN_HOUR "]}]",
     2, PACER_DROP},
    {"refused, " TUNNEL, MATCHED("inner: yes"), 2, PACER_DROP},
    {"refused, an allow-list", "allow: [203.0.113.0/24]\n" LIMITS(ONE_AN_HOUR), 2, PACER_DROP},
    {"admitted, an allow-list", "allow: [203.0.113.0/24]\n" LIMITS(MANY), 2, PACER_PASS},
    {"refused, sampled", SAMPLE("all") LIMITS(ONE_AN_HOUR), 2, PACER_DROP},
    {"refused, others sampled", SAMPLE("admitted") LIMITS(ONE_AN_HOUR), 2, PACER_DROP},
    {"admitted, sampled, match on a port",
     SAMPLE("all") "rules: [{name: a, match: {dport: 53}, limits: [" MANY "]}]", 2, PACER_PASS},
    {"over the limit, monitor", "mode: monitor\n" LIMITS(ONE_AN_HOUR), 2, PACER_PASS},
    {"over the limit, passed", "rules: [{name: a, over: pass, limits: [" ONE_AN_HOUR "]}]", 2,
     PACER_PASS},
    {"refused, pool spent", POOL("each: 1, cooldown: 1h"), 3, PACER_DROP},
    {"refused, redirected", POOL("each: 1000000, cooldown: 1s"), 3, PACER_REDIRECT},
    {"refused, window of a fleet", FLEET("key: src, packets: 1, window: 1h, slots: 10"), 2,
     PACER_DROP},
    {FLEET_LANE, FLEET("key: src, packets: 1, window: 1h, slots: 10"), 2, PACER_DROP},
    {"admitted, narrow window of a fleet", FLEET("key: src, packets: 255, window: 1h, slots: 10"),
     2, PACER_PASS},
    {"admitted, window of a fleet", FLEET("key: src, packets: 2000000000, window: 1h, slots: 10"),
     2, PACER_PASS},
    {"refused, rate of a fleet", FLEET("key: src, rate: 1000/h, burst: 3"), 5, PACER_DROP},
    {"admitted, rate of a fleet", FLEET("key: src, rate: 1000/s, burst: 1000"), 2, PACER_PASS},
    {"refused, throttle of a fleet", FLEET("key: all, uses: 1, cooldown: 1h"), 1, PACER_DROP},
    {"admitted, throttle of a fleet", FLEET("key: all, uses: 1000000, cooldown: 1s"), 2,
     PACER_PASS},
    {"admitted, of a known flow",
     "flows: 64\n" LIMITS("{key: src, packets: 1, window: 1h, of: new}"), 2, PACER_PASS},
};

static void show_functions(void)
{
	for (uint32_t i = 0; i < emu.info.nr_jited_func_lens; i++)
		if (emu.function[i].steps)
			printf("\t%5u %s\n", emu.function[i].steps, emu.function[i].name);
}

/* In GRE, whose header is in the place of the ports. */
static void put_in_gre(struct frame *f, const struct recipe *r)
{
	struct recipe around = *r;
	struct frame in = *f;
	uint32_t n = in.n - in.l3;

	around.proto = 47;
	around.sport = 0;
	around.dport = 0x0800;
	around.payload = 4 + n;
	frame_build(f, &around);
	memcpy(f->b + f->n - n, in.b + in.l3, n);
}

/* As it is after many packets: it takes few of those that come. */
static void warm_sampler(const struct pacer_sampling *by)
{
	struct pacer_sample_item item = {0};

	item.time_ns = now_ns();
	pacer_sampler_init(&emu.sampler, 1);
	for (int i = 0; i < 100000; i++)
		if (pacer_sampler_due(&emu.sampler, by, item.time_ns))
			pacer_sampler_take(&emu.sampler, by, &item);
}

/* All of a fleet's limit is here; or of all keys but the packet's, which has as much by itself. */
static void put_share(const struct pacer_limiter *t, bool lane)
{
	struct pacer_lanes *lanes = &emu.prog.control->lanes[t->share];
	uint32_t value = shares_value(t, shares_units(t));

	lanes->used = 0;
	if (!t->share_id)
		return;
	emu.prog.control->share[t->share] = (struct pacer_share){
	    .id = t->share_id, .word = pacer_share_word(lane ? 0 : value, PACER_SHARE_END_MAX)};
	if (!lane)
		return;
	lanes->word[5] = pacer_share_word(value, PACER_SHARE_END_MAX);
	lanes->key[PACER_WORD_SADDR][5] = 0xc0000201;
	lanes->key[PACER_KEY_WORDS][5] = PACER_FAMILY_4;
	lanes->used = 0xff;
}

/* The policy's text; of many rules it is made here. */
static const char *text_of(const struct step_case *c)
{
	static char text[PACER_DOC_MAX];
	const char *many = strchr(c->policy, '#');
	uint32_t rules;
	char *match;
	size_t n;

	if (!many)
		return c->policy;
	rules = strtoul(many + 1, &match, 10);
	n = snprintf(text, sizeof(text), "%.*smemory: 256Mi\nrules:\n", (int)(many - c->policy),
		     c->policy);
	for (uint32_t i = 1; i <= rules; i++) {
		n += snprintf(text + n, sizeof(text) - n, "- {name: r%u, match: {", i);
		n += snprintf(text + n, sizeof(text) - n, match + 1, i < rules ? 1000 + i : 53);
		n += snprintf(text + n, sizeof(text) - n, "}, limits: [" ONE_AN_HOUR "]}\n");
		assert_true(n < sizeof(text));
	}
	return text;
}

static void run_case(const struct step_case *c, bool verbose)
{
	static const struct recipe udp4 = {.family = 4,
					   .proto = 17,
					   .saddr = {0xc0000201},
					   .daddr = {0xc6336402},
					   .sport = 0x1234,
					   .dport = 53,
					   .id = 0xbeef,
					   .payload = 26};
	static struct recipe udp6;
	static struct frame f;
	uint32_t verdict;

	udp6 = udp4;
	udp6.family = 6;
	udp6.saddr[0] = udp6.daddr[0] = 0x20010db8;
	frame_build(&f, strstr(c->name, IPV6) ? &udp6 : &udp4);
	if (strstr(c->name, TUNNEL))
		put_in_gre(&f, &udp4);
	prog_policy(&emu.prog, text_of(c));
	emu.prog.control->allowed[0].v4 = !strncmp(c->policy, "allow:", 6);
	pacer_short_reshape(&emu.prog.copy[0].policy, emu.prog.control, 0);
	put_share(&emu.prog.copy[0].policy.rule[0].limiter[0], !strcmp(c->name, FLEET_LANE));
	for (uint32_t i = 0; i < c->before; i++)
		prog_run(&emu.prog, f.b, f.n);
	if (emu.prog.copy[0].policy.sampling.reasons)
		warm_sampler(&emu.prog.copy[0].policy.sampling);
	verdict = emulate(&f);
	if (verdict != c->verdict)
		fail_msg("%s: the verdict is %u, not %u", c->name, verdict, c->verdict);
	assert_int_equal(prog_run(&emu.prog, f.b, f.n), verdict);
	printf("%s\t%u\n", c->name, emu.steps);
	if (verbose)
		show_functions();
}

/* Which the kernel's packets and the emulated ones find. */
static void put_set(void)
{
	struct set_entry e = {.high = 0xc0000200ull << 32, .value = 1, .family = 4, .len = 24};
	struct set_list list = {0};

	assert_int_equal(set_list_add(&list, &e), 0);
	assert_int_equal(set_build(&list, 1, &emu.set), 0);
	assert_int_equal(set_maps_put(bpf_map__fd(prog_map(emu.obj, "pacer_sets")), 0, &list), 0);
	set_list_free(&list);
}

/* Where redirected packets would go. */
static void put_target(void)
{
	struct bpf_cpumap_val value = {.qsize = 192};
	uint32_t cpu = 0;

	assert_int_equal(bpf_map_update_elem(emu.prog.cpus_fd, &cpu, &value, BPF_ANY), 0);
}

int main(int argc, char **argv)
{
	struct pacer_bpf *skel;

	(void)argv;
	libbpf_set_print(prog_print);
	skel = pacer_bpf__open();
	assert_non_null(skel);
	emu.obj = skel->obj;
	prog_load(&emu.prog, emu.obj, LINES);
	put_target();
	put_set();
	read_code();
	power_on();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run_case(&cases[i], argc > 1);
	uc_close(emu.cpu);
	set_lines_free(&emu.set);
	pacer_bpf__destroy(skel);
	return 0;
}
