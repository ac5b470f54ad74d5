#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/unvouched.h"

#include <stdio.h>

enum { KEYSPACES = 2, MAX_KEYS = 3 };

static char given[200]; /* "0:key 1:* ..." */

static void note(void *arg, int keyspace, struct span text)
{
    size_t length = strlen(given);
    assert_ptr_equal(arg, given);
    snprintf(given + length, sizeof given - length, "%s%d:%.*s", length ? " " : "", keyspace,
             (int)text.length, text.at);
}

static void on_all(void *arg, int keyspace)
{
    note(arg, keyspace, (struct span){"*", 1});
}

static void on_one(void *arg, struct key key)
{
    note(arg, key.keyspace, key.text);
}

static void assert_gives(struct unvouched *unvouched, const char *wanted)
{
    given[0] = '\0';
    unvouched_give(unvouched, on_all, on_one, given);
    assert_string_equal(given, wanted);
}

static void add(struct unvouched *unvouched, int keyspace, const char *key)
{
    unvouched_add(unvouched, key_make(keyspace, (struct span){key, strlen(key)}));
}

static void keys_are_given_once_and_forgotten(void **state)
{
    struct unvouched *unvouched = unvouched_create(KEYSPACES, MAX_KEYS);
    (void)state;
    assert_gives(unvouched, "");
    add(unvouched, 0, "a");
    add(unvouched, 1, "b");
    add(unvouched, 0, "a");
    add(unvouched, 0, "c");
    assert_gives(unvouched, "0:a 1:b 0:c");
    assert_gives(unvouched, "");
    add(unvouched, 1, "a");
    unvouched_destroy(unvouched);
    unvouched_destroy(NULL);
}

static void past_the_bound_a_keyspace_is_given_whole(void **state)
{
    struct unvouched *unvouched = unvouched_create(KEYSPACES, MAX_KEYS);
    (void)state;
    add(unvouched, 0, "a");
    add(unvouched, 1, "b");
    add(unvouched, 0, "c");
    add(unvouched, 0, "d");
    add(unvouched, 1, "b");
    add(unvouched, 0, "e");
    assert_gives(unvouched, "0:* 1:b");
    add(unvouched, 0, "a");
    assert_gives(unvouched, "0:a");
    unvouched_destroy(unvouched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_given_once_and_forgotten),
        cmocka_unit_test(past_the_bound_a_keyspace_is_given_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
