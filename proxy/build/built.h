/* What a build is at, and what comes of it. */
#ifndef NESTGUARD_BUILT_H
#define NESTGUARD_BUILT_H

#include "build/build_wait.h"
#include "database/snapshot.h"
#include "guard/view.h"
#include "postgres/log/pg_stream.h"

/* A generation as it was built, and what it takes to follow the log from there. */
struct built {
    struct shared_config *config;  /* that it was built for; one reference, or NULL */
    struct generation *generation; /* one reference */
    struct pg_server server;       /* that all of it is of */
    struct pg_stream *stream;      /* not started; NULL where no log is followed */
    uint32_t *tables;              /* that are followed, by their oids in the stream */
    char *identities; /* of those, as of the fingerprint: a letter each; see publication.h */
    struct snapshot snapshot; /* that it was read under, and that the stream begins behind */
    uint32_t next_xid;        /* that no transaction had before; see settled.h */
    uint64_t begun;           /* clock_ms() when the building began */
    uint64_t asked,
        behind;        /* of a standby, before `next_xid`: when, and how far; see standby_lag.h */
    char *fingerprint; /* of what the stream was told to report; see publication.h */
    char *values;      /* from before the snapshot; see values.h */
    char **faults; /* of each keyspace, `keyspaces` of them: why the build went without it; NULL: it
                      did not */
    size_t keyspaces;
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

#endif
