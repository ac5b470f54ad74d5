#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "postgres/pg_server.h"

enum { BEFORE = 1 }; /* columns of something else */

static int read_cells(struct pg_server *server, const char *const *cells, int count)
{
    PGresult *row = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[8] = {{0}};
    char name[] = "c";
    for (int i = 0; i < count; i++)
        attributes[i] = (PGresAttDesc){.name = name};
    assert_true(PQsetResultAttrs(row, count, attributes));
    for (int i = 0; i < count; i++)
        assert_true(PQsetvalue(row, 0, i, (char *)(size_t)cells[i], (int)strlen(cells[i])));
    int status = pg_server_read(server, row, BEFORE);
    PQclear(row);
    return status;
}

static struct pg_server place(const char *place)
{
    struct pg_server server = {.history = ""};
    const char *const cells[] = {"public", "f", "1", "00000001", place, "4711", "7311"};
    assert_int_equal(read_cells(&server, cells, 7), 0);
    return server;
}

static struct pg_server server(const char *standby, const char *started, const char *timeline,
                               const char *identifier)
{
    struct pg_server server = {.history = ""};
    const char *const cells[] = {"public", standby, started, timeline, "5.10", "4711", identifier};
    assert_int_equal(read_cells(&server, cells, 7), 0);
    assert_true(pg_server_is_known(&server));
    return server;
}

static void what_a_server_says_of_itself_is_read(void **state)
{
    struct pg_server found, unnamed;
    const char *const cells[] = {"public", "f", "1700000000.5", "00000002", "5.10", "4711"};
    (void)state;
    found = server("t", "1700000000.5", "standby", "7311");
    assert_true(found.standby);
    assert_string_equal(found.history, "7311/standby/5.10");
    assert_string_equal(found.started, "1700000000.5");
    assert_int_equal(found.pid, 4711);
    assert_int_equal(read_cells(&unnamed, cells, 6), 0);
    assert_false(unnamed.standby);
    assert_string_equal(unnamed.history, "/00000002/5.10");
    assert_int_equal(read_cells(&unnamed, cells, 5), -EPROTO);
    assert_false(pg_server_is_known(&(struct pg_server){0}));
}

static void a_primary_is_the_same_after_a_restart_unless_that_counts(void **state)
{
    struct pg_server before = server("f", "1", "00000001", "7311");
    struct pg_server after = server("f", "2", "00000001", "7311");
    (void)state;
    assert_true(pg_server_is_same(&before, &before, true));
    assert_true(pg_server_is_same(&before, &after, false));
    assert_false(pg_server_is_same(&before, &after, true));
}

static void a_standby_is_another_after_a_restart(void **state)
{
    struct pg_server before = server("t", "1", "standby", "7311");
    struct pg_server after = server("t", "2", "standby", "7311");
    (void)state;
    assert_true(pg_server_is_same(&before, &before, false));
    assert_false(pg_server_is_same(&before, &after, false));
}

static void another_cluster_and_a_promoted_standby_are_others(void **state)
{
    struct pg_server primary = server("f", "1", "00000001", "7311");
    struct pg_server standby = server("t", "1", "standby", "7311");
    struct pg_server promoted = server("f", "1", "00000002", "7311");
    struct pg_server stranger = server("f", "1", "00000001", "9000");
    (void)state;
    assert_false(pg_server_is_same(&primary, &standby, false));
    assert_false(pg_server_is_same(&primary, &promoted, false));
    assert_false(pg_server_is_same(&standby, &promoted, false));
    assert_false(pg_server_is_same(&primary, &stranger, false));
}

static void another_database_or_role_of_the_same_server_is_another(void **state)
{
    struct pg_server before = place("5.10"), database = place("6.10"), role = place("5.11");
    (void)state;
    assert_true(pg_server_is_same(&before, &before, true));
    assert_false(pg_server_is_same(&before, &database, false));
    assert_false(pg_server_is_same(&before, &role, false));
}

static void who_cannot_be_identified_is_another_once_started_at_another_time(void **state)
{
    struct pg_server before = server("f", "1", "00000001", "");
    struct pg_server after = server("f", "2", "00000001", "");
    (void)state;
    assert_true(pg_server_is_same(&before, &before, false));
    assert_false(pg_server_is_same(&before, &after, false));
}

static void must_say(const struct pg_server *server, const struct pg_server *known,
                     const char *wanted)
{
    struct pg_server_rule rule = {.unrestarted = true, .server = *known};
    struct pg_error error = {.text = ""};
    assert_false(pg_server_fits(server, &rule, &error));
    if (!strstr(error.text, wanted))
        fail_msg("%s", error.text);
}

static void what_differs_is_told(void **state)
{
    struct pg_server before = server("f", "1700000000.5", "00000001", "7311");
    struct pg_server after = server("f", "1700000000.625", "00000001", "7311");
    struct pg_server promoted = server("f", "1700000000.5", "00000002", "7311");
    struct pg_server unnamed = server("f", "1700000000", "00000001", "");
    struct pg_server stranger = server("f", "1700000001", "00000001", "");
    (void)state;
    must_say(&after, &before,
             "was restarted since the filter was built (it runs since 2023-11-14T22:13:20.625Z, "
             "not 2023-11-14T22:13:20.5Z)");
    must_say(&promoted, &before,
             "another server than the filter is of (7311/00000002/5.10, not "
             "7311/00000001/5.10)");
    must_say(&stranger, &unnamed, "or is another (it runs since 2023-11-14T22:13:21Z, not");
}

static struct pg_server standby_at(uint64_t position)
{
    struct pg_server found = server("t", "1", "standby", "7311");
    found.moment = pg_server_moment();
    found.position = position;
    return found;
}

static void a_standby_that_has_gone_back_will_not_do(void **state)
{
    struct pg_server before = standby_at(100);
    struct pg_server_rule rule = {.server = standby_at(200)};
    struct pg_server back = standby_at(199), again = standby_at(200), unknown = standby_at(0);
    struct pg_error error = {.text = ""};
    (void)state;
    assert_true(pg_server_is_same(&back, &rule.server, false)); /* no other for that */
    assert_true(pg_server_has_gone_back(&back, &rule.server));
    assert_false(pg_server_fits(&back, &rule, &error));
    assert_non_null(strstr(error.text, "recovery anew"));
    assert_true(pg_server_fits(&again, &rule, &error));
    assert_true(pg_server_fits(&unknown, &rule, &error)); /* it does not say */
    assert_true(pg_server_fits(&before, &rule, &error));  /* it would not have outlived that */
}

static void a_standby_says_where_it_is(void **state)
{
    PGresult *row = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    char name[] = "c", position[] = "50331648";
    struct pg_server found = {.history = ""};
    (void)state;
    assert_true(PQsetResultAttrs(row, 1, &(PGresAttDesc){.name = name}));
    pg_server_read_position(&found, row);
    assert_int_equal(found.position, 0);
    assert_true(PQsetvalue(row, 0, 0, position, (int)strlen(position)));
    pg_server_read_position(&found, row);
    assert_int_equal(found.position, 50331648);
    PQclear(row);
}

static void one_by_other_settings_is_another(void **state)
{
    struct pg_server_rule rule = {.server = server("f", "1", "00000001", "7311")};
    struct pg_server later = rule.server;
    struct pg_error error = {.text = ""};
    (void)state;
    later.settings++;
    assert_false(pg_server_is_same(&later, &rule.server, false));
    assert_false(pg_server_fits(&later, &rule, &error));
    assert_non_null(strstr(error.text, "settings"));
}

static void a_rule_lets_in_what_it_names_and_says_why_not(void **state)
{
    struct pg_server primary = server("f", "1", "00000001", "7311");
    struct pg_server standby = server("t", "1", "standby", "7311");
    struct pg_server promoted = server("f", "1", "00000002", "7311");
    struct pg_server_rule rule = {0};
    struct pg_error error = {.text = ""};
    (void)state;
    assert_true(pg_server_fits(&standby, &rule, &error));
    rule.primary = true;
    assert_true(pg_server_fits(&primary, &rule, &error));
    assert_string_equal(error.text, "");
    assert_false(pg_server_fits(&standby, &rule, &error));
    assert_non_null(strstr(error.text, "a standby"));
    rule.server = primary;
    assert_true(pg_server_fits(&primary, &rule, &error));
    assert_false(pg_server_fits(&promoted, &rule, &error));
    assert_non_null(strstr(error.text, "7311/00000002"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_server_says_of_itself_is_read),
        cmocka_unit_test(a_primary_is_the_same_after_a_restart_unless_that_counts),
        cmocka_unit_test(a_standby_is_another_after_a_restart),
        cmocka_unit_test(another_cluster_and_a_promoted_standby_are_others),
        cmocka_unit_test(another_database_or_role_of_the_same_server_is_another),
        cmocka_unit_test(who_cannot_be_identified_is_another_once_started_at_another_time),
        cmocka_unit_test(what_differs_is_told),
        cmocka_unit_test(a_standby_that_has_gone_back_will_not_do),
        cmocka_unit_test(a_standby_says_where_it_is),
        cmocka_unit_test(one_by_other_settings_is_another),
        cmocka_unit_test(a_rule_lets_in_what_it_names_and_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
