/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why an interface is not to be paced, or is not paced: each thing that is in the way, by the line
 * that is said of it. Functions of this file answer for the kernel: it may be too old, or give no
 * privilege.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "abi.h"
#include "live/refusal.h"

#define ARRAY(a) (sizeof(a) / sizeof(*(a)))

static const char *release; /* NULL: not known */
static int errs[3];	    /* of a map that is made, asked about, and found again */

int uname(struct utsname *name)
{
	memset(name, 0, sizeof(*name));
	snprintf(name->release, sizeof(name->release), "%s", release ? release : "");
	return release ? 0 : -1;
}

static int map(int err)
{
	errno = err;
	return err ? -err : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	(void)type;
	(void)name;
	(void)key_size;
	(void)value_size;
	(void)max_entries;
	(void)opts;
	return map(errs[0]);
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	assert_true(fd >= 0);
	memset(info, 0, *len);
	errno = errs[1];
	return errs[1] ? -errs[1] : 0;
}

int bpf_map_get_fd_by_id(__u32 id)
{
	(void)id;
	return map(errs[2]);
}

static struct policy_error error;

/* `words`: what the line has; NULL: nothing is in the way. */
static void assert_said(int result, const char *words)
{
	if (result != (words ? -1 : 0) || (words && !strstr(error.text, words)))
		fail_msg("%d: \"%s\" has no \"%s\"", result, error.text, words ? words : "");
	error.text[0] = 0;
}

static void test_kernels(void **unused)
{
	static const struct {
		const char *release;
		bool known;
	} cases[] = {
	    {"6.1.0-18-amd64", true}, {"6.2", true},	 {"7.0.1", true},     {"5.15.0-91", false},
	    {"6.0.19", false},	      {"4.19.0", false}, {"strange-1", true}, {NULL, true},
	};

	(void)unused;
	memset(errs, 0, sizeof(errs));
	for (size_t i = 0; i < ARRAY(cases); i++) {
		release = cases[i].release;
		assert_said(refusal_by_host("eth0", &error),
			    cases[i].known ? NULL : "the pacer wants 6.1 or a later one");
	}
}

static void test_privileges(void **unused)
{
	static const struct {
		int errs[3];
		const char *words;
	} cases[] = {
	    {{0, 0, 0}, NULL},
	    {{EPERM, 0, 0}, "eth0: no privilege to make a BPF map: run as root"},
	    {{0, EPERM, 0}, "eth0: no privilege to find the pacer again once it is attached"},
	    {{0, 0, EPERM}, "eth0: no privilege to find the pacer again once it is attached"},
	    {{ENOSYS, 0, 0}, "eth0: no BPF map can be made here: Function not implemented"},
	    {{0, 0, ENOMEM}, "eth0: no BPF map can be made here: Cannot allocate memory"},
	};

	(void)unused;
	release = "6.1";
	for (size_t i = 0; i < ARRAY(cases); i++) {
		memcpy(errs, cases[i].errs, sizeof(errs));
		assert_said(refusal_by_host("eth0", &error), cases[i].words);
	}
}

#define DISPATCHED (struct xdp_multiprog *)&error /* none looks into it */

static const struct site nothing = {.id = 0}, other = {.id = 7, .name = "other"},
			 lost = {.id = 7, .name = "xdp_dispatcher", .mode = SITE_SKB},
			 dispatcher = {.id = 7, .name = "xdp_dispatcher", .dispatched = DISPATCHED},
			 namesake = {.id = 7, .name = "pacer", .named = true},
			 pacer = {.id = 7,
				  .name = "pacer",
				  .mode = SITE_SKB,
				  .named = true,
				  .pacer = true,
				  .abi = PACER_ABI_VERSION},
			 older = {.id = 7,
				  .name = "pacer",
				  .named = true,
				  .pacer = true,
				  .abi = PACER_ABI_VERSION - 1},
			 among = {.id = 7,
				  .name = "xdp_dispatcher",
				  .dispatched = DISPATCHED,
				  .named = true,
				  .pacer = true,
				  .abi = PACER_ABI_VERSION};

static void test_what_it_carries(void **unused)
{
	static const struct {
		const struct site *site;
		enum site_mode mode;
		bool direct, replace;
		const char *words;
	} cases[] = {
	    {&nothing, SITE_NATIVE, false, false, NULL},
	    {&nothing, SITE_NATIVE, true, true, NULL},
	    {&other, SITE_NATIVE, false, false,
	     "eth0: already carries the XDP program other (id 7)"},
	    {&other, SITE_NATIVE, false, true, "`ip link set dev eth0 xdp off`"},
	    {&lost, SITE_NATIVE, false, false, "its pins are gone"},
	    {&lost, SITE_NATIVE, false, false, "`ip link set dev eth0 xdpgeneric off`"},
	    {&dispatcher, SITE_NATIVE, false, false, NULL},
	    {&dispatcher, SITE_NATIVE, true, false, "load without --direct"},
	    {&namesake, SITE_NATIVE, false, false,
	     "eth0: its program is named pacer, but is not one"},
	    {&namesake, SITE_NATIVE, false, true,
	     "eth0: its program is named pacer, but is not one"},
	    {&pacer, SITE_SKB, false, false, "eth0: is paced already: change it with"},
	    {&pacer, SITE_SKB, false, true, NULL},
	    {&pacer, SITE_SKB, true, true, NULL},
	    {&pacer, SITE_NATIVE, false, true, "eth0: its pacer is attached in skb mode"},
	    {&older, SITE_NATIVE, false, false, "`xdp-pacer load eth0 --replace -c POLICY`"},
	    {&older, SITE_NATIVE, false, true, NULL},
	    {&among, SITE_NATIVE, false, false, "eth0: is paced already: change it with"},
	    {&among, SITE_NATIVE, false, true, NULL},
	    {&among, SITE_NATIVE, true, true, "eth0: its pacer is under the libxdp dispatcher"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++)
		assert_said(refusal_by_site("eth0", cases[i].site, cases[i].mode, cases[i].direct,
					    cases[i].replace, &error),
			    cases[i].words);
}

static void test_no_pacer(void **unused)
{
	(void)unused;
	assert_said(refusal_no_pacer("eth0", &nothing, &error),
		    "eth0: has no pacer: attach one with `xdp-pacer load eth0 -c POLICY`");
	assert_said(refusal_no_pacer("eth0", &dispatcher, &error), "eth0: has no pacer");
	assert_said(refusal_no_pacer("eth0", &lost, &error), "its pins are gone");
	assert_said(refusal_no_pacer("eth0", &other, &error),
		    "eth0: its XDP program is not the pacer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kernels),
	    cmocka_unit_test(test_privileges),
	    cmocka_unit_test(test_what_it_carries),
	    cmocka_unit_test(test_no_pacer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
