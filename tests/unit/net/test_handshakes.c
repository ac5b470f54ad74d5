/* Who may go on with a handshake, as the loop's time passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "net/handshakes.h"

enum { LONG_NS = 10 * 1000 * 1000 };

static uv_loop_t loop;

static int open_loop(void **state)
{
    (void)state;
    return uv_loop_init(&loop);
}

static int close_loop(void **state)
{
    (void)state;
    return uv_loop_close(&loop);
}

static void next_millisecond(void)
{
    uint64_t before = uv_now(&loop);
    while (uv_now(&loop) == before)
        uv_update_time(&loop);
}

static bool takes_turn(struct handshake *handshake)
{
    return handshake_take_turn(handshake, &loop);
}

static void what_one_takes_others_wait_for(void **state)
{
    struct handshake_line line = {0};
    struct handshake one = {.line = &line};
    (void)state;
    next_millisecond();
    assert_true(takes_turn(&one));
    handshake_took(1000);
    assert_true(takes_turn(&one));
    handshake_took(LONG_NS);
    assert_false(takes_turn(&one));
    handshake_line_up(&one);
    assert_false(takes_turn(&one));
    next_millisecond();
    assert_true(takes_turn(&one));
    assert_true(takes_turn(&one));
}

static void who_waits_has_his_turn_before_who_comes(void **state)
{
    struct handshake_line line = {0}, other = {0};
    struct handshake waiting[3] = {{.line = &line}, {.line = &line}, {.line = &line}};
    struct handshake coming[] = {{.line = &line}, {.line = &other}, {.line = NULL}};
    (void)state;
    next_millisecond();
    for (int i = 0; i < 3; i++)
        handshake_line_up(&waiting[i]);
    for (int i = 0; i < 3; i++)
        assert_false(takes_turn(&coming[i]));
    assert_false(takes_turn(&waiting[1]));
    assert_true(takes_turn(&waiting[0]));
    handshake_leave_line(&waiting[1]); /* it is closed */
    handshake_leave_line(&waiting[1]);
    handshake_took(LONG_NS);
    assert_false(takes_turn(&waiting[2]));
    handshake_line_up(&coming[0]);
    next_millisecond();
    assert_false(takes_turn(&coming[0]));
    assert_true(takes_turn(&waiting[2]));
    assert_true(takes_turn(&coming[0]));
    assert_true(takes_turn(&coming[1]));
}

/* ---- turns ---- */

/* A letter each, by which the order in which they have had their turns can be written: a host's is
 * the same for all of its handshakes, a dial's is 'd'. */
struct named {
    struct handshake handshake;
    char name;
};

enum { MANY = 64 };

struct crowd {
    struct handshake_line lines[26];
    struct named all[MANY];
    size_t count;
};

static void come(struct crowd *crowd, const char *names)
{
    for (; *names; names++) {
        struct named *one = &crowd->all[crowd->count++];
        *one = (struct named){.name = *names};
        one->handshake.line = *names == 'd' ? NULL : &crowd->lines[*names - 'a'];
        handshake_line_up(&one->handshake);
    }
}

/* In order of arrival, as long as there is nothing else to tell two of a host apart. */
static char next_name(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++)
        if (crowd->all[i].handshake.waits && takes_turn(&crowd->all[i].handshake))
            return crowd->all[i].name;
    return '-';
}

static void must_be_next(struct crowd *crowd, const char *names)
{
    char got[MANY + 1] = "";
    for (size_t i = 0; i < strlen(names); i++)
        got[i] = next_name(crowd);
    assert_string_equal(got, names);
}

/* Its last turn was a host's, whatever was before. */
static void begin(struct crowd *crowd)
{
    *crowd = (struct crowd){.count = 0};
    next_millisecond();
    come(crowd, "a");
    must_be_next(crowd, "a");
}

static void each_host_that_has_some_waiting_has_a_step_a_round(void **state)
{
    struct crowd crowd;
    (void)state;
    begin(&crowd);
    come(&crowd, "aaaaaaaabbbc");
    must_be_next(&crowd, "abcab");
    come(&crowd, "e"); /* waits for one of each */
    must_be_next(&crowd, "abea");
    come(&crowd, "eb"); /* who comes back passes nobody */
    must_be_next(&crowd, "aeb");
    must_be_next(&crowd, "aaa-");
}

static void of_a_host_who_came_first_is_first(void **state)
{
    struct crowd crowd;
    (void)state;
    begin(&crowd);
    come(&crowd, "aaabab");
    for (int i = 6; i > 0; i--)
        assert_true(takes_turn(&crowd.all[i].handshake) == (i == 1));
    assert_true(takes_turn(&crowd.all[4].handshake));
    assert_false(takes_turn(&crowd.all[3].handshake));
    assert_true(takes_turn(&crowd.all[2].handshake));
    must_be_next(&crowd, "baa-");
}

static void dials_have_every_other_turn(void **state)
{
    struct crowd crowd;
    (void)state;
    begin(&crowd);
    come(&crowd, "aaaabddd");
    must_be_next(&crowd, "dadbda");
    come(&crowd, "ddd");
    must_be_next(&crowd, "dadad-");
    come(&crowd, "da");
    must_be_next(&crowd, "ad-");
}

static void close_one(struct crowd *crowd, size_t number)
{
    handshake_leave_line(&crowd->all[number].handshake);
}

static void who_is_closed_leaves_its_line_wherever_it_stands(void **state)
{
    struct crowd crowd;
    (void)state;
    begin(&crowd);
    come(&crowd, "daaabccd");
    must_be_next(&crowd, "d");
    close_one(&crowd, 3); /* amid others */
    close_one(&crowd, 5); /* the only one of its host */
    close_one(&crowd, 7); /* the last */
    must_be_next(&crowd, "a");
    close_one(&crowd, 8); /* whose turn it is */
    must_be_next(&crowd, "c");
    come(&crowd, "b");
    close_one(&crowd, 4); /* likewise, and its host has no other */
    must_be_next(&crowd, "b-");
    come(&crowd, "a");
    close_one(&crowd, 10); /* then nobody is left */
    must_be_next(&crowd, "-");
    come(&crowd, "cb");
    must_be_next(&crowd, "cb-");
}

/* A host's line is a queue, and the hosts that have one take turns: a model as plain as that. */
struct model {
    char order[26]; /* of hosts that wait, the next first */
    size_t hosts, waiting[26], dials;
    bool after_host;
};

static void model_come(struct model *model, char name)
{
    if (name == 'd')
        model->dials++;
    else if (!model->waiting[name - 'a']++)
        model->order[model->hosts++] = name;
}

static void model_leave(struct model *model, char name)
{
    if (name == 'd') {
        model->dials--;
    } else if (!--model->waiting[name - 'a']) {
        char *at = memchr(model->order, name, model->hosts--);
        memmove(at, at + 1, (size_t)(model->order + model->hosts - at));
    }
}

static char model_next(struct model *model)
{
    if (model->dials && (model->after_host || !model->hosts)) {
        model->after_host = false;
        model->dials--;
        return 'd';
    }
    if (!model->hosts)
        return '-';
    char name = model->order[0];
    model->after_host = true;
    memmove(model->order, model->order + 1, --model->hosts);
    if (--model->waiting[name - 'a'])
        model->order[model->hosts++] = name;
    return name;
}

static void any_order_of_events_is_that_of_the_model(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct crowd crowd;
        struct model model = {.after_host = true};
        srand(seed);
        begin(&crowd);
        while (crowd.count < MANY) {
            const char name[] = {"abcdef"[rand() % 6], '\0'};
            struct named *any = &crowd.all[(size_t)rand() % crowd.count];
            if (rand() % 3) {
                come(&crowd, name);
                model_come(&model, *name);
            } else if (any->handshake.waits) {
                handshake_leave_line(&any->handshake);
                model_leave(&model, any->name);
            } else {
                assert_int_equal(next_name(&crowd), model_next(&model));
            }
        }
        for (char next = 'a'; next != '-';) {
            next = model_next(&model);
            assert_int_equal(next_name(&crowd), next);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_loop, close_loop)
    const struct CMUnitTest tests[] = {TEST(what_one_takes_others_wait_for),
                                       TEST(who_waits_has_his_turn_before_who_comes),
                                       TEST(each_host_that_has_some_waiting_has_a_step_a_round),
                                       TEST(of_a_host_who_came_first_is_first),
                                       TEST(dials_have_every_other_turn),
                                       TEST(who_is_closed_leaves_its_line_wherever_it_stands),
                                       TEST(any_order_of_events_is_that_of_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
