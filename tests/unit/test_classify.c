/* SPDX-License-Identifier: GPL-2.0-only */
/* The bit vectors, against a matcher that asks one rule after the other. */
#include <stdbool.h>

#include "oracle.h"

#include "classified.h"

#define FIELDS (PACER_DIM_COUNT + 2)

typedef unsigned __int128 value_t;

/* A range of each field; `any` where the rule does not ask. */
struct range {
	int any;
	value_t low, high;
};

struct rule {
	struct range field[FIELDS];
	bool sure; /* what is not known does not match */
};

static struct pacer_policy policy;
static struct rule rules[PACER_RULES_MAX];
static uint32_t n_rules;

/* ---- the matcher that needs no thought ---- */

static int has_field(const struct pacer_packet *pkt, int field)
{
	switch (field) {
	case PACER_DIM_SADDR4:
	case PACER_DIM_DADDR4:
		return pkt->family == PACER_FAMILY_4;
	case PACER_DIM_SADDR6:
	case PACER_DIM_DADDR6:
		return pkt->family == PACER_FAMILY_6;
	}
	return 1;
}

static value_t address6(const __u32 w[4])
{
	return (value_t)w[0] << 96 | (value_t)w[1] << 64 | (value_t)w[2] << 32 | w[3];
}

static value_t value_of(const struct pacer_packet *pkt, int field)
{
	switch (field) {
	case PACER_DIM_SADDR4:
		return pkt->key[0];
	case PACER_DIM_DADDR4:
		return pkt->key[4];
	case PACER_DIM_SPORT:
		return pkt->key[8] >> 16;
	case PACER_DIM_DPORT:
		return pkt->key[8] & 0xffff;
	case PACER_DIM_PROTO:
		return pkt->proto;
	case PACER_DIM_VLAN:
		return pkt->vlan;
	case PACER_DIM_SADDR6:
		return address6(&pkt->key[0]);
	}
	return address6(&pkt->key[4]);
}

/* Whether a rule's range of this field does not exclude the packet, since nobody knows. */
static int is_unknown(const struct pacer_packet *pkt, int field)
{
	if (field == PACER_DIM_SPORT || field == PACER_DIM_DPORT)
		return pkt->ports == PACER_PORTS_UNKNOWN || pkt->ports == PACER_PORTS_ANY;
	return field == PACER_DIM_PROTO && pkt->ports == PACER_PORTS_ANY;
}

/* An address of one family is not matched by a rule that asks for the other's. */
static int rule_matches(const struct rule *r, const struct pacer_packet *pkt)
{
	int i;

	for (i = 0; i < (int)FIELDS; i++) {
		const struct range *f = &r->field[i];
		int port = i == PACER_DIM_SPORT || i == PACER_DIM_DPORT;

		if (f->any || (is_unknown(pkt, i) && !r->sure))
			continue;
		if (is_unknown(pkt, i))
			return 0;
		if (port && pkt->ports == PACER_PORTS_NONE)
			return 0;
		if (!has_field(pkt, i) || value_of(pkt, i) < f->low || value_of(pkt, i) > f->high)
			return 0;
	}
	return 1;
}

static struct pacer_rules naive(const struct pacer_packet *pkt)
{
	struct pacer_rules set = {{0}};
	uint32_t i;

	for (i = 0; i < n_rules; i++)
		if (rule_matches(&rules[i], pkt))
			set.word[i / 64] |= 1ull << i % 64;
	return set;
}

/* ---- a policy of the rules ---- */

static int by_value(const void *a, const void *b)
{
	const value_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t bounds_of(int field, value_t max, value_t *bound)
{
	uint32_t n = 0, kept = 0, i;

	for (i = 0; i < n_rules; i++) {
		const struct range *f = &rules[i].field[field];

		if (f->any)
			continue;
		if (f->low)
			bound[n++] = f->low;
		if (f->high != max)
			bound[n++] = f->high + 1;
	}
	qsort(bound, n, sizeof(*bound), by_value);
	for (i = 0; i < n; i++)
		if (!kept || bound[kept - 1] != bound[i])
			bound[kept++] = bound[i];
	return kept;
}

/* Rules that match a packet whose field has this value, as far as this field goes. */
static struct pacer_rules mask_at(int field, value_t value)
{
	int twin = field == PACER_DIM_SADDR4   ? PACER_DIM_SADDR6
		   : field == PACER_DIM_SADDR6 ? PACER_DIM_SADDR4
		   : field == PACER_DIM_DADDR4 ? PACER_DIM_DADDR6
		   : field == PACER_DIM_DADDR6 ? PACER_DIM_DADDR4
					       : field;
	struct pacer_rules mask = {{0}};
	uint32_t i;

	for (i = 0; i < n_rules; i++) {
		const struct range *f = &rules[i].field[field];
		int in = f->any || (value >= f->low && value <= f->high);

		if (in && (twin == field || rules[i].field[twin].any))
			mask.word[i / 64] |= 1ull << i % 64;
	}
	return mask;
}

static uint32_t top_of(uint32_t n)
{
	uint32_t top = n ? 1 : 0;

	while (top * 2 <= n && top)
		top *= 2;
	return top;
}

static void build_dim(struct pacer_dim *d, int field)
{
	value_t bound[PACER_BOUNDS_MAX];
	uint32_t n = bounds_of(field, UINT32_MAX, bound), i;

	for (i = 0; i <= PACER_BOUNDS_MAX; i++)
		d->bound[i] = i < n ? bound[i] : UINT32_MAX;
	for (i = 0; i <= PACER_BOUNDS_MAX; i++)
		d->mask[i] = i <= n ? mask_at(field, i ? bound[i - 1] : 0) : d->mask[n];
}

static void build_dim6(struct pacer_dim6 *d, int field)
{
	value_t bound[PACER_BOUNDS_MAX];
	uint32_t n = bounds_of(field, ~(value_t)0, bound), i;

	d->top = top_of(n);
	for (i = 0; i <= PACER_BOUNDS_MAX; i++) {
		d->hi[i] = i < n ? bound[i] >> 64 : UINT64_MAX;
		d->lo[i] = i < n ? bound[i] : UINT64_MAX;
		d->mask[i] = i <= n ? mask_at(field, i ? bound[i - 1] : 0) : d->mask[n];
	}
}

/* Fields that no rule asks for are left as garbage that matches nothing. */
static void build(void)
{
	uint32_t i, field;

	memset(&policy, 0, sizeof(policy));
	policy.rules = pacer_rules_first(n_rules);
	for (i = 0; i < n_rules; i++) {
		bool ports =
		    !rules[i].field[PACER_DIM_SPORT].any || !rules[i].field[PACER_DIM_DPORT].any;
		bool any = ports || !rules[i].field[PACER_DIM_PROTO].any;

		pacer_rules_put(&policy.ruled_out[PACER_PORTS_NONE], i, ports);
		pacer_rules_put(&policy.ruled_out[PACER_PORTS_UNKNOWN], i, rules[i].sure && ports);
		pacer_rules_put(&policy.ruled_out[PACER_PORTS_ANY], i, rules[i].sure && any);
	}
	for (field = 0; field < FIELDS; field++)
		for (i = 0; i < n_rules; i++)
			if (!rules[i].field[field].any)
				policy.dims |= 1u << field;
	if (policy.dims & (1u << PACER_DIM_SADDR4 | 1u << PACER_DIM_SADDR6))
		policy.dims |= 1u << PACER_DIM_SADDR4 | 1u << PACER_DIM_SADDR6;
	if (policy.dims & (1u << PACER_DIM_DADDR4 | 1u << PACER_DIM_DADDR6))
		policy.dims |= 1u << PACER_DIM_DADDR4 | 1u << PACER_DIM_DADDR6;
	for (field = 0; field < PACER_DIM_COUNT; field++)
		if (policy.dims & 1u << field)
			build_dim(&policy.dim[field], field);
	for (field = PACER_DIM_COUNT; field < FIELDS; field++)
		if (policy.dims & 1u << field)
			build_dim6(&policy.dim6[field - PACER_DIM_COUNT], field);
	pacer_classify_index(&policy);
}

/* ---- random rules, and packets at their edges ---- */

static value_t field_max(int field)
{
	static const uint32_t max[] = {UINT32_MAX, UINT32_MAX, 0xffff, 0xffff, 0xff, 4096};

	return field < PACER_DIM_COUNT ? max[field] : ~(value_t)0;
}

static value_t random_value(int field)
{
	value_t max = field_max(field), v = (value_t)draw() << 64 | draw();

	if (!(draw() % 8))
		return draw() & 1 ? max : 0;
	if (draw() & 1) /* small ones meet more often */
		v &= 0xff;
	return max + 1 ? v % (max + 1) : v;
}

/* A prefix, one value, or from one to another; of addresses too, for the bounds' sake. */
static struct range random_range(int field)
{
	value_t max = field_max(field), a = random_value(field), b = random_value(field), host;

	switch (draw() % 3) {
	case 0:
		return (struct range){0, a, a};
	case 1:
		return (struct range){0, a < b ? a : b, a < b ? b : a};
	}
	host = draw() % 128 ? max >> draw() % (field < PACER_DIM_COUNT ? 33 : 128) : max;
	return (struct range){0, a & ~host, (a | host) < max ? a | host : max};
}

static void random_rules(uint32_t n)
{
	static const int none4[] = {PACER_DIM_SADDR4, PACER_DIM_DADDR4};
	static const int none6[] = {PACER_DIM_SADDR6, PACER_DIM_DADDR6};
	uint32_t fields = draw(), wanted = between(1, 6), i, k;

	n_rules = n;
	for (i = 0; i < n; i++) {
		int family6 = draw() & 1;

		rules[i].sure = !(draw() % 4);
		for (k = 0; k < FIELDS; k++) {
			rules[i].field[k].any = 1;
			if (fields >> k & 1 && draw() % 6 < wanted / 2 + 1)
				rules[i].field[k] = random_range(k);
		}
		for (k = PACER_DIM_DPORT; n > 64 && i + 8 < n && k <= PACER_DIM_VLAN; k++) {
			value_t only = random_value(k); /* so that it is mostly a later one */

			rules[i].field[k] = (struct range){0, only, only};
		}
		for (k = 0; k < 2; k++) /* a rule asks for addresses of one family */
			rules[i].field[family6 ? none4[k] : none6[k]].any = 1;
	}
	build();
}

/* A value that is near one that a rule names. */
static value_t near(int field)
{
	const struct range *f = &rules[draw() % n_rules].field[field];
	value_t max = field_max(field), v;

	if (f->any || !(draw() % 4))
		return random_value(field);
	v = draw() & 1 ? f->low : f->high;
	if (draw() & 1)
		v += draw() & 1 ? 1 : -1;
	return v > max ? max : v;
}

static void random_packet(struct pacer_packet *p)
{
	int six = draw() & 1, field, i;
	value_t v;

	memset(p, 0, sizeof(*p));
	p->family = six ? PACER_FAMILY_6 : PACER_FAMILY_4;
	p->ports = draw() % 4;
	p->proto = near(PACER_DIM_PROTO);
	p->vlan = near(PACER_DIM_VLAN);
	p->key[8] = (uint32_t)near(PACER_DIM_SPORT) << 16 | (uint32_t)near(PACER_DIM_DPORT);
	p->key[9] = p->proto;
	for (i = 0; i < 2; i++) {
		field = six ? PACER_DIM_SADDR6 + i : PACER_DIM_SADDR4 + i;
		v = near(field);
		if (!six)
			p->key[4 * i] = v;
		else
			for (field = 0; field < 4; field++)
				p->key[4 * i + field] = v >> (96 - 32 * field);
	}
}

static void packet_is_classified(const struct pacer_packet *p, uint32_t *first)
{
	struct pacer_rules want = naive(p), got = classified(&policy, p);
	uint32_t i;

	assert_memory_equal(&got, &want, sizeof(got));
	for (i = 0; i < n_rules && !rule_matches(&rules[i], p); i++)
		;
	assert_int_equal(first_of(got), i < n_rules ? i : PACER_RULES_MAX);
	if (i == n_rules)
		return;
	first[i]++;
}

static void test_random_policies(void **unused)
{
	uint32_t first[PACER_RULES_MAX] = {0}, i, k, found = 0;
	struct pacer_packet p;

	(void)unused;
	oracle_seed(61);
	for (i = 0; i < 1500; i++) {
		random_rules(i % 3    ? between(1, 8)
			     : i % 2  ? 64
			     : i % 18 ? between(1, 64)
			     : i % 36 ? PACER_RULES_MAX
				      : between(65, PACER_RULES_MAX));
		for (k = 0; k < 150; k++) {
			random_packet(&p);
			packet_is_classified(&p, first);
		}
	}
	for (i = 0; i < PACER_RULES_MAX; i++)
		found += first[i] > 0;
	assert_true(found > 60); /* late rules are found first, too */
	for (i = found = 0; i < PACER_RULES_MAX; i++)
		found += i >= 64 ? first[i] : 0;
	assert_true(found > 500);
	assert_true(first[0] > 5000 && first[7] > 100);
}

/* ---- the edges ---- */

static void set_rule(uint32_t i, int field, value_t low, value_t high)
{
	uint32_t k;

	for (k = 0; k < FIELDS; k++)
		rules[i].field[k].any = 1;
	rules[i].sure = false;
	rules[i].field[field] = (struct range){0, low, high};
}

static void test_value_edges(void **unused)
{
	static const uint32_t values[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
	struct pacer_packet p = {.family = PACER_FAMILY_4};
	uint32_t low, high, i;

	(void)unused;
	n_rules = 1;
	for (low = 0; low < ARRAY(values); low++)
		for (high = low; high < ARRAY(values); high++) {
			set_rule(0, PACER_DIM_SADDR4, values[low], values[high]);
			build();
			for (i = 0; i < ARRAY(values); i++) {
				p.key[0] = values[i];
				assert_int_equal(pacer_classify(&policy, &p),
						 i >= low && i <= high);
			}
		}
}

static void test_value_edges6(void **unused)
{
	static const uint64_t w[] = {0, 1, 0xffffffff, 1ull << 32, 1ull << 63, ~1ull, ~0ull};
	uint32_t n = ARRAY(w) * ARRAY(w), low, high, i;
	struct pacer_packet p = {.family = PACER_FAMILY_6};

	(void)unused;
	n_rules = 1;
	for (low = 0; low < n; low++)
		for (high = low; high < n; high++) {
			set_rule(0, PACER_DIM_DADDR6,
				 (value_t)w[low / ARRAY(w)] << 64 | w[low % ARRAY(w)],
				 (value_t)w[high / ARRAY(w)] << 64 | w[high % ARRAY(w)]);
			build_dim6(&policy.dim6[1], PACER_DIM_DADDR6);
			for (i = 0; i < n; i++) {
				p.key[4] = w[i / ARRAY(w)] >> 32;
				p.key[5] = w[i / ARRAY(w)];
				p.key[6] = w[i % ARRAY(w)] >> 32;
				p.key[7] = w[i % ARRAY(w)];
				assert_int_equal(
				    pacer_dim6_rules(&policy.dim6[1], &p.key[4])->word[0],
				    i >= low && i <= high);
			}
		}
}

/* Bounds `apart` from one another, the last as large as `last`, padded; the intervals are numbered.
 */
static void number_intervals(struct pacer_dim *d, uint32_t n, uint32_t apart, uint32_t last)
{
	uint32_t i;

	for (i = 0; i <= PACER_BOUNDS_MAX; i++) {
		d->bound[i] = i + 1 < n ? apart * (i + 1) : i + 1 == n ? last : UINT32_MAX;
		d->mask[i].word[0] = i < n ? i : n;
	}
	pacer_dim_index(d, PACER_BUCKET_ADDR4);
}

static uint64_t interval_of(const struct pacer_dim *d, uint32_t value)
{
	return pacer_dim_rules(d, value, PACER_BUCKET_ADDR4)->word[0];
}

/* Every number of bounds there may be, in one bucket and in many: the interval of every value at an
 * edge.
 */
static void test_bounds(void **unused)
{
	static const uint32_t aparts[] = {10,	      0x00ffffff, 0x01000000, 0x01000001,
					  0x00800000, 0x00400000, 0x003fffff};
	static struct pacer_dim d;
	uint32_t n, i, k, a;

	(void)unused;
	for (a = 0; a < ARRAY(aparts); a++)
		for (n = 0; n <= PACER_BOUNDS_MAX && (n + 1ull) * aparts[a] <= 1ull << 32; n++) {
			/* the pad's value, or in its place */
			uint32_t last = n & 1 ? UINT32_MAX : aparts[a] * (n + 1) - 1;

			number_intervals(&d, n, aparts[a], last);
			for (i = 0; i < n; i++)
				for (k = 0; k < 2; k++)
					assert_int_equal(interval_of(&d, d.bound[i] - k),
							 i + 1 - k);
			assert_int_equal(interval_of(&d, UINT32_MAX), n);
			assert_int_equal(interval_of(&d, 0), 0);
		}
}

static uint64_t interval6_of(const struct pacer_dim6 *d, const __u32 addr[4])
{
	return pacer_dim6_rules(d, addr)->word[0];
}

static void test_bounds6(void **unused)
{
	static struct pacer_dim6 six;
	uint32_t n, i, k;

	(void)unused;
	for (n = 0; n <= PACER_BOUNDS_MAX; n++) {
		six.top = top_of(n);
		for (i = 0; i <= PACER_BOUNDS_MAX; i++) {
			six.mask[i].word[0] = i < n ? i : n;
			six.hi[i] = i < n ? 7 : UINT64_MAX;
			six.lo[i] = i < n ? 10 * (i + 1) : UINT64_MAX;
		}
		for (i = 0; i < n; i++)
			for (k = 0; k < 2; k++) {
				__u32 addr[4] = {0, 7, 0, 10 * (i + 1) - k};

				assert_int_equal(interval6_of(&six, addr), i + 1 - k);
			}
		assert_int_equal(interval6_of(&six, (__u32[4]){~0u, ~0u, ~0u, ~0u}), n);
		assert_int_equal(interval6_of(&six, (__u32[4]){0, 8, 0, 0}), n);
		assert_int_equal(interval6_of(&six, (__u32[4]){0, 6, ~0u, ~0u}), 0);
	}
}

static void test_lowest(void **unused)
{
	uint32_t i, k;

	(void)unused;
	oracle_seed(62);
	for (i = 0; i < 64; i++) {
		assert_int_equal(pacer_lowest(1ull << i), i);
		assert_int_equal(pacer_lowest(~0ull << i), i);
		for (k = 0; k < 1000; k++)
			assert_int_equal(pacer_lowest((draw() | 1) << i), i);
	}
}

/* Unknown ports fall under a rule on ports, whatever stands in their place; so does an unknown
 * protocol under a rule on protocols. What has no ports falls under no rule that asks for some, be
 * it for all of them.
 */
static void test_unknown(void **unused)
{
	static const struct {
		uint8_t proto;
		enum pacer_ports ports;
		uint64_t want;
	} rows[] = {
	    {17, PACER_PORTS_READ, 0x1c},   {17, PACER_PORTS_UNKNOWN, 0x1d},
	    {6, PACER_PORTS_UNKNOWN, 0x1a}, {0, PACER_PORTS_ANY, 0x1f},
	    {1, PACER_PORTS_NONE, 0x10},    {17, PACER_PORTS_NONE, 0x14},
	};
	struct pacer_packet p = {.family = PACER_FAMILY_4};
	size_t i;

	(void)unused;
	n_rules = 5;
	set_rule(0, PACER_DIM_DPORT, 53, 53);
	rules[0].field[PACER_DIM_PROTO] = (struct range){0, 17, 17};
	set_rule(1, PACER_DIM_SPORT, 1, 1);
	rules[1].field[PACER_DIM_PROTO] = (struct range){0, 6, 6};
	set_rule(2, PACER_DIM_PROTO, 17, 17);
	set_rule(3, PACER_DIM_DPORT, 0, 65535);
	set_rule(4, PACER_DIM_SADDR4, 0, UINT32_MAX);
	build();
	for (i = 0; i < ARRAY(rows); i++) {
		p.key[PACER_WORD_PORTS] = rows[i].ports == PACER_PORTS_NONE ? 0 : 9;
		p.proto = rows[i].proto;
		p.ports = rows[i].ports;
		assert_int_equal(pacer_classify(&policy, &p), rows[i].want);
	}
}

static void test_no_fields(void **unused)
{
	struct pacer_packet p = {.family = PACER_FAMILY_6};

	(void)unused;
	memset(&policy, 0, sizeof(policy));
	assert_int_equal(pacer_classify(&policy, &p), 0);
	policy.rules.word[0] = 0xf0;
	assert_int_equal(pacer_classify(&policy, &p), 0xf0);
	assert_int_equal(pacer_lowest(pacer_classify(&policy, &p)), 4);
	policy.rules = (struct pacer_rules){{0, 0, 0xf0, 1}};
	assert_int_equal(first_of(classified(&policy, &p)), 132);
}

/* A rule that is in the masks but not in force does not match. */
static void test_not_in_force(void **unused)
{
	struct pacer_packet p = {.family = PACER_FAMILY_4, .proto = 17};

	(void)unused;
	n_rules = 2;
	set_rule(0, PACER_DIM_PROTO, 17, 17);
	set_rule(1, PACER_DIM_PROTO, 0, 255);
	build();
	assert_int_equal(pacer_classify(&policy, &p), 3);
	policy.rules.word[0] = 2;
	assert_int_equal(pacer_classify(&policy, &p), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random_policies), cmocka_unit_test(test_value_edges),
	    cmocka_unit_test(test_value_edges6),    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_bounds6),	    cmocka_unit_test(test_lowest),
	    cmocka_unit_test(test_unknown),	    cmocka_unit_test(test_no_fields),
	    cmocka_unit_test(test_not_in_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
