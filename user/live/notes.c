/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/bans.h"
#include "live/host.h"
#include "plan/compile.h"

#define LOGIN_NONE UINT32_MAX

uint64_t notes_noted(const struct attached *a)
{
	return pacer_load64(&a->log->noted);
}

uint64_t notes_said(const struct attached *a)
{
	return pacer_load64(&a->log->said);
}

uint64_t notes_first(uint64_t n, uint64_t places)
{
	return n > places ? n - places : 0;
}

uint64_t notes_lost(const struct attached *a, uint32_t counter)
{
	return counter < PACER_COUNTERS_MAX ? pacer_load64(&a->log->lost[counter]) : 0;
}

/* Copies what has this number, if it has it before and after. */
static bool copy_of(const void *from, void *to, size_t size, uint32_t *at, uint64_t number)
{
	uint32_t wanted = (uint32_t)number + 1;

	if (pacer_acquire(at) != wanted)
		return false;
	memcpy(to, from, size);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return pacer_load(at) == wanted;
}

bool notes_ban(const struct attached *a, const struct policy *policy, uint64_t number,
	       struct note_ban *ban)
{
	struct pacer_note *note = &a->log->note[number % PACER_NOTES], copy;

	if (!copy_of(note, &copy, sizeof(copy), &note->number, number))
		return false;
	ban->time_ns = copy.time_ns;
	ban->until_ns = copy.until_ns;
	snprintf(ban->rule, sizeof(ban->rule), "?");
	for (size_t i = 0; i < policy->n_rules; i++)
		if (compile_name_id(policy->rule[i].name) == copy.rule)
			snprintf(ban->rule, sizeof(ban->rule), "%s", policy->rule[i].name);
	bans_key_text(copy.key_id, copy.key, ban->key, sizeof(ban->key));
	return true;
}

bool notes_saying(const struct attached *a, uint64_t number, struct note_said *said)
{
	struct pacer_said *at = &a->log->saying[number % PACER_SAID], copy;

	if (!copy_of(at, &copy, sizeof(copy), &at->number, number))
		return false;
	*said = (struct note_said){copy.what, copy.time_ns, copy.pid, copy.uid, ""};
	snprintf(said->text, sizeof(said->text), "%.*s", (int)sizeof(copy.text) - 1, copy.text);
	return true;
}

/* --- who -------------------------------------------------------------------------------------- */

static uint32_t login_uid(void)
{
	FILE *f = fopen("/proc/self/loginuid", "re");
	unsigned int uid = LOGIN_NONE;

	if (f) {
		if (fscanf(f, "%u", &uid) != 1)
			uid = LOGIN_NONE;
		fclose(f);
	}
	return uid;
}

/* sudo says it in the environment, which another user than root cannot have set for root. */
static uint32_t sudo_uid(void)
{
	const char *text = getuid() ? NULL : getenv("SUDO_UID");
	char *end;
	unsigned long uid;

	if (!text || !*text)
		return LOGIN_NONE;
	uid = strtoul(text, &end, 10);
	return *end || uid >= LOGIN_NONE ? LOGIN_NONE : (uint32_t)uid;
}

static uint32_t whose(void)
{
	uint32_t uid = login_uid();

	if (uid == LOGIN_NONE)
		uid = sudo_uid();
	return uid == LOGIN_NONE ? getuid() : uid;
}

static struct pacer_said said_now(enum note_what what, const char *text)
{
	struct pacer_said said = {
	    .what = what, .pid = getpid(), .uid = whose(), .time_ns = host_now_ns()};

	snprintf(said.text, sizeof(said.text), "%s", text);
	return said;
}

/* All is known before, so that the note is without its number for a moment only. */
static void put(struct attached *a, uint64_t number, const struct pacer_said *said)
{
	struct pacer_said *at = &a->log->saying[number % PACER_SAID];

	__atomic_store_n(&at->number, 0, __ATOMIC_SEQ_CST);
	at->what = said->what;
	at->pid = said->pid;
	at->uid = said->uid;
	at->time_ns = said->time_ns;
	memcpy(at->text, said->text, sizeof(at->text));
	__atomic_store_n(&at->number, (uint32_t)number + 1, __ATOMIC_RELEASE);
}

void notes_say(struct attached *a, enum note_what what, const char *text)
{
	struct pacer_said said = said_now(what, text);

	put(a, pacer_add64(&a->log->said, 1), &said);
}

bool notes_say_next(struct attached *a, uint64_t number, enum note_what what, const char *text)
{
	struct pacer_said said = said_now(what, text);

	if (pacer_cas64(&a->log->said, number, number + 1) != number)
		return false;
	put(a, number, &said);
	return true;
}
