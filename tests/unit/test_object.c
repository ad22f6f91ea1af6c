/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs that are built into the tool, opened and prepared, over maps that are files: each
 * call that fails is said, with the interface, and nothing is left open. No kernel is asked.
 */
#include "applied.h"
#include "example.h"
#include "starved.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builtin.h"
#include "live/host.h"
#include "live/object.h"
#include "live/restore.h"
#include "live/samples.h"
#include "live/targets.h"
#include "sets/set_maps.h"

#define CPUS 2

static struct {
	unsigned int n, at; /* calls so far; the one that fails, from 1; 0: none */
	const char *map;    /* that cannot be made; NULL: all can */
	int err;
} fault;

static int falls_at(bool here)
{
	if (++fault.n != fault.at && !here)
		return 0;
	errno = fault.err;
	return -fault.err;
}

static int falls(void)
{
	return falls_at(false);
}

static int file(const char *name)
{
	bool here = fault.map && !strcmp(name, fault.map);

	return falls_at(here) ? -1 : memfd_create(name, MFD_CLOEXEC);
}

/* --- what is called ----------------------------------------------------------------------------
 */

uint64_t host_now_ns(void)
{
	return 1000;
}

int host_cpus(struct policy_error *why)
{
	return falls() ? policy_fail(why, 0, "the CPUs cannot be counted") : CPUS;
}

ssize_t getrandom(void *buf, size_t n, unsigned int flags)
{
	(void)flags;
	memset(buf, 0x5a, n);
	return falls() ? -1 : (ssize_t)n;
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	(void)key_size;
	(void)value_size;
	if (type == BPF_MAP_TYPE_CPUMAP) /* that of unknown CPUs is not used */
		assert_true(max_entries == CPUS || max_entries == (__u32)-1);
	if (type == BPF_MAP_TYPE_LPM_TRIE)
		assert_true(max_entries == PACER_ALLOW_ENTRIES &&
			    opts->map_flags == BPF_F_NO_PREALLOC);
	return file(name);
}

/* A prefix of the allow-list, which is the policy's own, for good. */
int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const struct pacer_allow_value *allow = value;

	(void)key;
	(void)flags;
	assert_true(fd >= 0);
	assert_true(allow->of_policy == 1 && !allow->until_ns);
	return falls();
}

static unsigned int reused;
/* What the object has instead of its own map of that name. */
static struct {
	const char *name; /* NULL: none is asked for */
	int fd;		  /* -1: its own */
} given;

int bpf_map__reuse_fd(struct bpf_map *map, int fd)
{
	assert_non_null(map);
	reused++;
	if (given.name && !strcmp(bpf_map__name(map), given.name))
		given.fd = fd;
	return falls();
}

int samples_outer(const char *name, size_t value_size)
{
	(void)value_size;
	return file(name);
}

int samples_make(const struct sample_maps *maps, const struct pacer_sampling *sampling, int cpus,
		 struct samples_made *made, struct policy_error *why)
{
	(void)maps;
	(void)sampling;
	assert_int_equal(cpus, CPUS);
	*made = (struct samples_made){true, true};
	return falls() ? policy_fail(why, 0, "no memory for the samples") : 0;
}

int samples_replace(struct bpf_map *map, int cpus)
{
	assert_non_null(map);
	assert_int_equal(cpus, CPUS);
	return falls();
}

int targets_put(const struct target_maps *maps, uint32_t copy, const struct plan *wanted,
		struct policy_error *why)
{
	(void)wanted;
	assert_true(maps->devices_fd >= 0 && maps->cpus_fd >= 0 && maps->leases_fd >= 0);
	assert_int_equal(copy, 0);
	return falls() ? policy_fail(why, 0, "veth1: no such target") : 0;
}

int set_maps_make(uint32_t places)
{
	assert_int_equal(places, PACER_SET_PLACES);
	return file("sets");
}

static struct object_begin begin;

int set_maps_put(int fd, uint32_t place, const struct set_list *list)
{
	assert_true(fd >= 0 && place < 2);
	assert_ptr_equal(list, &begin.sets->text[place].list);
	return falls();
}

int restore_fill(const struct state *s, const struct restore_maps *maps,
		 struct pacer_control *control, struct policy_error *why)
{
	(void)s;
	assert_true(maps->lines && maps->throttles && maps->counts && maps->set_counts &&
		    maps->allow4 && maps->allow6);
	control->secret[0][0] = 77;
	return falls() ? policy_fail(why, 0, "its state cannot be restored") : 0;
}

/* A program that runs has the maps of this object, in their order, but for one of them. */
static const struct object *running;
static int left_out = -1, too_many;
static int odd = -1; /* which of its type and its sizes the first map has otherwise */

static bool is_its_own(const struct bpf_map *map)
{
	return strstr(bpf_map__name(map), ".rodata") != NULL;
}

static const struct bpf_map *map_at(int n)
{
	const struct bpf_map *map = NULL;

	while ((map = bpf_object__next_map(object_of(running), map)))
		if (!is_its_own(map) && bpf_map__autocreate(map) && n-- == 0)
			return map;
	return NULL;
}

/* The file has the map's number. */
int bpf_map_get_fd_by_id(__u32 id)
{
	int fd = file("map");

	if (fd >= 0)
		assert_int_equal(pwrite(fd, &id, sizeof(id), 0), sizeof(id));
	return fd;
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct bpf_prog_info *program = info;
	struct bpf_map_info *m = info;
	const struct bpf_map *map;
	uint32_t id;

	(void)len;
	if (falls())
		return -fault.err;
	if (fd < 0) { /* the program */
		uint32_t n = 0, room = program->nr_map_ids;
		uint32_t *ids = (uint32_t *)(uintptr_t)program->map_ids;

		for (int i = 0; map_at(i); i++)
			if (i != left_out)
				ids[n++] = (uint32_t)i;
		while (too_many && n < room)
			ids[n++] = 0;
		program->nr_map_ids = too_many ? 1000 : n;
		return 0;
	}
	assert_int_equal(pread(fd, &id, sizeof(id), 0), sizeof(id));
	map = map_at((int)id);
	snprintf(m->name, sizeof(m->name), "%s", bpf_map__name(map));
	m->type = bpf_map__type(map);
	m->key_size = bpf_map__key_size(map);
	m->value_size = bpf_map__value_size(map);
	m->type += id == 0 && odd == 0;
	m->key_size += id == 0 && odd == 1;
	m->value_size += id == 0 && odd == 2;
	return 0;
}

/* --- opened ------------------------------------------------------------------------------------
 */

static struct set_texts texts;

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void begin_with(const char *text)
{
	host = (struct compile_host){RESOLUTION, 1000, CPUS};
	policy_free(now.policy);
	now.policy = parse(text);
	assert_int_equal(compile_policy(now.policy, NULL, &host, &now.bin, &now.plan, &error), 0);
	texts.n = 2;
	begin = (struct object_begin){.policy = now.policy,
				      .bin = &now.bin,
				      .plan = &now.plan,
				      .sets = &texts,
				      .text = text,
				      .lines = now.plan.lines,
				      .resolution_ns = RESOLUTION,
				      .tools = true};
	memset(&fault, 0, sizeof(fault));
	error = (struct policy_error){.line = -1};
}

static const void *data_of(const struct object *o, const char *name)
{
	size_t size;

	return bpf_map__initial_value(bpf_object__find_map_by_name(object_of(o), name), &size);
}

static struct object *open_alone(void)
{
	return object_open("eth0", OBJECT_ALONE, &begin, false, &error);
}

static struct object *open_shadow(void)
{
	return object_open("eth0", OBJECT_SHADOW, &begin, true, &error);
}

static struct object *open_shared(void)
{
	return object_open_shared("eth0", running, &error);
}

static struct object *open_over(void)
{
	return object_open_over("eth0", OBJECT_ALONE, -1, false, &error);
}

static struct object *open_first(void)
{
	return object_open_over("eth0", OBJECT_FIRST, -1, false, &error);
}

static struct object *(*const ways[])(void) = {open_alone, open_shadow, open_shared, open_over,
					       open_first};

static void test_each_call_fails(void **unused)
{
	static const int errs[] = {EPERM, ENOMEM};
	struct object *o;

	(void)unused;
	begin_with(example);
	running = open_alone();
	assert_non_null(running);
	for (size_t w = 0; w < ARRAY(ways); w++) {
		unsigned int n, files = open_files(), survived = 0;

		begin_with(example);
		o = ways[w]();
		assert_non_null(o);
		object_close(o);
		n = fault.n;
		assert_true(n > 2);
		for (unsigned int i = 1; i <= n; i++) {
			begin_with(example);
			fault.at = i;
			fault.err = errs[i % ARRAY(errs)];
			o = ways[w]();
			survived += o != NULL;
			if (!o && (strncmp(error.text, "eth0: ", 6) != 0 || !error.text[6]))
				fail_msg("way %zu, call %u: it says %s", w, i, error.text);
			object_close(o);
			assert_int_equal(open_files(), files);
		}
		assert_int_equal(survived, 0);
	}
	object_close((struct object *)running);
}

/* What has no memory for the object itself says so. */
static void test_no_memory(void **unused)
{
	(void)unused;
	begin_with(example);
	running = open_alone();
	for (size_t w = 0; w < ARRAY(ways); w++)
		for (uint32_t i = 1; i < 4; i++) {
			struct object *o;

			begin_with(example);
			starved_from(i, true);
			memory.on = true;
			o = ways[w]();
			memory.on = false;
			starved_from(0, false);
			assert_null(o);
			assert_ptr_equal(strstr(error.text, "eth0: "), error.text);
			assert_non_null(strstr(error.text, "Cannot allocate memory"));
		}
	object_close((struct object *)running);
}

/* --- what it begins with -----------------------------------------------------------------------
 */

static void test_begins(void **unused)
{
	const struct pacer_control *control;
	const struct pacer_copy *copy;
	struct object *o;

	(void)unused;
	begin_with(example);
	begin.confirm_ns = 50;
	begin.other = &now.bin;
	begin.other_text = "rules: []\n";
	o = open_alone();
	assert_non_null(o);
	control = data_of(o, ".data.control");
	copy = data_of(o, ".data.policy");
	assert_true(control->in_force == 1050 << 1 && control->tools && control->secret[1][0]);
	assert_int_equal(control->secret_ready, PACER_SECRET_OF_TOOLS);
	assert_string_equal(copy[0].text, example);
	assert_string_equal(copy[1].text, "rules: []\n");
	for (int i = 0; i < 2; i++) { /* armed: with the short ways of its packets */
		const struct pacer_rule *rule = &copy[i].policy.rule[0];

		assert_true(rule->counter && rule->brief.counter == rule->counter);
		assert_true(copy[i].policy.flags & PACER_TOOLS);
	}
	assert_true(control->allowed[0].v4 == 1 && control->allowed[0].v6 == 1);
	assert_true(object_program_fd(o) < 0 && object_map_fd(o, "no such map") < 0);
	object_close(o);
	begin.restored = (const struct state *)&begin; /* restore_fill() only */
	o = open_alone();
	assert_non_null(o);
	control = data_of(o, ".data.control");
	assert_true(control->secret[0][0] == 77 && !control->allowed[0].v4);
	object_close(o);
}

/* The object's own policy is the compiler's, for a clock whose ticks are as long as any kernel's:
 * 10 ms. */
static void test_the_built_in_policy(void **unused)
{
	static const unsigned char is[sizeof(struct pacer_policy)] = {PACER_BUILTIN_POLICY};
	static const char text[PACER_DOC_MAX] = {PACER_BUILTIN_TEXT};
	const struct compile_host any = {10 * MS, 1, 1};
	static struct pacer_policy bin;
	struct policy_error why = {0};
	static struct plan plan;
	struct policy *policy = policy_parse(text, strlen(text), &why);

	(void)unused;
	assert_non_null(policy);
	assert_int_equal(compile_policy(policy, NULL, &any, &bin, &plan, &why), 0);
	assert_memory_equal(is, &bin, sizeof(bin));
	assert_true(plan.lines == PACER_BUILTIN_LINES);
	policy_free(policy);
}

/* No samples, no sets: their maps stay as the object has them. */
static void test_the_least(void **unused)
{
	struct object *o;

	(void)unused;
	begin_with("rules: []\n");
	texts.n = 0;
	reused = 0;
	o = open_alone();
	assert_non_null(o);
	assert_int_equal(reused, 5); /* of targets and of the allow-list */
	object_close(o);
}

static void test_too_much(void **unused)
{
	static char text[PACER_DOC_MAX + 1];

	(void)unused;
	begin_with(example);
	begin.lines = 1ull << 31;
	assert_null(open_alone());
	assert_string_equal(error.text, "eth0: memory: 2147483648 lines are more than a map can "
					"hold: use less");
	begin_with(example);
	memset(text, '#', PACER_DOC_MAX);
	begin.text = text;
	assert_null(open_alone());
	assert_non_null(strstr(error.text, "eth0: the policy's text is longer than"));
}

/* Which map cannot be made, why, and what is said of that. */
static void test_which_is_said(void **unused)
{
	static const struct {
		const char *map;
		int err;
		const char *text;
	} rows[] = {
	    {"pacer_allow4", EPERM, "no privilege to make a BPF map: run as root"},
	    {"pacer_allow6", EPERM, "no privilege to make a BPF map: run as root"},
	    {"pacer_allow6", ENOMEM, "the allow-list cannot be made: Cannot allocate memory"},
	    {"pacer_samples", EPERM,
	     "the maps of samples cannot be made: Operation not permitted: run as root"},
	    {"pacer_heads", ENOMEM, "the maps of samples cannot be made: Cannot allocate memory"},
	    {"pacer_cpus", EPERM,
	     "the maps of targets cannot be made: Operation not permitted: run as root"},
	    {"pacer_devices", ENOMEM, "the maps of targets cannot be made: Cannot allocate memory"},
	    {"sets", EPERM, "the sets cannot be made: Operation not permitted: run as root"},
	    {"sets", ENOMEM,
	     "the sets cannot be made: Cannot allocate memory: `xdp-pacer check` says what they "
	     "take: divide them"},
	    {"sets", E2BIG, "the sets cannot be made: Argument list too long"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		char text[200];

		begin_with(example);
		fault.map = rows[i].map;
		fault.err = rows[i].err;
		assert_null(open_alone());
		snprintf(text, sizeof(text), "eth0: %s", rows[i].text);
		assert_string_equal(error.text, text);
	}
}

/* Which file the object has for a map. */
static int given_to(struct object *(*open)(void), const char *name)
{
	struct object *o;

	begin_with(example);
	begin.tools4_fd = 1004;
	begin.tools6_fd = 1006;
	given.name = name;
	given.fd = -1;
	o = open();
	assert_non_null(o);
	given.name = NULL;
	object_close(o);
	return given.fd;
}

static void test_maps_of_others(void **unused)
{
	int samples = given_to(open_alone, "pacer_samples"),
	    heads = given_to(open_alone, "pacer_heads");

	(void)unused;
	assert_true(samples >= 0 && heads >= 0 && samples != heads);
	assert_int_equal(given_to(open_alone, "pacer_banned4"), -1);
	assert_int_equal(given_to(open_shadow, "pacer_banned4"), 1004);
	assert_int_equal(given_to(open_shadow, "pacer_banned6"), 1006);
}

/* Of frames or of bare IP packets; and only a shadow is behind another. */
static void test_kinds(void **unused)
{
	const struct pacer_built *built;
	const struct pacer_control *control;
	const struct pacer_shadow *shadow;
	struct object *o;

	(void)unused;
	begin_with(example);
	running = open_alone();
	built = data_of(running, ".rodata.built");
	control = data_of(running, ".data.control");
	assert_false(built->raw_ip || control->raw_ip || control->shared || built->beside);
	o = open_first();
	assert_non_null(o);
	built = data_of(o, ".rodata.built");
	assert_false(built->beside);
	object_close(o);
	object_close((struct object *)running);
	begin.shared = true;
	o = open_alone();
	control = data_of(o, ".data.control");
	assert_true(control->shared && !control->raw_ip);
	object_close(o);
	begin_with(example);
	o = open_shadow();
	assert_non_null(o);
	built = data_of(o, ".rodata.built");
	control = data_of(o, ".data.control");
	shadow = data_of(o, ".data.shadow");
	assert_true(built->raw_ip && control->raw_ip && built->beside);
	assert_true(shadow->since_ns == host_now_ns() && shadow->of.reasons);
	object_close(o);
}

/* One that a dispatcher calls is said to be neither with frames nor for XDP's own attaching. */
static void test_shadow_under_a_dispatcher(void **unused)
{
	struct object *o;

	(void)unused;
	begin_with(example);
	for (int dispatcher = 0; dispatcher < 2; dispatcher++) {
		const struct bpf_program *p = NULL;

		begin.dispatcher = dispatcher;
		o = open_shadow();
		assert_non_null(o);
		while ((p = bpf_object__next_program(object_of(o), (struct bpf_program *)p)))
			if (bpf_program__autoload(p)) {
				assert_int_equal(bpf_program__expected_attach_type(p),
						 dispatcher ? 0 : BPF_XDP);
				assert_int_equal(bpf_program__flags(p),
						 dispatcher ? 0 : BPF_F_XDP_HAS_FRAGS);
			}
		object_close(o);
	}
}

/* A pacer that lacks any of the maps is none to go on from, but for its own. */
static void test_over_another(void **unused)
{
	struct object *o;

	(void)unused;
	begin_with(example);
	running = open_alone();
	for (left_out = 0; map_at(left_out); left_out++) {
		o = open_over();
		assert_null(o);
		assert_string_equal(error.text,
				    "eth0: its pacer's maps are not those of this program: "
				    "`xdp-pacer save eth0 FILE`, then `xdp-pacer load eth0 "
				    "--replace --restore FILE -c POLICY` takes over");
	}
	left_out = -1;
	for (odd = 0; odd < 3; odd++)
		assert_null(open_over());
	odd = -1;
	too_many = 1;
	assert_null(open_over());
	too_many = 0;
	object_close((struct object *)running);
}

static int end(void **unused)
{
	(void)unused;
	policy_free(now.policy);
	now.policy = NULL;
	return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_each_call_fails), CASE(test_no_memory),
	    CASE(test_begins),		CASE(test_the_built_in_policy),
	    CASE(test_the_least),	CASE(test_too_much),
	    CASE(test_which_is_said),	CASE(test_maps_of_others),
	    CASE(test_kinds),		CASE(test_shadow_under_a_dispatcher),
	    CASE(test_over_another),
	};

	libbpf_set_print(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
