/* SPDX-License-Identifier: GPL-2.0-only */
/* A text that takes a file's place: what it keeps of the file, and that nothing is left where it
 * fails. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/new_file.h"
#include "ended.h"

static char folder[32];

/* The calls that fail, or at which a signal comes; each from this one on, 1 being the next. */
static struct {
	int cause, write_at, fsync_at, fchown_at, fchmod_at, close_at;
} failing;

/* Is it this one's turn? */
static bool fails(int *at)
{
	if (!*at || --*at)
		return false;
	if (ends_by) {
		raise(ends_by);
		return false;
	}
	errno = failing.cause;
	return true;
}

ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n)
{
	return fails(&failing.write_at) ? -1 : __real_write(fd, from, n > 2 ? 2 : n);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	return fails(&failing.fsync_at) ? -1 : __real_fsync(fd);
}

int __real_fchown(int fd, uid_t owner, gid_t group);
int __wrap_fchown(int fd, uid_t owner, gid_t group);
int __wrap_fchown(int fd, uid_t owner, gid_t group)
{
	return fails(&failing.fchown_at) ? -1 : __real_fchown(fd, owner, group);
}

int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode)
{
	return fails(&failing.fchmod_at) ? -1 : __real_fchmod(fd, mode);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(
    int fd) /* it is closed, as the kernel does, whatever it says of what was written */
{
	int result = __real_close(fd);

	return fails(&failing.close_at) ? -1 : result;
}

static int make_folder(void **unused)
{
	(void)unused;
	strcpy(folder, "/tmp/new_file.XXXXXX");
	return !mkdtemp(folder) || chdir(folder);
}

static int remove_folder(void **unused)
{
	char command[64];

	(void)unused;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") || system(command); /* NOLINT(cert-env33-c): paths of its own */
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void assert_text(const char *name, const char *want)
{
	char text[64] = "";
	FILE *f = fopen(name, "r");

	assert_non_null(f);
	(void)!fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	assert_string_equal(text, want);
}

/* Nothing but what is meant to be in the folder. */
static void assert_files(int want)
{
	DIR *d = opendir(".");
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	assert_int_equal(n, want);
}

static int write_beside(struct new_file *file, const char *name, const char *text)
{
	int err = new_file_hold(file, name);

	if (!err)
		err = new_file_write(file, text);
	if (err)
		new_file_drop(file);
	return err;
}

/* By a link, which stays one; with its mode. */
static void test_replaces(void **unused)
{
	struct new_file file;
	struct stat st;

	(void)unused;
	put("policy", "old");
	assert_int_equal(chmod("policy", 0640), 0);
	assert_int_equal(symlink("policy", "link"), 0);
	assert_int_equal(write_beside(&file, "link", "new"), 0);
	assert_text("policy", "old");
	assert_false(file.written);
	assert_files(3);
	assert_int_equal(new_file_commit(&file), 0);
	assert_true(file.written);
	new_file_drop(&file); /* there is nothing beside it any more */
	assert_text("policy", "new");
	assert_int_equal(stat("policy", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_files(2);
}

/* User 65534 may read and write, and the owning group nothing: of version 2, in little-endian. */
static const unsigned char acl[] = {2,	 0,    0,   0,	  0x01, 0,   6,	   0,	255, 255,  255,
				    255, 0x02, 0,   6,	  0,	254, 255,  0,	0,   0x04, 0,
				    0,	 0,    255, 255,  255,	255, 0x10, 0,	6,   0,	   255,
				    255, 255,  255, 0x20, 0,	0,   0,	   255, 255, 255,  255};

static void test_attributes(void **unused)
{
	struct new_file file;
	char note[8] = "";
	unsigned char is[64];
	struct stat st;

	(void)unused;
	put("policy", "old");
	assert_int_equal(chmod("policy", 0600), 0);
	if (setxattr(".", "system.posix_acl_default", acl, sizeof(acl), 0) ||
	    setxattr("policy", "system.posix_acl_access", acl, sizeof(acl), 0) ||
	    setxattr("policy", "user.note", "mine", 4, 0)) {
		printf("# not tried: this file system has no ACLs, or no notes: %s\n",
		       strerror(errno));
		skip();
	}
	assert_int_equal(write_beside(&file, "policy", "new"), 0);
	assert_int_equal(new_file_commit(&file), 0);
	new_file_drop(&file);
	assert_text("policy", "new");
	assert_int_equal(stat("policy", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660); /* of the group it is the ACL's mask */
	assert_int_equal(getxattr("policy", "system.posix_acl_access", is, sizeof(is)),
			 sizeof(acl));
	assert_memory_equal(is, acl, sizeof(acl));
	assert_int_equal(getxattr("policy", "user.note", note, sizeof(note)), 4);
	assert_string_equal(note, "mine");
	/* None comes of the folder. */
	assert_int_equal(removexattr("policy", "system.posix_acl_access"), 0);
	assert_int_equal(chmod("policy", 0640), 0);
	assert_int_equal(write_beside(&file, "policy", "newer"), 0);
	assert_int_equal(new_file_commit(&file), 0);
	new_file_drop(&file);
	assert_int_equal(getxattr("policy", "system.posix_acl_access", is, sizeof(is)), -1);
	assert_int_equal(errno, ENODATA);
	assert_int_equal(stat("policy", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_dropped(void **unused)
{
	struct new_file file;

	(void)unused;
	put("policy", "old");
	assert_int_equal(write_beside(&file, "policy", "new"), 0);
	new_file_drop(&file);
	assert_text("policy", "old");
	assert_files(1);
}

static void refused(const char *name, int want)
{
	struct new_file file;

	assert_int_equal(write_beside(&file, name, "new"), want);
	assert_false(file.written);
	new_file_drop(&file);
}

static void test_refused(void **unused)
{
	char name[252];

	(void)unused;
	refused("missing", ENOENT);
	assert_int_equal(mkdir("folder", 0755), 0);
	refused("folder", EINVAL);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	refused("fifo", EINVAL);
	memset(name, 'n', sizeof(name) - 1); /* no room for the name beside it */
	name[sizeof(name) - 1] = 0;
	put(name, "old");
	refused(name, ENAMETOOLONG);
	assert_text(name, "old");
	assert_files(3);
}

/* A path that is as long as one can be, but for what the file beside it has more. */
static void test_long_path(void **unused)
{
	char name[251], last[256], path[PATH_MAX];

	(void)unused;
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	while (getcwd(path, sizeof(path)) && strlen(path) + 1 + strlen(name) < PATH_MAX - 300) {
		assert_int_equal(mkdir(name, 0755), 0);
		assert_int_equal(chdir(name), 0);
	}
	name[PATH_MAX - 3 - 200 - strlen(path) - 1] = 0;
	assert_int_equal(mkdir(name, 0755), 0);
	assert_int_equal(chdir(name), 0);
	memset(last, 'f', 199);
	last[199] = 0;
	put(last, "old");
	refused(last, ENAMETOOLONG);
	assert_text(last, "old");
	assert_files(1);
	assert_int_equal(chdir(folder), 0);
}

/* The disk takes a part of it. */
static void test_full(void **unused)
{
	struct rlimit was, little;
	struct new_file file;
	int err;

	(void)unused;
	put("policy", "old");
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	little = (struct rlimit){4, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	err = write_beside(&file, "policy", "longer than that");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(err, EFBIG);
	assert_text("policy", "old");
	assert_files(1);
}

/* A disk, or who may not give the file away: whatever fails, the old text stands, alone. */
static void test_disk_fails(void **unused)
{
	int *const call[] = {&failing.write_at, &failing.fsync_at, &failing.fchown_at,
			     &failing.fchmod_at, &failing.close_at};

	(void)unused;
	put("policy", "old");
	failing.cause = EIO;
	for (size_t i = 0; i < sizeof(call) / sizeof(*call); i++) {
		*call[i] = 1;
		refused("policy", EIO);
		assert_int_equal(*call[i], 0); /* it was called */
		assert_text("policy", "old");
		assert_files(1);
	}
	failing.write_at = 2; /* of what is written in parts */
	refused("policy", EIO);
	assert_files(1);
}

/* A signal is no failure. */
static void test_interrupted(void **unused)
{
	struct new_file file;

	(void)unused;
	put("policy", "old");
	failing.cause = EINTR;
	failing.write_at = 2;
	assert_int_equal(write_beside(&file, "policy", "longer than that"), 0);
	assert_int_equal(new_file_commit(&file), 0);
	new_file_drop(&file);
	assert_text("policy", "longer than that");
}

/* The folder's own entry is not on the disk: the file is written, and may be lost. */
static void test_folder_fails(void **unused)
{
	struct new_file file;

	(void)unused;
	put("policy", "old");
	assert_int_equal(write_beside(&file, "policy", "new"), 0);
	failing.cause = EIO;
	failing.fsync_at = 1;
	assert_int_equal(new_file_commit(&file), EIO);
	assert_true(file.written);
	new_file_drop(&file);
	assert_text("policy", "new");
	assert_files(1);
}

/* A folder has its name by now. */
static void test_taken(void **unused)
{
	struct new_file file;

	(void)unused;
	put("policy", "old");
	assert_int_equal(write_beside(&file, "policy", "new"), 0);
	assert_int_equal(remove("policy"), 0);
	assert_int_equal(mkdir("policy", 0755), 0);
	assert_int_equal(new_file_commit(&file), ESTALE);
	new_file_drop(&file);
	assert_false(file.written);
	assert_files(1);
}

/* Somebody else has written to it, who does not wait. */
static void test_changed(void **unused)
{
	struct new_file file;

	(void)unused;
	put("policy", "old");
	assert_int_equal(write_beside(&file, "policy", "new"), 0);
	put("policy", "other");
	assert_int_equal(new_file_commit(&file), ESTALE);
	new_file_drop(&file);
	assert_false(file.written);
	assert_text("policy", "other");
	assert_files(1);
}

static int *ends_at;

static void write_and_commit(void)
{
	struct new_file file;

	if (ends_at)
		*ends_at = 1;
	if (write_beside(&file, "policy", "new"))
		return;
	if (!ends_at) /* while what comes before it is done */
		raise(ends_by);
	new_file_commit(&file);
	new_file_drop(&file);
}

static void write_and_drop(void)
{
	struct new_file file;

	if (write_beside(&file, "policy", "other"))
		return;
	raise(ends_by);
	new_file_drop(&file);
}

/* A signal ends it once the file has its name, or is gone: none is left beside. */
static void test_ended(void **unused)
{
	int *const call[] = {&failing.write_at,	 &failing.fsync_at, &failing.fchown_at,
			     &failing.fchmod_at, &failing.close_at, NULL};

	(void)unused;
	for (size_t i = 0; i < sizeof(call) / sizeof(*call); i++) {
		for (size_t k = 0; k < sizeof(ending) / sizeof(*ending); k++) {
			ends_at = call[i];
			put("policy", "old");
			assert_true(ended_by(ending[k], write_and_commit));
			assert_text("policy", "new");
			assert_true(ended_by(ending[k], write_and_drop));
			assert_text("policy", "new");
			assert_files(1);
		}
	}
}

static void hold_and_wait(void)
{
	struct new_file file;

	if (!new_file_hold(&file, "policy"))
		raise(ends_by);
}

/* Nothing is beside the file yet: what holds it may wait for long, and a signal ends it at once. */
static void test_ended_before(void **unused)
{
	(void)unused;
	put("policy", "old");
	assert_true(ended_by(SIGTERM, hold_and_wait));
	assert_text("policy", "old");
	assert_files(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_replaces, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_attributes, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_dropped, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_refused, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_long_path, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_full, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_disk_fails, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_interrupted, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_folder_fails, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_taken, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_changed, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_ended, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(test_ended_before, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
