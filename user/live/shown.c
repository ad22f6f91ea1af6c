/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/shown.h"

#include <stdlib.h>
#include <string.h>

#include "live/allow.h"
#include "live/copies.h"

#define LOOKS_MAX 8 /* at what changes meanwhile */

struct allowed {
	struct prefix *prefix; /* for ever */
	size_t n, n_timed;
};

static void take_entry(const struct allow_entry *entry, uint64_t now_ns, void *arg)
{
	struct allowed *allowed = arg;

	(void)now_ns;
	if (!entry->of_policy && entry->hand_until_ns)
		allowed->n_timed++;
	else if (allowed->n < 2 * PACER_ALLOW_MAX)
		allowed->prefix[allowed->n++] = entry->prefix;
}

static bool holds(const struct prefix *list, size_t n, const struct prefix *prefix)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].family == prefix->family && list[i].len == prefix->len &&
		    !memcmp(list[i].addr, prefix->addr, prefix->family == 4 ? 4 : 16))
			return true;
	return false;
}

static bool same_lists(const struct policy *policy, const struct allowed *allowed)
{
	for (size_t i = 0; i < policy->n_allow; i++)
		if (!holds(allowed->prefix, allowed->n, &policy->allow[i]))
			return false;
	for (size_t i = 0; i < allowed->n; i++)
		if (!holds(policy->allow, policy->n_allow, &allowed->prefix[i]))
			return false;
	return true;
}

/*
 * The text of the copy in force, without the mark at its begin, and with an end to its last line
 * where there is room for one.
 */
static char *text_of(const struct attached *a, uint32_t copy)
{
	const char *from = a->copy[copy].text;
	size_t len = strnlen(from, PACER_DOC_MAX - 1);
	size_t mark = strncmp(from, "\xef\xbb\xbf", 3) ? 0 : 3;
	char *text = malloc(len + 2);

	if (!text)
		return NULL;
	len -= mark;
	memcpy(text, from + mark, len);
	if (len && len < PACER_DOC_MAX - 1 && text[len - 1] != '\n')
		text[len++] = '\n';
	text[len] = 0;
	return text;
}

/* The policy of the text, with the allow-list as it is: it takes the prefixes. */
static int with_list(struct shown *shown, struct allowed *allowed, struct policy_error *error)
{
	struct policy *policy = policy_parse(shown->text, strlen(shown->text), error);

	shown->policy = policy;
	if (!policy) {
		shown_free(shown);
		return -1;
	}
	shown->listed = same_lists(policy, allowed);
	if (!shown->listed) {
		free(policy->allow);
		policy->allow = allowed->prefix;
		policy->n_allow = allowed->n;
		allowed->prefix = NULL;
	}
	return 0;
}

/* 1: a change came in between. */
static int look(const struct attached *a, struct shown *shown, struct allowed *allowed,
		struct policy_error *error)
{
	uint32_t copy = copies_in_force(a);

	*shown = (struct shown){.serial = a->copy[copy].policy.serial,
				.pending_ns = copies_pending_ns(a)};
	allowed->n = allowed->n_timed = 0;
	if (allow_each(a, take_entry, allowed, error))
		return -1;
	shown->n_timed = allowed->n_timed;
	shown->text = text_of(a, copy);
	if (!shown->text)
		return policy_fail(error, POLICY_NO_MEMORY, "%s: no memory", a->ifname);
	if (copy == copies_in_force(a) && shown->serial == a->copy[copy].policy.serial)
		return with_list(shown, allowed, error);
	free(shown->text);
	return 1;
}

int shown_policy(const struct attached *a, struct shown *shown, struct policy_error *error)
{
	struct allowed allowed = {calloc(2 * PACER_ALLOW_MAX, sizeof(*allowed.prefix)), 0, 0};
	int result = 1;

	if (!allowed.prefix)
		return policy_fail(error, POLICY_NO_MEMORY, "%s: no memory", a->ifname);
	for (int i = 0; i < LOOKS_MAX && result == 1; i++)
		result = look(a, shown, &allowed, error);
	free(allowed.prefix);
	if (result == 1)
		return policy_fail(error, 0, "%s: its policy changes all the while: try again",
				   a->ifname);
	return result;
}

int shown_text(struct shown *shown, struct policy_error *error)
{
	char *text;

	if (shown->listed)
		return 0;
	text = policy_set_allow(shown->text, strlen(shown->text), shown->policy->allow,
				shown->policy->n_allow, error);
	if (!text)
		return -1;
	free(shown->text);
	shown->text = text;
	shown->listed = true;
	return 0;
}

void shown_free(struct shown *shown)
{
	policy_free(shown->policy);
	free(shown->text);
	*shown = (struct shown){.text = NULL};
}
