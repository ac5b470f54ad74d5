/* The commands of one published filter, put together. */
#ifndef NESTGUARD_PUBLISH_COMMANDS_H
#define NESTGUARD_PUBLISH_COMMANDS_H

#include "filters/bitmap/bitmap.h"
#include "publish/publish_names.h"
#include "redis/redis.h"

/* A command as it is being written, which begins with both counts 0. What is added as text must
 * live until it is sent; numbers lie in here, and it must not be moved. */
enum { PUBLISH_WORDS_MAX = 4 + 4 * BITMAP_FUNCTIONS_MAX, PUBLISH_NUMBERS_MAX = 48 };

struct publish_command {
    struct redis_bytes words[PUBLISH_WORDS_MAX];
    size_t count;
    char numbers[PUBLISH_NUMBERS_MAX][24];
    size_t number_count;
};

void publish_word(struct publish_command *command, const char *text);
void publish_bytes(struct publish_command *command, const void *at, size_t length);
void publish_number(struct publish_command *command, uint64_t number);

/* BITFIELD key SET u1 place 1 ... */
void publish_set_bits(struct publish_command *command, const char *key, const uint64_t *places,
                      unsigned count);
/* EVAL script, with so many keys to follow, of which these are the first two */
void publish_script(struct publish_command *command, const char *script, size_t keys,
                    const struct publish_names *names);

/* What a script said; `word` lives as long as the answer. False: nothing of the kind. */
struct publish_said {
    uint64_t time; /* on the cache's clock, ms */
    const char *word;
};
bool publish_hear(const struct redis_answer *answer, struct publish_said *said);

#endif
