/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/sets_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/host.h"

uint32_t sets_maps_place(uint32_t copy, uint32_t number)
{
	return copy * PACER_SETS_MAX + number;
}

uint32_t sets_maps_hand_place(uint32_t copy, uint32_t number)
{
	return PACER_SET_HANDS + sets_maps_place(copy, number);
}

int sets_maps_clear(const struct attached *a, uint32_t copy, uint32_t number)
{
	return set_maps_move(a->sets_fd, sets_maps_hand_place(copy, number), -1) ||
		       set_maps_move(a->sets_fd, sets_maps_place(copy, number), -1)
		   ? -1
		   : 0;
}

int sets_maps_share(const struct attached *a, uint32_t copy, uint32_t number, uint32_t from)
{
	uint32_t other = copy ^ 1;

	if (set_maps_share(a->sets_fd, sets_maps_place(other, from), sets_maps_place(copy, number)))
		return -1;
	if (set_maps_share(a->sets_fd, sets_maps_hand_place(other, from),
			   sets_maps_hand_place(copy, number)) &&
	    errno != ENOENT)
		return -1;
	return 0;
}

int sets_maps_hand(const struct attached *a, uint32_t copy, uint32_t number, struct set_hand *hand)
{
	struct pacer_set_head set, added;

	if (set_maps_head(a->sets_fd, sets_maps_hand_place(copy, number), &added))
		return errno == ENOENT ? 0 : -1;
	if (set_maps_head(a->sets_fd, sets_maps_place(copy, number), &set))
		return -1;
	return set.serial == added.serial
		   ? set_maps_hand(a->sets_fd, sets_maps_hand_place(copy, number), hand)
		   : 0;
}

/* What has not come to its end, for the set of that serial; an empty place where that is nothing.
 */
static int put_hand(int sets_fd, uint32_t place, struct set_hand *hand, uint32_t serial)
{
	int fd = -1, result = 0;

	set_hand_settle(hand, host_now_ns());
	if (hand->n) {
		fd = set_maps_new_hand(hand, serial);
		result = fd < 0 ? -1 : 0;
	}
	if (!result)
		result = set_maps_move(sets_fd, place, fd);
	if (fd >= 0)
		close(fd);
	return result;
}

/* What goes on of it, under the new set's serial. */
static int renew_hand(const struct attached *a, uint32_t copy, uint32_t number, int from,
		      const struct set_about *about, uint32_t serial)
{
	struct set_hand hand = {.about = about->set ? about : NULL};
	int result = 0;

	if (from >= 0)
		result = sets_maps_hand(a, copy ^ 1, (uint32_t)from, &hand);
	if (!result)
		result = put_hand(a->sets_fd, sets_maps_hand_place(copy, number), &hand, serial);
	set_hand_free(&hand);
	return result;
}

int sets_maps_carry(const struct attached *a, uint32_t copy, uint32_t from, int sets_fd,
		    uint32_t number, const struct set_about *about)
{
	struct set_hand hand = {.about = about->set ? about : NULL};
	struct pacer_set_head head;
	int result = set_maps_head(sets_fd, sets_maps_place(0, number), &head);

	if (!result)
		result = sets_maps_hand(a, copy, from, &hand);
	if (!result)
		result = put_hand(sets_fd, sets_maps_hand_place(0, number), &hand, head.serial);
	set_hand_free(&hand);
	return result;
}

int sets_maps_renew(const struct attached *a, uint32_t copy, uint32_t number, int from,
		    const struct set_list *list, const struct set_about *about)
{
	uint32_t serial = set_maps_serial();
	int fd = serial ? set_maps_new(list, serial) : -1, result;

	if (fd < 0)
		return -1;
	result = set_maps_move(a->sets_fd, sets_maps_place(copy, number), fd);
	close(fd);
	return result ? -1 : renew_hand(a, copy, number, from, about, serial);
}

bool sets_maps_counted(const struct attached *a, uint32_t copy, uint32_t number,
		       const struct policy *policy)
{
	return a->copy[copy].policy.set_asks[number] ||
	       !policy_set_keyed(policy, policy->set[number].name);
}

int sets_maps_count(const struct attached *a, uint32_t copy, uint32_t number, int cpus,
		    struct pacer_set_count *sum)
{
	return sets_maps_counter(a, a->copy[copy].policy.set_counter[number], cpus, sum);
}

int sets_maps_counter(const struct attached *a, uint32_t id, int cpus, struct pacer_set_count *sum)
{
	struct pacer_set_count *each = calloc((size_t)cpus, sizeof(*each));
	int result = each ? bpf_map_lookup_elem(a->set_hits_fd, &id, each) : -1;

	*sum = (struct pacer_set_count){0, 0};
	for (int i = 0; i < cpus && !result; i++) {
		sum->packets += each[i].packets;
		sum->bytes += each[i].bytes;
	}
	free(each);
	return result;
}

int sets_maps_prefixes(const struct attached *a, uint32_t copy, uint32_t number, uint64_t *prefixes)
{
	struct pacer_set_head set, added;

	if (set_maps_head(a->sets_fd, sets_maps_place(copy, number), &set))
		return -1;
	*prefixes = (uint64_t)set.prefixes[0] + set.prefixes[1];
	if (set_maps_head(a->sets_fd, sets_maps_hand_place(copy, number), &added))
		return errno == ENOENT ? 0 : -1;
	if (added.serial == set.serial)
		*prefixes += (uint64_t)added.prefixes[0] + added.prefixes[1];
	return 0;
}

/* Of one place. */
static void learn_at(const struct attached *a, uint32_t place, const char *name)
{
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_lines lines;

	if (set_maps_lines_of(a->sets_fd, place, &lines))
		return;
	(void)set_words_take(&lines, &names);
	for (uint32_t i = 0; i < names.n; i++)
		set_words_learn(name, names.name[i]);
	set_names_free(&names);
	set_lines_free(&lines);
}

void sets_maps_learn(const struct attached *a, uint32_t copy, uint32_t number, const char *name)
{
	set_words_learn(name, SET_WORD_NONE);
	learn_at(a, sets_maps_place(copy, number), name);
	learn_at(a, sets_maps_hand_place(copy, number), name);
}

const char *sets_maps_why(void)
{
	switch (errno) {
	case ENOMEM:
		return "the kernel has no memory for them: divide them, or free some";
	case EAGAIN:
		return "the policy was changed meanwhile: try again";
	case EFBIG:
		return "more was added by hand than a set takes";
	case EBADMSG:
		return "what lies there is no set: unload, and load anew";
	}
	return strerror(errno);
}
