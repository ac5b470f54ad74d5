/* Writes of more keys than are looked at in one go: whatever happens between two pieces, they are
 * one command to the cache, and a write of each key to everybody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "command_bench.h"
#include "worker/command/keys/write_internal.h"

enum { KEYS = 4 * WRITES_AT_ONCE + 1, KEY_SIZE = 24 };

#define OK "+OK\r\n"
#define SET_OTHER "*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\nv\r\n"

/* The i-th of those that no filter has. */
static const char *key_of(size_t i)
{
    static char key[KEY_SIZE];
    snprintf(key, sizeof key, "item:n%zu", i);
    return key;
}

static void append_word(struct buffer *out, const char *word)
{
    resp_write_bulk(out, word, strlen(word));
}

/* Two words a key, so that a piece is no multiple of keys and values by chance. */
static void append_mset(struct buffer *out, size_t first, size_t count)
{
    resp_write_array(out, 2 * count + 1);
    append_word(out, "MSET");
    for (size_t i = first; i < first + count; i++) {
        append_word(out, key_of(i));
        append_word(out, "item:value");
    }
}

static void append_del(struct buffer *out, size_t count)
{
    resp_write_array(out, count + 1);
    append_word(out, "DEL");
    for (size_t i = 0; i < count; i++)
        append_word(out, key_of(i));
}

static struct buffer mset(size_t count)
{
    struct buffer out = {0};
    append_mset(&out, 0, count);
    return out;
}

/* Its input is there; as far as a turn goes without its line. */
static void say(struct client *client, const struct buffer *bytes)
{
    struct span text = buffer_span(bytes);
    buffer_append(&client->in, text.at, text.length);
    turn_add(&client->serving->turn, &client->input_task);
    turn_run(&client->serving->turn, TURN_WRITE);
}

static void must_send_bytes(struct upstream *upstream, const struct buffer *bytes)
{
    struct buffer text = {0};
    buffer_append(&text, buffer_span(bytes).at, buffer_length(bytes));
    buffer_append(&text, "", 1);
    must_send(upstream, buffer_span(&text).at);
    buffer_finish(&text);
}

/* The turn's line is gone through to its end. */
static void finish_line(struct bench *bench)
{
    turn_empty_line(&bench->serving->turn);
    turn_run(&bench->serving->turn, TURN_WRITE);
}

static struct override entry_of(struct bench *bench, const char *key)
{
    return overrides_find(&bench->serving->overrides, key_make(ITEMS, span_of(key)), clock_ms());
}

static void all_must_be_admitted(struct bench *bench, bool admitted)
{
    for (size_t i = 0; i < KEYS; i++)
        assert_int_equal(entry_of(bench, key_of(i)).writes, admitted);
    assert_int_equal(overrides_count(&bench->serving->overrides), admitted ? KEYS : 0);
}

static void keeper_takes_all(struct bench *bench)
{
    for (size_t i = 0; i < KEYS; i++)
        mailbox_return(&next_hint(bench->keeper, key_of(i))->message);
    hear_keeper(bench);
}

/* ---- what must hold ---- */

static void a_write_in_pieces_is_one_command_and_a_hint_of_each_key(void **state)
{
    struct bench bench;
    struct buffer command = mset(KEYS);
    (void)state;
    bench_init(&bench, "");
    struct client *other = client_add(&bench.clients);
    say(bench.client, &command);
    struct buffer get = {0};
    buffer_append(&get, GET_ABSENT, strlen(GET_ABSENT));
    say(other, &get); /* waits for none of the pieces */
    assert_int_equal(buffer_length(&other->replies.out), strlen(NIL));
    buffer_clear(&other->replies.out);
    must_send(bench.shared, "");
    assert_int_equal(overrides_count(&bench.serving->overrides), 0);
    finish_line(&bench);
    must_send_bytes(bench.shared, &command);
    all_must_be_admitted(&bench, true);
    cache_says(bench.shared, OK);
    finish_line(&bench);
    assert_int_equal(buffer_length(&bench.client->replies.out), 0);
    keeper_takes_all(&bench);
    must_reply(bench.client, OK);
    must_not_ask(bench.keeper);
    all_must_be_admitted(&bench, false); /* what the keeper says of them is not played here */
    assert_int_equal(COUNTED(&bench, ITEMS, hints), KEYS);
    assert_int_equal(bench.client->replies.gathered, 0);
    buffer_finish(&get);
    buffer_finish(&command);
    bench_finish(&bench);
}

static void a_refused_write_in_pieces_leaves_nothing(void **state)
{
    struct bench bench;
    struct buffer command = mset(KEYS);
    (void)state;
    bench_init(&bench, "");
    say(bench.client, &command);
    finish_line(&bench);
    must_send_bytes(bench.shared, &command);
    cache_says(bench.shared, "-OOM no\r\n");
    must_reply(bench.client, "-OOM no\r\n");
    must_not_ask(bench.keeper);
    all_must_be_admitted(&bench, false);
    assert_int_equal(bench.client->hints.count, 0);
    buffer_finish(&command);
    bench_finish(&bench);
}

/* Nothing overtakes it, and it overtakes nothing. */
static void a_clients_commands_keep_their_order_around_a_write_in_pieces(void **state)
{
    struct bench bench;
    struct buffer input = {0}, del = {0};
    (void)state;
    bench_init(&bench, "");
    append_del(&del, KEYS);
    buffer_append(&input, SET_OTHER, strlen(SET_OTHER));
    buffer_append(&input, buffer_span(&del).at, buffer_length(&del));
    buffer_append(&input, SET_OTHER, strlen(SET_OTHER));
    type_bytes(bench.client, buffer_span(&input).at, buffer_length(&input));
    must_send(bench.shared, SET_OTHER);
    cache_says(bench.shared, OK);
    finish_line(&bench);
    finish_line(&bench);
    must_send_bytes(bench.shared, &del);
    cache_says(bench.shared, ":1\r\n");
    finish_line(&bench);
    must_send(bench.shared, SET_OTHER);
    cache_says(bench.shared, OK);
    must_reply(bench.client, OK ":1\r\n" OK);
    must_not_ask(bench.keeper);
    buffer_finish(&input);
    buffer_finish(&del);
    bench_finish(&bench);
}

/* In each round it goes a turn later: while keys are looked at, while they are noted, when the
 * command is sent, and while the outcome is told. */
static void whenever_a_client_goes_nothing_half_done_is_left(void **state)
{
    struct bench bench;
    struct buffer command = mset(KEYS);
    (void)state;
    bench_init(&bench, "");
    bench.serving->turn.work = 1; /* one visit a turn */
    for (int turns = 0; turns < 12; turns++) {
        struct client *client = client_add(&bench.clients);
        say(client, &command);
        for (int i = 0; i < turns; i++)
            turn_loop(&bench.clients.serving);
        client_close(client);
        finish_line(&bench);
        bool sent = bench.shared->count;
        assert_int_equal(buffer_length(&bench.shared->out), sent ? buffer_length(&command) : 0);
        assert_int_equal(overrides_count(&bench.serving->overrides), sent ? KEYS : 0);
        if (sent) {
            must_send_bytes(bench.shared, &command);
            cache_says(bench.shared, OK);
            finish_line(&bench);
            keeper_takes_all(&bench);
        }
        must_not_ask(bench.keeper);
        all_must_be_admitted(&bench, false);
        assert_int_equal(bench.serving->hints_meant, 0);
        assert_int_equal(bench.serving->piecemeal, 0);
        assert_int_equal(client->host->hints.count, sent ? KEYS : 0);
    }
    assert_int_equal(COUNTED(&bench, ITEMS, hints) % KEYS, 0);
    assert_true(COUNTED(&bench, ITEMS, hints) > 0);
    buffer_finish(&command);
    bench_finish(&bench);
}

/* Each alone would find room: what one has been promised is no other's, though it is not taken yet.
 */
static void two_writes_in_pieces_do_not_take_the_same_room(void **state)
{
    struct bench bench;
    struct buffer commands[2] = {{0}, {0}};
    struct client *clients[2];
    char settings[32];
    (void)state;
    snprintf(settings, sizeof settings, "max_hints: %d\n", 2 * KEYS);
    bench_init(&bench, settings);
    clients[0] = bench.client;
    clients[1] = client_add(&bench.clients);
    follow_a_log(&bench);
    for (size_t i = 0; i < 2; i++) {
        append_mset(&commands[i], i * KEYS, KEYS);
        say(clients[i], &commands[i]);
    }
    finish_line(&bench);
    must_send_bytes(bench.shared, &commands[0]);
    assert_int_equal(overrides_places(&bench.serving->overrides), KEYS);
    cache_says(bench.shared, "-OOM no\r\n");
    must_reply(clients[0], "-OOM no\r\n");
    assert_true(span_starts(buffer_span(&clients[1]->replies.out), "-NESTGUARD busy: "));
    buffer_clear(&clients[1]->replies.out);
    all_must_be_admitted(&bench, false);
    for (size_t i = 0; i < 2; i++)
        buffer_finish(&commands[i]);
    bench_finish(&bench);
}

/* ---- in a transaction ---- */

static struct upstream *begin_multi(struct client *client)
{
    type(client, MULTI);
    struct upstream *own = client->pinned.own;
    assert_non_null(own);
    must_send(own, MULTI);
    cache_says(own, OK);
    must_reply(client, OK);
    return own;
}

static void what_is_queued_in_pieces_is_a_hint_of_each_key_once_it_is_executed(void **state)
{
    struct bench bench;
    struct buffer command = mset(KEYS);
    (void)state;
    bench_init(&bench, "");
    struct client *other = client_add(&bench.clients);
    struct upstream *own = begin_multi(bench.client);
    say(bench.client, &command);
    struct buffer get = {0};
    buffer_append(&get, GET_ABSENT, strlen(GET_ABSENT));
    say(other, &get); /* waits for none of the pieces */
    assert_int_equal(buffer_length(&other->replies.out), strlen(NIL));
    buffer_clear(&other->replies.out);
    buffer_finish(&get);
    must_send(own, "");
    finish_line(&bench);
    must_send_bytes(own, &command);
    all_must_be_admitted(&bench, true);
    cache_says(own, QUEUED);
    must_reply(bench.client, QUEUED);
    must_not_ask(bench.keeper);
    all_must_be_admitted(&bench, false);
    assert_int_equal(bench.client->hints.count, KEYS);
    type(bench.client, EXEC);
    must_send(own, EXEC);
    all_must_be_admitted(&bench, true);
    cache_says(own, "*1\r\n" OK);
    finish_line(&bench);
    keeper_takes_all(&bench);
    must_reply(bench.client, "*1\r\n" OK);
    all_must_be_admitted(&bench, false);
    assert_int_equal(bench.client->hints.count, KEYS);
    buffer_finish(&command);
    bench_finish(&bench);
}

static void what_finds_no_room_there_has_the_transaction_be_given_up(void **state)
{
    struct bench bench;
    struct buffer command = mset(KEYS);
    (void)state;
    bench_init(&bench, "max_hints: 100\n");
    follow_a_log(&bench);
    struct upstream *own = begin_multi(bench.client);
    say(bench.client, &command);
    finish_line(&bench);
    must_send(own, "*1\r\n$3\r\nGET\r\n");
    cache_says(own, "-ERR wrong number of arguments for 'get' command\r\n");
    assert_true(span_starts(buffer_span(&bench.client->replies.out), "-NESTGUARD busy: "));
    buffer_clear(&bench.client->replies.out);
    all_must_be_admitted(&bench, false);
    assert_int_equal(bench.client->hints.count, 0);
    type(bench.client, EXEC);
    must_send(own, EXEC);
    cache_says(own, "-EXECABORT no\r\n");
    must_reply(bench.client, "-EXECABORT no\r\n");
    must_not_ask(bench.keeper);
    buffer_finish(&command);
    bench_finish(&bench);
}

/* What was sent may have been executed, for all that is known: MULTI may have been refused. */
static void who_goes_before_his_write_is_queued_leaves_nothing(void **state)
{
    struct bench bench;
    struct buffer command = mset(KEYS);
    (void)state;
    bench_init(&bench, "");
    bench.serving->turn.work = 1; /* one visit a turn */
    for (int turns = 0; turns < 12; turns++) {
        struct client *client = client_add(&bench.clients);
        struct upstream *own = begin_multi(client);
        say(client, &command);
        for (int i = 0; i < turns; i++)
            turn_loop(&bench.clients.serving);
        bool sent = buffer_length(&own->out);
        client_close(client);
        finish_line(&bench);
        if (sent) {
            cache_is_lost(own);
            finish_line(&bench);
            keeper_takes_all(&bench);
        }
        must_not_ask(bench.keeper);
        all_must_be_admitted(&bench, false);
        assert_int_equal(bench.serving->hints_meant, 0);
        assert_int_equal(bench.serving->piecemeal, 0);
        assert_int_equal(client->host->hints.count, sent ? KEYS : 0);
        client->host->hints.count = 0;
    }
    buffer_finish(&command);
    bench_finish(&bench);
}

/* What the filter holds needs no hint where there is no room for it. */
static void a_write_in_pieces_of_held_keys_is_not_refused_for_want_of_room(void **state)
{
    struct bench bench;
    struct buffer command = {0};
    (void)state;
    bench_init(&bench, "max_hints: 100\n");
    resp_write_array(&command, 2 * KEYS + 1);
    append_word(&command, "MSET");
    for (size_t i = 0; i < KEYS; i++) {
        char key[KEY_SIZE];
        snprintf(key, sizeof key, "item:%zu", i % 100);
        append_word(&command, key);
        append_word(&command, "v");
    }
    say(bench.client, &command);
    finish_line(&bench);
    must_send_bytes(bench.shared, &command);
    cache_says(bench.shared, OK);
    must_reply(bench.client, OK);
    must_not_ask(bench.keeper);
    buffer_finish(&command);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_in_pieces_is_one_command_and_a_hint_of_each_key),
        cmocka_unit_test(a_refused_write_in_pieces_leaves_nothing),
        cmocka_unit_test(a_clients_commands_keep_their_order_around_a_write_in_pieces),
        cmocka_unit_test(whenever_a_client_goes_nothing_half_done_is_left),
        cmocka_unit_test(two_writes_in_pieces_do_not_take_the_same_room),
        cmocka_unit_test(what_is_queued_in_pieces_is_a_hint_of_each_key_once_it_is_executed),
        cmocka_unit_test(what_finds_no_room_there_has_the_transaction_be_given_up),
        cmocka_unit_test(who_goes_before_his_write_is_queued_leaves_nothing),
        cmocka_unit_test(a_write_in_pieces_of_held_keys_is_not_refused_for_want_of_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
