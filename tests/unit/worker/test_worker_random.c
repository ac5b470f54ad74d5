/* A worker in a storm: several clients pipeline, cache and keeper answer at random, clients vanish,
 * the cache is lost. Every reply must be the one to its command, in order, and none may be missing.
 * The environment's SEED chooses one storm. Also to be run under ThreadSanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "resp/resp.h"
#include "worker_bench.h"

enum { CLIENTS = 5, QUEUE = 1024, STORMS = 12, STEPS = 1500 };

enum kind { ECHO_NUMBER, GET_ROW, GET_NO_ROW, MGET_THREE, EXISTS_TWO, SET_KEY, KINDS };

/* One command without a reply; its number is in every answer to it. */
struct sent {
    enum kind kind;
    int number;
};

struct player {
    int fd;
    struct buffer in;
    struct sent queue[QUEUE];
    size_t first, count;
};

struct storm {
    struct bench bench;
    struct player players[CLIENTS];
    struct buffer cache_in;
    int numbers;
    size_t answered;
};

/* ---- clients: what they send, and what may come back ---- */

static void write_command(char *text, size_t size, struct sent sent)
{
    int n = sent.number;
    switch (sent.kind) {
    case ECHO_NUMBER:
        snprintf(text, size, "ECHO n%d\r\n", n);
        break;
    case GET_ROW:
        snprintf(text, size, "GET item:%d\r\n", n);
        break;
    case GET_NO_ROW:
        snprintf(text, size, "GET item:absent-%d\r\n", n);
        break;
    case MGET_THREE:
        snprintf(text, size, "MGET item:%d item:no-%d other:%d\r\n", n, n, n);
        break;
    case EXISTS_TWO:
        snprintf(text, size, "EXISTS item:%d item:no-%d\r\n", n, n);
        break;
    default:
        snprintf(text, size, "SET item:new-%d v\r\n", n);
    }
}

static void send_command(struct storm *storm, struct player *player)
{
    char text[200];
    if (player->count == QUEUE)
        return;
    struct sent sent = {(enum kind)(rand() % KINDS), storm->numbers++ % 100};
    player->queue[(player->first + player->count++) % QUEUE] = sent;
    write_command(text, sizeof text, sent);
    say(player->fd, text);
}

static bool is(struct span reply, const char *text)
{
    return reply.length == strlen(text) && memcmp(reply.at, text, reply.length) == 0;
}

static bool is_failure(struct span reply)
{
    return reply.length > 11 && memcmp(reply.at, "-NESTGUARD ", 11) == 0;
}

/* A bulk string of this letter and number. */
static bool is_bulk(struct span reply, char letter, int number)
{
    char text[40], body[20];
    int length = snprintf(body, sizeof body, "%c%d", letter, number);
    snprintf(text, sizeof text, "$%d\r\n%s\r\n", length, body);
    return is(reply, text);
}

/* From the cache, from the database, from neither. */
static bool is_row(struct span reply, int number)
{
    return is_bulk(reply, 'c', number) || is_bulk(reply, 'l', number) || is(reply, "$-1\r\n") ||
           is_failure(reply);
}

static bool is_mget(struct span reply, int number)
{
    const char *at, *end = reply.at + reply.length;
    if (resp_array_open(reply, &at) != 3 || !is_row(resp_array_next(&at, end), number) ||
        !is(resp_array_next(&at, end), "$-1\r\n"))
        return false;
    struct span other = resp_array_next(&at, end);
    return (is_bulk(other, 'o', number) || is_failure(other)) && at == end;
}

static bool answers(struct span reply, struct sent sent)
{
    switch (sent.kind) {
    case ECHO_NUMBER:
        return is_bulk(reply, 'n', sent.number) || is_failure(reply);
    case GET_ROW:
        return is_row(reply, sent.number);
    case GET_NO_ROW:
        return is(reply, "$-1\r\n");
    case MGET_THREE:
        return is_mget(reply, sent.number);
    case EXISTS_TWO:
        return is(reply, ":0\r\n") || is(reply, ":1\r\n") || is_failure(reply);
    default:
        return is(reply, "+OK\r\n") || is_failure(reply);
    }
}

static void must_answer(struct storm *storm, struct player *player, struct span reply)
{
    if (!player->count)
        fail_msg("a reply to nothing: %.*s", (int)reply.length, reply.at);
    struct sent sent = player->queue[player->first];
    if (!answers(reply, sent))
        fail_msg("\"%.*s\" is no reply to command %d of number %d", (int)reply.length, reply.at,
                 (int)sent.kind, sent.number);
    player->first = (player->first + 1) % QUEUE;
    player->count--;
    storm->answered++;
}

/* Takes what has come; false when the other side has closed. */
static bool receive(int fd, struct buffer *in)
{
    ssize_t count;
    do {
        count = recv(fd, buffer_reserve(in, 65536), 65536, MSG_DONTWAIT);
        if (count > 0)
            buffer_commit(in, (size_t)count);
    } while (count > 0);
    return count < 0;
}

static void read_replies(struct storm *storm, struct player *player)
{
    struct resp_frame frame = {0};
    size_t taken;
    assert_true(receive(player->fd, &player->in));
    while (buffer_length(&player->in)) {
        struct span in = buffer_span(&player->in);
        enum resp_status status = resp_frame_reply(&frame, in.at, in.length, &taken);
        assert_int_not_equal(status, RESP_BAD);
        if (status == RESP_MORE)
            return;
        must_answer(storm, player, (struct span){in.at, taken});
        buffer_take(&player->in, taken);
    }
}

static void replace_client(struct storm *storm, struct player *player)
{
    if (rand() % 2)
        vanish(player->fd);
    else
        close(player->fd);
    buffer_clear(&player->in);
    player->first = player->count = 0;
    player->fd = connect_client(&storm->bench);
}

/* ---- the cache ---- */

static void reply_of_cache(struct buffer *out, const struct span *words, size_t count)
{
    char body[40];
    const char *number = memchr(words[1].at, ':', words[1].length);
    int digits = number ? (int)(words[1].at + words[1].length - number - 1) : 0;
    snprintf(body, sizeof body, "c%.*s", digits, number ? number + 1 : "");
    if (words[0].at[0] == 'S') {
        resp_write_status(out, "OK");
    } else if (words[0].at[0] == 'E' && words[0].at[1] == 'C') {
        resp_write_bulk(out, words[1].at, words[1].length);
    } else if (words[0].at[0] == 'E') {
        resp_write_integer(out, rand() % 2);
    } else {
        if (words[0].at[0] == 'M') {
            assert_int_equal(count, 3); /* the absent key is not asked for */
            resp_write_array(out, 2);
        }
        if (rand() % 2)
            resp_write_nil(out, false);
        else
            resp_write_bulk(out, body, strlen(body));
        body[0] = 'o';
        if (words[0].at[0] == 'M')
            resp_write_bulk(out, body, strlen(body));
    }
}

/* Answers at most so many of the requests that have come. */
static void answer_as_cache(struct storm *storm, int most)
{
    struct resp_limits limits = {1000, 1 << 20, 1 << 20, 1 << 16, 0};
    struct resp_arguments words = {0};
    struct resp_command command;
    struct buffer out = {0};
    assert_true(receive(storm->bench.cache, &storm->cache_in));
    for (; most > 0 && buffer_length(&storm->cache_in); most--) {
        struct buffer *in = &storm->cache_in;
        words.count = 0;
        if (resp_read_command(in->bytes + in->start, buffer_length(in), &limits, &words,
                              &command) != RESP_DONE)
            break;
        reply_of_cache(&out, words.at, command.count);
        buffer_take(in, command.length);
    }
    fake_cache_say(storm->bench.cache, buffer_span(&out).at, buffer_length(&out));
    buffer_finish(&out);
    resp_arguments_finish(&words);
}

static void lose_cache(struct storm *storm)
{
    vanish(storm->bench.cache);
    buffer_clear(&storm->cache_in);
    serve_cache(&storm->bench);
}

/* ---- the keeper ---- */

static void answer_load(struct load_request *load)
{
    char value[20];
    snprintf(value, sizeof value, "l%.*s", (int)load->key.text.length - 5, load->text + 5);
    if (rand() % 2)
        return_row(load, value);
    else
        return_outcome(load, (enum load_outcome)(LOAD_ABSENT + rand() % 4));
}

/* Answers any one of the messages that have come. */
static void answer_as_keeper(struct storm *storm)
{
    struct bench *bench = &storm->bench;
    uv_run(&bench->keeper.loop, UV_RUN_NOWAIT);
    if (!bench->keeper.inbox_count)
        return;
    size_t at = (size_t)rand() % bench->keeper.inbox_count;
    struct message *message = bench->keeper.inbox[at];
    bench->keeper.inbox[at] = bench->keeper.inbox[--bench->keeper.inbox_count];
    if (message->kind == MESSAGE_LOAD)
        answer_load((struct load_request *)(void *)message);
    else
        mailbox_return(message);
}

/* ---- the storm ---- */

static void one_step(struct storm *storm)
{
    struct player *player = &storm->players[rand() % CLIENTS];
    switch (rand() % 10) {
    case 0:
    case 1:
    case 2:
        for (int i = rand() % 6; i >= 0; i--)
            send_command(storm, player);
        break;
    case 3:
    case 4:
        answer_as_cache(storm, 1 + rand() % 10);
        break;
    case 5:
    case 6:
        answer_as_keeper(storm);
        break;
    case 7:
        read_replies(storm, player);
        break;
    case 8:
        if (rand() % 40 == 0)
            replace_client(storm, player);
        break;
    default:
        if (rand() % 100 == 0)
            lose_cache(storm);
        else if (rand() % 20 == 0)
            send_view(&storm->bench, KEYSPACE_GUARDING);
    }
}

static bool waits(const struct storm *storm)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (storm->players[i].count)
            return true;
    return false;
}

/* Answers everything: each command must get its reply. */
static void calm(struct storm *storm)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (waits(storm)) {
        answer_as_cache(storm, 1000);
        do
            answer_as_keeper(storm);
        while (storm->bench.keeper.inbox_count);
        for (size_t i = 0; i < CLIENTS; i++)
            read_replies(storm, &storm->players[i]);
        if (clock_ms() > until)
            fail_msg("a command got no reply");
    }
}

static void finish(struct storm *storm)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        close(storm->players[i].fd);
        buffer_finish(&storm->players[i].in);
    }
    send_drain(&storm->bench);
    while (!storm->bench.keeper.drained) { /* it waits for loads of clients that vanished */
        receive(storm->bench.cache, &storm->cache_in);
        answer_as_keeper(storm);
    }
    buffer_finish(&storm->cache_in);
    bench_free(&storm->bench);
}

static void brew(unsigned seed)
{
    static struct storm storm;
    storm = (struct storm){.numbers = 0};
    srand(seed);
    bench_init(&storm.bench);
    for (size_t i = 0; i < CLIENTS; i++)
        storm.players[i].fd = connect_client(&storm.bench);
    for (int step = 0; step < STEPS; step++)
        one_step(&storm);
    calm(&storm);
    assert_true(storm.answered > STEPS / 4);
    finish(&storm);
}

static void every_reply_is_the_one_to_its_command(void **state)
{
    const char *seed = getenv("SEED");
    (void)state;
    for (unsigned i = 1; i <= STORMS; i++) {
        unsigned chosen = seed ? (unsigned)atoi(seed) : i;
        print_message("SEED=%u\n", chosen);
        brew(chosen);
        if (seed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reply_is_the_one_to_its_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
