/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules to bit vectors: for each field, which rules each of its intervals matches. */
#include "plan/classifier.h"

#include <stdlib.h>
#include <string.h>

#include "classify.h"

typedef unsigned __int128 wide;

struct interval {
	wide low, high;
};

struct field {
	const char *name;
	wide max;
	size_t n[PACER_RULES_MAX]; /* of intervals */
	bool any[PACER_RULES_MAX]; /* the rule does not look at the field */
	struct interval at[PACER_RULES_MAX][POLICY_LIST_MAX];
};

struct field_out {
	wide bound[PACER_BOUNDS_MAX];
	struct pacer_rules mask[PACER_BOUNDS_MAX + 1];
	size_t n;
	bool used;
};

static int compare_wide(const void *a, const void *b)
{
	wide x = *(const wide *)a, y = *(const wide *)b;

	return x < y ? -1 : x > y;
}

static struct pacer_rules rules_at(const struct field *f, size_t n_rules, wide value)
{
	struct pacer_rules mask = {{0}};

	for (size_t r = 0; r < n_rules; r++) {
		bool hit = f->any[r];

		for (size_t i = 0; i < f->n[r] && !hit; i++)
			hit = f->at[r][i].low <= value && value <= f->at[r][i].high;
		pacer_rules_put(&mask, r, hit);
	}
	return mask;
}

static int cut(const struct field *f, const struct policy *policy, struct field_out *out,
	       struct policy_error *error)
{
	static wide bounds[2 * PACER_RULES_MAX * POLICY_LIST_MAX];
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	for (size_t r = 0; r < policy->n_rules; r++) {
		out->used |= !f->any[r];
		for (size_t i = 0; i < f->n[r]; i++) {
			if (f->at[r][i].low)
				bounds[n++] = f->at[r][i].low;
			if (f->at[r][i].high < f->max)
				bounds[n++] = f->at[r][i].high + 1;
		}
	}
	qsort(bounds, n, sizeof(*bounds), compare_wide);
	out->mask[0] = rules_at(f, policy->n_rules, 0);
	for (size_t i = 0; i < n; i++) {
		struct pacer_rules mask;

		if (i && bounds[i] == bounds[i - 1])
			continue;
		mask = rules_at(f, policy->n_rules, bounds[i]);
		if (pacer_rules_same(&mask, &out->mask[out->n]))
			continue;
		if (out->n == PACER_BOUNDS_MAX)
			return policy_fail(
			    error, 0,
			    "rules: their %s cut the values into more than %u ranges: use "
			    "fewer or adjacent ones",
			    f->name, PACER_BOUNDS_MAX + 1);
		out->bound[out->n++] = bounds[i];
		out->mask[out->n] = mask;
	}
	for (size_t i = out->n + 1; i <= PACER_BOUNDS_MAX; i++)
		out->mask[i] = out->mask[out->n];
	return 0;
}

static uint32_t top_of(size_t n)
{
	uint32_t top = 1;

	while (2 * top <= n)
		top *= 2;
	return n ? top : 0;
}

static void put_dim(const struct field_out *o, struct pacer_dim *d)
{
	memcpy(d->mask, o->mask, sizeof(d->mask));
	for (size_t i = 0; i <= PACER_BOUNDS_MAX; i++)
		d->bound[i] = i < o->n ? (uint32_t)o->bound[i] : UINT32_MAX;
}

static void put_dim6(const struct field_out *o, struct pacer_dim6 *d)
{
	memcpy(d->mask, o->mask, sizeof(d->mask));
	for (size_t i = 0; i <= PACER_BOUNDS_MAX; i++) {
		d->hi[i] = i < o->n ? (uint64_t)(o->bound[i] >> 64) : UINT64_MAX;
		d->lo[i] = i < o->n ? (uint64_t)o->bound[i] : UINT64_MAX;
	}
	d->top = top_of(o->n);
}

static wide prefix_address(const struct prefix *p)
{
	size_t bytes = p->family == 4 ? 4 : 16;
	wide value = 0;

	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | p->addr[i];
	return value;
}

/* Has the rule sets in src, or dst, that an address may be in? */
static bool has_sets(const struct policy_match *m, bool source)
{
	for (size_t i = 0; i < m->n_sets; i++)
		if (m->set[i].dst != source && !m->set[i].not )
			return true;
	return false;
}

static void prefixes_of(struct field *f, const struct policy *policy, bool source, int family)
{
	unsigned int bits = family == 4 ? 32 : 128;

	f->max = family == 4 ? (wide)UINT32_MAX : ~(wide)0;
	f->name = source ? "source prefixes" : "destination prefixes";
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;
		const struct prefix *list = source ? m->src : m->dst;
		size_t n = source ? m->n_src : m->n_dst;

		f->any[r] = !n && !has_sets(m, source);
		f->n[r] = 0;
		for (size_t i = 0; i < n; i++) {
			wide low = prefix_address(&list[i]);
			wide host = list[i].len >= bits ? 0 : f->max >> list[i].len;

			if (list[i].family == family)
				f->at[r][f->n[r]++] = (struct interval){low, low | host};
		}
	}
}

/* Where a match has its ranges of each field. */
#define RANGES(field) offsetof(struct policy_match, field), offsetof(struct policy_match, n_##field)

static const struct {
	const char *name;
	uint32_t max;
	size_t list, n;
} ranges[PACER_DIM_COUNT] = {
    [PACER_DIM_SPORT] = {"source ports", 65535, RANGES(sport)},
    [PACER_DIM_DPORT] = {"destination ports", 65535, RANGES(dport)},
    [PACER_DIM_PROTO] = {"protocols", 255, RANGES(proto)},
    [PACER_DIM_VLAN] = {"VLANs", PACER_VLAN_NONE, RANGES(vlan)},
};

static void ranges_of(struct field *f, const struct policy *policy, enum pacer_dim_id dim)
{
	f->max = ranges[dim].max;
	f->name = ranges[dim].name;
	for (size_t r = 0; r < policy->n_rules; r++) {
		const char *m = (const char *)&policy->rule[r].match;
		const struct range *list = (const void *)(m + ranges[dim].list);
		size_t n = *(const size_t *)(const void *)(m + ranges[dim].n);

		f->any[r] = !n;
		f->n[r] = n;
		for (size_t i = 0; i < n; i++)
			f->at[r][i] = (struct interval){list[i].low, list[i].high};
	}
}

/* Those of a set are side by side. */
static void number_values(const struct policy *policy, struct pacer_policy *bin)
{
	uint32_t n = 0;

	for (size_t i = 0; i < policy->n_sets; i++) {
		bin->first_value[i] = (uint8_t)n;
		for (size_t k = 0; k < policy->n_set_values; k++)
			bin->n_values[i] += policy->set_value[k].set == i;
		n += bin->n_values[i];
	}
}

static void put_allowed(const struct policy *policy, struct pacer_policy *bin)
{
	for (size_t i = 0; i < policy->n_allow_sets; i++) {
		const struct policy_set_use *use = &policy->allow_set[i];

		if (use->number)
			bin->allow_values |= 1ull << (bin->first_value[use->set] + use->number - 1);
		else
			bin->allow_sets |= 1u << use->set;
		bin->set_asks[use->set] |= PACER_ASKS_SRC;
		bin->dims |= PACER_DIMS_SETS;
	}
}

/* pass: the rule lets through what it matches, for which a set that cannot be read is no ground. */
static void put_use(const struct policy_set_use *use, size_t r, bool pass, struct pacer_policy *bin)
{
	struct pacer_set_use *to =
	    use->number ? &bin->set_value[bin->first_value[use->set] + use->number - 1][r / 64]
			: &bin->set[use->set][r / 64];
	struct pacer_set_use *unknown = &bin->set_unknown[use->set][r / 64];
	__u64 rule = 1ull << r % 64;

	if (use->dst) {
		*(use->not ? &to->dst_not : &to->dst_in) |= rule;
		unknown->dst_in |= use->not || pass ? 0 : rule;
		unknown->dst_not |= use->not &&pass ? rule : 0;
	} else {
		*(use->not ? &to->src_not : &to->src_in) |= rule;
		unknown->src_in |= use->not || pass ? 0 : rule;
		unknown->src_not |= use->not &&pass ? rule : 0;
	}
	bin->set_asks[use->set] |= use->dst ? PACER_ASKS_DST : PACER_ASKS_SRC;
	bin->dims |= PACER_DIMS_SETS;
}

static void put_sets(const struct policy *policy, struct pacer_policy *bin)
{
	bin->sets = policy->n_sets;
	number_values(policy, bin);
	put_allowed(policy, bin);
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t i = 0; i < policy->rule[r].match.n_sets; i++)
			put_use(&policy->rule[r].match.set[i], r, policy_passes(&policy->rule[r]),
				bin);
}

/* What is not known of a packet is no ground to pass it by no limit. */
static void put_ruled_out(const struct policy *policy, struct pacer_policy *bin)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;
		bool ports = m->n_sport || m->n_dport, pass = policy_passes(&policy->rule[r]);

		pacer_rules_put(&bin->ruled_out[PACER_PORTS_NONE], r, ports);
		pacer_rules_put(&bin->ruled_out[PACER_PORTS_UNKNOWN], r, pass && ports);
		pacer_rules_put(&bin->ruled_out[PACER_PORTS_ANY], r, pass && (ports || m->n_proto));
	}
}

int compile_classifier(const struct policy *policy, struct pacer_policy *bin,
		       struct policy_error *error)
{
	static struct field f;
	static struct field_out o;

	bin->rules = pacer_rules_first(policy->n_rules);
	bin->dims |= policy->n_rules > 64 ? PACER_DIMS_MANY : 0;
	put_ruled_out(policy, bin);
	for (int dim = 0; dim < PACER_DIM_COUNT + 2; dim++) {
		memset(&f, 0, sizeof(f));
		if (dim == PACER_DIM_SADDR4 || dim == PACER_DIM_DADDR4)
			prefixes_of(&f, policy, dim == PACER_DIM_SADDR4, 4);
		else if (dim >= PACER_DIM_COUNT)
			prefixes_of(&f, policy, dim == PACER_DIM_SADDR6, 6);
		else
			ranges_of(&f, policy, dim);
		if (cut(&f, policy, &o, error))
			return -1;
		bin->dims |= (uint32_t)o.used << dim;
		if (dim < PACER_DIM_COUNT)
			put_dim(&o, &bin->dim[dim]);
		else
			put_dim6(&o, &bin->dim6[dim - PACER_DIM_COUNT]);
	}
	put_sets(policy, bin);
	pacer_classify_index(bin);
	return 0;
}
