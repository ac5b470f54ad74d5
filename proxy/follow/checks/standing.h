/* A generation that follows no log (sync: poll and none): what it takes to believe it, before it
 * comes into force and while it is.
 *
 *   built ─▶ self-check ─▶ ready() ─▶ a self-check every minute ─▶ fault()
 */
#ifndef NESTGUARD_STANDING_H
#define NESTGUARD_STANDING_H

#include "build/builder.h"
#include "follow/checks/checks.h"

struct standing;

struct standing_options {
    const struct config *config; /* what the generation was built for */
    struct checker *checker;
    struct fn_checks *fn_checks;
    /* The self-check has passed: the generation may take over. */
    void (*ready)(void *arg, struct standing *standing);
    /* A self-check found what it has of this keyspace to be wrong: whether it goes on without.
     * `why` lives until the call returns. */
    bool (*gives_up)(void *arg, struct standing *standing, size_t keyspace, const char *why);
    /* It must be replaced. `why` lives until the call returns. Only standing_close() may follow. */
    void (*fault)(void *arg, struct standing *standing, const char *why);
    void *arg;
};

/* Takes generation and snapshot out of `built`. */
struct standing *standing_create(struct built *built, const struct standing_options *options);

/* Several times a second. */
void standing_tick(struct standing *standing);

struct generation *standing_generation(const struct standing *standing);

/* Nothing is called any more. NULL is allowed. */
void standing_close(struct standing *standing);

#endif
