/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/set_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "sets/pack.h"
#include "sets/words.h"

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

/* A list as packets read it, and as tools do: to be freed. */
struct prepared {
	struct set_lines lines;
	struct set_packed packed;
};

static void let_go(struct prepared *p)
{
	int cause = errno;

	set_lines_free(&p->lines);
	set_packed_free(&p->packed);
	errno = cause;
}

/* `hand` NULL: the list is of a set. */
static int prepare(const struct set_list *list, const struct set_hand *hand, struct prepared *p)
{
	uint64_t seed;

	*p = (struct prepared){.packed = {NULL, 0, 0}};
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || set_pack(list, &p->packed) ||
	    (hand ? set_hand_build(hand, list, seed, &p->lines)
		  : set_build(list, seed, &p->lines)) ||
	    (!hand && list->about && set_words_put(&p->lines, list->about))) {
		let_go(p);
		return -1;
	}
	p->lines.line->head.list_bytes = (uint32_t)p->packed.n;
	return 0;
}

static uint64_t all_lines(const struct pacer_set_head *head)
{
	return head->lines + (head->list_bytes + LINE - 1) / LINE;
}

static int fill(int fd, const struct prepared *p)
{
	size_t size = all_lines(&p->lines.line->head) * LINE;
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -1;
	memcpy(at, p->lines.line, p->lines.n * LINE);
	if (p->packed.n)
		memcpy(at + p->lines.n * LINE, p->packed.byte, p->packed.n);
	return munmap(at, size);
}

uint64_t set_maps_lines(const struct set_list *list)
{
	struct prepared p;
	uint64_t n;

	if (prepare(list, NULL, &p))
		return 0;
	n = all_lines(&p.lines.line->head);
	let_go(&p);
	return n;
}

/* The map is complete before it is put anywhere, since packets use it from then on. */
static int new_map(const struct set_list *list, const struct set_hand *hand, uint32_t serial)
{
	struct prepared p;
	int fd;

	if (prepare(list, hand, &p))
		return -1;
	p.lines.line->head.serial = serial;
	fd = make_set((uint32_t)all_lines(&p.lines.line->head));
	if (fd >= 0 && fill(fd, &p)) {
		close_quietly(fd);
		fd = -1;
	}
	let_go(&p);
	return fd;
}

int set_maps_new(const struct set_list *list, uint32_t serial)
{
	return new_map(list, NULL, serial);
}

int set_maps_new_hand(const struct set_hand *hand, uint32_t serial)
{
	struct set_list list;
	int fd;

	if (set_hand_list(hand, &list))
		return -1;
	fd = new_map(&list, hand, serial);
	set_list_free(&list);
	return fd;
}

/* Not 0, however often the set is replaced. */
uint32_t set_maps_serial(void)
{
	uint32_t serial;

	return getrandom(&serial, sizeof(serial), 0) == sizeof(serial)
		   ? serial | (SET_MAPS_REPLACED + 1)
		   : 0;
}

int set_maps_at(int fd, uint32_t place)
{
	uint32_t id;

	return bpf_map_lookup_elem(fd, &place, &id) ? -1 : bpf_map_get_fd_by_id(id);
}

int set_maps_move(int fd, uint32_t place, int inner_fd)
{
	if (inner_fd >= 0)
		return bpf_map_update_elem(fd, &place, &inner_fd, BPF_ANY);
	return bpf_map_delete_elem(fd, &place) && errno != ENOENT ? -1 : 0;
}

int set_maps_move_all(int fd, const uint32_t *place, const int *inner_fd, uint32_t n)
{
	return bpf_map_update_batch(fd, place, inner_fd, &n, NULL) ? -1 : 0;
}

int set_maps_put(int fd, uint32_t place, const struct set_list *list)
{
	uint32_t serial = set_maps_serial();
	int inner_fd = serial ? set_maps_new(list, serial) : -1, result;

	if (inner_fd < 0)
		return -1;
	result = set_maps_move(fd, place, inner_fd);
	close_quietly(inner_fd);
	return result;
}

int set_maps_share(int fd, uint32_t from, uint32_t to)
{
	int inner_fd = set_maps_at(fd, from), cause = errno, result;

	if (inner_fd < 0 && cause != ENOENT)
		return -1;
	result = set_maps_move(fd, to, inner_fd);
	close_quietly(inner_fd);
	if (inner_fd >= 0 || result)
		return result;
	errno = cause;
	return -1;
}

/* All of a set's lines, mapped; NULL: errno. */
static const union pacer_set_line *map_set(int fd, uint32_t place, size_t *size)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int inner_fd = set_maps_at(fd, place);
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

/* The list behind the lines. */
static int unpack(const struct set_lines *lines, struct set_list *list)
{
	return set_unpack((const uint8_t *)(lines->line + lines->n), lines->line->head.list_bytes,
			  list);
}

static void let_lines_go(struct set_lines *lines)
{
	int cause = errno;

	set_lines_free(lines);
	errno = cause;
}

int set_maps_list(int fd, uint32_t place, struct set_list *list)
{
	struct set_lines lines;
	int result;

	if (set_maps_lines_of(fd, place, &lines))
		return -1;
	result = unpack(&lines, list);
	let_lines_go(&lines);
	return result;
}

int set_maps_hand(int fd, uint32_t place, struct set_hand *hand)
{
	struct set_lines lines;
	struct set_list list = {0};
	int result;

	if (set_maps_lines_of(fd, place, &lines))
		return errno == ENOENT ? 0 : -1;
	result = unpack(&lines, &list);
	if (!result)
		result = set_hand_take(&lines, &list, hand);
	let_lines_go(&lines);
	set_list_free(&list);
	return result;
}
