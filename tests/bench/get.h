/* GET by number, as bytes: encoding the requests for the keys PREFIX<id>, and finding the replies.
 * Items of one BF.MEXISTS are such requests, too, behind a header. Nothing here knows of sockets.
 *
 * The ids of a range all have the same number of digits. So a request has a fixed length, and the
 * next one is made by writing digits over those of the last: whoever asks for millions of different
 * keys a second must not spend more on it than the server under test.
 */
#ifndef NESTGUARD_BENCH_GET_H
#define NESTGUARD_BENCH_GET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_range {
    uint64_t first, last; /* both are in it */
};

/* Reads "FIRST:LAST". False unless both have the same number of digits, in order, and are fewer
 * than 2^32. */
bool id_range_parse(const char *text, struct id_range *range);

/* A member of the range by chance; *state is a seed before the first call, and not 0. */
uint64_t id_range_random(const struct id_range *range, uint64_t *state);

/* The turn-th of the members in an order without a pattern, in which each comes once before any
 * comes again. */
uint64_t id_range_at(const struct id_range *range, uint64_t turn);

enum { GET_REQUEST_MOST = 128 };

struct get_request {
    size_t length;    /* of the whole request */
    size_t digits_at; /* where the id stands in it */
    size_t digits;
    char bytes[GET_REQUEST_MOST];
};

/* A request for one id of the range. False when the prefix is too long. */
bool get_request_init(struct get_request *request, const char *prefix,
                      const struct id_range *range);

/* The same for an item of BF.MEXISTS, whose text is the id. In front of so many of them stands the
 * beginning of their command, which takes at most MEMBERS_HEAD_MOST bytes; returns how many. */
enum { MEMBERS_HEAD_MOST = 128 };
bool member_request_init(struct get_request *request, const struct id_range *range);
size_t members_head(char head[MEMBERS_HEAD_MOST], const char *filter, unsigned items);

/* Writes the id over the one in a copy of the request's bytes. */
void get_request_put_id(const struct get_request *request, char *bytes, uint64_t id);

enum reply { REPLY_PARTIAL, REPLY_NIL, REPLY_EMPTY, REPLY_VALUE, REPLY_STATUS, REPLY_ERROR };

/* The kind of the first reply in p..end; REPLY_PARTIAL when it is not there as a whole, and else
 * *next is what follows it. An integer counts as nil when it is 0, else as a value; the header of
 * an array is passed over. */
enum reply reply_take(const char *p, const char *end, const char **next);

#endif
