/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An AF_XDP program that is a target of a pool, at its simplest: a socket on one queue of a paced
 * interface, with no XDP program of its own, put into the pacer's map of sockets.
 *
 *   xsk IFACE QUEUE NUMBER
 *
 * Prints "ready" when the socket is the target xsk:NUMBER; after SIGTERM, and when no more come,
 * how many frames it got.
 */
#include <bpf/bpf.h>
#include <err.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xdp/xsk.h>

#define FRAMES	    1024u
#define FRAME_SIZE  XSK_UMEM__DEFAULT_FRAME_SIZE
#define BATCH	    64u
#define PATIENCE_MS 200

static volatile sig_atomic_t stopped;

static struct {
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons rx, completion;
} x;

static void stop(int signal)
{
	stopped = signal;
}

static void open_socket(const char *ifname, uint32_t queue)
{
	const struct xsk_umem_config umem = {
	    .fill_size = FRAMES, .comp_size = FRAMES, .frame_size = FRAME_SIZE};
	const struct xsk_socket_config config = {.rx_size = FRAMES,
						 .libbpf_flags =
						     XSK_LIBBPF_FLAGS__INHIBIT_PROG_LOAD,
						 .bind_flags = XDP_COPY};
	void *frames = aligned_alloc(getpagesize(), (size_t)FRAMES * FRAME_SIZE);
	uint32_t at, i;
	int error;

	if (!frames)
		errx(1, "no memory");
	error = xsk_umem__create(&x.umem, frames, (uint64_t)FRAMES * FRAME_SIZE, &x.fill,
				 &x.completion, &umem);
	if (!error)
		error = xsk_socket__create(&x.socket, ifname, queue, x.umem, &x.rx, NULL, &config);
	if (error)
		errx(1, "a socket on queue %u of %s: %s", queue, ifname, strerror(-error));
	if (xsk_ring_prod__reserve(&x.fill, FRAMES, &at) != FRAMES)
		errx(1, "the fill ring is too small");
	for (i = 0; i < FRAMES; i++)
		*xsk_ring_prod__fill_addr(&x.fill, at + i) = (uint64_t)i * FRAME_SIZE;
	xsk_ring_prod__submit(&x.fill, FRAMES);
}

/* The map of that name among those of the interface's program. */
static int map_of(const char *ifname, const char *name)
{
	struct bpf_prog_info info = {0};
	uint32_t ids[64], id = 0, len = sizeof(info), i;
	int fd;

	if (bpf_xdp_query_id(if_nametoindex(ifname), 0, &id) || !id)
		errx(1, "%s has no XDP program", ifname);
	info.nr_map_ids = sizeof(ids) / sizeof(*ids);
	info.map_ids = (uintptr_t)ids;
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		err(1, "program %u", id);
	close(fd);
	for (i = 0; i < info.nr_map_ids && i < sizeof(ids) / sizeof(*ids); i++) {
		struct bpf_map_info map = {0};

		len = sizeof(map);
		fd = bpf_map_get_fd_by_id(ids[i]);
		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &map, &len))
			err(1, "map %u", ids[i]);
		if (!strcmp(map.name, name))
			return fd;
		close(fd);
	}
	errx(1, "the program of %s has no map %s", ifname, name);
}

/* Count what there is, and give its frames back to the kernel. */
static uint32_t receive(void)
{
	uint32_t from, to, n, i;

	n = xsk_ring_cons__peek(&x.rx, BATCH, &from);
	if (!n || xsk_ring_prod__reserve(&x.fill, n, &to) != n)
		return 0;
	for (i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&x.fill, to + i) =
		    xsk_ring_cons__rx_desc(&x.rx, from + i)->addr;
	xsk_ring_prod__submit(&x.fill, n);
	xsk_ring_cons__release(&x.rx, n);
	return n;
}

int main(int argc, char **argv)
{
	struct sigaction on_term = {.sa_handler = stop};
	uint32_t number, more;
	unsigned long got = 0;
	int fd;

	if (argc != 4)
		errx(2, "usage: xsk IFACE QUEUE NUMBER");
	sigaction(SIGTERM, &on_term, NULL);
	number = strtoul(argv[3], NULL, 10);
	open_socket(argv[1], strtoul(argv[2], NULL, 10));
	fd = xsk_socket__fd(x.socket);
	if (bpf_map_update_elem(map_of(argv[1], "pacer_sockets"), &number, &fd, BPF_ANY))
		err(1, "pacer_sockets[%u]", number);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		struct pollfd p = {fd, POLLIN, 0};
		int last = stopped;

		(void)poll(&p, 1, PATIENCE_MS);
		more = receive();
		got += more;
		if (last && !more)
			break;
	}
	printf("%lu\n", got);
	xsk_socket__delete(x.socket);
	return 0;
}
