/* Loads in any order of events, against a model of the rows: no request is lost or answered twice,
 * none is told what was not so when it asked or since, none is told of a failure that was not its
 * own, the way of large rows is never fuller than it may be, nor stands still, and nothing that was
 * read before a command which cleared the cache gets there behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "database/rows_statements.h"
#include "loads_bench.h"

enum { KEYS = 6, ASKED = 60, CLIENTS = 4, CLEARINGS = 3, STEPS = 400, SEEDS = 300 };

enum { LANE_BYTES = 3000000, TIMEOUT_MS = 1000 * 1000 }; /* nobody runs out of time by itself */

/* Of the last key not even one fits. */
static const int sizes[KEYS] = {1, 1, 1, 1100000, 2000000, 5000000};

/* Each third version of a row is that there is none. */
struct row {
    int version, told;   /* by the log: not before it can be seen */
    int timeouts, downs; /* of queries: their own */
};

/* And how things were when it was asked. */
struct question {
    struct asked asked;
    int key;
    int told, version;
    int timeouts, downs, checks;
    bool was_known; /* to be absent */
    const _Atomic bool *gone;
    bool is_seen;
};

/* The versions of all rows when it was asked for; of_loads NULL: there is none. */
struct clearing {
    struct loads_clearing *of_loads;
    bool begun;
    int versions[KEYS];
};

static struct run {
    unsigned seed;
    struct bench bench;
    struct row_lane lane;
    struct row rows[KEYS];
    struct question questions[ASKED];
    int count;
    int checks; /* of times, when all that was asked before was overdue */
    /* Of each query without an answer: the version of its row when it was sent. */
    int born[FAKE_QUERIES];
    size_t known;
    size_t fills; /* on their way, and looked at */
    _Atomic bool gone[ASKED + CLIENTS];
    int clients[CLIENTS], came; /* who is there: numbers of `gone`; how many ever were */
    bool is_head_wanted;        /* of the lane, when it was looked at last */
    struct clearing clearings[CLEARINGS];
} run;

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("seed %u: ", run.seed);                                                    \
            fail_msg(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)

static bool is_there(int version)
{
    return version % 3 != 0;
}

static int up_to(int most)
{
    return rand() % (most + 1);
}

/* ---- steps ---- */

static void ask_for(int key)
{
    if (run.count == ASKED)
        return;
    struct question *question = &run.questions[run.count++];
    const struct row *row = &run.rows[key];
    int client = run.clients[up_to(CLIENTS - 1)], known = COUNTED(&run.bench, known_absent);
    char text[20];
    *question = (struct question){.key = key,
                                  .told = row->told,
                                  .version = row->version,
                                  .timeouts = row->timeouts,
                                  .downs = row->downs,
                                  .checks = run.checks,
                                  .gone = &run.gone[client]};
    run.bench.client = question->gone;
    run.bench.origin = (uint64_t)client % 2;
    run.bench.gone = question->gone;
    snprintf(text, sizeof text, "item:%d", key);
    ask(&run.bench, &question->asked, text);
    question->was_known = COUNTED(&run.bench, known_absent) > known;
}

static void client_goes(void)
{
    int *client = &run.clients[up_to(CLIENTS - 1)];
    if (run.came == ASKED + CLIENTS)
        return;
    run.gone[*client] = true;
    *client = run.came++;
}

static void log_tells(int key)
{
    char text[20];
    snprintf(text, sizeof text, "item:%d", key);
    run.rows[key].told = run.rows[key].version;
    loads_changed(run.bench.loads, key_make(ITEMS, span_of(text)));
}

/* Late enough for all, or for nobody. */
static void check_time(bool late)
{
    run.checks += late;
    run.is_head_wanted = false;
    loads_check_time(run.bench.loads, clock_ms() + (late ? 2 * TIMEOUT_MS : 0));
    MUST(!run.lane.waiting || run.is_head_wanted, "one that nobody wants is waited for");
}

static void answer_by_version(size_t statement, int key, int version)
{
    char text[20], value[20], bytes[20];
    snprintf(text, sizeof text, "%d", key);
    snprintf(value, sizeof value, "%d:%d", key, version);
    snprintf(bytes, sizeof bytes, "%d", sizes[key]);
    if (!is_there(version))
        fake_rows(FAKE_TEXT, NULL, 0, 2);
    else if (statement == STATEMENT_CONFIRM)
        fake_row(FAKE_TEXT, (const char *[]){NULL, text}, 2);
    else if (statement == STATEMENT_LOAD && sizes[key] > ROW_SMALL)
        fake_large_row(text, bytes);
    else
        fake_row(FAKE_TEXT, (const char *[]){value, text}, 2);
}

/* The oldest query's, which saw its row as it was at any time since it was sent. */
static void database_answers(bool may_fail)
{
    size_t statement = fake_pool.queries[0].statement;
    int key = atoi(fake_pool.queries[0].values[0]), born = run.born[0];
    struct row *row = &run.rows[key];
    run.known--;
    memmove(run.born, run.born + 1, run.known * sizeof *run.born);
    int how = may_fail ? rand() % 10 : 9;
    row->timeouts += how == 0;
    row->downs += how == 1;
    if (how == 0)
        fake_outcome(PG_TIMEOUT);
    else if (how == 1)
        fake_outcome(PG_DOWN);
    else if (how < 4)
        fake_answer(&(struct pg_answer){.outcome = PG_TIMEOUT, .early = true});
    else
        answer_by_version(statement, key, born + up_to(row->version - born));
}

static void cache_answers(void)
{
    run.fills--;
    fill_ends(rand() % 2 ? REDIS_DONE : REDIS_DOWN);
}

static void on_begin(void *arg)
{
    ((struct clearing *)arg)->begun = true;
}

static void begin_clearing(struct clearing *clearing)
{
    for (int i = 0; i < KEYS; i++)
        clearing->versions[i] = run.rows[i].version;
    clearing->begun = false;
    clearing->of_loads =
        loads_begin_clearing(run.bench.loads, on_begin, clearing, &clearing->begun);
}

/* Done, it tells like the log of what had changed before. */
static void end_clearing(struct clearing *clearing, bool done)
{
    for (int i = 0; i < KEYS && done; i++)
        if (run.rows[i].told < clearing->versions[i])
            run.rows[i].told = clearing->versions[i];
    if (done)
        loads_all_changed(run.bench.loads);
    loads_end_clearing(run.bench.loads, clearing->of_loads);
    clearing->of_loads = NULL;
}

static void clear(void)
{
    struct clearing *clearing = &run.clearings[up_to(CLEARINGS - 1)];
    if (!clearing->of_loads)
        begin_clearing(clearing);
    else if (clearing->begun)
        end_clearing(clearing, rand() % 2);
}

static bool end_first_clearing(void)
{
    for (int i = 0; i < CLEARINGS; i++) {
        if (!run.clearings[i].of_loads || !run.clearings[i].begun)
            continue;
        end_clearing(&run.clearings[i], false);
        return true;
    }
    return false;
}

static void one_step(void)
{
    int key = up_to(KEYS - 1);
    int kind = rand() % 22;
    if (kind < 5)
        ask_for(key);
    else if (kind < 7)
        run.rows[key].version++;
    else if (kind < 9)
        log_tells(key);
    else if (kind < 10)
        check_time(rand() % 3 == 0);
    else if (kind < 11)
        use_view(&run.bench, rand() % 2 ? KEYSPACE_GUARDING : KEYSPACE_PASSING, rand() % 2);
    else if (kind < 12)
        client_goes();
    else if (kind < 14 && fake_redis.count)
        cache_answers();
    else if (kind >= 20)
        clear();
    else if (fake_pool.count)
        database_answers(true);
}

/* ---- what must hold behind each ---- */

/* A row: no version before the one that the log had told of when it was asked. That there is none:
 * at some time since it was asked, unless that was remembered, which is as old as the log. */
static void must_be_so(const struct question *question)
{
    const struct row *row = &run.rows[question->key];
    int from = question->was_known ? question->told : question->version, key, version;
    switch (question->asked.outcome) {
    case LOAD_ROW:
        MUST(sscanf(question->asked.value, "%d:%d", &key, &version) == 2, "no value of a row");
        MUST(key == question->key && is_there(version), "another row's value");
        MUST(version >= question->told && version <= row->version, "a value of another time");
        return;
    case LOAD_ABSENT:
        while (from <= row->version && is_there(from))
            from++;
        MUST(from <= row->version, "absent, and was there all the time");
        return;
    case LOAD_TIMEOUT:
        MUST(*question->gone || row->timeouts > question->timeouts || run.checks > question->checks,
             "a timeout that was another's");
        return;
    case LOAD_BUSY:
        MUST(*question->gone || run.checks > question->checks, "busy before its time");
        return;
    case LOAD_DOWN:
        MUST(row->downs > question->downs, "down, and was not");
        return;
    default:
        MUST(false, "outcome %d", (int)question->asked.outcome);
    }
}

static void look_at_answers(void)
{
    uv_run(&run.bench.loop, UV_RUN_NOWAIT);
    for (int i = 0; i < run.count; i++) {
        struct question *question = &run.questions[i];
        MUST(question->asked.answers <= 1, "request %d got two answers", i);
        if (!question->asked.answers || question->is_seen)
            continue;
        question->is_seen = true;
        must_be_so(question);
    }
}

static void look_at_lane(void)
{
    size_t inside = 0, taken = 0;
    for (size_t i = 0; i < fake_pool.count; i++) {
        if (fake_pool.queries[i].statement != STATEMENT_LOAD_LARGE)
            continue;
        inside++;
        taken += (size_t)sizes[atoi(fake_pool.queries[i].values[0])];
    }
    MUST(inside == run.lane.inside && taken == run.lane.taken, "what is read is not in the lane");
    MUST(taken <= LANE_BYTES || inside == 1, "%zu large rows of %zu bytes at once", inside, taken);
    MUST(inside || !run.lane.waiting, "who waits waits for nobody");
}

/* What is known to have changed is not cached any more; and behind a command that clears all,
 * nothing is on its way before its end. */
static void look_at_fills(void)
{
    int key, version;
    for (int i = 0; i < CLEARINGS; i++)
        MUST(!run.clearings[i].of_loads || !run.clearings[i].begun || !fake_redis.count,
             "a fill and a clearing at once");
    for (; run.fills < fake_redis.count; run.fills++) {
        const char *value = fake_redis.calls[run.fills].value;
        MUST(sscanf(value, "%d:%d", &key, &version) == 2, "no value of a row is cached");
        MUST(version >= run.rows[key].told, "an old value is cached");
    }
}

static void look(void)
{
    for (; run.known < fake_pool.count; run.known++) {
        int key = atoi(fake_pool.queries[run.known].values[0]);
        run.born[run.known] = run.rows[key].version;
    }
    look_at_answers();
    look_at_lane();
    look_at_fills();
}

/* ---- runs ---- */

static bool wants(const void *load)
{
    run.is_head_wanted = loads_wants(load);
    return run.is_head_wanted;
}

static void begin(unsigned seed)
{
    run = (struct run){.seed = seed};
    srand(seed);
    bench_init(&run.bench, "");
    run.bench.shared->config->load_timeout_ms = TIMEOUT_MS;
    run.lane = lane_of(&run.bench);
    run.lane.most = LANE_BYTES;
    run.lane.wants = wants;
    run.bench.rows.lane = &run.lane;
    while (run.came < CLIENTS) {
        run.clients[run.came] = run.came;
        run.came++;
    }
}

static void end(void)
{
    while (end_first_clearing())
        look();
    while (fake_pool.count || fake_redis.count) {
        if (fake_pool.count)
            database_answers(false);
        else
            cache_answers();
        look();
        while (end_first_clearing())
            look();
    }
    for (int i = 0; i < run.count; i++)
        MUST(run.questions[i].is_seen, "request %d got no answer", i);
    for (int i = 0; i < CLEARINGS; i++)
        MUST(!run.clearings[i].of_loads, "a clearing that never began");
    MUST(run.lane.taken + run.lane.waiting + run.lane.inside == 0, "somebody is left in the lane");
    bench_finish(&run.bench);
}

static void every_request_is_answered_once_and_truly_whatever_the_order(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        for (int step = 0; step < STEPS; step++) {
            one_step();
            look();
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_is_answered_once_and_truly_whatever_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
