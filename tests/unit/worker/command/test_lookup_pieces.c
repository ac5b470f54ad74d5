/* Lookups of more keys than are served at a time: whatever happens between two pieces, the reply is
 * that of one, in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "worker/command/keys/lookup_join.h"

enum { ROUNDS = 30, MOST_KEYS = 5 * LOOKUPS_AT_ONCE, KEY_SIZE = 24 };

#define SET_OTHER "*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\nv\r\n"

/* What is looked up, and by which command. */
static char keys[MOST_KEYS][KEY_SIZE];
static size_t key_count;
static bool is_mget;

static size_t below(size_t bound)
{
    return (size_t)rand() / 7 % bound;
}

/* ---- the cache ---- */

/* It has all keys that end with an even digit. */
static bool is_cached(struct span key)
{
    return (key.at[key.length - 1] - '0') % 2 == 0;
}

static void answer_mget(const struct span *words, size_t count, struct buffer *out)
{
    resp_write_array(out, count);
    for (size_t i = 0; i < count; i++)
        if (is_cached(words[i]))
            resp_write_bulk(out, words[i].at, words[i].length);
        else
            resp_write_nil(out, false);
}

/* Takes the oldest command from what was sent, and answers it. False: there is none. */
static bool cache_answers_one(struct upstream *cache)
{
    const struct resp_limits limits = {10000, 1000, 1000000, 1000, 0};
    struct resp_arguments words = {0};
    struct resp_command command;
    struct buffer reply = {0};
    struct span sent = buffer_span(&cache->out);
    if (!sent.length)
        return false;
    char *copy = xspandup(sent);
    assert_int_equal(resp_read_command(copy, sent.length, &limits, &words, &command), RESP_DONE);
    buffer_take(&cache->out, command.length);
    if (span_is_word(words.at[0], "MGET"))
        answer_mget(words.at + 1, words.count - 1, &reply);
    else if (span_is_word(words.at[0], "EXISTS"))
        resp_write_integer(&reply, is_cached(words.at[1]));
    else
        resp_write_status(&reply, "OK");
    buffer_append(&reply, "", 1);
    cache_says(cache, buffer_span(&reply).at);
    buffer_finish(&reply);
    resp_arguments_finish(&words);
    free(copy);
    return true;
}

static void cache_answers(struct upstream *cache, size_t most)
{
    while (most-- && cache_answers_one(cache))
        ;
}

/* ---- the client ---- */

/* In filters are passed:0 to passed:99 and item:0 to item:99. */
static void draw_keys(size_t count)
{
    key_count = count;
    for (size_t i = 0; i < count; i++) {
        static const char *const forms[] = {"passed:%zu", "passed:1%zu", "item:9%zu1", "other:%zu"};
        char form[KEY_SIZE];
        snprintf(form, sizeof form, "%s", forms[below(4)]);
        snprintf(keys[i], KEY_SIZE, form, below(90) + 10); /* NOLINT: of the table above */
    }
}

static void write_command(struct buffer *out)
{
    resp_write_array(out, key_count + 1);
    resp_write_bulk(out, is_mget ? "MGET" : "EXISTS", is_mget ? 4 : 6);
    for (size_t i = 0; i < key_count; i++)
        resp_write_bulk(out, keys[i], strlen(keys[i]));
}

/* Its input is there; as far as a turn goes without its line. */
static void say(struct client *client, const char *text, size_t length)
{
    buffer_append(&client->in, text, length);
    turn_add(&client->serving->turn, &client->input_task);
    turn_run(&client->serving->turn, TURN_WRITE);
}

static void say_lookup(struct client *client)
{
    struct buffer command = {0};
    write_command(&command);
    say(client, buffer_span(&command).at, buffer_length(&command));
    buffer_finish(&command);
}

static bool is_absent(const char *key)
{
    return strncmp(key, "item:", 5) == 0 || (strncmp(key, "passed:", 7) == 0 && strlen(key) > 9);
}

/* As one lookup of each key is answered while the keyspaces guard. */
static void write_wanted(struct buffer *out)
{
    int64_t sum = 0;
    if (is_mget)
        resp_write_array(out, key_count);
    for (size_t i = 0; i < key_count; i++) {
        struct span key = span_of(keys[i]);
        bool here = !is_absent(keys[i]) && is_cached(key);
        sum += here;
        if (is_mget && here)
            resp_write_bulk(out, key.at, key.length);
        else if (is_mget && is_absent(keys[i]) && keys[i][0] == 'p')
            resp_write_bulk(out, "nope", 4);
        else if (is_mget)
            resp_write_nil(out, false);
    }
    if (!is_mget)
        resp_write_integer(out, sum);
}

static void must_reply_as_one(struct client *client, const char *behind)
{
    struct buffer wanted = {0};
    write_wanted(&wanted);
    buffer_append(&wanted, behind, strlen(behind) + 1);
    must_reply(client, buffer_span(&wanted).at);
    buffer_finish(&wanted);
}

static bool is_done(const struct client *client)
{
    return !client->replies.first;
}

/* ---- what must hold ---- */

static void pieces_give_the_reply_of_one_whoever_comes_between(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    struct client *other = client_add(&bench.clients);
    for (int round = 0; round < ROUNDS; round++) {
        is_mget = round % 2;
        draw_keys(LOOKUPS_AT_ONCE + 1 + below(MOST_KEYS - LOOKUPS_AT_ONCE - 1));
        say_lookup(bench.client);
        while (!is_done(bench.client)) {
            say(other, GET_ABSENT, strlen(GET_ABSENT)); /* waits for none of the pieces */
            assert_int_equal(buffer_length(&other->replies.out), strlen(NIL));
            buffer_clear(&other->replies.out);
            cache_answers(bench.shared, below(600));
            turn_loop(&bench.clients.serving);
        }
        must_reply_as_one(bench.client, "");
    }
    assert_int_equal(bench.shared->count, 0);
    bench_finish(&bench);
}

/* No piece is asked for before the cache has answered what came before, and nothing that came
 * behind before all pieces are. */
static void a_clients_commands_keep_their_order_around_pieces(void **state)
{
    struct bench bench;
    struct buffer input = {0};
    (void)state;
    bench_init(&bench, "");
    is_mget = true;
    draw_keys(MOST_KEYS);
    buffer_append(&input, SET_OTHER, strlen(SET_OTHER));
    write_command(&input);
    buffer_append(&input, SET_OTHER, strlen(SET_OTHER));
    type_bytes(bench.client, buffer_span(&input).at, buffer_length(&input));
    must_send(bench.shared, SET_OTHER);
    cache_says(bench.shared, "+OK\r\n");
    buffer_take(&bench.client->replies.out, strlen("+OK\r\n"));
    while (!span_starts(buffer_span(&bench.shared->out), SET_OTHER)) {
        cache_answers(bench.shared, 1);
        turn_loop(&bench.clients.serving);
    }
    must_reply_as_one(bench.client, "");
    must_send(bench.shared, SET_OTHER);
    cache_says(bench.shared, "+OK\r\n");
    must_reply(bench.client, "+OK\r\n");
    buffer_finish(&input);
    bench_finish(&bench);
}

/* What stands before the lookup may be answered at once, or be no command at all; its keys stay
 * where they were read all the same. */
static void a_lookup_waits_until_it_stands_first(void **state)
{
    static const char *const before[] = {"", GET_ABSENT, "*0\r\n", "\r\n", GET_ABSENT "*0\r\n"};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        struct buffer input = {0};
        is_mget = i % 2;
        draw_keys(MOST_KEYS);
        buffer_append(&input, before[i], strlen(before[i]));
        write_command(&input);
        buffer_append(&input, GET_ABSENT, strlen(GET_ABSENT));
        say(bench.client, buffer_span(&input).at, buffer_length(&input));
        assert_int_equal(bench.shared->count, 0); /* it is in line, and not served at once */
        while (!is_done(bench.client) || client_input(bench.client).length) {
            cache_answers(bench.shared, 1);
            turn_loop(&bench.clients.serving);
        }
        if (span_starts(span_of(before[i]), GET_ABSENT))
            buffer_take(&bench.client->replies.out, strlen(NIL));
        must_reply_as_one(bench.client, NIL);
        assert_int_equal(buffer_length(&bench.client->in), 0);
        buffer_finish(&input);
    }
    bench_finish(&bench);
}

/* With one visit in each turn: that many keys are taken, and that much of the reply is written. */
static void a_turn_takes_few_keys_and_joins_little_of_the_reply(void **state)
{
    enum { REPLY_AT_ONCE = 2 * LOOKUPS_AT_ONCE * KEY_SIZE };
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    bench.serving->turn.work = 1;
    for (int round = 0; round < 2; round++) {
        is_mget = round;
        draw_keys(MOST_KEYS);
        say_lookup(bench.client);
        const struct reply_slot *slot = bench.client->replies.first;
        for (size_t turn = 1; turn <= MOST_KEYS / LOOKUPS_AT_ONCE; turn++) {
            assert_int_equal(slot->lookup_count, (turn - 1) * LOOKUPS_AT_ONCE);
            turn_loop(&bench.clients.serving);
        }
        assert_int_equal(slot->lookup_count, MOST_KEYS);
        cache_answers(bench.shared, SIZE_MAX);
        size_t turns = 0, written = 0;
        for (; !is_done(bench.client); turns++) {
            turn_loop(&bench.clients.serving);
            size_t now = buffer_length(&bench.client->replies.out);
            assert_in_range(now - written, 0, REPLY_AT_ONCE);
            written = now;
        }
        assert_int_equal(turns, MOST_KEYS / LOOKUPS_AT_ONCE);
        must_reply_as_one(bench.client, "");
    }
    bench_finish(&bench);
}

/* Else many who take turns would need memory all at a time, and be cut off for it; of one alone
 * that says nothing. */
static void past_a_share_of_the_memory_a_second_lookup_is_served_at_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "max_client_memory: 1mb\n");
    struct client *other = client_add(&bench.clients);
    is_mget = true;
    draw_keys(MOST_KEYS);
    say_lookup(bench.client);
    assert_int_equal(bench.shared->count, 0);
    assert_true(bench.serving->piecemeal > 1024 * 1024 / 8);
    say_lookup(other);
    assert_int_equal(bench.shared->count, MOST_KEYS / LOOKUPS_AT_ONCE);
    while (!is_done(bench.client) || !is_done(other)) {
        turn_loop(&bench.clients.serving);
        cache_answers(bench.shared, SIZE_MAX);
    }
    assert_int_equal(bench.serving->piecemeal, 0);
    must_reply_as_one(other, "");
    must_reply_as_one(bench.client, "");
    bench_finish(&bench);
}

/* It is parsed where it stands, and so cannot be put back. */
static void an_inline_command_waits_for_nothing(void **state)
{
    struct bench bench;
    struct buffer input = {0};
    (void)state;
    bench_init(&bench, "");
    is_mget = true;
    draw_keys(2 * LOOKUPS_AT_ONCE);
    buffer_append(&input, "MGET", 4);
    for (size_t i = 0; i < key_count; i++)
        buffer_printf(&input, " \"%s\"", keys[i]);
    buffer_append(&input, "\r\n", 2);
    type(bench.client, SET_OTHER);
    type_bytes(bench.client, buffer_span(&input).at, buffer_length(&input));
    while (!is_done(bench.client)) {
        cache_answers(bench.shared, 1);
        turn_loop(&bench.clients.serving);
    }
    buffer_take(&bench.client->replies.out, strlen("+OK\r\n"));
    must_reply_as_one(bench.client, "");
    buffer_finish(&input);
    bench_finish(&bench);
}

/* Each key is decided upon by what holds when its piece comes: none is rejected any more. */
static void a_keyspace_that_stops_guarding_between_pieces_rejects_no_more(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    is_mget = false;
    key_count = MOST_KEYS;
    for (size_t i = 0; i < key_count; i++)
        snprintf(keys[i], KEY_SIZE, "passed:1%03zu", i % 1000);
    say_lookup(bench.client);
    assert_int_equal(bench.shared->count, 0);
    use_state(&bench.clients.serving, KEYSPACE_PASSING);
    size_t before = (size_t)COUNTED(&bench, PASSED, rejected);
    while (!is_done(bench.client)) {
        turn_loop(&bench.clients.serving);
        cache_answers(bench.shared, SIZE_MAX);
    }
    assert_int_equal(COUNTED(&bench, PASSED, rejected), before);
    buffer_clear(&bench.client->replies.out);
    bench_finish(&bench);
}

/* Of so many keys none is guarded, but perhaps the one at `guarded`. */
static void say_unguarded(struct client *client, struct buffer *command, size_t guarded)
{
    key_count = 3 * MOST_KEYS;
    resp_write_array(command, key_count + 1);
    resp_write_bulk(command, is_mget ? "MGET" : "EXISTS", is_mget ? 4 : 6);
    for (size_t i = 0; i < key_count; i++)
        resp_write_bulk(command, i == guarded ? "passed:1000" : "other:10000", 11);
    say(client, buffer_span(command).at, buffer_length(command));
}

/* Its memory is given back, and nobody is asked for what is left. */
static void a_client_that_goes_between_pieces_asks_for_no_more(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (int round = 0; round < 3; round++) {
        struct buffer command = {0};
        is_mget = round;
        struct client *client = client_add(&bench.clients);
        draw_keys(MOST_KEYS);
        if (round == 2)
            say_unguarded(client, &command, SIZE_MAX);
        else
            say_lookup(client);
        for (int turn = 0; turn < round % 2; turn++)
            turn_loop(&bench.clients.serving);
        client_close(client);
        size_t asked = bench.shared->count;
        turn_empty_line(&bench.serving->turn);
        turn_run(&bench.serving->turn, TURN_WRITE);
        assert_int_equal(bench.shared->count, asked);
        cache_answers(bench.shared, SIZE_MAX);
        assert_int_equal(bench.serving->piecemeal, 0);
        buffer_finish(&command);
    }
    bench_finish(&bench);
}

/* However long the cache takes to answer. */
static void what_a_client_gathered_goes_back_when_it_goes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (int round = 0; round < 2; round++) {
        is_mget = round;
        struct client *client = client_add(&bench.clients);
        draw_keys(MOST_KEYS);
        say_lookup(client);
        turn_empty_line(&bench.serving->turn);
        const struct reply_slot *slot = client->replies.first;
        assert_true(slot->gathered > MOST_KEYS * sizeof(struct lookup));
        client_close(client);
        turn_empty_line(&bench.serving->turn);
        assert_null(slot->lookups);
        assert_int_equal(slot->keys.size + slot->reply.size, 0);
        assert_true(slot->waiting > 0);
        cache_answers(bench.shared, SIZE_MAX);
        assert_ptr_equal(bench.serving->free_slots, slot);
        assert_int_equal(slot->gathered, 0);
        turn_run(&bench.serving->turn, TURN_WRITE);
    }
    bench_finish(&bench);
}

/* It is looked through in turn with others, and is one command for the cache: of one moment. */
static void a_command_without_a_guarded_key_goes_to_the_cache_as_it_came(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    struct client *other = client_add(&bench.clients);
    for (int round = 0; round < 2; round++) {
        struct buffer command = {0};
        is_mget = round;
        bench.serving->turn.work = 1;
        say_unguarded(bench.client, &command, SIZE_MAX);
        turn_loop(&bench.clients.serving);
        assert_int_equal(bench.shared->count, 0);
        say(other, GET_ABSENT, strlen(GET_ABSENT));
        buffer_clear(&other->replies.out);
        turn_loop(&bench.clients.serving);
        assert_int_equal(bench.serving->piecemeal, 0);
        buffer_append(&command, "", 1);
        must_send(bench.shared, buffer_span(&command).at);
        cache_says(bench.shared, ":7\r\n");
        must_reply(bench.client, ":7\r\n");
        assert_int_equal(bench.client->replies.gathered, 0);
        buffer_finish(&command);
    }
    bench_finish(&bench);
}

static void a_command_whose_last_key_is_guarded_is_lookups(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (int round = 0; round < 2; round++) {
        struct buffer command = {0};
        is_mget = round;
        say_unguarded(bench.client, &command, 3 * MOST_KEYS - 1);
        int before = COUNTED(&bench, PASSED, rejected);
        while (!is_done(bench.client)) {
            cache_answers(bench.shared, SIZE_MAX);
            turn_loop(&bench.clients.serving);
        }
        assert_int_equal(COUNTED(&bench, PASSED, rejected), before + 1);
        buffer_clear(&bench.client->replies.out);
        buffer_finish(&command);
    }
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_give_the_reply_of_one_whoever_comes_between),
        cmocka_unit_test(a_clients_commands_keep_their_order_around_pieces),
        cmocka_unit_test(a_lookup_waits_until_it_stands_first),
        cmocka_unit_test(a_turn_takes_few_keys_and_joins_little_of_the_reply),
        cmocka_unit_test(past_a_share_of_the_memory_a_second_lookup_is_served_at_once),
        cmocka_unit_test(an_inline_command_waits_for_nothing),
        cmocka_unit_test(a_keyspace_that_stops_guarding_between_pieces_rejects_no_more),
        cmocka_unit_test(a_client_that_goes_between_pieces_asks_for_no_more),
        cmocka_unit_test(what_a_client_gathered_goes_back_when_it_goes),
        cmocka_unit_test(a_command_without_a_guarded_key_goes_to_the_cache_as_it_came),
        cmocka_unit_test(a_command_whose_last_key_is_guarded_is_lookups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
