/* A run of bytes that somebody else owns. */
#ifndef NESTGUARD_SPAN_H
#define NESTGUARD_SPAN_H

#include <stddef.h>
#include <string.h>

struct span {
    const char *at;
    size_t length;
};

static inline struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

#endif
