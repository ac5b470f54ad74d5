/* Numbers are in network order; times are microseconds since 2000-01-01. */
#include "postgres/log/pg_walmessage.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>

/* Seconds from the Unix epoch to PostgreSQL's. */
#define POSTGRES_EPOCH 946684800

enum {
    DATA_HEAD = 1 + 8 + 8 + 8,     /* 'w', where it begins, where the log ends, the clock */
    KEEPALIVE_SIZE = 1 + 8 + 8 + 1 /* 'k', the position, the clock, whether to reply */
};

static uint64_t read_u64(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

static char *write_u64(char *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

int pg_walmessage_read(struct pg_walmessage *message, const char *bytes, size_t length)
{
    memset(message, 0, sizeof *message);
    if (length >= DATA_HEAD && bytes[0] == 'w') {
        message->kind = PG_WALMESSAGE_DATA;
        message->bytes = bytes + DATA_HEAD;
        message->length = length - DATA_HEAD;
    } else if (length >= KEEPALIVE_SIZE && bytes[0] == 'k') {
        message->kind = PG_WALMESSAGE_KEEPALIVE;
        message->reply_wanted = bytes[KEEPALIVE_SIZE - 1] != 0;
    } else {
        return -EPROTO;
    }
    message->lsn = read_u64(bytes + 1);
    return 0;
}

void pg_status_write(char out[PG_STATUS_SIZE], uint64_t written, uint64_t applied,
                     bool answer_wanted)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t us = (uint64_t)(now.tv_sec - POSTGRES_EPOCH) * 1000000 + (uint64_t)now.tv_nsec / 1000;
    *out++ = 'r';
    out = write_u64(out, written);
    out = write_u64(out, applied); /* flushed */
    out = write_u64(out, applied);
    out = write_u64(out, us);
    *out = answer_wanted;
}
