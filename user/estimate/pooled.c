/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/pooled.h"

#include <stdlib.h>

#include "estimate/estimator.h"

#define BISECTIONS 60
/* Those of C: the greatest share from both sides, three from each; and the unseen keys' share. */
#define EVENTS 9

/* A key, and how often each part has it, in all its samples and in the first half. */
struct entry {
	uint32_t part, item; /* its first sample */
	uint32_t times;
	uint8_t *all, *first;
};

struct part {
	uint64_t n;
	uint32_t k, number; /* number: as the caller counts */
	double weight;	    /* of each of its samples */
};

struct pooled {
	uint64_t n;
	uint32_t parts, samples, distinct;
	bool without, whole; /* whole: the samples are the window */
	double b;
	struct part *part; /* without empty ones */
	struct entry *entry;
	uint8_t *counts;
	struct pooled_key *key; /* room for pooled_keys() */
};

/* --- counting ------------------------------------------------------------------------------- */

struct drawn {
	uint64_t key;
	uint32_t part, item;
};

static int by_key(const void *a, const void *b)
{
	const struct drawn *x = a, *y = b;

	if (x->key != y->key)
		return (x->key > y->key) - (x->key < y->key);
	if (x->part != y->part)
		return (x->part > y->part) - (x->part < y->part);
	return (x->item > y->item) - (x->item < y->item);
}

static void take_parts(struct pooled *p, const struct pooled_part *part, uint32_t parts)
{
	p->whole = p->without;
	for (uint32_t c = 0; c < parts; c++) {
		if (!part[c].n || !part[c].k)
			continue;
		p->part[p->parts++] = (struct part){part[c].n, part[c].k, c, 0};
		p->n += part[c].n;
		p->samples += part[c].k;
		p->whole &= part[c].k == part[c].n;
	}
	for (uint32_t c = 0; c < p->parts; c++) {
		p->part[c].weight = (double)p->part[c].n / (double)p->n / p->part[c].k;
		p->b = fmax(p->b, p->part[c].weight);
	}
}

/* Sorts all samples by key. */
static struct drawn *sorted(const struct pooled *p, const struct pooled_part *part)
{
	struct drawn *d = calloc(p->samples + 1, sizeof(*d));
	uint32_t n = 0;

	for (uint32_t c = 0; d && c < p->parts; c++)
		for (uint32_t j = 0; j < p->part[c].k; j++)
			d[n++] = (struct drawn){part[p->part[c].number].key[j], c, j};
	if (d)
		qsort(d, n, sizeof(*d), by_key);
	return d;
}

static void count_one(struct pooled *p, const struct drawn *d, bool new)
{
	struct entry *e = &p->entry[p->distinct - !new];

	if (new) {
		uint8_t *at = p->counts + (size_t)p->distinct++ * 2 * p->parts;

		*e = (struct entry){p->part[d->part].number, d->item, 0, at, at + p->parts};
	}
	e->times++;
	e->all[d->part]++;
	e->first[d->part] += d->item < p->part[d->part].k / 2;
}

static bool count(struct pooled *p, const struct pooled_part *part)
{
	struct drawn *d = sorted(p, part);
	uint32_t distinct = 0;

	for (uint32_t i = 0; d && i < p->samples; i++)
		distinct += !i || d[i].key != d[i - 1].key;
	p->entry = calloc(distinct + 1, sizeof(*p->entry));
	p->counts = calloc((size_t)distinct + 1, 2 * (size_t)p->parts + 1);
	p->key = calloc(distinct + 1, sizeof(*p->key));
	for (uint32_t i = 0; d && p->entry && p->counts && i < p->samples; i++)
		count_one(p, &d[i], !i || d[i].key != d[i - 1].key);
	free(d);
	return d && p->entry && p->counts && p->key;
}

struct pooled *pooled_open(const struct pooled_part *part, uint32_t parts, bool without_replacement)
{
	struct pooled *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->without = without_replacement;
	p->part = calloc(parts + 1, sizeof(*p->part));
	if (p->part) {
		take_parts(p, part, parts);
		if (count(p, part))
			return p;
	}
	pooled_close(p);
	return NULL;
}

void pooled_close(struct pooled *p)
{
	if (!p)
		return;
	free(p->part);
	free(p->entry);
	free(p->counts);
	free(p->key);
	free(p);
}

/* --- the bound ------------------------------------------------------------------------------ */

/*
 * The sum of `terms` terms, each at most `most`, is `sum`. Returns the greatest mean of such a sum,
 * except with a chance of exp(-l). With `itself` the chance is exp(-l) times that mean.
 */
static double mean_high(double terms, double most, double sum, double l, bool itself)
{
	double all = terms * most, s, low, high = 1;

	if (!(all > 0))
		return 0;
	s = low = fmin(1, sum / all);
	for (int i = 0; i < BISECTIONS && s < 1; i++) {
		double m = (low + high) / 2;

		if (terms * estimate_divergence(s, m) < l - (itself ? log(m * all) : 0))
			low = m;
		else
			high = m;
	}
	return high * all;
}

/*
 * The least mean, likewise. With `itself` what is compared with l falls with the mean as long as
 * the mean is a term below the sum, and rises from there on to log(sum), which is less than l.
 */
static double mean_low(double terms, double most, double sum, double l, bool itself)
{
	double all = terms * most, s, low = 0, high;

	if (!(all > 0))
		return 0;
	s = high = fmin(1, sum / all);
	for (int i = 0; i < BISECTIONS; i++) {
		double m = (low + high) / 2;

		if (m > 0 && terms * estimate_divergence(s, m) < l - (itself ? log(m * all) : 0))
			high = m;
		else
			low = m;
	}
	return low * all;
}

/* --- coincidences --------------------------------------------------------------------------- */

/* m (m-1) .. (m-a+1), a factors */
static double falling(double m, uint32_t a)
{
	double product = 1;

	for (uint32_t i = 0; i < a; i++)
		product *= m - i;
	return product;
}

/* n^a (m)_a / (k)_a, in powers of the window's n. Without replacement it has (n)_a for n^a. */
static double factor(const struct pooled *p, const struct part *c, uint32_t m, uint32_t a)
{
	double n = (double)c->n, of = 1;

	if (m < a)
		return 0;
	for (uint32_t i = 0; i < a; i++)
		of *= (p->without ? n - i : n) / (double)p->n;
	return of * falling(m, a) / falling(c->k, a);
}

/* S(a, j): the number of ways to divide a set of a into j parts. */
static double stirling(uint32_t a, uint32_t j)
{
	double sum = 0, sign = 1, choose = 1, below = falling(j, j);

	for (uint32_t i = 0; i <= j; i++) {
		sum += sign * choose * pow(j - i, a);
		sign = -sign;
		choose = choose * (j - i) / (i + 1);
	}
	return sum / below;
}

/* The coefficients of G_c, in powers of n. */
static void generate(const struct pooled *p, const struct part *c, uint32_t m, uint32_t moment,
		     double g[POOLED_MOMENT_MAX + 1])
{
	for (uint32_t a = 0; a <= moment; a++) {
		g[a] = p->without ? 0 : factor(p, c, m, a);
		for (uint32_t j = 0; p->without && j <= a; j++)
			g[a] += stirling(a, j) * factor(p, c, m, j) / pow((double)p->n, a - j);
		g[a] /= falling(a, a);
	}
}

static void multiply(double product[POOLED_MOMENT_MAX + 1], const double g[POOLED_MOMENT_MAX + 1],
		     uint32_t moment)
{
	for (uint32_t a = moment + 1; a-- > 0;) {
		double sum = 0;

		for (uint32_t i = 0; i <= a; i++)
			sum += product[i] * g[a - i];
		product[a] = sum;
	}
}

/* F_moment / n^moment. NAN if a part has too few samples. */
static double coincidence(const struct pooled *p, uint32_t moment)
{
	double sum = 0;

	for (uint32_t c = 0; c < p->parts; c++)
		if (p->part[c].k < moment && !(p->without && p->part[c].k == p->part[c].n))
			return NAN;
	for (uint32_t i = 0; i < p->distinct; i++) {
		double product[POOLED_MOMENT_MAX + 1] = {1}, g[POOLED_MOMENT_MAX + 1];

		for (uint32_t c = 0; c < p->parts; c++) {
			if (!p->entry[i].all[c])
				continue;
			generate(p, &p->part[c], p->entry[i].all[c], moment, g);
			multiply(product, g, moment);
		}
		sum += product[moment];
	}
	return sum * falling(moment, moment);
}

/* --- the sums of p^2 and of what is unseen -------------------------------------------------- */

/* The two halves of each part. One is fixed, and the other one tells about it. */
struct halves {
	bool second; /* the second half is the fixed one */
	double told, most, blind;
};

static uint32_t fixed_k(const struct part *c, bool second)
{
	return second ? c->k - c->k / 2 : c->k / 2;
}

/* The share of all packets that the other half stands for. */
static double rest(const struct pooled *p, const struct part *c, bool second)
{
	return (double)(c->n - (p->without ? fixed_k(c, second) : 0)) / (double)p->n;
}

static struct halves halve(const struct pooled *p, bool second)
{
	struct halves h = {.second = second};

	for (uint32_t c = 0; c < p->parts; c++) {
		uint32_t k = p->part[c].k - fixed_k(&p->part[c], second);

		h.told += k;
		if (k)
			h.most = fmax(h.most, rest(p, &p->part[c], second) / k);
		else
			h.blind += rest(p, &p->part[c], second);
	}
	return h;
}

/* The weights of a key: of its fixed samples, by the other samples, and what is known exactly. */
struct sides {
	double fixed, other, known;
};

static struct sides sides_of(const struct pooled *p, const struct entry *e, bool second)
{
	struct sides s = {0};

	for (uint32_t c = 0; c < p->parts; c++) {
		const struct part *part = &p->part[c];
		uint32_t fixed = second ? e->all[c] - e->first[c] : e->first[c];
		uint32_t k = part->k - fixed_k(part, second);

		s.fixed += fixed * part->weight;
		if (k)
			s.other += (e->all[c] - fixed) * rest(p, part, second) / k;
		if (p->without)
			s.known += fixed / (double)p->n;
	}
	return s;
}

/* Bounds the sum of q p over the fixed half. */
static struct pooled_value half_square(const struct pooled *p, bool second, double l)
{
	struct halves h = halve(p, second);
	double sum = 0, known = 0, top = 0;

	for (uint32_t i = 0; i < p->distinct; i++) {
		struct sides s = sides_of(p, &p->entry[i], second);

		sum += s.fixed * s.other;
		known += s.fixed * s.known;
		top = fmax(top, s.fixed);
	}
	return (struct pooled_value){
	    sum + known, known + mean_low(h.told, h.most * top, sum, l, false),
	    known + mean_high(h.told, h.most * top, sum, l, false) + h.blind * top};
}

static double greatest(const struct pooled *p)
{
	double most = 0;

	for (uint32_t i = 0; i < p->distinct; i++) {
		double q = 0;

		for (uint32_t c = 0; c < p->parts; c++)
			q += p->entry[i].all[c] * p->part[c].weight;
		most = fmax(most, q);
	}
	return most;
}

/* The greatest share, and C. */
struct squares {
	double most;
	struct pooled_value c;
};

static struct squares squares_of(const struct pooled *p, double l)
{
	struct pooled_value first = half_square(p, false, l), second = half_square(p, true, l);
	double q = greatest(p), k = p->samples, low, top;
	struct squares s = {.most = mean_high(k, p->b, q, l, false)};

	s.most = fmin(1, s.most);
	top = mean_low(k, p->b, q, l, true);
	low = mean_low(k, p->b * s.most, first.low + second.low, l, false);
	s.c.high = mean_high(k, p->b * s.most, first.high + second.high, l, false);
	s.c.high = fmax(fmin(s.c.high, s.most), 1 / (double)p->n);
	s.c.low = fmin(fmax(fmax(low, top * top), 1 / (double)p->n), s.c.high);
	return s;
}

static double unseen_high(const struct pooled *p, double l)
{
	struct halves h = halve(p, false);
	double sum = 0;

	for (uint32_t i = 0; i < p->distinct; i++) {
		struct sides s = sides_of(p, &p->entry[i], false);

		sum += s.fixed > 0 ? 0 : s.other;
	}
	return fmin(1, mean_high(h.told, h.most, sum, l, false) + h.blind);
}

/* --- entropy -------------------------------------------------------------------------------- */

static uint32_t first_keys(const struct pooled *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->distinct; i++)
		n += sides_of(p, &p->entry[i], false).fixed > 0;
	return n;
}

/* The bound rises with the unseen share g up to g = 1 - d / (e n). */
static double entropy_high(const struct pooled *p, double l)
{
	double n = (double)p->n, d = first_keys(p), g = unseen_high(p, l);

	if (!(d > 0))
		return log2(n);
	g = fmin(g, 1 - d / (M_E * n));
	return fmin(log2(n), (1 - g) * log2(d / (1 - g)) + g * log2(n));
}

static double entropy_whole(const struct pooled *p)
{
	double h = 0;

	for (uint32_t i = 0; i < p->distinct; i++) {
		double share = p->entry[i].times / (double)p->n;

		h -= share * log2(share);
	}
	return h;
}

/* --- what is there once --------------------------------------------------------------------- */

static struct pooled_value single(const struct pooled *p, double delta)
{
	struct pooled_value v = {0};
	double moved = 0, half;

	for (uint32_t c = 0; c < p->parts; c++) {
		double by = p->part[c].weight + p->b;

		moved += p->part[c].k * by * by;
		for (uint32_t i = 0; i < p->distinct; i++)
			if (p->entry[i].times == 1 && p->entry[i].all[c])
				v.value += p->part[c].weight;
	}
	half = p->whole ? 0 : sqrt(log(2 / delta) / 2 * moved);
	v.low = fmax(0, v.value - half);
	v.high = fmin(1, v.value + half);
	return v;
}

/* --- all of it ------------------------------------------------------------------------------ */

static struct pooled_value exactly(double x)
{
	return (struct pooled_value){x, x, x};
}

static struct pooled_value moment_of(const struct pooled *p, const struct squares *s,
				     uint32_t moment)
{
	double n = pow((double)p->n, moment), share = coincidence(p, moment);
	struct pooled_value v = {0};

	if (moment == 1 || p->whole)
		return exactly(moment == 1 ? (double)p->n : n * share);
	v.low = n * pow(s->c.low, moment - 1);
	v.high = n * pow(s->most, moment - 2) * s->c.high;
	v.value = n * share;
	return v;
}

static struct pooled_value h2_of(const struct pooled *p, const struct squares *s)
{
	struct pooled_value v = {.low = log2(1 / s->c.high), .high = log2(1 / s->c.low)};
	double share = coincidence(p, 2);

	if (p->whole)
		return exactly(log2(1 / share));
	v.value = share > 0 ? log2(1 / share) : NAN;
	return v;
}

struct pooled_values pooled_read(const struct pooled *p, uint32_t moment, double delta)
{
	struct pooled_values v = {.n = p->n, .samples = p->samples, .distinct = p->distinct};
	double l = log(EVENTS / delta);
	struct squares s;

	if (!p->n)
		return v;
	s = squares_of(p, l);
	v.worth = 1 / p->b;
	v.moment = moment_of(p, &s, moment);
	v.h2 = h2_of(p, &s);
	v.entropy = (struct pooled_value){NAN, v.h2.low, fmax(v.h2.low, entropy_high(p, l))};
	if (p->whole)
		v.entropy = exactly(entropy_whole(p));
	v.single = single(p, delta);
	return v;
}

/* --- keys ----------------------------------------------------------------------------------- */

static struct pooled_key key_of(const struct pooled *p, const struct entry *e, double delta)
{
	struct pooled_key key = {.part = e->part, .item = e->item, .times = e->times};
	double q = 0, l = log(2 / delta);

	for (uint32_t c = 0; c < p->parts; c++)
		q += e->all[c] * p->part[c].weight;
	key.share = exactly(q);
	if (p->whole)
		return key;
	key.share.low = fmax(mean_low(p->samples, p->b, q, l, true), 1 / (double)p->n);
	key.share.high = fmin(1, mean_high(p->samples, p->b, q, l, true));
	return key;
}

static int most_first(const void *a, const void *b)
{
	const struct pooled_key *x = a, *y = b;

	if (x->share.value != y->share.value)
		return x->share.value < y->share.value ? 1 : -1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

uint32_t pooled_keys(const struct pooled *p, double delta, struct pooled_key *out, uint32_t most)
{
	uint32_t n = p->distinct < most ? p->distinct : most;

	for (uint32_t i = 0; i < p->distinct; i++)
		p->key[i] = key_of(p, &p->entry[i], delta);
	qsort(p->key, p->distinct, sizeof(*p->key), most_first);
	for (uint32_t i = 0; i < n; i++)
		out[i] = p->key[i];
	return n;
}
