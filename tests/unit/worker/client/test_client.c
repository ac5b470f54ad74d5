/* One client: its life, and when more of its input may be served. */
#include "worker/client/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fakes/client.h"
#include "fakes/upstream.h"
#include "worker/client/account.h"

enum { MOST_COMMANDS = 1024, PAUSE_BYTES = 1024 * 1024 };

static struct fake_clients clients;
static struct client *client;

static const struct reply_slot_kind plain = {0};

static int open_client(void **state)
{
    (void)state;
    fake_clients_init(&clients, "", NULL, NULL);
    client = client_add(&clients);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    fake_clients_finish(&clients);
    return 0;
}

static void end_turn(void)
{
    must_reply(client, "");
}

static void must_have_input(const char *wanted)
{
    struct span input = client_input(client);
    assert_int_equal(input.length, strlen(wanted));
    assert_memory_equal(input.at, wanted, input.length);
}

/* ---- its end ---- */

static void closing_lets_go_of_replies_that_are_still_owed(void **state)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &plain);
    (void)state;
    client_close(client);
    client_close(client);
    assert_int_equal(client->state, CLIENT_CLOSING);
    assert_null(slot->replies);
    assert_null(client->replies.first);
    end_turn();
    assert_int_equal(client->state, CLIENT_CLOSED);
    reply_slot_answered(slot); /* frees it */
    assert_int_equal(clients.clients.serving->free_slot_count, 1);
}

static void a_dropped_client_is_counted_once(void **state)
{
    const counter *dropped = &clients.clients.serving->counters.clients_dropped;
    (void)state;
    client_drop(client);
    client_drop(client);
    end_turn();
    client_drop(client);
    assert_int_equal(counter_read(dropped), 1);
    assert_int_equal(client->state, CLIENT_CLOSED);
}

static void one_that_closes_by_itself_is_not_dropped(void **state)
{
    (void)state;
    client_close(client);
    client_drop(client);
    assert_int_equal(counter_read(&clients.clients.serving->counters.clients_dropped), 0);
}

static void a_leaving_client_keeps_its_replies_and_gets_no_more_served(void **state)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &plain);
    (void)state;
    client_leave(client);
    client_leave(client);
    assert_int_equal(client->state, CLIENT_LEAVING);
    assert_true(client_is_ending(client));
    assert_false(client_wants_input(client));
    end_turn();
    assert_ptr_equal(slot->replies, &client->replies);
    client_close(client);
    client_leave(client); /* too late to go back */
    assert_int_equal(client->state, CLIENT_CLOSING);
    reply_slot_answered(slot);
}

static void one_whose_replies_can_come_to_no_good_end_is_ending(void **state)
{
    (void)state;
    assert_false(client_is_ending(client));
    client->replies.end = REPLIES_BROKEN;
    assert_true(client_is_ending(client));
    assert_false(client_wants_input(client));
}

/* ---- its input ---- */

static void more_is_served_only_while_there_is_room_for_its_replies(void **state)
{
    char *large = xcalloc(1, PAUSE_BYTES);
    (void)state;
    buffer_append(&client->replies.out, large, PAUSE_BYTES - 1);
    assert_true(client_wants_input(client));
    buffer_append(&client->replies.out, large, 1);
    assert_false(client_wants_input(client));
    buffer_clear(&client->replies.out);
    client->replies.sending = PAUSE_BYTES; /* nor while the socket has not taken them */
    assert_false(client_wants_input(client));
    client->replies.sending = 0;
    assert_true(client_wants_input(client));
    free(large);
}

static void more_is_served_only_while_not_too_many_commands_are_under_way(void **state)
{
    struct reply_slot *slots[MOST_COMMANDS];
    (void)state;
    for (size_t i = 0; i < MOST_COMMANDS; i++) {
        assert_true(client_wants_input(client));
        slots[i] = reply_slot_open(&client->replies, &plain);
    }
    assert_false(client_wants_input(client));
    reply_slot_answered(slots[0]);
    assert_true(client_wants_input(client));
    for (size_t i = 1; i < MOST_COMMANDS; i++)
        reply_slot_answered(slots[i]);
}

static void more_is_served_only_while_the_cache_takes_commands(void **state)
{
    (void)state;
    client->upstream->congested = true;
    assert_false(client_wants_input(client));
    client->upstream->congested = false;
    assert_true(client_wants_input(client));
}

static void a_settling_client_waits_for_its_replies_only(void **state)
{
    (void)state;
    client_settle(client);
    assert_true(client_wants_input(client)); /* none is under way */
    struct reply_slot *slot = reply_slot_open(&client->replies, &plain);
    assert_false(client_wants_input(client));
    reply_slot_answered(slot);
    assert_true(client_wants_input(client));
}

static void input_that_cannot_complete_a_command_is_not_looked_at(void **state)
{
    (void)state;
    buffer_append(&client->in, "abcd", 4);
    client->need = 5;
    must_have_input("");
    buffer_append(&client->in, "e", 1);
    must_have_input("abcde");
}

static void what_is_not_taken_stays_and_comes_again(void **state)
{
    (void)state;
    buffer_append(&client->in, "abcdef", 6);
    client_took(client, 2);
    assert_true(client->input_task.queued); /* there may be a whole command in it */
    must_have_input("cdef");
    end_turn();
    client_took(client, 0);
    assert_false(client->input_task.queued);
    must_have_input("cdef");
    client_took(client, 4);
    must_have_input("");
    assert_false(client->input_task.queued);
}

/* Nothing of it is copied but what is little: what stands behind it, here and there. */
static void input_that_is_given_away_goes_as_it_is(void **state)
{
    struct buffer heir = {0};
    (void)state;
    buffer_append(&client->in, "one, two", 8);
    buffer_reserve(&client->in, 100);
    const char *at = client->in.bytes;
    client_give_input(client, &heir);
    buffer_append(&heir, "more", 4);
    client_took(client, 5);
    assert_ptr_equal(heir.bytes, at);
    assert_int_equal(buffer_length(&heir), 9);
    assert_memory_equal(buffer_span(&heir).at, "one, more", 9);
    must_have_input("two");
    buffer_finish(&heir);
    end_turn();
}

/* It lies where every client's input is parsed: there it is only for this turn. */
static void fresh_input_that_is_not_taken_moves_to_where_it_may_stay(void **state)
{
    char fresh[] = "abcdef";
    (void)state;
    client->fresh = (struct span){fresh, 6};
    client_took(client, 2);
    assert_ptr_equal(client_input(client).at, fresh + 2); /* it may be served in this turn, too */
    client_took(client, 0);
    memset(fresh, '#', sizeof fresh);
    must_have_input("cdef");
    assert_int_equal(client->fresh.length, 0);
}

/* ---- connections to the cache ---- */

static void a_protocol_has_its_own_shared_connection_once_somebody_speaks_it(void **state)
{
    struct client *other = client_add(&clients);
    struct upstream *resp2 = client->upstream;
    (void)state;
    assert_ptr_equal(other->upstream, resp2);
    assert_ptr_equal(last_upstream, resp2);
    client_speak(client, true);
    assert_true(client->replies.resp3);
    assert_ptr_not_equal(client->upstream, resp2);
    assert_true(client->upstream->options.resp3);
    assert_null(client->upstream->options.owner);
    client_speak(other, true);
    assert_ptr_equal(other->upstream, client->upstream);
    client_speak(client, false);
    assert_ptr_equal(client->upstream, resp2);
}

static void one_with_its_own_connection_keeps_it_when_it_speaks_otherwise(void **state)
{
    struct upstream own = {.count = 0};
    (void)state;
    client->pinned.own = client->upstream = &own;
    client_speak(client, true);
    assert_ptr_equal(client->upstream, &own);
    assert_true(client->replies.resp3);
    client->pinned.own = NULL;
}

int main(void)
{
#define CLIENT_TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(closing_lets_go_of_replies_that_are_still_owed),
        CLIENT_TEST(a_dropped_client_is_counted_once),
        CLIENT_TEST(one_that_closes_by_itself_is_not_dropped),
        CLIENT_TEST(a_leaving_client_keeps_its_replies_and_gets_no_more_served),
        CLIENT_TEST(one_whose_replies_can_come_to_no_good_end_is_ending),
        CLIENT_TEST(more_is_served_only_while_there_is_room_for_its_replies),
        CLIENT_TEST(more_is_served_only_while_not_too_many_commands_are_under_way),
        CLIENT_TEST(more_is_served_only_while_the_cache_takes_commands),
        CLIENT_TEST(a_settling_client_waits_for_its_replies_only),
        CLIENT_TEST(input_that_cannot_complete_a_command_is_not_looked_at),
        CLIENT_TEST(what_is_not_taken_stays_and_comes_again),
        CLIENT_TEST(input_that_is_given_away_goes_as_it_is),
        CLIENT_TEST(fresh_input_that_is_not_taken_moves_to_where_it_may_stay),
        CLIENT_TEST(a_protocol_has_its_own_shared_connection_once_somebody_speaks_it),
        CLIENT_TEST(one_with_its_own_connection_keeps_it_when_it_speaks_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
