/* SPDX-License-Identifier: GPL-2.0-only */
/* estimate: what a sample of a sliding window tells of a capture's traffic, interval by interval.
 */
#include <inttypes.h>
#include <math.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "cmd.h"
#include "estimate.h"
#include "exact.h"
#include "tally.h"
#include "track.h"

#define VERB		"estimate"
#define SAMPLES_DEFAULT 1024
#define WINDOW_DEFAULT	1000000000ull
#define CLASSES		64 /* of third vertices of a triangle */
#define STEP_SAMPLES	64
#define STEP_SHOWN	10
#define KEY_TEXT	192

struct step {
	uint64_t window;
	uint32_t weight;
	struct track *track;
};

struct wanted {
	const char *file, *key;
	bool by_time, json, exact, triangles;
	uint64_t window, every_ns, seed;
	uint32_t moment, samples;
	struct step step[PACER_ESTIMATE_STEPS];
	uint32_t steps;
};

struct run {
	struct wanted want;
	struct policy *policy; /* that has the key */
	const struct policy_key *key;
	struct capture capture;
	struct track *track;
	struct exact *exact;
	uint64_t packets, others, first_ns, last_ns, next_ns, since; /* since: the last reading */
	json_t *intervals;
	bool headed;
};

/* One reading of the window. */
enum quantity { ENTROPY, NORM, MOMENT, TRIANGLES, QUANTITIES };

struct reading {
	uint64_t at_ns, n, distinct;
	struct estimate of[QUANTITIES];
	double exact[QUANTITIES];
	uint32_t dropped;
};

static int failed(const char *what)
{
	fprintf(stderr, "xdp-pacer: " VERB ": %s\n", what);
	return EXIT_FAILED;
}

/* --- what is asked -------------------------------------------------------------------------- */

static const struct option all_options[] = {
    {"window", required_argument, NULL, 'w'},  {"window-packets", required_argument, NULL, 'n'},
    {"key", required_argument, NULL, 'y'},     {"moment", required_argument, NULL, 'm'},
    {"samples", required_argument, NULL, 's'}, {"every", required_argument, NULL, 'e'},
    {"step", required_argument, NULL, 'S'},    {"exact", no_argument, NULL, 'x'},
    {"triangles", no_argument, NULL, 't'},     {"seed", required_argument, NULL, 'r'},
    {"json", no_argument, NULL, 'j'},	       {NULL, 0, NULL, 0},
};

static int take_duration(const char *what, uint64_t *ns)
{
	if (units_duration(optarg, ns) || !*ns)
		return misused(VERB, "--%s %s is not a duration such as 1s or 250ms", what, optarg);
	return EXIT_DONE;
}

static int take_count(const char *what, uint64_t least, uint64_t most, uint64_t *count)
{
	uint64_t n;

	if (units_count(optarg, &n) || n < least || n > most)
		return misused(VERB, "--%s %s is not a number from %" PRIu64 " to %" PRIu64, what,
			       optarg, least, most);
	*count = n;
	return EXIT_DONE;
}

static int take_number(int letter, struct wanted *w)
{
	uint64_t n = 0;
	int code;

	if (letter == 'n') {
		w->by_time = false;
		return take_count("window-packets", 1, TRACK_PACKETS_MAX, &w->window);
	}
	if (letter == 'r')
		return take_count("seed", 0, UINT64_MAX, &w->seed);
	code = letter == 'm' ? take_count("moment", 1, ESTIMATE_MOMENT_MAX, &n)
			     : take_count("samples", 1, TRACK_SAMPLES_MAX, &n);
	if (letter == 'm')
		w->moment = n;
	else
		w->samples = (n + PACER_SAMPLE_K - 1) / PACER_SAMPLE_K * PACER_SAMPLE_K;
	return code;
}

static int take_option(int letter, struct wanted *w, const char **step)
{
	switch (letter) {
	case 'w':
		w->by_time = true;
		return take_duration("window", &w->window);
	case 'e':
		return take_duration("every", &w->every_ns);
	case 'y':
		w->key = optarg;
		return EXIT_DONE;
	case 'S':
		*step = optarg;
		return EXIT_DONE;
	case 'x':
		w->exact = true;
		return EXIT_DONE;
	case 't':
		w->triangles = true;
		return EXIT_DONE;
	case 'j':
		w->json = true;
		return EXIT_DONE;
	default:
		return take_number(letter, w);
	}
}

/* One "1s:8" of --step. */
static int take_step(struct wanted *w, char *text)
{
	char *colon = strchr(text, ':');
	struct step *s = &w->step[w->steps], *before = w->steps ? s - 1 : NULL;
	uint64_t weight;

	if (w->steps == PACER_ESTIMATE_STEPS)
		return misused(VERB, "--step has more than %d windows", PACER_ESTIMATE_STEPS);
	if (colon)
		*colon = 0;
	if (!colon || units_count(colon + 1, &weight) || !weight ||
	    weight > PACER_ESTIMATE_WEIGHT_MAX ||
	    (w->by_time ? units_duration(text, &s->window) : units_count(text, &s->window)) ||
	    !s->window || (!w->by_time && s->window > TRACK_PACKETS_MAX))
		return misused(VERB, "--step wants WINDOW:WEIGHT, such as %s, weights up to %u",
			       w->by_time ? "1s:8,10s:1" : "100:8,1000:1",
			       PACER_ESTIMATE_WEIGHT_MAX);
	s->weight = weight;
	if (before && (s->window <= before->window || s->weight > before->weight))
		return misused(VERB, "--step: windows rise and weights fall, from the newest on");
	w->steps++;
	return EXIT_DONE;
}

static int take_steps(struct wanted *w, const char *text)
{
	char copy[256], *at = copy, *part;
	int code = EXIT_DONE;

	if (!text)
		return EXIT_DONE;
	if (strlen(text) >= sizeof(copy))
		return misused(VERB, "--step is too long");
	memcpy(copy, text, strlen(text) + 1);
	while (!code && (part = strsep(&at, ",")))
		code = take_step(w, part);
	return code;
}

static int parse(int argc, char **argv, struct wanted *w)
{
	const char *step = NULL;
	bool windows[2] = {false, false};
	int letter, code = EXIT_DONE;

	*w = (struct wanted){.file = "-",
			     .key = "src",
			     .by_time = true,
			     .window = WINDOW_DEFAULT,
			     .moment = 2,
			     .samples = SAMPLES_DEFAULT,
			     .seed = 1};
	optind = 1;
	opterr = 0;
	while (!code && (letter = getopt_long(argc, argv, ":", all_options, NULL)) != -1) {
		if (letter == ':')
			return misused(VERB, "%s wants a value", argv[optind - 1]);
		if (letter == '?')
			return misused(VERB, "it has no option %s", argv[optind - 1]);
		windows[0] |= letter == 'w';
		windows[1] |= letter == 'n';
		code = take_option(letter, w, &step);
	}
	if (code)
		return code;
	if (windows[0] && windows[1])
		return misused(VERB, "--window and --window-packets are two windows: choose one");
	if (argc - optind != 1)
		return misused(VERB, "it wants one capture");
	w->file = argv[optind];
	return take_steps(w, step);
}

/* A key is what a policy's limit has for one. */
static int read_key(struct run *run)
{
	struct policy_error error = {0};
	const char *key = run->want.key, *why;
	char text[160];

	if (strlen(key) > 32 ||
	    strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789+/,") != strlen(key))
		return misused(VERB, "--key %s is none: src, dst, src/24,56, flow, src+dport", key);
	snprintf(text, sizeof(text), "rules: [{name: k, limits: [{key: \"%s\", gap: 1ms}]}]", key);
	run->policy = policy_parse(text, strlen(text), &error);
	why = strstr(error.text, "key: ");
	if (!run->policy)
		return misused(VERB, "--key: %s", why ? why + 5 : error.text);
	run->key = &run->policy->rule[0].limit[0].key;
	return EXIT_DONE;
}

/* --- packets -------------------------------------------------------------------------------- */

static uint64_t hash_word(uint64_t sum, uint32_t word)
{
	return pacer_estimate_mix(sum + word);
}

static uint64_t hash_address(const struct pacer_packet *pkt, uint32_t word, uint8_t len4,
			     uint8_t len6)
{
	bool four = pkt->family == PACER_FAMILY_4;
	uint32_t len = four ? len4 : len6;
	uint64_t sum = four ? 4 : 6;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t bits = len > 32 * i ? len - 32 * i : 0;
		uint32_t mask = bits >= 32 ? UINT32_MAX : bits ? ~(UINT32_MAX >> bits) : 0;

		sum = hash_word(sum, pkt->key[word + i] & mask);
	}
	return sum;
}

static uint64_t hash_key(const struct policy_key *key, const struct pacer_packet *pkt)
{
	uint64_t sum = 0;

	if (key->kind == KEY_ALL)
		return 0;
	if (key->kind != KEY_DST)
		sum = hash_address(pkt, PACER_WORD_SADDR, key->len4, key->len6);
	if (key->kind == KEY_DST || key->kind == KEY_FLOW)
		sum ^= hash_word(hash_address(pkt, PACER_WORD_DADDR, key->len4, key->len6), 1);
	if (key->kind == KEY_FLOW)
		sum = hash_word(hash_word(sum, pkt->key[PACER_WORD_PORTS]),
				pkt->key[PACER_WORD_META]);
	if (key->kind == KEY_SRC_DPORT)
		sum = hash_word(hash_word(sum, pkt->key[PACER_WORD_PORTS] & 0xffff),
				pkt->key[PACER_WORD_META] & PACER_META_FRAGMENT);
	return sum;
}

static struct pacer_sample_item item_of(const struct pacer_packet *pkt, uint64_t time_ns)
{
	struct pacer_sample_item item = {.time_ns = time_ns,
					 .sport = pkt->key[PACER_WORD_PORTS] >> 16,
					 .dport = pkt->key[PACER_WORD_PORTS],
					 .len_bytes = pkt->len_bytes,
					 .family = pkt->family,
					 .proto = pkt->proto};

	for (int i = 0; i < 4; i++) {
		item.saddr[i] = pkt->key[PACER_WORD_SADDR + i];
		item.daddr[i] = pkt->key[PACER_WORD_DADDR + i];
	}
	return item;
}

static int add(struct run *run, const struct pacer_packet *pkt)
{
	struct pacer_sample_item item = item_of(pkt, run->last_ns);
	struct track_element e = {run->last_ns,
				  hash_key(run->key, pkt),
				  {hash_address(pkt, PACER_WORD_SADDR, 32, 128),
				   hash_address(pkt, PACER_WORD_DADDR, 32, 128)},
				  &item};

	run->packets++;
	run->since++;
	track_add(run->track, &e);
	for (uint32_t i = 0; i < run->want.steps; i++)
		track_add(run->want.step[i].track, &e);
	if (!run->exact || exact_add(run->exact, e.time_ns, e.key, e.ends))
		return EXIT_DONE;
	fprintf(stderr,
		"xdp-pacer: " VERB
		": --exact keeps every packet of the window, and has no room for "
		"more than %u: choose a shorter window\n",
		EXACT_MAX);
	return EXIT_FAILED;
}

/* --- readings ------------------------------------------------------------------------------- */

static int take_reading(struct run *run, uint64_t now_ns, struct reading *r)
{
	const struct estimate_view *v = track_view(run->track, now_ns);
	struct exact_values truth = {0};

	*r = (struct reading){.at_ns = now_ns, .n = v->n, .dropped = v->beta_dropped};
	r->of[ENTROPY] = estimate_entropy(v, ESTIMATE_DELTA);
	r->of[NORM] = estimate_norm(v, ESTIMATE_DELTA);
	r->of[MOMENT] = estimate_moment(v, run->want.moment, ESTIMATE_DELTA);
	r->of[TRIANGLES] = estimate_triangles(v, ESTIMATE_DELTA);
	if (!run->exact)
		return EXIT_DONE;
	if (!exact_read(run->exact, now_ns, run->want.moment, run->want.triangles, &truth))
		return failed("no memory for the exact values");
	r->distinct = truth.distinct;
	r->exact[ENTROPY] = truth.entropy;
	r->exact[NORM] = truth.norm;
	r->exact[MOMENT] = truth.moment;
	r->exact[TRIANGLES] = truth.triangles;
	return EXIT_DONE;
}

static const char *quantity_name(const struct run *run, enum quantity q)
{
	static const char *const names[] = {"entropy", "norm", NULL, "triangles"};
	static char moment[8];

	if (q != MOMENT)
		return names[q];
	snprintf(moment, sizeof(moment), "F%u", run->want.moment);
	return moment;
}

static bool is_wanted(const struct run *run, enum quantity q)
{
	return q != TRIANGLES || run->want.triangles;
}

/* Where the bounds know more than the mean, what they leave of it. */
static double shown(const struct estimate *e)
{
	return fmax(e->low, fmin(e->high, e->value));
}

static json_t *real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *reading_json(const struct run *run, const struct reading *r)
{
	json_t *all = json_object();

	json_object_set_new(all, "time_ns", json_integer((json_int_t)r->at_ns));
	json_object_set_new(all, "packets", json_integer((json_int_t)r->n));
	if (run->exact)
		json_object_set_new(all, "distinct", json_integer((json_int_t)r->distinct));
	for (int q = 0; q < QUANTITIES; q++) {
		const struct estimate *e = &r->of[q];
		json_t *one;

		if (!is_wanted(run, q))
			continue;
		one = json_pack("{s:o, s:o, s:o, s:b, s:o}", "value", real(shown(e)), "low",
				real(e->low), "high", real(e->high), "vacuous", e->vacuous, "prior",
				real(e->prior));
		if (run->exact)
			json_object_set_new(one, "exact", real(r->exact[q]));
		if (q == TRIANGLES)
			json_object_set_new(one, "dropped", json_integer(r->dropped));
		json_object_set_new(all, quantity_name(run, q), one);
	}
	return all;
}

/* "6.52 (6.21..6.83)", and the exact value. */
static void print_estimate(const struct run *run, const struct reading *r, enum quantity q)
{
	const struct estimate *e = &r->of[q];
	char text[96];
	int len = snprintf(text, sizeof(text), "%.4g (%.4g..%.4g)", shown(e), e->low, e->high);

	if (run->exact)
		snprintf(text + len, sizeof(text) - len, " = %.4g", r->exact[q]);
	printf("  %-*s", run->exact ? 40 : 30, text);
}

static void print_row(struct run *run, const struct reading *r)
{
	if (!run->headed) {
		printf("%10s %10s", "until", "packets");
		for (int q = 0; q < QUANTITIES; q++)
			if (is_wanted(run, q))
				printf("  %-*s", run->exact ? 40 : 30, quantity_name(run, q));
		putchar('\n');
	}
	run->headed = true;
	printf("%9.3fs %10" PRIu64, (double)(r->at_ns - run->first_ns) / 1e9, r->n);
	for (int q = 0; q < QUANTITIES; q++)
		if (is_wanted(run, q))
			print_estimate(run, r, q);
	putchar('\n');
}

/* Of the window that ends before at_ns. */
static int report(struct run *run, uint64_t at_ns)
{
	struct reading r;
	int code = take_reading(run, at_ns - 1, &r);

	r.at_ns = at_ns;
	run->since = 0;
	if (code)
		return code;
	if (run->want.json)
		json_array_append_new(run->intervals, reading_json(run, &r));
	else
		print_row(run, &r);
	return EXIT_DONE;
}

/* Reports at every interval's end up to now; empty windows and those that have not changed are
 * passed over.
 */
static int report_until(struct run *run, uint64_t now_ns)
{
	uint64_t every = run->want.every_ns;
	int code = EXIT_DONE;

	while (every && !code && now_ns >= run->next_ns) {
		bool new = run->want.by_time ? track_n(run->track, run->next_ns - 1) : run->since;

		if (new)
			code = report(run, run->next_ns);
		else
			run->next_ns += (now_ns - run->next_ns) / every * every;
		run->next_ns += every;
	}
	return code;
}

static int take_frame(struct run *run, const struct replay_frame *frame)
{
	uint32_t head = frame->captured < REPLAY_HEAD_BYTES ? frame->captured : REPLAY_HEAD_BYTES;
	struct pacer_packet pkt;
	int code;

	if (pacer_parse(frame->data, frame->data + head, frame->len_bytes, &pkt) != PACER_PARSED) {
		run->others++;
		return EXIT_DONE;
	}
	if (!run->packets) {
		run->first_ns = run->last_ns = frame->time_ns;
		run->next_ns = frame->time_ns + run->want.every_ns;
	}
	if (frame->time_ns > run->last_ns)
		run->last_ns = frame->time_ns;
	code = report_until(run, run->last_ns);
	return code ? code : add(run, &pkt);
}

/* --- the end -------------------------------------------------------------------------------- */

static void print_priors(const struct run *run, const struct reading *r)
{
	printf("promised before a packet was seen, but for a chance of %g, of %u samples:\n",
	       ESTIMATE_DELTA, run->want.samples);
	for (int q = 0; q < QUANTITIES; q++) {
		const struct estimate *e = &r->of[q];

		if (!is_wanted(run, q))
			continue;
		printf("  %-10s", quantity_name(run, q));
		if (q == ENTROPY)
			printf("%.3g bits%s", e->prior,
			       e->prior >= log2((double)r->n) ? ": nothing, no entropy is greater"
							      : "");
		else if (e->prior < 1)
			printf("%.3g%%", 100 * e->prior);
		else
			printf("nothing: these samples are too few");
		printf("; measured: %s\n",
		       e->vacuous ? "nothing either, the interval is wider than the value"
				  : "the interval above");
	}
	if (r->dropped)
		printf(
		    "  triangles are more than said: %u samples saw more vertices than they keep\n",
		    r->dropped);
}

static void print_head(const struct run *run)
{
	char window[32], memory[32];

	if (run->want.by_time)
		units_duration_text(track_window(run->track), window, sizeof(window));
	else
		snprintf(window, sizeof(window), "%" PRIu64 " packets", run->want.window);
	printf("%s: %" PRIu64 " packets in %.6g s by %s, %" PRIu64
	       " frames of no address; window %s; %u samples in %s; low..high hold at %g%%\n",
	       run->want.file, run->packets, (double)(run->last_ns - run->first_ns) / 1e9,
	       run->want.key, run->others, window, run->want.samples,
	       units_size_round(track_bytes(run->track), memory, sizeof(memory)),
	       100 * (1 - ESTIMATE_DELTA));
}

/* --- the step-biased sample ------------------------------------------------------------------ */

static struct pacer_packet packet_of(const struct pacer_sample_item *item)
{
	struct pacer_packet pkt = {.family = item->family, .proto = item->proto};

	for (int i = 0; i < 4; i++) {
		pkt.key[PACER_WORD_SADDR + i] = item->saddr[i];
		pkt.key[PACER_WORD_DADDR + i] = item->daddr[i];
	}
	pkt.key[PACER_WORD_PORTS] = (uint32_t)item->sport << 16 | item->dport;
	pkt.key[PACER_WORD_META] = item->proto;
	return pkt;
}

/* STEP_SAMPLES items, or none of an empty stream. */
static uint32_t draw_steps(struct run *run, struct pacer_sample_item *out)
{
	const struct pacer_sample_item *of[PACER_ESTIMATE_STEPS];
	struct pacer_estimate_step step[PACER_ESTIMATE_STEPS];
	struct pacer_sample_rng rng = {run->want.seed};
	uint32_t n = run->want.steps;

	for (uint32_t i = 0; i < n; i++) {
		struct step *s = &run->want.step[i];

		step[i] = (struct pacer_estimate_step){s->weight, track_n(s->track, run->last_ns)};
		of[i] = track_items(s->track, run->last_ns);
	}
	for (uint32_t j = 0; j < STEP_SAMPLES; j++) {
		uint32_t i = pacer_estimate_step(step, n, &rng);

		if (i == n)
			return 0;
		out[j] = of[i][j];
	}
	return STEP_SAMPLES;
}

static json_t *steps_json(struct run *run)
{
	struct pacer_sample_item item[STEP_SAMPLES];
	uint32_t n = draw_steps(run, item);
	json_t *all = json_array();
	char text[KEY_TEXT];

	for (uint32_t j = 0; j < n; j++) {
		struct pacer_packet pkt = packet_of(&item[j]);

		json_array_append_new(
		    all, json_pack("{s:I, s:s, s:I}", "time_ns", (json_int_t)item[j].time_ns, "key",
				   tally_key_text(run->key, &pkt, text, sizeof(text)), "bytes",
				   (json_int_t)item[j].len_bytes));
	}
	return all;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void print_steps(struct run *run)
{
	struct pacer_sample_item item[STEP_SAMPLES];
	char text[STEP_SAMPLES][KEY_TEXT];
	uint32_t n = draw_steps(run, item), run_of = 0, shown = 0, keys = 0;

	for (uint32_t j = 0; j < n; j++) {
		struct pacer_packet pkt = packet_of(&item[j]);

		tally_key_text(run->key, &pkt, text[j], sizeof(text[j]));
	}
	qsort(text, n, sizeof(*text), by_text);
	printf("step-biased sample of %u packets, by key:\n", n);
	for (uint32_t count = n; count > 0; count--) {
		for (uint32_t j = 0; j < n; j++) {
			run_of = j && !strcmp(text[j], text[j - 1]) ? run_of + 1 : 1;
			if (run_of != count || (j + 1 < n && !strcmp(text[j], text[j + 1])))
				continue;
			keys++;
			if (shown++ < STEP_SHOWN)
				printf("  %3u %s\n", count, text[j]);
		}
	}
	if (keys > STEP_SHOWN)
		printf("  and %u keys more\n", keys - STEP_SHOWN);
}

static json_t *whole_json(struct run *run, const struct reading *r)
{
	json_t *all = json_pack(
	    "{s:s, s:I, s:I, s:s, s:i, s:f, s:I, s:I, s:O, s:o}", "file", run->want.file, "packets",
	    (json_int_t)run->packets, "others", (json_int_t)run->others, "key", run->want.key,
	    "samples", (int)run->want.samples, "delta", ESTIMATE_DELTA, "memory_bytes",
	    (json_int_t)track_bytes(run->track), run->want.by_time ? "window_ns" : "window_packets",
	    (json_int_t)track_window(run->track), "intervals", run->intervals, "last",
	    reading_json(run, r));

	if (run->want.steps)
		json_object_set_new(all, "step_biased", steps_json(run));
	return all;
}

static int finish(struct run *run)
{
	struct reading r;
	int code;

	if (!run->packets) {
		fprintf(stderr, "xdp-pacer: %s: it has no packet with an address\n",
			run->want.file);
		return EXIT_FAILED;
	}
	code = take_reading(run, run->last_ns, &r);
	if (code)
		return code;
	if (run->want.json)
		return print_json(whole_json(run, &r));
	print_row(run, &r);
	print_head(run);
	print_priors(run, &r);
	if (run->want.steps)
		print_steps(run);
	return fflush(stdout) || ferror(stdout) ? failed("the result cannot be written")
						: EXIT_DONE;
}

/* --- the verb ------------------------------------------------------------------------------- */

static struct track *open_track(const struct wanted *w, uint64_t window, uint32_t samples,
				uint32_t classes)
{
	return track_open(
	    &(struct track_config){w->by_time, window, samples, classes, w->seed + window});
}

static int open_all(struct run *run)
{
	struct wanted *w = &run->want;
	bool good;
	uint64_t tick;

	run->track = open_track(w, w->window, w->samples, w->triangles ? CLASSES : 0);
	good = run->track;
	for (uint32_t i = 0; i < w->steps; i++) {
		w->step[i].track = open_track(w, w->step[i].window, STEP_SAMPLES, 0);
		good &= w->step[i].track != NULL;
	}
	if (good && w->exact) {
		run->exact = exact_open(track_window(run->track),
					w->by_time ? track_tick_ns(run->track) : 0);
		good = run->exact;
	}
	if (!good)
		return failed("no memory for the samples: ask for fewer");
	tick = track_tick_ns(run->track);
	if (!w->every_ns && w->by_time)
		w->every_ns = track_window(run->track);
	w->every_ns = (w->every_ns + tick - 1) / tick * tick;
	return EXIT_DONE;
}

static void close_all(struct run *run)
{
	for (uint32_t i = 0; i < run->want.steps; i++)
		track_close(run->want.step[i].track);
	track_close(run->track);
	exact_close(run->exact);
	json_decref(run->intervals);
	policy_free(run->policy);
	capture_close(&run->capture);
}

/* Live samples carry no counts of what came after them. */
static int open_file(struct run *run)
{
	const char *file = run->want.file;

	if (strcmp(file, "-") && access(file, F_OK) && if_nametoindex(file)) {
		fprintf(stderr,
			"xdp-pacer: " VERB ": %s is an interface, and this version reads captures "
			"only: write one with tcpdump -i %s -w FILE\n",
			file, file);
		return EXIT_FAILED;
	}
	return capture_open(&run->capture, file);
}

static int read_all(struct run *run)
{
	struct replay_frame frame;
	int code = EXIT_DONE;

	while (!code && capture_next(&run->capture, &frame))
		code = take_frame(run, &frame);
	if (code)
		return code;
	code = finish(run);
	return run->capture.damaged ? EXIT_FAILED : code;
}

int cmd_estimate(int argc, char **argv)
{
	struct run run = {.intervals = json_array()};
	int code = parse(argc, argv, &run.want);

	if (!code)
		code = read_key(&run);
	if (!code)
		code = open_file(&run);
	if (!code)
		code = open_all(&run);
	if (!code)
		code = read_all(&run);
	close_all(&run);
	return code;
}
