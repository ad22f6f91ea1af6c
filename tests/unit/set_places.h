/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the places of the sets of a pacer, and of its shadow, in memory, in the place of
 * sets/set_maps.h. What lies there is what packets read and what tools do. Whoever changes a place
 * may be killed before (killed.h).
 *
 * Memory: until places_end, which closes every descriptor that is above those at places_begin.
 */
#ifndef PACER_TEST_SET_PLACES_H
#define PACER_TEST_SET_PLACES_H

#include "kernel.h"

#include "live/sets_maps.h"

#define PLACES (2 * PACER_SET_HANDS)
#define MAPS   2048

/* A set, or what was added to one by hand: as packets read it, and as tools do. */
struct map {
	struct set_lines lines;
	struct set_list list;
	bool named; /* texts are behind the lines */
};

static struct map maps[MAPS];
static uint32_t n_maps;
static uint32_t places[2][PLACES]; /* of a pacer and its shadow; 0: none */
static int first_fd;		   /* from here on all are of maps */

/* A second descriptor of the same file is of the same map. */
static int new_fd(uint32_t map)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, &map, sizeof(map), 0), sizeof(map));
	return fd;
}

static uint32_t map_of(int fd)
{
	uint32_t map;

	assert_int_equal(pread(fd, &map, sizeof(map), 0), sizeof(map));
	return map;
}

uint32_t set_maps_serial(void)
{
	return 1000 + n_maps;
}

static int new_map(const struct set_list *list, uint32_t serial)
{
	struct map *m = &maps[n_maps];

	m->lines.line->head.serial = serial;
	for (size_t i = 0; i < list->n; i++)
		assert_int_equal(set_list_add(&m->list, &list->entry[i]), 0);
	return new_fd(n_maps);
}

int set_maps_new(const struct set_list *list, uint32_t serial)
{
	struct map *m;

	assert_true(++n_maps < MAPS);
	m = &maps[n_maps];
	assert_int_equal(set_build(list, draw(), &m->lines), 0);
	m->named = list->about;
	if (m->named)
		assert_int_equal(set_words_put(&m->lines, list->about), 0);
	return new_map(list, serial);
}

int set_maps_new_hand(const struct set_hand *hand, uint32_t serial)
{
	struct set_list list;
	int fd;

	assert_true(++n_maps < MAPS);
	assert_int_equal(set_hand_list(hand, &list), 0);
	assert_int_equal(set_hand_build(hand, &list, draw(), &maps[n_maps].lines), 0);
	fd = new_map(&list, serial);
	set_list_free(&list);
	return fd;
}

/* The map at a place; NULL: errno. */
static struct map *at(int fd, uint32_t place)
{
	errno = ENOENT;
	return places[fd][place] ? &maps[places[fd][place]] : NULL;
}

int set_maps_at(int fd, uint32_t place)
{
	return at(fd, place) ? new_fd(places[fd][place]) : -1;
}

/* Whoever changes a place may be killed before. */
int set_maps_move(int fd, uint32_t place, int inner_fd)
{
	if (kernel_changing)
		kernel_changing();
	places[fd][place] = inner_fd < 0 ? 0 : map_of(inner_fd);
	return 0;
}

int set_maps_move_all(int fd, const uint32_t *place, const int *inner_fd, uint32_t n)
{
	if (kernel_changing)
		kernel_changing();
	for (uint32_t i = 0; i < n; i++)
		places[fd][place[i]] = map_of(inner_fd[i]);
	return 0;
}

int set_maps_share(int fd, uint32_t from, uint32_t to)
{
	if (kernel_changing)
		kernel_changing();
	places[fd][to] = places[fd][from];
	errno = ENOENT;
	return places[fd][to] ? 0 : -1;
}

int set_maps_head(int fd, uint32_t place, struct pacer_set_head *head)
{
	const struct map *m = at(fd, place);

	if (m)
		*head = m->lines.line->head;
	return m ? 0 : -1;
}

int set_maps_list(int fd, uint32_t place, struct set_list *list)
{
	const struct map *m = at(fd, place);

	for (size_t i = 0; m && i < m->list.n; i++)
		assert_int_equal(set_list_add(list, &m->list.entry[i]), 0);
	return m ? 0 : -1;
}

int set_maps_lines_of(int fd, uint32_t place, struct set_lines *lines)
{
	const struct map *m = at(fd, place);
	size_t bytes = m ? m->lines.n * sizeof(*m->lines.line) : 0;

	*lines = (struct set_lines){.n = 0};
	if (!m)
		return -1;
	lines->line = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(lines->line != MAP_FAILED);
	memcpy(lines->line, m->lines.line, bytes);
	lines->n = m->lines.n;
	lines->mapped = bytes;
	return 0;
}

int set_maps_hand(int fd, uint32_t place, struct set_hand *hand)
{
	const struct map *m = at(fd, place);

	return m ? set_hand_take(&m->lines, &m->list, hand) : 0;
}

static void places_begin(void)
{
	first_fd = dup(STDIN_FILENO);
	close(first_fd);
}

static void places_end(void)
{
	for (uint32_t i = 1; i <= n_maps; i++) {
		set_lines_free(&maps[i].lines);
		set_list_free(&maps[i].list);
	}
	memset(maps, 0, sizeof(maps));
	memset(places, 0, sizeof(places));
	n_maps = 0;
	(void)close_range((unsigned int)first_fd, ~0u, 0);
}

#endif
