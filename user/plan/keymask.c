/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/keymask.h"

#include "parse.h"
#include "plan/plan.h"

static uint32_t mask_of(unsigned int len)
{
	return len ? UINT32_MAX << (32 - len) : 0;
}

static void mask_address(uint32_t mask6[4], uint8_t len6)
{
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int bits = len6 > 32 * i ? len6 - 32 * i : 0;

		mask6[i] = mask_of(bits > 32 ? 32 : bits);
	}
}

static uint32_t key_id(const struct policy_key *key)
{
	uint32_t parts = (key->parts & KEY_PART_PROTO ? PACER_KEY_PROTO : 0) |
			 (key->parts & KEY_PART_SPORT ? PACER_KEY_SPORT : 0) |
			 (key->parts & KEY_PART_DPORT ? PACER_KEY_DPORT : 0) |
			 (key->parts & KEY_PART_VLAN ? PACER_KEY_VLAN : 0) |
			 (key->parts & KEY_PART_TTL ? PACER_KEY_TTL : 0);
	bool src = key->parts & KEY_PART_SRC_VALUE, dst = key->parts & KEY_PART_DST_VALUE;

	return PACER_KEY_ID(parts, src ? PACER_KEY_VALUE : key->src4, key->src6,
			    dst ? PACER_KEY_VALUE : key->dst4, key->dst6);
}

/* What a digit says of an address. Returns whether its value stands in its place. */
static bool lengths_of(uint32_t digit, uint8_t *len4, uint8_t *len6)
{
	bool value = digit / PACER_KEY_LEN6 == PACER_KEY_VALUE;

	*len4 = value ? 0 : digit / PACER_KEY_LEN6;
	*len6 = value ? 0 : digit % PACER_KEY_LEN6;
	return value;
}

/* Its inverse, but for the names of sets. */
struct policy_key compile_key_of(uint32_t key_id)
{
	uint32_t lengths = key_id >> PACER_KEY_PARTS;
	struct policy_key key = {0};

	if (lengths_of(lengths % PACER_KEY_ONE, &key.dst4, &key.dst6))
		key.parts |= KEY_PART_DST_VALUE;
	if (lengths_of(lengths / PACER_KEY_ONE, &key.src4, &key.src6))
		key.parts |= KEY_PART_SRC_VALUE;
	key.parts |= (key.src4 || key.src6 ? KEY_PART_SRC : 0) |
		     (key.dst4 || key.dst6 ? KEY_PART_DST : 0) |
		     (key_id & PACER_KEY_PROTO ? KEY_PART_PROTO : 0) |
		     (key_id & PACER_KEY_SPORT ? KEY_PART_SPORT : 0) |
		     (key_id & PACER_KEY_DPORT ? KEY_PART_DPORT : 0) |
		     (key_id & PACER_KEY_VLAN ? KEY_PART_VLAN : 0) |
		     (key_id & PACER_KEY_TTL ? KEY_PART_TTL : 0);
	return key;
}

/* A fragment's identification stands for both ports; one port alone keeps half of it. */
void key_masks(const struct policy_key *key, struct pacer_limiter *t)
{
	uint32_t ports = (key->parts & KEY_PART_SPORT ? 0xffff0000 : 0) |
			 (key->parts & KEY_PART_DPORT ? 0xffff : 0);
	uint32_t meta = (ports ? PACER_META_MARKS : 0) |
			(key->parts & KEY_PART_PROTO ? PACER_META_PROTO : 0) |
			(key->parts & KEY_PART_VLAN ? PACER_META_VLAN : 0) |
			(key->parts & KEY_PART_TTL ? PACER_META_TTL : 0);

	t->mask4[0] = mask_of(key->src4);
	t->mask4[1] = mask_of(key->dst4);
	t->mask4[2] = ports;
	t->mask4[3] = meta;
	mask_address(&t->mask6[PACER_WORD_SADDR], key->src6);
	mask_address(&t->mask6[PACER_WORD_DADDR], key->dst6);
	t->mask6[PACER_WORD_PORTS] = ports;
	t->mask6[PACER_WORD_META] = meta;
	t->key_id = key_id(key);
	t->src_only = !(key->parts & ~KEY_PART_SRC);
	for (int i = 0; i < 2; i++) {
		t->value[i] = 0; /* the rule says which of its values it is */
		t->value_set[i] = key->set[i][0] ? compile_name_id(key->set[i]) : 0;
	}
	/* A value is one word of both families. */
	if (key->parts & KEY_PART_SRC_VALUE)
		t->mask4[0] = t->mask6[PACER_WORD_SADDR] = UINT32_MAX;
	if (key->parts & KEY_PART_DST_VALUE)
		t->mask4[1] = t->mask6[PACER_WORD_DADDR] = UINT32_MAX;
}

static bool counts_by(const struct pacer_policy *bin, uint32_t set)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &bin->rule[r].limiter[k];

			if (t->value_set[0] == set || t->value_set[1] == set)
				return true;
		}
	return false;
}

int keymask_lost_values(const struct policy *policy, const struct pacer_policy *bin)
{
	for (size_t i = 0; i < policy->n_sets; i++)
		if (!policy_set_named(policy, &policy->set[i]) &&
		    counts_by(bin, compile_name_id(policy->set[i].name)))
			return (int)i;
	return -1;
}

void keymask_keep_values(struct policy *policy, const struct pacer_policy *bin)
{
	for (size_t i = 0; i < policy->n_sets; i++)
		policy->set[i].counted =
		    policy->set[i].value && counts_by(bin, compile_name_id(policy->set[i].name));
}
