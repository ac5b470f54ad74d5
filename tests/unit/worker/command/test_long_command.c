/* Commands of more arguments than are read in one turn: others have theirs between, and then each
 * is served as if it had been read at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "worker/client/incomplete.h"

enum {
    KEYS = 50000,
    AT_MOST = 10000, /* arguments that are looked at in a visit */
    READ = 3 * 4096  /* so many arguments have been read after some */
};

static unsigned visits;

static void serve_counted(struct client *client, struct span input)
{
    visits++;
    serve(client, input);
}

static void init(struct bench *bench)
{
    bench_init(bench, "");
    bench->clients.serve = serve_counted;
    visits = 0;
}

/* Keys of no keyspace, or of one that has none of them. */
static struct buffer command_of(const char *name, const char *prefix)
{
    struct buffer out = {0};
    char key[24];
    resp_write_array(&out, KEYS + 1);
    resp_write_bulk(&out, name, strlen(name));
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "%s%d", prefix, i);
        resp_write_bulk(&out, key, strlen(key));
    }
    return out;
}

/* All but its end, which comes alone: it has been measured by then. */
static void type_beginning(struct client *client, const struct buffer *command)
{
    struct span all = buffer_span(command);
    type_bytes(client, all.at, 100);
    type_bytes(client, all.at + 100, all.length - 110);
}

/* As far as a turn goes without its line. */
static void say_end(struct client *client, const struct buffer *command)
{
    struct span all = buffer_span(command);
    buffer_append(&client->in, all.at + all.length - 10, 10);
    client_queue_input(client);
    turn_run(&client->serving->turn, TURN_WRITE);
}

static void finish_line(struct bench *bench)
{
    turn_empty_line(&bench->serving->turn);
    turn_run(&bench->serving->turn, TURN_WRITE);
}

static void must_send_bytes(struct upstream *upstream, const struct buffer *bytes)
{
    struct span sent = buffer_span(&upstream->out), wanted = buffer_span(bytes);
    assert_int_equal(sent.length, wanted.length);
    assert_memory_equal(sent.at, wanted.at, wanted.length);
    buffer_clear(&upstream->out);
}

static void must_have_nothing_left(const struct bench *bench)
{
    assert_null(bench->client->incomplete);
    assert_int_equal(bench->serving->piecemeal, 0);
    assert_int_equal(bench->serving->arguments.count, 0);
    assert_int_equal(buffer_length(&bench->client->in), 0);
}

/* It has gone to the cache as it came, and is answered. */
static void must_be_done(struct bench *bench, const struct buffer *command)
{
    must_send_bytes(bench->shared, command);
    cache_says(bench->shared, ":0\r\n");
    must_reply(bench->client, ":0\r\n");
    must_have_nothing_left(bench);
}

/* Wherever it goes from there. */
static void it_is_measured_and_read_in_visits(void **state)
{
    static const struct {
        const char *name, *prefix;
        bool sent; /* to the cache, as it came */
        const char *reply;
    } cases[] = {{"DEL", "item:n", true, ":0\r\n"},
                 {"DEL", "other:", true, ":0\r\n"},
                 {"SADD", "member:", true, ":1\r\n"},
                 {"MGET", "other:", true, "*0\r\n"},
                 {"EXISTS", "item:n", false, ":0\r\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench bench;
        struct buffer command = command_of(cases[i].name, cases[i].prefix);
        init(&bench);
        type_beginning(bench.client, &command);
        assert_in_range(visits, KEYS / AT_MOST, KEYS);
        visits = 0;
        say_end(bench.client, &command);
        must_send(bench.shared, "");
        finish_line(&bench);
        assert_in_range(visits, KEYS / AT_MOST, KEYS);
        if (cases[i].sent) {
            must_send_bytes(bench.shared, &command);
            cache_says(bench.shared, cases[i].reply);
            finish_line(&bench);
        }
        type(bench.client, PING);
        must_send(bench.shared, PING);
        cache_says(bench.shared, "+PONG\r\n");
        struct buffer wanted = {0};
        buffer_printf(&wanted, "%s+PONG\r\n", cases[i].reply);
        char *text = buffer_string(&wanted);
        must_reply(bench.client, text);
        free(text);
        must_have_nothing_left(&bench);
        assert_int_equal(counter_read(&bench.serving->counters.commands), 2);
        buffer_finish(&command);
        bench_finish(&bench);
    }
}

static void others_are_served_meanwhile(void **state)
{
    struct bench bench;
    struct buffer command = command_of("DEL", "item:n");
    (void)state;
    init(&bench);
    struct client *other = client_add(&bench.clients);
    type_beginning(bench.client, &command);
    say_end(bench.client, &command);
    buffer_append(&other->in, GET_ABSENT, strlen(GET_ABSENT));
    turn_add(&bench.serving->turn, &other->input_task);
    turn_run(&bench.serving->turn, TURN_WRITE);
    assert_int_equal(buffer_length(&other->replies.out), strlen(NIL));
    buffer_clear(&other->replies.out);
    assert_true(bench.client->input_task.queued);
    must_send(bench.shared, "");
    finish_line(&bench);
    must_be_done(&bench, &command);
    buffer_finish(&command);
    bench_finish(&bench);
}

/* Goes on until some of the arguments have been read. */
static void read_some(struct bench *bench, const struct buffer *command)
{
    struct turn *turn = &bench->serving->turn;
    type_beginning(bench->client, command);
    visits = 0;
    say_end(bench->client, command);
    for (int i = 0; i < READ / AT_MOST; i++)
        turn_run_now(turn, &bench->client->input_task);
    assert_non_null(bench->client->incomplete);
}

static void of_input_that_has_moved_all_is_read_anew(void **state)
{
    struct bench bench;
    struct buffer command = command_of("DEL", "item:n");
    (void)state;
    init(&bench);
    read_some(&bench, &command);
    struct buffer moved = {0};
    buffer_append(&moved, buffer_span(&bench.client->in).at, buffer_length(&bench.client->in));
    memset(bench.client->in.bytes, '?', bench.client->in.end);
    buffer_finish(&bench.client->in);
    bench.client->in = moved;
    finish_line(&bench);
    must_be_done(&bench, &command);
    buffer_finish(&command);
    bench_finish(&bench);
}

static void of_a_client_that_goes_nothing_is_left(void **state)
{
    struct bench bench;
    struct buffer command = command_of("DEL", "item:n");
    (void)state;
    init(&bench);
    read_some(&bench, &command);
    assert_true(bench.serving->piecemeal > KEYS * sizeof(struct span));
    assert_true(incomplete_bytes(bench.client) > KEYS * sizeof(struct span));
    client_close(bench.client);
    finish_line(&bench);
    assert_null(bench.client->incomplete);
    assert_int_equal(bench.serving->piecemeal, 0);
    must_send(bench.shared, "");
    buffer_finish(&command);
    bench_finish(&bench);
}

static void it_waits_for_what_is_under_way(void **state)
{
    struct bench bench;
    struct buffer command = command_of("DEL", "item:n"), both = {0};
    (void)state;
    init(&bench);
    buffer_append(&both, PING, strlen(PING));
    buffer_append(&both, buffer_span(&command).at, buffer_length(&command));
    type_beginning(bench.client, &both);
    say_end(bench.client, &both);
    finish_line(&bench);
    must_send(bench.shared, PING);
    assert_null(bench.client->incomplete);
    cache_says(bench.shared, "+PONG\r\n");
    must_reply(bench.client, "+PONG\r\n");
    must_be_done(&bench, &command);
    buffer_finish(&both);
    buffer_finish(&command);
    bench_finish(&bench);
}

/* What others have in pieces takes all the memory that there is for it. */
static void without_room_it_is_read_at_once(void **state)
{
    struct bench bench;
    struct buffer command = command_of("DEL", "item:n");
    (void)state;
    init(&bench);
    type_beginning(bench.client, &command);
    bench.serving->piecemeal = SIZE_MAX / 2;
    visits = 0;
    say_end(bench.client, &command);
    finish_line(&bench);
    bench.serving->piecemeal -= SIZE_MAX / 2;
    must_be_done(&bench, &command);
    buffer_finish(&command);
    bench_finish(&bench);
}

/* By a reload while it is read. */
static void what_is_over_a_limit_by_now_is_refused_and_leaves_nothing(void **state)
{
    static const char *const wanted[] = {"-ERR Protocol error: command longer than max_command\r\n",
                                         "-ERR Protocol error: invalid multibulk length\r\n",
                                         "-ERR Protocol error: invalid bulk length\r\n"};
    (void)state;
    for (int limit = 0; limit < 3; limit++) {
        struct bench bench;
        struct buffer command = command_of("DEL", "item:n");
        init(&bench);
        read_some(&bench, &command);
        struct config *config = (struct config *)serving_config(bench.serving);
        config->max_command = limit == 0 ? 100000 : config->max_command;
        config->max_arguments = limit == 1 ? 1000 : config->max_arguments;
        bench.serving->max_bulk = limit == 2 ? 5 : bench.serving->max_bulk;
        finish_line(&bench);
        must_reply(bench.client, wanted[limit]);
        must_send(bench.shared, "");
        client_close(bench.client);
        finish_line(&bench);
        must_have_nothing_left(&bench);
        buffer_finish(&command);
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_measured_and_read_in_visits),
        cmocka_unit_test(others_are_served_meanwhile),
        cmocka_unit_test(of_input_that_has_moved_all_is_read_anew),
        cmocka_unit_test(of_a_client_that_goes_nothing_is_left),
        cmocka_unit_test(it_waits_for_what_is_under_way),
        cmocka_unit_test(without_room_it_is_read_at_once),
        cmocka_unit_test(what_is_over_a_limit_by_now_is_refused_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
