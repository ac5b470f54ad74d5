/* What the calls of the control port do to a key, with a keeper whose parts are real, and a
 * database and a cache that answer when the test says so. */
#include "control/admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "fakes/config_file.h"
#include "fakes/http_call.h"
#include "fakes/pg_pool.h"
#include "fakes/redis.h"
#include "keeper/keeper.h"
#include "keeper/parts/report.h"
#include "keeper/reload.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_HINTS = 3 };

/* ---- the keeper ---- */

struct keeper {
    uv_loop_t loop;
    struct mailbox mailbox, worker, *to[1];
    struct outlet outlet;
    struct view *view;
    struct load_counters counters[1];
    struct changes changes;
    struct watch *watch;
    struct replication replication;
    struct entries entries;
    struct loading loading;
    struct purging purging;
    struct touches touches;
    bool draining;
    struct key_report key;
    enum keyspace_state state;
};

const struct config *keeper_config(const struct keeper *keeper)
{
    return keeper->view->config;
}

/* Nobody here asks who is asking. */
const struct traffic *keeper_traffic(const struct keeper *keeper)
{
    (void)keeper;
    return NULL;
}

uint64_t keeper_fresh_rejects(const struct keeper *keeper, uint64_t *ms)
{
    (void)keeper;
    *ms = 0;
    return 0;
}

uint64_t keeper_rebuild(struct keeper *keeper)
{
    return keeper->draining ? 0 : 8;
}

int keeper_reload(struct keeper *keeper, reload_done done, void *arg)
{
    struct reload reload = {.refused = true};
    if (keeper->draining)
        return -ESHUTDOWN;
    problems_add(&reload.problems, PROBLEM_ERROR, "file:3", NULL, "no such setting");
    done(arg, &reload, keeper_config(keeper));
    reload_finish(&reload);
    return 0;
}

struct keeper_parts keeper_parts(struct keeper *keeper)
{
    return (struct keeper_parts){&keeper->entries, &keeper->loading, &keeper->purging,
                                 &keeper->touches, NULL};
}

void keeper_report(const struct keeper *keeper, struct report *report)
{
    *report = (struct report){.config = keeper_config(keeper),
                              .is_draining = keeper->draining,
                              .workers = 1,
                              .count = 1,
                              .keyspaces = xcalloc(1, sizeof *report->keyspaces)};
    report->keyspaces[0].config = &keeper_config(keeper)->keyspaces[0];
    report->keyspaces[0].state = keeper->state;
    report->keyspaces[0].reason = "";
}

void report_finish(struct report *report)
{
    free(report->keyspaces);
}

struct key_report keeper_report_key(const struct keeper *keeper, struct key key)
{
    assert_int_equal(key.keyspace, 0);
    return keeper->key;
}

/* The worker gives what it is told back at once, when the loop runs. */
static void on_order(void *arg, struct message *message)
{
    (void)arg;
    mailbox_return(message);
}

static void on_receipt(void *arg, struct message *message)
{
    (void)arg;
    entries_take_back((struct override_message *)(void *)message);
}

static struct view *view_of_one_keyspace(void)
{
    enum keyspace_state state = KEYSPACE_GUARDING;
    struct shared_config *shared = shared_config_create(config_from_text(
        "cache: redis://127.0.0.1\ndatabase: postgresql://app@db/shop\nmax_hints: 3\n"
        "keyspaces:\n  - {name: items, key: \"item:{id}\", table: items, value: v}\n"));
    struct view *view = view_create(shared, NULL, &state, 1);
    shared_config_release(shared);
    return view;
}

static void open_parts(struct keeper *keeper)
{
    const struct config *config = keeper_config(keeper);
    keeper->outlet = (struct outlet){.sender = &keeper->mailbox, .to = keeper->to, .count = 1};
    keeper->watch = watch_create(100);
    touches_init(&keeper->touches, keeper->watch);
    entries_init(&keeper->entries, &keeper->outlet, &keeper->changes);
    entries_use_view(&keeper->entries, keeper->view);
    purging_open(&keeper->purging,
                 &(struct purging_options){.loop = &keeper->loop,
                                           .config = config,
                                           .counters = keeper->counters,
                                           .changes = changes_sink(&keeper->changes),
                                           .replication = &keeper->replication});
    assert_int_equal(loading_open(&keeper->loading,
                                  &(struct loading_options){.loop = &keeper->loop,
                                                            .config = config,
                                                            .watch = keeper->watch,
                                                            .counters = keeper->counters},
                                  keeper->view),
                     0);
    changes_subscribe(&keeper->changes, SUBSCRIBER_CALLS, touches_hear, &keeper->touches);
}

static void keeper_open(struct keeper *keeper)
{
    memset(&fake_pool, 0, sizeof fake_pool);
    fake_pool.params = 1;
    fake_redis_reset();
    *keeper = (struct keeper){.view = view_of_one_keyspace()};
    uv_loop_init(&keeper->loop);
    mailbox_init(&keeper->mailbox, &keeper->loop, on_receipt, keeper);
    mailbox_init(&keeper->worker, &keeper->loop, on_order, keeper);
    keeper->to[0] = &keeper->worker;
    open_parts(keeper);
}

static void run(struct keeper *keeper)
{
    for (int i = 0; i < 10; i++)
        uv_run(&keeper->loop, UV_RUN_NOWAIT);
}

static void ignore(void *arg)
{
    (void)arg;
}

/* Every call was answered, and left nothing behind. */
static void keeper_close(struct keeper *keeper)
{
    run(keeper);
    assert_null(keeper->touches.first);
    assert_int_equal(fake_redis.count + fake_pool.count, 0);
    loading_close(&keeper->loading, ignore, NULL);
    loading_finish(&keeper->loading);
    purging_close(&keeper->purging);
    mailbox_close(&keeper->worker);
    mailbox_close(&keeper->mailbox);
    uv_run(&keeper->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&keeper->loop), 0);
    entries_finish(&keeper->entries);
    watch_destroy(keeper->watch);
    view_release(keeper->view);
}

/* ---- calls ---- */

static void put(struct keeper *keeper, struct http_call *call, const char *key, const char *time)
{
    *call = (struct http_call){.rest = key, .parameter = "for", .value = time};
    fake_call(call, admin_routes, "PUT", "/v1/keys/*", keeper);
}

static void delete_key(struct keeper *keeper, struct http_call *call, const char *key,
                       const char *parameter, const char *value)
{
    *call = (struct http_call){.rest = key, .parameter = parameter, .value = value};
    fake_call(call, admin_routes, "DELETE", "/v1/keys/*", keeper);
}

static void get(struct keeper *keeper, struct http_call *call, const char *path)
{
    *call = (struct http_call){.rest = "item:1"};
    fake_call(call, admin_routes, "GET", path, keeper);
}

static struct key item(const char *text)
{
    return key_make(0, span_of(text));
}

static struct override entry_of(struct keeper *keeper, const char *key)
{
    return entries_find(&keeper->entries, item(key));
}

static void row_is(const char *id)
{
    fake_row(FAKE_TEXT, (const char *[]){"v", id}, 2);
}

static void fill_table(struct keeper *keeper)
{
    char key[20];
    for (int i = 0; i < MAX_HINTS; i++) {
        snprintf(key, sizeof key, "item:9%d", i);
        assert_int_equal(
            entries_set(&keeper->entries, item(key), entries_hint(&keeper->entries, 0), NULL, NULL),
            0);
    }
    run(keeper);
}

/* It is rejected by every worker, and the cache is asked to forget it. */
static void must_be_buried(struct keeper *keeper, struct http_call *call, const char *key)
{
    assert_int_equal(call->status, 0);
    assert_int_equal(entry_of(keeper, key).kind, OVERRIDE_TOMBSTONE);
    run(keeper);
    assert_int_equal(call->status, 0);
    assert_string_equal(fake_redis.calls[0].keys[0], key);
    fake_redis_ends(REDIS_DONE);
    fake_call_must_end(call, 204, "");
}

/* ---- PUT ---- */

static void a_key_is_admitted_when_every_worker_knows(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    put(&keeper, &call, "item:1", NULL);
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_HINT);
    assert_int_equal(call.status, 0);
    run(&keeper);
    fake_call_must_end(&call, 201, "");
    put(&keeper, &call, "item:1", NULL); /* once more */
    run(&keeper);
    fake_call_must_end(&call, 204, "");
    keeper_close(&keeper);
}

static void it_is_admitted_for_as_long_as_is_said(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    put(&keeper, &call, "item:1", "2h");
    run(&keeper);
    assert_true(entry_of(&keeper, "item:1").until > clock_ms() + 7000000);
    fake_call_must_end(&call, 201, "");
    put(&keeper, &call, "item:2", "soon");
    fake_call_must_end(&call, 400, "for=soon");
    put(&keeper, &call, "item:2", "0s");
    fake_call_must_end(&call, 400, "more than 0");
    assert_int_equal(entry_of(&keeper, "item:2").kind, OVERRIDE_NONE);
    keeper_close(&keeper);
}

static void who_admits_a_key_ends_its_block(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", "block", "10m");
    run(&keeper);
    fake_redis_ends(REDIS_DONE);
    fake_call_must_end(&call, 204, "");
    assert_true(entry_of(&keeper, "item:1").blocked_until > clock_ms());
    put(&keeper, &call, "item:1", NULL);
    run(&keeper);
    fake_call_must_end(&call, 201, "");
    assert_int_equal(entry_of(&keeper, "item:1").blocked_until, 0);
    keeper_close(&keeper);
}

static void a_key_of_no_keyspace_is_not_found(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    put(&keeper, &call, "other:1", NULL);
    fake_call_must_end(&call, 404, "not guarded");
    delete_key(&keeper, &call, "other:1", NULL, NULL);
    fake_call_must_end(&call, 404, "not guarded");
    call = (struct http_call){.rest = "other:1"};
    fake_call(&call, admin_routes, "GET", "/v1/keys/*", &keeper);
    fake_call_must_end(&call, 404, "not guarded");
    keeper_close(&keeper);
}

static void without_room_nothing_is_begun(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    fill_table(&keeper);
    put(&keeper, &call, "item:1", NULL);
    fake_call_must_end(&call, 503, "3 keys are admitted");
    delete_key(&keeper, &call, "item:1", "row", "delete"); /* before a row is deleted */
    fake_call_must_end(&call, 503, "max_hints");
    put(&keeper, &call, "item:90", NULL); /* it has its place */
    run(&keeper);
    fake_call_must_end(&call, 204, "");
    entries_end(&keeper.entries);
    put(&keeper, &call, "item:90", NULL);
    fake_call_must_end(&call, 503, "ending");
    keeper_close(&keeper);
}

/* ---- DELETE ---- */

static void a_key_without_a_row_is_buried(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_NONE); /* not without its word */
    fake_no_row();
    must_be_buried(&keeper, &call, "item:1");
    keeper_close(&keeper);
}

static void a_row_is_not_overruled(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    row_is("1");
    fake_call_must_end(&call, 409, "the row exists");
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_NONE);
    keeper_close(&keeper);
}

static void nor_is_a_database_that_does_not_answer(void **state)
{
    static const struct {
        enum pg_outcome outcome;
        const char *error;
    } cases[] = {{PG_DOWN, "it is down"}, {PG_TIMEOUT, "load_timeout"}};
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        delete_key(&keeper, &call, "item:1", NULL, NULL);
        fake_outcome(cases[i].outcome);
        fake_call_must_end(&call, 503, cases[i].error);
    }
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    fake_refusal("42501");
    fake_call_must_end(&call, 409, "it refused: refused");
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_NONE);
    keeper_close(&keeper);
}

static void a_key_that_is_written_meanwhile_is_asked_for_again(void **state)
{
    struct keeper keeper;
    struct http_call call;
    struct key_change change = change_of_key(CAUSE_WRITTEN, item("item:1"));
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    changes_tell(&keeper.changes, &change);
    fake_no_row();
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_NONE);
    fake_no_row(); /* to the second question */
    must_be_buried(&keeper, &call, "item:1");
    keeper_close(&keeper);
}

static void but_not_for_ever(void **state)
{
    struct keeper keeper;
    struct http_call call;
    struct key_change change = change_of_key(CAUSE_WRITTEN, item("item:1"));
    unsigned asked = 0;
    (void)state;
    keeper_open(&keeper);
    for (delete_key(&keeper, &call, "item:1", NULL, NULL); !call.status; asked++) {
        changes_tell(&keeper.changes, &change);
        fake_no_row();
    }
    assert_int_equal(asked, 5);
    fake_call_must_end(&call, 409, "being written");
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_NONE);
    keeper_close(&keeper);
}

static void settle_hint(struct keeper *keeper, const char *key, bool sticky)
{
    struct override hint = entries_hint(&keeper->entries, 0);
    hint.sticky = sticky;
    assert_int_equal(entries_set(&keeper->entries, item(key), hint, NULL, NULL), 0);
    run(keeper);
}

/* The row may be there, and not be committed yet. What is cached goes all the same. */
static void a_hint_that_waits_for_the_end_of_transactions_is_not_buried(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    settle_hint(&keeper, "item:1", true);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    fake_no_row();
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_HINT);
    assert_true(entry_of(&keeper, "item:1").sticky);
    run(&keeper);
    assert_string_equal(fake_redis.calls[0].keys[0], "item:1");
    fake_redis_ends(REDIS_DONE);
    fake_call_must_end(&call, 204, "");
    keeper_close(&keeper);
}

/* By the log it would end the tombstone, or its time was its admin's word. */
static void any_other_hint_is(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    settle_hint(&keeper, "item:1", false);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    fake_no_row();
    must_be_buried(&keeper, &call, "item:1");
    keeper_close(&keeper);
}

/* It may have a row that came after the question. */
static void a_generation_that_comes_before_the_answer_ends_the_tombstone(void **state)
{
    enum keyspace_state guarding = KEYSPACE_GUARDING;
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    struct generation *generation = generation_create(1, 0);
    struct view *view = view_create(keeper.view->shared, generation, &guarding, 1);
    generation_release(generation);
    entries_use_view(&keeper.entries, view);
    fake_no_row();
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_NONE);
    run(&keeper);
    fake_redis_ends(REDIS_DONE);
    fake_call_must_end(&call, 204, "");
    entries_use_view(&keeper.entries, keeper.view);
    view_release(view);
    keeper_close(&keeper);
}

/* Its tombstone would deny the row for good: nothing would tell of it again. */
static void an_insertion_that_queries_do_not_see_yet_is_waited_for(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    visibility_changed(keeper.loading.visibility, item("item:1"), 700);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    fake_no_row();
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_NONE);
    assert_int_equal(fake_pool.count, 0);
    visibility_learn(keeper.loading.visibility, "701:701:");
    touches_probed(&keeper.touches);
    row_is("1");
    fake_call_must_end(&call, 409, "the row exists");
    keeper_close(&keeper);
}

static void a_row_is_deleted_and_then_buried(void **state)
{
    static char one[] = "1";
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", "row", "delete");
    row_is("1");
    fake_pool.removed = one;
    fake_outcome(PG_DONE);
    must_be_buried(&keeper, &call, "item:1");
    keeper_close(&keeper);
}

/* A trigger or a rule has kept it: the DELETE does not say. */
static void a_row_that_was_kept_is_asked_for_once_more(void **state)
{
    static char none[] = "0";
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", "row", "delete");
    row_is("1");
    fake_pool.removed = none;
    fake_outcome(PG_DONE);
    row_is("1");
    fake_call_must_end(&call, 409, "the row exists");
    keeper_close(&keeper);
}

static void rows_that_equal_each_other_are_not_deleted_together(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:a", "row", "delete");
    fake_rows(FAKE_TEXT, (const char *[]){"v", "a", "w", "A"}, 2, 2);
    fake_call_must_end(&call, 409, "2 rows equal this key");
    keeper_close(&keeper);
}

static void another_spelling_of_a_row_is_named(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:01", NULL, NULL);
    row_is("1");
    fake_no_row();
    assert_string_equal(json_string_value(json_object_get(call.body, "other_spelling")), "item:1");
    fake_call_must_end(&call, 409, "another spelling: item:1");
    assert_int_equal(entry_of(&keeper, "item:01").kind, OVERRIDE_NONE);
    keeper_close(&keeper);
}

/* What the guard rejects from now on may be in the cache still: that must not look done. */
static void a_cache_that_keeps_the_key_is_told(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", NULL, NULL);
    fake_no_row();
    run(&keeper);
    fake_redis_ends(REDIS_DOWN);
    fake_call_must_end(&call, 503, "repeat the call when the cache is back");
    assert_int_equal(entry_of(&keeper, "item:1").kind, OVERRIDE_TOMBSTONE);
    keeper_close(&keeper);
}

/* The admin's order must work when the database does not. */
static void a_block_asks_nobody(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", "block", "10m");
    assert_int_equal(fake_pool.count, 0);
    assert_true(entry_of(&keeper, "item:1").blocked_until > clock_ms() + 500000);
    run(&keeper);
    fake_redis_ends(REDIS_DONE);
    fake_call_must_end(&call, 204, "");
    keeper_close(&keeper);
}

static void a_block_without_room_purges_all_the_same(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    fill_table(&keeper);
    delete_key(&keeper, &call, "item:1", "block", "10m");
    assert_int_equal(fake_redis.count, 1);
    fake_redis_ends(REDIS_DONE);
    fake_call_must_end(&call, 503, "max_hints");
    keeper_close(&keeper);
}

static void what_is_asked_wrongly_does_nothing(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    delete_key(&keeper, &call, "item:1", "row", "keep");
    fake_call_must_end(&call, 400, "only ?row=delete");
    delete_key(&keeper, &call, "item:1", "block", "never");
    fake_call_must_end(&call, 400, "block=never");
    keeper_close(&keeper);
}

/* ---- the rest ---- */

static void a_load_balancer_hears_of_the_end_and_an_alert_of_what_passes(void **state)
{
    struct keeper keeper;
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    keeper.state = KEYSPACE_PASSING;
    get(&keeper, &call, "/healthz");
    fake_call_must_end(&call, 200, "");
    get(&keeper, &call, "/readyz");
    fake_call_must_end(&call, 200, "");
    get(&keeper, &call, "/guardz");
    fake_call_must_end(&call, 503, "");
    keeper.state = KEYSPACE_GUARDING;
    keeper.draining = true;
    get(&keeper, &call, "/readyz");
    fake_call_must_end(&call, 503, "");
    keeper_close(&keeper);
}

static void a_generation_is_begun_until_the_end(void **state)
{
    struct keeper keeper;
    struct http_call call = {0};
    (void)state;
    keeper_open(&keeper);
    fake_call(&call, admin_routes, "POST", "/v1/rebuild", &keeper);
    assert_int_equal(json_integer_value(json_object_get(call.body, "generation")), 8);
    fake_call_must_end(&call, 202, "");
    keeper.draining = true;
    fake_call(&call, admin_routes, "POST", "/v1/rebuild", &keeper);
    fake_call_must_end(&call, 503, "ending");
    keeper_close(&keeper);
}

/* The database is asked only where the guard has no row, so that a hang of it explains the rest. */
static void a_key_is_explained_without_the_database_where_that_will_do(void **state)
{
    struct keeper keeper;
    struct refused_load refused = {.count = 1};
    struct http_call call;
    (void)state;
    keeper_open(&keeper);
    keeper.key = (struct key_report){.is_possible = true, .is_held = true, .refusal = &refused};
    get(&keeper, &call, "/v1/keys/*");
    assert_true(fake_redis.calls[0].exists);
    fake_redis_answer(&(struct redis_answer){.outcome = REDIS_DONE, .error = "", .number = 1});
    assert_true(json_is_true(json_object_get(call.body, "cached")));
    assert_true(json_is_null(json_object_get(call.body, "row")));
    assert_true(json_is_object(json_object_get(call.body, "last_load_error")));
    fake_call_must_end(&call, 200, "");
    refused.count = 0;
    keeper.key = (struct key_report){.is_possible = false, .refusal = &refused};
    get(&keeper, &call, "/v1/keys/*");
    fake_redis_ends(REDIS_DOWN);
    fake_no_row();
    assert_true(json_is_null(json_object_get(call.body, "cached"))); /* not known */
    assert_true(json_is_false(json_object_get(call.body, "row")));
    fake_call_must_end(&call, 200, "");
    get(&keeper, &call, "/v1/keys/*");
    fake_redis_ends(REDIS_DOWN);
    fake_outcome(PG_DOWN);
    assert_true(json_is_null(json_object_get(call.body, "row")));
    fake_call_must_end(&call, 200, "");
    keeper_close(&keeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_admitted_when_every_worker_knows),
        cmocka_unit_test(it_is_admitted_for_as_long_as_is_said),
        cmocka_unit_test(who_admits_a_key_ends_its_block),
        cmocka_unit_test(a_key_of_no_keyspace_is_not_found),
        cmocka_unit_test(without_room_nothing_is_begun),
        cmocka_unit_test(a_key_without_a_row_is_buried),
        cmocka_unit_test(a_row_is_not_overruled),
        cmocka_unit_test(nor_is_a_database_that_does_not_answer),
        cmocka_unit_test(a_key_that_is_written_meanwhile_is_asked_for_again),
        cmocka_unit_test(but_not_for_ever),
        cmocka_unit_test(an_insertion_that_queries_do_not_see_yet_is_waited_for),
        cmocka_unit_test(a_hint_that_waits_for_the_end_of_transactions_is_not_buried),
        cmocka_unit_test(any_other_hint_is),
        cmocka_unit_test(a_generation_that_comes_before_the_answer_ends_the_tombstone),
        cmocka_unit_test(a_row_is_deleted_and_then_buried),
        cmocka_unit_test(a_row_that_was_kept_is_asked_for_once_more),
        cmocka_unit_test(rows_that_equal_each_other_are_not_deleted_together),
        cmocka_unit_test(another_spelling_of_a_row_is_named),
        cmocka_unit_test(a_cache_that_keeps_the_key_is_told),
        cmocka_unit_test(a_block_asks_nobody),
        cmocka_unit_test(a_block_without_room_purges_all_the_same),
        cmocka_unit_test(what_is_asked_wrongly_does_nothing),
        cmocka_unit_test(a_load_balancer_hears_of_the_end_and_an_alert_of_what_passes),
        cmocka_unit_test(a_generation_is_begun_until_the_end),
        cmocka_unit_test(a_key_is_explained_without_the_database_where_that_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
