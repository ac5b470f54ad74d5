#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "redis/topology/redis_map.h"
#include <errno.h>
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct redis_map map;

static int open_map(void **state)
{
    (void)state;
    redis_map_init(&map);
    return 0;
}

static int close_map(void **state)
{
    (void)state;
    redis_map_finish(&map);
    return 0;
}

/* What a node at 10.0.0.9:7000 answers; *why is left in `objection`. */
static const char *objection;

static const struct redis_place asked = {"10.0.0.9", 7000};

static redisReply *reply_of(const char *resp)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    redisReaderFeed(reader, resp, strlen(resp));
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

static int take(const char *resp)
{
    redisReply *reply = reply_of(resp);
    int status = redis_map_take(&map, reply, &asked, &objection);
    freeReplyObject(reply);
    return status;
}

static void look_over(const char *resp)
{
    redisReply *reply = reply_of(resp);
    redis_map_look_over(&map, reply, &asked);
    freeReplyObject(reply);
}

#define NODE(host, port) "*3\r\n" host ":" port "\r\n$2\r\nid\r\n"
#define RANGE(first, last, node) "*3\r\n:" first "\r\n:" last "\r\n" node
#define A NODE("$8\r\n10.0.0.1\r\n", "1")
#define B NODE("$8\r\n10.0.0.2\r\n", "2")

static void must_own(unsigned slot, const char *host)
{
    int owner = redis_map_owner(&map, slot);
    assert_true(owner >= 0);
    assert_string_equal(map.nodes[owner].place.host, host);
}

static void an_answer_says_who_has_which_slots(void **state)
{
    (void)state;
    assert_int_equal(redis_map_uncovered(&map), REDIS_SLOTS);
    assert_int_equal(take("*2\r\n" RANGE("0", "8000", A) RANGE("8001", "16383", B)), 1);
    must_own(0, "10.0.0.1");
    must_own(8000, "10.0.0.1");
    must_own(8001, "10.0.0.2");
    must_own(16383, "10.0.0.2");
    assert_int_equal(redis_map_uncovered(&map), 0);
    assert_int_equal(take("*2\r\n" RANGE("0", "8000", A) RANGE("8001", "16383", B)), 0);
}

/* As two workers may: one has heard of the other node first. */
static void what_maps_have_in_common_does_not_depend_on_who_was_heard_of_first(void **state)
{
    struct redis_map other;
    struct redis_place places[] = {{"10.0.0.1", 1}, {"10.0.0.2", 2}, {"10.0.0.2", 1}};
    (void)state;
    redis_map_init(&other);
    for (int i = 0; i < 3; i++) {
        redis_map_number(&map, &places[i]);
        redis_map_number(&other, &places[2 - i]);
    }
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        unsigned backwards = REDIS_SLOTS - 1 - slot;
        redis_map_move(&map, slot, (int)(slot % 3));
        redis_map_move(&other, backwards, (int)(2 - backwards % 3));
    }
    assert_true(map.digest && map.digest == other.digest);
    assert_int_equal(redis_map_owners(&map), 3);
    for (unsigned rank = 0; rank < 3; rank++) {
        int here = redis_map_ranked(&map, rank), there = redis_map_ranked(&other, rank);
        assert_true(redis_place_equal(&map.nodes[here].place, &other.nodes[there].place));
    }
    assert_int_equal(redis_map_ranked(&map, 3), -ENOENT);
    assert_true(redis_map_move(&map, 7, 2));
    assert_int_not_equal(map.digest, other.digest);
    assert_true(redis_map_move(&map, 7, 1));
    assert_int_equal(map.digest, other.digest);
    redis_map_finish(&other);
}

static void a_node_that_does_not_know_its_name_is_who_was_asked(void **state)
{
    (void)state;
    assert_int_equal(take("*1\r\n" RANGE("0", "0", NODE("$0\r\n\r\n", "7"))), 1);
    must_own(0, "10.0.0.9");
    assert_int_equal(take("*1\r\n" RANGE("1", "1", NODE("$-1\r\n", "7"))), 1);
    must_own(1, "10.0.0.9");
    assert_int_equal(take("*1\r\n" RANGE("2", "2", NODE("$1\r\n?\r\n", "7"))), 1);
    must_own(2, "10.0.0.9");
}

#define BESIDE(host, count, pairs) "*4\r\n" host ":7\r\n$2\r\nid\r\n*" count "\r\n" pairs
#define UNNAMED(count, pairs) BESIDE("$1\r\n?\r\n", count, pairs)
#define IP "$2\r\nip\r\n"
#define ADDRESS IP "$8\r\n10.0.0.3\r\n"

static void a_node_without_the_name_that_is_preferred_is_at_its_address(void **state)
{
    (void)state;
    take("*1\r\n" RANGE("0", "0", UNNAMED("2", ADDRESS)));
    must_own(0, "10.0.0.3");
    take("*1\r\n" RANGE("1", "1", UNNAMED("4", "$1\r\na\r\n$1\r\nb\r\n" ADDRESS)));
    must_own(1, "10.0.0.3");
}

static void one_whose_address_is_not_told_either_is_who_was_asked(void **state)
{
    static const char *const answers[] = {
        "*1\r\n" RANGE("0", "0", UNNAMED("0", "")),
        "*1\r\n" RANGE("1", "1", UNNAMED("1", IP)),
        "*1\r\n" RANGE("2", "2", UNNAMED("2", IP "$0\r\n\r\n")),
        "*1\r\n" RANGE("3", "3", UNNAMED("2", IP "$-1\r\n")),
    };
    (void)state;
    for (unsigned i = 0; i < sizeof answers / sizeof *answers; i++) {
        assert_int_equal(take(answers[i]), 1);
        must_own(i, "10.0.0.9");
    }
}

/* So Redis says of nodes behind a balancer, whose addresses lead nowhere from here. */
static void an_endpoint_that_is_left_out_is_who_was_asked_whatever_the_address(void **state)
{
    (void)state;
    take("*1\r\n" RANGE("0", "0", BESIDE("$-1\r\n", "2", ADDRESS)));
    must_own(0, "10.0.0.9");
    take("*1\r\n" RANGE("1", "1", BESIDE("$0\r\n\r\n", "2", ADDRESS)));
    must_own(1, "10.0.0.9");
}

static void a_slot_that_is_left_out_stays_whose_it_was(void **state)
{
    (void)state;
    take("*1\r\n" RANGE("0", "10", A));
    assert_int_equal(take("*1\r\n" RANGE("5", "5", B)), 1);
    must_own(4, "10.0.0.1");
    must_own(5, "10.0.0.2");
    assert_int_equal(redis_map_owner(&map, 11), -ENOENT);
}

/* The word of a node whose cluster is down, maybe for that. */
static void what_is_left_out_is_counted_though_no_owner_is_taken(void **state)
{
    (void)state;
    take("*1\r\n" RANGE("0", "16383", A));
    assert_int_equal(map.left_out, 0);
    look_over("*2\r\n" RANGE("0", "4999", B) RANGE("5007", "16383", B));
    assert_int_equal(map.left_out, 7);
    must_own(0, "10.0.0.1");
    look_over("*0\r\n");
    assert_int_equal(map.left_out, 7);
}

static void what_is_no_such_answer_changes_nothing(void **state)
{
    static const char *const answers[] = {
        "-ERR This instance has cluster support disabled\r\n",
        ":1\r\n",
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n" RANGE("5", "4", A),
        "*1\r\n" RANGE("-1", "4", A),
        "*1\r\n" RANGE("0", "16384", A),
        "*2\r\n" RANGE("0", "16383", A) RANGE("7", "7", B),
        "*1\r\n" RANGE("0", "1", ":5\r\n"),
        "*1\r\n" RANGE("0", "1", NODE("$1\r\na\r\n", "0")),
        "*1\r\n" RANGE("0", "1", NODE("$1\r\na\r\n", "65536")),
        "*1\r\n" RANGE("0", "1", NODE("$3\r\na b\r\n", "1")),
        "*1\r\n" RANGE("0", "1", NODE("*0\r\n", "1")),
    };
    (void)state;
    take("*1\r\n" RANGE("0", "10", A));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        assert_int_equal(take(answers[i]), -EPROTO);
        assert_non_null(objection);
        must_own(0, "10.0.0.1");
    }
}

/* So many single slots, each of a node of its own. */
static int take_many(unsigned count)
{
    static char answer[REDIS_SLOTS * 64];
    int length = snprintf(answer, sizeof answer, "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++)
        length += snprintf(answer + length, sizeof answer - (size_t)length,
                           "*3\r\n:%u\r\n:%u\r\n*2\r\n$1\r\nh\r\n:%u\r\n", i, i, i + 1);
    return take(answer);
}

static void an_answer_that_names_too_many_leaves_numbers_for_the_next(void **state)
{
    (void)state;
    assert_int_equal(take_many(REDIS_SLOTS), -EPROTO);
    assert_int_equal(take_many(REDIS_MAP_NAMED + 1), -EPROTO);
    assert_int_equal(map.count, 0);
    assert_int_equal(take_many(REDIS_MAP_NAMED), 1);
    take("*1\r\n" RANGE("0", "16383", A));
    assert_int_equal(redis_map_next(&map, redis_map_next(&map, -1)), -ENOENT);
}

static void a_slot_may_be_moved(void **state)
{
    (void)state;
    take("*2\r\n" RANGE("0", "10", A) RANGE("11", "20", B));
    int to = redis_map_owner(&map, 11), from = redis_map_owner(&map, 0);
    assert_true(redis_map_move(&map, 0, to));
    assert_false(redis_map_move(&map, 0, to));
    must_own(0, "10.0.0.2");
    assert_int_equal(map.nodes[from].slots, 10);
    assert_int_equal(map.nodes[to].slots, 11);
}

static void a_number_lasts_and_is_the_last_to_be_given_again(void **state)
{
    struct redis_place place = {"10.0.0.3", 3};
    (void)state;
    int number = redis_map_number(&map, &place);
    assert_int_equal(redis_map_number(&map, &place), number);
    redis_map_drop(&map, number);
    assert_int_equal(map.count, 0);
    place.port = 4;
    assert_int_not_equal(redis_map_number(&map, &place), number);
}

static void there_is_an_end_to_the_numbers(void **state)
{
    struct redis_place place = {.host = "h"};
    (void)state;
    for (uint16_t i = 1; i <= REDIS_MAP_NODES; i++) {
        place.port = i;
        assert_true(redis_map_number(&map, &place) >= 0);
    }
    place.port = REDIS_MAP_NODES + 1;
    assert_int_equal(redis_map_number(&map, &place), -ENOSPC);
    redis_map_drop(&map, 17);
    assert_int_equal(redis_map_number(&map, &place), 17);
}

static void the_nodes_that_have_slots_are_gone_through(void **state)
{
    struct redis_place idle = {"10.0.0.7", 7};
    (void)state;
    assert_int_equal(redis_map_next(&map, -1), -ENOENT);
    redis_map_number(&map, &idle);
    take("*2\r\n" RANGE("0", "1", A) RANGE("2", "3", B));
    int first = redis_map_next(&map, -1), second = redis_map_next(&map, first);
    assert_string_equal(map.nodes[first].place.host, "10.0.0.1");
    assert_string_equal(map.nodes[second].place.host, "10.0.0.2");
    assert_int_equal(redis_map_next(&map, second), -ENOENT);
    assert_true(redis_map_owns(&map, &map.nodes[second].place));
    assert_false(redis_map_owns(&map, &idle));
    assert_false(redis_map_owns(&map, NULL));
    assert_false(redis_map_owns(NULL, &idle));
}

/* A range of one slot, whose primary has this id, and a replica that one. */
#define OF_IDS(primary, replica)                                                                   \
    "*1\r\n*4\r\n:0\r\n:0\r\n*3\r\n$1\r\nh\r\n:1\r\n$1\r\n" primary "\r\n"                         \
    "*3\r\n$1\r\nh\r\n:2\r\n$1\r\n" replica "\r\n"

static void must_be_akin(bool akin, const char *resp)
{
    redisReply *reply = reply_of(resp);
    assert_int_equal(redis_map_is_akin(&map, reply), akin);
    freeReplyObject(reply);
}

static void another_cluster_is_told_by_its_nodes_ids(void **state)
{
    (void)state;
    must_be_akin(true, OF_IDS("a", "b"));
    take(OF_IDS("a", "b"));
    must_be_akin(true, OF_IDS("a", "c"));
    must_be_akin(true, OF_IDS("b", "c")); /* the replica has taken over */
    must_be_akin(true, OF_IDS("c", "a"));
    must_be_akin(false, OF_IDS("c", "d"));
    take(OF_IDS("b", "c"));
    must_be_akin(true, OF_IDS("c", "d"));
    must_be_akin(true, OF_IDS("a", "d")); /* who was cut off with c did not name it */
    must_be_akin(false, OF_IDS("d", "e"));
}

static void who_tells_no_ids_may_be_any(void **state)
{
    (void)state;
    take(OF_IDS("a", "b"));
    must_be_akin(true, "*1\r\n*3\r\n:0\r\n:0\r\n*2\r\n$1\r\nh\r\n:1\r\n");
    must_be_akin(true, "-ERR no\r\n");
    must_be_akin(true, "*1\r\n*3\r\n:0\r\n:0\r\n$3\r\nyes\r\n");
}

static void who_is_not_named_any_more_is_forgotten(void **state)
{
    (void)state;
    take(OF_IDS("a", "b"));
    for (int i = 0; i < REDIS_MAP_REMEMBERED; i++) {
        must_be_akin(true, OF_IDS("b", "x"));
        take(OF_IDS("a", "c"));
    }
    must_be_akin(false, OF_IDS("b", "x"));
    must_be_akin(true, OF_IDS("c", "x"));
}

static void must_be_stranger(bool stranger, const char *port, const char *id)
{
    struct redis_place place;
    assert_true(redis_place_set(&place, "h", port));
    assert_int_equal(redis_map_is_stranger(&map, &place, id, strlen(id)), stranger);
}

static void whom_an_answer_has_named_is_known_by_an_id_of_the_cluster(void **state)
{
    struct redis_place place;
    (void)state;
    must_be_stranger(false, "1", "a"); /* nothing is known */
    take(OF_IDS("a", "b"));
    must_be_stranger(false, "1", "a");
    must_be_stranger(false, "1", "b"); /* addresses were given anew within the cluster */
    must_be_stranger(true, "1", "x");
    must_be_stranger(false, "1", ""); /* it does not tell */
    must_be_stranger(true, "2", "x"); /* as a replica is named, which has no number */
    assert_true(redis_place_set(&place, "h", "3"));
    assert_true(redis_map_number(&map, &place) >= 0);
    must_be_stranger(false, "3", "x"); /* a redirection led there: it is new */
}

static void a_cluster_that_was_made_anew_is_another(void **state)
{
    (void)state;
    take(OF_IDS("a", "b"));
    take(OF_IDS("c", "d"));
    must_be_akin(false, OF_IDS("a", "b"));
    must_be_stranger(true, "1", "a");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_map, close_map)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_says_who_has_which_slots),
        TEST(what_maps_have_in_common_does_not_depend_on_who_was_heard_of_first),
        TEST(a_node_that_does_not_know_its_name_is_who_was_asked),
        TEST(a_node_without_the_name_that_is_preferred_is_at_its_address),
        TEST(one_whose_address_is_not_told_either_is_who_was_asked),
        TEST(an_endpoint_that_is_left_out_is_who_was_asked_whatever_the_address),
        TEST(a_slot_that_is_left_out_stays_whose_it_was),
        TEST(what_is_left_out_is_counted_though_no_owner_is_taken),
        TEST(what_is_no_such_answer_changes_nothing),
        TEST(an_answer_that_names_too_many_leaves_numbers_for_the_next),
        TEST(a_slot_may_be_moved),
        TEST(a_number_lasts_and_is_the_last_to_be_given_again),
        TEST(there_is_an_end_to_the_numbers),
        TEST(the_nodes_that_have_slots_are_gone_through),
        TEST(another_cluster_is_told_by_its_nodes_ids),
        TEST(who_tells_no_ids_may_be_any),
        TEST(who_is_not_named_any_more_is_forgotten),
        TEST(whom_an_answer_has_named_is_known_by_an_id_of_the_cluster),
        TEST(a_cluster_that_was_made_anew_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
