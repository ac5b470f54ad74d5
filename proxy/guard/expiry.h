/* Drops the entries of a table of overrides that have ended, beside what else a loop has to do: a
 * few at a time, and between them whoever has something for the loop is served.
 */
#ifndef NESTGUARD_EXPIRY_H
#define NESTGUARD_EXPIRY_H

#include <stddef.h>
#include <uv.h>

struct overrides;

struct expiry {
    uv_idle_t idle; /* while there are any to look at: the loop does not wait */
    struct overrides *table;
    size_t left; /* to look at */
};

/* The table is held until expiry_close() at the loop's end. */
void expiry_init(struct expiry *expiry, uv_loop_t *loop, struct overrides *table);
void expiry_close(struct expiry *expiry);

/* Ten times a second: each entry is looked at every few seconds. */
void expiry_tick(struct expiry *expiry);

/* A generation has come into force, which may have ended many: all are looked at, as soon as others
 * leave time for it. */
void expiry_hurry(struct expiry *expiry);

#endif
