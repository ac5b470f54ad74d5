/* A real generation, with a database that answers, and a clock that goes, when the
 * test says so. */
#ifndef NESTGUARD_TEST_GENERATION_BENCH_H
#define NESTGUARD_TEST_GENERATION_BENCH_H

#include "fakes/clock.h"
#include "fakes/config_file.h"
#include "fakes/pg_pool.h"
#include "guard/view.h"

enum { ITEMS, ORDERS, KEYSPACES };
enum { FIND_ITEM = 3 };

static const char bench_text[] =
    "cache: redis://127.0.0.1\n"
    "database: postgresql://app@db/shop\n"
    "sync: replication\n"
    "keyspaces:\n"
    "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
    "  - {name: orders, key: \"order:{customer}:{number}\", table: orders, value: v}\n";

static inline struct generation *generation_of(uint64_t number)
{
    struct filter_options options = {.capacity = 1000, .false_positive_rate = 1e-7};
    struct generation *generation = generation_create(number, KEYSPACES);
    const char *error;
    for (size_t i = 0; i < KEYSPACES; i++)
        assert_int_equal(filter_create(&generation->filters[i], &options, &error), 0);
    return generation;
}

static inline uint64_t hash_in(const struct generation *generation, const char *key)
{
    return filter_hash(&generation->seed, key, strlen(key));
}

static inline void learn(struct generation *generation, int keyspace, const char *key)
{
    assert_int_equal(filter_insert(generation->filters[keyspace], hash_in(generation, key)), 0);
}

static inline void unlearn(struct generation *generation, int keyspace, const char *key)
{
    assert_int_equal(filter_remove(generation->filters[keyspace], hash_in(generation, key)), 0);
}

/* A row whose printed key is this; its statement gives the value first. */
static inline void row_is(const char *id)
{
    fake_row(FAKE_TEXT, (const char *[]){"payload", id}, 2);
}

#endif
