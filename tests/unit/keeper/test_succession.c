/* One side of a handover, whose other side the test plays. */
#include "keeper/succession.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fakes/config_file.h"
#include "keeper/told_entry.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct bench {
    uv_loop_t loop;
    struct outlet outlet;
    struct changes changes;
    struct entries entries;
    struct succession succession;
    int other;
    bool guards, knows;
    uint64_t asked; /* what knows() was asked for last */
    unsigned shared, let_in, alone, doubted;
    bool has_purged;
    bool gives_way; /* the predecessor may */
    unsigned yielded, stayed, left, lacking;
    uint64_t stands; /* until then */
};

static bool is_ready(void *arg)
{
    return ((struct bench *)arg)->guards;
}

static void share(void *arg)
{
    ((struct bench *)arg)->shared++;
}

static bool knows(void *arg, uint64_t time)
{
    struct bench *bench = arg;
    bench->asked = time;
    return bench->knows;
}

static void let_in(void *arg)
{
    ((struct bench *)arg)->let_in++;
}

static bool has_cache(void *arg, struct span cache)
{
    (void)arg;
    return span_is(cache, "cache");
}

static void doubt_cache(void *arg)
{
    struct bench *bench = arg;
    assert_int_equal(bench->let_in, 0);
    bench->doubted++;
}

static void stand_alone(void *arg, bool has_purged)
{
    struct bench *bench = arg;
    bench->alone++;
    bench->has_purged = has_purged;
}

static void limit(void *arg, uint64_t position)
{
    (void)arg;
    (void)position;
}

static void yield(void *arg)
{
    struct bench *bench = arg;
    bench->yielded++;
    succession_tell_lacking(&bench->succession, "items");
}

static void lacks(void *arg, struct span keyspace)
{
    struct bench *bench = arg;
    assert_int_equal(bench->let_in, 0);
    bench->lacking += span_is(keyspace, "items");
}

static bool give_way(void *arg)
{
    return ((struct bench *)arg)->gives_way;
}

static void stay(void *arg)
{
    ((struct bench *)arg)->stayed++;
}

static void leave(void *arg)
{
    ((struct bench *)arg)->left++;
}

static void stand(void *arg, uint64_t until)
{
    ((struct bench *)arg)->stands = until;
}

static void run(struct bench *bench)
{
    for (int i = 0; i < 10; i++)
        uv_run(&bench->loop, UV_RUN_NOWAIT);
}

static void bench_init(struct bench *bench)
{
    int pair[2], none;
    memset(bench, 0, sizeof *bench);
    uv_loop_init(&bench->loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    bench->other = pair[0];
    entries_init(&bench->entries, &bench->outlet, &bench->changes);
    succession_open(&bench->succession, &(struct succession_options){.loop = &bench->loop,
                                                                     .file = "/dev/null",
                                                                     .predecessor = pair[1],
                                                                     .sockets = &none,
                                                                     .entries = &bench->entries,
                                                                     .is_ready = is_ready,
                                                                     .share = share,
                                                                     .knows = knows,
                                                                     .lacks = lacks,
                                                                     .let_in = let_in,
                                                                     .has_cache = has_cache,
                                                                     .doubt_cache = doubt_cache,
                                                                     .stand_alone = stand_alone,
                                                                     .limit = limit,
                                                                     .yield = yield,
                                                                     .leave = leave,
                                                                     .give_way = give_way,
                                                                     .stay = stay,
                                                                     .stand = stand,
                                                                     .arg = bench});
}

static void bench_finish(struct bench *bench)
{
    succession_close(&bench->succession);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    entries_finish(&bench->entries);
}

static void say(struct bench *bench, char kind)
{
    const char frame[] = {kind, 0, 0, 0, 0};
    assert_int_equal(write(bench->other, frame, sizeof frame), sizeof frame);
    run(bench);
}

static void what_the_list_lacks_is_known_before_anybody_is_let_in(void **state)
{
    const char frame[] = {'k', 5, 0, 0, 0, 'i', 't', 'e', 'm', 's'};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.knows = true;
    assert_int_equal(write(bench.other, frame, sizeof frame), sizeof frame);
    say(&bench, 'y');
    assert_int_equal(bench.lacking, 1);
    assert_int_equal(bench.let_in, 1);
    close(bench.other);
    run(&bench);
    bench_finish(&bench);
}

static void say_text(struct bench *bench, char kind, const char *text)
{
    char frame[32] = {kind, (char)strlen(text)};
    memcpy(frame + 5, text, strlen(text));
    size_t length = 5 + strlen(text);
    assert_int_equal(write(bench->other, frame, length), length);
    run(bench);
}

static void what_is_said_of_another_cache_counts_for_nothing(void **state)
{
    static const struct {
        const char *first, *second, *purged; /* NULL: nothing is said */
        unsigned doubted;
        bool has_purged;
    } rows[] = {{"cache", "cache", "cache", 0, true},
                {"other", "other", "other", 1, false},
                {"cache", "", "cache", 1, true},
                {"", "cache", "other", 1, false},
                {"", "", NULL, 1, false},
                {NULL, NULL, "", 0, false},
                {NULL, NULL, NULL, 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench bench;
        bench_init(&bench);
        bench.knows = true;
        if (rows[i].first)
            say_text(&bench, 'c', rows[i].first);
        if (rows[i].second)
            say_text(&bench, 'c', rows[i].second);
        say(&bench, 'y');
        say_text(&bench, 'c', "other"); /* too late: the predecessor may go on to another cache */
        say(&bench, 'g');               /* an older program's */
        if (rows[i].purged)
            say_text(&bench, 'u', rows[i].purged);
        close(bench.other);
        run(&bench);
        assert_int_equal(bench.doubted, rows[i].doubted);
        assert_int_equal(bench.alone, 1);
        assert_true(bench.has_purged == rows[i].has_purged);
        bench_finish(&bench);
    }
}

static void nobody_is_let_in_before_what_was_confirmed_is_known(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    succession_go_on(&bench.succession);
    uint64_t before = clock_ms();
    say(&bench, 'y');
    assert_int_equal(bench.shared, 1);
    assert_true(bench.asked >= before);
    assert_int_equal(bench.let_in, 0);
    bench.knows = true;
    succession_go_on(&bench.succession);
    assert_int_equal(bench.let_in, 1);
    assert_int_equal(bench.alone, 0);
    close(bench.other);
    run(&bench);
    assert_int_equal(bench.alone, 1);
    assert_int_equal(bench.let_in, 1);
    bench_finish(&bench);
}

/* Whether it had given way or not, and did so by a word or by its death. */
static void nor_when_who_confirmed_it_is_no_more(void **state)
{
    (void)state;
    for (int gave_way = 0; gave_way < 2; gave_way++) {
        struct bench bench;
        bench_init(&bench);
        bench.guards = true;
        succession_go_on(&bench.succession);
        uint64_t before = clock_ms();
        if (gave_way)
            say(&bench, 'y');
        close(bench.other);
        run(&bench);
        assert_int_equal(bench.alone, 1); /* commits are its own to confirm */
        assert_true(bench.asked >= before);
        assert_int_equal(bench.let_in, 0);
        assert_true(succession_waits(&bench.succession));
        bench.knows = true;
        succession_go_on(&bench.succession);
        assert_int_equal(bench.let_in, 1);
        assert_false(succession_waits(&bench.succession));
        bench_finish(&bench);
    }
}

/* ---- how long a predecessor may reject ---- */

enum { LEASE_MS = 2000, PATIENCE_MS = 1000 };

static void say_at(struct bench *bench, char kind, uint64_t time)
{
    char frame[5 + sizeof time] = {kind, sizeof time};
    memcpy(frame + 5, &time, sizeof time);
    assert_int_equal(write(bench->other, frame, sizeof frame), sizeof frame);
    run(bench);
}

static void send_nothing(void *arg, struct key key, struct override entry)
{
    (void)arg;
    (void)key;
    (void)entry;
}

/* Whether such a frame was sent, since it was looked last; with this number, or with any for 0. */
static bool was_said(struct bench *bench, char kind, uint64_t number)
{
    char frame[5];
    bool found = false;
    run(bench);
    while (read(bench->other, frame, sizeof frame) == sizeof frame) {
        uint32_t length;
        uint64_t said = 0;
        memcpy(&length, frame + 1, sizeof length);
        char bytes[256];
        assert_true(length <= sizeof bytes);
        assert_int_equal(read(bench->other, bytes, length), length);
        if (length == sizeof said)
            memcpy(&said, bytes, sizeof said);
        found |= frame[0] == kind && (!number || said == number);
    }
    return found;
}

/* One that serves, and is asked for its sockets by the other. */
static void bench_init_predecessor(struct bench *bench)
{
    bench_init(bench);
    bench->succession.phase = SUCCESSION_SERVING;
    bench->stands = UINT64_MAX;
}

static void who_gave_way_rejects_for_a_while_after_what_was_answered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_predecessor(&bench);
    bench.gives_way = true;
    uint64_t before = clock_ms();
    say(&bench, 'r');
    assert_int_equal(bench.yielded, 1);
    assert_in_range(bench.stands, before + LEASE_MS, clock_ms() + LEASE_MS);
    assert_true(was_said(&bench, 'l', 0));
    say_at(&bench, 'h', before + 77);
    assert_int_equal(bench.stands, before + 77 + LEASE_MS);
    close(bench.other);
    run(&bench);
    assert_int_equal(bench.left, 1);
    assert_int_equal(bench.stands, 0);
    bench_finish(&bench);
}

static void who_gives_way_first_rejects_nothing_that_is_told_to_the_other(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_predecessor(&bench);
    say(&bench, 'r');
    assert_int_equal(bench.yielded, 0);
    assert_false(was_said(&bench, 'y', 0));
    bench.gives_way = true;
    succession_go_on(&bench.succession);
    assert_int_equal(bench.yielded, 1);
    char first[5];
    assert_int_equal(read(bench.other, first, sizeof first), sizeof first);
    assert_int_equal(first[0], 'k'); /* before the other may let anybody in */
    assert_int_equal(read(bench.other, first, sizeof first), strlen("items"));
    assert_true(was_said(&bench, 'y', 0));
    close(bench.other);
    run(&bench);
    assert_int_equal(bench.stayed, 0);
    bench_finish(&bench);
}

static void who_loses_the_next_one_before_stays(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_predecessor(&bench);
    say(&bench, 'r');
    close(bench.other);
    run(&bench);
    assert_int_equal(bench.yielded, 0);
    assert_int_equal(bench.stayed, 1);
    assert_true(bench.stands == UINT64_MAX);
    bench_finish(&bench);
}

/* One that hangs before it guards: what it does not read would grow for as long as it does. */
static void who_does_not_read_is_told_no_more_and_does_not_take_over(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_predecessor(&bench);
    bench.gives_way = true;
    bench.succession.unread_max = 1 << 20;
    bench.entries.remote = (struct entries_remote){send_nothing, NULL, false};
    while (channel_unsent(bench.succession.channel) <= 1 << 20) {
        assert_non_null(bench.entries.remote.send);
        succession_reached(&bench.succession, 4711);
        succession_go_on(&bench.succession);
    }
    succession_go_on(&bench.succession);
    assert_null(bench.entries.remote.send);
    size_t unsent = channel_unsent(bench.succession.channel);
    succession_go_on(&bench.succession);
    assert_int_equal(channel_unsent(bench.succession.channel), unsent);
    say(&bench, 'r');
    succession_end(&bench.succession);
    bool said = false;
    while (channel_unsent(bench.succession.channel) || !said)
        said |= was_said(&bench, 'd', 0);
    assert_int_equal(bench.yielded, 0);
    close(bench.other);
    run(&bench);
    assert_null(bench.succession.channel);
    bench_finish(&bench);
}

/* Else it would go on where another one serves by then. */
static void who_is_dismissed_ends_and_lets_nobody_in(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.guards = bench.knows = true;
    succession_go_on(&bench.succession);
    say(&bench, 'd');
    assert_int_equal(bench.left, 1);
    close(bench.other);
    run(&bench);
    succession_go_on(&bench.succession);
    assert_int_equal(bench.alone, 0);
    assert_int_equal(bench.let_in, 0);
    assert_true(succession_waits(&bench.succession));
    bench_finish(&bench);
}

/* There is no time for giving way. */
static void who_ends_with_one_that_waits_rejects_nothing_more(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_predecessor(&bench);
    succession_end(&bench.succession);
    assert_int_equal(bench.stands, 0);
    assert_true(was_said(&bench, 'y', 0));
    say_at(&bench, 'h', clock_ms());
    assert_int_equal(bench.stands, 0);
    close(bench.other);
    run(&bench);
    bench_finish(&bench);
}

/* An entry that the other does not say to have. */
static void owe_for_long(struct bench *bench)
{
    struct view view = {.generation = NULL};
    struct keyspace keyspace = {.name = NULL};
    struct config config = {.keyspaces = &keyspace, .keyspace_count = 1};
    view.config = &config;
    bench->entries.view = &view;
    entries_put(&bench->entries, key_make(0, span_of("k")),
                (struct override){.kind = OVERRIDE_HINT, .until = UINT64_MAX}, NULL, NULL);
    bench->entries.view = NULL;
    while (clock_ms() - entries_remote_owes(&bench->entries) <= PATIENCE_MS)
        usleep(1000);
}

static void who_took_over_waits_until_the_other_cannot_reject(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.knows = true;
    say(&bench, 'y');
    say_at(&bench, 'l', 4711);
    assert_true(was_said(&bench, 'h', 4711));
    owe_for_long(&bench);
    bench.succession.answered = clock_ms();
    succession_go_on(&bench.succession);
    assert_non_null(bench.succession.channel);
    say_at(&bench, 'l', 4712); /* it lives, but a worker of its hangs */
    assert_false(was_said(&bench, 'h', 0));
    bench.succession.answered = clock_ms() - LEASE_MS - 1;
    succession_go_on(&bench.succession);
    assert_null(bench.succession.channel);
    assert_int_equal(bench.alone, 1);
    assert_true(entries_remote_owes(&bench.entries) == 0);
    close(bench.other);
    bench_finish(&bench);
}

/* ---- entries that come from the other ---- */

/* A worker that is slow: what it was told waits here. */
struct worker {
    struct mailbox mailbox, keeper, *to;
    struct message *first, **last;
};

static void on_order(void *arg, struct message *message)
{
    struct worker *worker = arg;
    message->next = NULL;
    *worker->last = message;
    worker->last = &message->next;
}

static void on_receipt(void *arg, struct message *message)
{
    (void)arg;
    entries_take_back((struct override_message *)(void *)message);
}

static void obey_one(struct bench *bench, struct worker *worker)
{
    struct message *message = worker->first;
    worker->first = message->next;
    if (!worker->first)
        worker->last = &worker->first;
    mailbox_return(message);
    run(bench);
}

static void employ(struct bench *bench, struct worker *worker)
{
    *worker = (struct worker){.to = &worker->mailbox};
    worker->last = &worker->first;
    mailbox_init(&worker->mailbox, &bench->loop, on_order, worker);
    mailbox_init(&worker->keeper, &bench->loop, on_receipt, NULL);
    bench->outlet = (struct outlet){.sender = &worker->keeper, .to = &worker->to, .count = 1};
}

static void tell_of(struct bench *bench, const char *text)
{
    struct buffer bytes = {0};
    struct override hint = {.kind = OVERRIDE_HINT, .until = clock_ms() + 60000};
    told_entry_write(&bytes, key_make(0, span_of(text)), hint);
    char head[5] = {'e', (char)buffer_length(&bytes)};
    assert_int_equal(write(bench->other, head, sizeof head), sizeof head);
    assert_int_equal(write(bench->other, buffer_span(&bytes).at, buffer_length(&bytes)),
                     buffer_length(&bytes));
    buffer_finish(&bytes);
    run(bench);
}

static unsigned answers(struct bench *bench)
{
    unsigned count = 0;
    char frame[5];
    run(bench);
    while (read(bench->other, frame, sizeof frame) == sizeof frame)
        count += frame[0] == 'a';
    return count;
}

/* It takes each answer for that of the oldest that it has sent. */
static void the_other_is_answered_in_the_order_of_what_it_sent(void **state)
{
    struct bench bench;
    struct worker worker;
    struct view view = {.generation = NULL};
    struct config *config = config_from_text("cache: redis://127.0.0.1\n"
                                             "database: postgresql://app@db/shop\n"
                                             "sync: none\n"
                                             "keyspaces:\n"
                                             "  - {name: items, key: \"item:{id}\", table: items,"
                                             " value: v}\n");
    (void)state;
    bench_init(&bench);
    employ(&bench, &worker);
    view.config = config;
    bench.entries.view = &view;
    say(&bench, 'y');
    tell_of(&bench, "order:0"); /* which its file guards, but not ours */
    assert_int_equal(answers(&bench), 1);
    tell_of(&bench, "item:1");
    tell_of(&bench, "order:1");
    tell_of(&bench, "order:2");
    tell_of(&bench, "item:2");
    tell_of(&bench, "order:3");
    assert_int_equal(answers(&bench), 0);
    obey_one(&bench, &worker);
    assert_int_equal(answers(&bench), 3);
    obey_one(&bench, &worker);
    assert_int_equal(answers(&bench), 2);
    tell_of(&bench, "order:4");
    assert_int_equal(answers(&bench), 1);
    mailbox_close(&worker.mailbox);
    mailbox_close(&worker.keeper);
    close(bench.other);
    bench_finish(&bench);
    config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_list_lacks_is_known_before_anybody_is_let_in),
        cmocka_unit_test(what_is_said_of_another_cache_counts_for_nothing),
        cmocka_unit_test(nobody_is_let_in_before_what_was_confirmed_is_known),
        cmocka_unit_test(nor_when_who_confirmed_it_is_no_more),
        cmocka_unit_test(who_gave_way_rejects_for_a_while_after_what_was_answered),
        cmocka_unit_test(who_gives_way_first_rejects_nothing_that_is_told_to_the_other),
        cmocka_unit_test(who_loses_the_next_one_before_stays),
        cmocka_unit_test(who_does_not_read_is_told_no_more_and_does_not_take_over),
        cmocka_unit_test(who_is_dismissed_ends_and_lets_nobody_in),
        cmocka_unit_test(who_ends_with_one_that_waits_rejects_nothing_more),
        cmocka_unit_test(who_took_over_waits_until_the_other_cannot_reject),
        cmocka_unit_test(the_other_is_answered_in_the_order_of_what_it_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
