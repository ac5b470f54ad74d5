/* The follower, fed with messages made by hand through a stream that the test holds in its hands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follower.h"

#include "config_text.h"
#include "pgoutput_messages.h"

#include <errno.h>
#include <stdio.h>

enum { ITEMS, ORDERS, OTHERS, KEYSPACES };
enum { ITEM_TABLE = 101, ORDER_TABLE = 102, XID = 7 };

static const char text[] =
    "cache: redis://127.0.0.1\n"
    "database: postgresql://app@db/shop\n"
    "sync: replication\n"
    "keyspaces:\n"
    "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
    "  - {name: orders, key: \"order:{customer}:{number}\", table: orders, value: v}\n"
    "  - {name: others, key: \"other:{name}\", table: items, value: v}\n";

/* ---- a stream that the test feeds ---- */

static struct {
    const struct pg_stream_events *events;
    void *arg;
    bool closed;
    void (*on_closed)(void *arg);
    void *closed_arg;
    uint64_t confirmed;
} stream;

int pg_stream_start(struct pg_stream *of, uv_loop_t *loop, const struct pg_stream_events *events,
                    void *arg, struct pg_error *error)
{
    (void)of, (void)loop, (void)error;
    stream.events = events;
    stream.arg = arg;
    return 0;
}

void pg_stream_close(struct pg_stream *of, void (*closed)(void *arg), void *arg)
{
    (void)of;
    stream.closed = true;
    stream.on_closed = closed;
    stream.closed_arg = arg;
}

void pg_stream_confirm(struct pg_stream *of, uint64_t lsn)
{
    (void)of;
    stream.confirmed = lsn;
}

void pg_stream_ask(struct pg_stream *of)
{
    (void)of;
}

void pg_stream_pause(struct pg_stream *of, bool paused)
{
    (void)of, (void)paused;
}

/* ---- what the follower tells ---- */

struct bench {
    struct config *config;
    struct generation *generation;
    struct follower *follower;
    char heard[4096]; /* "changed item:1, inserted item:1, " */
    uint32_t xid;     /* of what was heard last */
    uint64_t reached;
    char fault[300];
};

static void hear(struct bench *bench, const char *what, struct span key)
{
    size_t used = strlen(bench->heard);
    snprintf(bench->heard + used, sizeof bench->heard - used, "%s %.*s, ", what, (int)key.length,
             key.at);
}

static void on_changed(void *arg, int keyspace, struct span key, uint32_t xid)
{
    (void)keyspace;
    ((struct bench *)arg)->xid = xid;
    hear(arg, "changed", key);
}

static void on_inserted(void *arg, int keyspace, struct span key)
{
    (void)keyspace;
    hear(arg, "inserted", key);
}

static void on_changed_unknown(void *arg, int keyspace, uint32_t xid)
{
    ((struct bench *)arg)->xid = xid;
    hear(arg, "unknown in", span_of(((struct bench *)arg)->config->keyspaces[keyspace].name));
}

static void on_truncated(void *arg, int keyspace, uint32_t xid)
{
    ((struct bench *)arg)->xid = xid;
    hear(arg, "truncated", span_of(((struct bench *)arg)->config->keyspaces[keyspace].name));
}

static void on_reached(void *arg, uint64_t lsn)
{
    ((struct bench *)arg)->reached = lsn;
}

static void on_fault(void *arg, const char *why)
{
    struct bench *bench = arg;
    snprintf(bench->fault, sizeof bench->fault, "%s", why);
}

static const struct follower_events events = {.changed = on_changed,
                                              .changed_unknown = on_changed_unknown,
                                              .inserted = on_inserted,
                                              .truncated = on_truncated,
                                              .reached = on_reached,
                                              .fault = on_fault};

static void bench_init(struct bench *bench)
{
    static const uint32_t tables[] = {ITEM_TABLE, ORDER_TABLE, ITEM_TABLE};
    struct filter_options options = {.capacity = 1000, .false_positive_rate = 1e-7};
    struct pg_error error;
    const char *why;
    memset(bench, 0, sizeof *bench);
    memset(&stream, 0, sizeof stream);
    bench->config = config_from_text(text);
    bench->generation = generation_create(1, KEYSPACES);
    for (size_t i = 0; i < KEYSPACES; i++)
        assert_int_equal(filter_create(&bench->generation->filters[i], &options, &why), 0);
    struct follower_options follow = {.config = bench->config,
                                      .generation = bench->generation,
                                      .tables = tables,
                                      .events = &events,
                                      .arg = bench};
    assert_int_equal(follower_start(&bench->follower, NULL, &follow, &error), 0);
}

static void bench_finish(struct bench *bench)
{
    follower_close(bench->follower);
    assert_true(stream.closed);
    stream.on_closed(stream.closed_arg);
    generation_release(bench->generation);
    config_destroy(bench->config);
}

/* ---- messages ---- */

static int feed(struct log_message message)
{
    return stream.events->message(stream.arg, 1, message.at, message.length);
}

static void must_take(struct log_message message)
{
    assert_int_equal(feed(message), 0);
}

static void begin(void)
{
    must_take(compose("cqqw", 'B', UINT64_C(900), UINT64_C(1), XID));
}

static void commit(uint64_t end)
{
    must_take(compose("ccqqq", 'C', 0, end - 10, end, UINT64_C(5000000)));
}

/* items(v, id, name), with `name` and `id` behind another column, so that places matter. */
static void describe_items(void)
{
    must_take(compose("cwsschcswwcswwcsww", 'R', ITEM_TABLE, "public", "items", 'f', 3, 0, "v", 25,
                      -1, 1, "id", 20, -1, 1, "name", 25, -1));
}

static void describe_orders(void)
{
    must_take(compose("cwsschcswwcsww", 'R', ORDER_TABLE, "public", "orders", 'd', 2, 1, "number",
                      20, -1, 1, "customer", 25, -1));
}

static void insert_item(const char *id, const char *name)
{
    must_take(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", id, name));
}

static void delete_item(const char *id, const char *name)
{
    must_take(compose("cwchttt", 'D', ITEM_TABLE, 'O', 3, "x", id, name));
}

static bool has(const struct bench *bench, int keyspace, const char *key)
{
    uint64_t hash = filter_hash(&bench->generation->seed, key, strlen(key));
    return filter_contains(bench->generation->filters[keyspace], hash);
}

static void must_hear(struct bench *bench, const char *what)
{
    assert_string_equal(bench->heard, what);
    if (what[0])
        assert_int_equal(bench->xid, XID);
    bench->heard[0] = '\0';
}

/* ---- tests ---- */

static void an_insert_is_known_before_its_commit_and_reached_by_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    assert_true(has(&bench, OTHERS, "other:one"));
    assert_int_equal(bench.reached, 0);
    must_hear(&bench, "changed item:1, inserted item:1, changed other:one, inserted other:one, ");
    commit(1000);
    assert_int_equal(bench.reached, 1000);
    assert_int_equal(follower_counts(bench.follower).transactions, 1);
    assert_int_equal(follower_counts(bench.follower).changes, 1);
    bench_finish(&bench);
}

static void a_delete_counts_from_the_commit_on(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit(1000);
    must_hear(&bench, "changed item:1, inserted item:1, changed other:one, inserted other:one, ");
    begin();
    delete_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    must_hear(&bench, "changed item:1, changed other:one, ");
    commit(2000);
    assert_false(has(&bench, ITEMS, "item:1"));
    assert_false(has(&bench, OTHERS, "other:one"));
    bench_finish(&bench);
}

/* Applied in order it would be absent for a moment, though it always has a row. */
static void a_row_deleted_and_inserted_again_is_never_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit(1000);
    begin();
    delete_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    insert_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    commit(2000);
    assert_true(has(&bench, ITEMS, "item:1"));
    begin();
    delete_item("1", "one");
    commit(3000);
    assert_false(has(&bench, ITEMS, "item:1"));
    bench_finish(&bench);
}

static void an_update_moves_exactly_the_keys_that_changed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    must_hear(&bench, "changed item:1, inserted item:1, changed other:one, inserted other:one, ");
    must_take(
        compose("cwchtttchttt", 'U', ITEM_TABLE, 'O', 3, "x", "1", "one", 'N', 3, "y", "2", "one"));
    must_hear(&bench, "changed item:2, inserted item:2, changed item:1, changed other:one, ");
    commit(1000);
    assert_false(has(&bench, ITEMS, "item:1"));
    assert_true(has(&bench, ITEMS, "item:2"));
    assert_true(has(&bench, OTHERS, "other:one"));
    bench_finish(&bench);
}

static void an_update_of_other_columns_only_purges(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    bench.heard[0] = '\0';
    must_take(compose("cwchttt", 'U', ITEM_TABLE, 'N', 3, "y", "1", "one"));
    must_hear(&bench, "changed item:1, changed other:one, ");
    must_take(
        compose("cwchtttchutt", 'U', ITEM_TABLE, 'O', 3, "x", "1", "one", 'N', 3, "1", "one"));
    must_hear(&bench, "changed item:1, changed other:one, ");
    commit(1000);
    assert_true(has(&bench, ITEMS, "item:1"));
    bench_finish(&bench);
}

/* An untouched value that is stored out of line is not sent: the old tuple has it, or nobody. */
static void a_key_column_that_is_not_sent_is_taken_from_the_old_row(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "long");
    bench.heard[0] = '\0';
    must_take(compose("cwchtttchttu", 'U', ITEM_TABLE, 'O', 3, "x", "1", "long", 'N', 3, "y", "2"));
    must_hear(&bench, "changed item:2, inserted item:2, changed item:1, changed other:long, ");
    must_take(compose("cwchttu", 'U', ITEM_TABLE, 'N', 3, "y", "2"));
    must_hear(&bench, "changed item:2, unknown in others, ");
    assert_int_equal(feed(compose("cwchttu", 'I', ITEM_TABLE, 'N', 3, "y", "3")), -EPROTO);
    bench_finish(&bench);
}

static void null_in_a_key_column_means_no_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    must_take(compose("cwchttn", 'I', ITEM_TABLE, 'N', 3, "x", "1"));
    must_hear(&bench, "changed item:1, inserted item:1, ");
    must_take(
        compose("cwchttnchttt", 'U', ITEM_TABLE, 'O', 3, "x", "1", 'N', 3, "x", "1", "named"));
    must_hear(&bench, "changed item:1, changed other:named, inserted other:named, ");
    must_take(
        compose("cwchtttchttn", 'U', ITEM_TABLE, 'O', 3, "x", "1", "named", 'N', 3, "x", "1"));
    must_hear(&bench, "changed item:1, changed other:named, ");
    commit(1000);
    assert_true(has(&bench, ITEMS, "item:1"));
    assert_false(has(&bench, OTHERS, "other:named"));
    bench_finish(&bench);
}

static void columns_are_found_by_name_also_after_the_table_was_altered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_orders();
    must_take(compose("cwchtt", 'I', ORDER_TABLE, 'N', 2, "7", "bob"));
    must_hear(&bench, "changed order:bob:7, inserted order:bob:7, ");
    must_take(compose("cwsschcswwcswwcsww", 'R', ORDER_TABLE, "public", "orders", 'd', 3, 0, "new",
                      25, -1, 1, "customer", 25, -1, 1, "number", 20, -1));
    must_take(compose("cwchttt", 'I', ORDER_TABLE, 'N', 3, "x", "eve", "8"));
    must_hear(&bench, "changed order:eve:8, inserted order:eve:8, ");
    assert_int_equal(feed(compose("cwsschcsww", 'R', ORDER_TABLE, "public", "orders", 'd', 1, 1,
                                  "customer", 25, -1)),
                     -EPROTO);
    bench_finish(&bench);
}

static void truncation_names_every_keyspace_of_the_table(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    must_take(compose("cwcww", 'T', 2, 1, 999, ITEM_TABLE));
    must_hear(&bench, "truncated items, truncated others, ");
    commit(1000);
    bench_finish(&bench);
}

static void other_tables_and_messages_leave_no_trace(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    must_take(compose("cwsschcsww", 'R', 555, "public", "else", 'd', 1, 1, "id", 20, -1));
    must_take(compose("cwcht", 'I', 555, 'N', 1, "1"));
    must_take(compose("cwss", 'Y', 16390, "public", "colour"));
    must_take(compose("cqs", 'O', UINT64_C(5), "elsewhere"));
    must_take(compose("ccqswc", 'M', 1, UINT64_C(77), "guard", 1, 'x'));
    commit(1000);
    must_hear(&bench, "");
    assert_int_equal(bench.reached, 1000);
    bench_finish(&bench);
}

static void positions_within_a_transaction_promise_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    stream.events->position(stream.arg, 500);
    assert_int_equal(bench.reached, 500);
    begin();
    stream.events->position(stream.arg, 900);
    assert_int_equal(bench.reached, 500);
    commit(1000);
    stream.events->position(stream.arg, 1100);
    assert_int_equal(bench.reached, 1100);
    bench_finish(&bench);
}

static void what_cannot_be_applied_exactly_is_a_fault(void **state)
{
    struct bench bench;
    struct pg_error lost = {.text = "gone"};
    (void)state;
    bench_init(&bench);
    begin();
    assert_int_equal(feed(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", "1", "n")), -EPROTO);
    stream.events->lost(stream.arg, &lost);
    assert_non_null(strstr(bench.fault, "description"));
    bench_finish(&bench);

    bench_init(&bench);
    begin();
    describe_items();
    delete_item("1", "never there");
    assert_int_equal(feed(compose("ccqqq", 'C', 0, UINT64_C(1), UINT64_C(2), UINT64_C(3))),
                     -EPROTO);
    stream.events->lost(stream.arg, &lost);
    assert_non_null(strstr(bench.fault, "not in its filter"));
    bench_finish(&bench);

    bench_init(&bench);
    stream.events->lost(stream.arg, &lost);
    assert_non_null(strstr(bench.fault, "gone"));
    bench_finish(&bench);
}

static void a_full_filter_is_a_fault_and_loses_nothing(void **state)
{
    struct bench bench;
    char id[16];
    int status = 0;
    unsigned i = 0;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    for (; i < 10000 && !status; i++) {
        snprintf(id, sizeof id, "%u", i);
        status = feed(compose("cwchttn", 'I', ITEM_TABLE, 'N', 3, "x", id));
    }
    assert_int_equal(status, -EPROTO);
    assert_true(i > 1000);
    for (unsigned k = 0; k + 1 < i; k++) {
        char key[24];
        snprintf(key, sizeof key, "item:%u", k);
        assert_true(has(&bench, ITEMS, key));
    }
    bench_finish(&bench);
}

static void after_its_end_a_follower_is_silent(void **state)
{
    struct bench bench;
    struct pg_error lost = {.text = "gone"};
    (void)state;
    bench_init(&bench);
    follower_confirm(bench.follower, 77);
    assert_int_equal(stream.confirmed, 77);
    follower_close(bench.follower);
    must_take(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", "1", "n"));
    stream.events->position(stream.arg, 900);
    stream.events->lost(stream.arg, &lost);
    must_hear(&bench, "");
    assert_int_equal(bench.reached, 0);
    assert_string_equal(bench.fault, "");
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_insert_is_known_before_its_commit_and_reached_by_it),
        cmocka_unit_test(a_delete_counts_from_the_commit_on),
        cmocka_unit_test(a_row_deleted_and_inserted_again_is_never_absent),
        cmocka_unit_test(an_update_moves_exactly_the_keys_that_changed),
        cmocka_unit_test(an_update_of_other_columns_only_purges),
        cmocka_unit_test(a_key_column_that_is_not_sent_is_taken_from_the_old_row),
        cmocka_unit_test(null_in_a_key_column_means_no_key),
        cmocka_unit_test(columns_are_found_by_name_also_after_the_table_was_altered),
        cmocka_unit_test(truncation_names_every_keyspace_of_the_table),
        cmocka_unit_test(other_tables_and_messages_leave_no_trace),
        cmocka_unit_test(positions_within_a_transaction_promise_nothing),
        cmocka_unit_test(what_cannot_be_applied_exactly_is_a_fault),
        cmocka_unit_test(a_full_filter_is_a_fault_and_loses_nothing),
        cmocka_unit_test(after_its_end_a_follower_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
