/* SPDX-License-Identifier: GPL-2.0-only */
/* A save that takes the pacer off: how long each of its steps lasts, and what is done then. */
#include "paced.h"

#include <sys/stat.h>

#include "config/file_lock.h"
#include "live/detach.h"
#include "live/copies.h"
#include "live/freeze.h"
#include "live/save.h"
#include "live/state_file.h"

/* How long each step lasts, and how often it was done. */
static uint64_t taking_ns, writing_ns, undoing_ns;
static uint32_t taken, written, undone;
/* Which of them fails. */
static enum { NONE, TAKING, WRITING, UNDOING, TAKING_ALL } wrong;
static bool as_exact;	    /* what the last file says of itself */
static uint64_t graces_off; /* by the time that it was off */

/* The lock of saves: held from before anything is taken until the file has its name. */
static int saves_fd;
static off_t saves_at;

int __wrap_file_lock(int fd, enum file_lock_kind kind, const char *name);

static int not_locked; /* an errno */

int __wrap_file_lock(int fd, enum file_lock_kind kind, const char *name)
{
	assert_string_equal(name, "/run/xdp-pacer.lock");
	errno = not_locked;
	if (not_locked)
		return -1;
	if (kind != LOCK_BYTE)
		return 0;
	assert_false(copies_frozen(&pacer));
	saves_fd = fd;
	saves_at = lseek(fd, 0, SEEK_CUR);
	return 0;
}

static bool saves_wait(void)
{
	return saves_fd >= 0 && lseek(saves_fd, 0, SEEK_CUR) == saves_at && saves_at >> 32 == 1;
}

bool host_may(uint32_t capabilities)
{
	(void)capabilities;
	return true;
}

int partners_each(const struct attached *a, int (*each)(const char *ifname, void *arg), void *arg,
		  struct policy_error *why)
{
	(void)a;
	(void)each;
	(void)arg;
	(void)why;
	return 0;
}

int state_init(struct state *s, uint64_t n_lines)
{
	*s = (struct state){.n_lines = n_lines};
	return 0;
}

void state_free(struct state *s)
{
	(void)s;
}

/* Before it is frozen. */
int state_take_allowed(const struct attached *a, uint32_t copy, struct state *s,
		       struct policy_error *why)
{
	(void)s;
	(void)why;
	assert_int_equal(copy, copies_in_force(a));
	assert_false(copies_frozen(a));
	return 0;
}

int state_take(const struct attached *a, uint32_t copy, struct state *s, struct policy_error *why)
{
	(void)s;
	(void)why;
	assert_true(copies_frozen(a) && saves_wait());
	assert_int_equal(copy, copies_in_force(a) ^ 1);
	taken++;
	kernel_now_ns += taking_ns;
	return wrong == TAKING ? policy_fail(why, 0, "not taken") : 0;
}

int state_take_all(const struct attached *a, struct state *s, struct policy_error *why)
{
	(void)a;
	(void)why;
	assert_true(saves_wait());
	taken++;
	if (undone)
		assert_true(graces > graces_off); /* its last packets are counted */
	s->frozen = false;
	return wrong == TAKING_ALL ? policy_fail(why, 0, "not taken again") : 0;
}

int state_write(const char *file, const struct state *s, uint64_t *bytes, struct policy_error *why)
{
	(void)file;
	assert_true(saves_wait());
	written++;
	as_exact = s->frozen;
	kernel_now_ns += writing_ns;
	*bytes = written;
	return wrong == WRITING ? policy_fail(why, 0, "not written") : 0;
}

int detach_pacer(const char *ifname, struct pins_left *left, struct policy_error *why)
{
	(void)left;
	assert_string_equal(ifname, "eth0");
	assert_true(copies_frozen(&pacer));
	undone++;
	graces_off = graces;
	kernel_now_ns += undoing_ns;
	return wrong == UNDOING ? policy_fail(why, 0, "not off") : 0;
}

static struct saved saved;

static int save_in(uint64_t take_ns, uint64_t write_ns)
{
	saves_fd = -1;
	taken = written = undone = 0;
	taking_ns = take_ns;
	writing_ns = write_ns;
	put_on("rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}]}]");
	return save_and_unload(&pacer, "/s", &saved, &error);
}

/* Each step may last as long as it is frozen: it is so anew for the next. */
static void test_off_in_time(void **unused)
{
	(void)unused;
	assert_int_equal(save_in(FREEZE_NS - 1, FREEZE_NS - 1), 0);
	assert_true(taken == 1 && written == 1 && undone == 1);
	assert_true(saved.exact && as_exact);
}

/* Whatever fails, packets are let through again at once, and it is said where things stand. */
static void test_what_fails(void **unused)
{
	static const char *const said[] = {
	    [TAKING] = "not taken; the pacer is still on",
	    [WRITING] = "not written; the pacer is still on",
	    [UNDOING] = "not off; /s was written, but the pacer is still on, and lets packets "
			"through that are not in that: save again",
	};

	(void)unused;
	for (wrong = TAKING; wrong <= UNDOING; wrong++) {
		assert_int_equal(save_in(0, 0), -1);
		assert_string_equal(error.text, said[wrong]);
		assert_false(copies_frozen(&pacer));
		assert_int_equal(copies_pending_ns(&pacer), 0);
		end(NULL);
	}
	wrong = NONE;
}

/* It gave way while it was taken off: what it let through is in a second file, which is exact. */
static void test_off_too_late(void **unused)
{
	(void)unused;
	undoing_ns = FREEZE_NS;
	assert_int_equal(save_in(0, 0), 0);
	assert_true(taken == 2 && written == 2 && undone == 1);
	assert_true(saved.exact && as_exact && saved.bytes == 2);
	end(NULL);
	wrong = TAKING_ALL;
	assert_int_equal(save_in(0, 0), -1);
	assert_string_equal(error.text,
			    "not taken again; the pacer is off, and let packets through "
			    "before that are not in /s");
	wrong = NONE;
	undoing_ns = 0;
}

/* Packets have been let through meanwhile that the copy does not have: no file has it. */
static void test_taken_too_late(void **unused)
{
	(void)unused;
	assert_int_equal(save_in(FREEZE_NS, 0), -1);
	assert_true(taken == 1 && !written && !undone);
	assert_string_equal(error.text, "eth0: it took too long, and packets have been let through "
					"again meanwhile: try again; the pacer is still on");
	assert_int_equal(copies_in_force(&pacer), 0);
}

/* The file does not have them: the pacer stays on, and it is said. */
static void test_written_too_late(void **unused)
{
	(void)unused;
	assert_int_equal(save_in(0, FREEZE_NS), -1);
	assert_true(taken == 1 && written == 1 && !undone);
	assert_string_equal(error.text,
			    "eth0: it took too long, and packets have been let through again "
			    "meanwhile: try again; /s was written, but the pacer is still on, and "
			    "lets packets through that are not in that: save again");
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_int_equal(copies_pending_ns(&pacer), 0);
}

/* What is wrong with the lock is said of its file, and what to do. */
static void test_lock_that_fails(void **unused)
{
#define LOCK "/run/xdp-pacer.lock"
	static const struct {
		int opened, locked; /* errnos */
		const char *text;
	} rows[] = {
	    {ELOOP, 0, LOCK " is a symbolic link, and has to be a file: remove it"},
	    {EACCES, 0,
	     LOCK ": Permission denied: be root, or of the group xdp-pacer (docs/rights.md)"},
	    {EIO, 0, LOCK ": Input/output error"},
	    {0, EINTR, LOCK ": ended while another process had it locked"},
	    {0, ENOLCK, LOCK ": No locks available"},
	};
#undef LOCK

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		kernel_no_lock = rows[i].opened;
		not_locked = rows[i].locked;
		assert_int_equal(copies_lock(&error), -1);
		assert_string_equal(error.text, rows[i].text);
		assert_int_equal(save_in(0, 0), -1);
		assert_string_equal(error.text, rows[i].text);
		assert_true(!taken && !copies_frozen(&pacer));
		end(NULL);
	}
	kernel_no_lock = not_locked = 0;
}

/* Of two that judge, the second would go with what it has counted. */
static void test_one_of_two(void **unused)
{
	(void)unused;
	taken = undone = 0;
	put_on("rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}]}]");
	pacer.second_id = 9;
	assert_int_equal(save_and_unload(&pacer, "/s", &saved, &error), -1);
	assert_string_equal(error.text,
			    "eth0: a second pacer (program 9) judges its packets, too, as a "
			    "replacement was killed: `xdp-pacer upgrade eth0` takes it off");
	assert_true(!taken && !undone && !copies_frozen(&pacer));
	assert_int_equal(save_running(&pacer, "/s", &saved, &error), 0); /* it stays on */
	assert_int_equal(taken, 1);
}

/* Another is there by the time that it has the lock: that is none to save, or to take off. */
static void test_replaced_meanwhile(void **unused)
{
	(void)unused;
	stays_replaced = true;
	assert_int_equal(save_in(0, 0), -1);
	assert_string_equal(error.text, "eth0: its pacer was replaced meanwhile");
	assert_true(!taken && !undone && !copies_frozen(&pacer));
	assert_int_equal(save_running(&pacer, "/s", &saved, &error), -1);
	assert_int_equal(taken, 0);
	stays_replaced = false;
}

/* One that goes on beside packets, and one of an interface that has gone. */
static void test_saves_wait_for_each_other(void **unused)
{
	(void)unused;
	for (int gone = 0; gone < 2; gone++) {
		put_on("rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}]}]");
		pacer.control_id = 7;
		saves_fd = -1;
		taken = written = 0;
		assert_int_equal((gone ? save_gone : save_running)(&pacer, "/s", &saved, &error),
				 0);
		assert_true(taken == 1 && written == 1);
		assert_false(saved.exact || as_exact);
		assert_false(saves_wait()); /* no more */
		end(NULL);
	}
}

/* Where a save to that file waits for others. */
static off_t place_of(const char *file)
{
	struct policy_error unused;
	int fd = copies_lock_saves(file, &unused);

	assert_true(fd >= 0);
	close(fd);
	return saves_at;
}

/* However a file is named, and whichever state is saved to it: that of a shadow may follow. */
static void test_saves_wait_by_their_file(void **unused)
{
	char folder[] = "/tmp/test_save.XXXXXX", other[64], path[64];
	off_t at;

	(void)unused;
	put_on("rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}]}]");
	assert_non_null(mkdtemp(folder));
	snprintf(other, sizeof(other), "%s/a", folder);
	assert_int_equal(mkdir(other, 0700), 0);
	snprintf(path, sizeof(path), "%s/s", folder);
	at = place_of(path);
	assert_int_equal(at >> 32, 1);
	snprintf(path, sizeof(path), "%s/a/../s", folder);
	assert_int_equal(place_of(path), at);
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(place_of("s"), at);
	assert_int_equal(place_of("./s"), at);
	assert_int_not_equal(place_of("t"), at);
	assert_int_not_equal(place_of("a/s"), at);
	assert_int_equal(place_of("/s"), place_of("//s"));
	assert_int_not_equal(place_of("/s"), at);
	place_of("none/s");
	assert_int_equal(chdir("/"), 0);
	rmdir(other);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_off_in_time, end),
	    cmocka_unit_test(test_what_fails),
	    cmocka_unit_test_teardown(test_off_too_late, end),
	    cmocka_unit_test(test_lock_that_fails),
	    cmocka_unit_test_teardown(test_one_of_two, end),
	    cmocka_unit_test_teardown(test_replaced_meanwhile, end),
	    cmocka_unit_test_teardown(test_taken_too_late, end),
	    cmocka_unit_test_teardown(test_written_too_late, end),
	    cmocka_unit_test(test_saves_wait_for_each_other),
	    cmocka_unit_test_teardown(test_saves_wait_by_their_file, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
