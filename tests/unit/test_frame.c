/* SPDX-License-Identifier: GPL-2.0-only */
/* A frame in memory: what is there of it is read, and no byte more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame.h"

/* Of a frame of `there` bytes, `asked` are read. Sanitizers watch the ends of both. */
static void expect_read(size_t there, uint32_t asked)
{
	uint8_t *bytes = malloc(there ? there : 1), *to = malloc(asked ? asked : 1);
	struct pacer_frame frame = {bytes, bytes + there, 1500, 1};

	assert_true(bytes && to);
	for (size_t i = 0; i < there; i++)
		bytes[i] = (uint8_t)(i + 1);
	memset(to, 0xee, asked);
	(void)PACER_FRAME_LOAD(&frame, to, asked);
	for (uint32_t i = 0; i < asked; i++)
		assert_int_equal(to[i], i < there ? (uint8_t)(i + 1) : 0xee);
	free(bytes);
	free(to);
}

static void test_load(void **unused)
{
	(void)unused;
	for (size_t there = 0; there < 20; there++)
		for (uint32_t asked = 0; asked < 24; asked++)
			expect_read(there, asked);
}

static void test_of_a_host(void **unused)
{
	static const uint8_t arp[60] = {[12] = 8, [13] = 6};
	const struct pacer_frame frame = {arp, arp + sizeof(arp), 60, 77};
	struct pacer_packet pkt;

	(void)unused;
	assert_ptr_equal(PACER_FRAME_DATA(&frame), arp);
	assert_ptr_equal(PACER_FRAME_END(&frame), arp + 60);
	assert_int_equal(PACER_FRAME_LEN(&frame), 60);
	assert_int_equal(PACER_FRAME_NOW(&frame, 0), 77);
	assert_int_equal(PACER_FRAME_NOW(&frame, 1), 77);
	assert_int_equal(PACER_FRAME_PARSE(&frame, &pkt), PACER_PARSE_NOT_IP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_load),
	    cmocka_unit_test(test_of_a_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
