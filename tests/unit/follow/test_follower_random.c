/* Random histories of transactions, streamed and whole, with subtransactions that are rolled back,
 * beside a model that knows only what was committed, and what of that a probe has seen. At the end
 * the filter holds exactly that, and what subtransactions of streamed ones have deleted: not of all
 * the rollback is told.
 *
 *     NESTGUARD_SEED  repeats a run
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follower_bench.h"

#include <time.h>

enum {
    ROUNDS = 100,
    STEPS = 400,
    KEYS = 60,
    ACTORS = 5, /* transactions at a time */
    DEPTH = 4,  /* of subtransactions */
    EFFECTS_MAX = 4 * STEPS,
    CAPACITY = 4000
};

/* What a subtransaction has done to the number of rows with a key. */
struct effect {
    unsigned key;
    int difference;
    bool in_part; /* of a streamed transaction, and not its own */
    bool undone;  /* though nobody was told */
};

/* A subtransaction, and how much there was of its transaction when it began. */
struct part {
    uint32_t xid;
    size_t count, released_count, messages;
};

/* A transaction in progress, as the database knows it. */
struct actor {
    uint32_t xid; /* 0: none */
    bool streamed, started, committed;
    struct part parts[DEPTH]; /* the subtransactions that it is in; the first is itself */
    unsigned depth;
    struct effect effects[EFFECTS_MAX];
    size_t count;
    uint32_t released[EFFECTS_MAX]; /* parts that their parents have taken into themselves */
    size_t released_count;
    struct log_message *whole; /* the messages of one that comes whole */
    size_t messages;
};

/* A committed transaction that no probe has seen yet. */
struct unseen {
    uint32_t xid;
    int removed[KEYS];
};

struct world {
    struct bench bench;
    struct actor actors[ACTORS];
    int rows[KEYS];    /* committed */
    int removed[KEYS]; /* of that, by the unseen */
    int left[KEYS];    /* entries without a row that no probe takes out */
    struct unseen unseen[STEPS];
    size_t unseen_count;
    unsigned others; /* keys in the filter, so that it may lack room */
    uint32_t next_xid;
    uint64_t lsn;
    uint64_t events; /* changed and inserted, of what was committed */
    size_t committed, rolled_back;
};

static unsigned pick(unsigned below)
{
    return (unsigned)random() % below;
}

/* ---- messages ---- */

static void keep_message(struct actor *actor, struct log_message message)
{
    actor->whole = realloc(actor->whole, (actor->messages + 1) * sizeof *actor->whole);
    actor->whole[actor->messages++] = message;
}

/* In a block of its own, so that any other may come behind it. */
static void stream_message(struct actor *actor, struct log_message message)
{
    bool first = !actor->started;
    stream_start(actor->xid, first);
    if (first)
        describe_items();
    stream.writer = actor->parts[actor->depth].xid;
    must_take(message);
    stream_stop();
    actor->started = true;
}

static struct log_message row_message(char kind, unsigned key)
{
    char id[16];
    snprintf(id, sizeof id, "%u", key);
    return compose("cwchttn", kind, ITEM_TABLE, kind == 'I' ? 'N' : 'O', 3, "x", id);
}

static struct log_message move_message(unsigned from, unsigned to)
{
    char old[16], new[16];
    snprintf(old, sizeof old, "%u", from);
    snprintf(new, sizeof new, "%u", to);
    return compose("cwchttnchttn", 'U', ITEM_TABLE, 'O', 3, "x", old, 'N', 3, "x", new);
}

static void write_message(struct actor *actor, struct log_message message)
{
    if (actor->streamed)
        stream_message(actor, message);
    else
        keep_message(actor, message);
}

/* ---- what transactions do ---- */

static void add_effect(struct actor *actor, unsigned key, int difference)
{
    bool in_part = actor->streamed && actor->depth > 0;
    actor->effects[actor->count++] = (struct effect){key, difference, in_part, false};
}

/* Rows with a key that this transaction may delete: others' deletions are taken for locks. */
static int rows_for(const struct world *world, const struct actor *actor, unsigned key)
{
    int rows = world->rows[key];
    for (size_t a = 0; a < ACTORS; a++) {
        const struct actor *other = &world->actors[a];
        for (size_t i = 0; other->xid && i < other->count; i++)
            if (other->effects[i].key == key && !other->effects[i].undone &&
                (other == actor || other->effects[i].difference < 0))
                rows += other->effects[i].difference;
    }
    return rows;
}

static void change_row(struct world *world, struct actor *actor)
{
    unsigned key = pick(KEYS), other = (key + 1 + pick(KEYS - 1)) % KEYS;
    bool can_delete = rows_for(world, actor, key) > 0;
    if (!can_delete || pick(3) == 0) {
        add_effect(actor, key, 1);
        write_message(actor, row_message('I', key));
    } else if (pick(2)) {
        add_effect(actor, key, -1);
        write_message(actor, row_message('D', key));
    } else {
        add_effect(actor, other, 1);
        add_effect(actor, key, -1);
        write_message(actor, move_message(key, other));
    }
}

static void begin_part(struct world *world, struct actor *actor)
{
    if (actor->depth + 1 < DEPTH)
        actor->parts[++actor->depth] =
            (struct part){++world->next_xid, actor->count, actor->released_count, actor->messages};
}

/* Its effects are its parent's from here on, but its messages keep its id. */
static void release_part(struct actor *actor)
{
    if (actor->depth > 0)
        actor->released[actor->released_count++] = actor->parts[actor->depth--].xid;
}

/* Those that nobody was told of before stay undone. */
static void undo(struct actor *actor, const struct part *part, bool is_told)
{
    size_t kept = part->count;
    for (size_t i = part->count; i < actor->count; i++) {
        if (is_told && !actor->effects[i].undone)
            continue;
        actor->effects[kept] = actor->effects[i];
        actor->effects[kept++].undone = true;
    }
    actor->count = kept;
}

/* The server names each part whose end that is, those that were released into it before itself, or
 * forgets to. Of one that comes whole it sends only what stays. */
static void roll_back_part(struct actor *actor)
{
    const struct part *part = &actor->parts[actor->depth];
    bool is_told = !actor->started || pick(4);
    if (actor->depth == 0)
        return;
    if (actor->started && is_told) {
        for (size_t i = part->released_count; i < actor->released_count; i++)
            stream_abort(actor->xid, actor->released[i]);
        stream_abort(actor->xid, part->xid);
    }
    undo(actor, part, is_told);
    actor->released_count = part->released_count;
    actor->messages = part->messages;
    actor->depth--;
}

static void finish(struct actor *actor)
{
    free(actor->whole);
    actor->whole = NULL;
    actor->messages = actor->count = 0;
    actor->xid = 0;
}

static void send_whole(struct world *world, struct actor *actor)
{
    must_take(compose("cqqw", 'B', UINT64_C(900), UINT64_C(1), actor->xid));
    describe_items();
    for (size_t i = 0; i < actor->messages; i++)
        must_take(actor->whole[i]);
    commit(world->lsn);
}

/* ---- what probes see ---- */

static int compare_xids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* Text of a snapshot in which those that are in progress or unseen are not over. */
static void print_snapshot(const struct world *world, char *out, size_t size)
{
    uint32_t running[ACTORS + STEPS];
    size_t count = 0, used;
    for (size_t a = 0; a < ACTORS; a++)
        if (world->actors[a].xid && !world->actors[a].committed)
            running[count++] = world->actors[a].xid;
    for (size_t i = 0; i < world->unseen_count; i++)
        running[count++] = world->unseen[i].xid;
    qsort(running, count, sizeof *running, compare_xids);
    uint32_t xmax = world->next_xid + 1;
    used = (size_t)snprintf(out, size, "%u:%u:", count ? running[0] : xmax, xmax);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%u", i ? "," : "", running[i]);
}

static void see(struct world *world, size_t i)
{
    for (unsigned key = 0; key < KEYS; key++)
        world->removed[key] -= world->unseen[i].removed[key];
    world->unseen[i] = world->unseen[--world->unseen_count];
}

/* One in `share` stays unseen; 0: none. */
static void probe(struct world *world, unsigned share)
{
    char text_of_it[12 * (ACTORS + STEPS + 2)];
    for (size_t i = world->unseen_count; i-- > 0;)
        if (!share || pick(share))
            see(world, i);
    print_snapshot(world, text_of_it, sizeof text_of_it);
    world->bench.crowded = false;
    follower_vouch(world->bench.follower, text_of_it);
    uv_run(&world->bench.loop, UV_RUN_NOWAIT);
}

static bool is_left(const struct effect *effect)
{
    return effect->difference < 0 && effect->in_part;
}

static bool is_removed(const struct effect *effect)
{
    return effect->difference < 0 && !effect->in_part;
}

static void leave_unseen(struct world *world, struct actor *actor)
{
    struct unseen *unseen = &world->unseen[world->unseen_count++];
    actor->committed = true;
    *unseen = (struct unseen){.xid = actor->xid};
    for (size_t i = 0; i < actor->count; i++) {
        unseen->removed[actor->effects[i].key] += is_removed(&actor->effects[i]);
        world->removed[actor->effects[i].key] += is_removed(&actor->effects[i]);
    }
}

/* Where removals take the places, the stream waits for a probe. */
static void release_stream(struct world *world)
{
    while (stream.paused) {
        uv_run(&world->bench.loop, UV_RUN_NOWAIT);
        if (world->bench.crowded)
            probe(world, 0);
    }
}

static void carry_out(struct world *world, const struct effect *effect)
{
    if (!effect->undone)
        world->rows[effect->key] += effect->difference;
    world->left[effect->key] += effect->undone ? effect->difference > 0 : is_left(effect);
    world->events += effect->difference > 0 ? 2 : 1;
}

static void commit_actor(struct world *world, struct actor *actor)
{
    bool left = false;
    world->lsn += 100;
    for (size_t i = 0; i < actor->count; i++) {
        carry_out(world, &actor->effects[i]);
        left |= is_left(&actor->effects[i]);
    }
    world->events += left;
    if (!actor->streamed || actor->started)
        leave_unseen(world, actor);
    if (!actor->streamed)
        send_whole(world, actor);
    else if (actor->started)
        stream_commit(actor->xid, world->lsn);
    if (!actor->streamed || actor->started) {
        release_stream(world);
        assert_int_equal(world->bench.reached, world->lsn);
        world->committed++;
    }
    finish(actor);
}

static void roll_back_actor(struct world *world, struct actor *actor)
{
    if (actor->streamed && actor->started)
        stream_abort(actor->xid, actor->xid);
    release_stream(world);
    world->rolled_back++;
    finish(actor);
}

/* Nor is a key whose removal nobody has seen. */
static void check_nothing_is_denied(const struct world *world)
{
    int removed = 0;
    for (unsigned key = 0; key < KEYS; key++) {
        char text_of_key[24];
        snprintf(text_of_key, sizeof text_of_key, "item:%u", key);
        assert_true(world->rows[key] + world->removed[key] == 0 ||
                    has(&world->bench, ITEMS, text_of_key));
        removed += world->removed[key];
    }
    assert_int_equal(removals_held(&world->bench), removed);
}

static void begin_actor(struct world *world, struct actor *actor)
{
    memset(actor, 0, sizeof *actor);
    actor->xid = actor->parts[0].xid = ++world->next_xid;
    actor->streamed = pick(4) > 0;
}

static void step(struct world *world)
{
    struct actor *actor = &world->actors[pick(ACTORS)];
    unsigned what = pick(16);
    if (pick(10) == 0) {
        probe(world, pick(4));
        release_stream(world);
    }
    if (!actor->xid)
        begin_actor(world, actor);
    else if (what == 0)
        commit_actor(world, actor);
    else if (what == 1)
        roll_back_actor(world, actor);
    else if (what <= 3)
        begin_part(world, actor);
    else if (what == 4)
        release_part(actor);
    else if (what <= 6)
        roll_back_part(actor);
    else
        change_row(world, actor);
}

static uint64_t hash_of_other(const struct world *world, unsigned number)
{
    return filter_hash(&world->bench.generation->seed, &number, sizeof number);
}

/* Takes out what the model has, each entry once: then the filter is empty. */
static void check_the_end(struct world *world)
{
    struct filter *filter = world->bench.generation->filters[ITEMS];
    for (unsigned i = 0; i < world->others; i++)
        assert_int_equal(filter_remove(filter, hash_of_other(world, i)), 0);
    for (unsigned key = 0; key < KEYS; key++) {
        char text_of_key[24];
        snprintf(text_of_key, sizeof text_of_key, "item:%u", key);
        uint64_t hash =
            filter_hash(&world->bench.generation->seed, text_of_key, strlen(text_of_key));
        int entries = world->rows[key] + world->left[key];
        assert_int_equal(has(&world->bench, ITEMS, text_of_key), entries > 0);
        for (int i = 0; i < entries; i++)
            assert_int_equal(filter_remove(filter, hash), 0);
        assert_false(has(&world->bench, ITEMS, text_of_key));
    }
    assert_int_equal(filter_stats(filter).keys, 0);
}

static void fill(struct world *world)
{
    static const unsigned rooms[] = {0, 1, 40, CAPACITY};
    world->others = CAPACITY - rooms[pick(4)];
    for (unsigned i = 0; i < world->others; i++)
        assert_int_equal(
            filter_insert(world->bench.generation->filters[ITEMS], hash_of_other(world, i)), 0);
}

static void play_one(struct world *world)
{
    memset(world, 0, sizeof *world);
    bench_init_with(&world->bench, CAPACITY);
    fill(world);
    world->next_xid = 1000;
    world->lsn = 1000;
    for (unsigned i = 0; i < STEPS; i++) {
        step(world);
        check_nothing_is_denied(world);
        assert_int_equal(world->bench.events, world->events);
    }
    for (size_t a = 0; a < ACTORS; a++)
        if (world->actors[a].xid)
            roll_back_actor(world, &world->actors[a]);
    assert_int_equal(follower_counts(world->bench.follower).transactions, world->committed);
    probe(world, 0);
    check_the_end(world);
    bench_finish(&world->bench);
}

static void the_filter_ends_as_one_that_saw_only_what_was_committed(void **state)
{
    static struct world world;
    const char *given = getenv("NESTGUARD_SEED");
    unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    size_t committed = 0, rolled_back = 0;
    (void)state;
    print_message("NESTGUARD_SEED=%u\n", seed);
    srandom(seed);
    for (unsigned i = 0; i < ROUNDS; i++) {
        play_one(&world);
        committed += world.committed;
        rolled_back += world.rolled_back;
    }
    print_message("%zu committed, %zu rolled back\n", committed, rolled_back);
    assert_true(committed > ROUNDS && rolled_back > ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_filter_ends_as_one_that_saw_only_what_was_committed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
