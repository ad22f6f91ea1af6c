/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/ladder.h"

#include <stdio.h>
#include <string.h>

#define TIMES_MAX 1000000u

/* --- its lengths ----------------------------------------------------------------------------- */

bool ladder_has(const char *lengths)
{
	return strpbrk(lengths, "[]");
}

/* One length, longer ones before it; `text` ends behind it. */
static int MUST_USE read_length(struct source *s, int line, const struct place *at, char *text,
				uint32_t max, uint8_t *len, uint8_t *n)
{
	struct range range;
	size_t end;

	text += strspn(text, " ");
	end = strcspn(text, " ");
	if (!text[end + strspn(text + end, " ")])
		text[end] = 0;
	if (units_range(text, max, &range) || range.low != range.high)
		return doc_fail(s, line, at, "\"%s\" is no prefix length of IPv%d: write 0 to %u",
				doc_shown(text).text, max == 32 ? 4 : 6, max);
	if (*n == POLICY_LIMITS_MAX)
		return doc_fail(s, line, at, "a ladder has up to %d lengths", POLICY_LIMITS_MAX);
	if (*n && range.low >= len[*n - 1])
		return doc_fail(s, line, at,
				"/%u stands behind /%u: write the longest first, each once",
				range.low, len[*n - 1]);
	len[(*n)++] = (uint8_t)range.low;
	return 0;
}

/* "[32,24]" or "32", and what stands behind: *rest. */
static int MUST_USE read_list(struct source *s, int line, const struct place *at, char *text,
			      uint32_t max, uint8_t *len, uint8_t *n, char **rest)
{
	bool listed = text[strspn(text, " ")] == '[';
	char *end, *comma;

	*n = 0;
	text += strspn(text, " ") + listed;
	end = strpbrk(text, listed ? "]" : ",");
	if (listed && !end)
		return doc_fail(s, line, at, "\"[%s\" has no ]: write src/[32,24],[64,56], say",
				doc_shown(text).text);
	*rest = end ? end + listed : text + strlen(text);
	*rest += end && !listed;
	if (end)
		*end = 0;
	for (; text; text = comma) {
		comma = strchr(text, ',');
		if (comma)
			*comma++ = 0;
		if (read_length(s, line, at, text, max, len, n))
			return -1;
	}
	if (!listed)
		return 0;
	*rest += strspn(*rest, " ");
	*rest += **rest == ',';
	return 0;
}

int ladder_lengths(struct source *s, int line, const struct place *at, char *text,
		   const struct policy_key_part_name *part, struct policy_ladder *ladder)
{
	char *rest;

	if (ladder->rungs)
		return doc_fail(s, line, at,
				"src and dst both have several lengths: a ladder is of one");
	ladder->part = part->part;
	if (read_list(s, line, at, text, 32, ladder->len4, &ladder->n4, &rest))
		return -1;
	if (!*rest)
		return doc_fail(s, line, at,
				"the lengths for IPv6 are missing: write %s/[32,24],[64,56], say",
				part->name);
	if (read_list(s, line, at, rest, 128, ladder->len6, &ladder->n6, &rest))
		return -1;
	if (*rest)
		return doc_fail(s, line, at, "\"%s\" is too much: write %s/[32,24],[64,56], say",
				doc_shown(rest).text, part->name);
	ladder->rungs = ladder->n4 > ladder->n6 ? ladder->n4 : ladder->n6;
	if (ladder->rungs < 2)
		return doc_fail(s, line, at, "one length is no ladder: write %s/%u,%u", part->name,
				ladder->len4[0], ladder->len6[0]);
	if (!ladder->len4[ladder->n4 - 1] && !ladder->len6[ladder->n6 - 1])
		return doc_fail(s, line, at,
				"with no bit of the address all have one key: write that as a "
				"limit of its own");
	return 0;
}

/* --- its values ------------------------------------------------------------------------------ */

static int read_times(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	uint32_t *times = into;
	struct range range;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (*text != 'x' || units_range(text + 1, TIMES_MAX, &range) || range.low != range.high ||
	    !range.low)
		return doc_fail(s, doc_line(node), at, "\"%s\" will not do: write x1 to x%u",
				doc_shown(text).text, TIMES_MAX);
	*times = range.low;
	return 0;
}

int ladder_read_wider(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	struct list list = {read_times, &limit->ladder.times[1], sizeof(limit->ladder.times[0]),
			    POLICY_LIMITS_MAX - 1, &limit->ladder.n_times};

	limit->ladder.each = node->type == YAML_SCALAR_NODE;
	return doc_list(s, at, node, &list);
}

/* Does each rung have as many times the one before? */
static bool is_even(const struct policy_ladder *l)
{
	for (uint32_t i = 2; i < l->rungs; i++)
		if (l->times[i] != l->times[i - 1] * l->times[1])
			return false;
	return true;
}

bool ladder_write_wider(const void *from, size_t i, char *buf, size_t size)
{
	const struct policy_ladder *l = &((const struct policy_limit *)from)->ladder;

	if (!l->rungs || i)
		return false;
	*buf = 0;
	doc_append(buf, size, is_even(l) ? "" : "[");
	for (uint32_t k = 1; k < l->rungs && (k == 1 || !is_even(l)); k++)
		doc_append(buf, size, "%sx%llu", k > 1 ? ", " : "",
			   (unsigned long long)l->times[k]);
	doc_append(buf, size, is_even(l) ? "" : "]");
	return true;
}

/* "x4" is of each rung to the one before; a list is of each to the first. */
static int MUST_USE settle_times(struct source *s, const struct place *at, int line,
				 struct policy_ladder *l)
{
	l->times[0] = 1;
	for (uint32_t i = 2; i < l->rungs && l->each; i++)
		if (__builtin_mul_overflow(l->times[i - 1], l->times[1], &l->times[i]))
			l->times[i] = UINT64_MAX; /* too large for any value */
	if (!l->each && l->n_times + 1 != l->rungs)
		return doc_fail(s, line, at,
				"%zu values, and %u lengths: write one for each length but the "
				"first, or one for all, as x4",
				l->n_times, l->rungs);
	for (uint32_t i = 1; i < l->rungs; i++)
		if (l->times[i] < l->times[i - 1])
			return doc_fail(
			    s, line, at, "x%llu stands behind x%llu: a wider prefix has more",
			    (unsigned long long)l->times[i], (unsigned long long)l->times[i - 1]);
	return 0;
}

int ladder_settle(struct source *s, const struct place *at, int wider, struct policy_limit *limit)
{
	struct policy_ladder *l = &limit->ladder;
	struct place place = {at, l->rungs ? "key" : "wider", 0};

	if (!l->rungs && wider)
		return doc_fail(s, wider, &place,
				"belongs to a key of several lengths, as src/[32,24],[64,56]");
	if (!l->rungs)
		return 0;
	if (limit->kind != LIMIT_WINDOW && limit->kind != LIMIT_RATE)
		return doc_fail(s, limit->line, &place,
				"a ladder is of packets, bytes or a rate: a gap for a wide prefix "
				"would be one for all its sources together");
	if (!wider)
		return doc_fail(s, limit->line, at,
				"the key has several lengths: write how much more each wider one "
				"has, as wider: x4");
	place.name = "wider";
	return settle_times(s, &place, wider, l);
}

/* --- its rungs ------------------------------------------------------------------------------- */

static bool times(uint64_t *value, uint64_t n)
{
	return !__builtin_mul_overflow(*value, n, value);
}

/* Where a family has fewer lengths than the other, its widest one stands for the rest: a larger
 * limit of the same key, which refuses nothing that the smaller one lets through.
 */
static uint8_t length_at(const uint8_t *len, uint8_t n, uint32_t i)
{
	return len[i < n ? i : n - 1u];
}

int ladder_rung(const struct policy_limit *line, uint32_t i, struct policy_limit *rung)
{
	const struct policy_ladder *l = &line->ladder;
	bool src = l->part == KEY_PART_SRC;

	*rung = *line;
	if (!l->rungs)
		return 0;
	rung->rung = (uint8_t)i;
	*(src ? &rung->key.src4 : &rung->key.dst4) = length_at(l->len4, l->n4, i);
	*(src ? &rung->key.src6 : &rung->key.dst6) = length_at(l->len6, l->n6, i);
	if (line->kind == LIMIT_RATE)
		return times(&rung->rate.amount, l->times[i]) && times(&rung->burst, l->times[i])
			   ? 0
			   : -1;
	return times(&rung->limit, l->times[i]) ? 0 : -1;
}

/* "32,24" */
static void append_lengths(char *text, size_t size, const uint8_t *len, uint8_t n)
{
	for (uint8_t i = 0; i < n; i++)
		doc_append(text, size, "%s%u", i ? "," : "[", len[i]);
	doc_append(text, size, "]");
}

const char *policy_line_key_text(const struct policy_limit *limit, char *buf, size_t size)
{
	const struct policy_ladder *l = &limit->ladder;
	const char *name = l->part == KEY_PART_SRC ? "src" : "dst";
	char key[POLICY_KEY_TEXT], *part, *rest;

	policy_key_text(&limit->key, key, sizeof(key));
	part = l->rungs ? strstr(key, name) : NULL;
	rest = part ? part + strcspn(part, "+") : key;
	snprintf(buf, size, "%.*s", part ? (int)(part - key) : 0, key);
	if (part) {
		doc_append(buf, size, "%s/", name);
		append_lengths(buf, size, l->len4, l->n4);
		doc_append(buf, size, ",");
		append_lengths(buf, size, l->len6, l->n6);
	}
	doc_append(buf, size, "%s", rest);
	return buf;
}

const char *policy_rung_text(const struct policy_limit *limit, char *buf, size_t size)
{
	*buf = 0;
	if (limit->ladder.rungs)
		snprintf(buf, size, ", rung %u of %u", limit->rung + 1u, limit->ladder.rungs);
	return buf;
}
