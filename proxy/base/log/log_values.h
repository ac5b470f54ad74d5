/* What was put into a message, one by one: for programs, which need not take the text apart. */
#ifndef NESTGUARD_LOG_VALUES_H
#define NESTGUARD_LOG_VALUES_H

#include <jansson.h>
#include <stdarg.h>

/* A list of what vprintf() would put in the places of the format, in their order: texts, and
 * numbers as numbers. Of texts there are 1024 bytes in all, as JSON has them, the rest is cut off:
 * a line of the log has an end. What stands behind a conversion that is not known is not in it. A
 * new reference. */
json_t *log_values(const char *format, va_list list) __attribute__((format(printf, 1, 0)));

/* The text's first `length` bytes, but no more than take *room where JSON is written, with its
 * escapes: what it takes is taken off from that. A key or a server's message may be no UTF-8, which
 * JSON has no way to say: a byte that is of no character is a ?. A new reference. */
json_t *log_text(const char *text, size_t length, size_t *room);

#endif
