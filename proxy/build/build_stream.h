/* What a generation is followed by, made before anything is read: the publication looked at, its
 * fingerprint, the slot with its snapshot.
 */
#ifndef NESTGUARD_BUILD_STREAM_H
#define NESTGUARD_BUILD_STREAM_H

#include "build/built.h"

struct build_stream_options {
    const struct config *whole;  /* that the fingerprint is of, as the WAL probe's */
    const struct config *config; /* the same, but for keyspaces that the build goes without, which
                                    are retired here */
    const struct keyspace **blamed; /* after -EPROTO: of `config`, the one without which it may do;
                                       or NULL */
    struct pg_session *session;     /* to ask over; in no transaction */
    const struct pg_session_options *log; /* how to connect for the log */
};

/* Sees to the publication (publication_ensure()) and takes tables and fingerprint: what was found
 * out is of the same moment as the fingerprint. Whatever changes from there on, the first probe
 * after the build shows it. 0, or as publication_ensure(). */
int build_stream_survey(struct built *built, const struct build_stream_options *options,
                        struct pg_error *error);

/* Whether the snapshot that the session's transaction has is of the fingerprint, too: names may
 * have led elsewhere in it, and back since. 0, -ESTALE with *error, or as pg_session_exec(). */
int build_stream_compare(const struct built *built, const struct build_stream_options *options,
                         struct pg_error *error);

/* Makes the slot; waits as pg_stream_open(). */
int build_stream_open(struct built *built, const struct build_stream_options *options,
                      struct pg_error *error);

#endif
