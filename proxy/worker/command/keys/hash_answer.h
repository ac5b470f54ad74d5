/* What Redis would answer to a question about a hash (enum command_hash), made of the hash: of a
 * row that was loaded, or of HGETALL's reply. Nothing here decides or waits.
 */
#ifndef NESTGUARD_HASH_ANSWER_H
#define NESTGUARD_HASH_ANSWER_H

#include "resp/command.h"
#include "worker/reply/reply_slot.h"

struct hash_question {
    enum command_hash what;
    const struct lookup *fields; /* that it asks about: their keys are the names */
    size_t count;                /* of these */
    bool resp3;                  /* the protocol of the answer */
};

/* `hash`: what resp_map_open() opens, in either protocol. Appends to `out`; false: there is no
 * memory for so much, and `out` may hold a part of it. */
bool hash_answer_write(const struct hash_question *question, struct span hash, struct buffer *out);

/* The answer of a key that is not there. */
bool hash_answer_write_nothing(const struct hash_question *question, struct buffer *out);

/* Whether this reply, in either protocol, answers such a question at all. */
bool hash_answer_has_form(const struct hash_question *question, struct span reply);

/* Whether this reply, in either protocol, says that what was asked for is not there: neither the
 * key nor, where it asks for any, one of the fields. Or that the field's value is empty. */
bool hash_answer_is_nothing(const struct hash_question *question, struct span reply);

/* The question asks for fields: nothing may mean that the key lacks them. */
static inline bool hash_asks_for_fields(enum command_hash what)
{
    return what == HASH_VALUE || what == HASH_VALUES || what == HASH_LENGTH || what == HASH_HAS;
}

#endif
