/* A push is its sender's until push_end() or push_break(), and its thread's while that works; the
 * last of both frees it. Keys that are told one by one meanwhile would be missing in a list that
 * was made before: they are kept as hashes by the seed of the filter to come, and put into it
 * before it is in force.
 */
#include "keeper/parts/pushes.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "base/unnamed_file.h"
#include "keeper/parts/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 256 * 1024,  /* so much is written at once; twice that is held */
    TOLD_MOST = 1 << 20, /* keys told one by one: with more than half of it different, nothing is
                            rejected by what comes of the list */
    TEXT_MAX = 700
};

/* Hashes, some of them twice. */
struct told {
    uint64_t *at;
    size_t count, room;
    bool too_many;
};

struct push {
    uv_work_t work;
    struct pushes *pushes;
    struct push *next;
    struct shared_config *config; /* by which it began; one reference */
    size_t keyspace;
    int fd;
    struct filter_seed seed;
    struct told told;
    size_t room;                    /* bytes that the filter may take; 0: no bound */
    uint64_t began, bytes;          /* clock_ms(); sent so far */
    struct buffer gathered;         /* not given to the thread yet */
    bool works, has_ended, is_gone; /* a thread has it; all was sent; the sender has left */
    void (*ready)(void *arg);       /* NULL: nobody waits */
    void *ready_arg;
    void (*done)(void *arg, const struct push_result *result);
    void *done_arg;
    struct publishing_wait wait; /* for every worker to have the keys */
    /* The thread's, while it works. */
    struct buffer writing;
    int failed; /* a negative errno of writing */
    struct filter *filter;
    struct push_result result;
    char why[TEXT_MAX];
};

/* ---- keys told one by one ---- */

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static void drop_doubles(struct told *told)
{
    size_t kept = 0;
    qsort(told->at, told->count, sizeof *told->at, compare);
    for (size_t i = 0; i < told->count; i++)
        if (!kept || told->at[i] != told->at[kept - 1])
            told->at[kept++] = told->at[i];
    told->count = kept;
}

/* The same keys are told again and again, so that doubles make room. */
static void tell(struct told *told, uint64_t hash)
{
    if (told->count == told->room && told->room < TOLD_MOST) {
        told->room = told->room ? 2 * told->room : 64;
        told->at = xrealloc(told->at, told->room * sizeof *told->at);
    } else if (told->count == told->room && !told->too_many) {
        drop_doubles(told);
        told->too_many = told->count > TOLD_MOST / 2;
    }
    if (!told->too_many)
        told->at[told->count++] = hash;
}

void pushes_know(struct pushes *pushes, struct key key)
{
    for (struct push *push = pushes->first; push; push = push->next)
        if (push->keyspace == (size_t)key.keyspace)
            tell(&push->told, filter_hash(&push->seed, key.text.at, key.text.length));
}

/* Nothing is forgotten: without a place for one of them nothing is rejected. */
static void give_told(const struct told *told, struct key_set *set)
{
    set->lacks = told->too_many ? key_set_full : NULL;
    for (size_t i = 0; i < told->count && !set->lacks; i++)
        if (!filter_contains(set->filter, told->at[i]) && filter_insert(set->filter, told->at[i]))
            set->lacks = key_set_full;
}

/* ---- on the thread ---- */

static void write_piece(struct push *push)
{
    struct span left = buffer_span(&push->writing);
    while (left.length && !push->failed) {
        ssize_t put = write(push->fd, left.at, left.length);
        if (put < 0 && errno != EINTR)
            push->failed = -errno;
        if (put > 0)
            left = (struct span){left.at + put, left.length - (size_t)put};
    }
    buffer_clear(&push->writing);
    if (push->failed && ftruncate(push->fd, 0)) /* what is of no use need not take place */
        push->failed = -errno;
}

static void on_write(uv_work_t *work)
{
    write_piece(work->data);
}

static void fail(struct push *push, enum push_outcome outcome, const char *why)
{
    push->result.outcome = outcome;
    snprintf(push->why, sizeof push->why, "%s", why);
}

static const char too_large[] =
    "the filter of its keys would be larger than max_filter_memory has room for";

static void read_list(struct push *push)
{
    const struct config *config = push->config->config;
    const struct keyspace *keyspace = &config->keyspaces[push->keyspace];
    struct key_file_options options = {
        .key = &keyspace->key,
        .filter = {.kind = keyspace->filter,
                   .false_positive_rate = keyspace->false_positive_rate,
                   .max_bytes = push->room},
        .stop = &push->pushes->stop};
    struct key_file_error error;
    int status = key_file_read_lines(&push->filter, push->fd, &push->seed, &options,
                                     &push->result.lines, &error);
    if (status == -E2BIG)
        fail(push, PUSH_TOO_LARGE, too_large);
    else if (status == -EINVAL || status == -EMSGSIZE)
        fail(push, PUSH_WRONG, error.text);
    else if (status)
        fail(push, PUSH_FAILED, error.text);
}

static void on_read(uv_work_t *work)
{
    struct push *push = work->data;
    char text[TEXT_MAX];
    write_piece(push);
    if (!push->failed) {
        read_list(push);
        return;
    }
    snprintf(text, sizeof text, "its temporary file could not be written ($TMPDIR or /tmp): %s",
             strerror(-push->failed));
    fail(push, PUSH_FAILED, text);
}

/* ---- on the loop ---- */

static void leave_list(struct push *push)
{
    struct push **at = &push->pushes->first;
    while (*at && *at != push)
        at = &(*at)->next;
    if (*at)
        *at = push->next;
}

static void destroy(struct push *push)
{
    close(push->fd);
    filter_destroy(push->filter);
    buffer_finish(&push->gathered);
    buffer_finish(&push->writing);
    free(push->told.at);
    shared_config_release(push->config);
    free(push);
}

static const struct keyspace *keyspace_of(const struct push *push)
{
    return &publishing_config(push->pushes->options.publishing)->keyspaces[push->keyspace];
}

static void refuse(struct push *push, const char *why)
{
    const struct pushes_options *options = &push->pushes->options;
    char text[TEXT_MAX + 100];
    if (atomic_load(&push->pushes->stop) || keyspace_of(push)->retired)
        return;
    snprintf(text, sizeof text, "what was pushed is refused: %s", why);
    log_warning("keyspace %s: %s%s", keyspace_of(push)->name, text,
                options->publishing->sets[push->keyspace] ? "; the keys before stay in force"
                                                          : "; nothing is rejected");
    options->refused(options->arg, push->keyspace, text);
}

/* Others may have come into force while the list was read. */
static bool has_room(const struct push *push)
{
    size_t room = publishing_room(push->pushes->options.publishing, push->keyspace);
    return !room || filter_stats(push->filter).bytes <= room;
}

static bool may_be_taken(struct push *push)
{
    const struct key_set *before = push->pushes->options.publishing->sets[push->keyspace];
    push->result.keys = push->filter ? filter_stats(push->filter).keys : 0;
    if (push->result.outcome != PUSH_TAKEN)
        return false;
    if (atomic_load(&push->pushes->stop))
        fail(push, PUSH_FAILED, "the guard is ending");
    else if (keyspace_of(push)->retired)
        fail(push, PUSH_TOO_FEW, "the keyspace was removed or changed meanwhile");
    else if (!source_has_enough(keyspace_of(push), push->result.keys, before, push->why,
                                sizeof push->why))
        push->result.outcome = PUSH_TOO_FEW;
    else if (!has_room(push))
        fail(push, PUSH_TOO_LARGE, too_large);
    return push->result.outcome == PUSH_TAKEN;
}

static void take(struct push *push)
{
    const struct pushes_options *options = &push->pushes->options;
    struct key_set *set = key_set_create(push->filter, push->seed);
    push->filter = NULL;
    give_told(&push->told, set);
    log_info("keyspace %s: %llu keys taken, which were pushed in %.1f s", keyspace_of(push)->name,
             (unsigned long long)push->result.keys, (double)(clock_ms() - push->began) / 1000);
    options->taken(options->arg, push->keyspace, set);
    push->result.generation = options->publishing->sets_given;
}

static void finish(struct publishing_wait *wait)
{
    struct push *push = container_of(wait, struct push, wait);
    push->result.why = push->why;
    push->done(push->done_arg, &push->result);
    destroy(push);
}

static void on_list_read(uv_work_t *work, int status)
{
    struct push *push = work->data;
    (void)status; /* nobody cancels it */
    leave_list(push);
    if (may_be_taken(push))
        take(push);
    else
        refuse(push, push->why);
    push->wait.done = finish;
    publishing_await(push->pushes->options.publishing, &push->wait);
}

static void on_written(uv_work_t *work, int status);

/* libuv refuses no work that has a function for its end. */
static void give_to_thread(struct push *push)
{
    struct buffer empty = push->writing;
    push->writing = push->gathered;
    push->gathered = empty;
    push->works = true;
    push->room = publishing_room(push->pushes->options.publishing, push->keyspace);
    if (push->has_ended)
        uv_queue_work(push->pushes->options.loop, &push->work, on_read, on_list_read);
    else
        uv_queue_work(push->pushes->options.loop, &push->work, on_write, on_written);
}

static void on_written(uv_work_t *work, int status)
{
    struct push *push = work->data;
    void (*ready)(void *arg) = push->ready;
    (void)status;
    push->works = false;
    push->ready = NULL;
    if (push->is_gone) {
        destroy(push);
        return;
    }
    if (push->has_ended || buffer_length(&push->gathered) >= PIECE)
        give_to_thread(push);
    if (ready)
        ready(push->ready_arg);
}

bool push_take(struct push *push, struct span bytes, void (*ready)(void *arg), void *arg)
{
    push->bytes += bytes.length;
    buffer_append(&push->gathered, bytes.at, bytes.length);
    if (buffer_length(&push->gathered) < PIECE)
        return true;
    if (push->works) {
        push->ready = ready;
        push->ready_arg = arg;
        return false;
    }
    give_to_thread(push);
    return true;
}

void push_end(struct push *push, void (*done)(void *arg, const struct push_result *result),
              void *arg)
{
    push->has_ended = true;
    push->done = done;
    push->done_arg = arg;
    if (!push->works)
        give_to_thread(push);
}

void push_break(struct push *push)
{
    char why[TEXT_MAX];
    snprintf(why, sizeof why, "its sender broke off after %llu bytes",
             (unsigned long long)push->bytes);
    leave_list(push);
    refuse(push, why);
    push->is_gone = true;
    push->ready = NULL;
    if (!push->works)
        destroy(push);
}

static bool is_under_way(const struct pushes *pushes, size_t keyspace)
{
    for (const struct push *push = pushes->first; push; push = push->next)
        if (push->keyspace == keyspace)
            return true;
    return false;
}

int pushes_begin(struct pushes *pushes, size_t keyspace, struct push **out)
{
    struct filter_seed seed;
    if (atomic_load(&pushes->stop))
        return -ESHUTDOWN;
    if (is_under_way(pushes, keyspace))
        return -EALREADY;
    int status = filter_seed_random(&seed);
    int fd = status ? status : unnamed_file_create();
    if (fd < 0)
        return fd;
    struct push *push = xcalloc(1, sizeof *push);
    *push = (struct push){.work.data = push,
                          .pushes = pushes,
                          .next = pushes->first,
                          .config = pushes->options.publishing->shared,
                          .keyspace = keyspace,
                          .fd = fd,
                          .seed = seed,
                          .began = clock_ms()};
    push->config->references++;
    pushes->first = *out = push;
    log_info("keyspace %s: keys are being pushed", keyspace_of(push)->name);
    return 0;
}

void pushes_open(struct pushes *pushes, const struct pushes_options *options)
{
    *pushes = (struct pushes){.options = *options};
}

void pushes_end(struct pushes *pushes)
{
    atomic_store(&pushes->stop, true);
}
