#include "control/push.h"

#include "base/memory.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One call; freed when it is answered, or broken off. */
struct push_call {
    struct http_call *call;
    struct push *push;
    char *name; /* the keyspace's */
};

static void destroy(struct push_call *push)
{
    free(push->name);
    free(push);
}

static struct push *begin_push(struct http_call *call, struct keeper *keeper, size_t number)
{
    struct push *push = NULL;
    int status = pushes_begin(keeper_parts(keeper).pushes, number, &push);
    if (status == -EALREADY)
        http_answer_error(call, 409,
                          "keys of this keyspace are being pushed already: nothing was changed");
    else if (status == -ESHUTDOWN)
        http_answer_error(call, 503, "the guard is ending");
    else if (status)
        http_answer_error(call, 503,
                          "there is no temporary file for the keys ($TMPDIR or /tmp): %s",
                          strerror(-status));
    return push;
}

static void *begin(struct http_call *call, void *arg)
{
    const struct config *config = keeper_config(arg);
    const struct keyspace *keyspace = config_find_keyspace(config, http_call_rest(call));
    struct push *push = NULL;
    if (!keyspace)
        http_answer_error(call, 404, "there is no keyspace of this name");
    else if (!keyspace_is_pushed(keyspace))
        http_answer_error(call, 409,
                          "nothing was changed: the keys of this keyspace are those of %s: only "
                          "one with source: push takes them from here",
                          keyspace->source ? "a file" : "rows");
    else
        push = begin_push(call, arg, (size_t)(keyspace - config->keyspaces));
    if (!push)
        return NULL;
    struct push_call *made = xcalloc(1, sizeof *made);
    *made = (struct push_call){call, push, xstrdup(keyspace->name)};
    return made;
}

static void go_on(void *arg)
{
    http_call_go_on(((struct push_call *)arg)->call);
}

static bool take(void *upload, struct span bytes)
{
    struct push_call *push = upload;
    return push_take(push->push, bytes, go_on, push);
}

static void broken(void *upload)
{
    struct push_call *push = upload;
    push_break(push->push);
    destroy(push);
}

const struct http_upload push_upload = {begin, take, broken};

static void answer(void *arg, const struct push_result *result)
{
    static const unsigned statuses[] = {[PUSH_TAKEN] = 200,
                                        [PUSH_WRONG] = 400,
                                        [PUSH_TOO_FEW] = 409,
                                        [PUSH_TOO_LARGE] = 413,
                                        [PUSH_FAILED] = 503};
    struct push_call *push = arg;
    if (result->outcome != PUSH_TAKEN)
        http_answer_error(push->call, statuses[result->outcome], "nothing was changed: %s",
                          result->why);
    else
        http_answer_json(push->call, 200,
                         json_pack("{s:o, s:I, s:I, s:I, s:I}", "keyspace", json_text(push->name),
                                   "lines", (json_int_t)result->lines, "keys",
                                   (json_int_t)result->keys, "duplicates",
                                   (json_int_t)(result->lines - result->keys), "generation",
                                   (json_int_t)result->generation));
    destroy(push);
}

void push_keys(struct http_call *call, void *arg)
{
    struct push_call *push = http_call_take_upload(call);
    (void)arg;
    if (push)
        push_end(push->push, answer, push);
    else /* a token was changed while the body came */
        http_answer_error(call, 503, "nothing was changed: repeat the call");
}
