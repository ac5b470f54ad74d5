/* Between the parts of the loads: loads_course.c has the course of a load, loads_fill.c what it
 * leaves in the cache, loads_absent.c what is remembered of absent keys, loads_line.c those who
 * wait for their turn. */
#ifndef NESTGUARD_LOADS_INTERNAL_H
#define NESTGUARD_LOADS_INTERNAL_H

#include "base/keymap.h"
#include "base/log/log_pace.h"
#include "cache/loads.h"
#include "cache/loads_queue.h"
#include "cache/loads_window.h"
#include "cache/negative_cache.h"

struct load {
    struct keymap_node node;
    struct loads *loads;
    struct key key;
    uint64_t asked; /* uv_hrtime() when the query was; 0: it was not yet */
    /* Under which the query began and absences may be remembered; 0: under none. */
    uint64_t generation;
    bool unseen;                  /* a change of the row was told that the query may not see yet */
    bool stale;                   /* the row has changed since the query began, or may have */
    bool timed_out;               /* the query took too long for somebody, which is counted once */
    struct row_lane_place *place; /* of its query, while it has one (rows_load()) */
    struct blob *value;           /* while it is being written to the cache, or waits for that */
    /* By a change during that, or its keyspace is retired: no longer in flight for anybody, whose
     * key may belong to another keyspace by now. */
    bool overtaken;
    /* Meanwhile: which fill that is, those before and behind it, for how many ms, and the clearing
     * that it waits for, which is the last before it; 0: for none. */
    uint64_t fill;
    struct load *fill_before, *fill_behind;
    uint64_t ttl;
    uint64_t waits_for;
    struct load_request *waiting, *last; /* in the order in which they asked */
    char text[];                         /* the key's */
};

struct loads {
    struct loads_options options;
    const struct view *view;
    struct keymap in_flight;   /* by key */
    size_t querying, filling;  /* how many of them are at the database, and at the cache */
    uint64_t fills, clearings; /* so far */
    struct load *first_fill,
        *last_fill;          /* those at the cache, in that order, and those that wait */
    struct load *first_held; /* the first of these */
    struct loads_clearing *first_clearing, *last_clearing;
    struct load_queue queue; /* who waits for a turn at the database */
    struct load_window window;
    struct histogram turns; /* how long it was waited for them */
    struct histogram queries[LOADS_ANSWERS];
    struct negative_cache absent;
    struct refusals *refusals; /* by the database */
    struct log_pace untaken;   /* the log's lines about fills that were not taken */
};

/* From here on the request is the worker's, and must not be touched. */
void loads_answer(struct load_request *request, enum load_outcome outcome, struct blob *value);

void loads_count_outcome(struct loads *loads, int keyspace, enum load_outcome outcome);

/* Sends the query. Whoever waits now has asked before it begins: its answer is good enough for all
 * of them. */
void loads_ask(struct load *load);

/* By the configuration in force. */
const struct keyspace *loads_keyspace(const struct load *load);

/* Writes the row's value to the cache, if it may; the load ends with the cache's answer. */
void loads_fill(struct load *load, const struct row_result *result);

/* At the end: the clearings that nobody has ended, and what waits for them. */
void loads_drop_clearings(struct loads *loads);

/* The generation under which the database's word on absent keys of this keyspace counts; 0: none.
 */
uint64_t loads_generation_of(const struct loads *loads, int keyspace);

/* The database does not have its key: that is counted and remembered, as far as it may be. */
void loads_found_absent(const struct load *load);

/* Whether the key is absent by what is remembered. */
bool loads_deny(const struct loads *loads, struct key key);

/* Before this view is used: what must not be believed under it is forgotten. */
void loads_outdate_absences(struct loads *loads, const struct view *view);

/* Its client is, so that nobody needs to be told. */
bool loads_is_gone(const struct load_request *request);

/* Nobody waits for it: it is forgotten. */
void loads_drop(struct load *load);

/* Ends the load, or starts it again for those who came too late for its answer. */
void loads_end(struct load *load);

/* Behind those who wait for the key: they are answered in the order in which they asked. */
void loads_join(struct load *load, struct load_request *request);

/* Who has joined a load that is asked for: a large row that waits for its turn may have it sooner.
 */
void loads_hasten(struct load *load, const struct load_request *request);

/* Likewise where the key is not asked for yet: the request gets a place in its client's line. */
void loads_line_up(struct load *load, struct load_request *request);

/* Asks for those whose turn it is, as many as the database is to have at once. */
void loads_go_on(struct loads *loads);

/* If too much waits, refuses some of whoever has most. */
void loads_cut(struct loads *loads);

/* Whoever waits for the query and had asked at that time or before: for them it takes too long. It
 * goes on for the others, for who comes meanwhile, and for the cache. */
void loads_time_out(struct load *load, uint64_t time);

/* Whoever had asked at that time or before, and still waits in line. */
void loads_refuse_overdue(struct loads *loads, uint64_t time, enum load_outcome outcome);

#endif
