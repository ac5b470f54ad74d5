/* Without memory for what a peer has sized: whichever of the large allocations on the way of a
 * command fails, the client gets the reply, an error, or its connection's end. Never a nil for a
 * key that has a value, and nothing crashes or leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "fakes/allocator.h"
#include "worker/command/keys/lookup_join.h"

enum { LARGE = 32 * 1024, VALUE = 300000, KEYS = 4000, ASKED = 16000, LONG = 500, MOST = 40 };

static char *value;      /* a bulk of VALUE bytes */
static char *part;       /* its first half */
static char *message;    /* a push that holds it */
static char *long_items; /* one of LONG items of a hundred bytes */
static char *items;      /* a BF.MEXISTS of ASKED items */
static char *keys;       /* an MGET of KEYS guarded keys that the filter holds, and ordinary ones */

/* What became of it. */
static bool has_ended(const struct bench *bench)
{
    return bench->client->state == CLIENT_CLOSED || bench->client->state == CLIENT_LEAVING;
}

static struct span replies(struct bench *bench)
{
    turn_run(&bench->serving->turn, TURN_WRITE);
    return buffer_span(&bench->client->replies.out);
}

/* Runs a scenario again and again, each time with the next of its large allocations failing, until
 * there is none that could; at least `least` there must have been. */
static void each_failure(void (*scenario)(struct bench *bench), unsigned least)
{
    unsigned nth = 0;
    do {
        struct bench bench;
        bench_init(&bench, "max_output: 100mb\nmax_hints: 3\n");
        allocator_fail(LARGE, ++nth);
        scenario(&bench);
        bool failed = allocator_failed();
        allocator_fail(LARGE, 0);
        hear_keeper(&bench);
        bench_finish(&bench);
        if (!failed)
            break;
    } while (nth < MOST);
    assert_in_range(nth, least + 1, MOST - 1);
}

/* ---- replies ---- */

static void get_hit(struct bench *bench)
{
    type(bench->client, GET_ITEM_1 GET_ABSENT);
    cache_says(bench->shared, value);
    struct span reply = replies(bench);
    if (has_ended(bench))
        return;
    assert_int_equal(reply.length, strlen(value) + strlen(NIL));
    assert_memory_equal(reply.at, value, strlen(value));
}

static void a_value_that_finds_no_memory_is_not_cut_short(void **state)
{
    (void)state;
    each_failure(get_hit, 1);
}

/* The hit waits behind a miss: it is kept, and moves when its turn comes. */
static void get_behind(struct bench *bench)
{
    type(bench->client, GET_ITEM_1 GET_ITEM_2);
    cache_says(bench->shared, NIL);
    struct load_request *load = next_load(bench->keeper, "item:1");
    cache_says(bench->shared, value);
    return_row(load, "one");
    hear_keeper(bench);
    struct span reply = replies(bench);
    if (has_ended(bench))
        return;
    assert_true(span_starts(reply, "$3\r\none\r\n"));
    assert_int_equal(reply.length, strlen(value) + strlen("$3\r\none\r\n"));
}

static void a_value_that_has_to_wait_is_not_lost_in_silence(void **state)
{
    (void)state;
    each_failure(get_behind, 2);
}

static void get_in_parts(struct bench *bench)
{
    size_t head = strlen(part);
    type(bench->client, GET_ITEM_1 GET_ITEM_2);
    cache_begins(bench->shared, part);
    cache_says(bench->shared, value + head);
    cache_begins(bench->shared, part);
    cache_says(bench->shared, value + head);
    struct span reply = replies(bench);
    if (!has_ended(bench))
        assert_int_equal(reply.length, 2 * strlen(value));
}

static void a_value_in_parts_is_whole_or_ends_the_client(void **state)
{
    (void)state;
    each_failure(get_in_parts, 1);
}

/* A loaded row, in place of the cache's nil. */
static void get_row(struct bench *bench)
{
    type(bench->client, GET_ITEM_1);
    cache_says(bench->shared, NIL);
    struct load_request *load = next_load(bench->keeper, "item:1");
    char *bytes;
    load->value = blob_create(VALUE, &bytes);
    load->outcome = load->value ? LOAD_ROW : LOAD_REFUSED; /* as rows.c has it */
    if (load->value)
        memset(bytes, 'r', VALUE);
    mailbox_return(&load->message);
    hear_keeper(bench);
    struct span reply = replies(bench);
    if (has_ended(bench))
        return;
    assert_true(reply.at[0] == '-' || reply.length > VALUE);
}

static void a_row_that_finds_no_memory_is_no_nil(void **state)
{
    (void)state;
    each_failure(get_row, 2);
}

static void set_and_get(struct bench *bench)
{
    type(bench->client, "*4\r\n$3\r\nSET\r\n$6\r\nitem:1\r\n$1\r\nv\r\n$3\r\nGET\r\n");
    cache_says(bench->shared, value);
    struct span reply = replies(bench);
    if (!has_ended(bench))
        assert_int_equal(reply.length, strlen(value));
}

static void a_writes_large_reply_is_whole_or_ends_the_client(void **state)
{
    (void)state;
    each_failure(set_and_get, 1);
}

/* A message behind a reply that is still to come. */
static void message_behind(struct bench *bench)
{
    client_speak(bench->client, true);
    struct upstream *resp3 = bench->client->upstream;
    type(bench->client, PING PING);
    cache_says(resp3, "+PONG\r\n");
    cache_says(resp3, message); /* before the second reply */
    if (!has_ended(bench))
        cache_says(resp3, "+PONG\r\n");
    struct span reply = replies(bench);
    if (!has_ended(bench))
        assert_int_equal(reply.length, 2 * strlen("+PONG\r\n") + strlen(message));
}

static void a_large_message_is_whole_or_ends_the_client(void **state)
{
    (void)state;
    each_failure(message_behind, 1);
}

/* ---- commands ---- */

/* Of some of the keys; returns how long their values are. */
static size_t answer_keys(struct upstream *cache, int count)
{
    struct buffer reply = {0};
    resp_write_array(&reply, (size_t)count);
    size_t header = buffer_length(&reply);
    for (int i = 0; i < count; i++)
        resp_write_bulk(&reply, "a value of its own", 18);
    size_t length = buffer_length(&reply) - header;
    buffer_append(&reply, "", 1);
    cache_says(cache, buffer_span(&reply).at);
    buffer_finish(&reply);
    return length;
}

static void mget(struct bench *bench)
{
    size_t length = 0;
    type(bench->client, keys);
    struct span early = replies(bench);
    if (has_ended(bench) || early.length) {
        assert_true(has_ended(bench) || early.at[0] == '-');
        return;
    }
    allocator_fail(LARGE, 0);
    for (int first = 0; first < KEYS; first += LOOKUPS_AT_ONCE) {
        int left = KEYS - first;
        length += answer_keys(bench->shared, left < LOOKUPS_AT_ONCE ? left : LOOKUPS_AT_ONCE);
    }
    while (bench->client->replies.first)
        hear_keeper(bench); /* it is joined in turns */
    assert_int_equal(replies(bench).length, strlen("*4000\r\n") + length);
}

static void keys_that_find_no_memory_are_an_error(void **state)
{
    (void)state;
    each_failure(mget, 2);
}

/* As large as they are, all or an error. */
static void must_reply_to_items(struct bench *bench, size_t count)
{
    char header[20];
    snprintf(header, sizeof header, "*%zu\r\n", count);
    struct span reply = replies(bench);
    if (has_ended(bench) || span_starts(reply, "-NESTGUARD out of memory"))
        return;
    assert_true(span_starts(reply, header));
    assert_int_equal(reply.length, strlen(header) + count * strlen(":1\r\n"));
}

static void ask_for_items(struct bench *bench)
{
    type(bench->client, items);
    while (bench->client->replies.first)
        hear_keeper(bench);
    must_reply_to_items(bench, ASKED);
}

static void items_that_find_no_memory_are_an_error(void **state)
{
    (void)state;
    each_failure(ask_for_items, 2);
}

/* Each is a command to the cache. */
static void ask_for_items_as_user(struct bench *bench)
{
    bench->client->replies.no_fallback = true;
    type(bench->client, long_items);
    while (bench->shared->count)
        cache_says(bench->shared, ":1\r\n");
    must_reply_to_items(bench, LONG);
}

static void a_users_items_that_find_no_memory_are_an_error(void **state)
{
    (void)state;
    each_failure(ask_for_items_as_user, 2);
}

static void large_set(struct bench *bench)
{
    char *command = xasprintf("*3\r\n$3\r\nSET\r\n$6\r\nitem:1\r\n%s", value);
    type(bench->client, command);
    if (!has_ended(bench) && bench->shared->count)
        cache_says(bench->shared, "+OK\r\n");
    struct span reply = replies(bench);
    free(command);
    if (!has_ended(bench))
        assert_true(span_is(reply, "+OK\r\n") || span_starts(reply, "-NESTGUARD out of memory"));
}

static void a_write_that_finds_no_memory_is_an_error(void **state)
{
    (void)state;
    each_failure(large_set, 1);
}

static char *items_asked(size_t count, size_t length)
{
    char *item = xmalloc(length);
    struct buffer out = {0};
    memset(item, '1', length);
    resp_write_array(&out, count + 2);
    resp_write_bulk(&out, "BF.MEXISTS", 10);
    resp_write_bulk(&out, "items", 5);
    for (size_t i = 0; i < count; i++)
        resp_write_bulk(&out, item, length);
    char *text = xstrndup(buffer_span(&out).at, buffer_length(&out));
    buffer_finish(&out);
    free(item);
    return text;
}

static int make_texts(void **state)
{
    struct buffer out = {0};
    (void)state;
    char *bytes = xmalloc(VALUE);
    memset(bytes, 'v', VALUE);
    resp_write_bulk(&out, bytes, VALUE);
    value = xstrndup(buffer_span(&out).at, buffer_length(&out));
    part = xstrndup(value, VALUE / 2);
    message = xasprintf(">2\r\n$1\r\nm\r\n%s", value);
    buffer_clear(&out);
    buffer_printf(&out, "*%d\r\n$4\r\nMGET\r\n", KEYS + 1);
    for (int i = 0; i < KEYS; i++) {
        char key[20];
        resp_write_bulk(&out, key, (size_t)snprintf(key, sizeof key, "item:%d", i % 100));
    }
    keys = xstrndup(buffer_span(&out).at, buffer_length(&out));
    items = items_asked(ASKED, 1);
    long_items = items_asked(LONG, 100);
    buffer_finish(&out);
    free(bytes);
    return 0;
}

static int free_texts(void **state)
{
    (void)state;
    free(value);
    free(part);
    free(message);
    free(items);
    free(long_items);
    free(keys);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_finds_no_memory_is_not_cut_short),
        cmocka_unit_test(a_value_that_has_to_wait_is_not_lost_in_silence),
        cmocka_unit_test(a_value_in_parts_is_whole_or_ends_the_client),
        cmocka_unit_test(a_row_that_finds_no_memory_is_no_nil),
        cmocka_unit_test(a_writes_large_reply_is_whole_or_ends_the_client),
        cmocka_unit_test(a_large_message_is_whole_or_ends_the_client),
        cmocka_unit_test(keys_that_find_no_memory_are_an_error),
        cmocka_unit_test(items_that_find_no_memory_are_an_error),
        cmocka_unit_test(a_users_items_that_find_no_memory_are_an_error),
        cmocka_unit_test(a_write_that_finds_no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_texts, free_texts);
}
