/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/site.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "abi.h"

#define PROGRAM	   "pacer"
#define DISPATCHER "xdp_dispatcher"
#define RETRIES	   8 /* a program may end before its id is opened */

_Static_assert(SITE_NAME == BPF_OBJ_NAME_LEN, "a name would not fit");

static int query(int ifindex, struct site *site)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, now);
	int err = bpf_xdp_query(ifindex, 0, &now);

	if (err)
		return err;
	site->id = now.drv_prog_id;
	site->mode = SITE_NATIVE;
	if (!site->id && now.skb_prog_id) {
		site->id = now.skb_prog_id;
		site->mode = SITE_SKB;
	} else if (!site->id && now.hw_prog_id) {
		site->id = now.hw_prog_id;
		site->mode = SITE_HW;
	}
	return 0;
}

int64_t site_id(int ifindex)
{
	struct site site;

	return query(ifindex, &site) ? -1 : (int64_t)site.id;
}

static const struct {
	const char *name, *ip_word;
	uint32_t flag;
} modes[] = {
    [SITE_NATIVE] = {"native", "xdp", XDP_FLAGS_DRV_MODE},
    [SITE_SKB] = {"skb", "xdpgeneric", XDP_FLAGS_SKB_MODE},
    [SITE_HW] = {"hw", "xdpoffload", XDP_FLAGS_HW_MODE},
};

const char *site_mode_name(enum site_mode mode)
{
	return modes[mode].name;
}

uint32_t site_mode_flag(enum site_mode mode)
{
	return modes[mode].flag;
}

const char *site_ip_word(const struct site *site)
{
	return modes[site->mode].ip_word;
}

struct asking {
	uint32_t abi;
	bool tools; /* see struct site */
	bool is;
	int err; /* a map or the program could not be read, so that it may be */
};

/* Reads the first words of a map, if it is the control map of a pacer. */
static void look_for_control(int map_fd, const struct bpf_map_info *info, struct asking *asking)
{
	const struct pacer_control *control;
	uint32_t key = 0, *value;

	if (strcmp(info->name, ".data.control") || info->type != BPF_MAP_TYPE_ARRAY ||
	    info->value_size < 2 * sizeof(*value))
		return;
	value = malloc(info->value_size);
	if (!value || bpf_map_lookup_elem(map_fd, &key, value)) {
		asking->err = -errno;
	} else if (value[0] == PACER_MAGIC) {
		control = (const void *)value;
		asking->abi = value[1];
		asking->tools = asking->abi != PACER_ABI_VERSION ||
				info->value_size < sizeof(*control) || control->tools;
		asking->is = true;
	}
	free(value);
}

static void look_for_next(int map_fd, const struct bpf_map_info *info, struct asking *asking)
{
	(void)map_fd;
	asking->is |= info->type == BPF_MAP_TYPE_PROG_ARRAY && !strcmp(info->name, "pacer_next");
}

static void ask_map(uint32_t id,
		    void (*look)(int map_fd, const struct bpf_map_info *info,
				 struct asking *asking),
		    struct asking *asking)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		asking->err = -errno;
	else
		look(fd, &info, asking);
	if (fd >= 0)
		close(fd);
}

/*
 * Of a program of the pacer's name, its maps until one is what is asked for. 1: it is; 0: none is;
 * -errno: that cannot be told.
 */
static int ask_maps(int prog_fd,
		    void (*look)(int map_fd, const struct bpf_map_info *info,
				 struct asking *asking),
		    struct asking *asking)
{
	struct bpf_prog_info info = {0};
	uint32_t ids[64], len = sizeof(info), n;

	info.nr_map_ids = sizeof(ids) / sizeof(*ids);
	info.map_ids = (uintptr_t)ids;
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len))
		return -errno;
	if (strcmp(info.name, PROGRAM))
		return 0;
	n = info.nr_map_ids < sizeof(ids) / sizeof(*ids) ? info.nr_map_ids
							 : sizeof(ids) / sizeof(*ids);
	for (uint32_t i = 0; i < n && !asking->is; i++)
		ask_map(ids[i], look, asking);
	return asking->is ? 1 : asking->err;
}

/* Notes what is known of it. 1: it is a pacer; 0: it is none; -errno. */
static int is_pacer(struct site *site)
{
	struct asking asking = {0};
	int is = ask_maps(site->pacer_fd, look_for_control, &asking);

	site->abi = asking.abi;
	site->tools = asking.tools;
	return is;
}

int site_has_shadow(int prog_fd)
{
	return ask_maps(prog_fd, look_for_next, &(struct asking){0});
}

static bool may_be_pacer(const struct xdp_program *p)
{
	return !strcmp(xdp_program__name(p), PROGRAM);
}

static bool asked_is_pacer(const struct xdp_program *p)
{
	return ask_maps(xdp_program__fd(p), look_for_control, &(struct asking){0}) > 0;
}

/* When it was loaded, in ns since the machine began; 0: that cannot be told. */
static uint64_t loaded_ns(const struct xdp_program *p)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(xdp_program__fd(p), &info, &len) ? 0 : info.load_time;
}

/*
 * Of two pacers the one that was loaded first is the pacer, and the other its second, whichever the
 * dispatcher calls first: it has counted for longer.
 */
static void note_second(struct site *site, struct xdp_program *p)
{
	struct xdp_program *first = site->entry;
	uint64_t ns = loaded_ns(p);

	if (ns && ns < loaded_ns(first) && asked_is_pacer(first)) {
		site->entry = p;
		p = first;
	}
	site->second_id = xdp_program__id(p);
}

/*
 * Finds the first program of the pacer's name among those that the dispatcher calls, and another
 * one that is a pacer: which of the two is the first note_second says.
 */
static int look_within(struct site *site)
{
	struct xdp_program *p = NULL;
	long err;

	site->dispatched = xdp_multiprog__get_from_ifindex(site->ifindex);
	err = libxdp_get_error(site->dispatched);
	if (err) {
		site->dispatched = NULL;
		return err == -ENOENT ? 0 : (int)err;
	}
	/* A dispatcher without its pins counts as a single program: nobody can add to it. */
	if (xdp_multiprog__is_legacy(site->dispatched)) {
		xdp_multiprog__close(site->dispatched);
		site->dispatched = NULL;
		return 0;
	}
	while (!site->second_id && (p = xdp_multiprog__next_prog(p, site->dispatched))) {
		if (!may_be_pacer(p))
			continue;
		if (!site->entry)
			site->entry = p;
		else if (asked_is_pacer(p))
			note_second(site, p);
	}
	return 0;
}

struct xdp_program *site_program(const struct site *site, uint32_t id)
{
	struct xdp_program *p = NULL;

	while (site->dispatched && (p = xdp_multiprog__next_prog(p, site->dispatched)))
		if (xdp_program__id(p) == id)
			return p;
	return NULL;
}

bool site_has_other(const struct site *site, uint32_t id)
{
	struct xdp_program *p = NULL;

	while (site->dispatched && (p = xdp_multiprog__next_prog(p, site->dispatched)))
		if (xdp_program__id(p) != id && may_be_pacer(p))
			return true;
	return false;
}

static int look(struct site *site)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int err = query(site->ifindex, site);

	if (err || !site->id)
		return err;
	site->fd = bpf_prog_get_fd_by_id(site->id);
	if (site->fd < 0 || bpf_obj_get_info_by_fd(site->fd, &info, &len))
		return -errno;
	memcpy(site->name, info.name, sizeof(site->name));
	if (!strcmp(site->name, PROGRAM)) {
		site->pacer_fd = site->fd;
		site->pacer_id = site->id;
	} else if (!strcmp(site->name, DISPATCHER)) {
		err = look_within(site);
		if (err)
			return err;
		if (site->entry) {
			site->pacer_fd = xdp_program__fd(site->entry);
			site->pacer_id = xdp_program__id(site->entry);
		}
	}
	site->named = site->pacer_fd >= 0;
	err = site->named ? is_pacer(site) : 0;
	site->pacer = err > 0;
	return err < 0 ? err : 0;
}

void site_close(struct site *site)
{
	if (site->dispatched)
		xdp_multiprog__close(site->dispatched);
	if (site->fd >= 0)
		close(site->fd);
	*site = (struct site){.fd = -1, .pacer_fd = -1};
}

int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *error)
{
	int err = -ENOENT;

	for (int i = 0; i < RETRIES && err == -ENOENT; i++) {
		*site = (struct site){.ifindex = ifindex, .fd = -1, .pacer_fd = -1};
		err = look(site);
		if (!err)
			return 0;
		site_close(site);
	}
	if (err == -EPERM)
		return policy_fail(
		    error, 0, "%s: no privilege to look at its XDP programs: run as root", ifname);
	return policy_fail(error, 0, "%s: its XDP programs cannot be read: %s", ifname,
			   strerror(-err));
}

bool site_lost_its_pins(const struct site *site)
{
	return !strcmp(site->name, DISPATCHER) && !site->dispatched;
}
