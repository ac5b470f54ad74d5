/* One published filter, with a cache that answers when the test says so. */
#include "publish/published.h"

#include "fakes/clock.h"
#include "fakes/redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CACHES_CLOCK = 1000000 }; /* ahead of ours */

static struct keyspace keyspace;

static void begin(struct published *published, bool grow)
{
    fake_redis_reset();
    keyspace =
        (struct keyspace){.name = (char *)"items", .publish = {.key = (char *)"p", .grow = grow}};
    now_ms = 10000;
    published_init(published, &keyspace, NULL, "me");
}

static void end(struct published *published)
{
    while (fake_redis.count)
        fake_redis_ends(REDIS_DOWN);
    published_finish(published);
}

static struct bitmap *bitmap_for(uint64_t items)
{
    struct bitmap_shape shape = bitmap_shape_for(BITMAP_GUAVA_64, items, 0.01);
    return bitmap_create(&shape);
}

/* The oldest command is of this name, and for a script of this many words; it is answered. */
static void answers(const char *name, const char *word)
{
    char text[64];
    assert_true(fake_redis.count > 0);
    assert_string_equal(fake_redis.calls[0].keys[0], name);
    snprintf(text, sizeof text, "%llu %s", (unsigned long long)now_ms + CACHES_CLOCK,
             word ? word : "");
    struct redis_answer answer = {.outcome = REDIS_DONE, .found = true, .error = ""};
    if (word)
        answer.text = (struct redis_bytes){text, strlen(text)};
    fake_redis_answer(&answer);
}

static void refuses(const char *name)
{
    assert_string_equal(fake_redis.calls[0].keys[0], name);
    fake_redis_ends(REDIS_REFUSED);
}

/* Of a script, its argument behind the keys. */
static const char *argument(size_t call, size_t number)
{
    const struct fake_call *of = &fake_redis.calls[call];
    return of->keys[3 + (size_t)strtoul(of->keys[2], NULL, 10) + number];
}

static void upload_all(void)
{
    answers("DEL", NULL);
    answers("SETRANGE", NULL);
    answers("SETRANGE", NULL);
    answers("PEXPIRE", NULL);
}

static void become_live(struct published *published)
{
    published_permit(published, true);
    published_renew(published, bitmap_for(100), 1, 1000);
    published_tick(published, now_ms);
    answers("EVAL", "free");
    while (strcmp(fake_redis.calls[0].keys[0], "EVAL") != 0)
        answers(fake_redis.calls[0].keys[0], NULL);
    answers("EVAL", "kept");
    assert_int_equal(published->state, PUBLISHED_LIVE);
}

static void add(struct published *published, const char *item)
{
    struct span span = {item, strlen(item)};
    published_add(published, &span, 1);
}

static void it_is_asked_for_then_written_then_put_in_its_place(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    published_tick(&published, now_ms);
    assert_int_equal(fake_redis.count, 0); /* there is nothing yet */
    published_renew(&published, bitmap_for(100), 1, 1000);
    published_tick(&published, now_ms);
    assert_int_equal(fake_redis.count, 0); /* nothing guards */
    published_permit(&published, true);
    published_tick(&published, now_ms);
    assert_string_equal(argument(0, 1), "drop"); /* whatever stands there is not known */
    answers("EVAL", "free");
    assert_string_equal(fake_redis.calls[0].keys[1], "p:building:me-1");
    upload_all();
    assert_int_equal(published.state, PUBLISHED_COMMITTING);
    assert_string_equal(argument(0, 2), "0"); /* nothing is known yet: no lease */
    answers("EVAL", "kept");
    assert_int_equal(published.state, PUBLISHED_LIVE);
    assert_int_equal(fake_redis.count, 0);
    end(&published);
}

static void a_lease_waits_for_the_bits_before_it_and_ends_by_the_caches_clock(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    become_live(&published);
    add(&published, "1");
    published_known(&published, now_ms + 700);
    assert_int_equal(fake_redis.count, 1);
    now_ms += 50; /* it takes its time */
    answers("BITFIELD", NULL);
    assert_int_equal(fake_redis.count, 1);
    char until[24];
    snprintf(until, sizeof until, "%llu", (unsigned long long)now_ms - 50 + 700 + CACHES_CLOCK);
    assert_string_equal(argument(0, 2), until);
    answers("EVAL", "kept");
    add(&published, "1"); /* nothing new */
    assert_int_equal(fake_redis.count, 0);
    end(&published);
}

static void a_bit_that_is_refused_ends_the_lease_and_all_is_written_again(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    become_live(&published);
    add(&published, "1");
    published_known(&published, now_ms + 700);
    refuses("BITFIELD");
    assert_int_equal(published.state, PUBLISHED_WAITING);
    assert_int_equal(fake_redis.count, 1); /* no renewal, but the lease's end */
    assert_int_equal(fake_redis.calls[0].count, 6);
    answers("EVAL", "free");
    now_ms += 1000;
    published_tick(&published, now_ms);
    answers("EVAL", "free");
    assert_int_equal(published.state, PUBLISHED_UPLOADING);
    end(&published);
}

static void what_another_guard_holds_is_left_alone_until_its_lease_is_gone_for_a_while(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    published_permit(&published, true);
    published_renew(&published, bitmap_for(100), 1, 1000);
    static const char *const words[] = {"other", "lapsed", "lapsed", "other", "lapsed", "lapsed"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        published_tick(&published, now_ms);
        answers("EVAL", words[i]);
        assert_int_equal(published.state, PUBLISHED_WAITING);
        published_tick(&published, now_ms);
        assert_int_equal(fake_redis.count, 0);
        now_ms += 500;
    }
    published_tick(&published, now_ms);
    answers("EVAL", "lapsed");
    assert_int_equal(published.state, PUBLISHED_UPLOADING);
    end(&published);
}

static void what_is_read_is_kept_true_until_another_takes_its_place(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    become_live(&published);
    published_renew(&published, bitmap_for(5000), 2, 2000);
    published_tick(&published, now_ms);
    assert_string_equal(argument(0, 1), ""); /* its lease stands */
    add(&published, "1");
    published_known(&published, now_ms + 700);
    answers("EVAL", "free");
    assert_string_equal(fake_redis.calls[0].keys[1], "p"); /* the bits of the one before */
    answers("BITFIELD", NULL);
    add(&published, "2");
    assert_int_equal(published.old.count, 1);
    while (published.state != PUBLISHED_COMMITTING)
        answers(fake_redis.calls[0].keys[0],
                strcmp(fake_redis.calls[0].keys[0], "EVAL") == 0 ? "kept" : NULL);
    assert_int_equal(published.old.count, 0);
    end(&published);
}

static void a_gap_between_two_generations_ends_the_lease_of_the_first(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    become_live(&published);
    published_renew(&published, bitmap_for(5000), 2, 2000);
    published_gap(&published);
    assert_int_equal(published.old.count, 0);
    assert_int_equal(fake_redis.calls[0].count, 6); /* the drop */
    answers("EVAL", "free");
    published_known(&published, now_ms + 700);
    assert_int_equal(fake_redis.count, 0);
    end(&published);
}

static void who_may_not_reject_gives_no_lease(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    become_live(&published);
    published_permit(&published, false);
    assert_int_equal(fake_redis.calls[0].count, 6);
    answers("EVAL", "free");
    published_known(&published, now_ms + 700);
    assert_int_equal(fake_redis.count, 0);
    published_permit(&published, true);
    published_known(&published, now_ms + 700);
    answers("EVAL", "lost"); /* another guard was here meanwhile */
    assert_int_equal(published.state, PUBLISHED_WAITING);
    end(&published);
}

static void one_that_grows_says_so_before_its_next_bits(void **state)
{
    struct published published;
    char item[16];
    (void)state;
    begin(&published, true);
    become_live(&published);
    for (unsigned i = 0; published.image.count == 1; i++) {
        snprintf(item, sizeof item, "%u", i);
        add(&published, item);
        while (fake_redis.count > 1 || published.image.count == 1)
            if (fake_redis.count)
                answers("BITFIELD", NULL);
            else
                break;
    }
    assert_string_equal(fake_redis.calls[0].keys[0], "EVAL");
    assert_string_equal(fake_redis.calls[0].keys[6], "p-1");
    add(&published, "one more");
    assert_string_equal(fake_redis.calls[1].keys[1], "p-1");
    end(&published);
}

static void a_cache_that_comes_back_is_written_anew(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    become_live(&published);
    add(&published, "1");
    fake_redis.up = false;
    fake_redis_ends(REDIS_DOWN);
    published_cache_is(&published, false);
    published_known(&published, now_ms + 700);
    published_tick(&published, now_ms + 5000);
    assert_int_equal(fake_redis.count, 0);
    fake_redis.up = true;
    published_cache_is(&published, true);
    published_tick(&published, now_ms);
    assert_string_equal(argument(0, 1), "drop");
    end(&published);
}

/* What one node acknowledged the other may lack, and counts tell nothing of answers of two. */
static void in_a_cluster_an_attempt_keeps_to_its_node_and_the_next_begins_behind_it(void **state)
{
    struct published published;
    (void)state;
    begin(&published, false);
    fake_redis.is_led = true;
    become_live(&published);
    add(&published, "1");
    fake_redis.owner = 1;
    add(&published, "2");
    assert_ptr_equal(fake_redis.calls[0].redis, fake_redis_node(0));
    assert_ptr_equal(fake_redis.calls[1].redis, fake_redis_node(0));
    published_node_is(&published, 1, false);
    assert_int_equal(published.state, PUBLISHED_LIVE);
    published_node_is(&published, 0, false);
    assert_int_equal(published.state, PUBLISHED_WAITING);
    while (fake_redis.count) {
        size_t count = fake_redis.count;
        published_tick(&published, now_ms);
        assert_int_equal(fake_redis.count, count); /* not before the last has its answer */
        fake_redis_ends(REDIS_DOWN);
    }
    published_tick(&published, now_ms);
    assert_int_equal(fake_redis.count, 1);
    assert_ptr_equal(fake_redis.calls[0].redis, fake_redis_node(1));
    assert_string_equal(argument(0, 1), "drop");
    answers("EVAL", "free");
    assert_ptr_equal(fake_redis.calls[0].redis, fake_redis_node(1));
    end(&published);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_for_then_written_then_put_in_its_place),
        cmocka_unit_test(a_lease_waits_for_the_bits_before_it_and_ends_by_the_caches_clock),
        cmocka_unit_test(a_bit_that_is_refused_ends_the_lease_and_all_is_written_again),
        cmocka_unit_test(
            what_another_guard_holds_is_left_alone_until_its_lease_is_gone_for_a_while),
        cmocka_unit_test(what_is_read_is_kept_true_until_another_takes_its_place),
        cmocka_unit_test(a_gap_between_two_generations_ends_the_lease_of_the_first),
        cmocka_unit_test(who_may_not_reject_gives_no_lease),
        cmocka_unit_test(one_that_grows_says_so_before_its_next_bits),
        cmocka_unit_test(a_cache_that_comes_back_is_written_anew),
        cmocka_unit_test(in_a_cluster_an_attempt_keeps_to_its_node_and_the_next_begins_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
