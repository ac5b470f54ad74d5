/* Both ends of encrypted connections, on one loop: what one sends the other must read, whatever the
 * sizes, pauses and order of the calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "net/dial.h"
#include "net/handshakes.h"
#include "net/tls.h"

static char directory[64];

static const char *in_directory(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void run(const char *command)
{
    if (system(command) != 0)
        fail_msg("%s", command);
}

static void make_certificate(const char *name, const char *subject, const char *alternative)
{
    char command[1000];
    snprintf(command, sizeof command,
             "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
             "-keyout %s.key -out %s.crt -days 2 -subj /CN=%s -addext subjectAltName=%s "
             "2>/dev/null",
             directory, name, name, subject, alternative);
    run(command);
}

static void join_files(const char *first, const char *second, const char *out)
{
    char command[300];
    snprintf(command, sizeof command, "cd %s && cat %s %s > %s", directory, first, second, out);
    run(command);
}

static int make_certificates(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/nestguard-tls-XXXXXX");
    assert_non_null(mkdtemp(directory));
    make_certificate("server", "here", "IP:127.0.0.1,DNS:localhost");
    make_certificate("other", "elsewhere", "DNS:example.org");
    make_certificate("client", "somebody", "DNS:client");
    return 0;
}

static int remove_certificates(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", directory);
    run(command);
    return 0;
}

static struct ssl_ctx_st *context_of(bool is_server, const char *certificate, const char *key,
                                     const char *authorities)
{
    char error[TLS_ERROR_SIZE];
    struct ssl_ctx_st *context = NULL;
    struct tls_options options = {.is_server = is_server,
                                  .certificate = certificate ? in_directory(certificate) : NULL,
                                  .key = key ? in_directory(key) : NULL,
                                  .authorities = authorities ? in_directory(authorities) : NULL};
    if (tls_context_create(&context, &options, error) < 0)
        fail_msg("%s", error);
    return context;
}

/* ---- a server that sends back what it gets ---- */

struct peer {
    struct stream stream;
    struct bench *bench;
    uv_write_t write;
    char room[8192], *echo;
    size_t got;        /* bytes */
    uint64_t works_ns; /* for so long with each piece */
    bool closed;
};

struct bench {
    uv_loop_t loop;
    struct stream listener;
    int port;
    struct ssl_ctx_st *server_tls, *client_tls;
    struct peer peer;
    struct handshake_line line;
    char peer_error[256];
    bool accepted, peer_secured;
    /* the calling side */
    struct stream stream;
    struct dial dial;
    uv_write_t write;
    bool dialed, open, writing, stopped, ended, closed;
    char error[256];
    char *sent, *seen;
    size_t total, given, read;
    unsigned seed;
    uv_timer_t timer;
};

static void on_peer_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;
    free(peer->echo);
    peer->echo = NULL;
    peer->closed = true;
}

static void on_peer_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct peer *peer = handle->data;
    (void)wanted;
    *room = uv_buf_init(peer->room, sizeof peer->room);
}

static void on_peer_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room);

static void on_echoed(uv_write_t *write, int status)
{
    struct peer *peer = write->data;
    free(peer->echo);
    peer->echo = NULL;
    if (status == 0)
        stream_read_start(&peer->stream, on_peer_room, on_peer_read);
}

/* Reads on only when it has got rid of that: a slow reader holds the other side up. */
static void on_peer_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct peer *peer = stream->data;
    if (count < 0) {
        stream_close(&peer->stream, on_peer_closed);
        return;
    }
    peer->got += (size_t)count;
    for (uint64_t end = uv_hrtime() + peer->works_ns; uv_hrtime() < end;)
        ;
    int taken = stream_try_write(&peer->stream, room->base, (size_t)count);
    if (taken < 0 && taken != UV_EAGAIN) {
        stream_close(&peer->stream, on_peer_closed);
        return;
    }
    size_t done = taken > 0 ? (size_t)taken : 0, rest = (size_t)count - done;
    if (!rest)
        return;
    peer->echo = malloc(rest);
    memcpy(peer->echo, room->base + done, rest);
    peer->write.data = peer;
    stream_read_stop(&peer->stream);
    assert_int_equal(stream_write(&peer->stream, &peer->write, peer->echo, rest, on_echoed), 0);
}

static void on_peer_secured(void *arg, const char *error)
{
    struct peer *peer = arg;
    if (error) {
        snprintf(peer->bench->peer_error, sizeof peer->bench->peer_error, "%s", error);
        stream_close(&peer->stream, on_peer_closed);
        return;
    }
    peer->bench->peer_secured = true;
    stream_read_start(&peer->stream, on_peer_room, on_peer_read);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct bench *bench = listener->data;
    struct peer *peer = &bench->peer;
    assert_int_equal(status, 0);
    bench->accepted = true;
    peer->bench = bench;
    stream_init(&peer->stream, &bench->loop, false);
    peer->stream.handle.data = peer;
    assert_int_equal(uv_accept(listener, &peer->stream.stream), 0);
    assert_int_equal(stream_secure_accepted(&peer->stream, bench->server_tls, &bench->line,
                                            on_peer_secured, peer),
                     0);
}

/* It ticks, because a turn of the loop may do in its timers what the test waits for, and would then
 * wait for the next event, which never comes. */
enum { GUARD_TICK_MS = 20, GUARD_TICKS = 60000 / GUARD_TICK_MS };

static void on_timeout(uv_timer_t *timer)
{
    static int ticks;
    ticks = timer->data ? ticks + 1 : 0;
    timer->data = timer;
    if (ticks < GUARD_TICKS)
        return;
    fprintf(stderr, "nothing happened for too long\n");
    abort();
}

static void bench_open(struct bench *bench, struct ssl_ctx_st *server, struct ssl_ctx_st *client)
{
    struct sockaddr_in at;
    int length = sizeof at;
    memset(bench, 0, sizeof *bench);
    bench->server_tls = server;
    bench->client_tls = client;
    uv_loop_init(&bench->loop);
    uv_timer_init(&bench->loop, &bench->timer);
    uv_timer_start(&bench->timer, on_timeout, GUARD_TICK_MS, GUARD_TICK_MS);
    uv_unref((uv_handle_t *)&bench->timer);
    stream_init(&bench->listener, &bench->loop, false);
    bench->listener.handle.data = bench;
    uv_ip4_addr("127.0.0.1", 0, &at);
    assert_int_equal(uv_tcp_bind(&bench->listener.tcp, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen(&bench->listener.stream, 1, on_connection), 0);
    uv_tcp_getsockname(&bench->listener.tcp, (struct sockaddr *)&at, &length);
    bench->port = ntohs(at.sin_port);
}

#define RUN_UNTIL(bench, condition)                                                                \
    do {                                                                                           \
        while (!(condition))                                                                       \
            uv_run(&(bench)->loop, UV_RUN_ONCE);                                                   \
    } while (0)

static void on_closed(uv_handle_t *handle)
{
    ((struct bench *)handle->data)->closed = true;
}

static void bench_close(struct bench *bench)
{
    if (bench->open)
        stream_close(&bench->stream, on_closed);
    RUN_UNTIL(bench, !bench->open || bench->closed);
    RUN_UNTIL(bench, !bench->accepted || bench->peer.closed);
    stream_close(&bench->listener, NULL);
    uv_close((uv_handle_t *)&bench->timer, NULL);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    tls_context_release(bench->server_tls);
    tls_context_release(bench->client_tls);
    free(bench->sent);
    free(bench->seen);
}

static void on_dialed(void *arg, const char *error)
{
    struct bench *bench = arg;
    bench->dialed = true;
    bench->open = !error;
    bench->stream.handle.data = bench;
    snprintf(bench->error, sizeof bench->error, "%s", error ? error : "");
}

static void dial(struct bench *bench, const char *host)
{
    struct dial_options options = {
        .host = host, .port = (uint16_t)bench->port, .tls = bench->client_tls};
    assert_int_equal(
        dial_start(&bench->dial, &bench->loop, &bench->stream, &options, on_dialed, bench), 0);
    assert_false(bench->dialed);
    RUN_UNTIL(bench, bench->dialed);
}

static void must_be_refused(struct bench *bench, const char *host, const char *why)
{
    dial(bench, host);
    assert_false(bench->open);
    if (!strstr(bench->error, why))
        fail_msg("\"%s\" does not say \"%s\"", bench->error, why);
}

/* ---- traffic ---- */

static unsigned any(struct bench *bench, unsigned below)
{
    bench->seed = bench->seed * 1103515245u + 12345u;
    return (bench->seed >> 8) % below;
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct bench *bench = handle->data;
    size_t left = bench->total - bench->read, some = 1 + any(bench, 20000);
    (void)wanted;
    *room = uv_buf_init(bench->seen + bench->read, (unsigned)(left < some ? left + 1 : some));
}

/* Now and then it reads no more, for a while. */
static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct bench *bench = stream->data;
    (void)room;
    if (count < 0) {
        bench->ended = true;
        return;
    }
    assert_false(bench->stopped);
    bench->read += (size_t)count;
    assert_in_range(bench->read, 0, bench->total);
    if (any(bench, 20) == 0) {
        bench->stopped = true;
        stream_read_stop(&bench->stream);
    }
}

static void on_written(uv_write_t *write, int status)
{
    struct bench *bench = write->data;
    assert_int_equal(status, 0);
    bench->writing = false;
}

static void give(struct bench *bench)
{
    size_t left = bench->total - bench->given;
    size_t some = any(bench, 4) ? 1 + any(bench, 3000) : 1 + any(bench, 300000);
    size_t length = left < some ? left : some;
    const char *at = bench->sent + bench->given;
    if (bench->writing || !left)
        return;
    if (any(bench, 2)) {
        int taken = stream_try_write(&bench->stream, at, length);
        assert_true(taken > 0 || taken == UV_EAGAIN);
        bench->given += taken > 0 ? (size_t)taken : 0;
        return;
    }
    bench->write.data = bench;
    bench->writing = true;
    assert_int_equal(stream_write(&bench->stream, &bench->write, at, length, on_written), 0);
    assert_true(bench->writing); /* never called back from there */
    bench->given += length;
}

static void everything_arrives_whatever_the_pieces(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct bench bench;
        bench_open(&bench, context_of(true, "server.crt", "server.key", NULL),
                   context_of(false, NULL, NULL, "server.crt"));
        dial(&bench, seed % 2 ? "127.0.0.1" : "localhost");
        assert_string_equal(bench.error, "");
        bench.seed = seed;
        bench.total = 3000000;
        bench.sent = malloc(bench.total);
        bench.seen = malloc(bench.total + 1);
        for (size_t i = 0; i < bench.total; i++)
            bench.sent[i] = (char)any(&bench, 256);
        size_t most = 0;
        stream_read_start(&bench.stream, on_room, on_read);
        while (bench.read < bench.total) {
            give(&bench);
            uv_run(&bench.loop, UV_RUN_NOWAIT);
            assert_false(bench.ended);
            most = stream_memory(&bench.stream) > most ? stream_memory(&bench.stream) : most;
            if (bench.stopped && any(&bench, 3) == 0) {
                bench.stopped = false;
                stream_read_start(&bench.stream, on_room, on_read);
            }
        }
        assert_memory_equal(bench.sent, bench.seen, bench.total);
        assert_false(bench.writing);
        assert_in_range(most, 64 * 1024, 512 * 1024);
        assert_in_range(stream_memory(&bench.stream), 0, 32 * 1024); /* what it may keep */
        bench_close(&bench);
    }
}

static void on_cancelled(uv_write_t *write, int status)
{
    struct bench *bench = write->data;
    assert_true(status < 0);
    assert_false(bench->closed); /* before the close's own callback */
    bench->writing = false;
}

/* ---- a client that OpenSSL alone makes ---- */

struct caller {
    SSL_CTX *context;
    SSL *ssl;
    int socket;
};

/* Shakes hands while the loop serves the other side. */
static void call(struct bench *bench, struct caller *caller)
{
    struct sockaddr_in at;
    uv_ip4_addr("127.0.0.1", bench->port, &at);
    caller->socket = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(caller->socket, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(fcntl(caller->socket, F_SETFL, O_NONBLOCK), 0);
    caller->context = SSL_CTX_new(TLS_client_method());
    caller->ssl = SSL_new(caller->context);
    SSL_set_fd(caller->ssl, caller->socket);
    while (SSL_connect(caller->ssl) != 1)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
    RUN_UNTIL(bench, bench->peer_secured);
}

/* What it says from here on is kept, and sent by send_kept(), all at once. */
static BIO *keep_what_is_said(struct caller *caller)
{
    BIO *kept = BIO_new(BIO_s_mem());
    SSL_set0_wbio(caller->ssl, kept);
    return kept;
}

static void send_kept(struct caller *caller, BIO *kept)
{
    char *bytes;
    long length = BIO_get_mem_data(kept, &bytes);
    assert_int_equal(send(caller->socket, bytes, (size_t)length, MSG_NOSIGNAL), length);
    (void)BIO_reset(kept);
}

static void hang_up(struct bench *bench, struct caller *caller)
{
    SSL_free(caller->ssl);
    SSL_CTX_free(caller->context);
    close(caller->socket);
    RUN_UNTIL(bench, bench->peer.closed);
}

static void change_keys(struct caller *caller, int times)
{
    while (times--) {
        assert_int_equal(SSL_key_update(caller->ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(caller->ssl), 1);
    }
}

/* Nothing of it is data, so no owner would ever see that it is much. */
static void who_changes_keys_and_says_nothing_is_sent_away(void **state)
{
    struct bench bench;
    struct caller caller;
    (void)state;
    bench_open(&bench, context_of(true, "server.crt", "server.key", NULL), NULL);
    call(&bench, &caller);
    BIO *kept = keep_what_is_said(&caller);
    for (int i = 0; i < 10; i++) {
        change_keys(&caller, 20);
        assert_int_equal(SSL_write(caller.ssl, "x", 1), 1);
        send_kept(&caller, kept);
        RUN_UNTIL(&bench, bench.peer.got == (size_t)i + 1);
    }
    change_keys(&caller, 100);
    assert_int_equal(SSL_write(caller.ssl, "x", 1), 1);
    send_kept(&caller, kept);
    RUN_UNTIL(&bench, bench.peer.closed);
    assert_int_equal(bench.peer.got, 10);
    hang_up(&bench, &caller);
    bench_close(&bench);
}

enum { RECORDS = 50 };

static void count_turn(uv_prepare_t *prepare)
{
    ++*(size_t *)prepare->data;
}

/* As long as a visit may take passes with each. */
static void small_records_are_read_in_many_turns(void **state)
{
    struct bench bench;
    struct caller caller;
    uv_prepare_t prepare;
    size_t turns = 0;
    (void)state;
    bench_open(&bench, context_of(true, "server.crt", "server.key", NULL), NULL);
    call(&bench, &caller);
    uv_prepare_init(&bench.loop, &prepare);
    prepare.data = &turns;
    uv_prepare_start(&prepare, count_turn);
    BIO *kept = keep_what_is_said(&caller);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(SSL_write(caller.ssl, "x", 1), 1);
    bench.peer.works_ns = 300 * 1000;
    send_kept(&caller, kept);
    RUN_UNTIL(&bench, bench.peer.got == RECORDS);
    assert_true(turns >= RECORDS);
    uv_close((uv_handle_t *)&prepare, NULL);
    hang_up(&bench, &caller);
    bench_close(&bench);
}

/* ---- turns that have been long before anything is read in them ---- */

struct reader {
    char room[100];
    size_t got, turns;
    bool polling;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
};

/* Not when it comes: so it waits for the idle handles of the next turn. */
static void on_reader_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct reader *reader = handle->data;
    (void)wanted;
    *room = uv_buf_init(reader->room, reader->polling ? 0 : sizeof reader->room);
}

static void on_reader_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct reader *reader = stream->data;
    (void)room;
    assert_true(count > 0);
    reader->got += (size_t)count;
}

static void take_milliseconds(uv_idle_t *idle)
{
    (void)idle;
    for (uint64_t end = uv_hrtime() + 3 * 1000 * 1000; uv_hrtime() < end;)
        ;
}

static void begin_polling(uv_prepare_t *prepare)
{
    ((struct reader *)prepare->data)->polling = true;
}

/* The idle handle that was started last is the next turn's first, before that of a stream which
 * waits for it. */
static void end_turn(uv_check_t *check)
{
    struct reader *reader = check->data;
    reader->polling = false;
    reader->turns++;
    uv_idle_stop(&reader->idle);
    uv_idle_start(&reader->idle, take_milliseconds);
}

/* How many it takes to read as many records, each of a byte. */
static size_t long_turns(struct bench *bench, struct stream *from, struct stream *to)
{
    struct reader reader = {.got = 0};
    void *owner = to->handle.data;
    uv_idle_init(&bench->loop, &reader.idle);
    uv_prepare_init(&bench->loop, &reader.prepare);
    uv_check_init(&bench->loop, &reader.check);
    reader.prepare.data = reader.check.data = &reader;
    uv_prepare_start(&reader.prepare, begin_polling);
    uv_check_start(&reader.check, end_turn);
    stream_tune(from);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(stream_try_write(from, "x", 1), 1);
    to->handle.data = &reader;
    stream_read_start(to, on_reader_room, on_reader_read);
    RUN_UNTIL(bench, reader.got == RECORDS);
    stream_read_stop(to);
    to->handle.data = owner;
    uv_close((uv_handle_t *)&reader.idle, NULL);
    uv_close((uv_handle_t *)&reader.prepare, NULL);
    uv_close((uv_handle_t *)&reader.check, NULL);
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    return reader.turns;
}

static void long_turns_end_with_a_record_of_a_client_but_not_of_a_server(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, context_of(true, "server.crt", "server.key", NULL),
               context_of(false, NULL, NULL, "server.crt"));
    dial(&bench, "127.0.0.1");
    RUN_UNTIL(&bench, bench.peer_secured);
    stream_read_stop(&bench.peer.stream);
    assert_true(long_turns(&bench, &bench.stream, &bench.peer.stream) >= RECORDS);
    assert_in_range(long_turns(&bench, &bench.peer.stream, &bench.stream), 1, RECORDS / 2);
    stream_read_start(&bench.peer.stream, on_peer_room, on_peer_read);
    bench_close(&bench);
}

static void closing_ends_a_write_that_is_under_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, context_of(true, "server.crt", "server.key", NULL),
               context_of(false, NULL, NULL, "server.crt"));
    dial(&bench, "127.0.0.1");
    bench.total = 64 * 1024 * 1024;
    bench.sent = calloc(1, bench.total);
    bench.write.data = &bench;
    bench.writing = true;
    assert_int_equal(
        stream_write(&bench.stream, &bench.write, bench.sent, bench.total, on_cancelled), 0);
    assert_true(stream_queued(&bench.stream) > 0);
    bench_close(&bench);
    assert_false(bench.writing);
}

/* ---- who is trusted ---- */

static void a_certificate_that_nobody_trusts_is_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, context_of(true, "server.crt", "server.key", NULL),
               context_of(false, NULL, NULL, "other.crt"));
    must_be_refused(&bench, "127.0.0.1", "certificate");
    bench_close(&bench);
    assert_false(bench.peer_secured);
}

static void a_certificate_for_another_name_is_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, context_of(true, "other.crt", "other.key", NULL),
               context_of(false, NULL, NULL, "other.crt"));
    must_be_refused(&bench, "localhost", "mismatch");
    bench_close(&bench);
    bench_open(&bench, context_of(true, "other.crt", "other.key", NULL),
               context_of(false, NULL, NULL, "other.crt"));
    must_be_refused(&bench, "127.0.0.1", "mismatch");
    bench_close(&bench);
}

/* With TLS 1.3 a client learns of it only after its own part of the handshake: by its first read.
 */
static void a_client_without_the_certificate_it_needs_gets_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, context_of(true, "server.crt", "server.key", "client.crt"),
               context_of(false, NULL, NULL, "server.crt"));
    dial(&bench, "127.0.0.1");
    RUN_UNTIL(&bench, bench.peer.closed);
    assert_false(bench.peer_secured);
    assert_non_null(strstr(bench.peer_error, "certificate"));
    bench_close(&bench);
}

static void a_client_with_the_certificate_it_needs_is_served(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, context_of(true, "server.crt", "server.key", "client.crt"),
               context_of(false, "client.crt", "client.key", "server.crt"));
    dial(&bench, "127.0.0.1");
    RUN_UNTIL(&bench, bench.peer_secured || bench.peer_error[0]);
    assert_string_equal(bench.peer_error, "");
    bench_close(&bench);
}

static void send_plain(struct bench *bench, const char *bytes, size_t length)
{
    struct ssl_ctx_st *tls = bench->client_tls;
    bench->client_tls = NULL;
    dial(bench, "127.0.0.1");
    bench->client_tls = tls;
    assert_true(bench->open);
    assert_int_equal(stream_try_write(&bench->stream, bytes, length), (int)length);
}

static void plain_text_and_garbage_are_refused(void **state)
{
    static const char *const texts[] = {"*1\r\n$4\r\nPING\r\n", "\x16\x03\x01\xff\xff",
                                        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage",
                                        "\x80\x80\x01\x03\x01"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct bench bench;
        bench_open(&bench, context_of(true, "server.crt", "server.key", NULL),
                   context_of(false, NULL, NULL, "server.crt"));
        send_plain(&bench, texts[i], strlen(texts[i]));
        for (int turn = 0; turn < 20; turn++)
            uv_run(&bench.loop, UV_RUN_NOWAIT);
        bench_close(&bench);
        assert_false(bench.peer_secured);
        assert_non_null(strstr(bench.peer_error, "TLS"));
    }
}

/* ---- files ---- */

static void must_fail(const struct tls_options *options, const char *why, const char *file)
{
    struct ssl_ctx_st *context = NULL;
    char error[TLS_ERROR_SIZE] = "";
    assert_true(tls_context_create(&context, options, error) < 0);
    if (!strstr(error, why) || !strstr(error, file))
        fail_msg("\"%s\" does not say \"%s\" of \"%s\"", error, why, file);
}

static void wrong_files_are_named(void **state)
{
    const char *good = in_directory("server.crt"), *key = in_directory("server.key");
    (void)state;
    must_fail(&(struct tls_options){.is_server = true, .certificate = "/no/where", .key = key},
              "No such file", "/no/where");
    must_fail(&(struct tls_options){.is_server = true, .certificate = good, .key = "/no/key"},
              "No such file", "/no/key");
    must_fail(&(struct tls_options){.is_server = true, .certificate = key, .key = key},
              "no start line", "server.key");
    must_fail(&(struct tls_options){.is_server = true,
                                    .certificate = good,
                                    .key = in_directory("other.key")},
              "mismatch", "other.key");
    must_fail(&(struct tls_options){.authorities = "/no/ca"}, "No such file", "/no/ca");
}

/* Both orders: one of them is not the one in which OpenSSL sorts them when it looks one up. */
static void a_context_stays_equal_to_its_files_when_it_has_been_used(void **state)
{
    static const char *const files[] = {"one.pem", "other.pem"};
    (void)state;
    join_files("server.crt", "other.crt", files[0]);
    join_files("other.crt", "server.crt", files[1]);
    for (size_t i = 0; i < 2; i++) {
        struct bench bench;
        struct ssl_ctx_st *used = context_of(false, NULL, NULL, files[i]);
        struct ssl_ctx_st *fresh = context_of(false, NULL, NULL, files[i]);
        tls_context_hold(used);
        bench_open(&bench, context_of(true, "server.crt", "server.key", NULL), used);
        dial(&bench, "127.0.0.1");
        assert_string_equal(bench.error, "");
        bench_close(&bench);
        assert_true(tls_context_equal(used, fresh));
        tls_context_release(used);
        tls_context_release(fresh);
    }
}

static void must_differ(struct ssl_ctx_st *one, struct ssl_ctx_st *other)
{
    assert_true(tls_context_equal(one, one));
    assert_false(tls_context_equal(one, other));
    tls_context_release(one);
    tls_context_release(other);
}

static void contexts_of_other_files_differ(void **state)
{
    (void)state;
    join_files("server.crt", "other.crt", "chain.pem");
    must_differ(context_of(false, NULL, NULL, "server.crt"),
                context_of(false, NULL, NULL, "other.crt"));
    must_differ(context_of(false, NULL, NULL, "server.crt"),
                context_of(false, NULL, NULL, "chain.pem"));
    must_differ(context_of(false, "server.crt", "server.key", NULL),
                context_of(false, "client.crt", "client.key", NULL));
    must_differ(context_of(false, "server.crt", "server.key", NULL),
                context_of(false, "chain.pem", "server.key", NULL)); /* what is behind it counts */
    must_differ(context_of(false, NULL, NULL, "server.crt"), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_arrives_whatever_the_pieces),
        cmocka_unit_test(who_changes_keys_and_says_nothing_is_sent_away),
        cmocka_unit_test(small_records_are_read_in_many_turns),
        cmocka_unit_test(long_turns_end_with_a_record_of_a_client_but_not_of_a_server),
        cmocka_unit_test(closing_ends_a_write_that_is_under_way),
        cmocka_unit_test(a_certificate_that_nobody_trusts_is_refused),
        cmocka_unit_test(a_certificate_for_another_name_is_refused),
        cmocka_unit_test(a_client_without_the_certificate_it_needs_gets_nothing),
        cmocka_unit_test(a_client_with_the_certificate_it_needs_is_served),
        cmocka_unit_test(plain_text_and_garbage_are_refused),
        cmocka_unit_test(wrong_files_are_named),
        cmocka_unit_test(a_context_stays_equal_to_its_files_when_it_has_been_used),
        cmocka_unit_test(contexts_of_other_files_differ),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
