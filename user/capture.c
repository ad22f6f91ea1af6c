/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

#define ETH_LEN 14

static bool link_known(int link)
{
	return link == DLT_EN10MB || link == DLT_RAW || link == DLT_IPV4 || link == DLT_IPV6;
}

static int unknown_link(const char *file, int link)
{
	const char *name = pcap_datalink_val_to_name(link);

	complaint(
	    "%s: its link type is %s (%d): Ethernet and raw IP (RAW, IPV4, IPV6) can be judged",
	    file, name ? name : "unknown", link);
	return EXIT_WRONG;
}

static int open_file(struct capture *c)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	FILE *f = strcmp(c->file, "-") ? fopen(c->file, "rb") : stdin;

	if (f)
		c->pcap =
		    pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!c->pcap) {
		complaint("%s: no frame can be read: %s", c->file, f ? text : strerror(errno));
		if (f && f != stdin)
			fclose(f);
		return EXIT_FAILED;
	}
	c->link = pcap_datalink(c->pcap);
	c->pass++;
	c->frames = 0;
	return link_known(c->link) ? EXIT_DONE : unknown_link(c->file, c->link);
}

int capture_open(struct capture *c, const char *file)
{
	*c = (struct capture){.file = file};
	return open_file(c);
}

bool capture_repeats(const struct capture *c)
{
	struct stat st;

	return strcmp(c->file, "-") && !stat(c->file, &st) && S_ISREG(st.st_mode);
}

int capture_again(struct capture *c)
{
	pcap_close(c->pcap);
	c->pcap = NULL;
	return open_file(c);
}

void capture_close(struct capture *c)
{
	if (c->pcap)
		pcap_close(c->pcap);
	c->pcap = NULL;
}

/* In ns since 1970; before that is 0, and what ns cannot count is their last. */
static uint64_t time_of(const struct pcap_pkthdr *header)
{
	if (header->ts.tv_sec < 0 || header->ts.tv_sec > INT64_MAX / 1000000000 - 1)
		return header->ts.tv_sec < 0 ? 0 : INT64_MAX;
	return (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
}

/* Raw IP gets the Ethernet header that XDP would have seen before it, and counts with it. */
static struct replay_frame frame_of(int link, const struct pcap_pkthdr *header, const uint8_t *data)
{
	static uint8_t made[REPLAY_HEAD_BYTES];
	uint32_t len = header->len > header->caplen ? header->len : header->caplen;
	struct replay_frame frame = {data, header->caplen, len, time_of(header)};
	bool six = link == DLT_IPV6 || (link == DLT_RAW && header->caplen && data[0] >> 4 == 6);

	if (link == DLT_EN10MB)
		return frame;
	if (frame.captured > sizeof(made) - ETH_LEN)
		frame.captured = sizeof(made) - ETH_LEN;
	made[12] = six ? 0x86 : 0x08;
	made[13] = six ? 0xdd : 0x00;
	memcpy(made + ETH_LEN, data, frame.captured);
	frame.data = made;
	frame.captured += ETH_LEN;
	if (frame.len_bytes <= UINT32_MAX - ETH_LEN)
		frame.len_bytes += ETH_LEN;
	return frame;
}

/* Once a second, where somebody looks. */
static void show_progress(struct capture *c)
{
	time_t now;

	if ((c->frames & 0xffff) || !isatty(STDERR_FILENO))
		return;
	now = time(NULL);
	if (now == c->shown)
		return;
	c->shown = now;
	fprintf(stderr, "\r%" PRIu64 " packets\033[K", c->frames);
	if (c->pass > 1)
		fprintf(stderr, ", reading %d", c->pass);
}

/* Clears the progress and says what is wrong, once. Returns 0. */
static int at_end(struct capture *c, int got)
{
	if (c->shown)
		fprintf(stderr, "\r\033[K");
	c->shown = 0;
	if (got == PCAP_ERROR_BREAK || c->damaged)
		return 0;
	c->damaged = true;
	complaint("%s: damaged at frame %" PRIu64 ": %s: the %" PRIu64
		  " frames before it were judged",
		  c->file, c->frames + 1, pcap_geterr(c->pcap), c->frames);
	return 0;
}

int capture_next(struct capture *c, struct replay_frame *frame)
{
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int got = pcap_next_ex(c->pcap, &header, &data);

	if (got != 1)
		return at_end(c, got);
	*frame = frame_of(c->link, header, data);
	c->frames++;
	show_progress(c);
	return 1;
}
