/* A thread a connection, since the worker may ask while the test waits for something else. Neither
 * side is read from while the other does not take what it was sent: it is held up as if there were
 * nothing between them.
 */
#include "fakes/cache.h"

#include "base/memory.h"
#include "fakes/peer.h"
#include "resp/resp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ASKED = 16, PIECE = 64 * 1024, FDS = 1024 };

static const char primary[] = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
static const char nobody[] =
    "-NOPERM this user may not\r\n"; /* to the question which server it is */
static const struct resp_limits limits = {1 << 20, 1 << 30, 1 << 30, 1 << 16, 0};

struct side {
    int fd;
    struct buffer in, out;
    bool ended; /* it sends no more */
    bool lost;
};

struct relay {
    struct relay *older;
    pthread_t thread;
    size_t said;          /* bytes, by the test */
    atomic_size_t passed; /* of these, to the worker's socket */
    atomic_bool is_over;
    struct side worker, test;
    size_t taken;             /* bytes from the test */
    size_t begun;             /* bytes of an unfinished reply that have been passed on */
    struct resp_frame frame;  /* of that */
    size_t commands, replies; /* so far, with the worker's own */
    struct own {
        size_t number; /* of the commands */
        const char *answer;
    } own[ASKED]; /* that the worker asked by itself, and that have no reply yet */
    size_t own_count;
    bool is_lost; /* what the test says is no reply to anything */
};

static struct relay *newest, *relay_of[FDS]; /* by the test's end */
static atomic_uint roles_asked;

/* ---- what passes ---- */

static void answer_own(struct relay *relay)
{
    while (relay->own_count && relay->own[0].number == relay->replies && !relay->is_lost) {
        const char *answer = relay->own[0].answer;
        buffer_append(&relay->worker.out, answer, strlen(answer));
        relay->replies++;
        relay->own_count--;
        memmove(relay->own, relay->own + 1, relay->own_count * sizeof *relay->own);
    }
}

/* NULL: it is a client's. */
static const char *own_answer(const struct resp_arguments *words)
{
    if (words->count == 1 && span_is_word(words->at[0], "role"))
        return primary;
    bool asks_who = words->count == 2 && span_is_word(words->at[0], "info") &&
                    span_is_word(words->at[1], "server");
    return asks_who ? nobody : NULL;
}

static void take_command(struct relay *relay, const struct resp_arguments *words, size_t length)
{
    struct buffer *in = &relay->worker.in;
    const char *answer = own_answer(words);
    if (answer) {
        assert(relay->own_count < ASKED);
        relay->own[relay->own_count++] = (struct own){relay->commands, answer};
        atomic_fetch_add(&roles_asked, answer == primary);
    } else {
        buffer_append(&relay->test.out, buffer_span(in).at, length);
    }
    relay->commands++;
    buffer_take(in, length);
    answer_own(relay);
}

static void take_commands(struct relay *relay)
{
    struct buffer *in = &relay->worker.in;
    struct resp_arguments words = {0};
    struct resp_command command;
    while (buffer_length(in) && resp_read_command(in->bytes + in->start, buffer_length(in), &limits,
                                                  &words, &command) == RESP_DONE) {
        take_command(relay, &words, command.length);
        words.count = 0;
    }
    resp_arguments_finish(&words);
}

static void pass_reply(struct relay *relay, size_t length)
{
    const char *at = buffer_span(&relay->test.in).at;
    buffer_append(&relay->worker.out, at + relay->begun, length - relay->begun);
    relay->begun = length;
}

/* A push answers nothing. */
static void take_reply(struct relay *relay, size_t length)
{
    bool is_push = buffer_span(&relay->test.in).at[0] == '>';
    pass_reply(relay, length);
    relay->begun = 0;
    buffer_take(&relay->test.in, length);
    if (!is_push && relay->replies++ == relay->commands)
        relay->is_lost = true;
    answer_own(relay);
}

static void take_replies(struct relay *relay)
{
    struct buffer *in = &relay->test.in;
    enum resp_status status = RESP_DONE;
    size_t taken;
    while (buffer_length(in) && status == RESP_DONE && !relay->is_lost) {
        struct span bytes = buffer_span(in);
        status = resp_frame_reply(&relay->frame, bytes.at, bytes.length, &taken);
        if (status == RESP_DONE)
            take_reply(relay, taken);
    }
    if (status == RESP_BAD)
        relay->is_lost = true;
    pass_reply(relay, buffer_length(in));
}

/* ---- sockets ---- */

static size_t read_side(struct side *side)
{
    ssize_t count = recv(side->fd, buffer_reserve(&side->in, PIECE), PIECE, 0);
    if (count > 0)
        buffer_commit(&side->in, (size_t)count);
    else if (count == 0)
        side->ended = true;
    else if (errno != EAGAIN && errno != EINTR)
        side->lost = true;
    return count > 0 ? (size_t)count : 0;
}

static void write_side(struct side *side)
{
    struct span out = buffer_span(&side->out);
    ssize_t count = send(side->fd, out.at, out.length, MSG_NOSIGNAL);
    if (count > 0)
        buffer_take(&side->out, (size_t)count);
    else if (errno != EAGAIN && errno != EINTR)
        side->lost = true;
}

/* Nobody is looked at of whom nothing is wanted: his end alone would be told again and again. */
static struct pollfd wish(const struct side *side, const struct side *other)
{
    bool reads = !side->ended && !other->ended && !buffer_length(&other->out);
    short events = (short)((reads ? POLLIN : 0) | (buffer_length(&side->out) ? POLLOUT : 0));
    return (struct pollfd){.fd = events ? side->fd : -1, .events = events};
}

/* Returns how many bytes have come. */
static size_t act(struct side *side, const struct pollfd *wanted)
{
    short told = wanted->revents;
    if (told & (POLLERR | POLLHUP))
        told = wanted->events; /* which will say it */
    if (told & POLLOUT)
        write_side(side);
    return told & POLLIN ? read_side(side) : 0;
}

/* What one side has said before its end reaches the other. */
static bool is_over(const struct relay *relay)
{
    const struct side *worker = &relay->worker, *test = &relay->test;
    return worker->lost || test->lost || (worker->ended && !buffer_length(&test->out)) ||
           (test->ended && !buffer_length(&worker->out));
}

static void end_side(struct side *side, bool lost)
{
    if (lost)
        vanish(side->fd);
    else
        close(side->fd);
    buffer_finish(&side->in);
    buffer_finish(&side->out);
}

static void *run(void *arg)
{
    struct relay *relay = arg;
    while (!is_over(relay)) {
        struct pollfd wanted[] = {wish(&relay->worker, &relay->test),
                                  wish(&relay->test, &relay->worker)};
        poll(wanted, 2, -1);
        act(&relay->worker, &wanted[0]);
        relay->taken += act(&relay->test, &wanted[1]);
        take_commands(relay);
        take_replies(relay);
        if (!buffer_length(&relay->worker.out))
            atomic_store(&relay->passed, relay->taken);
    }
    bool lost = relay->worker.lost || relay->test.lost;
    end_side(&relay->worker, lost);
    end_side(&relay->test, lost);
    atomic_store(&relay->is_over, true);
    return NULL;
}

/* ---- life ---- */

static void send_at_once(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

static struct side side_of(int fd)
{
    send_at_once(fd);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return (struct side){.fd = fd};
}

/* Of TCP, so that it can be reset. */
static int connect_pair(int *other)
{
    uint16_t port;
    int listener = listen_somewhere(&port, 0);
    listen(listener, 1);
    int fd = connect_to(port);
    *other = accept(listener, NULL, NULL);
    assert(*other >= 0);
    close(listener);
    return fd;
}

int fake_cache_join(int worker)
{
    struct relay *relay = xcalloc(1, sizeof *relay);
    int other, test = connect_pair(&other);
    assert(test < FDS);
    send_at_once(test);
    relay->worker = side_of(worker);
    relay->test = side_of(other);
    relay->older = newest;
    newest = relay_of[test] = relay;
    int status = pthread_create(&relay->thread, NULL, run, relay);
    assert(!status);
    (void)status;
    return test;
}

void fake_cache_say(int fd, const char *bytes, size_t length)
{
    struct relay *relay = relay_of[fd];
    say_bytes(fd, bytes, length);
    relay->said += length;
    while (atomic_load(&relay->passed) < relay->said && !atomic_load(&relay->is_over))
        usleep(20);
}

void fake_cache_close(int fd)
{
    close(fd);
    while (!atomic_load(&relay_of[fd]->is_over))
        usleep(20);
}

unsigned fake_cache_roles(void)
{
    return atomic_load(&roles_asked);
}

void fake_cache_finish(void)
{
    for (struct relay *relay = newest, *older; relay; relay = older) {
        older = relay->older;
        pthread_join(relay->thread, NULL);
        free(relay);
    }
    newest = NULL;
}
