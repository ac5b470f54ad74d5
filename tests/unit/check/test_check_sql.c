/* The SQL that mends findings, as it is printed. */
#include "check/check_sql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct problems problems;

static void add(enum problem_level level, const char *text, const char *remedy)
{
    problems_add(&problems, level, "keyspace items (f.yaml:3)", remedy, "%s", text);
}

static void must_print(const char *wanted)
{
    char *printed = NULL;
    size_t length;
    FILE *out = open_memstream(&printed, &length);
    check_sql_print(&problems, out);
    fclose(out);
    assert_string_equal(printed, wanted);
    free(printed);
    problems_finish(&problems);
}

static void what_is_needed_stands_before_what_is_advised(void **state)
{
    (void)state;
    add(PROBLEM_WARNING, "column v may be NULL", "ALTER TABLE t ALTER COLUMN v SET NOT NULL;");
    add(PROBLEM_ERROR, "role g may not read v", "GRANT SELECT ON t TO g;");
    add(PROBLEM_WARNING, "role g may not delete rows", "GRANT DELETE ON t TO g;");
    add(PROBLEM_ERROR, "the identity lacks k",
        "ALTER TABLE a REPLICA IDENTITY FULL;\nALTER TABLE b REPLICA IDENTITY FULL;");
    must_print("-- needed\n"
               "-- keyspace items (f.yaml:3): error: role g may not read v\n"
               "    GRANT SELECT ON t TO g;\n"
               "-- keyspace items (f.yaml:3): error: the identity lacks k\n"
               "    ALTER TABLE a REPLICA IDENTITY FULL;\n"
               "    ALTER TABLE b REPLICA IDENTITY FULL;\n"
               "-- advised\n"
               "-- keyspace items (f.yaml:3): warning: column v may be NULL\n"
               "    ALTER TABLE t ALTER COLUMN v SET NOT NULL;\n"
               "-- keyspace items (f.yaml:3): warning: role g may not delete rows\n"
               "    GRANT DELETE ON t TO g;\n");
}

static void what_no_statement_mends_stands_before_all_sql(void **state)
{
    (void)state;
    add(PROBLEM_ERROR, "role g may not read v", "GRANT SELECT ON t TO g;");
    add(PROBLEM_WARNING, "memory is full", "CONFIG SET maxmemory-policy allkeys-lru");
    add(PROBLEM_NOTE, "that is for others to print", "ALTER TABLE t SET LOGGED;");
    add(PROBLEM_ERROR, "table t does not exist", NULL);
    must_print("keyspace items (f.yaml:3): warning: memory is full\n"
               "    CONFIG SET maxmemory-policy allkeys-lru\n"
               "keyspace items (f.yaml:3): error: table t does not exist\n"
               "-- needed\n"
               "-- keyspace items (f.yaml:3): error: role g may not read v\n"
               "    GRANT SELECT ON t TO g;\n");
}

static void a_part_without_statements_has_no_head(void **state)
{
    (void)state;
    must_print("");
    add(PROBLEM_WARNING, "column v may be NULL", "ALTER TABLE t ALTER COLUMN v SET NOT NULL;");
    must_print("-- advised\n"
               "-- keyspace items (f.yaml:3): warning: column v may be NULL\n"
               "    ALTER TABLE t ALTER COLUMN v SET NOT NULL;\n");
}

static void no_text_ends_its_comment(void **state)
{
    (void)state;
    add(PROBLEM_ERROR, "table a\nDROP TABLE b;\rDROP TABLE c; is unlogged", "ALTER TABLE a;");
    must_print("-- needed\n"
               "-- keyspace items (f.yaml:3): error: table a DROP TABLE b; DROP TABLE c; is "
               "unlogged\n"
               "    ALTER TABLE a;\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_needed_stands_before_what_is_advised),
        cmocka_unit_test(what_no_statement_mends_stands_before_all_sql),
        cmocka_unit_test(a_part_without_statements_has_no_head),
        cmocka_unit_test(no_text_ends_its_comment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
