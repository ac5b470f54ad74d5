/* What the keeper and its parts tell of themselves, in plain values: all that status, metrics and
 * the explanation of a key are made from. Workers go on counting while they are read: sums are near
 * each other in time, but no snapshot.
 */
#ifndef NESTGUARD_REPORT_H
#define NESTGUARD_REPORT_H

#include "build/renewal.h"
#include "cache/loads.h"
#include "cache/refusals.h"
#include "cache/spellings.h"
#include "follow/checks/checks.h"
#include "follow/follower.h"
#include "follow/lag.h"
#include "guard/counters.h"
#include "guard/guard.h"
#include "guard/timing.h"
#include "guard/view.h"
#include "publish/publisher.h"
#include "redis/redis.h"
#include "resp/command.h"
#include "traffic/traffic.h"
#include "worker/upstream/replicas.h"
#include "worker/worker_report.h"

#define REPORT_MEMBER(name, help) uint64_t name;

struct keyspace_report {
    size_t number;
    const struct keyspace *config;
    enum keyspace_state state;
    const char *reason;  /* for it */
    uint64_t since;      /* clock_ms() */
    const char *refused; /* of one with a source: why its newest keys are not known; or NULL */
    bool has_filter;
    enum filter_kind kind; /* this, `filter` and `rows`: of that one */
    struct filter_stats filter;
    uint64_t rows;                      /* those that share an entry, too */
    uint64_t set_number;                /* of one with a source: which of all keys taken so far */
    struct selfcheck_account check;     /* after the first self-check */
    uint64_t check_failures;            /* so far, of whichever generation */
    const struct spelling *spelling;    /* the latest that was another than its row's */
    const struct refused_load *refusal; /* the database's latest of a load */
    /* Of all that had its name in this process. */
    struct lookups_report lookups; /* of all workers */
    LOAD_COUNTERS(REPORT_MEMBER)
    struct published_report published;
};

struct generation_report {
    uint64_t number; /* 0: there is none, and nothing of the rest */
    uint64_t rows;
    size_t bytes;
    double build_seconds;
    time_t built_at;
};

struct stream_report {
    bool is_followed;          /* else nothing of the rest is there */
    uint64_t position, behind; /* of the log; and bytes of it that are not followed yet */
    uint64_t known;            /* clock_ms() by which all commits are known */
    double bytes_per_second;
    struct follower_counts counts;
};

struct check_report {
    uint64_t generation; /* 0: there was no self-check */
    uint64_t time;       /* clock_ms() */
};

/* Lives until anything is done with the keeper, but for `keyspaces`. */
struct report {
    const struct config *config;
    uint64_t started; /* clock_ms() */
    bool is_draining;
    const char *refusal; /* of the last file that was read again; NULL: it was taken */
    unsigned workers, clients;
    size_t client_bytes; /* the memory of all clients */
    size_t count;        /* of keyspaces, those that are configured */
    struct keyspace_report *keyspaces;
    struct worker_report worker;               /* of all */
    struct durations times[WORKER_TIME_COUNT]; /* likewise */
    uint64_t calls[COMMAND_NUMBERS];           /* likewise: commands, by command_number() */
    struct generation_report generation;       /* in force */
    struct build_report build;
    struct stream_report stream; /* of the generation in force */
    struct check_report check;   /* the last, of whichever generation */
    bool confirms_everything;    /* commits that wait for the guard return at once */
    struct redis_node *cache;    /* the server, and the sentinels that know it */
    size_t cache_nodes;
    bool cache_is_cluster;
    unsigned slots_uncovered;            /* of a cluster: that no node has */
    const struct replica_word *replicas; /* that lookups go to, where they may */
    size_t replica_count;
    size_t purges_owed;
    unsigned database_connections;
    const char *database_error;               /* why there are not more; NULL: nothing is wrong */
    size_t loads;                             /* on their way */
    struct loads_waits waits;                 /* for the database */
    struct durations database[LOADS_ANSWERS]; /* how long its answers to loads took */
    size_t entries;
    struct attack attack; /* the last one */
    struct rate rejects;  /* of all keyspaces */
};

/* What happens to one key now, and by what. */
struct key_report {
    struct ruling ruling;
    bool is_held;      /* the filter may have it */
    bool is_possible;  /* the verdict, whether the keyspace may reject by it or not */
    bool known_absent; /* the filter has it, and the database has not */
    bool in_flight;
    struct override entry;
    enum keyspace_state state;
    const struct refused_load *refusal; /* the database's latest of a load of the keyspace */
    uint64_t generation;                /* in force; 0: none */
    struct stream_report stream;        /* followed so far */
};

struct keeper;

/* To be finished. */
void keeper_report(const struct keeper *keeper, struct report *report);
void report_finish(struct report *report);

/* What a worker would decide of the key now. Nothing is counted, and nothing comes of it. */
struct key_report keeper_report_key(const struct keeper *keeper, struct key key);

#endif
