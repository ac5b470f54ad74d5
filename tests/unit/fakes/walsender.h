/* Messages of the log, made by hand. */
#ifndef NESTGUARD_FAKES_WALSENDER_H
#define NESTGUARD_FAKES_WALSENDER_H

#include "postgres/log/pgoutput.h"

#include <stdlib.h>
#include <string.h>

struct log_message {
    char at[4096];
    size_t length;
};

void put(struct log_message *message, const void *bytes, size_t length);

/* One field a letter: c h w q numbers of 1, 2, 4, 8 bytes, s a name with its zero byte, x a name
 * without; values: t text, b binary, n NULL, u unchanged. */
struct log_message compose(const char *fields, ...);

enum { PLAIN, STREAMED };

/* Reads a copy that ends where AddressSanitizer watches; it lives until the next call. */
int read_copy(const struct log_message *message, size_t length, int in_stream,
              struct pgoutput_event *event, const char **error);

struct pgoutput_event read_well(struct log_message message, int in_stream);

/* What the same message is within a streamed block: changes carry a transaction's id there. */
struct log_message streamed_by(struct log_message message, uint32_t xid);

struct log_message streamed(struct log_message message);

/* Calls `each` with one message of every kind and shape, outside and inside a streamed block, as
 * far as the kind may be there. */
void for_each_sample(void (*each)(struct log_message message, int in_stream));

#endif
