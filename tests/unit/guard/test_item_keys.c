/* Which keys an item of a filter may mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "guard/item_keys.h"

#include <errno.h>

enum { ROOM = 20 };

struct meant {
    struct key_template form;
    struct buffer text;
    struct item_key keys[ROOM];
    int count;
};

static void mean(struct meant *meant, const char *form, struct span item, size_t room)
{
    const char *error;
    *meant = (struct meant){0};
    assert_int_equal(key_template_parse(&meant->form, form, &error), 0);
    meant->count = item_keys_add(&meant->form, item, &meant->text, meant->keys, room);
}

static void finish(struct meant *meant)
{
    key_template_finish(&meant->form);
    buffer_finish(&meant->text);
}

/* `wanted`: as many as there are, then NULL. */
static void must_mean(const char *form, const char *item, const char *const *wanted)
{
    struct meant meant;
    int count = 0;
    mean(&meant, form, span_of(item), ROOM);
    for (; wanted[count]; count++) {
        assert_true(count < meant.count);
        struct span key = item_key_span(&meant.text, meant.keys[count]);
        assert_true(span_is(key, wanted[count]));
        assert_true(key_template_matches(&meant.form, key));
    }
    assert_int_equal(count, meant.count);
    finish(&meant);
}

static void an_item_is_the_text_of_the_column(void **state)
{
    (void)state;
    must_mean("item:{id}", "42", (const char *const[]){"item:42", NULL});
    must_mean("item:{id}", "", (const char *const[]){"item:", NULL});
    must_mean("{id}.json", "42", (const char *const[]){"42.json", NULL});
    must_mean("a:{id}:b", "x:y", (const char *const[]){"a:x:y:b", NULL});
}

/* The column may be a text that reads like a key: then the item means that, too. */
static void an_item_may_be_the_whole_key(void **state)
{
    (void)state;
    must_mean("item:{id}", "item:42", (const char *const[]){"item:42", "item:item:42", NULL});
    must_mean("o:{a}:{b}", "o:1:2", (const char *const[]){"o:1:2", "o:o:1:2", NULL});
}

static void columns_are_joined_by_colons(void **state)
{
    (void)state;
    must_mean("o:{a}:{b}", "1:2", (const char *const[]){"o:1:2", NULL});
    must_mean("o:{a}:{b}", "1:2:3", (const char *const[]){"o:1:2:3", NULL});
    must_mean("o:{a}/{b}", "1:2", (const char *const[]){"o:1/2", NULL});
    must_mean("{a}-{b}:{c}", "1:2:3", (const char *const[]){"1-2:3", NULL});
}

/* Which colon joins, and which is in a column's text, nothing says. */
static void every_way_to_split_an_item_is_a_key(void **state)
{
    (void)state;
    must_mean("o:{a}/{b}", "1:2:3", (const char *const[]){"o:1/2:3", "o:1:2/3", NULL});
}

static void an_item_of_too_few_columns_is_no_key(void **state)
{
    (void)state;
    must_mean("o:{a}:{b}", "1", (const char *const[]){NULL});
    must_mean("o:{a}/{b}", "1", (const char *const[]){NULL});
    must_mean("o:{a}:{b}", "", (const char *const[]){NULL});
}

static void items_are_any_bytes(void **state)
{
    struct meant meant;
    (void)state;
    mean(&meant, "item:{id}", (struct span){"\0\r\n\xff", 4}, ROOM);
    assert_int_equal(meant.count, 1);
    struct span key = item_key_span(&meant.text, meant.keys[0]);
    assert_int_equal(key.length, 9);
    assert_memory_equal(key.at, "item:\0\r\n\xff", 9);
    finish(&meant);
}

static void more_keys_than_there_is_room_for_are_told(void **state)
{
    struct meant meant;
    (void)state;
    mean(&meant, "item:{id}", span_of("item:42"), 1);
    assert_int_equal(meant.count, -E2BIG);
    finish(&meant);
    mean(&meant, "item:{id}", span_of("42"), 0);
    assert_int_equal(meant.count, -E2BIG);
    finish(&meant);
    mean(&meant, "o:{a}/{b}", span_of("::::::::::::::::::::::::::::"), ROOM);
    assert_int_equal(meant.count, -E2BIG);
    finish(&meant);
}

/* What was appended before stays where it is. */
static void keys_are_added_to_those_before(void **state)
{
    struct meant meant;
    (void)state;
    mean(&meant, "item:{id}", span_of("1"), ROOM);
    struct item_key next;
    assert_int_equal(item_keys_add(&meant.form, span_of("2"), &meant.text, &next, 1), 1);
    assert_true(span_is(item_key_span(&meant.text, meant.keys[0]), "item:1"));
    assert_true(span_is(item_key_span(&meant.text, next), "item:2"));
    finish(&meant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_is_the_text_of_the_column),
        cmocka_unit_test(an_item_may_be_the_whole_key),
        cmocka_unit_test(columns_are_joined_by_colons),
        cmocka_unit_test(every_way_to_split_an_item_is_a_key),
        cmocka_unit_test(an_item_of_too_few_columns_is_no_key),
        cmocka_unit_test(items_are_any_bytes),
        cmocka_unit_test(more_keys_than_there_is_room_for_are_told),
        cmocka_unit_test(keys_are_added_to_those_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
