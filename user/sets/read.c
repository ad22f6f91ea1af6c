/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/text.h"
#include "config/whole_path.h"

#define SHOWN	   48u /* bytes of a wrong word that an error tells */
#define FIELDS_MAX 64u
#define FILE_MAX   (4ull << 30)

/* Words that begin the lines of `ipset save` and of `nft list set`. */
enum style { STYLE_PLAIN, STYLE_NFT };

struct reading {
	const struct set_source *source;
	struct set_text *out;
	struct policy_error *error;
	uint32_t line;
	enum style style;
	bool in_braces;
	bool any;	       /* a line that is no comment has been read */
	struct set_word set;   /* the name of the ipset, or of the set of nft */
	struct set_word table; /* of nft: the last one that was named, and the set's */
	struct set_word table_of_set;
	unsigned int netmask;  /* of the ipset: the length that its elements do not show; 0: none */
	uint8_t family;	       /* of that */
	uint32_t lengths_from; /* the line that says that second fields are lengths; 0: none has */
	bool no_lengths;       /* they are other numbers */
};

struct shown {
	char text[4 * SHOWN + 8];
};

static struct shown shown(struct set_word word)
{
	struct shown s;
	char cut[SHOWN + 4];

	snprintf(cut, sizeof(cut), "%.*s%s", (int)(word.n < SHOWN ? word.n : SHOWN), word.at,
		 word.n > SHOWN ? "..." : "");
	text_escape(cut, s.text, sizeof(s.text));
	return s;
}

static int wrong(const struct reading *r, const char *what, struct set_word word, const char *todo)
{
	return policy_fail(r->error, (int)r->line, "%s '%s': %s", what, shown(word).text, todo);
}

static int no_memory(const struct reading *r)
{
	return policy_fail(r->error, POLICY_NO_MEMORY, "no memory for its prefixes");
}

/* --- one element ---------------------------------------------------------------------------- */

static const char *range_text(const struct set_range *range, char *buf, size_t size)
{
	struct set_list one = {0};

	buf[0] = 0;
	if (!set_range_add(range, 1, 0, &one)) {
		struct prefix prefix = set_entry_prefix(&one.entry[0]);

		units_prefix_text(&prefix, buf, size);
	}
	set_list_free(&one);
	return buf;
}

static int element_wrong(const struct reading *r, struct set_word word, enum set_wrong why,
			 const struct set_range *range)
{
	struct set_word address = word;
	const char *slash = memchr(word.at, '/', word.n);
	char meant[64];

	switch (why) {
	case SET_RIGHT:
		return 0;
	case SET_HOST_BITS:
		address.n = (size_t)(slash - word.at); /* it is a prefix */
		if (!*range_text(range, meant, sizeof(meant)))
			return no_memory(r);
		return policy_fail(
		    r->error, (int)r->line,
		    "'%s' has host bits: write %s for the network, or %s for the host",
		    shown(word).text, meant, shown(address).text);
	case SET_NO_LENGTH:
		return wrong(r, "no length of a prefix", word,
			     "write /0 to /32 for IPv4, /0 to /128 for IPv6");
	case SET_NETMASK:
		return wrong(r, "a netmask", word, "write the length of the prefix: /24");
	case SET_BACKWARDS:
		return wrong(r, "a range that ends before it begins", word, "exchange its ends");
	case SET_FAMILIES:
		return wrong(r, "a range from one family to the other", word, "write two ranges");
	case SET_MAPPED:
		return wrong(r, "an IPv4 address in the form of IPv6", word,
			     "no packet has it: write 192.0.2.1");
	case SET_NO_ADDRESS:
		break;
	}
	return wrong(r, "no address, prefix or range", word,
		     "write 192.0.2.0/24, 2001:db8::/32 or 192.0.2.1-192.0.2.9");
}

static int add_range(struct reading *r, const struct set_range *range, uint16_t value)
{
	struct set_list *list = &r->out->list;

	if (set_range_add(range, value, r->line, list))
		return no_memory(r);
	if (list->n > SET_PREFIXES_MAX)
		return policy_fail(r->error, (int)r->line,
				   "more than %u prefixes up to here: divide the set",
				   SET_PREFIXES_MAX);
	return 0;
}

static int add_element(struct reading *r, struct set_word word, uint16_t value)
{
	struct set_range range;
	enum set_wrong why = set_range_read(word, &range);

	if (why)
		return element_wrong(r, word, why, &range);
	if (r->netmask && range.family != r->family)
		return wrong(r, "an address of the other family", word,
			     r->family == 4 ? "the ipset is of IPv4, and so is its netmask"
					    : "the ipset is of IPv6, and so is its netmask");
	if (r->netmask)
		set_range_widen(&range, r->netmask);
	return add_range(r, &range, value);
}

int set_read_element(const char *text, uint16_t value, uint32_t line, struct set_list *list,
		     struct policy_error *error)
{
	struct set_text out = {.list = *list};
	struct reading r = {.out = &out, .error = error, .line = line};
	int result = add_element(&r, (struct set_word){text, strlen(text)}, value);

	*list = out.list;
	return result;
}

/* --- lines ---------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The first word of *rest, which moves behind it; "like this" is one. */
static struct set_word next_word(struct set_word *rest)
{
	struct set_word word = set_trim(*rest);
	bool quoted = false;
	size_t n = 0;

	while (n < word.n && (quoted || !is_blank(word.at[n])))
		quoted ^= word.at[n++] == '"';
	rest->at = word.at + n;
	rest->n = word.n - n;
	word.n = n;
	return word;
}

static bool is(struct set_word word, const char *text)
{
	return word.n == strlen(text) && !memcmp(word.at, text, word.n);
}

static bool same_words(struct set_word a, struct set_word b)
{
	return a.n == b.n && (!a.n || !memcmp(a.at, b.at, a.n));
}

static struct set_word unquoted(struct set_word word)
{
	word = set_trim(word);
	if (word.n >= 2 && word.at[0] == '"' && word.at[word.n - 1] == '"') {
		word.at++;
		word.n -= 2;
	}
	return set_trim(word);
}

/* Without the comment: from the first '#' or ';' that nothing or a blank is before. */
static struct set_word without_comment(struct set_word line)
{
	bool quoted = false;

	for (size_t i = 0; i < line.n; i++) {
		quoted ^= line.at[i] == '"';
		if (!quoted && (line.at[i] == '#' || line.at[i] == ';') &&
		    (!i || is_blank(line.at[i - 1])))
			line.n = i;
	}
	return set_trim(line);
}

/* What may stand behind an element of ipset and nft, and is not kept. */
static int read_options(struct reading *r, struct set_word rest)
{
	struct set_word word;

	while ((word = next_word(&rest)).n) {
		if (is(word, "nomatch"))
			return wrong(
			    r, "an exception", word,
			    "sets have none: leave it out, and let an earlier rule pass it");
		if (is(word, "timeout")) {
			r->out->timeouts++;
			(void)next_word(&rest);
		} else if (is(word, "expires") || is(word, "comment") || is(word, "packets") ||
			   is(word, "bytes") || is(word, "skbmark") || is(word, "skbprio") ||
			   is(word, "skbqueue")) {
			(void)next_word(&rest);
		} else if (!is(word, "counter") && !is(word, "-exist") && !is(word, "-!")) {
			return wrong(r, "more than an address:", word,
				     "one on a line; # begins a comment");
		}
	}
	return 0;
}

/* Where the text ends, or the first of these characters that no quotes are around. */
static const char *stop_at(struct set_word text, const char *characters)
{
	const char *at = text.at, *end = text.at + text.n;
	bool quoted = false;

	for (; at < end; at++) {
		quoted ^= *at == '"';
		if (!quoted && strchr(characters, *at))
			break;
	}
	return at;
}

static bool has_open_quote(struct set_word text)
{
	bool quoted = false;

	for (size_t i = 0; i < text.n; i++)
		quoted ^= text.at[i] == '"';
	return quoted;
}

static bool is_among(struct set_word word, const char *const *names)
{
	while (*names && !is(word, *names))
		names++;
	return *names;
}

static int ipset_family(struct reading *r, struct set_word word)
{
	if (!is(word, "inet") && !is(word, "inet6"))
		return wrong(r, "no family of an ipset", word, "write inet or inet6");
	r->family = is(word, "inet") ? 4 : 6;
	return 0;
}

/* ipset takes 024 for an octal number. */
static int ipset_netmask(struct reading *r, struct set_word word)
{
	if (set_read_length(word, r->family == 4 ? 32 : 128, &r->netmask) || word.at[0] == '0')
		return wrong(r, "no netmask", word, "write 1 to 32 for IPv4, 1 to 128 for IPv6");
	return 0;
}

/* What stands behind an ipset's type. A word that nobody knows might change what elements mean. */
static int ipset_options(struct reading *r, struct set_word type, struct set_word rest)
{
	static const char *const alone[] = {"counters", "comment", "skbinfo", "forceadd",
					    "-exist",	"-!",	   NULL};
	static const char *const valued[] = {"hashsize", "maxelem", "bucketsize", "initval",
					     "timeout",	 "range",   NULL};
	struct set_word word, netmask = {0};

	r->family = 4;
	while ((word = next_word(&rest)).n) {
		if (is(word, "family")) {
			if (ipset_family(r, next_word(&rest)))
				return -1;
		} else if (is(word, "netmask") && !is(type, "hash:net")) {
			netmask = next_word(&rest);
		} else if (is(word, "bitmask")) {
			return wrong(r, "an ipset of", word,
				     "its elements may be no prefixes: create it with netmask, or "
				     "list them in one of hash:net");
		} else if (is_among(word, valued)) {
			(void)next_word(&rest);
		} else if (!is_among(word, alone)) {
			return wrong(r, "an ipset with", word,
				     "it may change what the set has: leave it out, as ipset save "
				     "does");
		}
	}
	return netmask.at ? ipset_netmask(r, netmask) : 0;
}

static int second_ipset(const struct reading *r, struct set_word name)
{
	return wrong(r, "a second ipset", name, "save one alone: ipset save NAME");
}

/* "create drop hash:net family inet ..." */
static int ipset_create(struct reading *r, struct set_word rest)
{
	struct set_word name = next_word(&rest), type = next_word(&rest);

	if (r->set.n)
		return second_ipset(r, name);
	r->set = name;
	if (!is(type, "hash:ip") && !is(type, "hash:net") && !is(type, "bitmap:ip"))
		return wrong(r, "an ipset of type", type,
			     "sets are of addresses alone: hash:ip, hash:net or bitmap:ip");
	return ipset_options(r, type, rest);
}

/* "add drop 192.0.2.0/24 timeout 5" */
static int ipset_add(struct reading *r, struct set_word rest)
{
	struct set_word line = set_trim(rest), name, element;

	if (has_open_quote(line))
		return wrong(r, "a quote without its end:", line,
			     "a comment of ipset is on one line");
	name = next_word(&rest);
	element = next_word(&rest);
	if (r->set.n && !same_words(name, r->set))
		return second_ipset(r, name);
	r->set = name;
	return add_element(r, element, 1) ? -1 : read_options(r, rest);
}

/* Behind the brace that ends elements there is no more than others, or it would be lost. */
static int nft_behind(const struct reading *r, struct set_word rest)
{
	for (size_t i = 0; i < rest.n; i++)
		if (!is_blank(rest.at[i]) && rest.at[i] != '}' && rest.at[i] != ';')
			return wrong(r, "more behind elements:", set_trim(rest),
				     "write it on a line of its own");
	return 0;
}

/* Elements between commas, up to the brace that ends them. */
static int nft_elements(struct reading *r, struct set_word rest)
{
	while (rest.n && r->in_braces) {
		const char *end = stop_at(rest, ",}");
		struct set_word element, word;

		element = (struct set_word){rest.at, (size_t)(end - rest.at)};
		rest.n -= element.n;
		rest.at = end;
		if (rest.n) {
			r->in_braces = *end != '}';
			rest.at++;
			rest.n--;
		}
		word = next_word(&element);
		if (word.n && (add_element(r, word, 1) || read_options(r, element)))
			return -1;
	}
	return r->in_braces ? 0 : nft_behind(r, rest);
}

/* A file is one set. Its name may come again, as where several lines add elements to it. */
static int nft_set(struct reading *r, struct set_word table, struct set_word name)
{
	if (r->set.n && !(same_words(name, r->set) && same_words(table, r->table_of_set)))
		return wrong(r, "a second set", name,
			     "list one alone: nft list set FAMILY TABLE NAME");
	r->set = name;
	r->table_of_set = table;
	return 0;
}

/* "element inet filter drop", of which the last word is the name */
static int nft_add(struct reading *r, struct set_word rest)
{
	struct set_word element = next_word(&rest), table = set_trim(rest), name = {0}, word;

	while ((word = next_word(&rest)).n)
		name = word;
	if (!is(element, "element") || !name.n)
		return 0;
	table.n = (size_t)(name.at - table.at);
	return nft_set(r, set_trim(table), name);
}

/* What stands before the first brace, which *rest moves behind; nothing: there is none. */
static struct set_word before_brace(struct set_word *rest)
{
	const char *brace = stop_at(*rest, "{");
	struct set_word before = {rest->at, (size_t)(brace - rest->at)};

	if (before.n == rest->n)
		return (struct set_word){rest->at, 0};
	rest->at = brace + 1;
	rest->n -= before.n + 1;
	return set_trim(before);
}

/* "table inet filter {" and "set drop {", which may stand behind it in one line */
static int nft_block(struct reading *r, struct set_word line)
{
	struct set_word block = before_brace(&line), word = next_word(&block);

	if (is(word, "table")) {
		r->table = set_trim(block);
		block = before_brace(&line);
		word = next_word(&block);
	}
	return is(word, "set") ? nft_set(r, r->table, set_trim(block)) : 0;
}

/* Has the line "elements =", other than in quotes? */
static bool has_elements(struct set_word line)
{
	static const char name[] = "elements";
	size_t n = sizeof(name) - 1;
	bool quoted = false;

	for (; line.n > n; line.at++, line.n--) {
		struct set_word after = {line.at + n, line.n - n};

		quoted ^= *line.at == '"';
		if (quoted || memcmp(line.at, name, n))
			continue;
		after = set_trim(after);
		if (after.n && *after.at == '=')
			return true;
	}
	return false;
}

/* "del drop 192.0.2.1", or what empties a set in which there is something. */
static bool takes_away(const struct reading *r, struct set_word line)
{
	struct set_word word = next_word(&line), of = next_word(&line);

	if (is(word, "flush"))
		return r->out->list.n && !is(of, "chain") && !is(of, "table");
	return is(word, "delete") || is(word, "destroy") || is(word, "del");
}

/* What nft lists beside elements. What has some, or takes some away, would be lost. */
static int nft_other(struct reading *r, struct set_word line, struct set_word word)
{
	struct set_range range;

	if (takes_away(r, line))
		return wrong(r, "what takes elements away:", line,
			     "a set has them all: leave these out, as nft list set does");
	if (has_elements(line))
		return wrong(r, "elements behind something else:", line,
			     "begin a line with elements =, as nft list set does");
	if (set_range_read(word, &range) != SET_NO_ADDRESS)
		return wrong(r, "an address that is in no braces:", line,
			     "write elements = { 192.0.2.0/24, ... }");
	return 0;
}

/* Of what nft lists, only the elements count. */
static int nft_line(struct reading *r, struct set_word line)
{
	const char *brace = stop_at(line, "{");
	struct set_word rest = line, word = next_word(&rest);

	if (is(word, "add") || is(word, "elements") || word.at[0] == '{') {
		if (brace == line.at + line.n)
			return wrong(r, "elements without a brace", line,
				     "write elements = { 192.0.2.0/24, ... }");
		if (is(word, "add") && nft_add(r, before_brace(&rest)))
			return -1;
		r->in_braces = true;
		line.n -= (size_t)(brace + 1 - line.at);
		line.at = brace + 1;
		return nft_elements(r, line);
	}
	if (is(word, "type") && !strstr(shown(line).text, "ipv4_addr") &&
	    !strstr(shown(line).text, "ipv6_addr"))
		return wrong(r, "a set of", line, "sets are of addresses alone");
	return nft_block(r, line) ? -1 : nft_other(r, line, word);
}

/* The value's number; 1 in a plain set; 0: *r->error says what is wrong. */
static uint16_t value_of(struct reading *r, const struct set_word *field, size_t n)
{
	struct set_word name;
	int value;

	if (!r->source->value_field)
		return 1;
	if (n < r->source->value_field) {
		policy_explain(r->error, (int)r->line,
			       "%zu field%s, and value is field %u: add it, or say which it is", n,
			       units_plural(n), r->source->value_field);
		return 0;
	}
	name = unquoted(field[r->source->value_field - 1]);
	if (!set_name_fits(name)) {
		wrong(r, "no value", name, SET_NAME_TODO);
		return 0;
	}
	value = set_names_add(&r->out->names, name);
	if (value < 0 && errno == EFBIG)
		wrong(r, "a 65536th value", name, "use a field that has fewer");
	else if (value < 0)
		no_memory(r);
	return value < 0 ? 0 : (uint16_t)value;
}

/* Behind the blanks at this place. *tab: there is one among them. */
static size_t behind_blanks(struct set_word line, size_t at, bool *tab)
{
	for (*tab = false; at < line.n && is_blank(line.at[at]); at++)
		*tab |= line.at[at] == '\t';
	return at;
}

/* Behind the address at this place; the place: there is none. */
static size_t behind_address(struct set_word line, size_t at)
{
	size_t end = at;

	while (end < line.n && !is_blank(line.at[end]) && !strchr(",-", line.at[end]))
		end++;
	return set_is_address((struct set_word){line.at + at, end - at}) ? end : at;
}

/*
 * Bytes of the range that the line begins with, whose blanks may be tabs: they are of its first
 * field. 0: it begins with none, or (*doubtful) with what may be three fields as well.
 */
static size_t range_of(struct set_word line, bool *doubtful)
{
	bool before, behind, after;
	size_t first = behind_address(line, 0), last, end;

	*doubtful = false;
	end = behind_blanks(line, first, &before);
	if (!first || end == line.n || line.at[end] != '-')
		return 0;
	end = behind_blanks(line, end + 1, &behind);
	last = behind_address(line, end);
	if (last == end)
		return 0;
	end = behind_blanks(line, last, &after);
	*doubtful = before && behind && (end == line.n || line.at[end] != ',');
	return *doubtful ? 0 : last;
}

/*
 * What is between the fields of the line: what ends its first one, since fields between tabs may
 * have commas. Blanks before a comma are the field's, tabs among them.
 */
static char mark_of(struct set_word line, size_t range)
{
	bool quoted = false, tab = false;

	for (size_t i = range; i < line.n; i++) {
		char c = line.at[i];

		if (!quoted && c == ',')
			return ',';
		if (tab && !is_blank(c))
			return '\t';
		tab |= !quoted && c == '\t';
		quoted ^= c == '"';
	}
	return '\t';
}

/*
 * One field at least. *open: the last begins with a quote that the line does not end; what another
 * program takes for the rest of it would be read as a prefix of its own.
 */
static size_t split(struct set_word line, size_t range, struct set_word *field, bool *open)
{
	char mark = mark_of(line, range);
	size_t n = 0, from = 0;
	bool quoted = false;

	for (size_t i = range; i <= line.n && n < FIELDS_MAX; i++) {
		if (i < line.n && line.at[i] == '"')
			quoted = !quoted;
		if (i < line.n && (quoted || line.at[i] != mark))
			continue;
		field[n++] = (struct set_word){line.at + from, i - from};
		from = i + 1;
	}
	*open = quoted && set_trim(field[n - 1]).at[0] == '"';
	return n;
}

#define ONE_OF_TWO "write a range as 192.0.2.1-192.0.2.9, or one address on a line"

/*
 * "192.0.2.0,255.255.255.0,XX": ones, and zeros behind them. The last two of these may end a
 * range, too, as lists of all addresses have them. Such a range begins at a .0, or beyond 224.
 */
static bool is_netmask(struct set_word first, struct set_word last)
{
	struct set_range from, to;
	uint32_t mask;

	if (set_range_read(first, &from) || set_range_read(last, &to) || to.family != 4)
		return false;
	mask = (uint32_t)(to.first_high >> 32);
	if (mask >= UINT32_MAX - 1)
		return from.first_high >> 32 & 0xff && from.first_high >> 32 < 0xe0000000;
	return mask && !(~mask & (~mask + 1));
}

/* "192.0.2.0,192.0.2.255,XX": a range in two fields, where the value says that there are more. */
static int two_addresses(struct reading *r, const struct set_word *field, uint16_t value)
{
	char text[128];
	struct set_word first = unquoted(field[0]), last = unquoted(field[1]);
	struct set_word range = {text, 0};

	if (r->source->value_field < 3)
		return wrong(r, "two addresses: with", last, ONE_OF_TWO);
	if (is_netmask(first, last))
		return element_wrong(r, last, SET_NETMASK, NULL);
	/* Both are addresses, so there is room for them. */
	snprintf(text, sizeof(text), "%.*s-%.*s", (int)first.n, first.at, (int)last.n, last.at);
	range.n = strlen(text);
	return add_element(r, range, value);
}

static bool is_number(struct set_word word)
{
	for (size_t i = 0; i < word.n; i++)
		if (word.at[i] < '0' || word.at[i] > '9')
			return false;
	return word.n;
}

/*
 * "192.0.2.0,24,64496": is the second field the length of the prefix? Lists have counts and ports
 * there, too. So the first number says it for all lines: it is a length where it leaves the address
 * no host bits. One that says the address alone is as good as none.
 */
static bool has_length(struct reading *r, struct set_word first, struct set_word second,
		       enum set_wrong wrong, const struct set_range *range)
{
	struct set_range address;

	if (r->lengths_from || r->no_lengths || !is_number(second))
		return r->lengths_from;
	r->no_lengths = wrong != SET_RIGHT;
	(void)set_range_read(first, &address);
	if (!wrong && !set_range_within(&address, range))
		r->lengths_from = r->line;
	return r->lengths_from;
}

/* An address, and a field behind it that may be its length, and is not the value. */
static int address_and_field(struct reading *r, struct set_word first, struct set_word second,
			     uint16_t value)
{
	char text[128];
	struct set_word prefix = {text, 0};
	struct set_range range;
	enum set_wrong wrong;

	snprintf(text, sizeof(text), "%.*s/%.*s", (int)first.n, first.at,
		 (int)(second.n < SHOWN ? second.n : SHOWN), second.at);
	prefix.n = strlen(text);
	wrong = set_range_read(prefix, &range);
	if (!has_length(r, first, second, wrong, &range))
		return add_element(r, first, value);
	if (!wrong)
		return add_range(r, &range, value);
	return policy_fail(
	    r->error, (int)r->line,
	    "'%s' is no length of a prefix that begins with %.*s, and field 2 of line "
	    "%u is one: mend it, or leave that field out of all lines",
	    shown(second).text, (int)first.n, first.at, r->lengths_from);
}

/* The names of the fields, as the first line of a table has them. */
static bool is_heading(const struct reading *r, struct set_word first, size_t fields)
{
	if (r->any || fields < 2 || !first.n)
		return false;
	for (size_t i = 0; i < first.n; i++)
		if (!((first.at[i] | 32) >= 'a' && (first.at[i] | 32) <= 'z') &&
		    !strchr("_- ", first.at[i]))
			return false;
	return true;
}

/*
 * A prefix that the first one has not: nothing is lost of a prefix beside its first address. A
 * field between tabs may have more behind a comma.
 */
static bool is_another(struct set_word first, struct set_word second)
{
	struct set_range a, b;
	const char *comma = memchr(second.at, ',', second.n);
	enum set_wrong wrong;

	if (comma)
		second.n = (size_t)(comma - second.at);
	wrong = set_range_read(second, &b);
	if (wrong == SET_NO_ADDRESS)
		return false;
	return wrong != SET_RIGHT || set_range_read(first, &a) != SET_RIGHT ||
	       !set_range_within(&a, &b);
}

static int read_fields(struct reading *r, struct set_word line)
{
	struct set_word field[FIELDS_MAX], first;
	bool open, doubtful;
	size_t range = range_of(line, &doubtful), n = split(line, range, field, &open);
	uint16_t value;

	if (doubtful && !r->source->value_field)
		return wrong(r, "a range, or two addresses:", line, ONE_OF_TWO);
	if (open)
		return wrong(r, "a quote without its end:", line,
			     "each prefix has a line, with all its fields");
	first = unquoted(field[0]);
	if (is_heading(r, first, n))
		return 0;
	value = value_of(r, field, n);
	if (!value)
		return -1;
	if (n > 1 && set_is_address(unquoted(field[1])) && set_is_address(first))
		return two_addresses(r, field, value);
	if (n > 1 && !r->source->value_field && is_another(first, unquoted(field[1])))
		return wrong(r, "two prefixes: with", unquoted(field[1]), "write one on a line");
	if (n > 1 && r->source->value_field != 2 && set_is_address(first))
		return address_and_field(r, first, unquoted(field[1]), value);
	return add_element(r, first, value);
}

/* A line without commas and tabs. */
static int read_words(struct reading *r, struct set_word line)
{
	struct set_word rest = line, word = next_word(&rest), after = set_trim(rest);

	if (r->source->value_field)
		return read_fields(r, line);
	/* "192.0.2.1 - 192.0.2.9" */
	if (!after.n || after.at[0] == '-' || line.at[word.n - 1] == '-')
		return add_element(r, line, 1);
	return add_element(r, word, 1) ? -1 : read_options(r, rest);
}

static bool is_nft(const struct reading *r, struct set_word line, struct set_word word)
{
	return r->style == STYLE_NFT || is(word, "table") || is(word, "set") || is(word, "flush") ||
	       is(word, "elements") || line.at[0] == '{';
}

static int read_line(struct reading *r, struct set_word line)
{
	struct set_word rest, word;

	if (memchr(line.at, 0, line.n))
		return policy_fail(r->error, (int)r->line,
				   "a NUL byte: it is no text: unpack it, or name another file");
	line = without_comment(line);
	if (!line.n)
		return 0;
	if (r->in_braces)
		return nft_elements(r, line);
	rest = line;
	word = next_word(&rest);
	if (is(word, "create"))
		return ipset_create(r, rest);
	if (is(word, "add") && stop_at(line, "{") == line.at + line.n)
		return ipset_add(r, rest);
	if (is(word, "add") || is_nft(r, line, word)) {
		r->style = STYLE_NFT;
		return nft_line(r, line);
	}
	if (memchr(line.at, ',', line.n) || memchr(line.at, '\t', line.n))
		return read_fields(r, line);
	return read_words(r, line);
}

/* --- all of it ------------------------------------------------------------------------------ */

static int read_lines(struct reading *r, const char *text, size_t len)
{
	const char *end = text + len;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		text += 3;
	if (end - text >= 2 && !memcmp(text, "\x1f\x8b", 2))
		return policy_fail(r->error, 1, "it is compressed: unpack it with gunzip");
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		struct set_word line = {text, (size_t)((stop ? stop : end) - text)};

		r->line++;
		if (read_line(r, line))
			return -1;
		r->any |= without_comment(line).n > 0;
		text += line.n + 1;
	}
	if (r->in_braces)
		return policy_fail(r->error, (int)r->line, "it ends within braces: add a '}'");
	return 0;
}

static int finish(struct reading *r)
{
	struct set_entry one, other;
	struct prefix prefix;
	char text[64];

	if (!r->out->list.n)
		return policy_fail(r->error, 0,
				   "it has no prefix: a set that is meant to be empty is written "
				   "of: []");
	switch (set_list_sort(&r->out->list, &one, &other)) {
	case 0:
		return 0;
	case 1:
		prefix = set_entry_prefix(&other);
		return policy_fail(r->error, (int)other.line,
				   "%s is %s here and %s in line %u: leave one out",
				   units_prefix_text(&prefix, text, sizeof(text)),
				   r->out->names.name[other.value - 1],
				   r->out->names.name[one.value - 1], one.line);
	}
	return no_memory(r);
}

void set_text_free(struct set_text *text)
{
	set_list_free(&text->list);
	set_names_free(&text->names);
}

static int know(struct reading *r)
{
	for (uint32_t i = 0; r->source->known && i < r->source->known->n; i++) {
		const char *name = r->source->known->name[i];

		if (set_names_add(&r->out->names, (struct set_word){name, strlen(name)}) < 0)
			return no_memory(r);
	}
	return 0;
}

int set_read(const char *text, size_t len, const struct set_source *source, struct set_text *out,
	     struct policy_error *error)
{
	struct reading r = {.source = source, .out = out, .error = error};

	*out = (struct set_text){.timeouts = 0};
	if (!know(&r) && !read_lines(&r, text, len) && !finish(&r))
		return 0;
	error->file = source->name;
	set_text_free(out);
	return -1;
}

/*
 * All that there is to read, or up to where it is no text, as that may have no end: to be freed.
 * NULL: errno.
 */
static char *read_all(int fd, size_t *len)
{
	struct stat st;
	size_t room = 1 << 16;
	char *text;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		room = (size_t)st.st_size + 1;
	text = malloc(room);
	for (*len = 0; text;) {
		ssize_t n = read(fd, text + *len, room - *len);
		char *more = text;

		if (!n)
			return text;
		if (n > 0) {
			*len += (size_t)n;
			if (memchr(text + *len - n, 0, (size_t)n))
				return text;
			if (*len == room)
				more = *len < FILE_MAX ? realloc(text, room *= 2) : NULL;
		} else if (errno != EINTR) {
			more = NULL;
		}
		if (!more) {
			int cause = n > 0 && *len >= FILE_MAX ? EFBIG : errno;

			free(text);
			errno = cause;
			return NULL;
		}
		text = more;
	}
	return NULL;
}

/* What somebody gave the command to read: stdin, or a descriptor that it has, as of a shell's
 * <(...). */
static bool is_given(const char *path)
{
	return !strcmp(path, "-") || !strcmp(path, "/dev/stdin") || !strncmp(path, "/dev/fd/", 8);
}

/* Why it is not read; NULL: it is a file, or was given. To read a pipe would wait for its writer.
 */
static const char *no_file(const char *path, int fd)
{
	struct stat st;

	if (is_given(path) || fstat(fd, &st) || S_ISREG(st.st_mode))
		return NULL;
	if (S_ISDIR(st.st_mode))
		return "it is a directory";
	return S_ISFIFO(st.st_mode) ? "it is a pipe" : "it is a device";
}

/* It waits for nobody: a pipe is opened without a writer. -1: errno. */
static int open_file(const char *path)
{
	if (!strcmp(path, "-"))
		return dup(0);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (is_given(path) ? 0 : O_NONBLOCK));
}

int set_read_file(const char *path, const struct set_source *source, struct set_text *out,
		  struct policy_error *error)
{
	static char whole[PATH_MAX]; /* which the error names; one thread */
	int fd = open_file(path), result;
	const char *why = fd < 0 ? NULL : no_file(path, fd);
	size_t len = 0;
	char *text = fd < 0 || why ? NULL : read_all(fd, &len);

	if (!text) {
		bool memory = !why && errno == ENOMEM;

		if (!why)
			why = errno == EISDIR ? "it is a directory" : strerror(errno);
		policy_explain(error, memory ? POLICY_NO_MEMORY : 0, "%s%s", why,
			       memory ? "" : ": name a file of prefixes");
		error->file =
		    is_given(path) ? source->name : whole_path(path, whole, sizeof(whole));
	}
	if (fd >= 0)
		close(fd);
	result = text ? set_read(text, len, source, out, error) : -1;
	free(text);
	return result;
}
