/* Counters: each is written by one thread and read by any, without a lock or a locked instruction.
 * Their names in /metrics and /v1/status come from these lists.
 */
#ifndef NESTGUARD_COUNTERS_H
#define NESTGUARD_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* Of a keyspace, on a worker: X(name, help) */
#define KEYSPACE_COUNTERS(X)                                                                       \
    X(lookups, "Guarded keys looked up")                                                           \
    X(members, "Lookups that BF and CF commands made of a keyspace's filter")                      \
    X(rejected, "Lookups answered as absent without asking cache or database")                     \
    X(would_reject, "Lookups that enforce: true would have rejected")                              \
    X(cache_hits, "Guarded keys that the cache had")                                               \
    X(cache_misses, "Guarded keys that the cache did not have")                                    \
    X(cache_failures, "Guarded keys that the cache could not be asked for")                        \
    X(hints, "Writes of keys that the filter did not know")

/* Of a keyspace, on the keeper */
#define LOAD_COUNTERS(X)                                                                           \
    X(loads_row, "Loads that found a row")                                                         \
    X(loads_absent, "Loads that found no row")                                                     \
    X(loads_busy, "Loads refused that had waited for load_timeout for their turn")                 \
    X(loads_cut, "Loads refused because too many waited, and their client's were the most")        \
    X(loads_timeout, "Loads that took longer than load_timeout")                                   \
    X(loads_down, "Loads that failed because the database was down")                               \
    X(loads_refused, "Loads that the database answered with an error")                             \
    X(loads_too_large, "Loads refused because the row's value was larger than max_value")          \
    X(coalesced, "Lookups that shared a load already in flight")                                   \
    X(known_absent, "Lookups answered from the remembered false positives")                        \
    X(false_positives, "Keys that the filter took for possible and the database did not have")     \
    X(fills, "Values written to the cache")                                                        \
    X(fills_forgone, "Values not cached because of what ttl_expression gave")                      \
    X(fills_failed_down, "Values not cached because the cache was down")                           \
    X(fills_failed_full, "Values not cached because its memory is full, or it takes no writes")    \
    X(fills_failed_readonly, "Values not cached because it is a replica")                          \
    X(fills_failed_busy, "Values not cached because it was busy with a script, or loading")        \
    X(fills_failed_refused, "Values not cached because of another error of the cache")             \
    X(fills_failed_waiting, "Values not cached because too many were on their way")                \
    X(purges, "Keys deleted from the cache")                                                       \
    X(purges_refused, "Keys that the cache refused to delete, each time it did")                   \
    X(shadow_checked, "Would-be rejects of shadow mode that were looked up in the database")       \
    X(false_rejects, "Would-be rejects of shadow mode whose row existed")                          \
    X(other_spellings, "Keys looked up that no row has but in another spelling")

/* Of a worker */
#define WORKER_COUNTERS(X)                                                                         \
    X(connections, "Client connections accepted")                                                  \
    X(connections_refused, "Client connections refused because of max_clients")                    \
    X(accept_pauses, "Times that accepting had to wait for open files")                            \
    X(strangers_dropped, "Clients dropped before they had authenticated: too many, or too slow")   \
    X(clients_idle, "Clients closed after client_idle_timeout")                                    \
    X(authentication_failures, "Passwords and users that were refused")                            \
    X(clients_dropped, "Clients dropped because they did not read their replies")                  \
    X(clients_cut, "Clients cut off because they took most when max_client_memory was used up")    \
    X(hints_refused, "Writes refused because max_hints had no place for the keys")                 \
    X(protocol_errors, "Clients closed after a protocol error")                                    \
    X(tls_failures, "Clients closed because the TLS handshake failed")                             \
    X(commands, "Commands received")                                                               \
    X(redirected, "Commands that a node of a cluster sent on to another")                          \
    X(forwarded, "Commands forwarded to the cache")                                                \
    X(replica_reads, "Lookups of guarded keys that a replica was asked")                           \
    X(replica_misses, "Of these, lookups that it could not answer, asked of its primary")          \
    X(own_refused,                                                                                 \
      "Connections of their own refused to clients because own_connections were used up")          \
    X(own_refused_host, "The same because their host had its share of own_connections")            \
    X(upstream_failures, "Times that a shared cache connection was lost or refused")

typedef _Atomic uint64_t counter;

#define COUNTER_MEMBER(name, help) counter name;
struct keyspace_counters {
    KEYSPACE_COUNTERS(COUNTER_MEMBER)
};
struct load_counters {
    LOAD_COUNTERS(COUNTER_MEMBER)
};
struct worker_counters {
    WORKER_COUNTERS(COUNTER_MEMBER)
    counter clients;                             /* now connected */
    counter shared_connections, own_connections; /* to the cache, that are up */
    counter stalled_ms;                          /* shared ones waited for slow readers */
    counter own_limit, max_bulk;                 /* in force, see serving_update_limits() */
};

/* Only the thread that owns the counter; hence a load and a store will do. */
static inline void counter_add(counter *at, uint64_t amount)
{
    atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

static inline void counter_set(counter *at, uint64_t value)
{
    atomic_store_explicit(at, value, memory_order_relaxed);
}

/* Any thread: the value of some moment ago, never half of one. */
static inline uint64_t counter_read(const counter *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

#endif
