/* An application's lookups, for tests/bench/attack: GETs of the cache, and where it is given a
 * database, the way of an application that loads by itself: on a nil it asks the database, caches
 * the row, and perhaps also that there is none. Prints one JSON object.
 *
 *   lookups --port N --ids FIRST:LAST [--uncached FIRST:LAST --every N] [--rate N]
 *           [--outstanding N] [--seconds SECONDS] [--connections N]
 *           [--database CONNINFO [--pool N] [--null-ttl SECONDS]] [--announce]
 *           [--password PASSWORD]
 *
 *   --ids          random ids of this range
 *   --uncached     in each N-th lookup the next id of this range instead, in no order
 *   --rate         lookups a second; without it, as many as go
 *   --outstanding  lookups under way at once, at most
 *   --seconds      then it waits for the answers that are outstanding; SIGTERM ends it at once
 *   --announce     prints a line of its own, "answered", once a lookup has been
 *
 * Latencies count from the moment at which a lookup was to be sent by its rate, whether or not it
 * could be: otherwise a stalled system would be asked less while it stalls, and look better than
 * it is ("coordinated omission"). What was never answered counts with the time that it waited.
 */
#include "cache_link.h"
#include "client.h"
#include "get.h"
#include "histogram.h"
#include "row_pool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>

enum { LINKS_MOST = 256, EVENTS = 64, ROW_TTL_S = 3600, LAST_ANSWERS_S = 5, NS_IN_S = 1000000000 };

struct application {
    int port;
    unsigned link_count, pool_size, outstanding, every, null_ttl;
    double rate, seconds;
    struct id_range ids, uncached;
    const char *password; /* of the cache; NULL: none */
    const char *conninfo; /* NULL: who answers the GET loads by itself */
    bool announces;       /* until it has */

    int epoll;
    struct cache_link *links[LINKS_MOST];
    bool is_full[LINKS_MOST]; /* waits to be writable */
    struct row_pool *pool;
    struct lookup *lookups, *free;
    uint64_t seed, sent, now, start;
    uint64_t hits, rows, nils, failed, unanswered;
    struct histogram latencies;
};

static struct application app = {.port = 6379,
                                 .link_count = 8,
                                 .pool_size = 16,
                                 .outstanding = 10000,
                                 .every = 10,
                                 .seconds = 10};
static volatile sig_atomic_t is_ended;

static void on_signal(int number)
{
    (void)number;
    is_ended = 1;
}

/* ---- a lookup ---- */

static struct cache_link *link_of(const struct lookup *lookup)
{
    return app.links[lookup->id % app.link_count];
}

static void lookup_free(struct lookup *lookup)
{
    lookup->due = 0;
    lookup->next = app.free;
    app.free = lookup;
}

static void lookup_end(struct lookup *lookup, uint64_t *outcome)
{
    (*outcome)++;
    histogram_add(&app.latencies, app.now - lookup->due, 1);
    lookup_free(lookup);
}

static void lookup_answered(struct lookup *lookup, uint64_t *outcome)
{
    lookup_end(lookup, outcome);
    if (!app.announces)
        return;
    app.announces = false;
    puts("answered");
    fflush(stdout);
}

static void on_row(struct lookup *lookup, const char *value)
{
    if (value)
        cache_link_set(link_of(lookup), lookup->id, value, ROW_TTL_S);
    else if (app.null_ttl)
        cache_link_set(link_of(lookup), lookup->id, "", app.null_ttl);
    lookup_answered(lookup, value ? &app.rows : &app.nils);
}

/* An error. The first one is told. */
static void lookup_fail(struct lookup *lookup, const char *line)
{
    if (!app.failed++)
        fprintf(stderr, "lookups: the first error: %.*s\n", (int)strcspn(line, "\r"), line);
    lookup_free(lookup);
}

static void on_reply(struct lookup *lookup, enum reply reply, const char *line)
{
    if (reply == REPLY_VALUE) {
        lookup_answered(lookup, &app.hits);
    } else if (reply == REPLY_NIL && app.pool) {
        row_pool_ask(app.pool, lookup);
    } else if (reply == REPLY_NIL || reply == REPLY_EMPTY) {
        lookup_answered(lookup, &app.nils);
    } else {
        lookup_fail(lookup, line);
    }
}

/* When the next lookup is to be sent. */
static uint64_t next_due(void)
{
    if (app.rate <= 0)
        return app.now;
    return app.start + (uint64_t)((double)app.sent * 1e9 / app.rate);
}

static void send_one(void)
{
    struct lookup *lookup = app.free;
    app.free = lookup->next;
    lookup->due = next_due();
    bool is_uncached = app.uncached.last && app.sent % app.every == 0;
    lookup->id = is_uncached ? id_range_at(&app.uncached, app.sent / app.every)
                             : id_range_random(&app.ids, &app.seed);
    app.sent++;
    cache_link_get(link_of(lookup), lookup);
}

/* ---- the loop ---- */

static void watch(int operation, int fd, uint32_t events, uint64_t who)
{
    struct epoll_event event = {.events = events, .data.u64 = who};
    if (epoll_ctl(app.epoll, operation, fd, &event) < 0)
        fail("epoll");
}

static void flush(void)
{
    for (unsigned i = 0; i < app.link_count; i++) {
        bool is_full = cache_link_flush(app.links[i]);
        if (is_full != app.is_full[i])
            watch(EPOLL_CTL_MOD, cache_link_fd(app.links[i]),
                  is_full ? EPOLLIN | EPOLLOUT : EPOLLIN, i);
        app.is_full[i] = is_full;
    }
}

static void take(uint64_t who)
{
    if (who < app.link_count)
        cache_link_read(app.links[who]);
    else
        row_pool_read(app.pool, (unsigned)(who - app.link_count));
}

static void wait_until(uint64_t until)
{
    struct epoll_event events[EVENTS];
    uint64_t left = until > app.now ? until - app.now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / NS_IN_S),
                               .tv_nsec = (long)(left % NS_IN_S)};
    int count = epoll_pwait2(app.epoll, events, EVENTS, &timeout, NULL);
    if (count < 0 && errno != EINTR)
        fail("epoll");
    app.now = now_ns();
    for (int i = 0; i < count; i++)
        take(events[i].data.u64);
}

/* Without a free lookup, or with a rate that is not reached, it waits for an answer or the time of
 * the next lookup, whichever is first. What was due before the end is also sent when this thread
 * comes to it late. */
static void run_until(uint64_t end)
{
    for (;;) {
        while (app.free && next_due() <= app.now && next_due() < end && !is_ended)
            send_one();
        flush();
        if (is_ended || app.now >= end)
            return;
        uint64_t due = next_due();
        wait_until(app.free && due < end ? due : end);
    }
}

static bool is_all_answered(void)
{
    for (unsigned i = 0; i < app.outstanding; i++) {
        if (app.lookups[i].due)
            return false;
    }
    return true;
}

static void count_unanswered(uint64_t last_due)
{
    for (unsigned i = 0; i < app.outstanding; i++) {
        if (app.lookups[i].due)
            lookup_end(&app.lookups[i], &app.unanswered);
    }
    for (; app.rate > 0 && next_due() < last_due; app.sent++, app.unanswered++)
        histogram_add(&app.latencies, app.now - next_due(), 1);
}

static void take_last_answers(uint64_t last_due)
{
    uint64_t end = app.now + (uint64_t)LAST_ANSWERS_S * NS_IN_S;
    while (!is_ended && app.now < end && !is_all_answered()) {
        flush();
        wait_until(end);
    }
    if (!is_ended)
        count_unanswered(last_due);
}

static void report(double seconds)
{
    printf("{\"lookups\": %" PRIu64 ", \"seconds\": %.6f, \"hits\": %" PRIu64 ", \"rows\": %" PRIu64
           ", \"nils\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"unanswered\": %" PRIu64 ", ",
           app.hits + app.rows + app.nils, seconds, app.hits, app.rows, app.nils, app.failed,
           app.unanswered);
    histogram_print(&app.latencies, stdout);
    printf("}\n");
}

/* ---- beginning and end ---- */

static void begin(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    app.seed = random_seed();
    app.epoll = epoll_create1(EPOLL_CLOEXEC);
    app.lookups = need(calloc(app.outstanding, sizeof *app.lookups));
    if (app.epoll < 0)
        fail("epoll");
    for (unsigned i = 0; i < app.outstanding; i++)
        lookup_free(&app.lookups[i]);
    for (unsigned i = 0; i < app.link_count; i++) {
        app.links[i] = cache_link_create(app.port, on_reply);
        if (app.password)
            cache_link_authenticate(app.links[i], app.password);
        watch(EPOLL_CTL_ADD, cache_link_fd(app.links[i]), EPOLLIN, i);
    }
    if (!app.conninfo)
        return;
    app.pool = row_pool_create(app.conninfo, app.pool_size, on_row);
    for (unsigned i = 0; i < app.pool_size; i++)
        watch(EPOLL_CTL_ADD, row_pool_fd(app.pool, i), EPOLLIN, app.link_count + i);
}

static void finish(void)
{
    for (unsigned i = 0; i < app.link_count; i++)
        cache_link_destroy(app.links[i]);
    row_pool_destroy(app.pool);
    free(app.lookups);
}

static void usage(void)
{
    fputs("usage: lookups --port N --ids FIRST:LAST [--uncached FIRST:LAST --every N] [--rate N]\n"
          "               [--outstanding N] [--seconds SECONDS] [--connections N]\n"
          "               [--database CONNINFO [--pool N] [--null-ttl SECONDS]] [--announce]\n"
          "               [--password PASSWORD]\n",
          stderr);
    exit(2);
}

static void take_number(char name, const char *text)
{
    double number = atof(text);
    if (number <= 0)
        usage();
    switch (name) {
    case 'p':
        app.port = (int)number;
        return;
    case 'e':
        app.every = (unsigned)number;
        return;
    case 'r':
        app.rate = number;
        return;
    case 'o':
        app.outstanding = (unsigned)number;
        return;
    case 's':
        app.seconds = number;
        return;
    case 'c':
        app.link_count = (unsigned)number;
        return;
    case 'n':
        app.pool_size = (unsigned)number;
        return;
    default:
        app.null_ttl = (unsigned)number;
    }
}

static void take_option(int name, const char *value)
{
    if (name == '?')
        usage();
    else if (name == 'd')
        app.conninfo = value;
    else if (name == 'w')
        app.password = value;
    else if (name == 'a')
        app.announces = true;
    else if (name != 'i' && name != 'u')
        take_number((char)name, value);
    else if (!id_range_parse(value, name == 'i' ? &app.ids : &app.uncached))
        usage();
}

static void parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"port", required_argument, NULL, 'p'},     {"ids", required_argument, NULL, 'i'},
        {"uncached", required_argument, NULL, 'u'}, {"every", required_argument, NULL, 'e'},
        {"rate", required_argument, NULL, 'r'},     {"outstanding", required_argument, NULL, 'o'},
        {"seconds", required_argument, NULL, 's'},  {"connections", required_argument, NULL, 'c'},
        {"database", required_argument, NULL, 'd'}, {"pool", required_argument, NULL, 'n'},
        {"null-ttl", required_argument, NULL, 't'}, {"announce", no_argument, NULL, 'a'},
        {"password", required_argument, NULL, 'w'}, {NULL, 0, NULL, 0}};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1)
        take_option(name, optarg);
    if (optind != argc || !app.ids.last || app.link_count > LINKS_MOST || !app.every)
        usage();
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    begin();
    app.start = app.now = now_ns();
    uint64_t end = app.start + (uint64_t)(app.seconds * 1e9);
    run_until(end);
    double seconds = (double)(app.now - app.start) / 1e9;
    take_last_answers(end);
    report(seconds);
    finish();
    return 0;
}
