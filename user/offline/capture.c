/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ETH_LEN 14
/* An hour before signed nanoseconds end: who adds to a frame's time has room. */
#define LAST_NS (INT64_MAX - 3600000000000)

static bool link_known(int link)
{
	return link == DLT_EN10MB || link == DLT_RAW || link == DLT_IPV4 || link == DLT_IPV6;
}

static int unknown_link(const struct capture *c, struct policy_error *error)
{
	const char *name = pcap_datalink_val_to_name(c->link);

	policy_explain(
	    error, 0,
	    "its link type is %s (%d): Ethernet and raw IP (RAW, IPV4, IPV6) can be judged",
	    name ? name : "unknown", c->link);
	error->file = c->file;
	return -1;
}

/* Does it begin like pcapng? The byte is put back. */
static bool is_ng(FILE *f)
{
	int first = getc(f);

	if (first != EOF)
		ungetc(first, f);
	return first == 0x0a;
}

static int open_file(struct capture *c, struct policy_error *error)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	FILE *f = strcmp(c->file, "-") ? fopen(c->file, "rb") : stdin;

	if (f)
		c->classic = !is_ng(f);
	if (f)
		c->pcap =
		    pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!c->pcap) {
		policy_explain(error, POLICY_BLAMELESS, "no frame can be read: %s",
			       f ? text : strerror(errno));
		error->file = c->file;
		if (f && f != stdin)
			fclose(f);
		return -1;
	}
	c->link = pcap_datalink(c->pcap);
	c->pass++;
	c->frames = c->read = 0;
	c->ahead = capture_repeats(c) ? CAPTURE_AHEAD : 1;
	c->got = 1;
	c->now_ns = 0;
	c->replays[0] = c->replays[1] = NULL;
	return link_known(c->link) ? 0 : unknown_link(c, error);
}

int capture_open(struct capture *c, const char *file, const struct capture_listener *listener,
		 struct policy_error *error)
{
	*c = (struct capture){.file = file, .listener = listener};
	c->slot =
	    calloc(CAPTURE_AHEAD, sizeof(*c->slot)); /* more than a small stack has room for */
	if (!c->slot)
		return policy_fail(error, POLICY_NO_MEMORY, "%s: no memory to read it", file);
	if (!open_file(c, error))
		return 0;
	capture_close(c);
	return -1;
}

bool capture_repeats(const struct capture *c)
{
	struct stat st;

	return strcmp(c->file, "-") && !stat(c->file, &st) && S_ISREG(st.st_mode);
}

int capture_again(struct capture *c, struct policy_error *error)
{
	pcap_close(c->pcap);
	c->pcap = NULL;
	return open_file(c, error);
}

bool capture_is_lost(const struct capture *c)
{
	return c->damaged && !c->frames;
}

void capture_close(struct capture *c)
{
	if (c->pcap)
		pcap_close(c->pcap);
	free(c->slot);
	c->pcap = NULL;
	c->slot = NULL;
}

/*
 * Time in ns since 1970. A time before counts as 0, a time beyond the range as the last one. A
 * classic file has unsigned 32-bit seconds. libpcap takes them for signed ones, which is wrong from
 * 2038 on. So does it take the fraction, which may be anything there: it can lead back before 1970.
 */
static uint64_t time_of(const struct capture *c, const struct pcap_pkthdr *header, int *beyond)
{
	int64_t s = c->classic ? (uint32_t)header->ts.tv_sec : header->ts.tv_sec;
	int64_t ns;

	*beyond = s < 0 ? -1 : 1;
	if (s < 0 || s > LAST_NS / 1000000000)
		return s < 0 ? 0 : LAST_NS;
	ns = s * 1000000000 + header->ts.tv_usec;
	*beyond = ns < 0 ? -1 : ns > LAST_NS;
	if (ns > LAST_NS)
		return LAST_NS;
	return ns < 0 ? 0 : (uint64_t)ns;
}

/* Raw IP gets an Ethernet header, as XDP would have seen it. The header counts in the length. */
static void fill_slot(const struct capture *c, const struct pcap_pkthdr *header,
		      const uint8_t *data, struct capture_slot *slot)
{
	static const uint8_t four[ETH_LEN] = {[12] = 0x08}, six[ETH_LEN] = {[12] = 0x86, 0xdd};
	uint32_t len = header->len > header->caplen ? header->len : header->caplen;
	bool is_six =
	    c->link == DLT_IPV6 || (c->link == DLT_RAW && header->caplen && data[0] >> 4 == 6);
	uint32_t made = c->link == DLT_EN10MB ? 0 : ETH_LEN;
	uint32_t room = REPLAY_HEAD_BYTES - made;
	uint32_t captured = header->caplen < room ? header->caplen : room;

	memcpy(slot->data, is_six ? six : four, made);
	memcpy(slot->data + made, data, captured);
	slot->frame = (struct replay_frame){slot->data, captured + made,
					    len <= UINT32_MAX - made ? len + made : len,
					    time_of(c, header, &slot->beyond), 0};
}

static void warn(const struct capture *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(const struct capture *c, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->listener->warn(c, text);
}

/*
 * Says so once, at the end of the first pass. libpcap makes 0 or 1 ns of times that have too small
 * a unit for it.
 */
static void tell_timeless(struct capture *c)
{
	if (c->timeless || c->frames < 2 || c->now_ns > 1 || c->early)
		return;
	c->timeless = true;
	warn(c,
	     "no frame has a time that can be counted with: all %" PRIu64
	     " count at once, as one burst",
	     c->frames);
}

/*
 * Says it once, at the first frame of each kind. Of a classic file it can be the fraction of a
 * second alone, and then the second is right.
 */
static void tell_beyond(struct capture *c, int beyond)
{
	bool *told = beyond < 0 ? &c->early : &c->late;

	if (!beyond || c->classic || *told)
		return;
	*told = true;
	warn(c,
	     "frame %" PRIu64
	     " has a time %s, which cannot be counted with: all such frames count at %s: see its "
	     "interface's if_tsoffset and if_tsresol",
	     c->frames, beyond < 0 ? "before 1970, or too late for libpcap" : "beyond 2262-04-11",
	     beyond < 0 ? "the latest time seen" : "that day");
}

/* What libpcap does not read as one capture, in the words of its error, and what to do; NULL: what
 * is damaged. */
static const char *kept_apart(const char *text)
{
	if (strstr(text, "different from the snapshot length of the first interface"))
		return "snapshot lengths: convert it with `editcap -F nsecpcap FILE OTHER`";
	if (strstr(text, "different from the type of the first interface"))
		return "link types: capture each to a file of its own";
	return NULL;
}

/* Says what is wrong, once. Returns 0. */
static int at_end(struct capture *c, int got)
{
	const char *apart;

	c->listener->end(c);
	tell_timeless(c);
	if (got == PCAP_ERROR_BREAK || c->damaged)
		return 0;
	c->damaged = true;
	apart = kept_apart(pcap_geterr(c->pcap));
	if (apart)
		warn(c,
		     "from frame %" PRIu64
		     " on it cannot be read as one capture: its interfaces have "
		     "different %s: the %" PRIu64 " frames before it were judged",
		     c->frames + 1, apart, c->frames);
	else
		warn(c,
		     "damaged at frame %" PRIu64 ": %s: the %" PRIu64
		     " frames before it were judged",
		     c->frames + 1, pcap_geterr(c->pcap), c->frames);
	return 0;
}

/*
 * Sets the time at which the frame counts, which never runs backwards. It warns once, at the first
 * frame whose own time does.
 */
static void tell_time(struct capture *c, struct replay_frame *frame, int beyond)
{
	char text[32];

	tell_beyond(c, beyond);
	if (frame->time_ns < c->now_ns && !c->ran_back && (beyond >= 0 || c->classic)) {
		c->ran_back = true;
		warn(
		    c,
		    "frame %" PRIu64
		    " is %s before an earlier frame: all such frames count at the latest time seen",
		    c->frames, units_duration_text(c->now_ns - frame->time_ns, text, sizeof(text)));
	}
	if (frame->time_ns > c->now_ns)
		c->now_ns = frame->time_ns;
	frame->now_ns = c->now_ns;
}

void capture_tell(struct capture *c, struct replay *replay)
{
	c->replays[!!c->replays[0]] = replay;
}

/* Reads frames until enough are read ahead, or there is no more. */
static void read_ahead(struct capture *c)
{
	struct pcap_pkthdr *header;
	const uint8_t *data;

	while (c->got == 1 && c->read - c->frames < c->ahead) {
		struct capture_slot *slot = &c->slot[c->read % CAPTURE_AHEAD];

		c->got = pcap_next_ex(c->pcap, &header, &data);
		if (c->got != 1)
			break;
		fill_slot(c, header, data, slot);
		c->read++;
		for (int i = 0; i < 2 && c->replays[i]; i++)
			replay_ahead(c->replays[i], &slot->frame);
	}
}

int capture_next(struct capture *c, struct replay_frame *frame)
{
	const struct capture_slot *slot;

	read_ahead(c);
	if (c->frames == c->read)
		return at_end(c, c->got);
	slot = &c->slot[c->frames % CAPTURE_AHEAD];
	*frame = slot->frame;
	c->frames++;
	tell_time(c, frame, slot->beyond);
	if (!(c->frames & 0xffff))
		c->listener->progress(c);
	return 1;
}
