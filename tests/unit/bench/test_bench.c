/* What the benchmarks' figures stand on: durations by share, ids, and replies cut anywhere. */
#include "bitmap_batch.h"
#include "get.h"
#include "histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* 64 parts of a power of two. */
static void assert_close(uint64_t got, uint64_t wanted)
{
    assert_in_range(got, wanted, wanted + wanted / 64 + 1);
}

static void test_shares_are_those_of_the_sorted_durations(void **state)
{
    struct histogram histogram = {0};
    (void)state;
    for (uint64_t i = 1; i <= 1000000; i++)
        histogram_add(&histogram, 7919 * i % 1000003, 1);
    assert_close(histogram_at(&histogram, 0.5), 500000);
    assert_close(histogram_at(&histogram, 0.99), 990000);
    assert_close(histogram_at(&histogram, 0.999), 999000);
    assert_int_equal(histogram_at(&histogram, 1), histogram.longest);
}

static void test_a_few_long_ones_show_only_where_they_belong(void **state)
{
    struct histogram histogram = {0};
    (void)state;
    assert_int_equal(histogram_at(&histogram, 0.5), 0);
    histogram_add(&histogram, 40, 9980);
    histogram_add(&histogram, 5000000000u, 20);
    assert_int_equal(histogram_at(&histogram, 0.5), 40);
    assert_int_equal(histogram_at(&histogram, 0.99), 40);
    assert_int_equal(histogram_at(&histogram, 0.999), 5000000000u);
}

static void test_any_duration_has_a_cell(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 64; shift++) {
        struct histogram histogram = {0};
        uint64_t ns = UINT64_MAX >> shift;
        histogram_add(&histogram, ns, 1);
        assert_int_equal(histogram_at(&histogram, 0.5), ns);
    }
}

static void test_ranges_of_one_width_are_taken(void **state)
{
    struct id_range range;
    (void)state;
    assert_true(id_range_parse("100:999", &range));
    assert_int_equal(range.last, 999);
    assert_false(id_range_parse("99:100", &range));
    assert_false(id_range_parse("20:10", &range));
    assert_false(id_range_parse("10:20x", &range));
    assert_false(id_range_parse("10", &range));
    assert_false(id_range_parse("1000000000:9999999999", &range));
}

static void test_each_id_of_a_range_comes_once(void **state)
{
    const struct id_range range = {1000, 9999};
    char seen[10000] = {0};
    (void)state;
    for (uint64_t turn = 0; turn < 9000; turn++) {
        uint64_t id = id_range_at(&range, turn);
        assert_in_range(id, range.first, range.last);
        assert_false(seen[id]);
        seen[id] = 1;
    }
}

static void test_random_ids_reach_the_ends_of_their_range(void **state)
{
    const struct id_range range = {10, 19};
    uint64_t seed = 1;
    unsigned counts[20] = {0};
    (void)state;
    for (int i = 0; i < 10000; i++) {
        uint64_t id = id_range_random(&range, &seed);
        assert_in_range(id, range.first, range.last);
        counts[id]++;
    }
    for (size_t id = 10; id < 20; id++)
        assert_in_range(counts[id], 800, 1200);
}

static void test_a_request_takes_another_id(void **state)
{
    const struct id_range range = {100, 999};
    struct get_request request;
    (void)state;
    assert_true(get_request_init(&request, "item:", &range));
    get_request_put_id(&request, request.bytes, 305);
    assert_int_equal(request.length, strlen("*2\r\n$3\r\nGET\r\n$8\r\nitem:305\r\n"));
    assert_memory_equal(request.bytes, "*2\r\n$3\r\nGET\r\n$8\r\nitem:305\r\n", request.length);
}

/* In memory of just this length, so that a sanitizer sees a read past its end. */
static enum reply take(const char *text, size_t length, size_t *taken)
{
    char *bytes = malloc(length ? length : 1);
    const char *next = bytes;
    assert_non_null(bytes);
    memcpy(bytes, text, length);
    enum reply reply = reply_take(bytes, bytes + length, &next);
    *taken = (size_t)(next - bytes);
    free(bytes);
    return reply;
}

static void test_replies_are_told_apart_however_they_are_cut(void **state)
{
    static const struct {
        const char *text;
        enum reply reply;
    } replies[] = {{"$-1\r\n", REPLY_NIL},      {"_\r\n", REPLY_NIL},
                   {"$0\r\n\r\n", REPLY_EMPTY}, {"$12\r\nline\r\nbreaks\r\n", REPLY_VALUE},
                   {":0\r\n", REPLY_NIL},       {"*2\r\n:1\r\n", REPLY_VALUE},
                   {"+OK\r\n", REPLY_STATUS},   {"-NESTGUARD busy\r\n", REPLY_ERROR}};
    (void)state;
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        size_t length = strlen(replies[i].text), taken;
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(take(replies[i].text, cut, &taken), REPLY_PARTIAL);
        assert_int_equal(take(replies[i].text, length, &taken), replies[i].reply);
        assert_int_equal(taken, length);
    }
}

/* ---- looking into a bitmap ---- */

static struct bitmap_batch batch_of(const char *text)
{
    struct bitmap_batch batch;
    assert_true(bitmap_batch_parse(text, &batch));
    return batch;
}

static void test_a_bitmap_is_described_in_whole_or_not_at_all(void **state)
{
    struct bitmap_batch batch;
    (void)state;
    assert_false(bitmap_batch_parse("p", &batch));
    assert_false(bitmap_batch_parse("p,640", &batch));
    assert_false(bitmap_batch_parse("p,640,3,sha", &batch));
    assert_false(bitmap_batch_parse("p,640,99", &batch));
    assert_false(bitmap_batch_parse("p,640,3,sha,7,x", &batch));
    batch = batch_of("p,640,3,sha,7");
    assert_string_equal(batch.generation, "7");
    assert_int_equal(batch.shape.bits, 640);
}

static void test_commands_stay_within_their_room(void **state)
{
    static const char *const ways[] = {"published,4000000000,32",
                                       "published,4000000000,32,"
                                       "e0e1f9fabfc9d4800c877a703b823ac0578ff8db,1795353004910544"};
    static const uint64_t ids[] = {1, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bitmap_batch batch = batch_of(ways[i]);
        size_t room = bitmap_batch_most(&batch, 2);
        char *text = calloc(1, room);
        assert_in_range(bitmap_batch_write(&batch, text, ids, 2) - text, 1, room);
        const char *begin = i ? "*72\r\n$7\r\nEVALSHA\r\n" : "*101\r\n$8\r\nBITFIELD\r\n";
        assert_memory_equal(text, begin, strlen(begin));
        free(text);
    }
}

static void test_what_a_bitmap_says_is_taken_when_it_is_whole(void **state)
{
    static const struct {
        const char *way, *reply;
        struct bitmap_found found; /* of three items at most */
    } cases[] = {{"p,640,2", "*3\r\n:1\r\n:1\r\n:0\r\n", {1, 0, 0}},
                 {"p,640,2", "*3\r\n:1\r\n:1\r\n:1\r\n", {0, 1, 0}},
                 {"p,640,2", "*3\r\n:0\r\n:1\r\n:0\r\n", {0, 0, 1}},
                 {"p,640,2", "-ERR\r\n", {0, 0, 1}},
                 {"p,640,2,s,1", "$3\r\nAPA\r\n", {2, 1, 0}},
                 {"p,640,2,s,1", "$5\r\nstale\r\n", {0, 0, 3}},
                 {"p,640,2,s,1", "$0\r\n\r\n", {0, 0, 3}},
                 {"p,640,2,s,1", "-NOSCRIPT\r\n", {0, 0, 3}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bitmap_batch batch = batch_of(cases[i].way);
        const char *reply = cases[i].reply, *end = reply + strlen(reply), *next = NULL;
        struct bitmap_found none = {0};
        for (const char *cut = reply; cut < end; cut++) {
            struct bitmap_found found = bitmap_batch_take(&batch, 3, reply, cut, &next);
            assert_memory_equal(&found, &none, sizeof none);
        }
        struct bitmap_found found = bitmap_batch_take(&batch, 3, reply, end, &next);
        assert_memory_equal(&found, &cases[i].found, sizeof found);
        assert_ptr_equal(next, end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_are_those_of_the_sorted_durations),
        cmocka_unit_test(test_a_few_long_ones_show_only_where_they_belong),
        cmocka_unit_test(test_any_duration_has_a_cell),
        cmocka_unit_test(test_ranges_of_one_width_are_taken),
        cmocka_unit_test(test_each_id_of_a_range_comes_once),
        cmocka_unit_test(test_random_ids_reach_the_ends_of_their_range),
        cmocka_unit_test(test_a_request_takes_another_id),
        cmocka_unit_test(test_replies_are_told_apart_however_they_are_cut),
        cmocka_unit_test(test_a_bitmap_is_described_in_whole_or_not_at_all),
        cmocka_unit_test(test_commands_stay_within_their_room),
        cmocka_unit_test(test_what_a_bitmap_says_is_taken_when_it_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
