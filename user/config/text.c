/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the character at *text, with its number in *value; 0: that is no UTF-8. */
static size_t character(const unsigned char *text, uint32_t *value)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 : 4;

	*value = n == 1 ? *text : *text & (0x7f >> n);
	if (n == 4 && *text >> 3 != 30)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*value = *value << 6 | (text[i] & 0x3f);
	}
	if (*value < smallest[n] || *value > 0x10ffff || (*value >= 0xd800 && *value <= 0xdfff))
		return 0;
	return n;
}

static bool is_harmless(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return false;
	/* Marks and overrides of direction, ends of lines and paragraphs. */
	return !(c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
		 (c >= 0x2066 && c <= 0x2069));
}

/* What stands for the next of the text; *taken are its bytes. Returns its length. */
static size_t next_piece(const char *text, char piece[20], size_t *taken)
{
	uint32_t c;
	size_t n = character((const unsigned char *)text, &c), len = 0;

	*taken = n ? n : 1;
	if (n && is_harmless(c)) {
		memcpy(piece, text, n);
		return n;
	}
	for (size_t i = 0; i < *taken; i++)
		len += (size_t)snprintf(piece + len, 20 - len, "\\x%02x", (unsigned char)text[i]);
	return len;
}

typedef size_t (*piece_writer)(const char *text, char piece[20], size_t *taken);

static char *write_pieces(const char *text, piece_writer write, char *buf, size_t size)
{
	size_t used = 0, cut = 0, taken; /* cut: where "..." has room */

	for (; *text; text += taken) {
		char piece[20];
		size_t len = write(text, piece, &taken);

		if (used + len >= size) {
			used = cut + (size_t)snprintf(buf + cut, size - cut, "...");
			break;
		}
		memcpy(buf + used, piece, len);
		used += len;
		if (used + 4 <= size)
			cut = used;
	}
	buf[used] = 0;
	return buf;
}

char *text_escape(const char *text, char *buf, size_t size)
{
	return write_pieces(text, next_piece, buf, size);
}

static size_t piece_to_tell_apart(const char *text, char piece[20], size_t *taken)
{
	if (*text != '\\')
		return next_piece(text, piece, taken);
	*taken = 1;
	return (size_t)snprintf(piece, 20, "\\x5c");
}

const char *text_name(const char *name, char *buf, size_t size)
{
	size_t len;

	if (text_is_utf8(name))
		return name;
	len = (size_t)snprintf(buf, size, "bytes:");
	write_pieces(name, piece_to_tell_apart, buf + len, size - len);
	return buf;
}

struct printable printable(const char *text)
{
	struct printable p;

	text_escape(text, p.text, sizeof(p.text));
	return p;
}

bool text_is_utf8(const char *text)
{
	uint32_t c;
	size_t n;

	for (; *text; text += n) {
		n = character((const unsigned char *)text, &c);
		if (!n)
			return false;
	}
	return true;
}

char *text_others(const char *const *names, size_t n, const char *but, char *buf, size_t size)
{
	size_t left = 0, at = 0;

	buf[0] = 0;
	for (size_t i = 0; i < n; i++)
		left += !!strcmp(names[i], but);
	for (size_t i = 0; i < n && at < size; i++) {
		if (!strcmp(names[i], but))
			continue;
		at += (size_t)snprintf(buf + at, size - at, "%s%s",
				       !at	  ? ""
				       : left > 1 ? ", "
						  : " and ",
				       names[i]);
		left--;
	}
	return buf;
}
