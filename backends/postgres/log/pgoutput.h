/* The decoder of PostgreSQL's logical replication messages: plugin pgoutput, protocol version 1;
 * version 2 adds streamed transactions (PostgreSQL 14 to 17 documentation, "Logical Replication
 * Message Formats").
 *
 *   bytes of one message ─▶ pgoutput_read() ─▶ struct pgoutput_event
 *
 * Bytes in, one event out; no I/O, no allocation, nothing kept between messages: what a Relation
 * message says is the caller's to remember. Everything in an event points into the message. Input
 * may be hostile: whatever does not fit is -EPROTO.
 */
#ifndef NESTGUARD_PGOUTPUT_H
#define NESTGUARD_PGOUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PGOUTPUT_COLUMNS_MAX = 1664 /* PostgreSQL's own bound on a row's columns */ };

enum pgoutput_kind {
    PGOUTPUT_BEGIN,
    PGOUTPUT_COMMIT,
    PGOUTPUT_RELATION,
    PGOUTPUT_INSERT,
    PGOUTPUT_UPDATE,
    PGOUTPUT_DELETE,
    PGOUTPUT_TRUNCATE,
    PGOUTPUT_TYPE, /* this and the next two are checked, but only their kind is told */
    PGOUTPUT_ORIGIN,
    PGOUTPUT_MESSAGE,
    PGOUTPUT_STREAM_START,
    PGOUTPUT_STREAM_STOP,
    PGOUTPUT_STREAM_COMMIT,
    PGOUTPUT_STREAM_ABORT,
};

enum pgoutput_value_kind {
    PGOUTPUT_NULL,
    /* A TOASTed value that the update did not touch: not sent. An INSERT may hold one too: a row
     * filter makes an INSERT of the update that brings an old row into the publication. */
    PGOUTPUT_UNCHANGED,
    PGOUTPUT_TEXT, /* as the type's output function prints it; no zero byte at its end */
    PGOUTPUT_BINARY,
};

struct pgoutput_value {
    enum pgoutput_value_kind kind;
    const char *at; /* TEXT, BINARY; else NULL */
    uint32_t length;
};

/* Read value by value with pgoutput_tuple_next(). */
struct pgoutput_tuple {
    const char *at, *end; /* at NULL: there is no such tuple */
    uint16_t columns;     /* of the whole tuple; at most PGOUTPUT_COLUMNS_MAX */
    bool is_key;          /* as old_is_key says of the event's old tuple */
};

struct pgoutput_column {
    bool is_key; /* part of the replica identity */
    const char *name;
    uint32_t type; /* oid */
    int32_t modifier;
};

/* Its columns are read one by one with pgoutput_column_next(). */
struct pgoutput_relation {
    uint32_t id;
    const char *schema, *name; /* schema is "" for pg_catalog */
    char identity;             /* 'd' default, 'n' nothing, 'f' full, 'i' index */
    uint16_t columns;          /* all of them; at most PGOUTPUT_COLUMNS_MAX */
    const char *at, *end;
};

/* Read id by id with pgoutput_truncated_next(). */
struct pgoutput_truncated {
    const char *at, *end;
};

/* What a kind does not name is zero. */
struct pgoutput_event {
    enum pgoutput_kind kind;
    uint32_t xid;       /* BEGIN; STREAM_* but STOP; in a streamed block of every change */
    uint32_t subxid;    /* STREAM_ABORT; equal to xid when the whole transaction is aborted */
    uint32_t relation;  /* INSERT, UPDATE, DELETE: its id */
    bool first_segment; /* STREAM_START */
    bool old_is_key;    /* old_tuple holds only the replica identity ('K'), the others are NULL */
    bool cascade, restart_identity;      /* TRUNCATE */
    struct pgoutput_tuple new_tuple;     /* INSERT, UPDATE */
    struct pgoutput_tuple old_tuple;     /* UPDATE (not always), DELETE */
    uint64_t lsn;                        /* BEGIN, COMMIT, STREAM_COMMIT: of the commit */
    uint64_t end_lsn;                    /* COMMIT, STREAM_COMMIT: behind the transaction */
    int64_t time_us;                     /* where lsn is: microseconds since 2000-01-01 UTC */
    struct pgoutput_relation described;  /* RELATION */
    struct pgoutput_truncated truncated; /* TRUNCATE */
    uint32_t truncated_count;
};

/* Reads one whole message. `in_stream`: it lies between STREAM_START and STREAM_STOP, where changes
 * carry their (sub)transaction's id and no transaction begins or ends; STREAM_STOP itself still
 * lies in it. A STREAM_ABORT has `lsn` and `time_us`, of the abort, if the server sends them
 * (protocol 4 with streaming=parallel). Tuples, columns and lists are checked to their ends, so
 * that the readers below cannot fail. 0; or -EPROTO and *error (static text: which message, and
 * what is wrong), and *event means nothing. */
int pgoutput_read(const void *message, size_t length, bool in_stream, struct pgoutput_event *event,
                  const char **error);

/* The next value, column or relation's id: false at the end. */
bool pgoutput_tuple_next(struct pgoutput_tuple *tuple, struct pgoutput_value *value);
bool pgoutput_column_next(struct pgoutput_relation *relation, struct pgoutput_column *column);
bool pgoutput_truncated_next(struct pgoutput_truncated *truncated, uint32_t *relation);

#endif
