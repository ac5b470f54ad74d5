/* Commands about more items than are answered at a time: whatever happens between two pieces, the
 * reply is that of one, in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "worker/command/keys/lookup_join.h"

enum { ITEMS_ASKED = 5 * LOOKUPS_AT_ONCE + 7 };

/* Every third is absent. */
static void write_command(struct buffer *out)
{
    char item[20];
    resp_write_array(out, ITEMS_ASKED + 2);
    resp_write_bulk(out, "BF.MEXISTS", 10);
    resp_write_bulk(out, "items", 5);
    for (int i = 0; i < ITEMS_ASKED; i++)
        resp_write_bulk(out, item,
                        (size_t)snprintf(item, sizeof item, "%d", i % 3 ? i % 100 : i + 1000));
}

/* Its input is there; as far as a turn goes without its line. */
static void serve_input(struct client *client)
{
    turn_add(&client->serving->turn, &client->input_task);
    turn_run(&client->serving->turn, TURN_WRITE);
}

static void say_items(struct client *client, const char *before, const char *behind)
{
    buffer_append(&client->in, before, strlen(before));
    write_command(&client->in);
    buffer_append(&client->in, behind, strlen(behind));
    serve_input(client);
}

static void must_reply_as_one(struct client *client, const char *before, const char *behind)
{
    struct buffer wanted = {0};
    bool resp3 = client->replies.resp3;
    buffer_append(&wanted, before, strlen(before));
    resp_write_array(&wanted, ITEMS_ASKED);
    for (int i = 0; i < ITEMS_ASKED; i++)
        resp_write_truth(&wanted, i % 3, resp3);
    buffer_append(&wanted, behind, strlen(behind) + 1);
    must_reply(client, buffer_span(&wanted).at);
    buffer_finish(&wanted);
}

static void run_turns(struct bench *bench)
{
    while (bench->client->replies.first)
        turn_loop(&bench->clients.serving);
}

static void others_are_served_between_the_pieces(void **state)
{
    struct bench bench;
    (void)state;
    for (int resp3 = 0; resp3 < 2; resp3++) {
        bench_init(&bench, "");
        struct client *other = client_add(&bench.clients);
        bench.client->replies.resp3 = resp3;
        say_items(bench.client, "", "");
        int turns = 0;
        for (; bench.client->replies.first; turns++) {
            assert_int_equal(buffer_length(&bench.client->replies.out), 0);
            buffer_append(&other->in, GET_ABSENT, strlen(GET_ABSENT));
            serve_input(other);
            assert_int_equal(buffer_length(&other->replies.out), strlen(NIL));
            buffer_clear(&other->replies.out);
            turn_loop(&bench.clients.serving);
        }
        assert_in_range(turns, 2, ITEMS_ASKED / LOOKUPS_AT_ONCE + 1);
        must_reply_as_one(bench.client, "", "");
        assert_int_equal(COUNTED(&bench, ITEMS, members), ITEMS_ASKED);
        assert_int_equal(bench.serving->piecemeal, 0);
        assert_int_equal(bench.client->replies.gathered, 0);
        bench_finish(&bench);
    }
}

static void a_clients_commands_keep_their_order_around_pieces(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    say_items(bench.client, GET_ITEM_1 GET_ABSENT, PING);
    must_send(bench.shared, GET_ITEM_1);
    turn_empty_line(&bench.serving->turn);
    must_send(bench.shared, "");
    cache_says(bench.shared, "$3\r\none\r\n");
    run_turns(&bench);
    turn_loop(&bench.clients.serving);
    must_send(bench.shared, PING);
    cache_says(bench.shared, "+PONG\r\n");
    must_reply_as_one(bench.client, "$3\r\none\r\n" NIL, "+PONG\r\n");
    bench_finish(&bench);
}

/* Each item is decided upon by what holds when its piece comes. */
static void a_keyspace_that_stops_guarding_between_pieces_rejects_no_more(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    say_items(bench.client, "", "");
    use_state(&bench.clients.serving, KEYSPACE_PASSING);
    run_turns(&bench);
    assert_int_equal(COUNTED(&bench, ITEMS, rejected), 0);
    buffer_clear(&bench.client->replies.out);
    bench_finish(&bench);
}

static void a_client_that_goes_between_pieces_asks_for_no_more(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (int turns = 0; turns < 2; turns++) {
        struct client *client = client_add(&bench.clients);
        say_items(client, "", "");
        if (turns)
            turn_loop(&bench.clients.serving);
        int asked = COUNTED(&bench, ITEMS, members);
        client_close(client);
        turn_empty_line(&bench.serving->turn);
        turn_run(&bench.serving->turn, TURN_WRITE);
        assert_int_equal(COUNTED(&bench, ITEMS, members), asked);
        assert_int_equal(bench.serving->piecemeal, 0);
    }
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_served_between_the_pieces),
        cmocka_unit_test(a_clients_commands_keep_their_order_around_pieces),
        cmocka_unit_test(a_keyspace_that_stops_guarding_between_pieces_rejects_no_more),
        cmocka_unit_test(a_client_that_goes_between_pieces_asks_for_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
