/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sources that other tools ban: which run, which one denies a source, and lifting them, also
 * while the tools write, and where the kernel cannot be asked. The tries are two lists here.
 */
#include "oracle.h"
#include "starved.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "live/host.h"
#include "live/tool_bans.h"

#define S 1000000000ull

struct entry {
	struct pacer_tools6 key;
	uint64_t until_ns;
};

static struct entry tries[2][8];
static size_t n[2];
static bool vanishing, stuck, refilled, restless; /* what befalls the entries */
static uint32_t lookups, deleted_at; /* by its tool, after this look at it, from 1; 0: none is */
static uint32_t deletes;
static struct pacer_control control = {.tools = 1};
static const struct attached pacer = {
    .ifname = "eth0", .control = &control, .tools4_fd = 0, .tools6_fd = 1};
static uint32_t calls, fails_at; /* a call of the kernel, from 1; 0: none fails */
static struct policy_error error;

uint64_t host_now_ns(void)
{
	return 100 * S;
}

static bool call_fails(void)
{
	errno = ENOMEM;
	return ++calls == fails_at;
}

/* As the kernel compares: the bits behind the prefix are no part of it. */
static bool same_prefix(const struct pacer_tools6 *a, const void *key)
{
	const struct pacer_tools6 *b = key;
	uint32_t bytes = a->prefixlen / 8, bits = a->prefixlen % 8;

	return a->prefixlen == b->prefixlen && !memcmp(a->addr, b->addr, bytes) &&
	       (!bits || a->addr[bytes] >> (8 - bits) == b->addr[bytes] >> (8 - bits));
}

static size_t place_of(int fd, const void *key)
{
	size_t i = 0;

	while (i < n[fd] && !same_prefix(&tries[fd][i].key, key))
		i++;
	return i;
}

/* After a key that is there no more, it begins anew. */
int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	size_t i = !key || restless || place_of(fd, key) == n[fd] ? 0 : place_of(fd, key) + 1;

	if (call_fails())
		return -ENOMEM;
	errno = ENOENT;
	if (i >= n[fd])
		return -ENOENT;
	memcpy(next, &tries[fd][i].key, fd ? 20 : 8);
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	size_t i = place_of(fd, key);

	if (call_fails())
		return -ENOMEM;
	errno = ENOENT;
	if (i == n[fd] || vanishing)
		return -ENOENT;
	*(struct pacer_tools_value *)value = (struct pacer_tools_value){tries[fd][i].until_ns};
	if (++lookups == deleted_at)
		tries[fd][i] = tries[fd][--n[fd]];
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	size_t i = place_of(fd, key);

	deletes++;
	if (call_fails())
		return -ENOMEM;
	errno = ENOENT;
	if (i == n[fd] || stuck)
		return -ENOENT;
	if (!refilled)
		tries[fd][i] = tries[fd][--n[fd]];
	return 0;
}

static void put(const char *text, uint64_t until_ns)
{
	struct prefix p;
	struct entry *e;
	bool six;

	assert_int_equal(units_prefix(text, &p), 0);
	six = p.family == 6;
	e = &tries[six][n[six]++];
	*e = (struct entry){{.prefixlen = p.len}, until_ns};
	memcpy(e->key.addr, p.addr, six ? 16 : 4);
}

static int begin(void **unused)
{
	(void)unused;
	n[0] = n[1] = deletes = 0;
	calls = fails_at = 0;
	vanishing = stuck = refilled = restless = false;
	lookups = deleted_at = 0;
	control.tools = 1;
	put("192.0.2.0/24", 0);
	put("192.0.2.7", 101 * S);
	put("192.0.2.0/25", 200 * S);
	put("198.51.100.1", 99 * S);
	put("2001:db8::/32", 0);
	return 0;
}

static uint32_t told;
static struct prefix told_of[8];

static void note(const struct tool_ban *ban, uint64_t now_ns, void *arg)
{
	(void)arg;
	assert_true(ban->until_ns > now_ns);
	if (told < 8)
		told_of[told] = ban->prefix;
	told++;
}

static uint32_t running(void)
{
	told = 0;
	assert_int_equal(tool_bans_each(&pacer, note, NULL, &error), 0);
	return told;
}

static bool denied(const char *text, uint64_t now_ns, uint8_t len)
{
	struct prefix source;
	struct tool_ban ban;
	int found;

	assert_int_equal(units_prefix(text, &source), 0);
	found = tool_bans_find(&pacer, &source, now_ns, &ban, &error);
	if (found)
		assert_int_equal(ban.prefix.len, len);
	assert_in_range(found, 0, 1);
	return found;
}

static void test_which_run(void **unused)
{
	(void)unused;
	assert_int_equal(running(), 4);
	vanishing = true; /* between two calls */
	assert_int_equal(running(), 0);
	vanishing = false;
	control.tools = 0; /* it was not loaded for tools */
	assert_int_equal(running(), 0);
}

/* By the longest prefix, as packets are: where that has run out, by none. */
static void test_which_denies(void **unused)
{
	(void)unused;
	assert_true(denied("192.0.2.7", 100 * S, 32));
	assert_false(denied("192.0.2.7", 101 * S, 32));
	assert_true(denied("192.0.2.8", 100 * S, 25));
	assert_true(denied("192.0.2.200", 100 * S, 24));
	assert_true(denied("2001:db8::1", 100 * S, 32));
	assert_false(denied("198.51.100.1", 100 * S, 32));
	assert_false(denied("203.0.113.1", 100 * S, 0));
}

static size_t lifted(const struct prefix *prefix)
{
	size_t done;

	assert_int_equal(tool_bans_lift(&pacer, prefix, &done, &error), 0);
	return done;
}

static void test_lifting(void **unused)
{
	struct prefix one, over;

	(void)unused;
	assert_int_equal(units_prefix("192.0.2.0/25", &one), 0);
	assert_int_equal(lifted(&one), 1);
	assert_int_equal(lifted(&one), 0);
	assert_int_equal(lifted(NULL), 3); /* and one that has run out */
	assert_true(!n[0] && !n[1]);
	begin(unused);
	assert_int_equal(units_prefix("198.51.100.1", &over), 0);
	assert_int_equal(lifted(&over), 0);
	assert_true(n[0] == 3 && n[1] == 1); /* it has gone, too */
	n[0] = n[1] = 0;
	assert_int_equal(lifted(NULL), 0);
	control.tools = 0;
	assert_int_equal(lifted(NULL), 0);
}

/* It ends, whatever others do meanwhile. */
static void test_lifting_ends(void **unused)
{
	(void)unused;
	stuck = true;
	assert_int_equal(lifted(NULL), 0);
	assert_true(deletes > 1);
	stuck = false;
	refilled = true;
	assert_int_equal(lifted(NULL), 2 * PACER_TOOLS_ENTRIES);
}

/* Each once, and in order, also where reading begins anew behind one that was just deleted. */
static void test_each_once(void **unused)
{
	static const char *const expected[] = {"192.0.2.0/24", "192.0.2.0/25", "192.0.2.7/32",
					       "2001:db8::/32"};

	for (uint32_t at = 0; at <= 4; at++) {
		begin(unused);
		deleted_at = at;
		assert_int_equal(running(), ARRAY(expected));
		for (size_t i = 0; i < ARRAY(expected); i++) {
			struct prefix prefix;

			assert_int_equal(units_prefix(expected[i], &prefix), 0);
			assert_memory_equal(&told_of[i], &prefix, sizeof(prefix));
		}
	}
}

/* Reading ends, however fast a tool deletes and bans anew. */
static void test_reading_ends(void **unused)
{
	(void)unused;
	restless = true;
	assert_int_equal(running(), 2);
	assert_false(denied("198.51.100.1", 100 * S, 32));
}

/* What a tool writes may have bits behind its prefix: the ban's key has none, and is lifted by it.
 */
static void test_host_bits(void **unused)
{
	struct prefix eight;

	(void)unused;
	n[0] = n[1] = 0;
	put("10.77.0.13", 0);
	tries[0][0].key.prefixlen = 8;
	put("2001:db8::1", 0);
	tries[1][0].key.prefixlen = 33;
	assert_int_equal(running(), 2);
	assert_int_equal(units_prefix("10.0.0.0/8", &eight), 0);
	assert_memory_equal(&told_of[0], &eight, sizeof(eight));
	assert_int_equal(lifted(&eight), 1);
	assert_int_equal(lifted(NULL), 1);
	assert_true(!n[0] && !n[1]);
}

enum asked { EACH, FIND, LIFT_ONE, LIFT_ALL, ASKED };

static int ask(enum asked which, size_t *done)
{
	struct tool_ban ban;
	struct prefix one;

	*done = 0;
	assert_int_equal(units_prefix("192.0.2.7", &one), 0);
	switch (which) {
	case EACH:
		return tool_bans_each(&pacer, note, NULL, &error);
	case FIND:
		return tool_bans_find(&pacer, &one, 100 * S, &ban, &error);
	case LIFT_ONE:
		return tool_bans_lift(&pacer, &one, done, &error);
	default:
		return tool_bans_lift(&pacer, NULL, done, &error);
	}
}

/* Whichever call of the kernel fails, that is said, and not taken for the end of the list. */
static void test_what_cannot_be_read(void **unused)
{
	for (int which = 0; which < ASKED; which++)
		for (uint32_t at = 1;; at++) {
			size_t done, left;
			int result;

			begin(unused);
			tries[0][3].until_ns = 0; /* all run */
			error.text[0] = 0;
			fails_at = at;
			result = ask(which, &done);
			if (calls < at) { /* none failed */
				assert_int_equal(result, which == FIND);
				assert_true(at > 1);
				break;
			}
			left = n[0] + n[1];
			if (result != -1 || strncmp(error.text, "eth0: ", 6) != 0 ||
			    !strstr(error.text, strerror(ENOMEM)) || done + left != 5)
				fail_msg("%d, call %u: %d, %zu done, %zu left: %s", which, at,
					 result, done, left, error.text);
		}
}

/* Where there is no room for all of them, none is told: some would be taken for all. */
static void test_no_memory(void **unused)
{
	(void)unused;
	told = 0;
	starved_from(1, true);
	memory.on = true;
	assert_int_equal(tool_bans_each(&pacer, note, NULL, &error), -1);
	memory.on = false;
	assert_string_equal(error.text, "eth0: no memory");
	assert_int_equal(told, 0);
	assert_int_equal(running(), 4);
}

#define CASE(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_which_run),    CASE(test_which_denies),	     CASE(test_lifting),
	    CASE(test_each_once),    CASE(test_reading_ends),	     CASE(test_host_bits),
	    CASE(test_lifting_ends), CASE(test_what_cannot_be_read), CASE(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
