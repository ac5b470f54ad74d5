/* A run of bytes that somebody else owns, and that lives as long as he says. It may hold any bytes,
 * also zeros, and no zero follows it: it is no string. `at` is NULL only where a header says so.
 */
#ifndef NESTGUARD_SPAN_H
#define NESTGUARD_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct span {
    const char *at;
    size_t length;
};

/* Of a string, without its zero. */
static inline struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

/* Whether its first bytes are those of the text; with an empty text always. */
static inline bool span_starts(struct span span, const char *text)
{
    size_t length = strlen(text);
    return span.length >= length && memcmp(span.at, text, length) == 0;
}

/* The same bytes. */
static inline bool span_is(struct span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0;
}

/* The same word, as Redis compares the names and options of commands: ASCII letters in any case,
 * and up to a zero byte, whatever stands behind that. */
static inline bool span_is_word(struct span span, const char *word)
{
    size_t length = strlen(word);
    return span.length >= length && strncasecmp(span.at, word, length) == 0 &&
           (span.length == length || span.at[length] == '\0');
}

/* A string of the span as far as there is room for it, with ASCII letters in lower case: so Redis
 * writes what commands are called. `size` is not 0. */
static inline void span_lower(struct span span, char *out, size_t size)
{
    size_t length = span.length < size ? span.length : size - 1;
    for (size_t i = 0; i < length; i++)
        out[i] =
            (char)(span.at[i] >= 'A' && span.at[i] <= 'Z' ? span.at[i] + 'a' - 'A' : span.at[i]);
    out[length] = '\0';
}

#endif
