/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The store's client, one call a line of input, for tests/fleet/run:
 *
 *   store [--ca FILE] [--cert FILE] [--key FILE] [--timeout MS] ENDPOINT...
 *
 *   hold KEY VALUE FOLLOWS TTL    read [OWN AFTER]    write KEY VALUE FOLLOWS GUARD CREATED
 *   drop KEY FOLLOWS              watch MS (once it has been begun: what was written since `read`)
 *   guard CREATED (of `put` and `clear`)    put KEY VALUE FOLLOWS KEY|- VALUE TTL GUARD
 *   pages UNDER (how many keys, and pages)
 *   list UNDER AFTER              age UNDER (of the first there: seconds)    clear UNDER GUARD
 *
 * A line is printed for each: "done", "refused" or "unknown: WHY", and what was asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/store.h"

#define WORDS 8

static const struct store_kind *kind = &store_etcd;
static uint64_t seen;	 /* the store's revision */
static uint64_t guarded; /* when the guard of `put` and `clear` was made */

static void show(struct store *s, enum store_result result)
{
	if (result == STORE_UNKNOWN)
		printf("unknown: %s", kind->why(s));
	else
		printf("%s", result == STORE_DONE ? "done" : "refused");
}

static void show_all(struct store_snapshot *now)
{
	for (size_t i = 0; i < now->n; i++)
		printf(" %s=%s@%llu/%llu", now->at[i].key, now->at[i].value,
		       (unsigned long long)now->at[i].created,
		       (unsigned long long)now->at[i].revision);
	if (now->revision)
		seen = now->revision;
	store_snapshot_free(now);
}

static uint64_t number(const char *word)
{
	return strtoull(word, NULL, 10);
}

/* Each key once, all of one revision. */
static void count_pages(struct store *s, const char *under)
{
	struct store_list list = {.under = under};
	struct store_snapshot now = {0};
	size_t keys = 0, pages = 0;
	char last[256] = "";
	bool more = true;

	for (; more; pages++) {
		if (kind->list(s, &list, &now) != STORE_DONE) {
			printf("%s", kind->why(s));
			return;
		}
		for (size_t i = 0; i < now.n; i++, keys++) {
			if (strcmp(now.at[i].key, last) <= 0 ||
			    (list.at && now.revision != list.at))
				printf("%s is not behind %s: ", now.at[i].key, last);
			snprintf(last, sizeof(last), "%s", now.at[i].key);
		}
		list.at = now.revision;
		list.behind = last;
		list.behind_len = strlen(last);
		more = now.more;
		store_snapshot_free(&now);
	}
	printf("%zu keys, %zu pages", keys, pages);
}

static void run(struct store *s, char **w, int n)
{
	struct store_snapshot now = {0};
	struct store_news news = {0};
	struct store_list list;
	uint64_t revision = 0;

	if (!strcmp(w[0], "guard") && n == 2) {
		guarded = number(w[1]);
		printf("done");
	} else if (!strcmp(w[0], "hold") && n == 5) {
		show(s, kind->hold(s, w[1], w[2], number(w[3]), number(w[4]), &now));
		show_all(&now);
	} else if (!strcmp(w[0], "read") && (n == 1 || n == 3)) {
		news.own = n == 1 ? "member/none" : w[1];
		news.first = news.last = n == 1 ? 0 : number(w[2]);
		show(s, kind->read(s, &news, &now));
		if (n == 3)
			printf(" %zu+%zu", now.firsts, now.lasts);
		show_all(&now);
	} else if (!strcmp(w[0], "write") && n == 6) {
		show(s, kind->write(s, w[1], w[2], number(w[3]), w[4], number(w[5]), &revision));
		printf(" %llu", (unsigned long long)revision);
	} else if (!strcmp(w[0], "drop") && n == 3) {
		show(s, kind->drop(s, w[1], number(w[2])));
	} else if (!strcmp(w[0], "watch") && n == 2) {
		static const struct store_under what[] = {
		    {"limit/", false}, {"member/", true}, {"item/", false}};
		int change = kind->watch(s, what, 3, seen, number(w[1]));

		printf("%s", change < 0	  ? kind->why(s)
			     : change & 3 ? "change"
			     : change	  ? "items"
					  : "nothing");
	} else if (!strcmp(w[0], "put") && n == 8) {
		const struct store_put put[] = {{w[1], w[2], number(w[3])}, {w[4], w[5], 0}};

		show(s, kind->put(s, put, *w[4] == '-' ? 1 : 2, number(w[6]), w[7], guarded,
				  &revision, &now));
		printf(" %llu", (unsigned long long)revision);
		show_all(&now);
	} else if (!strcmp(w[0], "list") && n == 3) {
		list = (struct store_list){.under = w[1], .after = number(w[2])};
		show(s, kind->list(s, &list, &now));
		show_all(&now);
	} else if (!strcmp(w[0], "pages") && n == 2) {
		count_pages(s, w[1]);
	} else if (!strcmp(w[0], "age") && n == 2) {
		uint64_t age_ns = 0, left_ns = 0;

		list = (struct store_list){.under = w[1]};
		show(s, kind->list(s, &list, &now));
		if (now.n)
			show(s, kind->age(s, now.at[0].lease, &age_ns, &left_ns));
		printf(" %llu", (unsigned long long)age_ns / 1000000000);
		store_snapshot_free(&now);
	} else if (!strcmp(w[0], "clear") && n == 3) {
		show(s, kind->clear(s, w[1], w[2], guarded));
	} else {
		printf("what is %s?", w[0]);
	}
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct store_options o = {
	    .prefix = "/xdp-pacer/test/", .first = "limit/", .last = "member/", .timeout_ms = 2000};
	char why[STORE_WHY], line[4096], *word[WORDS];
	struct store *s;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--ca"))
			o.ca = argv[++i];
		else if (!strcmp(argv[i], "--cert"))
			o.cert = argv[++i];
		else if (!strcmp(argv[i], "--key"))
			o.key = argv[++i];
		else if (!strcmp(argv[i], "--timeout"))
			o.timeout_ms = number(argv[++i]);
		else if (o.endpoints < STORE_ENDPOINTS_MAX)
			o.endpoint[o.endpoints++] = argv[i];
	}
	s = kind->open(&o, why);
	if (!s) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		int n = 0;

		for (char *w = strtok(line, " \n"); w && n < WORDS; w = strtok(NULL, " \n"))
			word[n++] = w;
		if (n)
			run(s, word, n);
	}
	kind->close(s);
	return 0;
}
