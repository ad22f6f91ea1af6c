/* SPDX-License-Identifier: GPL-2.0-only */
/* A capture through replay, suggest and estimate: whatever the file says, and whatever its times.
 */
#include "fuzz.h"
#include "estimate/estimate_run.h"
#include "offline/judge.h"
#include "offline/smallest.h"

#define FRAMES_MAX 300
#define POLICY                                                                      \
	"memory: 64K\nbans: 16\nunparsed: drop\nallow: [198.51.100.0/24]\nrules:\n" \
	"- name: a\n  match: {proto: udp}\n  ban: 1s\n  limits:\n"                  \
	"  - {key: src/32,64, packets: 3, window: 1s}\n  - {key: flow, gap: 1ms}\n" \
	"- name: b\n  limits:\n  - {key: dst, rate: 10kB/s, burst: 3kB}\n"          \
	"  - {key: all, uses: 20, cooldown: 1s, threshold: 2}\n"

static struct policy *policy;

static void warn(const struct capture *c, const char *text)
{
	(void)c;
	HOLDS(*text);
}

static void quiet(const struct capture *c)
{
	(void)c;
}

static const struct capture_listener listener = {warn, quiet, quiet};

static void begin(void)
{
	struct policy_error error = {0};

	policy = policy_parse(POLICY, strlen(POLICY), &error);
	if (!policy)
		fprintf(stderr, "%d: %s\n", error.line, error.text);
	HOLDS(policy);
}

static void replay_it(const char *file)
{
	struct smallest *smallest;
	struct replay_judged judged;
	struct policy_error error;
	struct replay_frame frame;
	struct capture c;
	struct judge j;

	if (capture_open(&c, file, &listener, &error)) {
		HOLDS(*error.text);
		capture_close(&c);
		return;
	}
	HOLDS(!judge_open(&j, "policy", policy, false, &error));
	smallest = smallest_open(policy, &error);
	HOLDS(smallest);
	for (int i = 0; i < FRAMES_MAX && capture_next(&c, &frame); i++) {
		HOLDS(frame.captured <= frame.len_bytes || frame.captured <= REPLAY_HEAD_BYTES);
		HOLDS(!replay_judge(j.replay, &frame, &judged, &error));
		HOLDS(!judged.open_ns || judge_denied(&judged));
		HOLDS(!smallest_feed(smallest, &frame, &error));
	}
	if (c.frames < FRAMES_MAX)
		HOLDS(!smallest_settle(smallest, &c, &error));
	smallest_close(smallest);
	judge_close(&j);
	capture_close(&c);
}

static void show(const struct estimate_run *run, const struct estimate_reading *r, void *arg)
{
	(void)run;
	(void)r;
	(void)arg;
}

static bool enough(void)
{
	return false;
}

static void estimate_it(const char *file, uint8_t how)
{
	static const struct estimate_listener shown = {show, enough, NULL};
	struct estimate_want want = {.name = file,
				     .by_time = how & 1,
				     .exact = true,
				     .triangles = how & 2,
				     .window = how & 1 ? 1000000000 : 64,
				     .every_ns = how & 4 ? 100000000 : 0,
				     .seed = 1,
				     .moment = 2,
				     .samples = 16};
	struct estimate_reading last;
	struct estimate_run run = {0};
	struct policy_error error;

	HOLDS(!estimate_key_open(how & 8 ? "flow" : "dst", &want.key, &error));
	if (!capture_open(&run.capture, file, &listener, &error) &&
	    !estimate_run_open(&run, &want, &shown, &error))
		(void)estimate_run_read(&run, &last, &error);
	estimate_run_close(&run);
	estimate_key_close(&want.key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t how = (uint8_t)fuzz_take(&in, 1);

	if (!policy)
		begin();
	replay_it(fuzz_file(in.at, in.left));
	estimate_it(fuzz_file(in.at, in.left), how);
	return 0;
}
