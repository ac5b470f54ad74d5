/* What a cache says of itself that matters to who writes to it. For `check`, which may wait; what
 * serves goes over redis.h. */
#ifndef NESTGUARD_REDIS_SURVEY_H
#define NESTGUARD_REDIS_SURVEY_H

#include "redis/protocol/redis_role.h"
#include "redis/redis.h"
#include "redis/topology/redis_standing.h"

struct redis_survey {
    char version[64];       /* "7.0.15"; "" when it does not say, or INFO is not for this user */
    uint64_t max_memory;    /* bytes; 0: no bound */
    char memory_policy[32]; /* "allkeys-lru"; "" when it does not say */
    enum redis_role role;
    bool is_cluster_node;
    bool wants_all_slots;           /* a node that answers nothing while any slot has nobody */
    uint64_t max_bulk, max_clients; /* its limits; 0 when it does not say */
    bool limits_output;             /* of ordinary clients, on which it hangs up past that */
    bool evicts_clients;            /* when all of them take more memory than it allows */
    bool may_stay;                  /* all the same: this user may CLIENT NO-EVICT */
    struct redis_standing standing;
    struct redis_place replicas[8]; /* that follow it, the first of them */
    size_t replica_count;
};

/* Connects by itself, authenticates, selects, and reads what INFO gives, all within timeout_ms. 0,
 * or a negative errno with `error` filled: what failed and what the server said. -EACCES: it
 * answered with an error; -EPROTO: it is no Redis; anything else: it did not answer. */
int redis_survey(const struct redis_options *options, struct redis_survey *out, char error[256]);

/* In the same way, what a script says of two keys: a string, of which `said` holds the first 63
 * bytes. -EACCES also when it says something else. */
int redis_ask_script(const struct redis_options *options, const char *script,
                     const char *const keys[2], char said[64], char error[256]);

enum { REDIS_REFUSAL_SIZE = 160 };

/* One command, and what the server has against it; "": nothing. */
struct redis_trial {
    const char *const *words;
    size_t count;
    char *refusal; /* [REDIS_REFUSAL_SIZE] */
};

/* In the same way, tries commands in a transaction that is discarded: 0. For a user who may not
 * MULTI they are carried out: 1. Only such as have no effect, unless that is known. */
int redis_try(const struct redis_options *options, const struct redis_trial *trials, size_t count,
              char error[256]);

/* Reads the text that INFO gives. */
void redis_survey_read(struct redis_survey *out, const char *text);

#endif
