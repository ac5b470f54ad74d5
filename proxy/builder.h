/* Builds a generation on a thread of its own: one snapshot of the database, COPY of the key
 * columns, one filter for each keyspace. Nobody else sees the filters before they are handed over
 * whole.
 */
#ifndef NESTGUARD_BUILDER_H
#define NESTGUARD_BUILDER_H

#include "pg_session.h"
#include "view.h"

struct builder;

struct build_progress {
    uint64_t rows, rows_total; /* total: 0 until they are counted */
    double seconds;            /* since the copying began */
};

/* Called on the loop when the build has ended: the generation is the callback's to release, or it
 * is NULL and *error says why. The builder is freed afterwards. */
typedef void (*builder_done)(void *arg, struct generation *generation,
                             const struct pg_error *error);

/* `shared` must be held by the caller until done is called. NULL: no thread could be had. */
struct builder *builder_start(uv_loop_t *loop, const struct config *config, uint64_t number,
                              builder_done done, void *arg);

void builder_stop(struct builder *builder); /* it ends soon, with an error */
struct build_progress builder_progress(const struct builder *builder);

#endif
