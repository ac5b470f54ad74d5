/* The table of session settings, against a server whose role, database and file set others. */
#include "postgres/pg_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/servers.h"
#include "postgres/pg_session.h"
#include "postgres/pg_walsender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct server server;
static PGconn *owner;

static const char *conninfo_of(const char *database, const char *more)
{
    static char text[300];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=app dbname=%s %s", server.port,
             database, more);
    return text;
}

static const char *conninfo(const char *more)
{
    return conninfo_of("shop", more);
}

static void run_over(PGconn *pq, const char *sql)
{
    PGresult *result = PQexec(pq, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(pq));
    PQclear(result);
}

static void run(const char *sql)
{
    run_over(owner, sql);
}

static void run_in(const char *database, const char *sql)
{
    char text[200];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres dbname=%s", server.port,
             database);
    PGconn *pq = PQconnectdb(text);
    run_over(pq, sql);
    PQfinish(pq);
}

typedef int (*open_fn)(struct pg_session **out, const struct pg_session_options *options,
                       struct pg_error *error);

static struct pg_session *open_by(open_fn open, const char *text)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    const struct pg_session_options options = {.conninfo = text, .connect_timeout = 30};
    if (open(&session, &options, &error) < 0)
        fail_msg("%s", error.text);
    return session;
}

static void must_be(struct pg_session *session, const char *name, const char *value)
{
    char sql[200];
    struct pg_error error;
    PGresult *result = NULL;
    snprintf(sql, sizeof sql, "SELECT current_setting('%s')", name);
    if (pg_session_command(session, sql, &result, &error) < 0)
        fail_msg("%s: %s", name, error.text);
    if (strcmp(PQgetvalue(result, 0, 0), value) != 0)
        fail_msg("%s is %s and not %s", name, PQgetvalue(result, 0, 0), value);
    PQclear(result);
}

static void must_have_ours(struct pg_session *session)
{
    for (size_t i = 0; i < pg_settings_count; i++) {
        const struct pg_setting *setting = &pg_settings[i];
        if (setting->kind == SETTING_FOUND || PQserverVersion(owner) < setting->since)
            continue;
        bool is_style = !strcmp(setting->name, "DateStyle");
        must_be(session, setting->name, is_style ? "ISO, MDY" : setting->value);
    }
}

/* What the owner sets for whoever comes, as another value of the setting than ours. */
static const char *const others[][2] = {
    {"DateStyle", "German"},
    {"IntervalStyle", "iso_8601"},
    {"extra_float_digits", "-5"},
    {"bytea_output", "escape"},
    {"xmlbinary", "hex"},
    {"xmloption", "document"},
    {"array_nulls", "off"},
    {"transform_null_equals", "on"},
    {"jit", "on"},
    {"standard_conforming_strings", "off"},
    {"quote_all_identifiers", "on"},
    {"row_security", "on"},
    {"gin_fuzzy_search_limit", "5"},
    {"default_transaction_isolation", "serializable"},
    {"default_transaction_deferrable", "on"},
    {"statement_timeout", "1"},
    {"lock_timeout", "1"},
    {"idle_in_transaction_session_timeout", "1"},
    {"idle_session_timeout", "200"},
    {"transaction_timeout", "200"},
    {"default_transaction_read_only", "on"},
    {"search_path", "other"},
    {"TimeZone", "Asia/Tokyo"},
    {"timezone_abbreviations", "India"},
    {"lc_monetary", "C.utf8"},
    {"lc_numeric", "C.utf8"},
    {"lc_time", "C.utf8"},
    {"default_text_search_config", "simple"},
};

enum { OTHERS = sizeof others / sizeof *others };

static const struct pg_setting *setting_of(const char *name)
{
    for (size_t i = 0; i < pg_settings_count; i++)
        if (!strcmp(pg_settings[i].name, name))
            return &pg_settings[i];
    fail_msg("%s is not in the table", name);
    return NULL;
}

static void set_all(const char *whose)
{
    char sql[200];
    for (size_t i = 0; i < OTHERS; i++) {
        if (PQserverVersion(owner) < setting_of(others[i][0])->since)
            continue;
        snprintf(sql, sizeof sql, "ALTER %s SET %s = '%s'", whose, others[i][0], others[i][1]);
        run(sql);
    }
}

static int reset(void **state)
{
    (void)state;
    run("ALTER ROLE app RESET ALL; ALTER DATABASE shop RESET ALL;"
        "ALTER ROLE app IN DATABASE shop RESET ALL; ALTER ROLE other RESET ALL");
    return 0;
}

static void every_setting_of_the_table_is_tested(void **state)
{
    (void)state;
    assert_int_equal(OTHERS, pg_settings_count);
}

static void nobodys_defaults_are_the_sessions(void **state)
{
    static const char *const whose[] = {"ROLE app", "DATABASE shop", "ROLE app IN DATABASE shop"};
    (void)state;
    for (size_t i = 0; i < sizeof whose / sizeof *whose; i++) {
        set_all(whose[i]);
        struct pg_session *session = open_by(pg_session_open, conninfo(""));
        must_have_ours(session);
        pg_session_close(session);
        session = open_by(pg_session_open_walsender, conninfo(""));
        must_have_ours(session);
        must_be(session, "logical_decoding_work_mem", "4MB");
        pg_session_close(session);
        reset(state);
    }
}

struct value {
    const char *name, *value;
};

/* What this process finds first, of all tests. */
static const struct value first[] = {{"search_path", "app, public"},
                                     {"TimeZone", "America/New_York"},
                                     {"timezone_abbreviations", "Default"},
                                     {"lc_monetary", "C"},
                                     {"lc_numeric", "C"},
                                     {"lc_time", "C"},
                                     {"default_text_search_config", "public.ours"}};

static void must_have_first(struct pg_session *session)
{
    for (size_t k = 0; k < sizeof first / sizeof *first; k++)
        must_be(session, first[k].name, first[k].value);
}

/* Whatever role and password the connection is opened by. */
static void what_was_found_first_stays(void **state)
{
    static const char *const texts[] = {"", "", "password=another", "user=other", ""};
    struct pg_session *sessions[5];
    (void)state;
    run("CREATE TEXT SEARCH CONFIGURATION ours (COPY = pg_catalog.german);"
        "ALTER ROLE app SET search_path = \"$user\", nowhere, public;"
        "ALTER ROLE app SET TimeZone = 'America/New_York';"
        "ALTER ROLE app SET default_text_search_config = 'public.ours'");
    for (int i = 0; i < 5; i++) {
        open_fn open = i == 1 ? pg_session_open_walsender : pg_session_open;
        sessions[i] = open_by(open, conninfo(texts[i]));
        must_have_first(sessions[i]);
        assert_int_equal(pg_session_server(sessions[i])->settings, 0);
        set_all("ROLE app");
        set_all("ROLE other");
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(
            pg_server_is_same(pg_session_server(sessions[0]), pg_session_server(sessions[i]), true),
            i != 3);
    for (int i = 0; i < 5; i++)
        pg_session_close(sessions[i]);
}

static void another_database_has_its_schemas_and_all_else_as_the_first(void **state)
{
    (void)state;
    run_in("shop2", "CREATE TEXT SEARCH CONFIGURATION ours (COPY = pg_catalog.german)");
    run("ALTER DATABASE shop2 SET search_path = b, public;"
        "ALTER DATABASE shop2 SET TimeZone = 'Asia/Tokyo'");
    struct pg_session *before = open_by(pg_session_open, conninfo(""));
    for (int i = 0; i < 2; i++) {
        struct pg_session *session =
            open_by(pg_session_open, conninfo_of("shop2", i ? "password=another" : ""));
        must_be(session, "search_path", "b, public");
        must_be(session, "TimeZone", "America/New_York");
        assert_false(
            pg_server_is_same(pg_session_server(before), pg_session_server(session), false));
        assert_false(
            pg_server_is_set_otherwise(pg_session_server(before), pg_session_server(session)));
        pg_session_close(session);
        run("ALTER DATABASE shop2 SET search_path = public");
    }
    pg_session_close(before);
}

static void what_a_server_takes_no_more_is_found_anew(void **state)
{
    (void)state;
    struct pg_session *before = open_by(pg_session_open, conninfo(""));
    must_have_first(before);
    run("ALTER TEXT SEARCH CONFIGURATION ours RENAME TO theirs;"
        "ALTER ROLE app SET default_text_search_config = 'public.theirs';"
        "ALTER ROLE app SET search_path = other; ALTER ROLE app SET TimeZone = 'Asia/Tokyo'");
    struct pg_session *one = open_by(pg_session_open, conninfo(""));
    run("ALTER ROLE app SET default_text_search_config = 'simple'");
    struct pg_session *const after[] = {
        one,
        open_by(pg_session_open_walsender, conninfo("")),
        open_by(pg_session_open, conninfo("password=another")),
        open_by(pg_session_open, conninfo("password=new")),
    };
    for (size_t i = 0; i < 4; i++) {
        must_be(after[i], "default_text_search_config", "public.theirs");
        must_be(after[i], "TimeZone", "Asia/Tokyo");
        must_be(after[i], "search_path", "app, public"); /* tables stay what they are */
        assert_true(pg_server_is_same(pg_session_server(one), pg_session_server(after[i]), true));
    }
    assert_false(pg_server_is_same(pg_session_server(before), pg_session_server(one), false));
    assert_true(pg_server_is_set_otherwise(pg_session_server(before), pg_session_server(one)));
    pg_session_close(before);
    for (size_t i = 0; i < 4; i++)
        pg_session_close(after[i]);
}

static void no_schema_at_all_stays_none(void **state)
{
    const char *text = conninfo_of("none", "options='-c search_path=nowhere'");
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pg_session *session = open_by(pg_session_open, text);
        must_be(session, "search_path", "");
        pg_session_close(session);
    }
}

static void a_schema_of_any_name_is_found_again(void **state)
{
    const char *text = conninfo_of("odd", "");
    (void)state;
    run_in("odd", "CREATE SCHEMA \"Gr\xc3\xbc\xc3\x9f"
                  "e, \\ 'x' \"\"y\"\"\"; GRANT USAGE ON SCHEMA"
                  " \"Gr\xc3\xbc\xc3\x9f"
                  "e, \\ 'x' \"\"y\"\"\" TO app;"
                  "ALTER ROLE app SET search_path = \"Gr\xc3\xbc\xc3\x9f"
                  "e, \\ 'x' \"\"y\"\"\"");
    for (int i = 0; i < 2; i++) {
        struct pg_session *session = open_by(pg_session_open, text);
        must_be(session, "search_path",
                "\"Gr\xc3\xbc\xc3\x9f"
                "e, \\ 'x' \"\"y\"\"\"");
        pg_session_close(session);
    }
}

/* Where a pooler drops them from the start-up packet, too: what is no one's is not the server's. */
static void the_conninfo_may_choose_how_values_are_printed(void **state)
{
    run("ALTER ROLE app SET DateStyle = 'German'; ALTER ROLE app SET xmlbinary = 'hex'");
    struct pg_session *session = open_by(
        pg_session_open, conninfo_of("own", "options='-c datestyle=DMY -cIntervalStyle=iso_8601 "
                                            "-c search_path=other -c row_security=on "
                                            "--lock-timeout=5 --extra-float-digits=3 "
                                            "-c default_transaction_isolation=serializable "
                                            "-c default_transaction_read_only=on "
                                            "-c work_mem=1234\\\\'"));
    (void)state;
    must_be(session, "DateStyle", "ISO, DMY");
    must_be(session, "IntervalStyle", "iso_8601");
    must_be(session, "extra_float_digits", "3");
    must_be(session, "xmlbinary", "base64");
    must_be(session, "search_path", "other");
    must_be(session, "work_mem", "1234kB");
    must_be(session, "row_security", "off");
    must_be(session, "lock_timeout", "0");
    must_be(session, "default_transaction_isolation", "read committed");
    must_be(session, "default_transaction_read_only", "off");
    pg_session_close(session);
}

/* As if by a pooler, that leaves the start-up packet's options out. */
static void what_a_pooler_drops_is_sent_by_statement(void **state)
{
    struct pg_server read = {0};
    char text[300];
    snprintf(text, sizeof text, "%s",
             conninfo("options='-c search_path=app -c IntervalStyle=iso_8601'"));
    const struct pg_settings_of of = {.conninfo = text, .step = SETTINGS_SET};
    struct pg_session *session = open_by(pg_session_open, text);
    (void)state;
    run("ALTER ROLE app SET xmlbinary = 'hex'; ALTER ROLE app SET IntervalStyle = 'sql_standard'");
    PGconn *bare = PQconnectdb(conninfo(""));
    char *sql = pg_settings_statement(bare, &of, &read);
    PGresult *result = PQexec(bare, sql);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    assert_int_equal(pg_settings_read_server(&read, bare, text, result), 0);
    PQclear(result);
    free(sql);
    result = PQexec(bare, "SELECT current_setting('xmlbinary'), current_setting('IntervalStyle')");
    assert_string_equal(PQgetvalue(result, 0, 0), "base64");
    assert_string_equal(PQgetvalue(result, 0, 1), "iso_8601");
    PQclear(result);
    PQfinish(bare);
    pg_session_close(session);
}

static void a_database_without_an_encoding_gets_a_session_without_one(void **state)
{
    char text[300];
    (void)state;
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=app dbname=bytes", server.port);
    for (int i = 0; i < 2; i++) {
        struct pg_session *session = open_by(i ? pg_session_open_walsender : pg_session_open, text);
        must_be(session, "client_encoding", "SQL_ASCII");
        pg_session_close(session);
    }
    struct pg_session *session = open_by(pg_session_open, conninfo("client_encoding=LATIN1"));
    must_be(session, "client_encoding", "UTF8");
    pg_session_close(session);
}

static int create(void **state)
{
    static const char *const others_of[] = {"shop2", "odd", "none", "own"};
    char text[200];
    (void)state;
    postgres_create(&server);
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    owner = PQconnectdb(text);
    run("CREATE ROLE app LOGIN REPLICATION");
    run("CREATE ROLE other LOGIN REPLICATION");
    for (size_t i = 0; i < sizeof others_of / sizeof *others_of; i++) {
        snprintf(text, sizeof text, "CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8'",
                 others_of[i]);
        run(text);
    }
    run("CREATE DATABASE shop TEMPLATE template0 ENCODING 'UTF8'");
    run("CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE "
        "'C'");
    PQfinish(owner);
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres dbname=shop", server.port);
    owner = PQconnectdb(text);
    run("CREATE SCHEMA app AUTHORIZATION app; CREATE SCHEMA other AUTHORIZATION app;"
        "GRANT USAGE ON SCHEMA app TO other");
    run_in("shop2", "CREATE SCHEMA b; GRANT USAGE ON SCHEMA b TO app");
    run_in("own", "CREATE SCHEMA other AUTHORIZATION app");
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    PQfinish(owner);
    server_destroy(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_of_the_table_is_tested),
        cmocka_unit_test_teardown(what_was_found_first_stays, reset),
        cmocka_unit_test_teardown(another_database_has_its_schemas_and_all_else_as_the_first,
                                  reset),
        cmocka_unit_test_teardown(what_a_server_takes_no_more_is_found_anew, reset),
        cmocka_unit_test_teardown(nobodys_defaults_are_the_sessions, reset),
        cmocka_unit_test_teardown(no_schema_at_all_stays_none, reset),
        cmocka_unit_test_teardown(a_schema_of_any_name_is_found_again, reset),
        cmocka_unit_test_teardown(the_conninfo_may_choose_how_values_are_printed, reset),
        cmocka_unit_test_teardown(what_a_pooler_drops_is_sent_by_statement, reset),
        cmocka_unit_test_teardown(a_database_without_an_encoding_gets_a_session_without_one, reset),
    };
    return cmocka_run_group_tests(tests, create, destroy);
}
