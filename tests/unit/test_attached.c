/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a pacer is still on its interface: what cannot be looked at is not gone. What an
 * interface has is said here, not asked of a kernel; lo is there on every machine. Nor is a shadow
 * lost, or another version's, that cannot be read.
 */
#include "oracle.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>

#include "live/attached.h"
#include "live/site.h"

#define OURS 7u

static struct policy_error error;

static struct {
	bool unseen; /* it cannot be looked at */
	uint32_t id; /* of a pacer; 0: none */
	bool named;  /* it says so, but cannot be opened */
} on;

int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *why)
{
	if (on.unseen)
		return policy_fail(why, 0, "%s: it cannot be seen", ifname);
	*site = (struct site){.ifindex = ifindex,
			      .id = on.id,
			      .fd = -1,
			      .named = on.named,
			      .pacer_id = on.id,
			      .pacer_fd = -1};
	return 0;
}

void site_close(struct site *site)
{
	(void)site;
}

int64_t site_id(int ifindex)
{
	(void)ifindex;
	return on.unseen ? -1 : (int64_t)on.id;
}

const char *site_mode_name(enum site_mode mode)
{
	(void)mode;
	return "native";
}

const char *site_ip_word(const struct site *site)
{
	(void)site;
	return "xdp";
}

bool site_lost_its_pins(const struct site *site)
{
	(void)site;
	return false;
}

static const struct {
	const char *name;
	bool here; /* its index is that of the name */
	bool unseen;
	uint32_t id;
	bool still, gone;
	const char *says;
} cases[] = {
    {"lo", true, true, 0, false, false, "lo: it cannot be seen"},
    {"lo", true, false, 0, false, true, "lo: its pacer was taken off or replaced meanwhile"},
    {"lo", true, false, OURS + 1, false, true, "lo: its pacer was taken off or replaced meanwhile"},
    /* its program is there, and its maps cannot be read */
    {"lo", true, false, OURS, false, false, "lo: its XDP program is not the pacer"},
    {"lo", false, true, 0, false, true, "lo: it cannot be seen"},
    {"no-such", true, true, 0, false, true, "no-such: there is no such interface here"},
};

static void test_gone_or_unknown(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct attached a = {.prog_id = OURS};

		snprintf(a.ifname, sizeof(a.ifname), "%s", cases[i].name);
		a.ifindex = (int)if_nametoindex("lo") + !cases[i].here;
		on.unseen = cases[i].unseen;
		on.id = cases[i].id;
		if (!attached_still(&a, &error) != cases[i].still ||
		    attached_gone(&a) != cases[i].gone ||
		    strncmp(error.text, cases[i].says, strlen(cases[i].says)))
			fail_msg("case %zu: gone: %d; it says %s", i, attached_gone(&a),
				 error.text);
	}
}

/* --- its shadow ------------------------------------------------------------------------------ */

static struct {
	int program,
	    info; /* errno of opening the program, and of reading what it is; 0: they work */
} fails;

int bpf_prog_get_fd_by_id(__u32 id)
{
	assert_int_equal(id, OURS);
	errno = fails.program;
	return fails.program ? -fails.program : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* A program without maps. */
int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	(void)fd;
	memset(info, 0, *len);
	errno = fails.info;
	return -fails.info;
}

/* Only one that is there and is no shadow of this version's is said to be another's. */
static const struct {
	int next_fd;
	uint32_t id;
	int program, info, result;
	const char *says;
} shadows[] = {
    {-1, 0, 0, 0, 1, "lo: no shadow runs beside its policy"},
    {0, 0, 0, 0, 1, "lo: its shadow was lost, as what is pinned"},
    {0, OURS, ENOENT, 0, 1, "lo: its shadow was lost, as what is pinned"},
    {0, OURS, EMFILE, 0, -1, "lo: its shadow cannot be opened: Too many open files"},
    {0, OURS, EPERM, 0, -1,
     "lo: its shadow cannot be opened: Operation not permitted: run as root"},
    {0, OURS, 0, ENOMEM, -1, "lo: its program cannot be read: Cannot allocate memory"},
    {0, OURS, 0, 0, -1, "lo: its shadow is of another version"},
};

static void test_shadow_lost_or_unread(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(shadows) / sizeof(*shadows); i++) {
		struct attached a = {
		    .ifname = "lo", .next_fd = shadows[i].next_fd, .shadow_id = shadows[i].id};
		struct attached s;
		int result;

		fails.program = shadows[i].program;
		fails.info = shadows[i].info;
		errno = EMFILE; /* of something before */
		result = attached_shadow(&a, &s, &error);
		if (result != shadows[i].result ||
		    strncmp(error.text, shadows[i].says, strlen(shadows[i].says)))
			fail_msg("shadow %zu: %d: %s", i, result, error.text);
	}
}

/* The pacer has another program, and whether this shadow belongs to it cannot be read. */
static void test_of_a_shadow_unknown(void **unused)
{
	struct pacer_shadow said = {0};
	struct attached shadow = {.prog_id = OURS, .shadowed = &said, .ifname = "lo"};

	(void)unused;
	shadow.ifindex = (int)if_nametoindex("lo");
	on.unseen = false;
	on.named = true;
	on.id = OURS + 1;
	assert_false(attached_gone(&shadow));
	assert_int_equal(attached_still(&shadow, &error), -1);
	assert_ptr_equal(strstr(error.text, "lo: its program cannot be opened"), error.text);
	on.named = false;
	assert_true(attached_gone(&shadow));
}

/* Who serves a pacer does not let it go because it cannot be looked at once. */
static void test_followed_though_unseen(void **unused)
{
	struct attached a = {.prog_id = OURS, .site_id = OURS, .ifname = "lo", .prog_fd = -1};

	(void)unused;
	a.ifindex = (int)if_nametoindex("lo");
	on.named = false;
	on.id = OURS;
	on.unseen = false;
	assert_int_equal(attached_follow("lo", &a, &error), 0);
	on.unseen = true;
	assert_int_equal(attached_follow("lo", &a, &error), 0);
	assert_int_equal(a.prog_id, OURS);
	assert_int_equal(attached_follow("no-such", &a, &error), -1);
	a = (struct attached){
	    .prog_id = OURS, .site_id = OURS, .ifindex = (int)if_nametoindex("lo")};
	on.unseen = false;
	on.id = OURS + 1;
	assert_int_equal(attached_follow("lo", &a, &error), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_of_a_shadow_unknown),
	    cmocka_unit_test(test_followed_though_unseen),
	    cmocka_unit_test(test_gone_or_unknown),
	    cmocka_unit_test(test_shadow_lost_or_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
