/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a pacer is still on its interface: what cannot be looked at is not gone. What an
 * interface has is said here, not asked of a kernel, and which interfaces there are. Nor is a
 * shadow lost, or another version's, that cannot be read. And who looks again and again.
 */
#include "oracle.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/attached.h"
#include "live/site.h"
#include "live/watch.h"

#define OURS   7u
#define SECOND 12u /* that judges after it */

static struct policy_error error;

static struct {
	bool unseen; /* it cannot be looked at */
	uint32_t id; /* of a pacer; 0: none */
	bool named;  /* it says so */
	bool opens;  /* and can be opened */
	bool pacer;  /* its control map says so */
	uint32_t abi;
} on;

/* Beside lo: that are there, and in the list. */
static struct {
	bool other, in_list, no_list, no_socket, other_unseen, other_paced, renamed;
} net;
static int goes;    /* errno of looking for lo once it was looked at; 0: it stays */
static bool is_off; /* it has gone so */

unsigned int if_nametoindex(const char *name)
{
	if (!strcmp(name, "lo") && is_off)
		errno = goes;
	if (!strcmp(name, "lo"))
		return is_off ? 0 : 1;
	errno = net.no_socket ? EMFILE : ENODEV;
	return net.other && !strcmp(name, "other") ? 2 : 0;
}

char *if_indextoname(unsigned int index, char name[IF_NAMESIZE])
{
	return strcpy(name, net.renamed ? "renamed" : index == 1 ? "lo" : "other");
}

#define LONG_NAME "other-by-a-name-of-its-own"

bool __wrap_link_of_altname(const char *altname, char own[IF_NAMESIZE]);
bool __real_link_of_altname(const char *altname, char own[IF_NAMESIZE]);

bool __wrap_link_of_altname(const char *altname, char own[IF_NAMESIZE])
{
	strcpy(own, "other");
	return !strcmp(altname, LONG_NAME);
}

struct if_nameindex *if_nameindex(void)
{
	static char lo[] = "lo", other[] = "other";
	static struct if_nameindex list[3];

	list[0] = (struct if_nameindex){1, lo};
	list[1] = (struct if_nameindex){net.in_list ? 2 : 0, other};
	errno = ENOBUFS;
	return net.no_list ? NULL : list;
}

void if_freenameindex(struct if_nameindex *list)
{
	(void)list;
}

static unsigned int grown, not_grown; /* from 1; 0: never */

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	errno = ENOMEM;
	return ++grown == not_grown ? NULL : __real_reallocarray(p, n, size);
}

int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *why)
{
	if (on.unseen || (!strcmp(ifname, "other") && net.other_unseen))
		return policy_fail(why, 0, "%s: it cannot be seen", ifname);
	is_off = goes != 0;
	*site = (struct site){.ifindex = ifindex,
			      .id = on.id,
			      .fd = -1,
			      .named = on.named && (net.other_paced || !strcmp(ifname, "lo")),
			      .pacer = on.pacer,
			      .abi = on.abi,
			      .pacer_id = on.id,
			      .second_id = SECOND,
			      .pacer_fd = on.opens ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1};
	return 0;
}

void site_close(struct site *site)
{
	if (site->pacer_fd >= 0)
		close(site->pacer_fd);
}

static bool ids_change; /* once it was asked */

int64_t site_id(int ifindex)
{
	(void)ifindex;
	if (ids_change)
		return (int64_t)on.id++;
	return on.unseen ? -1 : (int64_t)on.id;
}

const char *site_mode_name(enum site_mode mode)
{
	(void)mode;
	return "native";
}

const char *site_ip_word(const struct site *site)
{
	(void)site;
	return "xdp";
}

bool site_lost_its_pins(const struct site *site)
{
	(void)site;
	return false;
}

static const struct {
	const char *name;
	bool here; /* its index is that of the name */
	bool unseen;
	uint32_t id;
	bool still, gone;
	const char *says;
} cases[] = {
    {"lo", true, true, 0, false, false, "lo: it cannot be seen"},
    {"lo", true, false, 0, false, true, "lo: its pacer was taken off or replaced meanwhile"},
    {"lo", true, false, OURS + 1, false, true, "lo: its pacer was taken off or replaced meanwhile"},
    /* its program is there, and its maps cannot be read */
    {"lo", true, false, OURS, false, false, "lo: its XDP program is not the pacer"},
    {"lo", false, true, 0, false, true, "lo: it cannot be seen"},
    {"no-such", true, true, 0, false, true, "no-such: there is no such interface here"},
};

static void test_gone_or_unknown(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct attached a = {.prog_id = OURS};

		snprintf(a.ifname, sizeof(a.ifname), "%s", cases[i].name);
		a.ifindex = (int)if_nametoindex("lo") + !cases[i].here;
		on.unseen = cases[i].unseen;
		on.id = cases[i].id;
		if (!attached_still(&a, &error) != cases[i].still ||
		    attached_gone(&a) != cases[i].gone ||
		    strncmp(error.text, cases[i].says, strlen(cases[i].says)))
			fail_msg("case %zu: gone: %d; it says %s", i, attached_gone(&a),
				 error.text);
	}
}

/* --- its shadow ------------------------------------------------------------------------------ */

static struct {
	int program,
	    info; /* errno of opening the program, and of reading what it is; 0: they work */
} fails;

/* --- programs and their maps ------------------------------------------------------------------ */

#define MAPS   32
#define INNER  100 /* ids of the maps in maps of maps: of samplers, and of their heads */
#define FD_MAX 1024

/* What a pacer has, and a shadow more. */
static const struct has {
	const char *name;
	uint32_t key_size, value_size, entries;
	bool next, shadows; /* of a pacer with a shadow; of a shadow */
} all_maps[] = {
    {".data.control", 4, sizeof(struct pacer_control), 1, false, false},
    {".data.policy", 4, 2 * sizeof(struct pacer_copy), 1, false, false},
    {"pacer_lines", 4, sizeof(struct pacer_line), 64, false, false},
    {"pacer_throttles", 4, sizeof(struct pacer_throttle_state), PACER_THROTTLES, false, false},
    {"pacer_log", 4, sizeof(struct pacer_log), 1, false, false},
    {"pacer_samples", 4, 4, 1, false, false},
    {"pacer_heads", 4, 4, 1, false, false},
    {"pacer_leases", 4, sizeof(struct pacer_throttle_lease), 1, false, false},
    {"pacer_devices", 4, 4, 4, false, false},
    {"pacer_cpus", 4, 4, 4, false, false},
    {"pacer_pool_leas", 4, sizeof(struct pacer_pool_lease), 1, false, false},
    {"pacer_counts", 4, sizeof(struct pacer_counters), 1, false, false},
    {"pacer_sets", 4, 4, PACER_SET_PLACES, false, false},
    {"pacer_set_hits", 4, sizeof(struct pacer_set_count), 1, false, false},
    {"pacer_allow4", 8, sizeof(struct pacer_allow_value), 8, false, false},
    {"pacer_allow6", 20, sizeof(struct pacer_allow_value), 8, false, false},
    {"pacer_banned4", sizeof(struct pacer_tools4), 8, 8, false, false},
    {"pacer_banned6", sizeof(struct pacer_tools6), 8, 8, false, false},
    {"pacer_next", 4, 4, 1, true, false},
    {"pacer_changes", 4, sizeof(struct pacer_changes), 1, false, true},
    {".data.shadow", 4, sizeof(struct pacer_shadow), 1, false, true},
    {"pacer_differ", 4, sizeof(struct pacer_sampler), 2, false, true},
};

static struct has maps[MAPS]; /* the program's: their ids are their places, from 1 */
static uint32_t n_maps, shadow_of_it, inner_size_less;
static bool no_samples;		  /* in the maps of maps */
static struct pacer_control says; /* what the control map begins with */
static int id_of_fd[FD_MAX];	  /* of a map that is open */
static int mappings;		  /* that there are */

static struct {
	unsigned int n, at;
	int err;
} call;

static bool call_fails(void)
{
	errno = call.err;
	return ++call.n == call.at;
}

static int open_map(uint32_t id, size_t len)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_in_range(fd, 0, FD_MAX - 1);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	id_of_fd[fd] = (int)id;
	return fd;
}

static bool is_map(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

int bpf_map_get_fd_by_id(__u32 id)
{
	const struct has *m;
	int fd;

	if (call_fails())
		return -errno;
	if (id >= INNER)
		return open_map(id,
				2 * sizeof(struct pacer_heads) + 2 * sizeof(struct pacer_sampler));
	m = &maps[id - 1];
	fd = open_map(id, (size_t)m->value_size * m->entries);
	if (!strcmp(m->name, ".data.control") && m->value_size >= sizeof(says))
		assert_int_equal(pwrite(fd, &says, sizeof(says), 0), sizeof(says));
	return fd;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint32_t id = id_of_fd[fd];

	(void)key;
	if (call_fails())
		return -errno;
	*(uint32_t *)value = !strcmp(maps[id - 1].name, "pacer_next")	   ? shadow_of_it
			     : no_samples				   ? 0
			     : !strcmp(maps[id - 1].name, "pacer_samples") ? INNER
									   : INNER + 1;
	errno = ENOENT;
	return *(uint32_t *)value ? 0 : -ENOENT;
}

int bpf_prog_get_fd_by_id(__u32 id)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(id, OURS);
	if (fails.program)
		close(fd);
	errno = fails.program;
	return fails.program ? -fails.program : fd;
}

static void info_of_map(uint32_t id, struct bpf_map_info *info)
{
	info->id = id;
	info->max_entries = 2;
	info->value_size =
	    (id == INNER ? sizeof(struct pacer_sampler) : sizeof(struct pacer_heads)) -
	    inner_size_less;
	if (id >= INNER)
		return;
	snprintf(info->name, sizeof(info->name), "%s", maps[id - 1].name);
	info->key_size = maps[id - 1].key_size;
	info->value_size = maps[id - 1].value_size;
	info->max_entries = maps[id - 1].entries;
}

/* Of a map that is open, or else of the program. */
int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct bpf_prog_info *program = info;
	uint32_t *ids;

	if (call_fails())
		return -errno;
	errno = fails.info;
	if (fails.info)
		return -fails.info;
	if (is_map(fd)) {
		memset(info, 0, *len);
		info_of_map(id_of_fd[fd], info);
		return 0;
	}
	ids = (uint32_t *)(uintptr_t)program->map_ids;
	for (uint32_t i = 0; i < n_maps && i < program->nr_map_ids; i++)
		ids[i] = i + 1;
	program->nr_map_ids = n_maps;
	program->id = on.id;
	return 0;
}

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len);

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (call_fails())
		return MAP_FAILED;
	mappings++;
	return __real_mmap(at, len, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t len)
{
	mappings--;
	return __real_munmap(at, len);
}

uint64_t host_now_ns(void)
{
	return 1;
}

uint64_t host_resolution_ns(void)
{
	return 1;
}

void host_wait_until(uint64_t until_ns)
{
	(void)until_ns;
}

int host_cpus(struct policy_error *why)
{
	return call_fails() ? policy_fail(why, 0, "the CPUs cannot be counted") : 2;
}

/* Only one that is there and is no shadow of this version's is said to be another's. */
static const struct {
	int next_fd;
	uint32_t id;
	int program, info, result;
	const char *says;
} shadows[] = {
    {-1, 0, 0, 0, 1, "lo: no shadow runs beside its policy"},
    {0, 0, 0, 0, 1, "lo: its shadow was lost, as what is pinned"},
    {0, OURS, ENOENT, 0, 1, "lo: its shadow was lost, as what is pinned"},
    {0, OURS, EMFILE, 0, -1, "lo: its shadow cannot be opened: Too many open files"},
    {0, OURS, EPERM, 0, -1,
     "lo: its shadow cannot be opened: Operation not permitted: run as root"},
    {0, OURS, 0, ENOMEM, -1, "lo: its program cannot be read: Cannot allocate memory"},
    {0, OURS, 0, 0, -1, "lo: its shadow is of another version"},
};

static void test_shadow_lost_or_unread(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(shadows) / sizeof(*shadows); i++) {
		struct attached a = {
		    .ifname = "lo", .next_fd = shadows[i].next_fd, .shadow_id = shadows[i].id};
		struct attached s;
		int result;

		fails.program = shadows[i].program;
		fails.info = shadows[i].info;
		errno = EMFILE; /* of something before */
		result = attached_shadow(&a, &s, &error);
		if (result != shadows[i].result ||
		    strncmp(error.text, shadows[i].says, strlen(shadows[i].says)))
			fail_msg("shadow %zu: %d: %s", i, result, error.text);
	}
}

/* It has another program, and whether that has its state cannot be read. */
static void test_of_another_program_unknown(void **unused)
{
	struct attached a = {.prog_id = OURS, .ifname = "lo"};

	(void)unused;
	a.ifindex = (int)if_nametoindex("lo");
	on.unseen = false;
	on.named = on.pacer = true;
	on.abi = PACER_ABI_VERSION;
	on.opens = false;
	on.id = OURS + 1;
	assert_false(attached_gone(&a));
	assert_true(attached_goes_on(&a));
	assert_int_equal(attached_still(&a, &error), -1);
	assert_ptr_equal(strstr(error.text, "lo: its program cannot be opened"), error.text);
	on.abi++; /* one of another version has not */
	assert_true(attached_gone(&a));
	on.named = on.pacer = false;
	assert_true(attached_gone(&a));
	assert_false(attached_goes_on(&a));
}

/* Who serves a pacer does not let it go because it cannot be looked at once. */
static void test_followed_though_unseen(void **unused)
{
	static struct pacer_copy copy[2];
	struct pacer_control control = {0};
	struct attached a = {.prog_id = OURS,
			     .site_id = OURS,
			     .ifname = "lo",
			     .prog_fd = -1,
			     .control = &control,
			     .copy = copy};

	(void)unused;
	a.ifindex = (int)if_nametoindex("lo");
	on.named = false;
	on.id = OURS;
	on.unseen = false;
	assert_int_equal(attached_follow("lo", &a, &error), 0);
	on.unseen = true;
	assert_int_equal(attached_follow("lo", &a, &error), 0);
	assert_int_equal(a.prog_id, OURS);
	assert_int_equal(attached_follow("no-such", &a, &error), -1);
	a = (struct attached){
	    .prog_id = OURS, .site_id = OURS, .ifindex = (int)if_nametoindex("lo")};
	on.unseen = false;
	on.id = OURS + 1;
	assert_int_equal(attached_follow("lo", &a, &error), -1);
}

/* What cannot be told now is asked again; who is gone, or of another version, is not. */
static void test_next(void **unused)
{
	struct attached a = {.prog_id = OURS, .ifname = "lo", .prog_fd = -1};

	(void)unused;
	on.named = on.opens = on.pacer = true;
	on.id = OURS + 1;
	on.abi = PACER_ABI_VERSION;
	on.unseen = true;
	assert_int_equal(attached_next("lo", &a, &error), -1);
	on.unseen = false;
	on.opens = false; /* its program, or its maps */
	assert_int_equal(attached_next("lo", &a, &error), -1);
	on.abi++;
	assert_int_equal(attached_next("lo", &a, &error), 1);
	on.abi--;
	on.named = on.pacer = false;
	assert_int_equal(attached_next("lo", &a, &error), 1);
	net.no_socket = true;
	assert_int_equal(attached_next("no-such", &a, &error), -1);
	net.no_socket = false;
	assert_int_equal(attached_next("no-such", &a, &error), 1);
	assert_int_equal(a.prog_id, OURS);
}

/* --- its maps --------------------------------------------------------------------------------- */

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < FD_MAX; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void begin(bool shadow)
{
	n_maps = 0;
	for (size_t i = 0; i < ARRAY(all_maps); i++)
		if (shadow ? !all_maps[i].next : !all_maps[i].shadows)
			maps[n_maps++] = all_maps[i];
	memset(id_of_fd, 0, sizeof(id_of_fd));
	memset(&call, 0, sizeof(call));
	memset(&fails, 0, sizeof(fails));
	says = (struct pacer_control){.magic = PACER_MAGIC, .abi_version = PACER_ABI_VERSION};
	shadow_of_it = OURS;
	inner_size_less = 0;
	no_samples = false;
	on.unseen = false;
	on.named = on.opens = true;
	on.id = OURS;
	on.pacer = true;
	on.abi = PACER_ABI_VERSION;
	call.err = ENOMEM;
	memset(&net, 0, sizeof(net));
	goes = 0;
	is_off = false;
	grown = not_grown = 0;
	ids_change = false;
}

/* Finds it and lets it go; whatever comes of it, nothing of it is left. */
static int find(struct attached *copy)
{
	int files = open_files(), result;
	struct attached a;

	result = attached_find("lo", &a, &error);
	if (copy)
		*copy = a;
	if (!result)
		attached_release(&a);
	assert_int_equal(open_files(), files);
	assert_int_equal(mappings, 0);
	return result;
}

static int find_shadow(void)
{
	struct attached a = {.ifname = "lo", .next_fd = 0, .shadow_id = OURS}, s;
	int files = open_files(), result = attached_shadow(&a, &s, &error);

	if (!result)
		attached_release(&s);
	assert_int_equal(open_files(), files);
	assert_int_equal(mappings, 0);
	return result;
}

static void test_found(void **unused)
{
	struct attached a;

	(void)unused;
	begin(false);
	assert_int_equal(find(&a), 0);
	assert_true(a.n_lines == 64 && a.n_samplers == 2 && a.shadow_id == OURS);
	assert_int_equal(a.second_id, SECOND);
	shadow_of_it = 0; /* it was lost */
	assert_int_equal(find(&a), 0);
	assert_true(a.next_fd >= 0 && !a.shadow_id);
	inner_size_less = 8; /* of another version: as if there were none */
	assert_int_equal(find(&a), 0);
	assert_null(a.sampler);
	begin(true);
	assert_int_equal(find_shadow(), 0);
}

/* Who follows it sees the samples of the first policy that has any. */
static void test_sampled_since(void **unused)
{
	int files = open_files();
	struct attached a;

	(void)unused;
	begin(false);
	no_samples = true;
	assert_int_equal(attached_find("lo", &a, &error), 0);
	on.id = a.site_id;
	for (int of = 0; of < 5; of++) {
		a.copy[of == 0].policy.sampling.reasons = 1; /* at first not the one in force */
		a.copy[0].policy.sampling.snap = of >= 3 ? 64 : 0;
		no_samples = of < 2;
		assert_int_equal(attached_follow("lo", &a, &error), 0);
		assert_int_equal(!!a.sampler, of >= 2);
		assert_int_equal(!!a.heads, of >= 3);
	}
	assert_int_equal(a.n_samplers, 2);
	attached_release(&a);
	assert_int_equal(open_files(), files);
	assert_int_equal(mappings, 0);
}

/* Each call in turn: it is not found, and that is said; what cannot be read is not lacking. */
static void test_each_call_fails(void **unused)
{
	unsigned int n;

	(void)unused;
	for (int shadow = 0; shadow < 2; shadow++) {
		begin(shadow);
		assert_int_equal(shadow ? find_shadow() : find(NULL), 0);
		n = call.n;
		assert_true(n > 2 * ARRAY(all_maps));
		for (unsigned int i = 1; i <= n; i++)
			for (int denied = 0; denied < 2; denied++) {
				begin(shadow);
				call.at = i;
				call.err = denied ? EPERM : ENOMEM;
				if (!(shadow ? find_shadow() : find(NULL)) ||
				    strstr(error.text, "lacks") || strstr(error.text, "version"))
					fail_msg("call %u: it says %s", i, error.text);
			}
	}
}

/* One that lacks a map, or has one of another size, is of another version, or lacks it. One that
 * has another of that name has the first. */
static void test_other_maps(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(all_maps); i++)
		for (int shadow = 0; shadow < 2; shadow++) {
			bool matters = shadow || !all_maps[i].next;

			if (shadow ? all_maps[i].next : all_maps[i].shadows)
				continue;
			begin(shadow);
			for (size_t k = 0; k < n_maps; k++)
				if (!strcmp(maps[k].name, all_maps[i].name))
					maps[k].name = "another";
			if (!!(shadow ? find_shadow() : find(NULL)) != matters)
				fail_msg("without %s: %s", all_maps[i].name, error.text);
			begin(shadow);
			maps[n_maps++] = all_maps[i];
			if (shadow ? find_shadow() : find(NULL))
				fail_msg("with two of %s: %s", all_maps[i].name, error.text);
			begin(shadow);
			for (size_t k = 0; k < n_maps; k++)
				if (!strcmp(maps[k].name, all_maps[i].name)) {
					maps[k].key_size += 4;
					maps[k].value_size += 8;
					maps[k].entries += 1;
				}
			/* Of some only what begins it matters, or nothing. */
			if ((shadow ? find_shadow() : find(NULL)) &&
			    !strstr(error.text, "lacks a map") && !strstr(error.text, "version"))
				fail_msg("with another %s: %s", all_maps[i].name, error.text);
		}
}

/* What says that it is none, and what says that it is another version's. */
static void test_other_versions(void **unused)
{
	(void)unused;
	begin(false);
	says.magic++;
	assert_int_equal(find(NULL), -1);
	assert_ptr_equal(strstr(error.text, "lo: its program is named pacer, but is not one"),
			 error.text);
	begin(false);
	says.abi_version++;
	assert_int_equal(find(NULL), -1);
	assert_non_null(strstr(error.text, "takes over, `xdp-pacer unload lo` takes it off"));
	begin(false);
	maps[0].value_size = 4; /* its control map */
	assert_int_equal(find(NULL), -1);
	begin(true);
	says.abi_version++;
	assert_int_equal(find_shadow(), -1);
	assert_ptr_equal(strstr(error.text, "lo: its shadow is of another version"), error.text);
	begin(false);
	while (n_maps < MAPS)
		maps[n_maps++] = (struct has){"another", 4, 4, 1, false, false};
	n_maps = 64; /* more than are looked at */
	assert_int_equal(find(NULL), 0);
}

/* --- which have a pacer ----------------------------------------------------------------------- */

static int counted;

static int count(const char *ifname, void *unused)
{
	(void)unused;
	assert_string_equal(ifname, "lo");
	counted++;
	return 7; /* the first will do */
}

/* Where one cannot be looked at, that is said: it is not taken for one that has none. */

static void test_each(void **unused)
{
	static const struct {
		bool unseen, named;
		int goes, result;
		const char *says;
	} cases[] = {
	    {false, true, 0, 7, ""},
	    {true, true, 0, -1, "lo: it cannot be seen"},
	    {false, false, 0, 0, ""},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		int files = open_files(), result;

		begin(false);
		on.unseen = cases[i].unseen;
		on.named = cases[i].named;
		counted = 0;
		error.text[0] = 0;
		result = attached_each(count, NULL, &error);
		if (result != cases[i].result || counted != (result == 7) ||
		    strcmp(error.text, cases[i].says) != 0)
			fail_msg("case %zu: %d, %d: %s", i, result, counted, error.text);
		assert_int_equal(open_files(), files);
	}
	begin(false); /* one that is gone by the time it is looked at, or is there */
	on.named = false;
	net.in_list = net.other_unseen = true;
	assert_int_equal(attached_each(count, NULL, &error), 0);
	net.other = true;
	assert_int_equal(attached_each(count, NULL, &error), -1);
	assert_string_equal(error.text, "other: it cannot be seen");
}

/* Another program over the same state is the same pacer, and is had from then on. */
static void test_goes_on(void **unused)
{
	int files = open_files();
	struct attached a;
	uint32_t id;

	(void)unused;
	begin(false);
	assert_int_equal(attached_find("lo", &a, &error), 0);
	assert_false(attached_gone(&a));
	id = a.control_id;
	on.id = OURS + 1;
	assert_true(attached_goes_on(&a));
	assert_int_equal(a.site_id, OURS + 1);
	assert_int_equal(a.control_id, id);
	on.unseen = true;
	assert_true(attached_goes_on(&a));
	on.unseen = false;
	on.id = OURS + 2;
	a.control_id++; /* it has state of its own */
	assert_false(attached_goes_on(&a));
	assert_int_equal(a.site_id, OURS + 1);
	a.control_id = id;
	on.named = false;
	on.id = 0;
	assert_false(attached_goes_on(&a));
	attached_release(&a);
	assert_int_equal(open_files(), files);
}

/*
 * Its interface is `other` by now, and another has its name: that is taken only where the one
 * before is on none.
 */
static void test_next_of_another_name(void **unused)
{
	int files = open_files(), mapped = mappings;
	struct attached a;

	(void)unused;
	begin(false);
	assert_int_equal(attached_find("lo", &a, &error), 0);
	net.other = net.other_paced = true;
	a.ifindex = 2;
	assert_int_equal(attached_next("lo", &a, &error), 1);
	assert_string_equal(error.text, "lo: its name is other now");
	assert_int_equal(a.ifindex, 2);
	net.other_paced = false; /* it was taken off before */
	assert_int_equal(attached_next("lo", &a, &error), 0);
	assert_int_equal(a.ifindex, 1);
	net.other_paced = true;
	a.ifindex = 2;
	a.control_id++; /* it has the state of another */
	assert_int_equal(attached_next("lo", &a, &error), 0);
	assert_int_equal(a.ifindex, 1);
	on.id = OURS + 1; /* the same interface */
	assert_int_equal(attached_next("lo", &a, &error), 0);
	assert_int_equal(a.prog_id, OURS + 1);
	net.other = net.other_paced = false;
	attached_release(&a);
	assert_int_equal(open_files(), files);
	assert_int_equal(mappings, mapped);
}

/* What waited for its turn meanwhile is done by that one; to other state it is not done. */
static void test_still_over_the_same_state(void **unused)
{
	int files = open_files(), mapped = mappings;
	struct attached a;
	uint32_t id;

	(void)unused;
	begin(false);
	assert_int_equal(attached_find("lo", &a, &error), 0);
	id = a.control_id;
	for (uint32_t program = OURS; program < OURS + 3; program++) {
		on.id = program;
		assert_int_equal(attached_still(&a, &error), 0);
		assert_int_equal(a.prog_id, program);
		assert_int_equal(a.site_id, program);
		assert_false(attached_gone(&a));
	}
	a.control_id = id + 1; /* it has state of its own */
	assert_int_equal(attached_still(&a, &error), -1);
	assert_string_equal(error.text,
			    "lo: its pacer was taken off or replaced meanwhile: try again");
	assert_int_equal(a.control_id, id + 1);
	assert_int_equal(a.control->magic, PACER_MAGIC);
	attached_release(&a);
	assert_int_equal(open_files(), files);
	assert_int_equal(mappings, mapped);
}

/* Who has closed its files finds it again, and closes no file of others that has their numbers. */
static void test_without_its_files(void **unused)
{
	int files = open_files(), mapped = mappings, others[8];
	struct attached a;

	(void)unused;
	begin(false);
	assert_int_equal(attached_find("lo", &a, &error), 0);
	attached_close_files(&a);
	assert_int_equal(open_files(), files);
	assert_int_equal(a.control->magic, PACER_MAGIC);
	for (size_t i = 0; i < ARRAY(others); i++)
		others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(attached_still(&a, &error), 0);
	attached_release(&a);
	for (size_t i = 0; i < ARRAY(others); i++)
		assert_int_equal(close(others[i]), 0);
	assert_int_equal(open_files(), files);
	assert_int_equal(mappings, mapped);
}

/* --- who looks again and again -----------------------------------------------------------------
 */

static char lo[] = "lo", other[] = "other", *const named[] = {lo, other, lo};

static int left, left_before;

/* Once more, a look later. */
static void count_left(struct watched *at, void *arg)
{
	assert_ptr_equal(arg, &left);
	assert_true(at->has_last && at->last.control->magic == PACER_MAGIC);
	assert_int_equal(at->last.prog_fd, -1);
	left_before++;
}

/* It can be read still. */
static void count_leaving(struct watched *at, void *arg)
{
	assert_ptr_equal(arg, &left);
	assert_true(at->found && at->a.control->magic == PACER_MAGIC);
	left++;
}

static void test_watch_says_who_leaves(void **unused)
{
	struct watch w;

	(void)unused;
	begin(false);
	left = left_before = 0;
	assert_int_equal(watch_begin(&w, named, ARRAY(named)), 0);
	w.leaving = count_leaving;
	w.left = count_left;
	w.arg = &left;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(left, 0);
	on.id = OURS + 1;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(left, 1);
	assert_int_equal(left_before, 0);
	assert_true(w.at[0].found && w.at[0].has_last);
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(left, 1);
	assert_int_equal(left_before, 1);
	assert_true(w.at[0].found && !w.at[0].has_last);
	on.id = OURS + 2;
	watch_tidy(&w);
	assert_int_equal(left, 2);
	assert_true(w.at[0].has_last);
	watch_tidy(&w);
	assert_true(w.at[0].has_last);
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(left_before, 2);
	assert_false(w.at[0].has_last);
	on.id = OURS + 3;
	assert_int_equal(watch_look(&w, &error), 0);
	watch_end(&w); /* nobody asks any more */
	assert_int_equal(left, 3);
	assert_int_equal(left_before, 2);
}

static void test_watch_of_some(void **unused)
{
	int files = open_files();
	unsigned int asked;
	struct watch w;

	(void)unused;
	begin(false);
	for (not_grown = 1; not_grown <= 2; not_grown++) {
		grown = 0;
		assert_int_equal(watch_begin(&w, named, ARRAY(named)), -1);
		assert_null(w.at);
	}
	not_grown = 0;
	assert_int_equal(watch_begin(&w, named, ARRAY(named)), 0);
	assert_int_equal(w.n, 2);
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(w.at[0].found && w.at[0].shown && !w.at[1].found && w.at[1].shown);
	asked = call.n;
	assert_int_equal(watch_look(&w, &error), 0); /* it is there still */
	assert_int_equal(call.n, asked);
	w.at[0].a.ifindex = 9; /* another interface has the name by now */
	watch_tidy(&w);
	assert_false(w.at[0].found);
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(w.at[0].a.ifindex, 1);
	on.id = OURS + 1;
	on.named = on.pacer = false; /* no pacer: it will be none */
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(!w.at[0].found && w.at[0].passed == OURS + 1);
	w.at[0].error.text[0] = 0;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(w.at[0].error.text[0], 0);
	on.id = OURS + 2;
	on.pacer = true;
	on.abi++; /* nor can that of another version be read, ever */
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(w.at[0].passed, OURS + 2);
	on.id = OURS;
	on.abi--; /* this one could not be read for once */
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(!w.at[0].found && !w.at[0].passed);
	on.named = true;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(w.at[0].found);
	watch_end(&w);
	assert_int_equal(open_files(), files);
}

/* What is not found is either no pacer, or one of which it is to be said that it cannot be opened.
 */
static void test_watch_of_unopened(void **unused)
{
	struct watch w;

	(void)unused;
	begin(false);
	assert_int_equal(watch_begin(&w, named, 1), 0);
	call.at = 9;
	call.err = EMFILE;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(!w.at[0].found && w.at[0].unopened);
	assert_non_null(strstr(w.at[0].error.text, "Too many open files"));
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(w.at[0].found && !w.at[0].unopened);
	on.id = OURS + 1;
	on.named = on.pacer = false;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(!w.at[0].found && !w.at[0].unopened);
	on.id = OURS + 2;
	on.pacer = true;
	on.abi++;
	for (int i = 0; i < 2; i++) { /* it is not opened again, and still there */
		assert_int_equal(watch_look(&w, &error), 0);
		assert_true(!w.at[0].found && w.at[0].unopened);
	}
	on.id = 0;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_false(w.at[0].unopened);
	on.unseen = true;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(w.at[0].unopened);
	begin(false);
	on.named = false;
	ids_change = true; /* it was unloaded as it was opened */
	assert_int_equal(watch_look(&w, &error), 0);
	assert_true(!w.at[0].found && !w.at[0].unopened);
	watch_end(&w);
}

static void test_watch_of_all(void **unused)
{
	int files = open_files();
	struct watch w;

	(void)unused;
	begin(false);
	net.other = net.in_list = true;
	assert_int_equal(watch_begin(&w, NULL, 0), 0);
	net.no_list = true;
	assert_int_equal(watch_look(&w, &error), -1);
	assert_string_equal(error.text,
			    "the interfaces cannot be listed: No buffer space available");
	net.no_list = false;
	on.unseen = true;
	assert_int_equal(watch_look(&w, &error), -1);
	assert_string_equal(error.text, "lo: its XDP programs cannot be read");
	on.unseen = false;
	grown = 0;
	not_grown = 2;
	assert_int_equal(watch_look(&w, &error), -1);
	assert_true(error.line == POLICY_NO_MEMORY && w.n == 1 && w.at[0].found);
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(w.n, 2);
	assert_true(w.at[0].found && w.at[0].shown && !w.at[1].found && w.at[1].shown);
	net.other = false; /* it went after it was listed */
	on.unseen = true;
	assert_int_equal(watch_look(&w, &error), 0);
	assert_int_equal(w.n, 1);
	assert_false(w.at[0].found);
	net.no_socket = true; /* whether it is there is not known */
	assert_int_equal(watch_look(&w, &error), 0);
	watch_end(&w);
	assert_int_equal(open_files(), files);
}

/* None is as long, and the kernel is not asked. */
static void test_an_altname_that_is_too_long(void **unused)
{
	char name[200], own[IF_NAMESIZE];

	(void)unused;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_false(__real_link_of_altname(name, own));
}

/* By another name of it nothing that goes by names would be found. */
static void test_not_by_an_altname(void **unused)
{
	struct attached a;

	(void)unused;
	net.renamed = true;
	assert_int_equal(attached_find("lo", &a, &error), -1);
	assert_string_equal(error.text, "lo: is another name of renamed: write that");
	assert_int_equal(attached_any("lo", &error), -1);
	net.renamed = false;
	assert_int_equal(attached_find(LONG_NAME, &a, &error), -1);
	assert_string_equal(error.text, LONG_NAME ": is another name of other: write that");
	assert_int_equal(attached_find("other-by-no-name", &a, &error), -1);
	assert_string_equal(
	    error.text, "other-by-no-name: is longer than an interface's own name: see `ip link`");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_found),
	    cmocka_unit_test(test_sampled_since),
	    cmocka_unit_test(test_each_call_fails),
	    cmocka_unit_test(test_other_maps),
	    cmocka_unit_test(test_other_versions),
	    cmocka_unit_test(test_each),
	    cmocka_unit_test(test_of_another_program_unknown),
	    cmocka_unit_test(test_followed_though_unseen),
	    cmocka_unit_test(test_next),
	    cmocka_unit_test(test_gone_or_unknown),
	    cmocka_unit_test(test_shadow_lost_or_unread),
	    cmocka_unit_test(test_goes_on),
	    cmocka_unit_test(test_next_of_another_name),
	    cmocka_unit_test(test_still_over_the_same_state),
	    cmocka_unit_test(test_without_its_files),
	    cmocka_unit_test(test_watch_says_who_leaves),
	    cmocka_unit_test(test_watch_of_some),
	    cmocka_unit_test(test_watch_of_unopened),
	    cmocka_unit_test(test_watch_of_all),
	    cmocka_unit_test(test_an_altname_that_is_too_long),
	    cmocka_unit_test(test_not_by_an_altname),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
