/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers of a CrowdSec API: whatever they are, the bans that follow are of ranges that a pacer
 * looks for, each once, and the change from one answer's bans to the next one's makes the one of
 * the other.
 */
#include "fuzz.h"
#include "bouncer/decisions.h"

#define NOW_NS	 1000000000000ull
#define SLACK_NS 2000000000ull

static bool same(const struct prefix *a, const struct prefix *b)
{
	return a->family == b->family && a->len == b->len &&
	       !memcmp(a->addr, b->addr, sizeof(a->addr));
}

static const struct ban_piece *find(const struct ban_pieces *in, const struct prefix *prefix)
{
	for (size_t i = 0; i < in->n; i++)
		if (same(&in->at[i].prefix, prefix))
			return &in->at[i];
	return NULL;
}

static void check_bans(const struct ban_pieces *bans, uint64_t now_ns)
{
	for (size_t i = 0; i < bans->n; i++) {
		const struct prefix *p = &bans->at[i].prefix;

		HOLDS(bans->at[i].until_ns > now_ns);
		HOLDS(p->family == 4
			  ? !(p->len % 8) && p->len && p->len <= 32
			  : p->len == 32 || p->len == 48 || p->len == 64 || p->len == 128);
		HOLDS(!i || !same(p, &bans->at[i - 1].prefix));
	}
}

static void check_change(const struct ban_pieces *was, const struct ban_pieces *is, uint64_t now_ns)
{
	struct ban_pieces lift, add;

	HOLDS(!decisions_change(was, is, now_ns, SLACK_NS, &lift, &add));
	for (size_t i = 0; i < is->n && i < 200; i++) {
		const struct ban_piece *old = find(was, &is->at[i].prefix);

		if (!old || find(&lift, &old->prefix))
			HOLDS(find(&add, &is->at[i].prefix));
	}
	for (size_t i = 0; i < was->n && i < 200; i++)
		if (was->at[i].until_ns > now_ns && !find(is, &was->at[i].prefix))
			HOLDS(find(&lift, &was->at[i].prefix));
	free(lift.at);
	free(add.at);
}

/* Answers, one after the other, with zero bytes between them; of each the first is all there is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct decisions decisions = {0};
	struct ban_pieces was = {calloc(1, sizeof(*was.at)), 0}, is;
	uint64_t now_ns = NOW_NS;

	for (int i = 0; i < 4 && in.left; i++, now_ns += 10000000000) {
		char *text = fuzz_text(&in);
		struct policy_error error = {0};
		struct decisions_told told;

		if (decisions_take(&decisions, text, strlen(text), !i, now_ns, &told, &error))
			HOLDS_TOLD(error.text);
		else if (told.left_out)
			HOLDS(*told.why);
		free(text);
		HOLDS(!decisions_bans(&decisions, now_ns, &is));
		check_bans(&is, now_ns);
		check_change(&was, &is, now_ns);
		free(was.at);
		was = is;
	}
	free(was.at);
	decisions_free(&decisions);
	return 0;
}
