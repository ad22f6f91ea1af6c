/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/codec.h"

#include <stdio.h>
#include <string.h>

#include "config/text.h"
#include "fleet/json.h"

/* All of it, or nothing: a record that lacks a member would forget its units. */
static bool append(json_t **array, json_t *value)
{
	if (!json_array_append_new(*array, value))
		return true;
	json_decref(*array);
	*array = NULL;
	return false;
}

static json_t *cell_json(const struct fleet_cell *c, uint32_t lane)
{
	json_t *cell = json_pack("[i,I,I,I,I]", (int)lane, (json_int_t)c->held, (json_int_t)c->cool,
				 (json_int_t)c->left_ns, (json_int_t)c->want);

	if (cell && c->since)
		append(&cell, json_integer((json_int_t)c->since));
	return cell;
}

static json_t *slot_json(const struct fleet_slot *slot)
{
	json_t *member = json_pack("[I,I,I,I]", (json_int_t)slot->id, (json_int_t)slot->session,
				   (json_int_t)slot->limit, (json_int_t)slot->reserve);

	if (member && slot->due)
		append(&member, json_integer((json_int_t)slot->due));
	for (uint32_t k = 0; member && k < FLEET_LANES_MAX; k++)
		if (!k || slot->cell[k].own)
			append(&member, cell_json(&slot->cell[k], k));
	return member;
}

char *fleet_write_record(const struct fleet_record *record)
{
	json_t *members = json_array(), *keys = json_array(), *all;
	char *text;

	for (uint32_t k = 1; keys && k < FLEET_LANES_MAX; k++)
		if (record->key[k][0])
			append(&keys, json_pack("[i,s]", (int)k, record->key[k]));
	for (uint32_t i = 0; members && i < record->slots; i++)
		append(&members, slot_json(&record->slot[i]));
	all = json_pack("{s:s,s:i,s:I,s:o,s:o}", "is", "limit", "v", FLEET_VERSION, "memory_ns",
			(json_int_t)record->memory_ns, "keys", keys, "members", members);
	text = all ? json_whole(all, JSON_COMPACT) : NULL;
	json_decref(all);
	return text;
}

/* An integer that is there and not negative. */
static bool is_number(json_t *value, uint64_t *to)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*to = (uint64_t)json_integer_value(value);
	return true;
}

static bool number(json_t *json, const char *field, uint64_t *to)
{
	return is_number(json_object_get(json, field), to);
}

static bool number_at(json_t *json, size_t i, uint64_t *to)
{
	return is_number(json_array_get(json, i), to);
}

static bool read_cell(json_t *json, struct fleet_slot *slot)
{
	struct fleet_cell c = {0};
	size_t size = json_array_size(json);
	uint64_t lane;

	if ((size != 5 && size != 6) || !number_at(json, 0, &lane) || lane >= FLEET_LANES_MAX ||
	    slot->cell[lane].own || !number_at(json, 1, &c.held) || !number_at(json, 2, &c.cool) ||
	    !number_at(json, 3, &c.left_ns) || !number_at(json, 4, &c.want) ||
	    (size == 6 && !number_at(json, 5, &c.since)))
		return false;
	c.own = true; /* lane 0 too, so that none comes twice */
	slot->cell[lane] = c;
	return true;
}

static bool read_slot(json_t *json, struct fleet_slot *slot)
{
	size_t cells = 4;

	memset(slot, 0, sizeof(*slot));
	if (!number_at(json, 0, &slot->id) || !number_at(json, 1, &slot->session) ||
	    !number_at(json, 2, &slot->limit) || !number_at(json, 3, &slot->reserve))
		return false;
	if (number_at(json, cells, &slot->due))
		cells++;
	for (size_t i = cells; i < json_array_size(json); i++)
		if (!read_cell(json_array_get(json, i), slot))
			return false;
	if (!slot->cell[0].own)
		return false;
	slot->cell[0].own = false;
	return true;
}

static bool read_key(json_t *json, struct fleet_record *record)
{
	const char *key = json_string_value(json_array_get(json, 1));
	uint64_t lane;

	if (json_array_size(json) != 2 || !key || !*key || strlen(key) >= FLEET_KEY_TEXT ||
	    !number_at(json, 0, &lane) || !lane || lane >= FLEET_LANES_MAX || record->key[lane][0])
		return false;
	snprintf(record->key[lane], FLEET_KEY_TEXT, "%s", key);
	return true;
}

static bool read_parts(json_t *all, struct fleet_record *record)
{
	json_t *members = json_object_get(all, "members"), *keys = json_object_get(all, "keys");
	json_t *part;
	size_t i;

	if (json_object_size(all) != 5 || !number(all, "memory_ns", &record->memory_ns) ||
	    !json_is_array(members) || !json_is_array(keys) ||
	    json_array_size(members) > FLEET_MEMBERS_MAX)
		return false;
	json_array_foreach(keys, i, part)
	{
		if (!read_key(part, record))
			return false;
	}
	json_array_foreach(members, i, part)
	{
		if (!read_slot(part, &record->slot[record->slots++]))
			return false;
	}
	return true;
}

static enum fleet_trouble read_all(json_t *all, struct fleet_record *record, char why[FLEET_WHY])
{
	const char *is = json_string_value(json_object_get(all, "is")), *unsound;
	json_t *version = json_object_get(all, "v");

	snprintf(why, FLEET_WHY, "it is no record of a limit");
	if (!is || strcmp(is, "limit") != 0 || !json_is_integer(version))
		return FLEET_STRANGE;
	if (json_integer_value(version) != FLEET_VERSION) {
		snprintf(why, FLEET_WHY, "it is of version %lld, and this is version %d",
			 (long long)json_integer_value(version), FLEET_VERSION);
		return FLEET_OTHER_VERSION;
	}
	if (!read_parts(all, record))
		return FLEET_STRANGE;
	unsound = fleet_unsound(record);
	if (!unsound)
		return FLEET_WELL;
	snprintf(why, FLEET_WHY, "%s", unsound);
	return FLEET_UNSOUND;
}

enum fleet_trouble fleet_read_record(const char *text, size_t len, struct fleet_record *record,
				     char why[FLEET_WHY])
{
	json_t *all = json_read(text, len, JSON_REJECT_DUPLICATES, NULL);
	enum fleet_trouble trouble;

	memset(record, 0, sizeof(*record));
	trouble = read_all(all, record, why);
	if (trouble != FLEET_WELL)
		memset(record, 0, sizeof(*record));
	json_decref(all);
	return trouble;
}

char *fleet_write_session(const struct fleet_token *token)
{
	json_t *all = json_pack("{s:s,s:i,s:I,s:s,s:I}", "is", "member", "v", FLEET_VERSION, "id",
				(json_int_t)token->id, "boot", token->boot, "datapath",
				(json_int_t)token->datapath);
	char *text = all ? json_whole(all, JSON_COMPACT) : NULL;

	json_decref(all);
	return text;
}

bool fleet_is_session_of(const char *text, size_t len, const struct fleet_token *token)
{
	json_t *all = json_read(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *boot = json_string_value(json_object_get(all, "boot"));
	uint64_t version, id, datapath;
	bool same = number(all, "v", &version) && version == FLEET_VERSION &&
		    number(all, "id", &id) && id == token->id &&
		    number(all, "datapath", &datapath) && datapath == token->datapath && boot &&
		    !strcmp(boot, token->boot);

	json_decref(all);
	return same;
}

/* --- items ----------------------------------------------------------------------------------- */

static const char *const by_name[] = {[SHARED_PLAIN] = "",
				      [SHARED_BY_FILE] = "file",
				      [SHARED_BY_CHANGE] = "change",
				      [SHARED_BY_HAND] = "hand"};

bool fleet_fits(const char *value)
{
	char shown[4 * SHARED_VALUE];

	if (!*value)
		return true;
	return strlen(value) < SHARED_VALUE && *value != ' ' && value[strlen(value) - 1] != ' ' &&
	       !strcmp(text_escape(value, shown, sizeof(shown)), value);
}

#define MS	      1000000ull   /* in ns */
#define ITEM_TIME_MAX (1ull << 63) /* more than a ban may last (config/units.c), and its hour */

char *fleet_write_item(const struct shared_word *word)
{
	json_t *left = word->left_ns == SHARED_NEVER
			   ? json_null()
			   : json_integer((json_int_t)(word->left_ns / MS));
	json_t *all = json_pack("{s:s,s:i,s:o}", "is", "item", "v", FLEET_VERSION, "left_ms", left);
	bool well = all;
	char *text;

	if (well && word->lies_ns)
		well = !json_object_set_new(all, "lies_ms",
					    json_integer((json_int_t)(word->lies_ns / MS)));
	if (well && word->left_ns && word->value.by != SHARED_PLAIN)
		well = !json_object_set_new(all, "value", json_string(word->value.text)) &&
		       !json_object_set_new(all, "by", json_string(by_name[word->value.by]));
	text = well ? json_whole(all, JSON_COMPACT) : NULL;
	json_decref(all);
	return text;
}

static const char *read_value(json_t *text, const char *by, struct shared_word *word)
{
	struct shared_value *value = &word->value;

	if (!json_is_string(text) || !by)
		return "its fields are not those of an item";
	if (json_string_length(text) >= SHARED_VALUE)
		return "its value has more than 63 bytes";
	if (!fleet_fits(json_string_value(text)))
		return "its value has a control character, or a blank at an end";
	for (size_t i = SHARED_BY_FILE; i <= SHARED_BY_HAND; i++)
		if (!strcmp(by, by_name[i]))
			value->by = (enum shared_by)i;
	if (!word->left_ns || value->by == SHARED_PLAIN ||
	    (value->by != SHARED_BY_HAND &&
	     (word->left_ns != SHARED_NEVER || !json_string_length(text))))
		return "what it says of its value is not possible";
	memcpy(value->text, json_string_value(text), json_string_length(text));
	return NULL;
}

static bool read_ms(json_t *value, uint64_t *ns)
{
	uint64_t ms;

	if (!is_number(value, &ms) || ms > ITEM_TIME_MAX / MS)
		return false;
	*ns = ms * MS;
	return true;
}

static const char *read_times(json_t *all, struct shared_word *word)
{
	json_t *left = json_object_get(all, "left_ms"), *lies = json_object_get(all, "lies_ms");

	word->left_ns = SHARED_NEVER;
	if (!json_is_null(left) && !read_ms(left, &word->left_ns))
		return "its time is none";
	if (lies && (!read_ms(lies, &word->lies_ns) || word->lies_ns <= word->left_ns))
		return "the time for which it lies there is none";
	return NULL;
}

static const char *read_item(json_t *all, struct shared_word *word)
{
	const char *is = json_string_value(json_object_get(all, "is")), *why;
	const size_t times = json_object_get(all, "lies_ms") ? 4 : 3;
	uint64_t version;

	if (!is || strcmp(is, "item") != 0 || !number(all, "v", &version))
		return "it is no item";
	if (version != FLEET_VERSION)
		return "it is of another version";
	why = read_times(all, word);
	if (why || json_object_size(all) == times)
		return why;
	if (json_object_size(all) != times + 2)
		return "its fields are not those of an item";
	return read_value(json_object_get(all, "value"),
			  json_string_value(json_object_get(all, "by")), word);
}

const char *fleet_read_item(const char *text, size_t len, struct shared_word *word)
{
	json_t *all = json_read(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *why;

	memset(word, 0, sizeof(*word));
	why = read_item(all, word);
	if (why)
		memset(word, 0, sizeof(*word));
	json_decref(all);
	return why;
}
