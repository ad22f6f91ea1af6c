/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A verb for several interfaces, without a kernel: which of them it is run for, what each of them
 * reads from stdin, and what is said where it is run for none.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/emit.h"
#include "cli/several.h"
#include "live/attached.h"
#include "live/notes.h"
#include "starved.h"

#define MOST 256

static struct {
	unsigned int pacers; /* each interface before this one has one */
	bool unlisted, gone, no_memfd, starving, shared;
	bool has_all;	 /* an interface has that name */
	bool first_only; /* fails, of the runs */
	bool many;	 /* the last run was of several at once */
	unsigned int runs, released;
	char last[IF_NAMESIZE];
	char read[65536]; /* by the last run */
	size_t len;
	int code;
} now;

/* Interfaces are e0, e1, ... */
static unsigned int number_of(const char *ifname)
{
	return *ifname == 'e' && strlen(ifname) < IF_NAMESIZE ? (unsigned int)atoi(ifname + 1)
							      : MOST * 2;
}

unsigned int if_nametoindex(const char *ifname)
{
	if (now.has_all && !strcmp(ifname, "all"))
		return MOST * 2 + 1;
	return number_of(ifname) < MOST * 2 ? number_of(ifname) + 1 : 0;
}

#define LONG_NAME "e-with-another-name" /* of e7 */

bool __wrap_link_of_altname(const char *altname, char own[IF_NAMESIZE]);

bool __wrap_link_of_altname(const char *altname, char own[IF_NAMESIZE])
{
	assert_true(strlen(altname) >= IF_NAMESIZE);
	strcpy(own, "e7");
	return !strcmp(altname, LONG_NAME);
}

int attached_each(int (*each)(const char *ifname, void *arg), void *arg, struct policy_error *error)
{
	char ifname[IF_NAMESIZE];

	if (now.unlisted)
		return policy_fail(error, 0, "the interfaces cannot be listed");
	for (unsigned int i = 0; i < now.pacers; i++) {
		snprintf(ifname, sizeof(ifname), "e%u", i);
		assert_int_equal(each(ifname, arg), 0);
	}
	return 0;
}

int attached_find(const char *ifname, struct attached *a, struct policy_error *error)
{
	if (now.gone || number_of(ifname) >= now.pacers)
		return policy_fail(error, 0, "%s: has no pacer", ifname);
	a->control_id = now.shared ? 1 : number_of(ifname);
	return 0;
}

/* The interface behind those has one of another version. */
int attached_any(const char *ifname, struct policy_error *error)
{
	return number_of(ifname) > now.pacers ? policy_fail(error, 0, "%s: has no pacer", ifname)
					      : 0;
}

void attached_release(struct attached *a)
{
	(void)a;
	now.released++;
}

/* As is whether a policy asks for VLANs. */
uint32_t copies_in_force(const struct attached *a)
{
	(void)a;
	return 0;
}

/* That a verb changed something is noted elsewhere. */
void notes_say(struct attached *a, enum note_what what, const char *text)
{
	(void)a;
	(void)what;
	(void)text;
}

int memfd_create(const char *name, unsigned int flags)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX";
	int fd;

	(void)name;
	(void)flags;
	errno = EMFILE;
	fd = now.no_memfd ? -1 : mkstemp(path);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* The verb: it notes whom it is run for, and what stdin has. */
static int run(struct options *o)
{
	now.runs++;
	snprintf(now.last, sizeof(now.last), "%s", o->args[0]);
	FILE *from = o->policy && *o->policy == '/' ? fopen(o->policy, "r") : stdin;

	assert_non_null(from);
	now.len = fread(now.read, 1, sizeof(now.read), from);
	if (from != stdin)
		fclose(from);
	now.many = o->many;
	return now.first_only && now.runs > 1 ? EXIT_DONE : now.code;
}

static const struct word_row words[] = {{"add", "", "", false}, {"show", "", "", true}, {0}};
static const struct verb changing = {"change",
				     "",
				     "",
				     NULL,
				     run,
				     .group = VERBS_CHANGE,
				     .words = words,
				     .interfaces = INTERFACES_LEAD};
static const struct verb taking = {"take",
				   "",
				   "",
				   NULL,
				   run,
				   .group = VERBS_ARG,
				   .interfaces = INTERFACES_ONLY,
				   .any_version = true};
static const struct verb looking = {
    "look", "", "", NULL, run, .group = VERBS_LOOK, .interfaces = INTERFACES_ONLY};
static const struct verb watching = {"watch",
				     "",
				     "",
				     NULL,
				     run,
				     .group = VERBS_LOOK,
				     .interfaces = INTERFACES_ONLY,
				     .takes_several = true};

/* Runs it; what it says on stderr is in `said`. */
static char said[4096];
static char headed[4096]; /* what is printed on stdout */

static int several_with(const struct verb *verb, struct options o)
{
	FILE *out = stdout;
	char *shown = NULL;
	size_t n_shown;
	int was = dup(STDERR_FILENO), to, code;
	char path[] = "/tmp/xdp-pacer-test.XXXXXX";
	ssize_t len;

	to = mkstemp(path);
	assert_true(to >= 0);
	unlink(path);
	dup2(to, STDERR_FILENO);
	stdout = open_memstream(&shown, &n_shown);
	memory.on = now.starving;
	code = several_run(verb, &o);
	memory.on = false;
	fclose(stdout);
	stdout = out;
	snprintf(headed, sizeof(headed), "%s", shown);
	free(shown);
	fflush(stderr);
	dup2(was, STDERR_FILENO);
	close(was);
	len = pread(to, said, sizeof(said) - 1, 0);
	said[len > 0 ? len : 0] = 0;
	close(to);
	return code;
}

static int several(const struct verb *verb, int n, char **args, const char *policy)
{
	return several_with(verb, (struct options){.args = args, .n_args = n, .policy = policy});
}

#define SEVERAL(verb, ...)                                                     \
	several(verb, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), \
		(char *[]){__VA_ARGS__}, NULL)

static void assert_one_line(const char *with)
{
	assert_non_null(strstr(said, with));
	assert_int_equal(strcspn(said, "\n"), strlen(said) - 1);
}

static int begin(void **unused)
{
	(void)unused;
	memset(&now, 0, sizeof(now));
	now.pacers = 4;
	return 0;
}

static void test_each(void **unused)
{
	(void)unused;
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "e3", "add", "x"), EXIT_DONE);
	assert_int_equal(now.runs, 3);
	assert_int_equal(now.released, 3);
	assert_string_equal(now.last, "e3");
	now.runs = 0;
	assert_int_equal(SEVERAL(&looking, "all"), EXIT_DONE);
	assert_int_equal(now.runs, 4);
	now.runs = 0;
	assert_int_equal(SEVERAL(&taking, "e0", "e4"), EXIT_DONE);
	assert_int_equal(now.runs, 2);
	now.code = EXIT_FAILED;
	assert_int_equal(SEVERAL(&looking, "e0", "e1"), EXIT_FAILED);
	now.first_only = true;
	now.runs = 0;
	assert_int_equal(SEVERAL(&looking, "e0", "e1"), EXIT_FAILED);
	assert_int_equal(now.runs, 2);
}

/* A verb that sees to all of them by itself is told so, and run once. */
static void test_all_at_once(void **unused)
{
	(void)unused;
	assert_int_equal(SEVERAL(&watching, "e0", "e1"), EXIT_DONE);
	assert_int_equal(now.runs, 1);
	assert_true(now.many);
	assert_int_equal(SEVERAL(&watching, "e0"), EXIT_DONE);
	assert_false(now.many);
}

/* "all" is an interface where one has that name. */
static void test_one_named_all(void **unused)
{
	(void)unused;
	now.has_all = true;
	assert_int_equal(SEVERAL(&looking, "all"), EXIT_DONE);
	assert_int_equal(now.runs, 1);
	assert_string_equal(now.last, "all");
}

/* Where only something is shown, each begins with its name. */
static void test_whose_is_whose(void **unused)
{
	(void)unused;
	assert_int_equal(SEVERAL(&changing, "e0", "e2", "show", "add"), EXIT_DONE);
	assert_string_equal(headed, "e0:\ne2:\n");
	assert_int_equal(SEVERAL(&changing, "all", "show"), EXIT_DONE);
	assert_string_equal(headed, "e0:\ne1:\ne2:\ne3:\n");
	assert_int_equal(SEVERAL(&changing, "e0", "e2", "add", "show"), EXIT_DONE);
	assert_string_equal(headed, "");
	assert_int_equal(SEVERAL(&taking, "e0", "e2"), EXIT_DONE);
	assert_string_equal(headed, "");
}

/* Of those that share their state one is asked, and what failed is done for none. */
static void test_shared(void **unused)
{
	static char *args[] = {"e0", "e2", "add"};

	(void)unused;
	now.shared = true;
	assert_int_equal(SEVERAL(&changing, "e0", "e2", "add"), EXIT_DONE);
	assert_int_equal(now.runs, 1);
	assert_string_equal(headed, "e2: has the pacer of e0: done for both\n");
	now.code = EXIT_FAILED;
	assert_int_equal(SEVERAL(&changing, "e0", "e2", "add"), EXIT_FAILED);
	assert_int_equal(now.runs, 2);
	assert_string_equal(headed, "");
	assert_int_equal(
	    several_with(&changing, (struct options){.args = args, .n_args = 3, .json = true}),
	    EXIT_FAILED);
	assert_non_null(strstr(headed, "\"interface\": \"e2\",\n    \"result\": null"));
}

/* Of more than it has room for, none is left out in silence. */
static void test_too_many(void **unused)
{
	static char name[MOST + 1][IF_NAMESIZE];
	char *args[MOST + 1];

	(void)unused;
	for (int i = 0; i <= MOST; i++) {
		snprintf(name[i], sizeof(name[i]), "e%d", i);
		args[i] = name[i];
	}
	now.pacers = MOST;
	assert_int_equal(SEVERAL(&looking, "all"), EXIT_DONE);
	assert_int_equal(now.runs, MOST);
	assert_int_equal(several(&looking, MOST, args, NULL), EXIT_DONE);
	now.runs = 0;
	now.pacers = MOST + 1;
	assert_int_equal(SEVERAL(&looking, "all"), EXIT_FAILED);
	assert_one_line("look: more than the 256 interfaces that it takes at once");
	assert_int_equal(several(&looking, MOST + 1, args, NULL), EXIT_FAILED);
	assert_one_line("name some of them");
	assert_int_equal(now.runs, 0);
}

static void test_names_that_are_wrong(void **unused)
{
	(void)unused;
	assert_int_equal(SEVERAL(&looking, "e0", "n123456789012345"), EXIT_FAILED);
	assert_one_line(
	    "n123456789012345: is longer than an interface's own name: see `ip link`\n");
	assert_int_equal(SEVERAL(&looking, "e0", LONG_NAME), EXIT_FAILED);
	assert_one_line(LONG_NAME ": is another name of e7: write that\n");
	assert_int_equal(SEVERAL(&changing, "e0", LONG_NAME, "add"), EXIT_FAILED);
	assert_one_line(LONG_NAME ": is another name of e7: write that\n");
	assert_int_equal(SEVERAL(&looking, "e0", "e1", "e0"), EXIT_WRONG);
	assert_one_line("e0 is named twice");
	assert_int_equal(SEVERAL(&changing, "e0", "e9", "e8", "add"), EXIT_FAILED);
	assert_non_null(strstr(said, "e9: has no pacer; nothing is changed on e0 and e8"));
	assert_int_equal(SEVERAL(&taking, "e0", "e9", "e8"), EXIT_FAILED);
	assert_non_null(strstr(said, "e9: has no pacer; nothing is changed on e0 and e8"));
	assert_int_equal(SEVERAL(&taking, "e0", "e9"), EXIT_FAILED);
	assert_one_line("e9: has no pacer; nothing is changed on e0\n");
	now.pacers = 0;
	assert_int_equal(SEVERAL(&changing, "all", "add"), EXIT_FAILED);
	assert_one_line("no interface of this network namespace has a pacer");
	now.pacers = 1;
	now.gone = true; /* between two looks */
	assert_int_equal(SEVERAL(&changing, "all", "add"), EXIT_FAILED);
	assert_one_line("e0: has no pacer\n");
	now.unlisted = true;
	assert_int_equal(SEVERAL(&looking, "all"), EXIT_FAILED);
	assert_one_line("cannot be listed");
	assert_int_equal(now.runs, 0);
}

/* A pipe with this, as stdin. */
static void fill_stdin(size_t len)
{
	char text[20000];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i % 23);
	assert_int_equal(write(ends[1], text, len), len);
	close(ends[1]);
	if (ends[0] != STDIN_FILENO) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
	}
	clearerr(stdin);
}

static void test_each_reads_stdin(void **unused)
{
	static char *args[] = {"e0", "e2"};

	(void)unused;
	fill_stdin(20000);
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "e2", "add", "-"), EXIT_DONE);
	assert_int_equal(now.len, 20000); /* by the last of them */
	for (size_t i = 0; i < now.len; i++)
		assert_int_equal(now.read[i], 'a' + i % 23);
	fill_stdin(5);
	assert_int_equal(several(&changing, 2, args, "-"), EXIT_DONE);
	assert_int_equal(now.len, 5);
	fill_stdin(6);
	assert_int_equal(
	    several_with(&looking, (struct options){.args = args, .n_args = 2, .diff = "-"}),
	    EXIT_DONE);
	assert_int_equal(now.len, 6);
	assert_int_equal(
	    several_with(&looking,
			 (struct options){.args = args, .n_args = 2, .policy = "a", .diff = "b"}),
	    EXIT_DONE);
	assert_int_equal(
	    several_with(&looking, (struct options){.args = args, .n_args = 2, .watch = true}),
	    EXIT_WRONG);
	assert_one_line("look: --watch is of one interface");
	assert_int_equal(
	    several_with(&looking, (struct options){.args = args, .n_args = 2, .pcap = "a"}),
	    EXIT_WRONG);
	assert_one_line("look: --pcap is of one interface");
	assert_int_equal(
	    several_with(&looking, (struct options){.args = args, .n_args = 2, .every = "1s"}),
	    EXIT_WRONG);
	assert_one_line("look: --every is of one interface");
}

/* A file as stdin, of which somebody has read the first line: each reads the rest. */
static void test_each_reads_the_rest_of_a_file(void **unused)
{
	char path[] = "/tmp/xdp-pacer-test.XXXXXX";
	int fd = mkstemp(path);

	(void)unused;
	unlink(path);
	assert_int_equal(write(fd, "read\nthe rest", 13), 13);
	dup2(fd, STDIN_FILENO);
	close(fd);
	clearerr(stdin);
	assert_int_equal(lseek(STDIN_FILENO, 5, SEEK_SET), 5);
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "add", "-"), EXIT_DONE);
	assert_int_equal(now.runs, 2);
	assert_int_equal(now.len, 8);
	assert_memory_equal(now.read, "the rest", 8);
	fill_stdin(0);
}

/* As a shell writes <(...): the name of a descriptor, which a pipe is. */
static void test_each_reads_a_descriptor(void **unused)
{
	static char *args[] = {"e0", "e2"};
	static const char *const names[] = {"/dev/fd/50", "/proc/self/fd/50", "/dev/stdin"};
	char fifo[] = "/tmp/xdp-pacer-test.XXXXXX";

	(void)unused;
	for (size_t i = 0; i < 3; i++) {
		fill_stdin(20000);
		dup2(STDIN_FILENO, 50);
		memset(now.read, 0, sizeof(now.read));
		assert_int_equal(several(&changing, 2, args, names[i]), EXIT_DONE);
		assert_int_equal(now.len, 20000); /* by the last of them */
		assert_int_equal(now.read[19999], 'a' + 19999 % 23);
		close(50);
	}
	assert_non_null(mkdtemp(fifo));
	rmdir(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	now.runs = 0;
	assert_int_equal(several(&changing, 2, args, fifo), EXIT_WRONG);
	assert_one_line(" is a pipe, which is read once, and there are several interfaces");
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "replace", "a", fifo), EXIT_WRONG);
	assert_int_equal(now.runs, 0);
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "add", "a", fifo), EXIT_DONE);
	unlink(fifo);
}

static void test_stdin_that_cannot_be_kept(void **unused)
{
	int fd;

	(void)unused;
	fill_stdin(5);
	now.no_memfd = true;
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "add", "-"), EXIT_FAILED);
	assert_one_line("change: stdin cannot be kept for each interface: Too many open files");
	now.no_memfd = false;
	fill_stdin(5000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4000, RLIM_INFINITY}), 0);
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "add", "-"), EXIT_FAILED);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}),
			 0);
	assert_one_line("change: stdin cannot be kept for each interface: File too large");
	fd = open("/dev/null", O_WRONLY); /* from which nothing can be read */
	dup2(fd, STDIN_FILENO);
	close(fd);
	assert_int_equal(SEVERAL(&changing, "e0", "e1", "add", "-"), EXIT_FAILED);
	assert_one_line("change: stdin cannot be kept for each interface: Bad file descriptor");
	assert_int_equal(now.runs, 0);
	fill_stdin(0);
}

static void test_no_memory(void **unused)
{
	(void)unused;
	starved_from(1, true);
	now.starving = true;
	assert_int_equal(SEVERAL(&looking, "e0", "e1"), EXIT_FAILED);
	assert_non_null(strstr(said, "look: no memory"));
	assert_int_equal(now.runs, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{

	const struct CMUnitTest tests[] = {
	    TEST(test_each),
	    TEST(test_all_at_once),
	    TEST(test_one_named_all),
	    TEST(test_whose_is_whose),
	    TEST(test_shared),
	    TEST(test_too_many),
	    TEST(test_names_that_are_wrong),
	    TEST(test_each_reads_stdin),
	    TEST(test_each_reads_the_rest_of_a_file),
	    TEST(test_each_reads_a_descriptor),
	    TEST(test_stdin_that_cannot_be_kept),
	    TEST(test_no_memory),
	};

	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
