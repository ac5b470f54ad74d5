/* What tests of loads share: a database and a cache that answer when the test says so, and the
 * requests of a worker that is not there. */
#ifndef NESTGUARD_TEST_LOADS_BENCH_H
#define NESTGUARD_TEST_LOADS_BENCH_H

#include "base/clock.h"
#include "base/memory.h"
#include "cache/loads.h"
#include "fakes/config_file.h"
#include "fakes/pg_pool.h"
#include "fakes/redis.h"

enum { ITEMS, ORDERS, KEYSPACES };

/* ---- the cache ---- */

static inline void fill_ends(enum redis_outcome outcome)
{
    fake_redis_ends(outcome);
}

static inline void must_fill(const char *key, const char *value)
{
    assert_int_equal(fake_redis.count, 1);
    assert_string_equal(fake_redis.calls[0].keys[0], key);
    assert_string_equal(fake_redis.calls[0].value, value);
}

/* ---- the worker ---- */

/* One lookup of it: what became of the request. */
struct asked {
    int answers;
    enum load_outcome outcome;
    char value[100];
};

struct bench {
    uv_loop_t loop;
    struct mailbox mailbox;
    struct shared_config *shared;
    struct view *view;
    struct rows rows;
    struct load_counters counters[KEYSPACES];
    struct commit_visibility *visibility;
    struct spellings *spellings;
    struct loads *loads;
    uint64_t generations;
    const void *client; /* of the requests that follow */
    uint64_t origin;
    const _Atomic bool *gone;
};

static inline void take_answer(void *arg, struct message *message)
{
    struct load_request *request = (struct load_request *)message;
    struct asked *asked = (struct asked *)request->lookup;
    (void)arg;
    asked->answers++;
    asked->outcome = request->outcome;
    assert_int_equal(request->outcome == LOAD_ROW, request->value != NULL);
    if (request->value) {
        struct span value = blob_span(request->value);
        snprintf(asked->value, sizeof asked->value, "%.*s", (int)value.length, value.at);
        blob_release(request->value);
    }
    free(request);
}

static inline void ask_keyspace(struct bench *bench, struct asked *asked, int keyspace,
                                struct span key)
{
    struct load_request *request = xcalloc(1, sizeof *request + key.length);
    *asked = (struct asked){0};
    request->message = (struct message){.kind = MESSAGE_LOAD, .sender = &bench->mailbox};
    request->lookup = (struct lookup *)asked;
    request->client = bench->client;
    request->origin = bench->origin;
    request->gone = bench->gone;
    request->late = request->late_and_stale = true; /* the keeper must not trust these */
    request->key = key_copy(key_make(keyspace, key), request->text);
    loads_submit(bench->loads, request);
}

static inline void ask(struct bench *bench, struct asked *asked, const char *key)
{
    ask_keyspace(bench, asked, ITEMS, span_of(key));
}

/* The three queries that the budget allows. */
static inline void fill_budget(struct bench *bench, struct asked *waiting)
{
    ask(bench, &waiting[0], "item:7");
    ask(bench, &waiting[1], "item:8");
    ask(bench, &waiting[2], "item:9");
}

static inline void must_wait(struct bench *bench, const struct asked *asked)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_int_equal(asked->answers, 0);
}

static inline void must_get(struct bench *bench, const struct asked *asked,
                            enum load_outcome outcome)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_int_equal(asked->answers, 1);
    assert_int_equal(asked->outcome, outcome);
}

static inline void must_get_value(struct bench *bench, const struct asked *asked, const char *value)
{
    must_get(bench, asked, LOAD_ROW);
    assert_string_equal(asked->value, value);
}

/* ---- the database ---- */

/* The row of item:1. */
static inline void row_is(const char *value)
{
    fake_row(FAKE_TEXT, (const char *[]){value, "1"}, 2);
}

static inline void end_queries(int count)
{
    while (count--)
        fake_outcome(PG_DOWN);
}

/* Of large ones, as the keeper has it: wide enough for one of 2 MB. */
static inline struct row_lane lane_of(const struct bench *bench)
{
    return (struct row_lane){.most = 3000000,
                             .asker_of = loads_asker_of,
                             .wants = loads_wants,
                             .pay = loads_pay,
                             .on_come = loads_have_place,
                             .arg = bench->loads};
}

/* ---- the keeper ---- */

static inline void use_generation(struct bench *bench, struct generation *generation,
                                  enum keyspace_state state)
{
    enum keyspace_state states[KEYSPACES] = {state, state};
    struct view *replaced = bench->view;
    bench->view = view_create(bench->shared, generation, states, 1);
    if (bench->loads)
        loads_use_view(bench->loads, bench->view);
    view_release(replaced);
}

/* A view of a new generation, or with `same` of the one before. */
static inline void use_view(struct bench *bench, enum keyspace_state state, bool same)
{
    struct generation *generation = NULL;
    if (same)
        generation = bench->view->generation;
    else if (state != KEYSPACE_LOADING)
        generation = generation_create(++bench->generations, 0);
    use_generation(bench, generation, state);
    if (!same)
        generation_release(generation);
}

#define BENCH_HEAD                                                                                 \
    "cache: redis://127.0.0.1\n"                                                                   \
    "database: postgresql://app@db/shop\n"                                                         \
    "sync: replication\n"                                                                          \
    "load_timeout: 2s\n"                                                                           \
    "load_budget: 3\n"                                                                             \
    "max_known_absent: 10\n"

/* Settings behind "ttl: 10s". */
static inline struct config *bench_config(const char *settings)
{
    char text[1000];
    snprintf(text, sizeof text,
             BENCH_HEAD
             "keyspaces:\n"
             "  - {name: items, key: \"item:{id}\", table: items, value: %s, ttl: 10s%s}\n"
             "  - {name: orders, key: \"order:{a}:{b}\", table: orders, value: v}\n",
             strstr(settings, "fill: hash") ? "json" : "v", settings);
    return config_from_text(text);
}

static inline void bench_init(struct bench *bench, const char *settings)
{
    *bench = (struct bench){.shared = shared_config_create(bench_config(settings))};
    uv_loop_init(&bench->loop);
    assert_int_equal(mailbox_init(&bench->mailbox, &bench->loop, take_answer, bench), 0);
    use_view(bench, KEYSPACE_GUARDING, false);
    bench->rows.config = bench->shared->config;
    bench->visibility = visibility_create(&(struct visibility_options){.max_remembered = 100});
    bench->spellings = spellings_create(bench->rows.config, bench->counters);
    struct loads_options options = {.rows = &bench->rows,
                                    .counters = bench->counters,
                                    .visibility = bench->visibility,
                                    .spellings = bench->spellings};
    bench->loads = loads_create(&options, bench->view);
    fake_pool.params = 1;
    fake_pool.count = 0; /* what a failed test left */
    fake_redis_reset();
}

/* Nothing may be left on its way. */
static inline void bench_finish(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_int_equal(fake_pool.count, 0);
    assert_int_equal(fake_redis.count, 0);
    assert_int_equal(loads_count(bench->loads), 0);
    loads_destroy(bench->loads);
    spellings_destroy(bench->spellings);
    visibility_destroy(bench->visibility);
    view_release(bench->view);
    shared_config_release(bench->shared);
    mailbox_close(&bench->mailbox);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

#define COUNTED(bench, name) ((int)counter_read(&(bench)->counters[ITEMS].name))

#endif
