/* What a real PostgreSQL says of what was done in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "pgoutput_server.h"
#include "pgoutput_text.h"

/* ---- the log as text ---- */

enum { RELATIONS = 16 };

/* What Relation messages have said. */
static struct {
    uint32_t id[RELATIONS];
    char name[RELATIONS][64];
    size_t count;
} relations;

static void remember(const struct pgoutput_relation *relation)
{
    size_t i = 0;
    while (i < relations.count && relations.id[i] != relation->id)
        i++;
    assert_true(i < RELATIONS);
    relations.count += i == relations.count;
    relations.id[i] = relation->id;
    snprintf(relations.name[i], sizeof relations.name[i], "%s", relation->name);
}

/* A change of a relation that was not described before it cannot be understood. */
static const char *relation_name(uint32_t id)
{
    for (size_t i = 0; i < relations.count; i++) {
        if (relations.id[i] == id)
            return relations.name[i];
    }
    fail_msg("relation %u was never described", (unsigned)id);
    return "";
}

static struct event_text text;
static bool schema_is_shown;

static void print_one(void *arg, const struct pgoutput_event *event)
{
    (void)arg;
    if (event->kind == PGOUTPUT_RELATION)
        remember(&event->described);
    if (schema_is_shown || (event->kind != PGOUTPUT_RELATION && event->kind != PGOUTPUT_TYPE))
        print_event(&text, event);
}

static const char plain[] = "'proto_version', '1', 'messages', 'true'";

static void expect_log_as(const char *slot, const char *options, const char *wanted)
{
    text = (struct event_text){.relation_name = relation_name};
    relations.count = 0;
    read_changes("get", slot, options, print_one, NULL);
    assert_string_equal(text.at, wanted);
}

static void expect_log(const char *sql, const char *wanted)
{
    run(sql);
    expect_log_as("p", plain, wanted);
}

static void expect_log_and_schema(const char *sql, const char *wanted)
{
    schema_is_shown = true;
    expect_log(sql, wanted);
    schema_is_shown = false;
}

/* ---- what was done ---- */

static void inserts_are_told_with_all_their_values(void **state)
{
    (void)state;
    expect_log("INSERT INTO items VALUES (1, 'one', 10), (2, NULL, NULL), (3, '', -1), "
               "(4, 'gr\xc3\xbc\xc3\x9f', 0)",
               "begin\n"
               "insert items new (1, one, 10)\n"
               "insert items new (2, NULL, NULL)\n"
               "insert items new (3, , -1)\n"
               "insert items new (4, gr\xc3\xbc\xc3\x9f, 0)\n"
               "commit\n");
}

static void an_update_tells_the_old_key_only_if_it_changed(void **state)
{
    (void)state;
    expect_log("BEGIN; INSERT INTO items VALUES (1, 'one', 1);"
               "UPDATE items SET n = 2; UPDATE items SET id = 5; UPDATE items SET id = 5; COMMIT",
               "begin\n"
               "insert items new (1, one, 1)\n"
               "update items new (1, one, 2)\n"
               "update items key (1, NULL, NULL) new (5, one, 2)\n"
               "update items new (5, one, 2)\n"
               "commit\n");
}

static void a_delete_tells_the_key(void **state)
{
    (void)state;
    expect_log("BEGIN; INSERT INTO items VALUES (1, 'one', 1); DELETE FROM items; COMMIT",
               "begin\n"
               "insert items new (1, one, 1)\n"
               "delete items key (1, NULL, NULL)\n"
               "commit\n");
}

static void replica_identity_full_tells_old_rows(void **state)
{
    (void)state;
    run("CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY FULL");
    expect_log_and_schema("BEGIN; INSERT INTO f VALUES (1, 'x'); UPDATE f SET b = NULL;"
                          "DELETE FROM f; COMMIT",
                          "begin\n"
                          "relation public.f f (a*, b*)\n"
                          "insert f new (1, x)\n"
                          "update f old (1, x) new (1, NULL)\n"
                          "delete f old (1, NULL)\n"
                          "commit\n");
}

static void replica_identity_by_index_tells_its_columns(void **state)
{
    (void)state;
    run("CREATE TABLE i (a int, b text NOT NULL UNIQUE, c int);"
        "ALTER TABLE i REPLICA IDENTITY USING INDEX i_b_key");
    expect_log_and_schema("BEGIN; INSERT INTO i VALUES (1, 'x', 2); UPDATE i SET b = 'y';"
                          "DELETE FROM i; COMMIT",
                          "begin\n"
                          "relation public.i i (a, b*, c)\n"
                          "insert i new (1, x, 2)\n"
                          "update i key (NULL, x, NULL) new (1, y, 2)\n"
                          "delete i key (NULL, y, NULL)\n"
                          "commit\n");
}

static void a_toasted_value_that_stays_is_not_told_again(void **state)
{
    (void)state;
    expect_log("BEGIN; INSERT INTO items VALUES (1, repeat('x', 10000), 1);"
               "UPDATE items SET n = 2; UPDATE items SET name = repeat('y', 9000); COMMIT",
               "begin\n"
               "insert items new (1, 10000 bytes, 1)\n"
               "update items new (1, unchanged, 2)\n"
               "update items new (1, 9000 bytes, 2)\n"
               "commit\n");
    run("ALTER TABLE items REPLICA IDENTITY FULL");
    expect_log("UPDATE items SET n = 3",
               "begin\n"
               "update items old (1, 9000 bytes, 2) new (1, unchanged, 3)\n"
               "commit\n");
}

static void a_truncate_tells_every_table_it_reaches(void **state)
{
    (void)state;
    run("CREATE TABLE parents (id int PRIMARY KEY);"
        "CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents)");
    expect_log("TRUNCATE items", "begin\ntruncate items\ncommit\n");
    expect_log("TRUNCATE parents CASCADE", "begin\ntruncate parents children cascade\ncommit\n");
    expect_log("TRUNCATE items, children RESTART IDENTITY",
               "begin\ntruncate items children restart identity\ncommit\n");
    expect_log("BEGIN; TRUNCATE items; INSERT INTO items VALUES (1); COMMIT",
               "begin\ntruncate items\ninsert items new (1, NULL, NULL)\ncommit\n");
}

static void columns_come_go_and_change_their_names(void **state)
{
    (void)state;
    expect_log_and_schema("BEGIN; INSERT INTO items VALUES (1, 'one', 1);"
                          "ALTER TABLE items ADD extra text DEFAULT 'e';"
                          "INSERT INTO items VALUES (2, 'two', 2, 'x');"
                          "ALTER TABLE items DROP name; ALTER TABLE items RENAME n TO m;"
                          "UPDATE items SET m = 7 WHERE id = 1; COMMIT",
                          "begin\n"
                          "relation public.items d (id*, name, n)\n"
                          "insert items new (1, one, 1)\n"
                          "relation public.items d (id*, name, n, extra)\n"
                          "insert items new (2, two, 2, x)\n"
                          "relation public.items d (id*, m, extra)\n"
                          "update items new (1, 7, e)\n"
                          "commit\n");
    expect_log("ALTER TABLE items RENAME TO things; INSERT INTO things VALUES (3)",
               "begin\ninsert things new (3, NULL, e)\ncommit\n");
}

static void types_of_ones_own_are_told_before_their_table(void **state)
{
    (void)state;
    run("CREATE TYPE colour AS ENUM ('red', 'green'); CREATE DOMAIN code AS text;"
        "CREATE TABLE t (id int PRIMARY KEY, c colour, d code)");
    expect_log_and_schema("INSERT INTO t VALUES (1, 'green', 'x')",
                          "begin\n"
                          "type\n"
                          "type\n"
                          "relation public.t d (id*, c, d)\n"
                          "insert t new (1, green, x)\n"
                          "commit\n");
}

static void odd_tables_and_names_are_told(void **state)
{
    (void)state;
    run("CREATE TABLE bare (); CREATE SCHEMA \"S 1\";"
        "CREATE TABLE \"S 1\".\"gr\xc3\xbc\xc3\x9f\"\"e\" (\"a b\" int PRIMARY KEY)");
    expect_log_and_schema("BEGIN; INSERT INTO bare DEFAULT VALUES;"
                          "INSERT INTO \"S 1\".\"gr\xc3\xbc\xc3\x9f\"\"e\" VALUES (1); COMMIT",
                          "begin\n"
                          "relation public.bare d ()\n"
                          "insert bare new ()\n"
                          "relation S 1.gr\xc3\xbc\xc3\x9f\"e d (a b*)\n"
                          "insert gr\xc3\xbc\xc3\x9f\"e new (1)\n"
                          "commit\n");
}

static void what_was_rolled_back_is_not_told(void **state)
{
    (void)state;
    expect_log("BEGIN; INSERT INTO items VALUES (1); ROLLBACK", "");
    expect_log("BEGIN; INSERT INTO items VALUES (1); SAVEPOINT s; INSERT INTO items VALUES (2);"
               "ROLLBACK TO s; INSERT INTO items VALUES (3); COMMIT",
               "begin\n"
               "insert items new (1, NULL, NULL)\n"
               "insert items new (3, NULL, NULL)\n"
               "commit\n");
}

static void logical_messages_are_told_in_their_place(void **state)
{
    (void)state;
    expect_log("BEGIN; INSERT INTO items VALUES (1);"
               "SELECT pg_logical_emit_message(true, 'guard', 'hello'); COMMIT",
               "begin\ninsert items new (1, NULL, NULL)\nmessage\ncommit\n");
    expect_log("BEGIN; SELECT pg_logical_emit_message(false, 'guard', ''); ROLLBACK;"
               "INSERT INTO items VALUES (2)",
               "message\nbegin\ninsert items new (2, NULL, NULL)\ncommit\n");
}

static void a_replayed_transaction_tells_its_origin(void **state)
{
    (void)state;
    run("SELECT pg_replication_origin_create('elsewhere');"
        "SELECT pg_replication_origin_session_setup('elsewhere')");
    expect_log("INSERT INTO items VALUES (1)",
               "begin\norigin\ninsert items new (1, NULL, NULL)\ncommit\n");
    run("SELECT pg_replication_origin_session_reset();"
        "SELECT pg_replication_origin_drop('elsewhere')");
}

static void binary_values_are_told_if_asked_for(void **state)
{
    (void)state;
    run("INSERT INTO items VALUES (1, 'one', NULL)");
    expect_log_as("p", "'proto_version', '1', 'binary', 'true'",
                  "begin\ninsert items new (8 binary bytes, 3 binary bytes, NULL)\ncommit\n");
}

/* A soft delete becomes a deletion, and what undoes it an insertion. That insertion comes from an
 * update, and lacks the TOASTed value that the update did not touch. */
static void a_row_filter_makes_other_changes_of_updates(void **state)
{
    (void)state;
    run("CREATE TABLE soft (id int PRIMARY KEY, body text, gone bool NOT NULL,"
        "UNIQUE (id, gone)); ALTER TABLE soft ALTER body SET STORAGE EXTERNAL;"
        "ALTER TABLE soft REPLICA IDENTITY USING INDEX soft_id_gone_key");
    begin_to_publish("filtered", "TABLE soft WHERE (NOT gone)");
    run("INSERT INTO soft VALUES (1, repeat('x', 10000), false), (2, 'y', true)");
    run("UPDATE soft SET gone = true WHERE id = 1");
    run("UPDATE soft SET gone = false WHERE id = 1");
    expect_log_as("filtered", plain,
                  "begin\ninsert soft new (1, 10000 bytes, f)\ncommit\n"
                  "begin\ndelete soft key (1, NULL, f)\ncommit\n"
                  "begin\ninsert soft new (1, unchanged, f)\ncommit\n");
    stop_publishing("filtered");
}

/* ---- where and when ---- */

struct frame {
    struct pgoutput_event begin, commit;
};

static void keep_frame(void *arg, const struct pgoutput_event *event)
{
    struct frame *frame = arg;
    if (event->kind == PGOUTPUT_BEGIN)
        frame->begin = *event;
    if (event->kind == PGOUTPUT_COMMIT)
        frame->commit = *event;
}

static void a_transaction_says_who_where_and_when_it_was(void **state)
{
    struct frame frame = {.begin.xid = 0};
    (void)state;
    run("BEGIN; INSERT INTO items VALUES (1)");
    uint64_t xid = number("SELECT pg_current_xact_id()");
    uint64_t before = number("SELECT pg_current_wal_insert_lsn() - '0/0'");
    run("COMMIT");
    uint64_t after = number("SELECT pg_current_wal_insert_lsn() - '0/0'");
    read_changes("get", "p", plain, keep_frame, &frame);
    assert_int_equal(frame.begin.xid, xid);
    assert_in_range(frame.begin.lsn, before, after - 1);
    assert_true(frame.commit.lsn == frame.begin.lsn);
    assert_in_range(frame.commit.end_lsn, frame.commit.lsn + 1, after);
    assert_true(frame.commit.time_us == frame.begin.time_us);
    int64_t seconds = frame.commit.time_us / 1000000 + 946684800; /* 2000-01-01 in Unix time */
    assert_in_range(seconds, time(NULL) - 60, time(NULL) + 1);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, publish_everything, publish_no_more)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(inserts_are_told_with_all_their_values),
        LOG_TEST(an_update_tells_the_old_key_only_if_it_changed),
        LOG_TEST(a_delete_tells_the_key),
        LOG_TEST(replica_identity_full_tells_old_rows),
        LOG_TEST(replica_identity_by_index_tells_its_columns),
        LOG_TEST(a_toasted_value_that_stays_is_not_told_again),
        LOG_TEST(a_truncate_tells_every_table_it_reaches),
        LOG_TEST(columns_come_go_and_change_their_names),
        LOG_TEST(types_of_ones_own_are_told_before_their_table),
        LOG_TEST(odd_tables_and_names_are_told),
        LOG_TEST(what_was_rolled_back_is_not_told),
        LOG_TEST(logical_messages_are_told_in_their_place),
        LOG_TEST(a_replayed_transaction_tells_its_origin),
        LOG_TEST(binary_values_are_told_if_asked_for),
        LOG_TEST(a_row_filter_makes_other_changes_of_updates),
        LOG_TEST(a_transaction_says_who_where_and_when_it_was),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
