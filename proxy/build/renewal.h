/* When generations are built: at the start, on a timer (sync: poll), on request, and again after a
 * failure, with backoff. */
#ifndef NESTGUARD_RENEWAL_H
#define NESTGUARD_RENEWAL_H

#include "build/builder.h"
#include "net/backoff.h"

struct renewal_options {
    /* The configuration to build for; asked at each beginning. */
    struct shared_config *(*config)(void *arg);
    const struct generation *(*in_force)(void *arg); /* or NULL */
    bool (*guards)(void *arg, size_t keyspace);      /* now, by the one in force */
    const _Atomic size_t *beside;                    /* see struct filling */
    /* Tells the workers that a generation is about to be built, before its snapshot is taken;
     * renewal_announced() says that all of them know. */
    void (*announce)(void *arg);
    /* The build that ends now could not have this keyspace, and went on without it, or had nothing
     * else to be built for. */
    void (*lacks)(void *arg, size_t keyspace, const char *why);
    /* A generation is built. What the callee takes out of `built` is its own; renewal_settle() will
     * say what became of it. */
    void (*complete)(void *arg, struct built *built);
    /* No build is under way any more, whatever came of it. */
    void (*idle)(void *arg);
    void *arg;
};

enum renewal_phase { RENEWAL_IDLE, RENEWAL_ANNOUNCING, RENEWAL_BUILDING, RENEWAL_SETTLING };

struct renewal {
    enum renewal_phase phase;
    uv_loop_t *loop;
    struct renewal_options options;
    bool stopped;
    bool shaky;                   /* the last generation did not last */
    uint64_t in_force;            /* clock_ms() when the last generation took over */
    struct builder *builder;      /* at work, or NULL */
    bool hurried;                 /* nobody guards meanwhile */
    struct shared_config *shared; /* what it builds for; held */
    uv_timer_t timer;             /* the next poll, or the next try */
    bool retrying;                /* it is a try, which no poll may put off */
    uint64_t newest;              /* number of the newest generation that was begun */
    struct backoff retry;
    bool for_itself;   /* it is wanted for what it has of every keyspace; else for those that do not
                          guard: see `wanted` of struct builder_options */
    uint64_t began;    /* clock_ms() when the last build began */
    uint64_t polled;   /* the same of the last one that was for itself, or is in force */
    uint64_t reported; /* clock_ms() of the log's last line about its progress */
    bool wanted;       /* another is wanted when this one has ended */
    uint64_t failures;
    bool failing;        /* the last build failed, and another is to be tried */
    uint64_t complained; /* clock_ms() of the log's last line about one */
    char error[600];     /* of the last build, or why another is wanted, or "" */
};

struct build_report {
    bool at_work; /* else there is no progress */
    uint64_t newest;
    struct build_progress progress;
    const char *error; /* of the last that failed, or why another is wanted, or "" */
    bool failing;      /* the last that ended has failed */
    uint64_t failures;
};

int renewal_init(struct renewal *renewal, uv_loop_t *loop, const struct renewal_options *options);

/* Begins a generation whose snapshot is taken after this call, now or when the one at work has
 * ended. Returns its number. */
uint64_t renewal_begin(struct renewal *renewal);

/* Every worker knows that a generation is being built. */
void renewal_announced(struct renewal *renewal);

/* What the guard itself wants, and says at every look until it has it: no more than a try that is
 * due later, for else one that fails would be begun again and again without a pause. */
void renewal_wish(struct renewal *renewal);
/* False: it would change nothing. */
bool renewal_takes_wishes(const struct renewal *renewal);

/* What may be wanted again as soon as it is there waits for so long that the builds take at most a
 * tenth of the time, however large the tables are. */
bool renewal_has_rested(const struct renewal *renewal, uint64_t now);

/* The generation that complete() took is in force (error NULL), or it failed: then another is
 * begun, with backoff. */
void renewal_settle(struct renewal *renewal, const char *error);

/* The generation in force must be replaced for what it lacks: begins another, with backoff when it
 * did not last. */
void renewal_replace(struct renewal *renewal, const char *why);

/* Whether builds are in a hurry, the one at work and those that come. */
void renewal_hurry(struct renewal *renewal, bool hurried);

/* What is told of it; `error` lives as long as nothing is done with it. */
struct build_report renewal_report(const struct renewal *renewal);

/* Once in a while: tells the log how far a long build is. */
void renewal_tell_log(struct renewal *renewal, uint64_t now);

/* The poll interval may have changed. */
void renewal_reschedule(struct renewal *renewal);

/* No more builds; one at work is stopped and ends on the loop. */
void renewal_stop(struct renewal *renewal);

#endif
