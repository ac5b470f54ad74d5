#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "worker/upstream/learned.h"
#include <stdio.h>
#include <string.h>

static void learn(struct learned *learned, const char *name, unsigned first_key)
{
    learned_add(learned, span_of(name),
                &(struct command_info){.is_known = true, .first_key = first_key});
}

static int known(const struct learned *learned, const char *name)
{
    const struct command_info *info = learned_find(learned, span_of(name));
    return info ? (int)info->first_key : -1;
}

static void it_is_found_in_any_case(void **state)
{
    struct learned learned = {0};
    (void)state;
    assert_int_equal(known(&learned, "json.get"), -1);
    learn(&learned, "Json.Get", 3);
    assert_int_equal(known(&learned, "JSON.GET"), 3);
    assert_int_equal(known(&learned, "json.get"), 3);
    assert_int_equal(known(&learned, "json.ge"), -1);
    learned_forget(&learned);
    assert_int_equal(known(&learned, "json.get"), -1);
}

static void what_is_said_anew_counts(void **state)
{
    struct learned learned = {0};
    (void)state;
    learn(&learned, "a", 1);
    learn(&learned, "A", 2);
    assert_int_equal(known(&learned, "a"), 2);
    assert_int_equal(learned.names.count, 1);
    learned_forget(&learned);
}

static void of_too_many_the_oldest_goes(void **state)
{
    struct learned learned = {0};
    char name[20];
    (void)state;
    for (unsigned i = 0; i < LEARNED_NAMES + 10; i++) {
        snprintf(name, sizeof name, "m.%u", i);
        learn(&learned, name, i);
    }
    assert_int_equal(learned.names.count, LEARNED_NAMES);
    assert_int_equal(known(&learned, "m.9"), -1);
    assert_int_equal(known(&learned, "m.10"), 10);
    assert_int_equal(known(&learned, name), LEARNED_NAMES + 9);
    learned_forget(&learned);
}

static void a_name_has_a_bound(void **state)
{
    struct learned learned = {0};
    char name[LEARNED_NAME_BYTES + 2] = "";
    (void)state;
    memset(name, 'x', LEARNED_NAME_BYTES);
    learn(&learned, name, 1);
    assert_int_equal(known(&learned, name), 1);
    name[LEARNED_NAME_BYTES] = 'x';
    assert_int_equal(known(&learned, name), -1);
    learned_forget(&learned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_found_in_any_case),
        cmocka_unit_test(what_is_said_anew_counts),
        cmocka_unit_test(of_too_many_the_oldest_goes),
        cmocka_unit_test(a_name_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
