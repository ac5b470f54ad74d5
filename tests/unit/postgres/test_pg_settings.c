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

/* Each conninfo has its own first connection. */
static const char *conninfo(const char *more)
{
    static char text[300];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=app dbname=shop %s", server.port,
             more);
    return text;
}

static void run(const char *sql)
{
    PGresult *result = PQexec(owner, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(owner));
    PQclear(result);
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
        "ALTER ROLE app IN DATABASE shop RESET ALL");
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

static void what_was_found_first_stays(void **state)
{
    struct found_first {
        const char *name, *value;
    } first[] = {{"search_path", "app, public"},
                 {"TimeZone", "America/New_York"},
                 {"timezone_abbreviations", "Default"},
                 {"lc_monetary", "C"},
                 {"lc_numeric", "C"},
                 {"lc_time", "C"},
                 {"default_text_search_config", "pg_catalog.german"}};
    const char *text = conninfo("application_name=first");
    (void)state;
    run("ALTER ROLE app SET search_path = \"$user\", nowhere, public;"
        "ALTER ROLE app SET TimeZone = 'America/New_York';"
        "ALTER ROLE app SET default_text_search_config = 'pg_catalog.german'");
    for (int i = 0; i < 3; i++) {
        open_fn open = i == 1 ? pg_session_open_walsender : pg_session_open;
        struct pg_session *session = open_by(open, text);
        for (size_t k = 0; k < sizeof first / sizeof *first; k++)
            must_be(session, first[k].name, first[k].value);
        pg_session_close(session);
        set_all("ROLE app");
    }
}

static void what_a_server_takes_no_more_is_found_anew(void **state)
{
    const char *text = conninfo("application_name=renamed");
    (void)state;
    run("CREATE TEXT SEARCH CONFIGURATION ours (COPY = pg_catalog.german);"
        "ALTER ROLE app SET default_text_search_config = 'public.ours';"
        "ALTER ROLE app SET search_path = app, public");
    struct pg_session *before = open_by(pg_session_open, text);
    must_be(before, "default_text_search_config", "public.ours");
    run("ALTER TEXT SEARCH CONFIGURATION ours RENAME TO theirs;"
        "ALTER ROLE app SET default_text_search_config = 'public.theirs';"
        "ALTER ROLE app SET search_path = other; ALTER ROLE app SET TimeZone = 'Asia/Tokyo'");
    struct pg_session *first = open_by(pg_session_open, text);
    run("ALTER ROLE app SET default_text_search_config = 'simple'");
    struct pg_session *second = open_by(pg_session_open_walsender, text);
    struct pg_session *const after[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        must_be(after[i], "default_text_search_config", "public.theirs");
        must_be(after[i], "TimeZone", "Asia/Tokyo");
        must_be(after[i], "search_path", "app, public"); /* tables stay what they are */
    }
    assert_true(pg_server_is_same(pg_session_server(first), pg_session_server(second), true));
    assert_false(pg_server_is_same(pg_session_server(before), pg_session_server(first), false));
    pg_session_close(before);
    pg_session_close(first);
    pg_session_close(second);
}

static void no_schema_at_all_stays_none(void **state)
{
    const char *text = conninfo("application_name=none options='-c search_path=nowhere'");
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pg_session *session = open_by(pg_session_open, text);
        must_be(session, "search_path", "");
        pg_session_close(session);
    }
}

static void a_schema_of_any_name_is_found_again(void **state)
{
    const char *text = conninfo("application_name=odd");
    (void)state;
    run("CREATE SCHEMA \"Gr\xc3\xbc\xc3\x9f"
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

static void the_conninfo_may_choose_how_values_are_printed(void **state)
{
    struct pg_session *session = open_by(
        pg_session_open, conninfo("application_name=own options='-c datestyle=German,DMY "
                                  "-c search_path=other -c row_security=on -c lock_timeout=5 "
                                  "-c default_transaction_isolation=serializable "
                                  "-c default_transaction_read_only=on -c work_mem=1234\\\\'"));
    (void)state;
    must_be(session, "DateStyle", "German, DMY");
    must_be(session, "search_path", "other");
    must_be(session, "work_mem", "1234kB");
    must_be(session, "row_security", "off");
    must_be(session, "lock_timeout", "0");
    must_be(session, "default_transaction_isolation", "read committed");
    must_be(session, "default_transaction_read_only", "off");
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
    char text[200];
    (void)state;
    postgres_create(&server);
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    owner = PQconnectdb(text);
    run("CREATE ROLE app LOGIN REPLICATION");
    run("CREATE DATABASE shop TEMPLATE template0 ENCODING 'UTF8'");
    run("CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE "
        "'C'");
    PQfinish(owner);
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres dbname=shop", server.port);
    owner = PQconnectdb(text);
    run("CREATE SCHEMA app AUTHORIZATION app; CREATE SCHEMA other AUTHORIZATION app");
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
        cmocka_unit_test_teardown(nobodys_defaults_are_the_sessions, reset),
        cmocka_unit_test_teardown(what_was_found_first_stays, reset),
        cmocka_unit_test_teardown(what_a_server_takes_no_more_is_found_anew, reset),
        cmocka_unit_test_teardown(no_schema_at_all_stays_none, reset),
        cmocka_unit_test_teardown(a_schema_of_any_name_is_found_again, reset),
        cmocka_unit_test_teardown(the_conninfo_may_choose_how_values_are_printed, reset),
        cmocka_unit_test_teardown(a_database_without_an_encoding_gets_a_session_without_one, reset),
    };
    return cmocka_run_group_tests(tests, create, destroy);
}
