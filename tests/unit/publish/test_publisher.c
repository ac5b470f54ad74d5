/* What keyspaces publish: which items a key stands for, and which bitmaps hear of it. */
#include "publish/publisher.h"

#include "fakes/clock.h"
#include "fakes/config_file.h"
#include "fakes/redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONFIG                                                                                     \
    "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n"                                   \
    "  - {name: plain, key: \"plain:{id}\", table: a, value: v}\n"                                 \
    "  - {name: pairs, key: \"pair/{a}-{b}\", table: b, value: v, publish: {key: p}}\n"            \
    "  - {name: keys, key: \"key:{id}\", table: c, value: v, publish: {key: q, items: key}}\n"

enum { PLAIN, PAIRS, KEYS, KEYSPACES };

struct bench {
    struct publisher *publisher;
    struct shared_config *shared;
    struct view *view;
};

static struct generation *generation_of(uint64_t number)
{
    struct generation *generation = generation_create(number, KEYSPACES);
    struct bitmap_shape shape = bitmap_shape_for(BITMAP_GUAVA_64, 1000, 0.0001);
    const char *error;
    for (int i = 0; i < KEYSPACES; i++)
        assert_int_equal(filter_create(&generation->filters[i],
                                       &(struct filter_options){.kind = FILTER_CUCKOO,
                                                                .capacity = 100,
                                                                .false_positive_rate = 0.01},
                                       &error),
                         0);
    generation->bitmaps[PAIRS] = bitmap_create(&shape);
    generation->bitmaps[KEYS] = bitmap_create(&shape);
    return generation;
}

/* By this generation, of which the view takes the reference. */
static void use(struct bench *b, struct generation *generation, enum keyspace_state state)
{
    enum keyspace_state states[KEYSPACES] = {state, state, state};
    struct view *before = b->view;
    b->view = view_create(b->shared, generation, states, 1);
    generation_release(generation);
    publisher_use_view(b->publisher, b->view);
    view_release(before);
}

static void begin(struct bench *b)
{
    fake_redis_reset();
    now_ms = 1000;
    *b = (struct bench){.shared = shared_config_create(config_from_text(CONFIG))};
    b->publisher = publisher_create(b->shared->config, NULL);
    use(b, generation_of(1), KEYSPACE_GUARDING);
}

static void end(struct bench *b)
{
    while (fake_redis.count)
        fake_redis_ends(REDIS_DOWN);
    publisher_destroy(b->publisher);
    view_release(b->view);
    shared_config_release(b->shared);
}

static void hear(struct bench *b, enum cause cause, int keyspace, const char *key,
                 struct generation *generation)
{
    struct key_change change = change_of_key(cause, key_make(keyspace, span_of(key)));
    change.generation = generation;
    publisher_hear(b->publisher, &change);
}

static bool is_in(const struct bench *b, int keyspace, const char *item)
{
    const struct published *published = publisher_of(b->publisher, (size_t)keyspace);
    return bitmap_contains(published->image.at[0], item, strlen(item));
}

static void a_key_is_in_by_its_columns_or_as_a_whole(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    assert_null(publisher_of(b.publisher, PLAIN));
    hear(&b, CAUSE_INSERTED, PLAIN, "plain:1", b.view->generation);
    hear(&b, CAUSE_INSERTED, KEYS, "key:1", b.view->generation);
    assert_true(is_in(&b, KEYS, "key:1"));
    assert_false(is_in(&b, KEYS, "1"));
    hear(&b, CAUSE_INSERTED, PAIRS, "pair/x-y-z", b.view->generation);
    assert_true(is_in(&b, PAIRS, "x:y-z"));
    assert_true(is_in(&b, PAIRS, "x-y:z")); /* whichever it was */
    assert_false(is_in(&b, PAIRS, "x:y:z"));
    hear(&b, CAUSE_UPDATED, KEYS, "key:2", b.view->generation);
    assert_false(is_in(&b, KEYS, "key:2"));
    end(&b);
}

static void a_key_with_too_many_ways_to_read_it_ends_the_lease(void **state)
{
    struct bench b;
    char key[200] = "pair/";
    (void)state;
    begin(&b);
    memset(key + 5, '-', 100);
    hear(&b, CAUSE_INSERTED, PAIRS, key, b.view->generation);
    assert_non_null(strstr(publisher_of(b.publisher, PAIRS)->error, "too many ways"));
    end(&b);
}

/* What is read until it takes over must know what the candidate knows. */
static void a_candidates_rows_are_in_its_bitmap_and_in_the_one_that_is_read(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    struct generation *candidate = generation_of(2);
    hear(&b, CAUSE_INSERTED, KEYS, "key:1", candidate);
    assert_true(is_in(&b, KEYS, "key:1"));
    assert_true(bitmap_contains(candidate->bitmaps[KEYS], "key:1", 5));
    use(&b, candidate, KEYSPACE_GUARDING);
    assert_null(candidate->bitmaps[KEYS]); /* taken */
    assert_int_equal(publisher_of(b.publisher, KEYS)->from, 2);
    assert_true(is_in(&b, KEYS, "key:1"));
    end(&b);
}

static void only_who_guards_and_enforces_may_give_a_lease(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    assert_true(publisher_of(b.publisher, KEYS)->may_lease);
    b.view->generation->references++;
    use(&b, b.view->generation, KEYSPACE_PASSING);
    assert_false(publisher_of(b.publisher, KEYS)->may_lease);
    b.shared->config->keyspaces[KEYS].enforce = false;
    b.view->generation->references++;
    use(&b, b.view->generation, KEYSPACE_GUARDING);
    assert_false(publisher_of(b.publisher, KEYS)->may_lease);
    assert_true(publisher_of(b.publisher, PAIRS)->may_lease);
    publisher_end(b.publisher);
    assert_false(publisher_of(b.publisher, PAIRS)->may_lease);
    end(&b);
}

static void rows_that_are_gone_are_counted_for_the_generation_in_force(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    struct generation *candidate = generation_of(2);
    hear(&b, CAUSE_DELETED, KEYS, "key:1", b.view->generation);
    hear(&b, CAUSE_DELETED, KEYS, "key:1", candidate);
    assert_int_equal(publisher_of(b.publisher, KEYS)->deleted, 1);
    generation_release(candidate);
    end(&b);
}

static void without_anything_to_publish_there_is_no_publisher(void **state)
{
    struct config *config =
        config_from_text("cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n"
                         "  - {name: plain, key: \"plain:{id}\", table: a, value: v}\n");
    (void)state;
    assert_null(publisher_create(config, NULL));
    assert_null(publisher_of(NULL, 0));
    assert_null(publisher_worn(NULL));
    publisher_tick(NULL, 0);
    publisher_destroy(NULL);
    config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_in_by_its_columns_or_as_a_whole),
        cmocka_unit_test(a_key_with_too_many_ways_to_read_it_ends_the_lease),
        cmocka_unit_test(a_candidates_rows_are_in_its_bitmap_and_in_the_one_that_is_read),
        cmocka_unit_test(only_who_guards_and_enforces_may_give_a_lease),
        cmocka_unit_test(rows_that_are_gone_are_counted_for_the_generation_in_force),
        cmocka_unit_test(without_anything_to_publish_there_is_no_publisher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
