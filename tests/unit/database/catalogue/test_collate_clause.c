/* COLLATE is found where the server would read it as one, and nowhere else. */
#include "database/catalogue/collate_clause.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the headers above */
#include <cmocka.h>

/* `names`: of all clauses, each with a ; behind it. */
static void expect(const char *sql, const char *names)
{
    struct buffer found = {0};
    struct collate_clause clause;
    const char *at = sql;
    while (collate_clause_next(at, &clause)) {
        assert_int_equal(strncmp(clause.at, "collate", 4) == 0 || clause.at[0] == 'C', true);
        buffer_printf(&found, "%.*s;", (int)(clause.end - clause.name), clause.name);
        at = clause.end;
    }
    char *text = buffer_string(&found);
    assert_string_equal(text, names);
    free(text);
}

static void each_is_found_with_all_of_its_name(void **state)
{
    (void)state;
    expect("name COLLATE \"C\" < 'M'", "\"C\";");
    expect("(name collate ucs_basic)<title Collate\"a\"\"b\"AND true", "ucs_basic;\"a\"\"b\";");
    expect("a COLLATE pg_catalog . \"de_DE\" = b COLLATE x.y.z", "pg_catalog . \"de_DE\";x.y.z;");
    expect("collate/* a /* b */ */--\n\"C\"", "\"C\";");
}

static void what_looks_like_it_is_none(void **state)
{
    (void)state;
    expect("", "");
    expect("name = 'a COLLATE \"C\"' OR name = 'it''s COLLATE x'", "");
    expect("name = E'\\' COLLATE x' OR name = e'a''\\' COLLATE x'", "");
    expect("name = $$ COLLATE x $$ OR name = $a$ $$ COLLATE x $b$ COLLATE y $a$", "");
    expect("\"a COLLATE x\" = 1 AND \"a\"\" COLLATE x\" = 2", "");
    expect("a /* COLLATE x /* */ COLLATE y */ = 1 -- COLLATE z", "");
    expect("items.collate = x AND items . collate = y", "");
    expect("collated x, a_collate x, collate$ x, collate, collate", "");
}

static void it_is_found_behind_what_is_none(void **state)
{
    (void)state;
    expect("name = '\\' COLLATE x", "x;");
    expect("name = E'\\\\' COLLATE x", "x;");
    expect("name = $1 COLLATE x", "x;");
    expect("name = a$b COLLATE x -- $b", "x;");
    expect("name = $a$ $$ $a$ COLLATE x", "x;");
    expect("a - b COLLATE x / c COLLATE y", "x;y;");
    expect("1 COLLATE x = 'open COLLATE y", "x;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found_with_all_of_its_name),
        cmocka_unit_test(what_looks_like_it_is_none),
        cmocka_unit_test(it_is_found_behind_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
