/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A saved state, damaged or forged, its checksum set right: it is refused in one line, or packets
 * can be judged by what it says, and a policy can go on from it.
 */
#include "fuzz.h"
#include "parsed.h"
#include "live/restore.h"
#include "live/state_file.h"

#include <zlib.h>

#define BYTES_AT 40u /* in the header: how long the file is */

#define LINES 4096u

/* Each kind of limit, narrow and wide, of packets and bytes, of new flows; a pool; a ban that
 * grows. */
#define POLICY                                                                         \
	"memory: 128K\nflows: 64\nclock: exact\nbans: 16\n"                            \
	"pools:\n- {name: scrub, targets: [lo, v1], each: 5, cooldown: 1s}\n"          \
	"rules:\n- name: a\n  match: {proto: udp}\n  over: pool scrub\n"               \
	"  ban: {for: 1s, grow: x2, up_to: 1h, forget: 10s}\n  limits:\n"              \
	"  - {key: src, packets: 3, window: 1s}\n  - {key: flow, gap: 1ms}\n"          \
	"  - {key: dst, rate: 9/s, burst: 3}\n  - {key: all, uses: 9, cooldown: 1s}\n" \
	"- name: b\n  limits:\n  - {key: src, packets: 300, window: 1s, slots: 40}\n"  \
	"  - {key: src, gap: 1us}\n  - {key: src, rate: 9/s, burst: 3, of: new}\n"     \
	"  - {key: src+dport, bytes: 90G, window: 1s}\n"                               \
	"  - {key: all, uses: 900, cooldown: 10s, max_cooldown: 11s}\n"

static const struct compile_host host = {0, 5000000000, 2};
static struct policy *policy;
static uint8_t *base;
static size_t base_bytes;
static uint32_t
    *used; /* where the file says something, and what stands behind that: most of it is zeros */
static size_t n_used;

/* The packet's outcome is of no account: no read or write may be outside of what was read. */
static void judge(struct state *s, const struct pacer_policy *bin, struct pacer_line *lines,
		  uint64_t n_lines)
{
	static struct pacer_throttle_lease lease[PACER_THROTTLES];
	struct pacer_state state = {.table = {lines, (uint32_t)n_lines},
				    .policy = bin,
				    .secret = (const __u64 *)s->secret[0],
				    .throttle = s->throttle,
				    .lease = lease};
	struct pacer_walk walk = {.state = &state};

	memset(lease, 0, sizeof(lease));
	for (uint32_t i = 0; i < 24; i++) {
		walk.now_ns = host.now_ns + i * 100000000ull;
		walk.pkt = (struct pacer_packet){.family = i & 1 ? PACER_FAMILY_6 : PACER_FAMILY_4,
						 .len_bytes = 60 + i,
						 .vlan = PACER_VLAN_NONE,
						 .proto = 17};
		walk.pkt.key[PACER_WORD_SADDR] = 0x0a000001 + i % 3;
		walk.rule = i / 2 % 2;
		(void)judge_parsed(&walk);
	}
}

static void make_base(void)
{
	static struct plan plan;
	struct policy_error error;
	struct state s;
	char path[] = "/tmp/fuzz_restore.XXXXXX";
	int fd = mkstemp(path);
	uint64_t bytes;

	HOLDS(fd >= 0);
	HOLDS(!state_init(&s, LINES));
	s.text = strdup(POLICY);
	s.policy = policy_parse(POLICY, strlen(POLICY), &error);
	policy = policy_parse(POLICY, strlen(POLICY), &error);
	HOLDS(s.policy && policy);
	HOLDS(!compile_policy(s.policy, NULL, &host, s.bin, &plan, &error) && plan.lines <= LINES);
	for (size_t i = 0; i < PACER_SECRETS; i++)
		s.secret[0][i] = (i + 1) * 0x9e3779b97f4a7c15ull;
	judge(&s, s.bin, s.lines, s.n_lines);
	s.secret_ready = PACER_SECRET_OF_TOOLS;
	s.clocks = (struct clocks){.boot_id = "a boot"};
	HOLDS(!state_write(path, &s, &bytes, &error));
	close(fd);
	fd = open(path, O_RDONLY);
	base_bytes = bytes;
	base = malloc(base_bytes);
	HOLDS(base && read(fd, base, base_bytes) == (ssize_t)base_bytes);
	HOLDS(!memcmp(base + BYTES_AT, &bytes, sizeof(bytes)));
	used = malloc(base_bytes * sizeof(*used));
	HOLDS(used);
	for (size_t i = 0, said = 0; i < base_bytes; i++) {
		said = base[i] ? i + 8 : said;
		if (i < said)
			used[n_used++] = (uint32_t)i;
	}
	close(fd);
	unlink(path);
	state_free(&s);
}

static void go_on(struct state *s, uint8_t how)
{
	static struct pacer_policy bin;
	static struct plan plan;
	struct clocks now = {.boot_id = "another boot"};
	struct policy_error error = {0};
	struct restored what = {0};

	judge(s, s->bin, s->lines, s->n_lines);
	if (how & 4)
		(void)restore_forget(s, policy);
	if (how & 8)
		(void)restore_forget_unfit(s, policy, &host);
	if (restore_plan(s, policy, &now, &host, &bin, &plan, &what, &error))
		HOLDS_TOLD(error.text);
	else
		judge(s, &bin, s->lines, s->n_lines);
}

/* As fuzz_patch, at most eight bytes where the file is used. */
static void patch_used(struct fuzz_input *in, uint8_t *file)
{
	while (in->left) {
		size_t at = used[fuzz_take(in, 3) % n_used], n = 1 + fuzz_take(in, 1) % 8;

		for (; n && at < base_bytes; n--, at++)
			file[at] = (uint8_t)fuzz_take(in, 1);
	}
}

/*
 * A byte: is the checksum set right, is the file cut, are limits forgotten, is it patched where it
 * is used; then patches.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t how = (uint8_t)fuzz_take(&in, 1), *file;
	struct policy_error error = {0};
	struct state s;
	size_t bytes;
	uint32_t sum;

	if (!base)
		make_base();
	file = fuzz_copy(base, base_bytes);
	bytes = how & 2 ? fuzz_take(&in, 3) % (base_bytes + 1) : base_bytes;
	if (how & 16)
		patch_used(&in, file);
	else
		fuzz_patch(&in, file, base_bytes);
	if (how & 1 && bytes > 1024) {
		memcpy(file + BYTES_AT, &bytes, sizeof(bytes));
		sum = (uint32_t)crc32(0, file, (uInt)(bytes - sizeof(sum)));
		memcpy(file + bytes - sizeof(sum), &sum, sizeof(sum));
	}
	if (state_read(fuzz_file(file, bytes), &s, &error)) {
		HOLDS_TOLD(error.text);
	} else {
		go_on(&s, how);
		state_free(&s);
	}
	free(file);
	return 0;
}
