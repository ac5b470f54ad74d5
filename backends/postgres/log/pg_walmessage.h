/* What a walsender and its receiver say to each other inside the COPY of a replication connection
 * ("Streaming Replication Protocol" in PostgreSQL's manual). Bytes in, bytes out. Private to
 * backends/.
 */
#ifndef NESTGUARD_PG_WALMESSAGE_H
#define NESTGUARD_PG_WALMESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pg_walmessage_kind {
    PG_WALMESSAGE_DATA, /* `lsn` is where it begins; `bytes` is a message of the slot's plugin */
    PG_WALMESSAGE_KEEPALIVE /* `lsn` is how far the server has come */
};

struct pg_walmessage {
    enum pg_walmessage_kind kind;
    uint64_t lsn;
    const char *bytes; /* points into what was read */
    size_t length;
    bool reply_wanted; /* of a keepalive: a status, at once */
};

/* 0, or -EPROTO for what is neither. */
int pg_walmessage_read(struct pg_walmessage *message, const char *bytes, size_t length);

enum { PG_STATUS_SIZE = 34 };

/* A standby status update: all before `written` has come, all before `applied` is flushed and
 * applied here; 0 says nothing. The server counts a standby only when it has said what is flushed.
 */
void pg_status_write(char out[PG_STATUS_SIZE], uint64_t written, uint64_t applied,
                     bool answer_wanted);

#endif
