/* Of every type that a column may have it is known whether a key of it is its row's for good, or is
 * another when DDL elsewhere gives an object another name. */
#include "fakes/database.h"

#include "base/memory.h"
#include "database/printed_types.h"

#include <errno.h>

static struct pg_session *owner;

static int start(void **state)
{
    start_server(state);
    owner = session_as("postgres");
    run_sql(owner, "CREATE TYPE mood AS ENUM ('sad', 'happy');"
                   "CREATE DOMAIN class AS regclass;"
                   "CREATE DOMAIN classes AS class[];"
                   "CREATE DOMAIN price AS money;"
                   "CREATE TYPE kind_range AS RANGE (subtype = regtype, subtype_opclass = oid_ops);"
                   "CREATE TYPE pair AS (nr int, kinds regtype[]);"
                   "CREATE TYPE times AS (day date, moods mood[])");
    return 0;
}

static int stop(void **state)
{
    pg_session_close(owner);
    return stop_server(state);
}

static bool is_refused(const char *type)
{
    struct pg_error error;
    PGresult *columns = NULL;
    char *sql = xasprintf("SELECT NULL::%s AS id", type);
    if (pg_session_exec(owner, sql, 0, NULL, &columns, &error))
        fail_msg("%s: %s", sql, error.text);
    int status = printed_types_refuse(owner, columns, &error);
    assert_true(!status || (status == -EPROTO && strstr(error.text, "key: column id is of type")));
    PQclear(columns);
    free(sql);
    return status;
}

static void of_the_servers_own_types_those_that_print_names_are_refused(void **state)
{
    static const char all[] = "SELECT format_type(oid, NULL) FROM pg_type t"
                              " WHERE typtype IN ('b', 'd', 'r', 'm') AND typisdefined"
                              "   AND typnamespace IN ('pg_catalog'::regnamespace,"
                              "                        'information_schema'::regnamespace)"
                              "   AND NOT EXISTS (SELECT FROM pg_type WHERE typarray = t.oid)"
                              " ORDER BY typname";
    struct pg_error error;
    PGresult *types = NULL;
    char refused[1000] = "";
    (void)state;
    assert_int_equal(pg_session_exec(owner, all, 0, NULL, &types, &error), 0);
    assert_true(PQntuples(types) > 70);
    for (int row = 0; row < PQntuples(types); row++)
        if (is_refused(PQgetvalue(types, row, 0)))
            snprintf(refused + strlen(refused), sizeof refused - strlen(refused), "%s ",
                     PQgetvalue(types, row, 0));
    assert_string_equal(refused,
                        "aclitem regclass regcollation regconfig regdictionary regnamespace "
                        "regoper regoperator regproc regprocedure regrole regtype ");
    PQclear(types);
}

static void what_is_made_of_others_is_as_they_are(void **state)
{
    static const char *const named[] = {"regclass[]", "class",   "class[]",         "classes",
                                        "kind_range", "pair",    "kind_multirange", "pair[]",
                                        "aclitem[]",  "pg_class"};
    static const char *const settled[] = {"date[]", "tstzrange", "datemultirange", "price",
                                          "mood",   "mood[]",    "times",          "times[]",
                                          "name[]", "oidvector", "interval[]"};
    (void)state;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!is_refused(named[i]))
            fail_msg("%s is not refused", named[i]);
    for (size_t i = 0; i < sizeof settled / sizeof *settled; i++)
        if (is_refused(settled[i]))
            fail_msg("%s is refused", settled[i]);
}

/* Nobody has said of it that it is made of the value alone. */
static void an_output_function_of_somebody_elses_counts_as_what_it_is_declared(void **state)
{
    static const char *const words[] = {"STABLE", "VOLATILE", "IMMUTABLE"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *sql = xasprintf("DROP TYPE IF EXISTS own CASCADE; CREATE TYPE own;"
                              "CREATE FUNCTION own_in(cstring) RETURNS own LANGUAGE internal"
                              " IMMUTABLE STRICT AS 'int4in';"
                              "CREATE FUNCTION own_out(own) RETURNS cstring LANGUAGE internal"
                              " %s STRICT AS 'date_out';"
                              "CREATE TYPE own (INPUT = own_in, OUTPUT = own_out, LIKE = int4)",
                              words[i]);
        run_sql(owner, "SET client_min_messages = error");
        run_sql(owner, sql);
        assert_int_equal(is_refused("own"), i < 2);
        free(sql);
    }
}

static void the_first_such_column_is_named_with_its_type(void **state)
{
    struct pg_error error;
    PGresult *columns = NULL;
    (void)state;
    assert_int_equal(pg_session_exec(owner, "SELECT 1 AS a, NULL::pair[] AS b, NULL::regproc AS c",
                                     0, NULL, &columns, &error),
                     0);
    assert_int_equal(printed_types_refuse(owner, columns, &error), -EPROTO);
    assert_non_null(strstr(error.text, "column b is of type pair[] (of regtype), whose text"));
    PQclear(columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_servers_own_types_those_that_print_names_are_refused),
        cmocka_unit_test(what_is_made_of_others_is_as_they_are),
        cmocka_unit_test(an_output_function_of_somebody_elses_counts_as_what_it_is_declared),
        cmocka_unit_test(the_first_such_column_is_named_with_its_type),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
