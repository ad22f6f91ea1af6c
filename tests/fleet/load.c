/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a store carries: members renew their sessions as fast as it lets them, in fleets of 64, each
 * of which has a record of 64 members. So does an agent every third of its session's time: a grant,
 * and a transaction that reads all records and members of its fleet.
 *
 *   load MEMBERS THREADS SECONDS ENDPOINT...
 *
 * Prints a line of JSON: renewals a second, how long one took, and how many hosts that serves.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/codec.h"
#include "fleet/store.h"

#define FLEET	    64
#define TTL_S	    10
#define THREADS_MAX 64
#define TAKEN_MAX   400000

static const struct store_kind *kind = &store_etcd;
static int members, threads, seconds, endpoints;
static char **endpoint;
static uint64_t *revision; /* of each member's key */
static char *record;

static struct worker {
	pthread_t thread;
	int number;
	uint64_t renewals, failed, bytes;
	float *taken_ms;
} worker[THREADS_MAX];

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

static bool renew(struct worker *w, struct store *s, int member)
{
	struct store_snapshot now = {0};
	char key[32];
	enum store_result result;

	snprintf(key, sizeof(key), "member/%016x", member + 1);
	result = kind->hold(s, key, "{\"is\":\"member\",\"v\":1}", revision[member], TTL_S, &now);
	if (result == STORE_UNKNOWN)
		w->failed++;
	for (size_t i = 0; i < now.n; i++) {
		w->bytes += now.at[i].len + 40;
		if (!strcmp(now.at[i].key, key))
			revision[member] = now.at[i].revision;
	}
	store_snapshot_free(&now);
	return result == STORE_DONE;
}

/* A worker has fleets of its own, of which each member renews in turn. */
static void *work(void *arg)
{
	struct worker *w = arg;
	int fleets = (members + FLEET - 1) / FLEET, mine = 0;
	struct store *s[1024];
	double begun;

	for (int f = w->number; f < fleets && mine < 1024; f += threads, mine++) {
		uint64_t at;

		s[mine] = open_fleet(f);
		if (renew(w, s[mine], f * FLEET)) {
			char key[32];

			snprintf(key, sizeof(key), "member/%016x", f * FLEET + 1);
			(void)kind->write(s[mine], "limit/1", record, 0, key, revision[f * FLEET],
					  &at);
		}
		for (int m = f * FLEET; m < (f + 1) * FLEET && m < members; m++)
			(void)renew(w, s[mine], m);
	}
	w->bytes = w->renewals = w->failed = 0;
	begun = now_ms();
	for (int turn = 0; mine && now_ms() - begun < seconds * 1e3; turn++)
		for (int k = 0; k < mine && now_ms() - begun < seconds * 1e3; k++) {
			int m = (w->number + k * threads) * FLEET + turn % FLEET;
			double sent = now_ms();

			if (m >= members || !renew(w, s[k], m))
				continue;
			if (w->renewals < TAKEN_MAX)
				w->taken_ms[w->renewals] = (float)(now_ms() - sent);
			w->renewals++;
		}
	for (int k = 0; k < mine; k++)
		kind->close(s[k]);
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
	uint64_t n = 0, renewals = 0, failed = 0, bytes = 0;

	for (int i = 0; i < threads; i++) {
		renewals += worker[i].renewals;
		failed += worker[i].failed;
		bytes += worker[i].bytes;
		for (uint64_t k = 0; k < worker[i].renewals && k < TAKEN_MAX; k++)
			if (n < sizeof(all) / sizeof(*all))
				all[n++] = worker[i].taken_ms[k];
	}
	qsort(all, n, sizeof(*all), by_time);
	printf("{\"members\":%d,\"renewals_per_s\":%.0f,\"failed\":%llu,\"median_ms\":%.1f,"
	       "\"p99_ms\":%.1f,\"MB_per_s\":%.1f,\"hosts_at_rest\":%.0f}\n",
	       members, (double)renewals / seconds, (unsigned long long)failed, n ? all[n / 2] : 0,
	       n ? all[n * 99 / 100] : 0, bytes / 1e6 / seconds,
	       (double)renewals / seconds * TTL_S / 3);
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
	for (int i = 0; i < FLEET; i++)
		fleet_add_slot(&r, i + 1)->limit = 10000;
	record = fleet_write_record(&r);
	revision = calloc(members + FLEET, sizeof(*revision));
	for (int i = 0; i < threads && record && revision; i++) {
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
	free(record);
	return 0;
}
