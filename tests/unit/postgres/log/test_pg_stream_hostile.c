/* A stream against a server that the test plays: for what a real one never does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fakes/servers.h"
#include "postgres/log/pg_stream.h"

struct script {
    const char *point, *snapshot; /* of the slot */
    const char *answer;           /* to START_REPLICATION: bytes, and so many */
    size_t length;
    size_t settings; /* how many are found */
    size_t set;      /* how many are set; 0: SET */
};

/* Columns of the answers: of the settings found, and of the setting with which server it is. */
enum { SETTINGS = 9, SET = 32 };

static int listener, port;

static void say(int fd, char type, const void *body, size_t length)
{
    uint32_t size = htonl((uint32_t)length + 4);
    char head[5] = {type};
    memcpy(head + 1, &size, 4);
    assert_int_equal(write(fd, head, 5), 5);
    assert_int_equal(write(fd, body, length), length);
}

/* Skips a message: of the client's first one there is no type. False when it was its last. */
static bool hear(int fd, bool typed)
{
    char head[5], body[4096];
    uint32_t size;
    ssize_t start = typed ? 5 : 4;
    if (recv(fd, head, (size_t)start, MSG_WAITALL) != start)
        return false;
    memcpy(&size, head + start - 4, 4);
    size = ntohl(size) - 4;
    if (typed && head[0] == 'X')
        return false;
    return size <= sizeof body && recv(fd, body, size, MSG_WAITALL) == (ssize_t)size;
}

static void say_ready(int fd)
{
    say(fd, 'C', "SELECT 1", 9);
    say(fd, 'Z', "I", 1);
}

enum { COLUMNS_MAX = 40 };

/* One row. */
static void say_row(int fd, const char *const *values, size_t count)
{
    static const char field[] = "x\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0";
    char row[1024] = {0, (char)count}, described[2 + COLUMNS_MAX * 20] = {0, (char)count};
    size_t length = 2;
    for (size_t i = 0; i < count; i++) {
        uint32_t size = htonl((uint32_t)strlen(values[i]));
        memcpy(described + 2 + 20 * i, field, 20);
        memcpy(row + length, &size, 4);
        memcpy(row + length + 4, values[i], strlen(values[i]));
        length += 4 + strlen(values[i]);
    }
    say(fd, 'T', described, 2 + 20 * count);
    say(fd, 'D', row, length);
    say_ready(fd);
}

static void say_slot(int fd, const struct script *script)
{
    say_row(fd, (const char *[]){"slot", script->point, script->snapshot, "pgoutput"}, 4);
}

/* What the first session of a conninfo asks for. */
static void say_settings(int fd, size_t count)
{
    const char *values[COLUMNS_MAX];
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        values[i] = "a";
    say_row(fd, values, count);
}

static void *play(void *arg)
{
    const struct script *script = arg;
    int fd = accept(listener, NULL, NULL);
    if (hear(fd, false)) {
        say(fd, 'R', "\0\0\0\0", 4);
        say(fd, 'S',
            "server_version\0"
            "15.0",
            20);
        say(fd, 'Z', "I", 1);
    }
    if (hear(fd, true))
        say_settings(fd, script->settings);
    if (hear(fd, true))
        say_settings(fd, script->set ? script->set : SET);
    if (hear(fd, true))
        say_slot(fd, script);
    if (hear(fd, true) && script->length > 0)
        assert_int_equal(write(fd, script->answer, script->length), script->length);
    if (script->length > 0)
        while (hear(fd, true))
            continue;
    close(fd);
    return NULL;
}

static int open_against(struct pg_stream **out, struct script *script, pthread_t *thread,
                        struct pg_error *error)
{
    static unsigned number;
    char text[160];
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%d user=u dbname=d sslmode=disable gssencmode=disable"
             " application_name=%u",
             port, number++);
    const struct pg_stream_options options = {
        .conninfo = text, .connect_timeout = 10, .publication = "pub"};
    assert_int_equal(pthread_create(thread, NULL, play, script), 0);
    return pg_stream_open(out, &options, error);
}

/* The slot. */

static void a_slot_that_makes_no_sense_is_refused(void **state)
{
    static const char *const points[] = {"",     "0",   "0/",          "/1",
                                         "0/1 ", "x/1", "0/123456789", "0/1/2"};
    static const char *const snapshots[] = {
        "", "a name that is longer than any that the server could give to a snapshot of its own"};
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        struct script script = {.point = i < 8 ? points[i] : "0/1",
                                .snapshot = i < 8 ? "s" : snapshots[i - 8],
                                .settings = SETTINGS};
        struct pg_stream *stream = NULL;
        struct pg_error error;
        pthread_t thread;
        assert_int_equal(open_against(&stream, &script, &thread, &error), -EPROTO);
        assert_non_null(strstr(error.text, "not understood"));
        pthread_join(thread, NULL);
    }
}

/* The stream. */

struct seen {
    size_t messages, positions, lost, closed;
    uint64_t position;
    struct pg_error error;
};

static int see_message(void *arg, uint64_t lsn, const char *bytes, size_t length)
{
    (void)lsn, (void)bytes, (void)length;
    ((struct seen *)arg)->messages++;
    return 0;
}

static void see_position(void *arg, uint64_t lsn)
{
    ((struct seen *)arg)->positions++;
    ((struct seen *)arg)->position = lsn;
}

static void see_lost(void *arg, const struct pg_error *error)
{
    ((struct seen *)arg)->lost++;
    ((struct seen *)arg)->error = *error;
}

static void see_closed(void *arg)
{
    ((struct seen *)arg)->closed++;
}

static void stay_awake(uv_timer_t *timer)
{
    (void)timer;
}

/* Follows the server until the stream is lost. */
static struct seen follow(const char *answer, size_t length)
{
    static const struct pg_stream_events events = {see_message, see_position, see_lost};
    struct script script = {.point = "16/B374D848",
                            .snapshot = "s",
                            .answer = answer,
                            .length = length,
                            .settings = SETTINGS};
    struct seen seen = {0};
    struct pg_stream *stream = NULL;
    struct pg_error error;
    pthread_t thread;
    uv_loop_t loop;
    uv_timer_t limit;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &limit);
    uv_timer_start(&limit, stay_awake, 10000, 0);
    assert_int_equal(open_against(&stream, &script, &thread, &error), 0);
    assert_true(pg_stream_consistent_point(stream) == UINT64_C(0x16B374D848));
    assert_int_equal(pg_stream_start(stream, &loop, &events, &seen, &error), 0);
    while (!seen.lost && uv_is_active((uv_handle_t *)&limit))
        uv_run(&loop, UV_RUN_ONCE);
    pg_stream_close(stream, see_closed, &seen);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(seen.closed, 1);
    return seen;
}

#define FOLLOW(bytes) follow(bytes, sizeof(bytes) - 1)

#define COPY_BOTH "W\0\0\0\7\0\0\0"
#define WORD "\0\0\0\0\0\0\0\x2a"
#define KEEPALIVE "d\0\0\0\x16k" WORD WORD "\0"
#define MESSAGE "d\0\0\0\x1ew" WORD WORD WORD "B"

static void settings_that_make_no_sense_end_the_session(void **state)
{
    static const struct {
        size_t settings, set;
    } counts[] = {{0, SET},
                  {SETTINGS - 1, SET},
                  {SETTINGS + 1, SET},
                  {SETTINGS, SET - 1},
                  {SETTINGS, SET + 2}};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct script script = {
            .point = "0/1", .snapshot = "s", .settings = counts[i].settings, .set = counts[i].set};
        struct pg_stream *stream = NULL;
        struct pg_error error;
        pthread_t thread;
        assert_int_equal(open_against(&stream, &script, &thread, &error), -ECONNREFUSED);
        assert_string_equal(error.text, "the connection failed");
        pthread_join(thread, NULL);
    }
}

static void good_messages_before_a_bad_one_count(void **state)
{
    struct seen seen = FOLLOW(COPY_BOTH KEEPALIVE MESSAGE KEEPALIVE "d\0\0\0\5?" MESSAGE);
    (void)state;
    assert_int_equal(seen.positions, 2);
    assert_int_equal(seen.position, 42);
    assert_int_equal(seen.messages, 1);
    assert_non_null(strstr(seen.error.text, "no part of the protocol"));
}

static void messages_that_are_too_short_end_the_stream(void **state)
{
    (void)state;
    assert_int_equal(FOLLOW(COPY_BOTH "d\0\0\0\x0ew" WORD "B").messages, 0);
    assert_int_equal(FOLLOW(COPY_BOTH "d\0\0\0\x15k" WORD WORD).positions, 0);
}

static void the_end_of_the_copy_ends_the_stream(void **state)
{
    (void)state;
    assert_int_equal(FOLLOW(COPY_BOTH MESSAGE "c\0\0\0\4").messages, 1);
    assert_int_equal(FOLLOW(COPY_BOTH MESSAGE "C\0\0\0\x0b"
                                              "COPY 0\0")
                         .messages,
                     1);
    assert_int_equal(FOLLOW(COPY_BOTH MESSAGE "Z\0\0\0\5I").messages, 1);
}

static void an_answer_that_is_half_there_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(FOLLOW(COPY_BOTH MESSAGE "T\0\0\0\6\0\0").messages, 1);
    FOLLOW(COPY_BOTH "\1\2\3\4\5\6\7");
}

static void another_answer_than_a_copy_is_told(void **state)
{
    struct seen seen = FOLLOW("E\0\0\0\x23SERROR\0C55006\0Mslot is in use\0\0");
    (void)state;
    assert_string_equal(seen.error.sqlstate, "55006");
    assert_string_equal(seen.error.text, "slot is in use");
    FOLLOW("C\0\0\0\x0b"
           "COPY 0\0");
    FOLLOW("H\0\0\0\7\0\0\0");
    FOLLOW("garbage that is not the protocol at all");
}

static void silence_and_an_end_are_told(void **state)
{
    (void)state;
    assert_true(follow("", 0).error.text[0] != '\0');
}

static int start_listening(void **state)
{
    (void)state;
    listener = silent_listener(&port);
    return 0;
}

static int stop_listening(void **state)
{
    (void)state;
    close(listener);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_that_makes_no_sense_is_refused),
        cmocka_unit_test(settings_that_make_no_sense_end_the_session),
        cmocka_unit_test(good_messages_before_a_bad_one_count),
        cmocka_unit_test(messages_that_are_too_short_end_the_stream),
        cmocka_unit_test(the_end_of_the_copy_ends_the_stream),
        cmocka_unit_test(an_answer_that_is_half_there_is_not_waited_for),
        cmocka_unit_test(another_answer_than_a_copy_is_told),
        cmocka_unit_test(silence_and_an_end_are_told),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_listening, stop_listening);
}
