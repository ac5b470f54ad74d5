/* Loads of a client's lookups: how many are with the keeper, and in which order answers are taken.
 */
#include "worker/request/row_loads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/replies.h"

enum { KEYS = 100, AT_ONCE = 32, REQUESTS = 4 * KEYS };

/* A keeper that answers when the test says so, oldest request first. */
struct keeper {
    uv_loop_t loop;
    struct mailbox mailbox;
    struct load_request *asked[REQUESTS];
    size_t count, answered;
};

static void on_request(void *arg, struct message *message)
{
    struct keeper *keeper = arg;
    keeper->asked[keeper->count++] = (struct load_request *)message;
}

/* How many requests have not been answered. */
static size_t asked(struct keeper *keeper)
{
    uv_run(&keeper->loop, UV_RUN_NOWAIT);
    return keeper->count - keeper->answered;
}

static void answer_next(struct keeper *keeper, enum load_outcome outcome)
{
    struct load_request *request = keeper->asked[keeper->answered++];
    row_loaded(request->lookup, outcome, NULL);
    free(request);
}

static void keeper_init(struct keeper *keeper, struct bench *bench)
{
    bench_init(bench);
    *keeper = (struct keeper){.count = 0};
    assert_int_equal(uv_loop_init(&keeper->loop), 0);
    assert_int_equal(mailbox_init(&keeper->mailbox, &keeper->loop, on_request, keeper), 0);
    bench->serving->keeper = &keeper->mailbox;
}

static void keeper_finish(struct keeper *keeper, struct bench *bench)
{
    assert_int_equal(asked(keeper), 0);
    mailbox_close(&keeper->mailbox);
    uv_run(&keeper->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&keeper->loop), 0);
    bench_finish(bench);
}

static void take_load(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    (void)value;
    size_t begun = lookup_begin(lookup);
    buffer_append(&lookup->slot->reply, &"rabctdfml"[outcome], 1);
    lookup_end(lookup, begun);
}

static void write_answers(struct reply_slot *slot)
{
    struct buffer answers = reply_slot_take_answers(slot);
    for (size_t i = 0; i < slot->lookup_count; i++)
        buffer_append(reply_slot_output(slot), lookup_answer(&slot->lookups[i], &answers).at, 1);
    buffer_finish(&answers);
}

static const struct reply_slot_kind load_kind = {.on_loaded = take_load, .finish = write_answers};

/* A slot whose lookups were all asked to load. */
static void load_all(struct bench *bench)
{
    struct span keys[KEYS];
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = span_of("a:1");
    struct reply_slot *slot = reply_slot_open(&bench->replies, &load_kind);
    reply_slot_set_lookups(slot, keys, KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        slot->lookups[i].keyspace = 0;
        row_load(&slot->lookups[i]);
    }
    reply_slot_answered(slot);
}

static void the_keeper_has_a_bounded_number_of_a_clients_loads(void **state)
{
    char wanted[KEYS + 1] = {0};
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(asked(&keeper), i + AT_ONCE < KEYS ? AT_ONCE : KEYS - i);
        must_leave(&bench, "");
        answer_next(&keeper, i % 3 ? LOAD_ROW : LOAD_ABSENT);
        wanted[i] = i % 3 ? 'r' : 'a';
    }
    must_leave(&bench, wanted);
    keeper_finish(&keeper, &bench);
}

static void several_commands_of_a_client_share_its_places(void **state)
{
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    load_all(&bench);
    assert_int_equal(asked(&keeper), AT_ONCE);
    assert_int_equal(bench.replies.to_load_count, 2 * KEYS - AT_ONCE);
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(asked(&keeper), AT_ONCE);
        answer_next(&keeper, LOAD_ROW);
    }
    while (asked(&keeper))
        answer_next(&keeper, LOAD_ROW);
    assert_int_equal(bench.replies.to_load_count, 0);
    assert_int_equal(buffer_length(&bench.replies.out), 2 * KEYS);
    buffer_clear(&bench.replies.out);
    turn_cancel(&bench.serving->turn, &bench.task);
    keeper_finish(&keeper, &bench);
}

static void the_keeper_is_told_that_a_client_went(void **state)
{
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    assert_int_equal(asked(&keeper), AT_ONCE);
    assert_false(*keeper.asked[0]->gone);
    replies_abandon(&bench.replies);
    assert_true(*keeper.asked[0]->gone);
    for (size_t i = 0; i < AT_ONCE; i++)
        answer_next(&keeper, LOAD_BUSY);
    assert_int_equal(bench.serving->free_slot_count, 1);
    assert_false(bench.serving->free_slots->gone);
    keeper_finish(&keeper, &bench);
}

/* The others would wait for as long again. */
static void no_turn_for_one_is_none_for_those_behind(void **state)
{
    char wanted[KEYS + 1] = {0};
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    assert_int_equal(asked(&keeper), AT_ONCE);
    answer_next(&keeper, LOAD_BUSY);
    for (size_t i = 1; i < AT_ONCE; i++)
        answer_next(&keeper, LOAD_ROW);
    memset(wanted, 'b', KEYS);
    memset(wanted + 1, 'r', AT_ONCE - 1);
    must_leave(&bench, wanted);
    keeper_finish(&keeper, &bench);
}

static void loads_of_a_client_that_went_are_not_asked_for(void **state)
{
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    assert_int_equal(asked(&keeper), AT_ONCE);
    answer_next(&keeper, LOAD_ROW);
    replies_abandon(&bench.replies);
    assert_int_equal(asked(&keeper), AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++)
        answer_next(&keeper, LOAD_ROW);
    must_leave(&bench, "");
    assert_int_equal(bench.serving->free_slot_count, 1);
    keeper_finish(&keeper, &bench);
}

/* One that does not read: the answer to its load ends it, and what it has goes back once. */
static void a_client_that_goes_by_the_answer_itself_gives_back_all_once(void **state)
{
    enum { MANY = 2000 };
    struct span keys[MANY];
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    struct serving *serving = bench.serving;
    serving->turn.back = &serving->turn.front;
    for (size_t i = 0; i < MANY; i++)
        keys[i] = span_of("a:1");
    struct reply_slot *slot = reply_slot_open(&bench.replies, &load_kind);
    reply_slot_set_lookups(slot, keys, MANY);
    slot->lookups[0].keyspace = 0;
    row_load(&slot->lookups[0]);
    slot->waiting++; /* for the cache */
    reply_slot_answered(slot);
    assert_int_equal(asked(&keeper), 1);
    bench.replies.sending = serving_config(serving)->max_output + 1;
    answer_next(&keeper, LOAD_ROW);
    assert_int_equal(bench.replies.end, REPLIES_OVERFLOWN);
    assert_ptr_equal(serving->gone.first, slot);
    assert_int_equal(slot->waiting, 2);
    turn_run_now(&serving->turn, &serving->gone.task);
    assert_null(serving->gone.first);
    assert_int_equal(slot->waiting, 1);
    assert_int_equal(serving->free_slot_count, 0);
    reply_slot_answered(slot);
    assert_int_equal(serving->free_slot_count, 1);
    turn_cancel(&serving->turn, &bench.task);
    keeper_finish(&keeper, &bench);
}

static void a_timeout_holds_for_those_that_wait_for_their_turn(void **state)
{
    char wanted[KEYS + 1] = {0};
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    assert_int_equal(asked(&keeper), AT_ONCE);
    answer_next(&keeper, LOAD_TIMEOUT);
    assert_int_equal(asked(&keeper), AT_ONCE - 1);
    for (size_t i = 1; i < AT_ONCE; i++)
        answer_next(&keeper, LOAD_ROW);
    memset(wanted, 't', KEYS);
    memset(wanted + 1, 'r', AT_ONCE - 1);
    must_leave(&bench, wanted);
    keeper_finish(&keeper, &bench);
}

/* Of the same keyspace, and asked later: so it was one row that the database was slow with. */
static void a_timeout_is_of_one_row_where_later_ones_have_been_answered(void **state)
{
    char wanted[KEYS + 1] = {0};
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    assert_int_equal(asked(&keeper), AT_ONCE);
    struct load_request *slow = keeper.asked[keeper.answered++];
    answer_next(&keeper, LOAD_ROW);
    assert_int_equal(asked(&keeper), AT_ONCE - 1);
    keeper.asked[--keeper.answered] = slow;
    answer_next(&keeper, LOAD_TIMEOUT);
    while (asked(&keeper))
        answer_next(&keeper, LOAD_ROW);
    memset(wanted, 'r', KEYS);
    wanted[0] = 't';
    must_leave(&bench, wanted);
    keeper_finish(&keeper, &bench);
}

/* The database has answered, and then hangs. */
static void a_timeout_holds_for_others_when_only_earlier_ones_have_been_answered(void **state)
{
    char wanted[KEYS + 1] = {0};
    struct keeper keeper;
    struct bench bench;
    (void)state;
    keeper_init(&keeper, &bench);
    load_all(&bench);
    assert_int_equal(asked(&keeper), AT_ONCE);
    answer_next(&keeper, LOAD_ROW);
    assert_int_equal(asked(&keeper), AT_ONCE);
    answer_next(&keeper, LOAD_TIMEOUT);
    while (asked(&keeper))
        answer_next(&keeper, LOAD_TIMEOUT);
    assert_int_equal(keeper.count, AT_ONCE + 1);
    memset(wanted, 't', KEYS);
    wanted[0] = 'r';
    must_leave(&bench, wanted);
    keeper_finish(&keeper, &bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_keeper_has_a_bounded_number_of_a_clients_loads),
        cmocka_unit_test(several_commands_of_a_client_share_its_places),
        cmocka_unit_test(the_keeper_is_told_that_a_client_went),
        cmocka_unit_test(no_turn_for_one_is_none_for_those_behind),
        cmocka_unit_test(loads_of_a_client_that_went_are_not_asked_for),
        cmocka_unit_test(a_client_that_goes_by_the_answer_itself_gives_back_all_once),
        cmocka_unit_test(a_timeout_holds_for_those_that_wait_for_their_turn),
        cmocka_unit_test(a_timeout_is_of_one_row_where_later_ones_have_been_answered),
        cmocka_unit_test(a_timeout_holds_for_others_when_only_earlier_ones_have_been_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
