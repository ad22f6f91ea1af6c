/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a pacer is still on its interface: what cannot be looked at is not gone. What an
 * interface has is said here, not asked of a kernel; lo is there on every machine.
 */
#include "oracle.h"

#include <net/if.h>

#include "live/attached.h"
#include "live/site.h"

#define OURS 7u

static struct policy_error error;

static struct {
	bool unseen; /* it cannot be looked at */
	uint32_t id; /* of a pacer; 0: none */
} on;

int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *why)
{
	if (on.unseen)
		return policy_fail(why, 0, "%s: it cannot be seen", ifname);
	*site = (struct site){
	    .ifindex = ifindex, .id = on.id, .fd = -1, .pacer_id = on.id, .pacer_fd = -1};
	return 0;
}

void site_close(struct site *site)
{
	(void)site;
}

int64_t site_id(int ifindex)
{
	(void)ifindex;
	return on.id;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_gone_or_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
