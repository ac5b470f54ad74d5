/* What goes into a command for the cache, and what comes back of it. */
#ifndef NESTGUARD_REDIS_ANSWER_H
#define NESTGUARD_REDIS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

/* A key or a value: any bytes. */
struct redis_bytes {
    const void *at;
    size_t length;
};

/* Names and values in turn: `pairs` of them, at least one, no two names the same. */
struct redis_hash {
    const struct redis_bytes *words;
    size_t pairs;
};

enum redis_outcome {
    /* `number` holds an integer reply (0 otherwise); `found` is false for a nil reply. */
    REDIS_DONE,
    /* An error reply, with its text as `error`, or one that no such command has. */
    REDIS_REFUSED,
    /* No connection, or it was lost before the reply: the command may or may not have run. */
    REDIS_DOWN
};

/* What a step of SCAN found. */
struct redis_page {
    const char *cursor; /* of the next step; "0": there is none. NULL when it was no SCAN */
    const struct redis_bytes *keys;
    size_t count;
};

/* Its texts and bytes live until the callback returns. */
struct redis_answer {
    enum redis_outcome outcome;
    long long number;
    bool found;
    const char *error;       /* "" when there is none */
    struct redis_bytes text; /* a string reply, or CONFIG GET's, with a 0 behind it; else NULL */
    struct redis_bytes head; /* likewise: the first of an array, as of ROLE's, whatever follows */
    struct redis_page page;
};

typedef void (*redis_answer_cb)(void *arg, const struct redis_answer *answer);

#endif
