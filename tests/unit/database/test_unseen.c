/* A key is unseen from the moment the log tells of its change until a snapshot has the transaction
 * behind it, and no longer; bounded memory never makes it shorter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "database/unseen.h"

#include <stdio.h>
#include <stdlib.h>

static struct unseen *create(size_t max)
{
    return unseen_create(&(struct unseen_options){.max_remembered = max});
}

static bool has(const struct unseen *unseen, const char *key)
{
    return unseen_has(unseen, key_make(0, span_of(key)));
}

static void change(struct unseen *unseen, const char *key, uint32_t xid)
{
    unseen_changed(unseen, key_make(0, span_of(key)), xid);
}

static void a_change_is_unseen_until_its_transaction_is_over(void **state)
{
    struct unseen *unseen = create(100);
    (void)state;
    change(unseen, "a", 7);
    assert_true(has(unseen, "a"));
    assert_false(has(unseen, "b"));
    unseen_learn(unseen, "5:6:"); /* from before it began */
    assert_true(has(unseen, "a"));
    unseen_learn(unseen, "7:9:7");
    assert_true(has(unseen, "a"));
    unseen_learn(unseen, "5:9:5");
    assert_false(has(unseen, "a"));
    unseen_destroy(unseen);
}

static void what_is_over_already_is_seen_at_once(void **state)
{
    struct unseen *unseen = create(100);
    (void)state;
    unseen_learn(unseen, "7:9:7");
    change(unseen, "a", 8);
    unseen_all_changed(unseen, 6);
    assert_false(has(unseen, "a"));
    change(unseen, "a", 7);
    assert_true(has(unseen, "a"));
    unseen_destroy(unseen);
}

/* Several rows may have one key: their transactions do not wait for each other. */
static void each_transaction_of_a_key_must_be_over(void **state)
{
    static const char *const orders[][2] = {{"7:9:7", "9:9:"}, {"8:9:8", "9:9:"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct unseen *unseen = create(100);
        change(unseen, "a", 7);
        change(unseen, "a", 8);
        change(unseen, "a", 8);
        change(unseen, "a", 7);
        unseen_learn(unseen, orders[i][0]);
        assert_true(has(unseen, "a"));
        unseen_learn(unseen, orders[i][1]);
        assert_false(has(unseen, "a"));
        unseen_destroy(unseen);
    }
}

static void a_truncation_hides_every_key(void **state)
{
    struct unseen *unseen = create(100);
    (void)state;
    unseen_all_changed(unseen, 7);
    unseen_all_changed(unseen, 7);
    assert_true(has(unseen, "a"));
    unseen_learn(unseen, "8:8:");
    assert_false(has(unseen, "a"));
    unseen_destroy(unseen);
}

static void keys_beyond_the_bound_are_unseen_all_together(void **state)
{
    struct unseen *unseen = create(3); /* one transaction, two keys */
    (void)state;
    change(unseen, "a", 7);
    change(unseen, "b", 7);
    assert_false(has(unseen, "c"));
    change(unseen, "c", 7);
    assert_true(has(unseen, "c"));
    assert_true(has(unseen, "d"));
    unseen_learn(unseen, "9:9:");
    assert_false(has(unseen, "a"));
    assert_false(has(unseen, "c"));
    change(unseen, "d", 10); /* there is room again */
    assert_true(has(unseen, "d"));
    assert_false(has(unseen, "e"));
    unseen_destroy(unseen);
}

static void transactions_beyond_the_bound_are_waited_for_by_a_horizon(void **state)
{
    struct unseen *unseen = create(2);
    (void)state;
    change(unseen, "a", 7);
    change(unseen, "b", 9);
    change(unseen, "c", 8);
    assert_true(has(unseen, "d"));
    unseen_learn(unseen, "9:10:9");
    assert_true(has(unseen, "b"));
    unseen_learn(unseen, "10:10:");
    assert_false(has(unseen, "b"));
    unseen_destroy(unseen);
}

static void follow(struct unseen *unseen, const char *begin, bool alone)
{
    struct snapshot snapshot;
    assert_int_equal(snapshot_read(&snapshot, begin), 0);
    unseen_follow(unseen, &snapshot, alone);
}

static void a_new_log_hides_all_until_what_it_does_not_tell_is_over(void **state)
{
    struct unseen *unseen = create(100);
    (void)state;
    follow(unseen, "18:20:18", true);
    assert_true(has(unseen, "a"));
    unseen_learn(unseen, "18:25:18,19"); /* 19 was over when the log began */
    assert_true(has(unseen, "a"));
    unseen_learn(unseen, "18:19:18");
    assert_true(has(unseen, "a"));
    unseen_learn(unseen, "18:25:18,20"); /* 18 ran then: the log will tell of it */
    assert_false(has(unseen, "a"));
    unseen_destroy(unseen);
}

/* A crash may give an id out again that a snapshot from before it has as over. */
static void a_new_log_makes_older_snapshots_void(void **state)
{
    struct unseen *unseen = create(100);
    (void)state;
    unseen_learn(unseen, "30:30:");
    follow(unseen, "20:20:", false);
    change(unseen, "a", 25);
    unseen_learn(unseen, "25:26:25");
    assert_true(has(unseen, "a"));
    assert_false(has(unseen, "b"));
    unseen_destroy(unseen);
}

/* Another server's ids may be behind those that were told before. */
static void a_log_that_is_followed_alone_forgets_what_was_told(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct unseen *unseen = create(100);
        follow(unseen, "90:90:", true);
        change(unseen, "a", 100);
        follow(unseen, "20:20:", alone);
        unseen_learn(unseen, "20:20:");
        assert_int_equal(has(unseen, "a"), !alone);
        assert_false(has(unseen, "b"));
        unseen_destroy(unseen);
    }
}

static void what_cannot_be_read_shows_nothing(void **state)
{
    struct unseen *unseen = create(100);
    (void)state;
    change(unseen, "a", 7);
    unseen_learn(unseen, "what?");
    assert_true(has(unseen, "a"));
    unseen_learn(unseen, "9:9:");
    unseen_learn(unseen, "");
    change(unseen, "a", 7);
    assert_true(has(unseen, "a"));
    unseen_destroy(unseen);
}

static void count_wanted(void *arg)
{
    ++*(int *)arg;
}

static void a_snapshot_is_not_wanted_all_the_time(void **state)
{
    int wanted = 0;
    uint64_t began = clock_ms();
    struct unseen *unseen = unseen_create(
        &(struct unseen_options){.max_remembered = 10, .wanted = count_wanted, .arg = &wanted});
    (void)state;
    for (int i = 0; i < 1000; i++)
        unseen_hurry(unseen);
    assert_in_range(wanted, 1, 1 + (clock_ms() - began) / 10);
    unseen_destroy(unseen);
}

/* ---- against a plain model: a list of changes, each with its transaction ---- */

enum { STEPS = 20000, XIDS = 12, KEYS = 6, CHANGES = 400 };

struct model {
    struct {
        uint32_t xid;
        int key; /* -1: all */
    } changes[CHANGES];
    int count;
    bool runs[XIDS];
    uint32_t first; /* id of runs[0] */
};

static void model_end(struct model *model, uint32_t xid)
{
    int kept = 0;
    for (int i = 0; i < model->count; i++)
        if (model->changes[i].xid != xid)
            model->changes[kept++] = model->changes[i];
    model->count = kept;
}

static void print_snapshot(struct model *model, char *text, size_t size)
{
    uint32_t low = 0;
    while (low < XIDS && !model->runs[low])
        low++;
    size_t used = (size_t)snprintf(text, size, "%llu:%llu:", (1ULL << 32) + model->first + low,
                                   (1ULL << 32) + model->first + XIDS);
    const char *comma = "";
    for (uint32_t i = low; i < XIDS; i++) {
        if (!model->runs[i])
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%llu", comma,
                                 (1ULL << 32) + model->first + i);
        comma = ",";
    }
}

static void learn(struct unseen *unseen, struct model *model)
{
    char text[500];
    print_snapshot(model, text, sizeof text);
    unseen_learn(unseen, text);
    for (uint32_t i = 0; i < XIDS; i++)
        if (!model->runs[i])
            model_end(model, model->first + i);
    for (int i = model->count; i-- > 0;)
        if ((int32_t)(model->changes[i].xid - model->first) < 0)
            model_end(model, model->changes[i].xid);
}

static void tell(struct unseen *unseen, struct model *model)
{
    uint32_t place = (uint32_t)rand() % XIDS;
    int key = rand() % 50 ? rand() % KEYS : -1;
    char text[2] = {(char)('a' + key), '\0'};
    if (!model->runs[place] || model->count == CHANGES)
        return;
    model->changes[model->count].xid = model->first + place;
    model->changes[model->count++].key = key;
    if (key < 0)
        unseen_all_changed(unseen, model->first + place);
    else
        change(unseen, text, model->first + place);
}

static void compare(const struct unseen *unseen, const struct model *model, bool exact)
{
    for (int key = 0; key < KEYS; key++) {
        char text[2] = {(char)('a' + key), '\0'};
        bool wanted = false;
        for (int i = 0; i < model->count; i++)
            wanted |= model->changes[i].key == key || model->changes[i].key == -1;
        if (wanted || exact)
            assert_int_equal(has(unseen, text), wanted);
    }
}

/* Ids wrap on the way. A small bound may hide more than is needed, never less. */
static void run_random(size_t max)
{
    struct unseen *unseen = create(max);
    struct model model = {.first = UINT32_MAX - STEPS / 40};
    srand(4711);
    for (int step = 0; step < STEPS; step++) {
        int what = rand() % 20;
        if (what < 12)
            tell(unseen, &model);
        else if (what < 15)
            model.runs[rand() % XIDS] = false;
        else if (what < 16 && !model.runs[0]) { /* the next one begins */
            memmove(model.runs, model.runs + 1, (XIDS - 1) * sizeof *model.runs);
            model.runs[XIDS - 1] = true;
            model.first++;
        } else if (what >= 18)
            learn(unseen, &model);
        compare(unseen, &model, max >= CHANGES * 2);
    }
    unseen_destroy(unseen);
}

static void random_changes_are_unseen_as_long_as_a_plain_model_says(void **state)
{
    (void)state;
    run_random(2 * CHANGES);
    run_random(5);
    run_random(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_unseen_until_its_transaction_is_over),
        cmocka_unit_test(what_is_over_already_is_seen_at_once),
        cmocka_unit_test(each_transaction_of_a_key_must_be_over),
        cmocka_unit_test(a_truncation_hides_every_key),
        cmocka_unit_test(keys_beyond_the_bound_are_unseen_all_together),
        cmocka_unit_test(transactions_beyond_the_bound_are_waited_for_by_a_horizon),
        cmocka_unit_test(a_new_log_hides_all_until_what_it_does_not_tell_is_over),
        cmocka_unit_test(a_new_log_makes_older_snapshots_void),
        cmocka_unit_test(a_log_that_is_followed_alone_forgets_what_was_told),
        cmocka_unit_test(what_cannot_be_read_shows_nothing),
        cmocka_unit_test(a_snapshot_is_not_wanted_all_the_time),
        cmocka_unit_test(random_changes_are_unseen_as_long_as_a_plain_model_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
