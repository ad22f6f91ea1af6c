/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state file of `keys`, damaged or forged: it is refused in one line, or keys are handed out
 * and none more often than --max within the window. Its checksums are no secret, so that the input
 * may have them set right.
 */
#include "fuzz.h"
#include "keys/keys.c"

#define WINDOW_NS 1000000000ull
#define MAX	  3u
#define USES	  40u

static const char names[] = "one\ntwo\n";
static const struct keys_limits limits = {.max = MAX, .window_ns = WINDOW_NS};
static struct keys_list list;
static uint64_t now_ns;
static uint8_t *base;
static size_t base_bytes;

static uint64_t now(void *arg)
{
	(void)arg;
	return now_ns;
}

static const struct keys_clock clock_of_test = {now, NULL, {1}};

/* A file of two keys that have been used. */
static void make_base(void)
{
	char path[] = "/tmp/fuzz_keys.XXXXXX";
	int fd = mkstemp(path);
	struct policy_error error;
	struct keys_given given;
	struct keys *keys;
	struct stat at;

	HOLDS(fd >= 0 && !unlink(path) && !close(fd));
	HOLDS(!keys_parse(names, sizeof(names) - 1, '\n', &list, &error));
	now_ns = 10 * WINDOW_NS;
	HOLDS(keys_open(&list, &limits, path, &clock_of_test, &keys, &error) == KEYS_OPEN);
	for (int i = 0; i < 4; i++)
		HOLDS(keys_next(keys, &given, &error) == KEYS_GIVEN);
	HOLDS(!keys_close(keys, &error));
	fd = open(path, O_RDONLY);
	HOLDS(fd >= 0 && !fstat(fd, &at) && !unlink(path));
	base_bytes = (size_t)at.st_size;
	base = malloc(base_bytes);
	HOLDS(base && read(fd, base, base_bytes) == (ssize_t)base_bytes);
	close(fd);
}

static void make_whole(uint8_t *bytes)
{
	struct keys_file *file = (struct keys_file *)bytes;

	file->check = check_of(file);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < 2; k++)
			file->record[i].copy[k].check = check_of_copy(&file->record[i].copy[k]);
}

static void hand_out(struct keys *keys)
{
	uint64_t used[2][USES];
	uint32_t n[2] = {0, 0}, within;
	struct policy_error error;
	struct keys_given given;

	for (uint32_t i = 0; i < USES; i++) {
		uint32_t key;

		now_ns += i % 7 ? WINDOW_NS / 9 : 0;
		if (keys_next(keys, &given, &error) != KEYS_GIVEN)
			continue;
		key = !strcmp(given.name, "two");
		HOLDS(key || !strcmp(given.name, "one"));
		used[key][n[key]++] = now_ns;
		within = 0;
		for (uint32_t k = 0; k < n[key]; k++)
			within += now_ns - used[key][k] < WINDOW_NS;
		HOLDS(within <= MAX);
	}
}

/* A byte that says whether checksums are set right and the file is cut, then patches. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t how = (uint8_t)fuzz_take(&in, 1), *file;
	struct policy_error error = {0};
	struct keys *keys = NULL;
	size_t bytes;

	if (!base)
		make_base();
	file = fuzz_copy(base, base_bytes);
	bytes = how & 2 ? fuzz_take(&in, 2) % (base_bytes + 1) : base_bytes;
	fuzz_patch(&in, file, base_bytes);
	if (how & 1)
		make_whole(file);
	now_ns = 20 * WINDOW_NS;
	if (keys_open(&list, &limits, fuzz_file(file, bytes), &clock_of_test, &keys, &error) ==
	    KEYS_OPEN) {
		hand_out(keys);
		(void)!keys_close(keys, &error);
	} else {
		HOLDS_TOLD(error.text);
	}
	free(file);
	return 0;
}
