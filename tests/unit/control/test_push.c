/* The call that takes a keyspace's keys, with a keeper whose pushes are real; the test sends the
 * body, and runs the loop. */
#include "control/push.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/config_file.h"
#include "fakes/http_call.h"
#include "keeper/keeper.h"

#include <stdio.h>
#include <stdlib.h>

static const char text[] =
    "cache: redis://127.0.0.1\n"
    "control: 127.0.0.1:1\n"
    "database: postgresql://127.0.0.1/shop\n"
    "sync: none\n"
    "keyspaces:\n"
    "  - {name: items, key: \"item:{id}\", source: push, on_miss: pass}\n"
    "  - {name: files, key: \"file:{id}\", source: \"file:/keys\", on_miss: pass}\n"
    "  - {name: rows, key: \"row:{id}\", table: public.rows, value: payload}\n";

struct keeper {
    uv_loop_t loop;
    struct key_set *sets[3];
    struct publishing publishing;
    struct pushes pushes;
    unsigned refused;
};

const struct config *keeper_config(const struct keeper *keeper)
{
    return keeper->publishing.shared->config;
}

struct keeper_parts keeper_parts(struct keeper *keeper)
{
    return (struct keeper_parts){.pushes = &keeper->pushes};
}

static void on_taken(void *arg, size_t keyspace, struct key_set *set)
{
    struct keeper *keeper = arg;
    key_set_release(keeper->sets[keyspace]);
    keeper->sets[keyspace] = set;
    keeper->publishing.sets_given++;
}

static void on_refused(void *arg, size_t keyspace, const char *why)
{
    assert_int_equal(keyspace, 0);
    assert_non_null(why);
    ((struct keeper *)arg)->refused++;
}

static int begin(void **state)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);
    keeper->publishing.shared = shared_config_create(config_from_text(text));
    keeper->publishing.sets = keeper->sets;
    uv_loop_init(&keeper->loop);
    pushes_open(&keeper->pushes, &(struct pushes_options){.loop = &keeper->loop,
                                                          .publishing = &keeper->publishing,
                                                          .taken = on_taken,
                                                          .refused = on_refused,
                                                          .arg = keeper});
    *state = keeper;
    return 0;
}

static int finish(void **state)
{
    struct keeper *keeper = *state;
    pushes_end(&keeper->pushes);
    uv_run(&keeper->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&keeper->loop), 0);
    for (size_t i = 0; i < sizeof keeper->sets / sizeof *keeper->sets; i++)
        key_set_release(keeper->sets[i]);
    shared_config_release(keeper->publishing.shared);
    free(keeper);
    return 0;
}

/* As the server does with the headers. NULL: the call was answered. */
static void *begin_call(struct keeper *keeper, struct http_call *call, const char *name)
{
    call->rest = name;
    call->upload = push_upload.begin(call, keeper);
    assert_int_equal(call->upload == NULL, call->status != 0);
    return call->upload;
}

static void send_keys(struct keeper *keeper, struct http_call *call, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        char line[32];
        unsigned before = call->gone_on;
        int length = snprintf(line, sizeof line, "item:%u\n", i);
        if (push_upload.take(call->upload, (struct span){line, (size_t)length}))
            continue;
        while (call->gone_on == before)
            uv_run(&keeper->loop, UV_RUN_ONCE);
    }
}

static void end_call(struct keeper *keeper, struct http_call *call)
{
    push_keys(call, keeper);
    assert_int_equal(call->status, 0); /* the list is read on a thread */
    uv_run(&keeper->loop, UV_RUN_DEFAULT);
}

static long number_of(const struct http_call *call, const char *name)
{
    return (long)json_integer_value(json_object_get(call->body, name));
}

static void a_list_is_taken_and_counted(void **state)
{
    struct keeper *keeper = *state;
    struct http_call call = {0};
    assert_non_null(begin_call(keeper, &call, "items"));
    send_keys(keeper, &call, 1, 100000);
    send_keys(keeper, &call, 1, 10);
    end_call(keeper, &call);
    assert_string_equal(json_string_value(json_object_get(call.body, "keyspace")), "items");
    assert_int_equal(number_of(&call, "lines"), 100010);
    assert_int_equal(number_of(&call, "keys") + number_of(&call, "duplicates"), 100010);
    assert_true(number_of(&call, "duplicates") >= 10);
    assert_int_equal(number_of(&call, "generation"), 1);
    fake_call_must_end(&call, 200, "");
    assert_non_null(keeper->sets[0]);
}

static void what_is_wrong_with_the_call_is_said_before_the_list_comes(void **state)
{
    static const struct {
        const char *name;
        unsigned status;
        const char *error;
    } wrong[] = {{"none", 404, "no keyspace of this name"},
                 {"", 404, "no keyspace"},
                 {"item", 404, "no keyspace"},
                 {"rows", 409, "are those of rows"},
                 {"files", 409, "are those of a file"}};
    struct keeper *keeper = *state;
    struct http_call call = {0}, second = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(begin_call(keeper, &call, wrong[i].name));
        fake_call_must_end(&call, wrong[i].status, wrong[i].error);
    }
    assert_non_null(begin_call(keeper, &call, "items"));
    assert_null(begin_call(keeper, &second, "items"));
    fake_call_must_end(&second, 409, "being pushed already");
    push_upload.broken(call.upload);
    pushes_end(&keeper->pushes);
    assert_null(begin_call(keeper, &second, "items"));
    fake_call_must_end(&second, 503, "is ending");
    assert_null(keeper->sets[0]);
}

static void what_is_no_list_changes_nothing_and_says_why(void **state)
{
    struct keeper *keeper = *state;
    struct http_call call = {0};
    assert_non_null(begin_call(keeper, &call, "items"));
    send_keys(keeper, &call, 1, 1000);
    end_call(keeper, &call);
    fake_call_must_end(&call, 200, "");
    struct key_set *before = keeper->sets[0];

    assert_non_null(begin_call(keeper, &call, "items"));
    send_keys(keeper, &call, 1, 400);
    end_call(keeper, &call);
    fake_call_must_end(&call, 409, "max_shrink");

    assert_non_null(begin_call(keeper, &call, "items"));
    send_keys(keeper, &call, 1, 1000);
    assert_true(push_upload.take(call.upload, span_of("42\n")));
    end_call(keeper, &call);
    fake_call_must_end(&call, 400, "nothing was changed: line 1001 is no key");
    assert_ptr_equal(keeper->sets[0], before);
    assert_int_equal(keeper->refused, 2);
}

static void one_that_breaks_off_makes_room_for_the_next(void **state)
{
    struct keeper *keeper = *state;
    struct http_call call = {0};
    assert_non_null(begin_call(keeper, &call, "items"));
    send_keys(keeper, &call, 1, 1000);
    push_upload.broken(call.upload);
    assert_int_equal(call.status, 0);
    assert_int_equal(keeper->refused, 1);
    call = (struct http_call){0};
    assert_non_null(begin_call(keeper, &call, "items"));
    send_keys(keeper, &call, 1, 10);
    end_call(keeper, &call);
    fake_call_must_end(&call, 200, "");
}

/* As when a token came into force while the body was thrown away. */
static void without_its_body_a_call_is_to_be_repeated(void **state)
{
    struct http_call call = {.rest = "items"};
    push_keys(&call, *state);
    fake_call_must_end(&call, 503, "repeat the call");
}

#define OF_KEEPER(test) cmocka_unit_test_setup_teardown(test, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_KEEPER(a_list_is_taken_and_counted),
        OF_KEEPER(what_is_wrong_with_the_call_is_said_before_the_list_comes),
        OF_KEEPER(what_is_no_list_changes_nothing_and_says_why),
        OF_KEEPER(one_that_breaks_off_makes_room_for_the_next),
        OF_KEEPER(without_its_body_a_call_is_to_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
