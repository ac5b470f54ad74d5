/* The texts stand here once: what the data port says of a keyspace and of a load that failed.
 */
#include "worker/command/keys/answer.h"

#include "worker/request/request.h"

const char *answer_nil(const struct reply_slot *slot)
{
    return slot->resp3 ? "_\r\n" : "$-1\r\n";
}

bool answer_is_cache_failure(struct span reply)
{
    if (reply.at[0] != '-')
        return false;
    return span_starts(reply, "-LOADING") || span_starts(reply, "-MASTERDOWN") ||
           span_starts(reply, "-CLUSTERDOWN") || span_starts(reply, "-BUSY ");
}

const char *answer_error_words(struct span reply, char words[ANSWER_WORDS])
{
    if (span_starts(reply, "-"))
        snprintf(words, ANSWER_WORDS, "%.*s", (int)(reply.length > 3 ? reply.length - 3 : 0),
                 reply.at + 1);
    else
        snprintf(words, ANSWER_WORDS, "%s", REQUEST_STRANGE);
    return words;
}

__attribute__((noinline)) void answer_write_absent(struct buffer *out,
                                                   const struct keyspace *keyspace,
                                                   const char *plain, bool takes_value)
{
    if (keyspace->on_absent == ABSENT_ERROR)
        resp_write_error(out, "NESTGUARD absent: no row of keyspace %s has this key",
                         keyspace->name);
    else if (keyspace->on_absent == ABSENT_VALUE && takes_value)
        resp_write_bulk(out, keyspace->absent_value, strlen(keyspace->absent_value));
    else
        buffer_append(out, plain, strlen(plain));
}

void answer_write_load_error(struct buffer *out, enum load_outcome outcome)
{
    static const char *const texts[] = {
        [LOAD_BUSY] = "busy: no turn at the database within load_timeout, try again",
        [LOAD_CUT] = "busy: too many loads wait, and most of them are this client's",
        [LOAD_TIMEOUT] = "timeout: the database took longer than load_timeout",
        [LOAD_DOWN] = "database down",
        [LOAD_REFUSED] = "database error: it refused the load, see the guard's log",
        [LOAD_AMBIGUOUS] = "ambiguous: the key can be split into columns in too many ways",
        [LOAD_TOO_LARGE] = "too large: the row's value has more bytes than max_value"};
    resp_write_error(out, "NESTGUARD %s", texts[outcome]);
}

/* A value may be as large as max_value: for that much there need not be memory. */
static void write_value(struct reply_slot *slot, struct buffer *out, struct span value)
{
    if (!reply_slot_reserve(slot, out, value.length + RESP_HEADER_ROOM))
        return;
    resp_write_bulk(out, value.at, value.length);
    serving_arrived(slot->serving, value.length);
}

/* To a GET it says what the cache says of a hash, which is there from now on. */
static void write_row(const struct lookup *lookup, struct buffer *out, const struct blob *value)
{
    if (serving_keyspace(lookup->slot->serving, lookup->keyspace)->fill == FILL_HASH)
        resp_write_error(out, "WRONGTYPE Operation against a key holding the wrong kind of value");
    else
        write_value(lookup->slot, out, blob_span(value));
}

void answer_write_loaded(const struct lookup *lookup, struct buffer *out, enum load_outcome outcome,
                         const struct blob *value)
{
    const struct keyspace *keyspace = serving_keyspace(lookup->slot->serving, lookup->keyspace);
    if (outcome == LOAD_ROW)
        write_row(lookup, out, value);
    else if (outcome == LOAD_ABSENT)
        answer_write_absent(out, keyspace, answer_nil(lookup->slot), true);
    else
        answer_write_load_error(out, outcome);
}
