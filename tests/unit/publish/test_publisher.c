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

/* `keys` of it may publish otherwise. */
#define CONFIG_WITH(keys)                                                                          \
    "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n"                                   \
    "  - {name: plain, key: \"plain:{id}\", table: a, value: v}\n"                                 \
    "  - {name: pairs, key: \"pair/{a}-{b}\", table: b, value: v, publish: {key: p}}\n"            \
    "  - {name: keys, key: \"key:{id}\", table: c, value: v" keys "}\n"
#define CONFIG CONFIG_WITH(", publish: {key: q, items: key}")

enum { PLAIN, PAIRS, KEYS, KEYSPACES };

struct bench {
    struct publisher *publisher;
    struct shared_config *shared;
    struct view *view;
};

/* Built for what is wanted now. */
static struct generation *generation_of(struct bench *b, uint64_t number)
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
    generation_built_for(generation, b->shared);
    for (int i = 0; i < KEYSPACES; i++)
        if (b->shared->config->keyspaces[i].publish.key)
            generation->bitmaps[i] = bitmap_create(&shape);
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
    b->publisher = publisher_create(NULL);
    use(b, generation_of(b, 1), KEYSPACE_GUARDING);
}

/* The file is read again; the generation stays. */
static void want(struct bench *b, const char *text)
{
    shared_config_release(b->shared);
    b->shared = shared_config_create(config_from_text(text));
    b->view->generation->references++;
    use(b, b->view->generation, KEYSPACE_GUARDING);
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
    struct generation *candidate = generation_of(&b, 2);
    memset(key + 5, '-', 100);
    assert_null(publisher_worn(b.publisher));
    hear(&b, CAUSE_INSERTED, PAIRS, key, candidate);
    const struct published *published = publisher_of(b.publisher, PAIRS);
    assert_non_null(strstr(published->error, "too many ways"));
    assert_int_equal(published->image.count, 0); /* the row is not in it, and never will be */
    assert_null(candidate->bitmaps[PAIRS]);
    assert_non_null(publisher_worn(b.publisher)); /* a build reads its columns */
    use(&b, candidate, KEYSPACE_GUARDING);
    assert_non_null(publisher_worn(b.publisher));
    use(&b, generation_of(&b, 3), KEYSPACE_GUARDING);
    assert_null(publisher_worn(b.publisher));
    assert_int_equal(publisher_of(b.publisher, PAIRS)->state, PUBLISHED_WAITING);
    end(&b);
}

/* What is read until it takes over must know what the candidate knows. */
static void a_candidates_rows_are_in_its_bitmap_and_in_the_one_that_is_read(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    struct generation *candidate = generation_of(&b, 2);
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
    struct generation *candidate = generation_of(&b, 2);
    hear(&b, CAUSE_DELETED, KEYS, "key:1", b.view->generation);
    hear(&b, CAUSE_DELETED, KEYS, "key:1", candidate);
    assert_int_equal(publisher_of(b.publisher, KEYS)->deleted, 1);
    generation_release(candidate);
    end(&b);
}

static void no_publisher_publishes_nothing(void **state)
{
    (void)state;
    assert_null(publisher_of(NULL, 0));
    assert_null(publisher_worn(NULL));
    publisher_tick(NULL, 0);
    publisher_destroy(NULL);
}

/* ---- another configuration ---- */

static const struct publish *settings_of(const struct bench *b, int keyspace)
{
    return &publisher_of(b->publisher, (size_t)keyspace)->keyspace->publish;
}

static void what_is_wanted_otherwise_comes_with_the_next_generation(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    struct generation *older = generation_of(&b, 2);
    want(&b, CONFIG_WITH(", publish: {key: r}"));
    assert_string_equal(settings_of(&b, KEYS)->key, "q");
    assert_int_equal(publisher_of(b.publisher, KEYS)->image.count, 1);
    struct generation *candidate = generation_of(&b, 3);
    hear(&b, CAUSE_INSERTED, KEYS, "key:1", candidate);
    assert_true(is_in(&b, KEYS, "key:1"));
    assert_true(bitmap_contains(candidate->bitmaps[KEYS], "1", 1)); /* columns, by now */
    assert_false(bitmap_contains(candidate->bitmaps[KEYS], "key:1", 5));
    use(&b, candidate, KEYSPACE_GUARDING);
    assert_string_equal(settings_of(&b, KEYS)->key, "r");
    assert_true(is_in(&b, KEYS, "1"));
    use(&b, older, KEYSPACE_GUARDING); /* nothing that was begun before is taken for it */
    assert_string_equal(settings_of(&b, KEYS)->key, "r");
    assert_int_equal(publisher_of(b.publisher, KEYS)->state, PUBLISHED_EMPTY);
    end(&b);
}

static void what_is_wanted_anew_waits_for_a_generation(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    want(&b, CONFIG_WITH(""));
    assert_null(publisher_of(b.publisher, KEYS));
    want(&b, CONFIG);
    assert_int_equal(publisher_of(b.publisher, KEYS)->state, PUBLISHED_EMPTY);
    assert_string_equal(publisher_of(b.publisher, KEYS)->error, "");
    use(&b, generation_of(&b, 2), KEYSPACE_GUARDING);
    assert_int_equal(publisher_of(b.publisher, KEYS)->state, PUBLISHED_WAITING);
    end(&b);
}

static void a_bitmap_that_nobody_wanted_for_a_while_lacks_no_row(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    struct generation *candidate = generation_of(&b, 2);
    want(&b, CONFIG_WITH(""));
    hear(&b, CAUSE_INSERTED, KEYS, "key:1", candidate); /* while it catches up */
    use(&b, candidate, KEYSPACE_GUARDING);
    hear(&b, CAUSE_INSERTED, KEYS, "key:2", candidate); /* and in force */
    want(&b, CONFIG);
    assert_int_equal(publisher_of(b.publisher, KEYS)->from, 2);
    assert_true(is_in(&b, KEYS, "key:1"));
    assert_true(is_in(&b, KEYS, "key:2"));
    end(&b);
}

/* How many of the commands that wait for an answer have this word, which none of them is. */
static size_t asked_with(const char *word)
{
    size_t count = 0;
    for (size_t i = 0; i < fake_redis.count; i++)
        for (size_t k = 0; k < fake_redis.calls[i].count; k++)
            count += strcmp(fake_redis.calls[i].keys[k], word) == 0;
    return count;
}

static void what_is_not_wanted_is_deleted_as_soon_as_the_cache_is_there(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    fake_redis.up = false;
    want(&b, CONFIG_WITH(""));
    assert_null(publisher_of(b.publisher, KEYS));
    assert_int_equal(fake_redis.count, 0);
    fake_redis.up = true;
    publisher_tick(b.publisher, now_ms);
    assert_int_equal(asked_with("q"), 1);
    while (fake_redis.count) /* the connection breaks */
        fake_redis_ends(REDIS_DOWN);
    want(&b, CONFIG);
    use(&b, generation_of(&b, 2), KEYSPACE_GUARDING);
    publisher_tick(b.publisher, now_ms);
    assert_int_equal(asked_with("q"), 2); /* again, and before another is begun under the name */
    assert_int_equal(fake_redis.calls[0].count, 3 + 4 + 1);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_in_by_its_columns_or_as_a_whole),
        cmocka_unit_test(a_key_with_too_many_ways_to_read_it_ends_the_lease),
        cmocka_unit_test(a_candidates_rows_are_in_its_bitmap_and_in_the_one_that_is_read),
        cmocka_unit_test(only_who_guards_and_enforces_may_give_a_lease),
        cmocka_unit_test(rows_that_are_gone_are_counted_for_the_generation_in_force),
        cmocka_unit_test(no_publisher_publishes_nothing),
        cmocka_unit_test(what_is_wanted_otherwise_comes_with_the_next_generation),
        cmocka_unit_test(what_is_wanted_anew_waits_for_a_generation),
        cmocka_unit_test(a_bitmap_that_nobody_wanted_for_a_while_lacks_no_row),
        cmocka_unit_test(what_is_not_wanted_is_deleted_as_soon_as_the_cache_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
