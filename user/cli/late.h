/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a library that is loaded when a function of it is first called, and not when the program
 * begins. libcurl and libmicrohttpd bring some thirty others with them, and most verbs need none.
 *
 * late_*.c define the functions of such a library that this program calls. They are linked in place
 * of it, and pass each call on.
 *
 * Error: a library that cannot be loaded, or lacks the function, ends the program: one line, and
 * exit status 1. One that has been loaded stays, and is not loaded again for another function.
 *
 * Concurrency: one thread at a time.
 */
#ifndef PACER_LATE_H
#define PACER_LATE_H

struct late_library {
	const char *soname; /* "libcurl.so.4" */
	void *handle;	    /* NULL: it is not loaded yet */
};

/* The function of the library, with the type of the one that is declared. */
#define LATE(library, function)                                                 \
	({                                                                      \
		static __typeof__(function) *at;                                \
                                                                                \
		if (!at)                                                        \
			at = (__typeof__(at))late_function(library, #function); \
		at;                                                             \
	})

/* Never NULL. */
void *late_function(struct late_library *library, const char *name);

#endif
