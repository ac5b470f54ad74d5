/* What was put into a message, one by one: for programs, which need not take the text apart. */
#ifndef NESTGUARD_LOG_VALUES_H
#define NESTGUARD_LOG_VALUES_H

#include <jansson.h>
#include <stdarg.h>

/* A list of what vprintf() would put in the places of the format, in their order: texts, and
 * numbers as numbers. Of texts there are 1024 bytes in all, the rest is cut off: a line of the log
 * has an end. What stands behind a conversion that is not known is not in it. A new
 * reference. */
json_t *log_values(const char *format, va_list list) __attribute__((format(printf, 1, 0)));

/* The text as JSON has it; a key or a server's message may be no UTF-8, which JSON has no way to
 * say: then with ? in the place of what is beyond ASCII. A new reference. */
json_t *log_text(const char *text);

#endif
