/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what the fuzz targets share: input taken piece by piece, files made of it, and what has
 * to hold. A target is one file, fuzz_NAME.c, with corpus/NAME beside it; tests/fuzz/run runs them.
 *
 * Error: what does not hold ends the program, as a sanitizer's finding does, and libFuzzer keeps
 * the input. An input that runs out gives zeros. Memory: copies are to be freed.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(what)                                                                               \
	do {                                                                                      \
		if (!(what)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what); \
			abort();                                                                  \
		}                                                                                 \
	} while (0)

/* An error's text says something and has an end. (The tools escape what it quotes of the input.) */
#define HOLDS_TOLD(text) HOLDS(*(text) && memchr((text), 0, sizeof(text)))

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* The next `bytes` (8 at most) as a number. */
static inline uint64_t fuzz_take(struct fuzz_input *in, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes && in->left; i++, in->at++, in->left--)
		value |= (uint64_t)*in->at << (8 * i);
	return value;
}

/* A number of any magnitude: a byte for the bits, and 8 for the value. */
static inline uint64_t fuzz_magnitude(struct fuzz_input *in)
{
	uint64_t bits = fuzz_take(in, 1) % 64;

	return fuzz_take(in, (bits + 8) / 8) & (~0ull >> (63 - bits));
}

/* What is left, or what comes before the next zero byte, as a string of just that length. */
static inline char *fuzz_text(struct fuzz_input *in)
{
	const uint8_t *stop = in->left ? memchr(in->at, 0, in->left) : NULL;
	size_t len = stop ? (size_t)(stop - in->at) : in->left;
	char *text = malloc(len + 1);

	HOLDS(text);
	if (len)
		memcpy(text, in->at, len);
	text[len] = 0;
	in->at += len + !!stop;
	in->left -= len + !!stop;
	return text;
}

/* A copy with nothing behind it, so that a read beyond the end is found. */
static inline void *fuzz_copy(const void *from, size_t bytes)
{
	void *copy = malloc(bytes ? bytes : 1);

	HOLDS(copy);
	if (bytes)
		memcpy(copy, from, bytes);
	return copy;
}

/* A file without a name that holds these bytes. The path is valid until the next call. */
static inline const char *fuzz_file(const void *from, size_t bytes)
{
	static char path[64];
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	HOLDS(fd >= 0 && !ftruncate(fd, 0));
	HOLDS(pwrite(fd, from, bytes, 0) == (ssize_t)bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

/* Writes the input's bytes over a file's: three bytes where, one how many, then these. */
static inline void fuzz_patch(struct fuzz_input *in, uint8_t *file, size_t bytes)
{
	while (in->left) {
		size_t at = fuzz_take(in, 3) % bytes, n = 1 + fuzz_take(in, 1) % 16;

		for (; n && at < bytes; n--, at++)
			file[at] = (uint8_t)fuzz_take(in, 1);
	}
}

#endif
