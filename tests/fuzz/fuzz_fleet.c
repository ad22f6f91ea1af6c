/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fleet's records, as anybody who may write to the store can write them: they are refused, or a
 * member goes on from them without handing out more than the limit, and they are written as read.
 */
#include "fuzz.h"
#include "fleet/codec.h"

static void same_again(const struct fleet_record *record)
{
	static struct fleet_record again;
	char *text = fleet_write_record(record), why[FLEET_WHY];

	HOLDS(text);
	HOLDS(fleet_read_record(text, strlen(text), &again, why) == FLEET_WELL);
	HOLDS(!memcmp(record, &again, sizeof(again)));
	free(text);
}

/* One member's turn in one lane: it gives up, takes what is free, and time goes by. */
static void turn(struct fleet_record *record, struct fuzz_input *in)
{
	struct fleet_slot *slot = &record->slot[fuzz_take(in, 1) % record->slots];
	uint32_t lane = (uint32_t)fuzz_take(in, 1) % FLEET_LANES_MAX;
	uint64_t free_units = fleet_free(record, slot, lane), units;
	bool takes_part = !lane || slot->cell[lane].own;

	HOLDS(fleet_goal(record, slot, lane) <= FLEET_UNITS_MAX);
	HOLDS(fleet_surplus(record, slot, lane) <= slot->cell[lane].held);
	switch (fuzz_take(in, 1) % 5) {
	case 0:
		fleet_age(record, fuzz_magnitude(in));
		break;
	case 1:
		units = slot->cell[lane].held - slot->reserve; /* that it may give up */
		if (takes_part)
			fleet_lower(record, slot, lane,
				    slot->reserve + (units ? fuzz_magnitude(in) % units : 0),
				    slot->cell[lane].held);
		break;
	case 2:
		if (takes_part && free_units)
			fleet_raise(slot, lane, 1 + fuzz_magnitude(in) % free_units);
		break;
	case 3:
		fleet_end_session(record, slot);
		break;
	default:
		fleet_tidy(record);
	}
}

/* An item: why it is none, or it is written as it was read. */
static void item(const char *text)
{
	struct shared_word word, again;
	char *back;

	if (fleet_read_item(text, strlen(text), &word)) {
		HOLDS(word.value.by == SHARED_PLAIN && !word.value.text[0]);
		return;
	}
	HOLDS(fleet_fits(word.value.text) && (!word.lies_ns || word.lies_ns > word.left_ns));
	back = fleet_write_item(&word);
	HOLDS(back && !fleet_read_item(back, strlen(back), &again));
	HOLDS(!memcmp(&word, &again, sizeof(word)));
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fleet_token token = {1, "boot", 2};
	static struct fleet_record record;
	struct fuzz_input in = {data, size};
	char *text = fuzz_text(&in), why[FLEET_WHY] = "";
	uint64_t sum;

	item(text);
	(void)fleet_is_session_of(text, strlen(text), &token);
	if (fleet_read_record(text, strlen(text), &record, why) != FLEET_WELL) {
		HOLDS_TOLD(why);
		free(text);
		return 0;
	}
	same_again(&record);
	for (int i = 0; i < 20 && in.left && record.slots; i++) {
		uint64_t limit = fleet_limit(&record);

		sum = fleet_sum(&record, 0);
		turn(&record, &in);
		HOLDS(fleet_sum(&record, 0) <= (sum > limit ? sum : limit) || !limit);
	}
	free(text);
	return 0;
}
