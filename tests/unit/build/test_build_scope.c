/* Without which keyspace a build goes on, and when it does not. */
#include "build/build_scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fakes/config_file.h"

#include <errno.h>
#include <stdlib.h>

#define HEAD "cache: redis://h\ndatabase: dbname=x\n"
#define THREE                                                                                      \
    "keyspaces:\n"                                                                                 \
    "  - {name: a, key: \"a:{id}\", table: a, value: v}\n"                                         \
    "  - {name: b, key: \"b:{id}\", table: b, value: v}\n"                                         \
    "  - {name: c, key: \"c:{id}\", table: c, value: v}\n"

static struct config *config;
static struct build_scope scope;

static void begin(const char *text, bool wanted, const char *guarded)
{
    bool *flags = xcalloc(3, sizeof *flags);
    for (size_t i = 0; i < 3; i++)
        flags[i] = guarded[i] == 'g';
    config = config_from_text(text);
    build_scope_init(&scope, config, wanted, flags);
}

static void end(void)
{
    for (size_t i = 0; i < 3; i++)
        assert_false(config->keyspaces[i].retired); /* others have it, too */
    build_scope_finish(&scope);
    config_destroy(config);
}

static bool leave_out(size_t number)
{
    return build_scope_leave_out(&scope, &scope.config->keyspaces[number], "no grant");
}

static void the_others_are_begun_with(void **state)
{
    (void)state;
    begin(HEAD THREE, true, "---");
    assert_true(leave_out(1));
    assert_true(scope.config->keyspaces[1].retired);
    assert_true(leave_out(0));
    assert_false(leave_out(2)); /* nothing would be left */
    assert_false(scope.config->keyspaces[2].retired);
    char **faults = build_scope_take_faults(&scope);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(faults[i], "no grant");
        free(faults[i]);
    }
    free(faults);
    end();
}

static void one_that_is_left_out_is_not_left_out_again(void **state)
{
    (void)state;
    begin(HEAD THREE, true, "---");
    assert_true(leave_out(1));
    assert_false(build_scope_leave_out(&scope, &scope.config->keyspaces[1], "too late"));
    assert_string_equal(scope.faults[1], "no grant");
    end();
}

static void a_try_for_one_alone_ends_with_it(void **state)
{
    (void)state;
    begin(HEAD THREE, false, "gg-");
    assert_false(leave_out(2));
    assert_string_equal(scope.faults[2], "no grant");
    end();
}

static void one_that_guards_by_the_log_is_not_lost_for_nothing(void **state)
{
    (void)state;
    begin(HEAD THREE, true, "ggg");
    assert_false(leave_out(0));
    assert_null(scope.faults[0]); /* it guards on */
    end();
    begin(HEAD THREE, true, "gg-");
    assert_true(leave_out(0));
    end();
}

static void without_a_log_the_others_are_renewed(void **state)
{
    (void)state;
    begin(HEAD "sync: poll\n" THREE, true, "ggg");
    assert_true(leave_out(0));
    assert_string_equal(scope.faults[0], "no grant");
    end();
    begin(HEAD "sync: poll\n" THREE, false, "g-g");
    assert_false(leave_out(1));
    end();
}

static void only_what_is_one_keyspaces_own_is_its_fault(void **state)
{
    (void)state;
    static const char *const own[] = {"42501", "42P01", "22012", "P0001", "XX001", ""};
    static const char *const others[] = {"55P03", "57P01", "57014", "53300", "08006", "25P02"};
    for (size_t i = 0; i < 6; i++) {
        assert_true(build_scope_is_ones_fault(-EPROTO, own[i]));
        assert_false(build_scope_is_ones_fault(-EPROTO, others[i]));
    }
    assert_true(build_scope_is_ones_fault(-E2BIG, ""));
    assert_false(build_scope_is_ones_fault(-ECONNREFUSED, ""));
    assert_false(build_scope_is_ones_fault(-ESTALE, ""));
    assert_false(build_scope_is_ones_fault(0, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_others_are_begun_with),
        cmocka_unit_test(one_that_is_left_out_is_not_left_out_again),
        cmocka_unit_test(a_try_for_one_alone_ends_with_it),
        cmocka_unit_test(one_that_guards_by_the_log_is_not_lost_for_nothing),
        cmocka_unit_test(without_a_log_the_others_are_renewed),
        cmocka_unit_test(only_what_is_one_keyspaces_own_is_its_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
