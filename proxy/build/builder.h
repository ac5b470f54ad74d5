/* Builds a generation on a thread of its own: one snapshot of the database, COPY of the key
 * columns, one filter for each keyspace. Nobody else sees the filters before they are handed over
 * whole.
 */
#ifndef NESTGUARD_BUILDER_H
#define NESTGUARD_BUILDER_H

#include "build/build_wait.h"
#include "database/snapshot.h"
#include "guard/view.h"
#include "postgres/log/pg_stream.h"

struct builder;

/* A generation as it was built, and what it takes to follow the log from there. */
struct built {
    struct generation *generation; /* one reference */
    struct pg_stream *stream;      /* not started; NULL where no log is followed */
    uint32_t *tables;              /* each keyspace's table, by its oid in the stream */
    struct snapshot snapshot;      /* that it was read under, and that the stream begins behind */
    char *fingerprint;             /* of what the stream was told to report; see publication.h */
    char *values;                  /* from before the snapshot; see values.h */
};

void built_finish(struct built *built); /* frees what was not taken out (set to NULL) */

/* What a build is at. */
enum build_phase {
    BUILD_CONNECTING,
    BUILD_SURVEYING,
    BUILD_WAITING,
    BUILD_LOCKING,
    BUILD_COUNTING,
    BUILD_COPYING
};

struct build_progress {
    enum build_phase phase;
    uint64_t rows, rows_total;   /* total: 0 until they are counted */
    double seconds;              /* since the copying began */
    char waits[BUILD_WAIT_TEXT]; /* "for ...": whom it has been waiting for, for some time; or "" */
};

const char *build_phase_text(enum build_phase phase);

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
