/* What the files of a published filter share. */
#ifndef NESTGUARD_PUBLISHED_INTERNAL_H
#define NESTGUARD_PUBLISHED_INTERNAL_H

#include "publish/publish_commands.h"
#include "publish/published.h"

void published_enter(struct published *published, enum published_state state);

void published_submit(struct published *published, const struct publish_command *command,
                      redis_answer_cb done);

/* Whether what is sent can be run. */
bool published_is_reachable(const struct published *published);

/* Before an attempt, or the removal: to the node that has the key by now. False: not yet. */
bool published_go_home(struct published *published);

/* To be called with each answer. Whether it is of the attempt that is under way. */
bool published_take_answer(struct published *published);

/* The answer to a command that only has to succeed. */
void published_on_written(void *arg, const struct redis_answer *answer);
void published_failed(struct published *published, const struct redis_answer *answer);

/* What a script said, and the cache's clock. False: nothing of the kind. */
bool published_hear(struct published *published, const struct redis_answer *answer,
                    struct publish_said *said);
bool published_is_word(const struct publish_said *said, const char *word);
uint64_t published_on_caches_clock(const struct published *published, uint64_t until);

/* A new `generation`. */
uint64_t published_next_id(const struct published *published);

/* Another guard holds the name, or has just let it go. */
void published_stand_by(struct published *published, const char *why);

/* Whether the lease may be renewed by now; whether another bitmap is wanted. */
void published_review_known(struct published *published);
void published_grow_if_full(struct published *published);

#endif
