/* As many GETs a second as a server answers: each connection sends a batch of them, waits for all
 * replies, and sends the next batch. Prints one JSON object: requests, what they were answered
 * with, latencies from the sending of a batch to the arrival of a reply, and the processor time
 * that the server took meanwhile.
 *
 *   load --port N --ids FIRST:LAST [--once] [--prefix TEXT] [--connections N] [--depth N]
 *        [--members NAME | --bitmap WHICH] [--warm-up SECONDS] [--seconds SECONDS] [--pid N]...
 *
 *   --ids    keys are PREFIX and an id of this range, at random; "item:" unless --prefix says else
 *   --once   each id once, and then it ends
 *   --depth  GETs in a batch
 *   --members  a batch is one BF.MEXISTS of the filter NAME, whose items are ids
 *   --bitmap   a batch looks into a published bitmap: NAME,M,K by BITFIELD, and
 *              NAME,M,K,SHA,GENERATION by the script
 *   --pid    a process of the server's
 *
 * Nothing counts before the warm-up is over. One thread on epoll, since the processor time of a
 * server depends on how many requests it finds when it wakes up: the load must keep up with it.
 */
#include "bitmap_batch.h"
#include "client.h"
#include "get.h"
#include "histogram.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTIONS_MOST = 1024,
    DEPTH_MOST = 1024,
    EVENTS = 64,
    IN_SIZE = 1 << 18,
    PIDS_MOST = 8,
    PATIENCE_MS = 20000,
    ERROR_MOST = 100
};

struct connection {
    int fd;
    unsigned waiting; /* items whose replies are to come */
    unsigned asked;   /* items of the batch */
    uint64_t sent_at;
    size_t have;
    char *in;    /* IN_SIZE bytes */
    char *batch; /* room for a head, and `depth` requests */
};

struct load {
    int port;
    unsigned connections, depth;
    double warm_up, seconds;
    bool once;
    const char *prefix;
    const char *members; /* NULL: GETs */
    struct bitmap_batch bitmap;
    struct id_range ids;
    pid_t pids[PIDS_MOST];
    size_t pid_count;

    int epoll;
    struct get_request request;
    uint64_t seed, turn;
    unsigned active;     /* connections that wait for replies */
    uint64_t begin, end; /* of what counts */
    bool is_counting, is_over;
    uint64_t cpu_ns; /* of the server; at the beginning, then meanwhile */
    uint64_t replies[REPLY_ERROR + 1];
    char error[ERROR_MOST]; /* the first one */
    struct histogram latencies;
};

static struct load load = {
    .connections = 50, .depth = 1, .warm_up = 0.3, .seconds = 3, .prefix = "item:", .port = 6379};

/* User and system time of all threads that the server has and had. */
static uint64_t server_cpu_ns(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < load.pid_count; i++) {
        clockid_t clock;
        errno = clock_getcpuclockid(load.pids[i], &clock);
        if (errno)
            fail("the server's processor time");
        sum += clock_ns(clock);
    }
    return sum;
}

/* ---- a connection ---- */

static void connection_open(struct connection *connection)
{
    connection->fd = connect_to(load.port);
    connection->in = need(malloc(IN_SIZE));
    size_t room = load.bitmap.name[0] ? bitmap_batch_most(&load.bitmap, load.depth)
                                      : load.depth * load.request.length;
    connection->batch = need(malloc(MEMBERS_HEAD_MOST + room));
    for (unsigned i = 0; i < load.depth && !load.bitmap.name[0]; i++)
        memcpy(connection->batch + MEMBERS_HEAD_MOST + i * load.request.length, load.request.bytes,
               load.request.length);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
        fail("epoll");
}

static void connection_close(struct connection *connection)
{
    close(connection->fd);
    free(connection->in);
    free(connection->batch);
}

/* How many requests the next batch has; 0 when there is none. */
static unsigned batch_size(void)
{
    if (load.is_over)
        return 0;
    if (!load.once)
        return load.depth;
    uint64_t left = load.ids.last - load.ids.first + 1 - load.turn;
    return left < load.depth ? (unsigned)left : load.depth;
}

/* Puts what stands before so many requests in front of them. */
static char *put_head(char *requests, unsigned size)
{
    char head[MEMBERS_HEAD_MOST];
    if (!load.members)
        return requests;
    size_t length = members_head(head, load.members, size);
    return memcpy(requests - length, head, length);
}

static uint64_t next_id(void)
{
    return load.once ? id_range_at(&load.ids, load.turn++) : id_range_random(&load.ids, &load.seed);
}

/* Returns where the requests end. */
static char *put_requests(char *at, unsigned size)
{
    uint64_t ids[DEPTH_MOST];
    for (unsigned i = 0; i < size; i++)
        ids[i] = next_id();
    if (load.bitmap.name[0])
        return bitmap_batch_write(&load.bitmap, at, ids, size);
    for (unsigned i = 0; i < size; i++, at += load.request.length)
        get_request_put_id(&load.request, at, ids[i]);
    return at;
}

/* A batch fits into the socket's buffer, for the last one has been answered: so it is sent whole.
 */
static void connection_ask(struct connection *connection)
{
    unsigned size = batch_size();
    if (!size)
        return;
    char *requests = connection->batch + MEMBERS_HEAD_MOST, *at = put_requests(requests, size);
    char *begin = put_head(requests, size);
    connection->waiting = connection->asked = size;
    connection->sent_at = now_ns();
    load.active++;
    if (send(connection->fd, begin, (size_t)(at - begin), MSG_NOSIGNAL) != at - begin)
        fail("send");
}

static void keep_error(const char *p)
{
    if (!load.error[0])
        snprintf(load.error, sizeof load.error, "%.*s", (int)strcspn(p, "\r\n"), p);
}

static void count(enum reply reply, unsigned items)
{
    if (load.is_counting)
        load.replies[reply] += items;
}

/* How many items the first reply is about, which is counted; 0: it is not there as a whole. */
static unsigned take_reply(const char *p, const char *end, const char **next)
{
    enum reply reply = reply_take(p, end, next);
    if (reply == REPLY_PARTIAL)
        return 0;
    if (reply == REPLY_ERROR)
        keep_error(p);
    count(reply, 1);
    return 1;
}

static unsigned take_reading(unsigned asked, const char *p, const char *end, const char **next)
{
    struct bitmap_found found = bitmap_batch_take(&load.bitmap, asked, p, end, next);
    if (found.failed)
        keep_error(p);
    count(REPLY_NIL, found.absent);
    count(REPLY_VALUE, found.possible);
    count(REPLY_ERROR, found.failed);
    return found.absent + found.possible + found.failed;
}

/* Counts the replies that are there as a whole, and keeps the rest. */
static unsigned connection_take(struct connection *connection)
{
    const char *p = connection->in, *end = p + connection->have, *next;
    unsigned taken = 0, items;
    while (taken < connection->waiting &&
           (items = load.bitmap.name[0] ? take_reading(connection->asked, p, end, &next)
                                        : take_reply(p, end, &next))) {
        p = next;
        taken += items;
    }
    connection->have = (size_t)(end - p);
    memmove(connection->in, p, connection->have);
    return taken;
}

static void connection_read(struct connection *connection)
{
    ssize_t length = recv(connection->fd, connection->in + connection->have,
                          IN_SIZE - connection->have, MSG_DONTWAIT);
    if (length <= 0) {
        if (length < 0 && errno == EAGAIN)
            return;
        errno = length ? errno : ECONNRESET;
        fail("a connection to the server");
    }
    uint64_t now = now_ns();
    connection->have += (size_t)length;
    unsigned taken = connection_take(connection);
    if (taken && load.is_counting)
        histogram_add(&load.latencies, now - connection->sent_at, taken);
    connection->waiting -= taken;
    if (!connection->waiting) {
        load.active--;
        connection_ask(connection);
    }
}

/* ---- the run ---- */

static void begin_counting(void)
{
    load.is_counting = true;
    load.begin = now_ns();
    load.cpu_ns = server_cpu_ns();
}

static void end_counting(void)
{
    load.is_counting = false;
    load.end = now_ns();
    load.cpu_ns = server_cpu_ns() - load.cpu_ns;
    load.is_over = true;
}

/* A thread that was kept from running comes late to the beginning: what counts is as long all the
 * same, and has a reply in it. */
static void look_at_the_clock(uint64_t start)
{
    uint64_t now = now_ns();
    if (!load.is_counting && !load.is_over && (double)(now - start) >= load.warm_up * 1e9)
        begin_counting();
    else if (load.is_counting && (double)(now - load.begin) >= load.seconds * 1e9 &&
             load.latencies.count)
        end_counting();
}

static void run(struct connection *connections)
{
    uint64_t start = now_ns();
    look_at_the_clock(start);
    for (unsigned i = 0; i < load.connections; i++)
        connection_ask(&connections[i]);
    while (load.active) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(load.epoll, events, EVENTS, PATIENCE_MS);
        if (count <= 0) {
            errno = count ? errno : ETIMEDOUT;
            fail("waiting for replies");
        }
        for (int i = 0; i < count; i++)
            connection_read(events[i].data.ptr);
        look_at_the_clock(start);
    }
    if (load.is_counting)
        end_counting();
}

static void report(void)
{
    printf("{\"requests\": %" PRIu64 ", \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"nil\": %" PRIu64
           ", \"values\": %" PRIu64 ", \"errors\": %" PRIu64 ", ",
           load.latencies.count, (double)(load.end - load.begin) / 1e9, (double)load.cpu_ns / 1e9,
           load.replies[REPLY_NIL], load.replies[REPLY_VALUE] + load.replies[REPLY_EMPTY],
           load.replies[REPLY_ERROR] + load.replies[REPLY_STATUS]);
    histogram_print(&load.latencies, stdout);
    printf("}\n");
    if (load.error[0])
        fprintf(stderr, "load: the first error: %s\n", load.error);
}

/* ---- the command line ---- */

static void usage(void)
{
    fputs("usage: load --port N --ids FIRST:LAST [--once] [--prefix TEXT] [--connections N]\n"
          "            [--depth N] [--members NAME | --bitmap WHICH] [--warm-up SECONDS]\n"
          "            [--seconds SECONDS] [--pid N]...\n",
          stderr);
    exit(2);
}

static void add_pid(const char *text)
{
    if (load.pid_count == PIDS_MOST)
        usage();
    load.pids[load.pid_count++] = (pid_t)atoi(text);
}

static void take_option(int name, const char *value)
{
    switch (name) {
    case 'p':
        load.port = atoi(value);
        return;
    case 'i':
        if (!id_range_parse(value, &load.ids))
            usage();
        return;
    case 'o':
        load.once = true;
        return;
    case 'x':
        load.prefix = value;
        return;
    case 'm':
        load.members = value;
        return;
    case 'b':
        if (!bitmap_batch_parse(value, &load.bitmap))
            usage();
        return;
    case 'c':
        load.connections = (unsigned)atoi(value);
        return;
    case 'd':
        load.depth = (unsigned)atoi(value);
        return;
    case 'w':
        load.warm_up = atof(value);
        return;
    case 's':
        load.seconds = atof(value);
        return;
    case 'P':
        add_pid(value);
        return;
    default:
        usage();
    }
}

static void parse(int argc, char **argv)
{
    static const struct option names[] = {{"port", required_argument, NULL, 'p'},
                                          {"ids", required_argument, NULL, 'i'},
                                          {"once", no_argument, NULL, 'o'},
                                          {"prefix", required_argument, NULL, 'x'},
                                          {"members", required_argument, NULL, 'm'},
                                          {"bitmap", required_argument, NULL, 'b'},
                                          {"connections", required_argument, NULL, 'c'},
                                          {"depth", required_argument, NULL, 'd'},
                                          {"warm-up", required_argument, NULL, 'w'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"pid", required_argument, NULL, 'P'},
                                          {NULL, 0, NULL, 0}};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1)
        take_option(name, optarg);
    if (optind != argc || !load.ids.last || load.connections - 1 >= CONNECTIONS_MOST ||
        load.depth - 1 >= DEPTH_MOST ||
        !(load.members ? member_request_init(&load.request, &load.ids)
                       : get_request_init(&load.request, load.prefix, &load.ids)))
        usage();
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    load.seed = random_seed();
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct connection *connections = need(calloc(load.connections, sizeof *connections));
    if (load.epoll < 0)
        fail("epoll");
    for (unsigned i = 0; i < load.connections; i++)
        connection_open(&connections[i]);
    run(connections);
    report();
    for (unsigned i = 0; i < load.connections; i++)
        connection_close(&connections[i]);
    free(connections);
    close(load.epoll);
    return 0;
}
