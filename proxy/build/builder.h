/* Builds a generation on a thread of its own: one snapshot of the database, COPY of the key
 * columns, one filter for each keyspace. Nobody else sees the filters before they are handed over
 * whole.
 */
#ifndef NESTGUARD_BUILDER_H
#define NESTGUARD_BUILDER_H

#include "build/built.h"
#include "config/config.h"

#include <uv.h>

struct builder;

/* Called on the loop when the build has ended: what was built is the callback's to take from, or it
 * is NULL and *error says why. The builder is freed afterwards. */
typedef void (*builder_done)(void *arg, struct built *built, const struct pg_error *error);

struct builder_options {
    const struct config *config; /* held by the caller until done is called */
    uint64_t number;
    /* Unless hurried it takes one connection, and rests so often that lookups notice nothing of it,
     * for about two to three times as long. */
    bool hurried;
    /* The rows of each keyspace, in the generation that this one is to replace; freed. */
    uint64_t *replaced;
    builder_done done;
    void *arg;
};

/* NULL: no thread could be had. */
struct builder *builder_start(uv_loop_t *loop, const struct builder_options *options);

void builder_hurry(struct builder *builder, bool hurried); /* or not, from here on */

void builder_stop(struct builder *builder); /* it ends soon, with an error */
struct build_progress builder_progress(struct builder *builder);

#endif
