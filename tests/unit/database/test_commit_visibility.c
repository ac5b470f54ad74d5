/* A key is unseen from the moment the log tells of its change until a snapshot has the transaction
 * behind it, and no longer; bounded memory never makes it shorter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "database/commit_visibility.h"

#include <stdio.h>
#include <stdlib.h>

static struct commit_visibility *create(size_t max)
{
    return visibility_create(&(struct visibility_options){.max_remembered = max});
}

static bool has(const struct commit_visibility *visibility, const char *key)
{
    return visibility_has(visibility, key_make(0, span_of(key)));
}

static void change(struct commit_visibility *visibility, const char *key, uint32_t xid)
{
    visibility_changed(visibility, key_make(0, span_of(key)), xid);
}

static void a_change_is_unseen_until_its_transaction_is_over(void **state)
{
    struct commit_visibility *visibility = create(100);
    (void)state;
    change(visibility, "a", 7);
    assert_true(has(visibility, "a"));
    assert_false(has(visibility, "b"));
    visibility_learn(visibility, "5:6:"); /* from before it began */
    assert_true(has(visibility, "a"));
    visibility_learn(visibility, "7:9:7");
    assert_true(has(visibility, "a"));
    visibility_learn(visibility, "5:9:5");
    assert_false(has(visibility, "a"));
    visibility_destroy(visibility);
}

static void what_is_over_already_is_seen_at_once(void **state)
{
    struct commit_visibility *visibility = create(100);
    (void)state;
    visibility_learn(visibility, "7:9:7");
    change(visibility, "a", 8);
    visibility_all_changed(visibility, 0, 6);
    assert_false(has(visibility, "a"));
    change(visibility, "a", 7);
    assert_true(has(visibility, "a"));
    visibility_destroy(visibility);
}

/* Several rows may have one key: their transactions do not wait for each other. */
static void each_transaction_of_a_key_must_be_over(void **state)
{
    static const char *const orders[][2] = {{"7:9:7", "9:9:"}, {"8:9:8", "9:9:"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct commit_visibility *visibility = create(100);
        change(visibility, "a", 7);
        change(visibility, "a", 8);
        change(visibility, "a", 8);
        change(visibility, "a", 7);
        visibility_learn(visibility, orders[i][0]);
        assert_true(has(visibility, "a"));
        visibility_learn(visibility, orders[i][1]);
        assert_false(has(visibility, "a"));
        visibility_destroy(visibility);
    }
}

static void a_truncation_hides_every_key_of_its_keyspace(void **state)
{
    struct commit_visibility *visibility = create(100);
    (void)state;
    visibility_all_changed(visibility, 0, 7);
    visibility_all_changed(visibility, 0, 7);
    assert_true(has(visibility, "a"));
    assert_false(visibility_has(visibility, key_make(1, span_of("b"))));
    visibility_learn(visibility, "8:8:");
    assert_false(has(visibility, "a"));
    visibility_destroy(visibility);
}

static void keys_beyond_the_bound_are_unseen_all_together(void **state)
{
    struct commit_visibility *visibility = create(2);
    (void)state;
    change(visibility, "a", 7);
    change(visibility, "b", 7);
    assert_false(has(visibility, "c"));
    change(visibility, "c", 7);
    assert_true(has(visibility, "c"));
    assert_true(has(visibility, "d"));
    visibility_learn(visibility, "9:9:");
    assert_false(has(visibility, "a"));
    assert_false(has(visibility, "c"));
    change(visibility, "d", 10); /* there is room again */
    assert_true(has(visibility, "d"));
    assert_false(has(visibility, "e"));
    visibility_destroy(visibility);
}

/* An older one that still runs is no reason to wait for those that are over. */
static void one_that_changes_much_leaves_the_others_their_room(void **state)
{
    struct commit_visibility *visibility = create(2);
    (void)state;
    change(visibility, "a", 7);
    change(visibility, "b", 7);
    change(visibility, "c", 7);
    change(visibility, "d", 8);
    assert_true(has(visibility, "e"));
    visibility_learn(visibility, "5:9:5,8");
    assert_true(has(visibility, "d"));
    visibility_learn(visibility, "5:9:5");
    assert_false(has(visibility, "a"));
    assert_false(has(visibility, "d"));
    visibility_destroy(visibility);
}

static void transactions_beyond_the_bound_are_waited_for_by_a_horizon(void **state)
{
    struct commit_visibility *visibility = create(2);
    (void)state;
    change(visibility, "a", 7);
    change(visibility, "b", 9);
    change(visibility, "c", 8);
    assert_true(has(visibility, "d"));
    visibility_learn(visibility, "9:10:9");
    assert_true(has(visibility, "b"));
    visibility_learn(visibility, "10:10:");
    assert_false(has(visibility, "b"));
    visibility_destroy(visibility);
}

static void follow(struct commit_visibility *visibility, const char *begin, bool alone)
{
    struct snapshot snapshot;
    assert_int_equal(snapshot_read(&snapshot, begin), 0);
    visibility_follow(visibility, &snapshot, alone);
}

static void a_new_log_hides_all_until_what_it_does_not_tell_is_over(void **state)
{
    struct commit_visibility *visibility = create(100);
    (void)state;
    follow(visibility, "18:20:18", true);
    assert_true(has(visibility, "a"));
    visibility_learn(visibility, "18:25:18,19"); /* 19 was over when the log began */
    assert_true(has(visibility, "a"));
    visibility_learn(visibility, "18:19:18");
    assert_true(has(visibility, "a"));
    visibility_learn(visibility, "18:25:18,20"); /* 18 ran then: the log will tell of it */
    assert_false(has(visibility, "a"));
    visibility_destroy(visibility);
}

/* A crash may give an id out again that a snapshot from before it has as over. */
static void a_new_log_makes_older_snapshots_void(void **state)
{
    struct commit_visibility *visibility = create(100);
    (void)state;
    visibility_learn(visibility, "30:30:");
    follow(visibility, "20:20:", false);
    change(visibility, "a", 25);
    visibility_learn(visibility, "25:26:25");
    assert_true(has(visibility, "a"));
    assert_false(has(visibility, "b"));
    visibility_destroy(visibility);
}

/* Another server's ids may be behind those that were told before. */
static void a_log_that_is_followed_alone_forgets_what_was_told(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct commit_visibility *visibility = create(100);
        follow(visibility, "90:90:", true);
        change(visibility, "a", 100);
        follow(visibility, "20:20:", alone);
        visibility_learn(visibility, "20:20:");
        assert_int_equal(has(visibility, "a"), !alone);
        assert_false(has(visibility, "b"));
        visibility_destroy(visibility);
    }
}

static void what_cannot_be_read_shows_nothing(void **state)
{
    struct commit_visibility *visibility = create(100);
    (void)state;
    change(visibility, "a", 7);
    visibility_learn(visibility, "what?");
    assert_true(has(visibility, "a"));
    visibility_learn(visibility, "9:9:");
    visibility_learn(visibility, "");
    change(visibility, "a", 7);
    assert_true(has(visibility, "a"));
    visibility_destroy(visibility);
}

static void count_wanted(void *arg)
{
    ++*(int *)arg;
}

static void a_snapshot_is_not_wanted_all_the_time(void **state)
{
    int wanted = 0;
    uint64_t began = clock_ms();
    struct commit_visibility *visibility = visibility_create(
        &(struct visibility_options){.max_remembered = 10, .wanted = count_wanted, .arg = &wanted});
    (void)state;
    for (int i = 0; i < 1000; i++)
        visibility_hurry(visibility);
    assert_in_range(wanted, 1, 1 + (clock_ms() - began) / 10);
    visibility_destroy(visibility);
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

static void learn(struct commit_visibility *visibility, struct model *model)
{
    char text[500];
    print_snapshot(model, text, sizeof text);
    visibility_learn(visibility, text);
    for (uint32_t i = 0; i < XIDS; i++)
        if (!model->runs[i])
            model_end(model, model->first + i);
    for (int i = model->count; i-- > 0;)
        if ((int32_t)(model->changes[i].xid - model->first) < 0)
            model_end(model, model->changes[i].xid);
}

static void tell(struct commit_visibility *visibility, struct model *model)
{
    uint32_t place = (uint32_t)rand() % XIDS;
    int key = rand() % 50 ? rand() % KEYS : -1;
    char text[2] = {(char)('a' + key), '\0'};
    if (!model->runs[place] || model->count == CHANGES)
        return;
    model->changes[model->count].xid = model->first + place;
    model->changes[model->count++].key = key;
    if (key < 0)
        visibility_all_changed(visibility, 0, model->first + place);
    else
        change(visibility, text, model->first + place);
}

static void compare(const struct commit_visibility *visibility, const struct model *model,
                    bool exact)
{
    for (int key = 0; key < KEYS; key++) {
        char text[2] = {(char)('a' + key), '\0'};
        bool wanted = false;
        for (int i = 0; i < model->count; i++)
            wanted |= model->changes[i].key == key || model->changes[i].key == -1;
        if (wanted || exact)
            assert_int_equal(has(visibility, text), wanted);
    }
}

/* Ids wrap on the way. A small bound may hide more than is needed, never less. */
static void run_random(size_t max)
{
    struct commit_visibility *visibility = create(max);
    struct model model = {.first = UINT32_MAX - STEPS / 40};
    srand(4711);
    for (int step = 0; step < STEPS; step++) {
        int what = rand() % 20;
        if (what < 12)
            tell(visibility, &model);
        else if (what < 15)
            model.runs[rand() % XIDS] = false;
        else if (what < 16 && !model.runs[0]) { /* the next one begins */
            memmove(model.runs, model.runs + 1, (XIDS - 1) * sizeof *model.runs);
            model.runs[XIDS - 1] = true;
            model.first++;
        } else if (what >= 18)
            learn(visibility, &model);
        compare(visibility, &model, max >= CHANGES * 2);
    }
    visibility_destroy(visibility);
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
        cmocka_unit_test(a_truncation_hides_every_key_of_its_keyspace),
        cmocka_unit_test(keys_beyond_the_bound_are_unseen_all_together),
        cmocka_unit_test(one_that_changes_much_leaves_the_others_their_room),
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
