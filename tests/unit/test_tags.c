/* SPDX-License-Identifier: GPL-2.0-only */
/* What is said of VLAN tags that are kept beside the frame, of each kind of interface. */
#include "oracle.h"

#include <stdlib.h>

#include "live/links.h"
#include "live/tags.h"
#include "parse.h"

/* An offload's bit is on where the name says so. */
static const struct link all[] = {
    {.index = 1, .name = "card-rx"},
    {.index = 2, .name = "card"},
    {.index = 3, .below = 4, .name = "a-rx", .kind = "veth"},
    {.index = 4, .below = 3, .name = "a-peer-tx", .kind = "veth"},
    {.index = 5, .below = 6, .name = "b-rx", .kind = "veth"},
    {.index = 6, .below = 5, .name = "b-peer-rx", .kind = "veth"},
    {.index = 7, .elsewhere = true, .name = "c", .kind = "veth"},
    {.index = 8, .name = "br", .kind = "bridge"},
    {.index = 9, .name = "bond-rx", .kind = "bond"},
    {.index = 10, .below = 1, .name = "vlan", .kind = "vlan"},
    {.index = 11, .below = 1, .name = "mac", .kind = "macvlan"},
    {.index = 12, .name = "team", .kind = "team"},
    {.index = 13, .master = 9, .name = "one", .kind = ""},
    {.index = 14, .master = 9, .name = "br-rx", .kind = "bridge"},
    {.index = 17, .master = 14, .name = "deep-rx", .kind = ""}, /* nothing is handed on so far */
    {.index = 15, .master = 9, .name = "two-rx", .kind = ""},
    {.index = 16, .master = 9, .name = "three-rx", .kind = ""},
};
static bool unread;

struct links __wrap_links_read(void);
bool __wrap_link_has(const struct link *l, uint32_t command, uint32_t bits);

struct links __wrap_links_read(void)
{
	struct links links = {.at = malloc(sizeof(all)), .n = unread ? 0 : ARRAY(all)};

	assert_non_null(links.at);
	memcpy(links.at, all, sizeof(all));
	return links;
}

bool __wrap_link_has(const struct link *l, uint32_t command, uint32_t bits)
{
	assert_int_equal(command, ETHTOOL_GFLAGS);
	assert_true(bits == ETH_FLAG_RXVLAN || bits == ETH_FLAG_TXVLAN);
	return strstr(l->name, bits == ETH_FLAG_RXVLAN ? "-rx" : "-tx");
}

#define RX "rxvlan off rx-vlan-stag-hw-parse off`"
#define TX "txvlan off tx-vlan-stag-hw-insert off`"

static void test_notes(void **unused)
{
	static const struct {
		const char *name;
		bool skb;
		const char *says; /* behind the same of all; NULL: nothing */
	} rows[] = {
	    {"card-rx", false, "what stops that: `ethtool -K card-rx " RX},
	    {"card-rx", true, "what stops that: `ethtool -K card-rx " RX},
	    {"card", true, NULL},
	    {"a-rx", false, "what stops that: `ethtool -K a-peer-tx " TX},
	    {"b-rx", true, NULL},
	    {"c", false, "what stops that, where its peer is: `ethtool -K PEER " TX},
	    {"br", true, "here those are all: load the interfaces below it"},
	    {"mac", true, "here those are all: load the interfaces below it"},
	    {"bond-rx", true, "here those are all: load the interfaces below it"},
	    {"bond-rx", false, "what stops that: `ethtool -K two-rx " RX},
	    {"team", false, NULL},
	    {"vlan", true, NULL}, /* whose own tags are in its frames */
	    {"gone", true, NULL},
	};
	char text[TAGS_TEXT];

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		const char *says = tags_note(rows[i].name, rows[i].skb, text);
		const char *way = says ? strstr(says, "counts as untagged; ") : NULL;

		if (!says != !rows[i].says || (says && !way) ||
		    (way && strcmp(way + strlen("counts as untagged; "), rows[i].says) != 0))
			fail_msg("%s: %s", rows[i].name, says ? says : "nothing");
	}
	unread = true;
	assert_null(tags_note("card-rx", true, text));
	unread = false;
}

/* A policy asks by a match or by a part of a key. */
static void test_asked(void **unused)
{
	static struct pacer_policy policy;
	struct pacer_rule *last = &policy.rule[PACER_RULES_MAX - 1];

	(void)unused;
	assert_false(tags_asked(&policy));
	policy.dims = 1u << PACER_DIM_VLAN;
	assert_true(tags_asked(&policy));
	policy.dims = ~(1u << PACER_DIM_VLAN);
	assert_false(tags_asked(&policy));
	last->limiter[1].mask6[PACER_WORD_META] = PACER_META_VLAN;
	last->n_limiters = 1;
	assert_false(tags_asked(&policy));
	last->n_limiters = 2;
	assert_true(tags_asked(&policy));
	last->limiter[1].mask6[PACER_WORD_META] = PACER_META_PROTO;
	assert_false(tags_asked(&policy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_notes),
	    cmocka_unit_test(test_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
