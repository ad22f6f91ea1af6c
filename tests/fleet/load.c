/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a store carries: members of one fleet renew their sessions as fast as it lets them. So does
 * an agent every third of its session's time: a
 * grant, a transaction, and a read of what is new.
 * Then each reads the record of all of them, and writes it, as they do when shares change.
 *
 *   load MEMBERS THREADS SECONDS ENDPOINT...
 *
 * Prints a line of JSON: renewals a second, how long one took, how many hosts that serves; and how
 * many times a second the record was read, and of writes one after the other, written.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/codec.h"
#include "fleet/store.h"

#define FLEET	    1024
#define TTL_S	    10
#define NOTHING	    (INT64_MAX - 1) /* is new after this */
#define THREADS_MAX 64
#define TAKEN_MAX   400000

static const struct store_kind *kind = &store_etcd;
static int members, threads, seconds, endpoints;
static char **endpoint;
static uint64_t *revision, *seen; /* of each member's key, and of the store when it read */
static char *record;

static struct worker {
	pthread_t thread;
	int number;
	uint64_t renewals, failed, bytes, reads, writes;
	float *taken_ms;
} worker[THREADS_MAX];

static pthread_barrier_t together;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static struct store *open_fleet(int fleet)
{
	struct store_options o = {.first = "limit/", .last = "member/", .timeout_ms = 5000};
	char prefix[64], why[STORE_WHY];
	struct store *s;

	for (int i = 0; i < endpoints && i < STORE_ENDPOINTS_MAX; i++)
		o.endpoint[o.endpoints++] = endpoint[(i + fleet) % endpoints];
	snprintf(prefix, sizeof(prefix), "/xdp-pacer/load%d/", fleet);
	o.prefix = prefix;
	s = kind->open(&o, why);
	if (!s) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	return s;
}

static void take_in(struct worker *w, int member, const char *key, struct store_snapshot *now)
{
	for (size_t i = 0; i < now->n; i++) {
		w->bytes += now->at[i].len + 40;
		if (!strcmp(now->at[i].key, key))
			revision[member] = now->at[i].revision;
	}
	store_snapshot_free(now);
}

/* One whose session has ended meanwhile costs as much. */
static bool renew(struct worker *w, struct store *s, int member)
{
	struct store_snapshot now = {0};
	char key[32];
	struct store_news news = {key, seen[member], seen[member]};

	snprintf(key, sizeof(key), "member/%016x", member + 1);
	if (kind->hold(s, key, "{\"is\":\"member\",\"v\":1}", revision[member], TTL_S, &now) ==
	    STORE_UNKNOWN) {
		w->failed++;
		return false;
	}
	revision[member] = 0;
	take_in(w, member, key, &now);
	if (kind->read(s, &news, &now) != STORE_DONE) {
		w->failed++;
		return false;
	}
	seen[member] = now.revision;
	take_in(w, member, key, &now);
	return true;
}

/* The record, written over and over. */
static void write_some(struct worker *w, struct store *s)
{
	double begun = now_ms();
	uint64_t at = 0;

	while (now_ms() - begun < seconds * 1e3 &&
	       kind->write(s, "limit/1", record, at, "member/none", 0, &at) == STORE_DONE)
		w->writes++;
}

/* A worker renews members of its own, in turn, and then reads the record. */
static void *work(void *arg)
{
	const struct store_news all = {"member/none", 0, NOTHING};
	struct worker *w = arg;
	struct store *s = open_fleet(0);
	struct store_snapshot now;
	double begun;

	for (int m = w->number; m < members; m += threads)
		(void)renew(w, s, m);
	pthread_barrier_wait(&together);
	w->bytes = w->renewals = w->failed = 0;
	begun = now_ms();
	for (int m = w->number; now_ms() - begun < seconds * 1e3;
	     m = m + threads < members ? m + threads : w->number) {
		double sent = now_ms();

		if (!renew(w, s, m))
			continue;
		if (w->renewals < TAKEN_MAX)
			w->taken_ms[w->renewals] = (float)(now_ms() - sent);
		w->renewals++;
	}
	pthread_barrier_wait(&together);
	if (!w->number)
		write_some(w, s);
	pthread_barrier_wait(&together);
	begun = now_ms();
	while (now_ms() - begun < seconds * 1e3) {
		if (kind->read(s, &all, &now) == STORE_DONE && now.n)
			w->reads++;
		store_snapshot_free(&now);
	}
	kind->close(s);
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	float p = *(const float *)a, q = *(const float *)b;

	return (p > q) - (p < q);
}

static void sum_up(void)
{
	static float all[THREADS_MAX * TAKEN_MAX / 16];
	uint64_t n = 0, renewals = 0, failed = 0, bytes = 0, reads = 0;

	for (int i = 0; i < threads; i++) {
		renewals += worker[i].renewals;
		failed += worker[i].failed;
		bytes += worker[i].bytes;
		reads += worker[i].reads;
		for (uint64_t k = 0; k < worker[i].renewals && k < TAKEN_MAX; k++)
			if (n < sizeof(all) / sizeof(*all))
				all[n++] = worker[i].taken_ms[k];
	}
	qsort(all, n, sizeof(*all), by_time);
	printf("{\"members\":%d,\"renewals_per_s\":%.0f,\"failed\":%llu,\"median_ms\":%.1f,"
	       "\"p99_ms\":%.1f,\"MB_per_s\":%.1f,\"hosts_at_rest\":%.0f,"
	       "\"record_bytes\":%zu,\"reads_per_s\":%.0f,\"writes_per_s\":%.0f}\n",
	       members, (double)renewals / seconds, (unsigned long long)failed, n ? all[n / 2] : 0,
	       n ? all[n * 99 / 100] : 0, bytes / 1e6 / seconds,
	       (double)renewals / seconds * TTL_S / 3, strlen(record), (double)reads / seconds,
	       (double)worker[0].writes / seconds);
}

int main(int argc, char **argv)
{
	static struct fleet_record r;

	if (argc < 5) {
		fprintf(stderr, "usage: load MEMBERS THREADS SECONDS ENDPOINT...\n");
		return 2;
	}
	members = atoi(argv[1]);
	threads = atoi(argv[2]);
	seconds = atoi(argv[3]);
	endpoint = argv + 4;
	endpoints = argc - 4;
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	r.memory_ns = 1000000000;
	for (uint64_t i = 0; i < FLEET && i < (uint64_t)members; i++) {
		struct fleet_slot *slot = fleet_add_slot(&r, (i + 1) << 53 | 0x123456789abcd);

		slot->limit = slot->cell[0].want = 10000;
		slot->session = 1000000 + i;
		slot->cell[0].held = 10;
	}
	record = fleet_write_record(&r);
	revision = calloc(members, sizeof(*revision));
	seen = calloc(members, sizeof(*seen));
	pthread_barrier_init(&together, NULL, threads);
	for (int i = 0; revision && seen && i < members; i++)
		seen[i] = NOTHING; /* else each reads all that were there before */
	for (int i = 0; i < threads && record && revision && seen; i++) {
		worker[i].number = i;
		worker[i].taken_ms = calloc(TAKEN_MAX, sizeof(float));
		pthread_create(&worker[i].thread, NULL, work, &worker[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(worker[i].thread, NULL);
	sum_up();
	for (int i = 0; i < threads; i++)
		free(worker[i].taken_ms);
	free(revision);
	free(seen);
	free(record);
	return 0;
}
