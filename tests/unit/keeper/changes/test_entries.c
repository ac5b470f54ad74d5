/* Overrides on their way to two workers, whose mailboxes the test plays. */
#include "keeper/changes/entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

enum { WORKERS = 2 };

struct bench {
    uv_loop_t loop;
    struct mailbox keeper, workers[WORKERS], *to[WORKERS];
    struct outlet outlet;
    struct changes changes;
    struct config config;
    struct keyspace keyspace;
    struct generation generation;
    struct view *view;
    struct entries entries;
    enum cause told; /* of the last change */
    unsigned received, done, known;
};

static void on_order(void *arg, struct message *message)
{
    ((struct bench *)arg)->received++;
    mailbox_return(message);
}

static void on_receipt(void *arg, struct message *message)
{
    (void)arg;
    entries_take_back((struct override_message *)(void *)message);
}

static void on_change(void *arg, const struct key_change *change)
{
    struct bench *bench = arg;
    bench->told = change->cause;
}

static void on_done(void *arg, bool known)
{
    ((struct bench *)arg)->done++;
    ((struct bench *)arg)->known += known;
}

static void run(struct bench *bench)
{
    for (int i = 0; i < 10; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
}

static void bench_init(struct bench *bench, enum sync_mode sync)
{
    memset(bench, 0, sizeof *bench);
    uv_loop_init(&bench->loop);
    mailbox_init(&bench->keeper, &bench->loop, on_receipt, bench);
    bench->outlet = (struct outlet){.sender = &bench->keeper, .to = bench->to};
    for (unsigned i = 0; i < WORKERS; i++) {
        mailbox_init(&bench->workers[i], &bench->loop, on_order, bench);
        bench->to[bench->outlet.count++] = &bench->workers[i];
    }
    bench->config = (struct config){.sync = sync,
                                    .max_hints = 2,
                                    .hint_ttl_ms = 60000,
                                    .keyspaces = &bench->keyspace,
                                    .keyspace_count = 1};
    bench->generation.number = 4;
    bench->view = xcalloc(1, sizeof *bench->view);
    bench->view->config = &bench->config;
    bench->view->generation = &bench->generation;
    bench->view->newest = 5;
    changes_subscribe(&bench->changes, SUBSCRIBER_LOADS, on_change, bench);
    entries_init(&bench->entries, &bench->outlet, &bench->changes);
    entries_use_view(&bench->entries, bench->view);
}

static void bench_finish(struct bench *bench)
{
    run(bench);
    for (unsigned i = 0; i < WORKERS; i++)
        mailbox_close(&bench->workers[i]);
    mailbox_close(&bench->keeper);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    entries_finish(&bench->entries);
    free(bench->view);
}

static struct key item(const char *text)
{
    return key_make(0, span_of(text));
}

static int hint(struct bench *bench, const char *key)
{
    return entries_set(&bench->entries, item(key), entries_hint(&bench->entries, 0), on_done,
                       bench);
}

static void who_gave_an_entry_is_answered_when_every_worker_has_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    assert_int_equal(hint(&bench, "item:1"), 0);
    assert_int_equal(bench.done, 0);
    assert_int_equal(entries_find(&bench.entries, item("item:1")).kind, OVERRIDE_HINT);
    assert_false(entries_are_everywhere(&bench.entries));
    run(&bench);
    assert_int_equal(bench.received, WORKERS);
    assert_int_equal(bench.done, 1);
    assert_true(entries_are_everywhere(&bench.entries));
    bench_finish(&bench);
}

static void a_full_table_takes_only_the_keys_that_it_has(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    assert_int_equal(hint(&bench, "item:1"), 0);
    assert_int_equal(hint(&bench, "item:2"), 0);
    assert_int_equal(entries_have_room(&bench.entries, item("item:3")), -ENOSPC);
    assert_int_equal(hint(&bench, "item:3"), -ENOSPC);
    assert_int_equal(entries_have_room(&bench.entries, item("item:2")), 0);
    assert_int_equal(hint(&bench, "item:2"), 0);
    assert_int_equal(entries_count(&bench.entries), 2);
    bench_finish(&bench);
}

static void nothing_is_set_at_the_end(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    entries_end(&bench.entries);
    assert_int_equal(hint(&bench, "item:1"), -ESHUTDOWN);
    assert_int_equal(entries_count(&bench.entries), 0);
    bench_finish(&bench);
}

static void each_entry_is_a_change_by_its_own_cause(void **state)
{
    struct bench bench;
    struct override block = {.blocked_until = clock_ms() + 60000}, none = {0};
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    hint(&bench, "item:1");
    assert_int_equal(bench.told, CAUSE_HINT);
    entries_set(&bench.entries, item("item:1"), entries_tombstone(&bench.entries), NULL, NULL);
    assert_int_equal(bench.told, CAUSE_TOMBSTONE);
    entries_set(&bench.entries, item("item:1"), block, NULL, NULL);
    assert_int_equal(bench.told, CAUSE_BLOCK);
    entries_set(&bench.entries, item("item:1"), none, NULL, NULL);
    assert_int_equal(bench.told, CAUSE_RELEASE);
    bench_finish(&bench);
}

/* A candidate's filter may have the row of a hint, and the one that lookups ask may not. */
static void the_log_of_who_serves_ends_a_hint_and_any_log_a_tombstone(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    assert_false(entries_know(&bench.entries, item("item:1"), true, on_done, &bench));
    hint(&bench, "item:1");
    assert_false(entries_wait_for(&bench.entries, item("item:1"), false));
    assert_false(entries_know(&bench.entries, item("item:1"), false, on_done, &bench));
    assert_true(entries_know(&bench.entries, item("item:1"), true, on_done, &bench));
    entries_set(&bench.entries, item("item:2"), entries_tombstone(&bench.entries), NULL, NULL);
    assert_true(entries_know(&bench.entries, item("item:2"), false, on_done, &bench));
    assert_int_equal(entries_count(&bench.entries), 1);
    assert_int_equal(entries_find(&bench.entries, item("item:2")).kind, OVERRIDE_HINT);
    assert_false(entries_find(&bench.entries, item("item:2")).sticky);
    bench_finish(&bench);
}

static void a_block_outlasts_what_the_log_ends(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    struct override tombstone = entries_tombstone(&bench.entries);
    tombstone.blocked_until = clock_ms() + 60000;
    entries_set(&bench.entries, item("item:1"), tombstone, NULL, NULL);
    assert_true(entries_know(&bench.entries, item("item:1"), true, NULL, NULL));
    assert_int_equal(entries_find(&bench.entries, item("item:1")).kind, OVERRIDE_HINT);
    assert_int_not_equal(entries_find(&bench.entries, item("item:1")).blocked_until, 0);
    bench_finish(&bench);
}

/* A block and a hint stay, and so does what is of no keyspace any more. */
static void tombstones_alone_are_ended_together(void **state)
{
    struct bench bench;
    const char *error;
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    assert_int_equal(key_template_parse(&bench.keyspace.key, "item:{id}", &error), 0);
    bench.config.max_hints = 10;
    struct override tombstone = entries_tombstone(&bench.entries), blocked = tombstone;
    blocked.blocked_until = clock_ms() + 60000;
    hint(&bench, "item:1");
    entries_set(&bench.entries, item("item:2"), tombstone, NULL, NULL);
    entries_set(&bench.entries, item("item:3"), blocked, NULL, NULL);
    entries_set(&bench.entries, item("order:1"), tombstone, NULL, NULL);
    run(&bench);
    bench.received = 0;
    entries_unbury(&bench.entries);
    run(&bench);
    assert_int_equal(bench.received, 2 * WORKERS);
    assert_int_equal(entries_find(&bench.entries, item("item:1")).kind, OVERRIDE_HINT);
    assert_int_equal(entries_find(&bench.entries, item("item:2")).kind, OVERRIDE_HINT);
    assert_int_equal(entries_find(&bench.entries, item("item:3")).kind, OVERRIDE_HINT);
    assert_int_not_equal(entries_find(&bench.entries, item("item:3")).blocked_until, 0);
    assert_int_equal(entries_find(&bench.entries, item("order:1")).kind, OVERRIDE_TOMBSTONE);
    key_template_finish(&bench.keyspace.key);
    bench_finish(&bench);
}

static void a_tombstone_of_a_keyspace_that_has_retired_changes_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_REPLICATION);
    hint(&bench, "item:1");
    struct override tombstone = entries_tombstone(&bench.entries);
    bench.config.keyspaces[item("item:1").keyspace].retired = true;
    assert_int_equal(entries_set(&bench.entries, item("item:1"), tombstone, NULL, NULL), -ESTALE);
    assert_int_equal(entries_find(&bench.entries, item("item:1")).kind, OVERRIDE_HINT);
    bench_finish(&bench);
}

static void without_a_log_hints_hold_until_a_later_snapshot(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_POLL);
    assert_true(entries_hint(&bench.entries, 0).sticky);
    assert_false(entries_hint(&bench.entries, 1000).sticky);
    assert_int_equal(entries_hint(&bench.entries, 0).epoch, 5);
    bench.config.sync = SYNC_REPLICATION;
    assert_false(entries_hint(&bench.entries, 0).sticky);
    bench_finish(&bench);
}

/* The one that is being built may take its snapshot when the row has come back. */
static void a_tombstone_ends_with_the_next_generation(void **state)
{
    static const enum sync_mode syncs[] = {SYNC_REPLICATION, SYNC_POLL, SYNC_NONE};
    (void)state;
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
        struct bench bench;
        bench_init(&bench, syncs[i]);
        struct override tombstone = entries_tombstone(&bench.entries);
        assert_int_equal(tombstone.epoch, bench.view->generation->number);
        assert_true(bench.view->newest > tombstone.epoch);
        assert_true(tombstone.sticky);
        bench_finish(&bench);
    }
}

/* ---- another process that decides, too ---- */

static unsigned sent;

static void on_sent(void *arg, struct key key, struct override entry)
{
    (void)arg;
    assert_string_equal(key.text.at, "item:1");
    assert_int_equal(entry.kind, OVERRIDE_HINT);
    sent++;
}

static void who_gave_an_entry_is_answered_when_the_other_process_has_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_NONE);
    sent = 0;
    bench.entries.remote = (struct entries_remote){.send = on_sent, .is_awaited = true};
    assert_int_equal(hint(&bench, "item:1"), 0);
    run(&bench);
    assert_int_equal(sent, 1);
    assert_int_equal(bench.received, WORKERS);
    assert_int_equal(bench.done, 0);
    assert_true(entries_remote_owes(&bench.entries) > 0);
    entries_remote_has(&bench.entries);
    assert_int_equal(bench.done, 1);
    assert_int_equal(entries_remote_owes(&bench.entries), 0);
    entries_remote_has(&bench.entries); /* of what it was told before it was waited for */
    bench_finish(&bench);
}

static void at_the_end_the_other_process_alone_has_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_NONE);
    bench.entries.remote = (struct entries_remote){.send = on_sent, .is_awaited = true};
    entries_end(&bench.entries);
    assert_true(entries_are_taken(&bench.entries));
    entries_put(&bench.entries, item("item:1"), entries_hint(&bench.entries, 0), on_done, &bench);
    run(&bench);
    assert_int_equal(bench.received, 0);
    assert_int_equal(bench.done, 0);
    entries_remote_lost(&bench.entries);
    assert_int_equal(bench.done, 1);
    assert_false(entries_are_taken(&bench.entries));
    bench_finish(&bench);
}

/* It may decide all the same. */
static void what_the_other_process_did_not_take_is_not_known(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_NONE);
    bench.entries.remote = (struct entries_remote){.send = on_sent, .is_awaited = true};
    assert_int_equal(hint(&bench, "item:1"), 0);
    assert_int_equal(hint(&bench, "item:1"), 0);
    run(&bench);
    entries_remote_has(&bench.entries);
    assert_int_equal(bench.known, 1);
    entries_strand(&bench.entries);
    assert_int_equal(bench.done, 2);
    assert_int_equal(hint(&bench, "item:1"), 0);
    run(&bench);
    assert_int_equal(bench.done, 3);
    assert_int_equal(bench.known, 1);
    assert_false(entries_are_everywhere(&bench.entries));
    bench_finish(&bench);
}

static void what_the_other_process_has_sent_is_not_sent_back(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, SYNC_NONE);
    sent = 0;
    bench.entries.remote = (struct entries_remote){.send = on_sent, .is_awaited = true};
    entries_put_here(&bench.entries, item("item:1"), entries_hint(&bench.entries, 0), on_done,
                     &bench);
    run(&bench);
    assert_int_equal(sent, 0);
    assert_int_equal(bench.received, WORKERS);
    assert_int_equal(bench.done, 1);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_gave_an_entry_is_answered_when_the_other_process_has_it),
        cmocka_unit_test(what_the_other_process_did_not_take_is_not_known),
        cmocka_unit_test(at_the_end_the_other_process_alone_has_it),
        cmocka_unit_test(what_the_other_process_has_sent_is_not_sent_back),
        cmocka_unit_test(who_gave_an_entry_is_answered_when_every_worker_has_it),
        cmocka_unit_test(a_full_table_takes_only_the_keys_that_it_has),
        cmocka_unit_test(nothing_is_set_at_the_end),
        cmocka_unit_test(each_entry_is_a_change_by_its_own_cause),
        cmocka_unit_test(the_log_of_who_serves_ends_a_hint_and_any_log_a_tombstone),
        cmocka_unit_test(a_block_outlasts_what_the_log_ends),
        cmocka_unit_test(tombstones_alone_are_ended_together),
        cmocka_unit_test(a_tombstone_of_a_keyspace_that_has_retired_changes_nothing),
        cmocka_unit_test(without_a_log_hints_hold_until_a_later_snapshot),
        cmocka_unit_test(a_tombstone_ends_with_the_next_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
