/* A log of any messages, followed: pieces of the input, each behind a byte that is its length. A
 * piece of length 0 lets the loop run. Build with -DFUZZ=ON and clang. */
#include "follow/follower.h"

#include "config/config.h"

#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

enum { CAPACITY = 50, TURNS_MAX = 10000 };

/* ---- the stream ---- */

static struct {
    const struct pg_stream_events *events;
    void *arg;
    bool paused, closed;
} stream;

int pg_stream_start(struct pg_stream *of, uv_loop_t *loop, const struct pg_stream_events *events,
                    void *arg, struct pg_error *error)
{
    (void)of, (void)loop, (void)error;
    stream.events = events;
    stream.arg = arg;
    return 0;
}

void pg_stream_close(struct pg_stream *of, void (*closed)(void *arg), void *arg)
{
    (void)of;
    CHECK(!stream.closed);
    stream.closed = true;
    closed(arg);
}

void pg_stream_confirm(struct pg_stream *of, uint64_t lsn)
{
    (void)of, (void)lsn;
}

void pg_stream_ask(struct pg_stream *of)
{
    (void)of;
}

void pg_stream_pause(struct pg_stream *of, bool paused)
{
    (void)of;
    stream.paused = paused;
}

/* ---- who is told ---- */

static bool has_ended;

static void on_change(void *arg, const struct key_change *change)
{
    (void)arg;
    CHECK(change->key.keyspace == 0 && !has_ended);
    if (change->cause == CAUSE_UNTOLD || change->cause == CAUSE_TRUNCATED ||
        change->cause == CAUSE_LEFT)
        CHECK(!change->key.text.at);
    else
        CHECK(span_starts(change->key.text, "k:"));
}

static void on_reached(void *arg, uint64_t lsn)
{
    (void)arg, (void)lsn;
    CHECK(!has_ended);
}

static void on_fault(void *arg, const char *why)
{
    (void)arg;
    CHECK(!has_ended && strlen(why) > 0);
    has_ended = true;
}

static bool wants_word; /* that all is as it was, so that removals may be applied */

static void on_unvouched(void *arg, bool crowded)
{
    (void)arg, (void)crowded;
    CHECK(!has_ended);
    wants_word = true;
}

static const struct follower_events events = {
    .reached = on_reached, .unvouched = on_unvouched, .fault = on_fault};

/* ---- what it follows for ---- */

static struct generation *create_generation(void)
{
    const struct filter_options options = {.capacity = CAPACITY, .false_positive_rate = 0.001};
    struct generation *generation = generation_create(1, 1);
    const char *error;
    CHECK(filter_create(&generation->filters[0], &options, &error) == 0);
    return generation;
}

static struct follower *follower;

/* Not from within an event. */
static void vouch(void)
{
    if (!wants_word || has_ended)
        return;
    wants_word = false;
    follower_vouch(follower, "100:100:");
}

static void run_loop(uv_loop_t *loop)
{
    for (unsigned turns = 0; stream.paused && !has_ended; turns++) {
        CHECK(turns < TURNS_MAX);
        vouch();
        uv_run(loop, UV_RUN_NOWAIT);
    }
}

/* As the stream does: who refuses a message is told that it is lost. */
static void feed(uv_loop_t *loop, const char *message, size_t length)
{
    const struct pg_error lost = {.text = "refused"};
    run_loop(loop);
    if (has_ended)
        return;
    if (length == 0) {
        vouch();
        stream.events->position(stream.arg, 1);
    } else if (stream.events->message(stream.arg, 1, message, length) != 0)
        stream.events->lost(stream.arg, &lost);
}

/* Each piece in memory of its own, so that its end is watched. */
static void feed_pieces(uv_loop_t *loop, const uint8_t *at, size_t left)
{
    while (left > 0 && !has_ended) {
        size_t length = at[0] < left ? at[0] : left - 1;
        char *piece = malloc(length ? length : 1);
        CHECK(piece);
        memcpy(piece, at + 1, length);
        feed(loop, piece, length);
        free(piece);
        at += 1 + length;
        left -= 1 + length;
    }
    run_loop(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint32_t tables[] = {1};
    struct keyspace keyspace = {.name = "keys"};
    const struct config config = {.keyspaces = &keyspace, .keyspace_count = 1};
    struct generation *generation = create_generation();
    struct pg_error error;
    const char *why;
    uv_loop_t loop;
    has_ended = wants_word = stream.paused = stream.closed = false;
    CHECK(key_template_parse(&keyspace.key, "k:{id}", &why) == 0);
    CHECK(uv_loop_init(&loop) == 0);
    const struct follower_options options = {.config = &config,
                                             .generation = generation,
                                             .tables = tables,
                                             .identities = "d",
                                             .changes = {on_change, NULL},
                                             .events = &events};
    CHECK(follower_start(&follower, &loop, &options, &error) == 0);
    feed_pieces(&loop, bytes, size);
    follower_close(follower);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0 && generation->references == 1);
    generation_release(generation);
    key_template_finish(&keyspace.key);
    return 0;
}
