/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/keymask.h"

#include "parse.h"

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
	uint32_t len4 = key->len4, len6 = key->len6;

	switch (key->kind) {
	case KEY_SRC:
		return PACER_KEY_ID(0, len4, len6, 0, 0);
	case KEY_DST:
		return PACER_KEY_ID(0, 0, 0, len4, len6);
	case KEY_SRC_DPORT:
		return PACER_KEY_ID(PACER_KEY_DPORT, len4, len6, 0, 0);
	case KEY_FLOW:
		return PACER_KEY_ID(PACER_KEY_SPORT | PACER_KEY_DPORT | PACER_KEY_PROTO, len4, len6,
				    len4, len6);
	case KEY_ALL:
		break;
	}
	return 0;
}

/* Its inverse. */
struct policy_key compile_key_of(uint32_t key_id)
{
	uint32_t src4 = key_id >> 4 & 63, src6 = key_id >> 10 & 255;
	uint32_t dst4 = key_id >> 18 & 63, dst6 = key_id >> 24;

	if (key_id & PACER_KEY_PROTO)
		return (struct policy_key){KEY_FLOW, src4, src6};
	if (key_id & PACER_KEY_DPORT)
		return (struct policy_key){KEY_SRC_DPORT, src4, src6};
	if (dst4 || dst6)
		return (struct policy_key){KEY_DST, dst4, dst6};
	if (src4 || src6)
		return (struct policy_key){KEY_SRC, src4, src6};
	return (struct policy_key){KEY_ALL, 32, 128};
}

/* A fragment's identification stands for both ports; dport alone keeps its lower half. */
void key_masks(const struct policy_key *key, struct pacer_limiter *t)
{
	bool src = key->kind == KEY_SRC || key->kind == KEY_SRC_DPORT || key->kind == KEY_FLOW;
	bool dst = key->kind == KEY_DST || key->kind == KEY_FLOW;
	uint32_t ports = 0, meta = 0;

	if (key->kind == KEY_FLOW) {
		ports = UINT32_MAX;
		meta = PACER_META_PROTO | PACER_META_MARKS;
	} else if (key->kind == KEY_SRC_DPORT) {
		ports = 0xffff;
		meta = PACER_META_MARKS;
	}
	t->mask4[0] = src ? mask_of(key->len4) : 0;
	t->mask4[1] = dst ? mask_of(key->len4) : 0;
	t->mask4[2] = ports;
	t->mask4[3] = meta;
	if (src)
		mask_address(&t->mask6[PACER_WORD_SADDR], key->len6);
	if (dst)
		mask_address(&t->mask6[PACER_WORD_DADDR], key->len6);
	t->mask6[PACER_WORD_PORTS] = ports;
	t->mask6[PACER_WORD_META] = meta;
	t->key_id = key_id(key);
	t->src_only = !dst && !ports && !meta;
}
