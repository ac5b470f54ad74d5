/* Every interleaving of one lookup with two changes of a cuckoo filter: two, because a removal is
 * dangerous only together with the insertion of an equal entry before it.
 *
 * The filter's own code is compiled in here with its atomic operations replaced: each store of the
 * writer is logged. The log can then be unrolled and rolled forward again, store by store, between
 * the loads of a reader, in every way there is. No key that was in all the while may be called
 * absent in any of them.
 *
 * This sees every order of events that one memory can show. What weaker memory could show beyond
 * that is the business of the argument in cuckoo.c and of ThreadSanitizer in test_filter_threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void log_store(void *at, size_t size, uint64_t before, uint64_t after);
static void before_load(const void *at);

#undef atomic_store_explicit
#define atomic_store_explicit(at, value, order)                                                    \
    do {                                                                                           \
        uint64_t before_ = *(at);                                                                  \
        *(at) = (value);                                                                           \
        log_store((void *)(at), sizeof *(at), before_, *(at));                                     \
    } while (0)

#undef atomic_load_explicit
#define atomic_load_explicit(at, order) (before_load(at), *(at))

#include "../../../filters/cuckoo/bucket.c"
#include "../../../filters/cuckoo/cuckoo.c"
#include "../../../filters/cuckoo/cuckoo_writer.c"
#include "../../../filters/cuckoo/stash.c"

enum {
    MOST_STORES = 64, /* of two changes */
    EXHAUSTIBLE = 9,  /* stores: more of them have too many schedules, and are passed over */
    LOADS = 7,        /* of one lookup with one attempt and an empty stash, at most */
    KEYS = 96,
    CHANGES = 15, /* pairs of them in each table; NESTGUARD_TEST_TIMES=n: n times as many */
};

static struct {
    void *at;
    size_t size;
    uint64_t before, after;
} stores[MOST_STORES];

static unsigned store_count;
static unsigned stores_done; /* less than store_count while a lookup looks on */

static const struct cuckoo *uninteresting; /* its counters: no lookup loads them */
static bool reading;
static unsigned load_count;
static unsigned schedule[LOADS]; /* how many stores are done before each load */
static bool load_met_store;

static void set_word(void *at, size_t size, uint64_t value)
{
    if (size == sizeof(uint32_t))
        *(_Atomic(uint32_t) *)at = (uint32_t)value;
    else
        *(_Atomic(uint64_t) *)at = value;
}

static void log_store(void *at, size_t size, uint64_t before, uint64_t after)
{
    assert_false(reading);
    if (at == &uninteresting->keys || at == &uninteresting->in_table ||
        at == &uninteresting->surplus_bytes)
        return;
    assert_true(store_count < MOST_STORES);
    stores[store_count].at = at;
    stores[store_count].size = size;
    stores[store_count].before = before;
    stores[store_count].after = after;
    stores_done = ++store_count;
}

static void roll_to(unsigned wanted)
{
    while (stores_done > wanted) {
        stores_done--;
        set_word(stores[stores_done].at, stores[stores_done].size, stores[stores_done].before);
    }
    while (stores_done < wanted) {
        set_word(stores[stores_done].at, stores[stores_done].size, stores[stores_done].after);
        stores_done++;
    }
}

static void before_load(const void *at)
{
    if (!reading)
        return;
    for (unsigned i = 0; i < store_count; i++)
        load_met_store |= stores[i].at == at;
    roll_to(load_count < LOADS ? schedule[load_count] : store_count);
    load_count++;
}

typedef bool lookup(const struct filter *filter, uint64_t hash);

static bool ask_alone(const struct filter *filter, uint64_t hash)
{
    return filter->ops->contains(filter, hash);
}

static bool ask_in_batch(const struct filter *filter, uint64_t hash)
{
    bool found;
    filter->ops->contains_batch(filter, &hash, 1, &found);
    return found;
}

static bool look_on(const struct filter *filter, uint64_t hash, lookup *ask)
{
    roll_to(0);
    reading = true;
    load_count = 0;
    bool found = ask(filter, hash);
    reading = false;
    roll_to(store_count);
    return found;
}

/* The next schedule that never goes back in time; false after the last. */
static bool next_schedule(void)
{
    unsigned last = LOADS;
    while (last > 0 && schedule[last - 1] == store_count)
        last--;
    if (last == 0)
        return false;
    unsigned time = schedule[last - 1] + 1;
    for (unsigned i = last - 1; i < LOADS; i++)
        schedule[i] = time;
    return true;
}

/* A key that no store concerns sees the same in every schedule: one is enough. */
static size_t assert_never_absent(const struct filter *filter, uint64_t hash, lookup *ask)
{
    size_t lookups = 0;
    memset(schedule, 0, sizeof schedule);
    load_met_store = false;
    do {
        if (!look_on(filter, hash, ask))
            fail_msg("lost after %u, %u, %u, %u, %u of %u stores", schedule[0], schedule[1],
                     schedule[2], schedule[3], schedule[4], store_count);
        lookups++;
    } while (load_met_store && next_schedule());
    return lookups;
}

/* Half of all changes concern an eighth of the keys, so that these are in more than once. */
struct model {
    struct filter *filter;
    struct filter_seed seed;
    uint64_t hashes[KEYS]; /* each odd one is the mirror of the one before */
    unsigned copies[KEYS];
    unsigned least[KEYS]; /* copies at any time since the log began */
    uint64_t draws;
};

static uint64_t random_hash(const struct model *model, uint64_t number)
{
    return filter_hash(&model->seed, &number, sizeof number);
}

/* A hash with the same fingerprint and the same two buckets, in the other order. */
static uint64_t mirror(const struct filter *filter, uint64_t hash)
{
    const struct cuckoo *c = cuckoo_const(filter);
    struct spot spot = cuckoo_spot(cuckoo_layout(c), &c->table, hash);
    uint64_t middle = (uint64_t)(((uint128)(2 * spot.pair[1] + 1) << 63) / c->table.buckets);
    return (middle & ~(uint64_t)UINT32_MAX) | (hash & UINT32_MAX);
}

static void make_hashes(struct model *model)
{
    for (size_t i = 0; i < KEYS; i += 2) {
        model->hashes[i] = random_hash(model, i);
        model->hashes[i + 1] = mirror(model->filter, model->hashes[i]);
    }
}

static uint64_t draw(struct model *model, uint64_t below)
{
    return random_hash(model, UINT64_C(1) << 32 | model->draws++) % below;
}

static size_t draw_key(struct model *model)
{
    return draw(model, draw(model, 2) ? KEYS : KEYS / 8);
}

static void insert(struct model *model, size_t key)
{
    if (filter_insert(model->filter, model->hashes[key]) == 0)
        model->copies[key]++;
}

static void remove_one(struct model *model, size_t key)
{
    assert_int_equal(filter_remove(model->filter, model->hashes[key]), 0);
    if (--model->copies[key] < model->least[key])
        model->least[key] = model->copies[key];
}

/* Entries that readers must find where they are: all but those that are only counted. */
static size_t held(const struct model *model)
{
    struct cuckoo *c = cuckoo_of(model->filter);
    return c->in_table + stash_count(&c->stash);
}

/* Returns the number of the key that came or went. */
static size_t change(struct model *model, size_t level)
{
    size_t key = draw_key(model);
    if (held(model) < level) {
        insert(model, key);
        return key;
    }
    while (!model->copies[key])
        key = draw_key(model);
    remove_one(model, key);
    return key;
}

/* Half of the time the second change takes back the first, as far as it can. */
static void change_twice(struct model *model, size_t level)
{
    size_t key = change(model, level);
    if (draw(model, 2) && model->copies[key] > 0)
        remove_one(model, key);
    else
        change(model, level + 1);
}

static void begin_log(struct model *model)
{
    store_count = stores_done = 0;
    memcpy(model->least, model->copies, sizeof model->least);
}

static size_t check(const struct model *model)
{
    size_t lookups = 0;
    for (size_t key = 0; key < KEYS; key++) {
        if (model->least[key] == 0)
            continue;
        lookups += assert_never_absent(model->filter, model->hashes[key], ask_alone);
        lookups += assert_never_absent(model->filter, model->hashes[key], ask_in_batch);
    }
    return lookups;
}

static size_t times = 1;

/* Without a surplus, more copies lie in the table. */
static struct filter *make(double rate, bool surplus)
{
    struct filter_options options = {.kind = FILTER_CUCKOO, .false_positive_rate = rate};
    struct filter *filter;
    const char *error = NULL;
    assert_int_equal(filter_create(&filter, &options, &error), 0);
    if (surplus)
        return filter;
    options.max_bytes = filter_stats(filter).bytes;
    filter_destroy(filter);
    assert_int_equal(filter_create(&filter, &options, &error), 0);
    return filter;
}

static void assert_all_interleavings(double rate, size_t level_of_32, bool surplus)
{
    struct model model = {.filter = make(rate, surplus), .seed = {9, level_of_32}};
    size_t lookups = 0;
    make_hashes(&model);
    uninteresting = cuckoo_of(model.filter);
    size_t level = filter_stats(model.filter).slots * level_of_32 / 32;
    while (held(&model) < level) {
        begin_log(&model);
        change(&model, level);
    }
    for (size_t i = 0; i < CHANGES * times; i++) {
        begin_log(&model);
        change_twice(&model, level + i % 3);
        if (store_count <= EXHAUSTIBLE)
            lookups += check(&model);
    }
    print_message("rate %g, filled to %zu of 32, %u in the stash: %zu lookups\n", rate, level_of_32,
                  stash_count(&cuckoo_of(model.filter)->stash), lookups);
    filter_destroy(model.filter);
}

static void test_no_interleaving_of_loads_and_stores_loses_a_key(void **state)
{
    (void)state;
    const double rates[] = {0.03, 5e-3, 1e-3, 1e-4, 1e-5, 1e-7};
    for (size_t i = 0; i < 2 * sizeof rates / sizeof rates[0]; i++) {
        assert_all_interleavings(rates[i / 2], 18, i % 2); /* no searches; copies here and there */
        assert_all_interleavings(rates[i / 2], 26, i % 2);
        assert_all_interleavings(rates[i / 2], 30, i % 2);
        assert_all_interleavings(rates[i / 2], 35, i % 2); /* the stash is always in use */
    }
}

int main(void)
{
    const char *given = getenv("NESTGUARD_TEST_TIMES");
    if (given)
        times = strtoull(given, NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_interleaving_of_loads_and_stores_loses_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
