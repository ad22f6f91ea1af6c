/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A picture of frames whose outcomes are given here, by a limit whose answers are: each point
 * against an oracle that keeps every use, what is told to gnuplot (a script in its place), and
 * where the file is written.
 */
#include "ended.h"
#include "oracle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offline/plot.h"
#include "plan/kinds.h"

#define FRAMES 20000
#define POINTS 1601

struct given {
	uint64_t now_ns;
	uint32_t source, rule, len_bytes;
	bool denied;
};

static struct given given[FRAMES];
static uint32_t n_given, next, fails_at, told, opens, cannot_open;
static const struct pacer_policy *opened;
static struct pacer_limiter own; /* the limiter, before it is asked for what is free */

/* Of whom a picture is made, and by what; and what the limit says is free, less than there is. */
static struct {
	uint32_t source, rule, limiter;
	uint64_t span_ns;
	bool closed, of_bytes;
	uint64_t hides, together; /* and of which bits of a time uses leave together */
} of;

static uint64_t leaves(uint64_t now_ns)
{
	return now_ns | of.together;
}

/* What the key used in a time, from after its begin to its end. */
static uint64_t used(uint64_t after_ns, bool from_zero, uint64_t to_ns)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_given && given[i].now_ns <= to_ns; i++)
		if (given[i].source == of.source && given[i].rule == of.rule && !given[i].denied &&
		    (from_zero || leaves(given[i].now_ns) > after_ns))
			n += of.of_bytes ? given[i].len_bytes : 1;
	return n;
}

static uint64_t held(uint64_t at_ns)
{
	uint64_t span_ns = of.span_ns - !of.closed;

	return at_ns <= span_ns ? used(0, true, at_ns) : used(at_ns - span_ns - 1, false, at_ns);
}

/* The same, which a search asks for one time again and again. */
static uint64_t held_again(uint64_t at_ns)
{
	static uint64_t last_ns, last_held;

	if (at_ns != last_ns || !at_ns) {
		last_ns = at_ns;
		last_held = held(at_ns);
	}
	return last_held;
}

static uint64_t denied(uint64_t to_ns)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_given && given[i].now_ns <= to_ns; i++)
		n += given[i].source == of.source && given[i].rule == of.rule && given[i].denied;
	return n;
}

static bool was_seen(uint64_t to_ns)
{
	return used(0, true, to_ns) || denied(to_ns);
}

/* ---- the capture, and who judges it ---- */

struct replay *replay_open(const struct policy *policy, const struct pacer_policy *bin,
			   uint64_t lines, bool kernel, struct policy_error *error)
{
	(void)policy;
	(void)lines;
	assert_false(kernel);
	if (++opens == cannot_open) {
		(void)policy_fail(error, 0, "replay: no memory");
		return NULL;
	}
	opened = bin;
	own = bin->rule[of.rule].limiter[of.limiter];
	return (struct replay *)&given[0];
}

void replay_close(struct replay *r)
{
	(void)r;
}

int capture_again(struct capture *c, struct policy_error *error)
{
	(void)error;
	(void)c;
	next = 0;
	return 0;
}

void capture_tell(struct capture *c, struct replay *replay)
{
	(void)c;
	assert_ptr_equal(replay, &given[0]);
	told++;
}

/* Its own clock is not the one that counts. */
int capture_next(struct capture *c, struct replay_frame *frame)
{
	(void)c;
	if (next == n_given)
		return 0;
	*frame = (struct replay_frame){
	    .time_ns = 7, .now_ns = given[next].now_ns, .len_bytes = given[next].len_bytes};
	next++;
	return 1;
}

int replay_judge(struct replay *r, const struct replay_frame *frame, struct replay_judged *judged,
		 struct policy_error *error)
{
	const struct given *g = &given[next - 1];

	(void)r;
	assert_memory_equal(&own, &opened->rule[of.rule].limiter[of.limiter], sizeof(own));
	if (next == fails_at)
		return policy_fail(error, 0, "replay: the judge is gone");
	*judged = (struct replay_judged){
	    .outcome = pacer_outcome_under(
		g->denied ? pacer_outcome(PACER_DENY_WINDOW, of.limiter) : PACER_ADMIT, g->rule)};
	judged->pkt.family = PACER_FAMILY_4;
	judged->pkt.key[PACER_WORD_SADDR] = g->source;
	judged->pkt.key[PACER_WORD_DADDR] = next;
	judged->pkt.len_bytes = frame->len_bytes;
	return 0;
}

/* The limit: under any value but its own gap's, which is to be set aside. */
enum pacer_reason replay_peek(struct replay *r, const struct pacer_packet *pkt, uint32_t rule,
			      uint32_t limiter, uint64_t time_ns)
{
	const struct pacer_limiter *t = &opened->rule[rule].limiter[limiter];
	const struct limit_kind *kind = kind_of_limiter(t);

	(void)r;
	assert_int_equal(rule, of.rule);
	assert_int_equal(limiter, of.limiter);
	assert_int_equal(pkt->key[PACER_WORD_SADDR], of.source);
	assert_int_equal(pkt->len_bytes, 1);
	assert_int_not_equal(kind->limit,
			     LIMIT_THROTTLE); /* under other uses it has other buckets */
	if (kind->by_time)
		return held(time_ns) ? PACER_DENY_GAP : PACER_ADMIT;
	if (t->gap_ns)
		return PACER_DENY_GAP;
	return held_again(time_ns) + of.hides + 1 <= kind->value(t) ? PACER_ADMIT
								    : PACER_DENY_WINDOW;
}

uint32_t replay_throttle_free(const struct replay *r, uint32_t rule, uint32_t limiter,
			      uint64_t time_ns)
{
	uint64_t most = opened->rule[rule].limiter[limiter].throttle.limit;
	uint64_t now = held(time_ns) + of.hides;

	(void)r;
	return now < most ? (uint32_t)(most - now) : 0;
}

/* ---- gnuplot ---- */

static char folder[64], svg[80];

/* What stands in its place keeps what it is told, and then does this. */
static void gnuplot(const char *does)
{
	char name[80];
	FILE *f;

	snprintf(name, sizeof(name), "%s/gnuplot", folder);
	f = fopen(name, "w");
	fprintf(f, "#!/bin/sh\n%s\n", does);
	fclose(f);
	assert_int_equal(chmod(name, 0755), 0);
}

#define DRAWS "/bin/cat >\"$TOLD\"; echo '<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>'"

static const char *told_text(void)
{
	static char text[1 << 18];
	FILE *f = fopen(getenv("TOLD"), "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return text;
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- a picture ---- */

struct picture {
	const char *policy;
	uint32_t limit;
	uint64_t start_ns, from_ns, to_ns;
};

static int drawn(const struct picture *it, struct policy_error *error)
{
	struct policy *policy = policy_parse(it->policy, strlen(it->policy), error);
	struct plot_view view = {of.rule,
				 it->limit,
				 .key_text = "it's",
				 .start_ns = it->start_ns,
				 .from_ns = it->from_ns,
				 .to_ns = it->to_ns};
	struct pacer_packet pkt = {.family = PACER_FAMILY_4};
	struct capture capture = {.file = "/a/b.pcap"};
	const struct pacer_limiter *limiter;
	struct judge like;
	int files = open_files(), code;

	if (!policy || judge_open(&like, "a policy", policy, false, error))
		fail_msg("%s", error->text);
	limiter = judge_limiter(&like, of.rule, it->limit);
	assert_int_equal(limiter - like.bin->rule[of.rule].limiter, of.limiter);
	pkt.key[PACER_WORD_SADDR] = of.source;
	view.key = tally_key_of(limiter, &policy->rule[of.rule].limit[it->limit].key, &pkt);
	view.key.rule = (uint16_t)of.rule;
	view.key.limit = (uint8_t)it->limit;
	told = 0;
	code = plot_capture(&capture, &like, &view, svg, error);
	judge_close(&like);
	policy_free(policy);
	assert_int_equal(open_files(), files);
	return code;
}

/* Each point is what the oracle says of its time. Returns at how many less was reported than free.
 */
static uint32_t check_points(const struct picture *it, uint64_t capacity)
{
	const char *at = strstr(told_text(), "$d << END_OF_DATA\n");
	uint64_t base = used(0, true, it->from_ns), before = denied(it->from_ns);
	uint32_t less = 0;

	assert_int_equal(told, 1);
	for (uint32_t i = 0; i < POINTS; i++) {
		uint64_t t =
		    it->from_ns + (uint64_t)((double)(it->to_ns - it->from_ns) * i / (POINTS - 1));
		uint64_t uses = used(0, true, t) - base, now = held(t),
			 more = now + (was_seen(t) ? of.hides : 0);
		char want[128];

		at = strchr(at, '\n') + 1;
		snprintf(want, sizeof(want), "%.9f %lu %lu %lu %s\n",
			 (double)(t - it->start_ns) / 1e9, (unsigned long)uses,
			 (unsigned long)(uses + (now < capacity ? capacity - now : 0)),
			 (unsigned long)(uses + (more < capacity ? capacity - more : 0)),
			 i && denied(t) > before ? "1" : "NaN");
		before = denied(t);
		if (strncmp(at, want, strlen(want)))
			fail_msg("point %u: want %s, got %.60s", i, want, at);
		less += more != now;
	}
	at = strchr(at, '\n') + 1;
	assert_int_equal(strncmp(at, "END_OF_DATA\n", 12), 0);
	return less;
}

static void give(uint64_t now_ns, uint32_t source, uint32_t rule, bool is_denied)
{
	assert_true(n_given < FRAMES);
	given[n_given++] =
	    (struct given){now_ns, source, rule, 60 + (uint32_t)(now_ns % 7), is_denied};
}

static int begin(void **unused)
{
	(void)unused;
	n_given = next = fails_at = opens = cannot_open = 0;
	memset(&of, 0, sizeof(of));
	of.source = 10;
	gnuplot(DRAWS);
	unlink(svg);
	return 0;
}

/* Of a window: the second limit's limiter, whose gap is set aside; under the second rule. */
static void test_window(void **unused)
{
	static const struct picture it = {"rules: [{name: no, match: {dport: 9}, limits: [{key: "
					  "src, packets: 2, window: 1s}]}, {name: yes, limits: "
					  "[{key: dst, packets: 7, window: 3us}, {key: src, "
					  "packets: 300, window: 3us}, {key: src, gap: 1ns}]}]",
					  1, 900, 2000, 9000};
	struct policy_error error = {0};
	uint64_t now = 1000;
	const char *text;

	(void)unused;
	of.rule = of.limiter = 1;
	of.span_ns = 3000;
	of.closed = true;
	of.hides = 5;
	for (uint32_t i = 0; i < 2000; i++) {
		now += draw() % 9;
		give(now, 10 + draw() % 3 % 2, draw() % 4 > 0, draw() % 4 == 0);
	}
	if (drawn(&it, &error))
		fail_msg("%s", error.text);
	assert_true(check_points(&it, 300) > 1000);
	text = told_text();
	assert_non_null(strstr(
	    text, "set label \"\" . 'yes, it' . \"'\" . 's: 300 packets in any 3us' at graph"));
	assert_non_null(strstr(text, "set label \"\" . 'b.pcap' at graph"));
	assert_non_null(strstr(text, "set xrange [0.000001100:0.000008100]\n"));
	assert_non_null(strstr(text, "set label 'denied'"));
	assert_non_null(strstr(text, "with vectors"));
	assert_null(strstr(text, "set ytics 1\n"));
}

/* More uses than the picture has cells for, each at a time of its own, and the cells used again; in
 * a window of fewer nanoseconds than cells, and in one of more, whose uses share them.
 */
static void test_cells(void **unused)
{
	static const struct picture it[] = {
	    {"rules: [{name: a, limits: [{key: src, packets: 60000, window: 4095ns}]}]", 0, 0, 3000,
	     19000},
	    {"rules: [{name: a, limits: [{key: src, packets: 60000, window: 8191ns}]}]", 0, 0, 3000,
	     19000}};
	struct policy_error error = {0};

	(void)unused;
	of.closed = true;
	for (uint32_t i = 1; i <= 19000; i++)
		give(i, 10, 0, false);
	for (uint32_t i = 0; i < ARRAY(it); i++) {
		of.span_ns = i ? 8191 : 4095;
		of.together = i;
		if (drawn(&it[i], &error))
			fail_msg("%s", error.text);
		assert_int_equal(check_points(&it[i], 60000), 0);
		assert_null(strstr(told_text(), "set label 'denied'"));
		assert_null(strstr(told_text(), "with vectors"));
	}
}

/* Of bytes, each packet costs its own; the limit is asked for one more. */
static void test_bytes(void **unused)
{
	static const struct picture it = {
	    "rules: [{name: a, limits: [{key: src, bytes: 5000, window: 2us}]}]", 0, 0, 1, 9001};
	struct policy_error error = {0};

	(void)unused;
	of.span_ns = 2000;
	of.closed = of.of_bytes = true;
	of.hides = 3;
	for (uint32_t i = 0; i < 300; i++)
		give(100 + i * 29, 10, 0, false);
	if (drawn(&it, &error))
		fail_msg("%s", error.text);
	check_points(&it, 5000);
	assert_non_null(strstr(told_text(), "5000 bytes in any 2us"));
}

/* A gap is free or not, and over when it is as old as it is long. */
static void test_gap(void **unused)
{
	static const struct picture it = {"rules: [{name: a, limits: [{key: src, gap: 100ns}]}]", 0,
					  0, 0, 3200};
	struct policy_error error = {0};

	(void)unused;
	of.span_ns = 100;
	for (uint32_t i = 0; i < 20; i++) {
		give(50 + i * 150, 10, 0, false);
		give(52 + i * 150, 10, 0, true);
	}
	if (drawn(&it, &error))
		fail_msg("%s", error.text);
	check_points(&it, 1);
	assert_int_equal(own.gap_ns, 100); /* a capture's clock is exact */
	assert_non_null(strstr(told_text(), "a gap of 100ns"));
	assert_non_null(strstr(told_text(), "set yrange [-"));
}

/* A throttle says itself what is free, and never more is drawn than the uses leave. */
static void test_throttle(void **unused)
{
	static const struct picture it = {
	    "rules: [{name: a, limits: [{key: all, uses: 3, cooldown: 1us}]}]", 0, 0, 0, 9000};
	struct policy_error error = {0};

	(void)unused;
	of.span_ns = 1000;
	of.hides = 1;
	for (uint32_t i = 0; i < 30; i++)
		give(70 + i * 290, 10, 0, false);
	if (drawn(&it, &error))
		fail_msg("%s", error.text);
	check_points(&it, 3);
	of.hides = (uint64_t)-1; /* more than there is */
	if (drawn(&it, &error))
		fail_msg("%s", error.text);
	of.hides = 0;
	check_points(&it, 3);
}

static const struct picture few = {
    "rules: [{name: a, limits: [{key: src, packets: 5, window: 1us}]}]", 0, 0, 0, 4000};

static void give_few(void)
{
	of.span_ns = 1000;
	of.closed = true;
	for (uint32_t i = 0; i < 5; i++)
		give(400 + i * 300, 10, 0, false);
}

static void cannot(const struct picture *it, const char *said)
{
	struct policy_error error = {0};

	assert_int_equal(drawn(it, &error), -1);
	if (!strstr(error.text, said))
		fail_msg("said %s, not %s", error.text, said);
	assert_int_equal(access(svg, F_OK), -1);
}

/* What cannot be drawn is said, nothing is written, and a signal that was given counts again. */
static void test_fails(void **unused)
{
	static const struct picture rate = {
	    "rules: [{name: a, limits: [{key: src, rate: 5/s, burst: 5}]}]", 0, 0, 0, 4000};
	char path[512];

	(void)unused;
	give_few();
	signal(SIGPIPE, SIG_DFL);
	cannot(&rate, "those of this limit, a rate, come back bit by bit");
	fails_at = 3;
	cannot(&few, "the judge is gone");
	fails_at = 0;
	cannot_open = opens + 2; /* the picture's own judge */
	cannot(&few, "replay: no memory");
	gnuplot("exec <&-; echo '<svg>a picture that it seems is whole</svg>'; exit 3");
	cannot(&few, "gnuplot failed");
	gnuplot("/bin/cat >/dev/null; echo '<svg>a picture of which the end is not there'");
	cannot(&few, "gnuplot failed");
	gnuplot("/bin/cat >/dev/null; echo '</svg>'");
	cannot(&few, "gnuplot failed");
	snprintf(path, sizeof(path), "%s", getenv("PATH"));
	setenv("PATH", "/nonexistent", 1);
	cannot(&few, "there is no gnuplot: install gnuplot-nox");
	setenv("PATH", path, 1);
	assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
	gnuplot("exec <&-; echo '<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>'");
	assert_int_equal(drawn(&few, &(struct policy_error){0}), 0); /* it need not read all */
	assert_int_equal(access(svg, F_OK), 0);
}

/* ---- the file ---- */

#define LONG 200001

static int content(void)
{
	static char text[LONG];
	int fd = memfd_create("content", MFD_CLOEXEC);

	for (size_t i = 0; i < LONG; i++)
		text[i] = (char)('a' + i % 23 + i / 65536);
	assert_int_equal(write(fd, text, LONG), LONG);
	return fd;
}

static mode_t is_content(const char *name)
{
	static char text[LONG + 1];
	FILE *f = fopen(name, "r");
	struct stat st;

	assert_non_null(f);
	assert_int_equal(fread(text, 1, sizeof(text), f), LONG);
	for (size_t i = 0; i < LONG; i++)
		assert_int_equal(text[i], (char)('a' + i % 23 + i / 65536));
	assert_int_equal(fstat(fileno(f), &st), 0);
	fclose(f);
	return st.st_mode & 07777;
}

static int entries(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* All of it is there, with the modes of before or those of a new file; a link stays one. */
static void test_file(void **unused)
{
	int fd = content(), before = entries(), files = open_files();
	mode_t mask = umask(027);
	char link[80];
	struct stat st;

	(void)unused;
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(svg, link), 0);
	assert_int_equal(plot_write_file(fd, link), ENOENT); /* to nothing yet */
	assert_int_equal(entries(), before + 1);
	assert_int_equal(plot_write_file(fd, svg), 0);
	assert_int_equal(is_content(svg), 0640);
	assert_int_equal(umask(027), 027);
	assert_int_equal(truncate(svg, 3), 0);
	assert_int_equal(chmod(svg, 0604), 0);
	assert_int_equal(plot_write_file(fd, link), 0);
	assert_int_equal(is_content(svg), 0604);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(entries(), before + 2);
	assert_int_equal(open_files(), files);
	unlink(link);
	umask(mask);
	close(fd);
}

/* What cannot be written leaves what was there, and nothing beside it. */
static void test_no_file(void **unused)
{
	struct rlimit was, small = {70000, 70000};
	int fd = content(), before = entries(), files;
	char name[6000] = "";
	struct stat st;

	(void)unused;
	files = open_files();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	small.rlim_max = was.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(plot_write_file(fd, svg), EFBIG);
	assert_int_equal(entries(), before);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(plot_write_file(fd, svg), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(plot_write_file(fd, svg), EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	is_content(svg);
	assert_int_equal(entries(), before + 1);
	assert_int_equal(plot_write_file(fd, "/dev/full"), ENOSPC);
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(plot_write_file(fd, folder), EISDIR);
	assert_int_equal(plot_write_file(fd, "/nonexistent/x.svg"), ENOENT);
	assert_int_equal(chdir(folder), 0);
	for (int i = 0; i < 2044; i++) /* long enough for what stands beside it to be too long */
		strcat(name, "./");
	strcat(name, "abcd");
	assert_int_equal(plot_write_file(fd, name), ENAMETOOLONG);
	assert_int_equal(entries(), before + 1);
	assert_int_equal(open_files(), files);
	close(fd);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	if (ends_by)
		raise(ends_by);
	return __real_rename(from, to);
}

static void write_file(void)
{
	(void)plot_write_file(content(), svg);
}

/* A signal that comes while it is written ends it once nothing is left beside it. */
static void test_ended(void **unused)
{
	int before;

	(void)unused;
	unlink(svg);
	before = entries();
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		assert_true(ended_by(ending[i], write_file));
		is_content(svg);
		assert_int_equal(entries(), before + 1);
		unlink(svg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_window, begin),
	    cmocka_unit_test_setup(test_cells, begin),
	    cmocka_unit_test_setup(test_bytes, begin),
	    cmocka_unit_test_setup(test_gap, begin),
	    cmocka_unit_test_setup(test_throttle, begin),
	    cmocka_unit_test_setup(test_fails, begin),
	    cmocka_unit_test_setup(test_file, begin),
	    cmocka_unit_test_setup(test_no_file, begin),
	    cmocka_unit_test_setup(test_ended, begin),
	};
	char name[80];
	int failed;

	snprintf(folder, sizeof(folder), "/tmp/test_plot.XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(svg, sizeof(svg), "%s/x.svg", folder);
	snprintf(name, sizeof(name), "%s/told", folder);
	setenv("TOLD", name, 1);
	setenv("PATH", folder, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(name);
	unlink(svg);
	snprintf(name, sizeof(name), "%s/gnuplot", folder);
	unlink(name);
	rmdir(folder);
	return failed;
}
