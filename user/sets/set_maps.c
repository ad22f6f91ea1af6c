/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/set_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "sets/pack.h"

#define LINE sizeof(union pacer_set_line)

static void close_quietly(int fd)
{
	int cause = errno;

	if (fd >= 0)
		close(fd);
	errno = cause;
}

static int make_set(uint32_t lines)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "pacer_set", sizeof(uint32_t), LINE, lines,
			      &options);
}

int set_maps_make(uint32_t places)
{
	int inner_fd = make_set(1), fd = -1;

	if (inner_fd >= 0) {
		LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = inner_fd);

		fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pacer_sets", sizeof(uint32_t),
				    sizeof(uint32_t), places, &options);
	}
	close_quietly(inner_fd);
	return fd;
}

/* A set in memory, with its list: to be freed with both functions. */
static int prepare(const struct set_list *list, struct set_lines *lines, struct set_packed *packed)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || set_pack(list, packed))
		return -1;
	if (set_build(list, seed, lines)) {
		set_packed_free(packed);
		return -1;
	}
	lines->line->head.list_bytes = packed->n;
	return 0;
}

static uint64_t all_lines(const struct pacer_set_head *head)
{
	return head->lines + (head->list_bytes + LINE - 1) / LINE;
}

static int fill(int fd, const struct set_lines *lines, const struct set_packed *packed)
{
	size_t size = all_lines(&lines->line->head) * LINE;
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -1;
	memcpy(at, lines->line, lines->n * LINE);
	if (packed->n)
		memcpy(at + lines->n * LINE, packed->byte, packed->n);
	return munmap(at, size);
}

uint64_t set_maps_lines(const struct set_list *list)
{
	struct set_lines lines;
	struct set_packed packed;
	uint64_t n;

	if (prepare(list, &lines, &packed))
		return 0;
	n = all_lines(&lines.line->head);
	set_lines_free(&lines);
	set_packed_free(&packed);
	return n;
}

/* The map is complete before it is put in, since packets use it from then on. */
int set_maps_put(int fd, uint32_t place, const struct set_list *list)
{
	struct set_lines lines;
	struct set_packed packed;
	int inner_fd, result = -1;

	if (prepare(list, &lines, &packed))
		return -1;
	inner_fd = make_set((uint32_t)all_lines(&lines.line->head));
	if (inner_fd >= 0 && !fill(inner_fd, &lines, &packed))
		result = bpf_map_update_elem(fd, &place, &inner_fd, BPF_ANY);
	close_quietly(inner_fd);
	set_lines_free(&lines);
	set_packed_free(&packed);
	return result;
}

static int open_set(int fd, uint32_t place)
{
	uint32_t id;

	return bpf_map_lookup_elem(fd, &place, &id) ? -1 : bpf_map_get_fd_by_id(id);
}

int set_maps_remove(int fd, uint32_t place)
{
	return bpf_map_delete_elem(fd, &place);
}

int set_maps_share(int fd, uint32_t from, uint32_t to)
{
	int inner_fd = open_set(fd, from), result;

	if (inner_fd < 0) {
		if (errno == ENOENT && !set_maps_remove(fd, to))
			errno = ENOENT;
		return -1;
	}
	result = bpf_map_update_elem(fd, &to, &inner_fd, BPF_ANY);
	close_quietly(inner_fd);
	return result;
}

/* All of a set's lines, mapped; NULL: errno. */
static const union pacer_set_line *map_set(int fd, uint32_t place, size_t *size)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int inner_fd = open_set(fd, place);
	void *at = MAP_FAILED;

	if (inner_fd < 0)
		return NULL;
	if (!bpf_obj_get_info_by_fd(inner_fd, &info, &len)) {
		*size = (size_t)info.max_entries * LINE;
		at = mmap(NULL, *size, PROT_READ, MAP_SHARED, inner_fd, 0);
	}
	close_quietly(inner_fd);
	return at == MAP_FAILED ? NULL : at;
}

/* Does a mapping of that size have all that the head says? */
static int check_head(const struct pacer_set_head *head, size_t size)
{
	if (head->format == PACER_SET_FORMAT && head->lines && head->list_bytes <= size &&
	    all_lines(head) * LINE <= size)
		return 0;
	errno = EBADMSG;
	return -1;
}

int set_maps_head(int fd, uint32_t place, struct pacer_set_head *head)
{
	size_t size;
	const union pacer_set_line *line = map_set(fd, place, &size);
	int result, cause;

	if (!line)
		return -1;
	*head = line->head;
	result = check_head(head, size);
	cause = errno;
	munmap((void *)line, size);
	errno = cause;
	return result;
}

int set_maps_list(int fd, uint32_t place, struct set_list *list)
{
	size_t size;
	const union pacer_set_line *line = map_set(fd, place, &size);
	int result, cause;

	if (!line)
		return -1;
	result = check_head(&line->head, size);
	if (!result)
		result = set_unpack((const uint8_t *)(line + line->head.lines),
				    line->head.list_bytes, list);
	cause = errno;
	munmap((void *)line, size);
	errno = cause;
	return result;
}

int set_maps_lines_of(int fd, uint32_t place, struct set_lines *lines)
{
	size_t size;
	const union pacer_set_line *line = map_set(fd, place, &size);

	*lines = (struct set_lines){NULL, 0, 0};
	if (!line)
		return -1;
	if (check_head(&line->head, size)) {
		munmap((void *)line, size);
		errno = EBADMSG;
		return -1;
	}
	*lines = (struct set_lines){(union pacer_set_line *)line, line->head.lines, size};
	return 0;
}
