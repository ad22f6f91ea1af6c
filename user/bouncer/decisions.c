/* SPDX-License-Identifier: GPL-2.0-only */
#include "bouncer/decisions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fleet/json.h"

#define NS_MAX (1ull << 60) /* 36 years: longer is not told apart */

/* --- a decision ----------------------------------------------------------------------------- */

struct go_unit {
	const char *name;
	uint64_t ns;
};

/* Names that another begins with come behind it. Go writes the micro sign; the letter mu is read,
 * too. */
static const struct go_unit go_units[] = {
    {"ns", 1},	     {"us", 1000},	{"\u00b5s", 1000},  {"\u03bcs", 1000},
    {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000},
};

static const struct go_unit *find_unit(const char *text)
{
	for (size_t i = 0; i < sizeof(go_units) / sizeof(*go_units); i++)
		if (!strncmp(text, go_units[i].name, strlen(go_units[i].name)))
			return &go_units[i];
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The number and unit at *text, which moves behind them, in ns. */
static int read_part(const char **text, double *ns)
{
	const char *at = *text;
	const struct go_unit *unit;
	double number = 0, digit = 1;

	if (!is_digit(*at) && !(*at == '.' && is_digit(at[1])))
		return -1;
	for (; is_digit(*at); at++)
		number = 10 * number + (*at - '0');
	if (*at == '.')
		for (at++; is_digit(*at); at++)
			number += (*at - '0') * (digit /= 10);
	unit = find_unit(at);
	if (!unit)
		return -1;
	*ns += number * (double)unit->ns;
	*text = at + strlen(unit->name);
	return 0;
}

int decisions_duration(const char *text, uint64_t *ns)
{
	bool negative = *text == '-';
	double sum = 0;

	text += *text == '-' || *text == '+';
	if (!strcmp(text, "0")) {
		*ns = 0;
		return 0;
	}
	do
		if (read_part(&text, &sum))
			return -1;
	while (*text);
	*ns = negative ? 0 : sum < (double)NS_MAX ? (uint64_t)sum : NS_MAX;
	return 0;
}

/* The next length of those that bans have. */
static uint8_t piece_length(const struct prefix *prefix)
{
	static const uint8_t lengths4[] = {8, 16, 24, 32}, lengths6[] = {32, 48, 64, 128};
	const uint8_t *lengths = prefix->family == 4 ? lengths4 : lengths6;

	while (*lengths < prefix->len)
		lengths++;
	return *lengths;
}

static size_t count_pieces(const struct prefix *prefix)
{
	uint8_t more = piece_length(prefix) - prefix->len;

	return more < 9 ? (size_t)1 << more : DECISIONS_PIECES + 1; /* too many */
}

enum taken { TAKEN, TAKEN_NOT, TAKEN_WRONG };

static enum taken wrong(const json_t *id, char why[200], const char *what, const char *text)
{
	snprintf(why, 200, "decision %" JSON_INTEGER_FORMAT ": %s %.60s", json_integer_value(id),
		 what, text ? text : "is missing");
	return TAKEN_WRONG;
}

/* What it bans, if that is for us. */
static enum taken read_decision(const json_t *from, uint64_t now_ns, struct decision *d,
				char why[200])
{
	const json_t *id = json_object_get(from, "id");
	const char *type = json_string_value(json_object_get(from, "type"));
	const char *scope = json_string_value(json_object_get(from, "scope"));
	const char *value = json_string_value(json_object_get(from, "value"));
	const char *duration = json_string_value(json_object_get(from, "duration"));
	struct prefix four;
	uint64_t for_ns;

	if (!json_is_integer(id) || !type || !scope)
		return wrong(id, why, "no id, type or scope:", value ? value : "it");
	if (strcasecmp(type, "ban") != 0 || json_is_true(json_object_get(from, "simulated")) ||
	    (strcasecmp(scope, "Ip") != 0 && strcasecmp(scope, "Range") != 0))
		return TAKEN_NOT;
	if (!value || units_prefix_masked(value, &d->prefix))
		return wrong(id, why, "no address or range:", value);
	if (units_prefix_mapped(&d->prefix, &four))
		d->prefix = four;
	if (!duration || decisions_duration(duration, &for_ns))
		return wrong(id, why, "no duration:", duration);
	if (!d->prefix.len || count_pieces(&d->prefix) > DECISIONS_PIECES)
		return wrong(id, why, "the range is too wide to be banned:", value);
	d->id = json_integer_value(id);
	d->until_ns = now_ns + for_ns;
	return TAKEN;
}

/* --- an answer ------------------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
	int64_t x = ((const struct decision *)a)->id, y = ((const struct decision *)b)->id;

	return x < y ? -1 : x > y;
}

/* A list of it; one that is null or missing is empty: NULL. */
static int list_of(const json_t *root, const char *name, const json_t **list,
		   struct policy_error *error)
{
	*list = json_object_get(root, name);
	if (json_is_null(*list))
		*list = NULL;
	if (*list && !json_is_array(*list))
		return policy_fail(error, 0, "its \"%s\" is no list", name);
	return 0;
}

/* By id, each once. */
static void put_in_order(struct decisions *d)
{
	struct decision *at = d->at;
	size_t n = 0;

	qsort(at, d->n, sizeof(*at), by_id);
	for (size_t i = 0; i < d->n; i++)
		if (!n || at[n - 1].id != at[i].id)
			at[n++] = at[i];
	d->n = n;
}

static void forget(struct decisions *d, const json_t *deleted)
{
	struct decision *found;
	const json_t *one;
	size_t i, n = 0;

	json_array_foreach(deleted, i, one)
	{
		struct decision wanted = {.id = json_integer_value(json_object_get(one, "id"))};

		found = bsearch(&wanted, d->at, d->n, sizeof(wanted), by_id);
		if (found && json_is_integer(json_object_get(one, "id")))
			found->until_ns = 0;
	}
	for (i = 0; i < d->n; i++)
		if (d->at[i].until_ns)
			d->at[n++] = d->at[i];
	d->n = n;
}

/* Those that were there, but for any that an answer's new ones replace, and the new ones. */
static void replace(struct decisions *old, struct decisions *more)
{
	size_t fresh = more->n;

	for (size_t i = 0; i < old->n; i++)
		if (!fresh || !bsearch(&old->at[i], more->at, fresh, sizeof(*old->at), by_id))
			more->at[more->n++] = old->at[i];
}

/* What an API says must not take all memory: a short answer can have many wide ranges. */
static void leave_out(struct decisions *d, struct decisions_told *told)
{
	size_t bans = 0, n = 0;
	char text[64];

	for (size_t i = 0; i < d->n; i++) {
		size_t more = count_pieces(&d->at[i].prefix);

		if (bans + more <= DECISIONS_BANS) {
			bans += more;
			d->at[n++] = d->at[i];
		} else if (!told->left_out++) {
			snprintf(told->why, sizeof(told->why),
				 "decision %lld: it would be too many bans, more than %u: %s",
				 (long long)d->at[i].id, DECISIONS_BANS,
				 units_prefix_text(&d->at[i].prefix, text, sizeof(text)));
		}
	}
	d->n = n;
}

static int take_lists(struct decisions *d, const json_t *fresh, const json_t *deleted, bool whole,
		      uint64_t now_ns, struct decisions_told *told, struct policy_error *error)
{
	size_t n_old = whole ? 0 : d->n, i;
	struct decisions all = {calloc(json_array_size(fresh) + n_old + 1, sizeof(*all.at)), 0};
	struct decisions old = {d->at, 0};
	const json_t *one;

	if (!all.at)
		return policy_fail(error, POLICY_NO_MEMORY, "no memory for its decisions");
	json_array_foreach(fresh, i, one)
	{
		char why[200];

		switch (read_decision(one, now_ns, &all.at[all.n], why)) {
		case TAKEN:
			all.n++;
			break;
		case TAKEN_NOT:
			break;
		case TAKEN_WRONG:
			if (!told->left_out++)
				snprintf(told->why, sizeof(told->why), "%s", why);
		}
	}
	put_in_order(&all);
	/* An answer may have one that ended and its successor: what is deleted is older. */
	for (i = 0; i < n_old; i++)
		if (d->at[i].until_ns > now_ns)
			old.at[old.n++] = d->at[i];
	if (old.n)
		forget(&old, deleted);
	replace(&old, &all);
	qsort(all.at, all.n, sizeof(*all.at), by_id);
	leave_out(&all, told);
	free(d->at);
	*d = all;
	return 0;
}

int decisions_take(struct decisions *d, const char *json, size_t len, bool whole, uint64_t now_ns,
		   struct decisions_told *told, struct policy_error *error)
{
	const json_t *fresh, *deleted;
	json_error_t why;
	json_t *root = json_read(json, len, 0, &why);
	int result = -1;

	*told = (struct decisions_told){0};
	if (!root && json_lacked())
		return policy_fail(error, POLICY_NO_MEMORY, "no memory for its decisions");
	if (!root && why.line < 0)
		return policy_fail(error, 0,
				   "its answer has more values than text, and no list of decisions "
				   "has: is CrowdSec there?");
	if (!root)
		return policy_fail(error, 0, "its answer is no JSON (line %d: %.100s)", why.line,
				   why.text);
	if (!json_is_object(root) ||
	    (!json_object_get(root, "new") && !json_object_get(root, "deleted")))
		policy_explain(error, 0, "its answer has neither \"new\" nor \"deleted\"");
	else if (!list_of(root, "new", &fresh, error) && !list_of(root, "deleted", &deleted, error))
		result = take_lists(d, fresh, deleted, whole, now_ns, told, error);
	json_decref(root);
	return result;
}

void decisions_free(struct decisions *d)
{
	free(d->at);
	*d = (struct decisions){0};
}

/* --- bans ----------------------------------------------------------------------------------- */

static int compare_prefix(const struct prefix *a, const struct prefix *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return memcmp(a->addr, b->addr, sizeof(a->addr));
}

/* Of one prefix, the latest end first. */
static int by_prefix(const void *a, const void *b)
{
	const struct ban_piece *x = a, *y = b;
	int result = compare_prefix(&x->prefix, &y->prefix);

	return result ? result : x->until_ns > y->until_ns ? -1 : x->until_ns < y->until_ns;
}

/* Piece `i` of the prefix: that number in the bits behind its own. */
static struct prefix piece_of(const struct prefix *prefix, uint8_t len, size_t i)
{
	struct prefix piece = *prefix;

	piece.len = len;
	for (int bit = len - 1; bit >= prefix->len; bit--, i >>= 1)
		if (i & 1)
			piece.addr[bit / 8] |= 0x80 >> (bit % 8);
	return piece;
}

int decisions_bans(const struct decisions *d, uint64_t now_ns, struct ban_pieces *bans)
{
	size_t room = 0, n = 0;

	for (size_t i = 0; i < d->n; i++)
		room += count_pieces(&d->at[i].prefix);
	*bans = (struct ban_pieces){calloc(room + 1, sizeof(*bans->at)), 0};
	if (!bans->at)
		return -1;
	for (size_t i = 0; i < d->n; i++) {
		const struct decision *from = &d->at[i];

		for (size_t k = 0; from->until_ns > now_ns && k < count_pieces(&from->prefix); k++)
			bans->at[bans->n++] = (struct ban_piece){
			    piece_of(&from->prefix, piece_length(&from->prefix), k),
			    from->until_ns};
	}
	qsort(bans->at, bans->n, sizeof(*bans->at), by_prefix);
	for (size_t i = 0; i < bans->n; i++)
		if (!n || compare_prefix(&bans->at[n - 1].prefix, &bans->at[i].prefix))
			bans->at[n++] = bans->at[i];
	bans->n = n;
	return 0;
}

/* Which of two lists' next is the earlier: < 0: a's; 0: they are of one prefix. */
static int order_of(const struct ban_pieces *a, size_t i, const struct ban_pieces *b, size_t k)
{
	if (i == a->n)
		return 1;
	return k == b->n ? -1 : compare_prefix(&a->at[i].prefix, &b->at[k].prefix);
}

void decisions_settle(const struct ban_pieces *was, struct ban_pieces *is, uint64_t slack_ns)
{
	for (size_t i = 0, k = 0; i < was->n && k < is->n;) {
		int order = order_of(was, i, is, k);
		uint64_t end_ns = was->at[i].until_ns;

		if (!order && is->at[k].until_ns <= end_ns + slack_ns &&
		    end_ns <= is->at[k].until_ns + slack_ns)
			is->at[k].until_ns = end_ns;
		i += order <= 0;
		k += order >= 0;
	}
}

static void one_change(const struct ban_piece *was, const struct ban_piece *is, uint64_t now_ns,
		       uint64_t slack_ns, struct ban_pieces *lift, struct ban_pieces *add)
{
	bool shorter = was && is && is->until_ns + slack_ns < was->until_ns;

	if (was && (!is || shorter) && was->until_ns > now_ns)
		lift->at[lift->n++] = *was;
	if (is && (!was || shorter || is->until_ns > was->until_ns + slack_ns))
		add->at[add->n++] = *is;
}

int decisions_change(const struct ban_pieces *was, const struct ban_pieces *is, uint64_t now_ns,
		     uint64_t slack_ns, struct ban_pieces *lift, struct ban_pieces *add)
{
	*lift = (struct ban_pieces){calloc(was->n + 1, sizeof(*lift->at)), 0};
	*add = (struct ban_pieces){calloc(is->n + 1, sizeof(*add->at)), 0};
	if (!lift->at || !add->at) {
		free(lift->at);
		free(add->at);
		return -1;
	}
	for (size_t i = 0, k = 0; i < was->n || k < is->n;) {
		int order = order_of(was, i, is, k);

		one_change(order <= 0 ? &was->at[i] : NULL, order >= 0 ? &is->at[k] : NULL, now_ns,
			   slack_ns, lift, add);
		i += order <= 0;
		k += order >= 0;
	}
	return 0;
}

/* With `alone`, also what is in one of them alone. */
static int join(const struct ban_pieces *a, const struct ban_pieces *b, bool alone,
		struct ban_pieces *both)
{
	*both = (struct ban_pieces){calloc(a->n + b->n + 1, sizeof(*both->at)), 0};
	if (!both->at)
		return -1;
	for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
		int order = order_of(a, i, b, k);
		const struct ban_piece *one = order <= 0 ? &a->at[i] : &b->at[k];

		if (!order && b->at[k].until_ns > one->until_ns)
			one = &b->at[k];
		if (!order || alone)
			both->at[both->n++] = *one;
		i += order <= 0;
		k += order >= 0;
	}
	return 0;
}

const struct ban_piece *decisions_find(const struct ban_pieces *pieces, const struct prefix *prefix)
{
	size_t low = 0, high = pieces->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_prefix(prefix, &pieces->at[middle].prefix);

		if (!order)
			return &pieces->at[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

int decisions_either(const struct ban_pieces *a, const struct ban_pieces *b,
		     struct ban_pieces *both)
{
	return join(a, b, true, both);
}

int decisions_both(const struct ban_pieces *a, const struct ban_pieces *b, struct ban_pieces *both)
{
	return join(a, b, false, both);
}
