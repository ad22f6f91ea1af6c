/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/facts.h"

#include <stdarg.h>
#include <stdio.h>

/* What is left out is written into the last place. */
static struct fact *add(struct facts *to, enum fact_is is, const char *name)
{
	struct fact *fact = &to->at[to->n < FACTS_MAX ? to->n : FACTS_MAX - 1];

	to->full |= to->n == FACTS_MAX;
	to->n += to->n < FACTS_MAX;
	*fact = (struct fact){.is = is, .name = name};
	return fact;
}

#define SAY(fact, format)                                                            \
	do {                                                                         \
		va_list args;                                                        \
                                                                                     \
		va_start(args, format);                                              \
		if (format)                                                          \
			vsnprintf((fact)->text, sizeof((fact)->text), format, args); \
		va_end(args);                                                        \
	} while (0)

void facts_uint(struct facts *to, const char *name, uint64_t value, const char *format, ...)
{
	struct fact *fact = add(to, FACT_UINT, name);

	fact->value = value;
	SAY(fact, format);
}

void facts_real(struct facts *to, const char *name, double value, const char *format, ...)
{
	struct fact *fact = add(to, FACT_REAL, name);

	fact->real = value;
	SAY(fact, format);
}

void facts_string(struct facts *to, const char *name, const char *value, const char *format, ...)
{
	struct fact *fact = add(to, FACT_STRING, name);

	snprintf(fact->string, sizeof(fact->string), "%s", value);
	SAY(fact, format);
}

void facts_null(struct facts *to, const char *name)
{
	(void)add(to, FACT_NULL, name);
}

void facts_text(struct facts *to, const char *format, ...)
{
	struct fact *fact = add(to, FACT_NULL, NULL);

	SAY(fact, format);
}

void facts_array(struct facts *to, const char *name)
{
	(void)add(to, FACT_ARRAY, name);
}

void facts_object(struct facts *to, const char *name)
{
	(void)add(to, FACT_OBJECT, name);
}

void facts_close(struct facts *to)
{
	(void)add(to, FACT_CLOSE, NULL);
}
