/* Builds a generation on a thread of libuv's pool: one snapshot of the database, COPY of the key
 * columns, one filter for each keyspace. Nobody else sees the filters before they are handed over
 * whole.
 */
#ifndef NESTGUARD_BUILDER_H
#define NESTGUARD_BUILDER_H

#include "build/built.h"
#include "config/config.h"

#include <uv.h>

struct builder;

/* Called on the loop when the build has ended: what was built is the callback's to take from; or
 * *error, else NULL, says why there is nothing, and only `faults` of it count. The builder is freed
 * afterwards. */
typedef void (*builder_done)(void *arg, struct built *built, const struct pg_error *error);

struct builder_options {
    const struct config *config; /* held by the caller until done is called */
    uint64_t number;
    /* Unless hurried it takes one connection, and rests so often that lookups notice nothing of it,
     * for about two to three times as long. */
    bool hurried;
    /* A keyspace that it cannot have is left out: its table is not there, may not be read, cannot
     * be followed. It is built all the same if it is wanted for what it has of the others, or has
     * another that does not guard now. But where a log is followed, it is not built for their sake
     * if the one that is left out guards now. */
    bool wanted;
    const _Atomic size_t *beside; /* see struct filling */
    /* By the keyspaces' numbers; freed. */
    uint64_t *replaced; /* rows in the generation that this one is to replace */
    bool *guarded;      /* by that */
    builder_done done;
    void *arg;
};

/* NULL: no thread could be had. */
struct builder *builder_start(uv_loop_t *loop, const struct builder_options *options);

void builder_hurry(struct builder *builder, bool hurried); /* or not, from here on */

void builder_stop(struct builder *builder);                      /* it ends soon, with an error */
struct build_progress builder_progress(struct builder *builder); /* on the loop, until `done` */

#endif
