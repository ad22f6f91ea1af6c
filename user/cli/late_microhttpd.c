/* SPDX-License-Identifier: GPL-2.0-only */
/* libmicrohttpd, once it is needed: see late.h. */
#include <microhttpd.h>
#include <stdarg.h>

#include "cli/late.h"

static struct late_library microhttpd = {.soname = "libmicrohttpd.so.12"};

#define MHD_FUNCTION(f) LATE(&microhttpd, f)

struct MHD_Daemon *MHD_start_daemon(unsigned int flags, uint16_t port, MHD_AcceptPolicyCallback may,
				    void *may_arg, MHD_AccessHandlerCallback handle,
				    void *handle_arg, ...)
{
	struct MHD_Daemon *daemon;
	va_list more;

	va_start(more, handle_arg);
	daemon =
	    MHD_FUNCTION(MHD_start_daemon_va)(flags, port, may, may_arg, handle, handle_arg, more);
	va_end(more);
	return daemon;
}

void MHD_stop_daemon(struct MHD_Daemon *daemon)
{
	MHD_FUNCTION(MHD_stop_daemon)(daemon);
}

/* Of the one kind that this program asks for, nothing follows. */
const union MHD_DaemonInfo *MHD_get_daemon_info(struct MHD_Daemon *daemon,
						enum MHD_DaemonInfoType kind, ...)
{
	return MHD_FUNCTION(MHD_get_daemon_info)(daemon, kind);
}

enum MHD_Result MHD_get_timeout(struct MHD_Daemon *daemon, MHD_UNSIGNED_LONG_LONG *ms)
{
	return MHD_FUNCTION(MHD_get_timeout)(daemon, ms);
}

enum MHD_Result MHD_run(struct MHD_Daemon *daemon)
{
	return MHD_FUNCTION(MHD_run)(daemon);
}

const char *MHD_lookup_connection_value(struct MHD_Connection *c, enum MHD_ValueKind kind,
					const char *key)
{
	return MHD_FUNCTION(MHD_lookup_connection_value)(c, kind, key);
}

struct MHD_Response *MHD_create_response_from_buffer(size_t len, void *text,
						     enum MHD_ResponseMemoryMode mode)
{
	return MHD_FUNCTION(MHD_create_response_from_buffer)(len, text, mode);
}

enum MHD_Result MHD_add_response_header(struct MHD_Response *response, const char *header,
					const char *value)
{
	return MHD_FUNCTION(MHD_add_response_header)(response, header, value);
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *c, unsigned int status,
				   struct MHD_Response *response)
{
	return MHD_FUNCTION(MHD_queue_response)(c, status, response);
}

void MHD_destroy_response(struct MHD_Response *response)
{
	MHD_FUNCTION(MHD_destroy_response)(response);
}

/* Of the kinds that this program asks for, nothing follows. */
const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *c,
							enum MHD_ConnectionInfoType kind, ...)
{
	return MHD_FUNCTION(MHD_get_connection_info)(c, kind);
}

size_t MHD_http_unescape(char *text)
{
	return MHD_FUNCTION(MHD_http_unescape)(text);
}
