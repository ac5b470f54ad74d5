/* A look has all that its thread needs: a reference of the configuration keeps path and template.
 */
#include "keeper/parts/sources.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 1000, OFTEN_MS = 100, TEXT_MAX = 700 };

struct source {
    struct key_file_state seen; /* at the last look; zeroed: there was no file */
    uint64_t since;             /* clock_ms(): from then on it was seen so */
    struct key_file_state done; /* what was taken or refused last */
    uint64_t done_for;          /* the wish that it was read for (sources.wanted); 0: none */
    bool taken;                 /* it was */
    int failed;                 /* a negative errno that was told of: it could not be looked at */
};

/* One look at one file; the thread has it until on_looked(). */
struct source_look {
    uv_work_t work;
    struct sources *sources;
    struct shared_config *config; /* one reference */
    size_t keyspace;
    struct source source; /* as it was; then as it is */
    uint64_t wanted;      /* sources.wanted when it began */
    uint64_t all_wanted;  /* sources.all_wanted, likewise */
    size_t room;          /* bytes that the filter may take; 0: no bound */
    uint64_t keys;        /* that are in force */
    bool has_keys;
    struct key_set *set; /* what came of it; NULL: nothing new */
    bool is_back;        /* as it was taken, after it could not be looked at */
    char refusal[TEXT_MAX];
};

static const struct keyspace *keyspace_of(const struct source_look *look)
{
    return &look->config->config->keyspaces[look->keyspace];
}

/* ---- on the thread ---- */

/* At a start, what is old already has settled. Later on that says nothing that a clock which is
 * another's, or was set, could not say of half a file. */
static bool has_settled(const struct source_look *look, bool is_first, uint64_t now)
{
    uint64_t settle = keyspace_of(look)->settle_ms;
    if (!is_first)
        return now - look->source.since >= settle;
    const struct timespec *written = &look->source.seen.changed;
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    double age = (double)(wall.tv_sec - written->tv_sec) * 1000 +
                 (double)(wall.tv_nsec - written->tv_nsec) / 1e6;
    return age >= (double)settle;
}

__attribute__((format(printf, 2, 3))) static void refuse(struct source_look *look,
                                                         const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(look->refusal, sizeof look->refusal, format, list);
    va_end(list);
}

static bool has_enough(const struct keyspace *keyspace, uint64_t keys, const uint64_t *before,
                       char *why, size_t size)
{
    double least = before ? (1 - keyspace->max_shrink) * (double)*before : 0;
    if (keys < keyspace->min_keys)
        snprintf(why, size, "it has %llu keys, fewer than min_keys (%u)", (unsigned long long)keys,
                 keyspace->min_keys);
    else if (before && (double)keys < least)
        snprintf(why, size,
                 "it has %llu keys, and there were %llu: more are missing than max_shrink allows",
                 (unsigned long long)keys, (unsigned long long)*before);
    else
        return true;
    return false;
}

bool source_has_enough(const struct keyspace *keyspace, uint64_t keys, const struct key_set *before,
                       char *why, size_t size)
{
    return has_enough(keyspace, keys, before ? &before->listed : NULL, why, size);
}

static void take(struct source_look *look, struct filter *filter, struct filter_seed seed)
{
    look->set = key_set_create(filter, seed);
    look->source.taken = true;
}

/* To read it again would forget the keys that were told since, which are in the filter alone: also
 * for a filter of another kind or rate, which the next file gets. */
static bool need_not_be_read(const struct source_look *look)
{
    const struct source *source = &look->source;
    return source->taken ? source->done_for >= look->all_wanted : source->done_for == look->wanted;
}

static void read_file(struct source_look *look)
{
    const struct keyspace *keyspace = keyspace_of(look);
    struct key_file_options options = {
        .path = keyspace_source_path(keyspace),
        .key = &keyspace->key,
        .filter = {.kind = keyspace->filter,
                   .false_positive_rate = keyspace->false_positive_rate,
                   .max_bytes = look->room},
        .stop = &look->sources->stop};
    struct key_file_error error;
    struct filter *filter;
    struct filter_seed seed;
    int status = key_file_read(&filter, &seed, &look->source.seen, &options, &error);
    if (status == -EAGAIN || status == -ECANCELED)
        return;
    look->source.done = look->source.seen;
    look->source.done_for = look->wanted;
    look->source.taken = false;
    if (status)
        refuse(look, "%s", error.text);
    else if (has_enough(keyspace, filter_stats(filter).keys, look->has_keys ? &look->keys : NULL,
                        look->refusal, sizeof look->refusal))
        take(look, filter, seed);
    else
        filter_destroy(filter);
}

/* There is no file, or none that can be looked at: that is told once. */
static void note_failure(struct source_look *look, int status)
{
    if (look->source.failed != status)
        refuse(look, "%s", status == -EINVAL ? "it is no regular file" : strerror(-status));
    look->source.failed = status;
    if (!look->source.taken)
        look->source.done_for = 0;
}

static void on_thread(uv_work_t *work)
{
    struct source_look *look = work->data;
    struct source *source = &look->source;
    struct key_file_state state;
    uint64_t now = clock_ms();
    int status = key_file_look(keyspace_source_path(keyspace_of(look)), &state);
    bool is_first = !source->since;
    if (!key_file_is_same(&state, &source->seen) || is_first) {
        source->seen = state;
        source->since = now;
    }
    if (status) {
        note_failure(look, status);
        return;
    }
    bool failed = source->failed;
    source->failed = 0;
    bool is_done = need_not_be_read(look) && key_file_is_same(&state, &source->done);
    look->is_back = failed && is_done && source->taken;
    if (!is_done && has_settled(look, is_first, now))
        read_file(look);
}

/* ---- on the loop ---- */

static void tell(struct source_look *look)
{
    const struct sources_options *options = &look->sources->options;
    const struct keyspace *keyspace = keyspace_of(look);
    const char *path = keyspace_source_path(keyspace);
    char why[TEXT_MAX + 300];
    if (look->refusal[0]) {
        snprintf(why, sizeof why, "%.200s is refused: %s", path, look->refusal);
        log_warning("keyspace %s: %s%s", keyspace->name, why,
                    look->has_keys ? "; the keys before stay in force" : "; nothing is rejected");
        options->refused(options->arg, look->keyspace, why);
    }
    if (look->is_back) {
        log_info("keyspace %s: %s is there again, as it was taken", keyspace->name, path);
        options->refused(options->arg, look->keyspace, NULL);
    }
    if (look->set) {
        log_info("keyspace %s: %llu keys taken from %s", keyspace->name,
                 (unsigned long long)filter_stats(look->set->filter).keys, path);
        options->taken(options->arg, look->keyspace, look->set);
        look->set = NULL;
    }
}

/* Others may have come into force while it was read. */
static void hold_against_room(struct source_look *look)
{
    const struct sources_options *options = &look->sources->options;
    size_t room = options->room(options->arg, look->keyspace);
    if (!look->set || !room || filter_stats(look->set->filter).bytes <= room)
        return;
    refuse(look, "the filter would take more memory than it is allowed");
    look->source.taken = false;
    key_set_release(look->set);
    look->set = NULL;
}

/* A number means one source for as long as the process lives. */
static void on_looked(uv_work_t *work, int status)
{
    struct source_look *look = work->data;
    struct sources *sources = look->sources;
    sources->look = NULL;
    if (!status && !sources->ended) {
        hold_against_room(look);
        *sources->of[look->keyspace] = look->source;
        tell(look);
    }
    key_set_release(look->set);
    shared_config_release(look->config);
    free(look);
}

static void look_at(struct sources *sources, size_t keyspace, const struct key_set *set)
{
    struct source_look *look = xcalloc(1, sizeof *look);
    if (!sources->of[keyspace])
        sources->of[keyspace] = xcalloc(1, sizeof *sources->of[keyspace]);
    *look = (struct source_look){.work.data = look,
                                 .sources = sources,
                                 .config = sources->config,
                                 .keyspace = keyspace,
                                 .source = *sources->of[keyspace],
                                 .wanted = sources->wanted,
                                 .all_wanted = sources->all_wanted,
                                 .room = sources->options.room(sources->options.arg, keyspace),
                                 .keys = set ? set->listed : 0,
                                 .has_keys = set != NULL};
    look->config->references++;
    sources->look = look;
    if (uv_queue_work(sources->options.loop, &look->work, on_thread, on_looked))
        on_looked(&look->work, -EAGAIN);
}

static void use_config(struct sources *sources, struct shared_config *config)
{
    if (config == sources->config)
        return;
    config->references++;
    shared_config_release(sources->config);
    sources->config = config;
}

/* A source is looked at so often that its time to settle is kept, more or less. */
static uint64_t pause_of(const struct config *config)
{
    uint64_t pause = EVERY_MS;
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (keyspace_has_file(&config->keyspaces[i]) && config->keyspaces[i].settle_ms / 2 < pause)
            pause = config->keyspaces[i].settle_ms / 2;
    return pause < OFTEN_MS ? OFTEN_MS : pause;
}

void sources_watch(struct sources *sources, struct shared_config *shared,
                   struct key_set *const *sets, uint64_t now)
{
    const struct config *config = shared->config;
    if (sources->ended || sources->look)
        return;
    use_config(sources, shared);
    if (sources->next >= config->keyspace_count) {
        if (sources->round && now - sources->round < pause_of(config))
            return;
        sources->round = now;
        sources->next = 0;
    }
    while (sources->next < config->keyspace_count && !sources->look) {
        const struct keyspace *keyspace = &config->keyspaces[sources->next++];
        if (keyspace_has_file(keyspace) && !keyspace->retired)
            look_at(sources, sources->next - 1, sets[sources->next - 1]);
    }
}

void sources_retry(struct sources *sources)
{
    sources->wanted++;
    sources->next = SIZE_MAX;
    sources->round = 0;
}

void sources_renew(struct sources *sources)
{
    sources_retry(sources);
    sources->all_wanted = sources->wanted;
}

bool sources_is_behind(const struct sources *sources, size_t keyspace)
{
    const struct source *source = sources->of[keyspace];
    return (sources->look && sources->look->keyspace == keyspace) ||
           (source && !key_file_is_same(&source->seen, &source->done));
}

void sources_open(struct sources *sources, const struct sources_options *options)
{
    *sources = (struct sources){
        .options = *options, .of = xcalloc(KEYSPACES_MAX, sizeof *sources->of), .wanted = 1};
}

void sources_end(struct sources *sources)
{
    sources->ended = true;
    atomic_store(&sources->stop, true);
}

void sources_finish(struct sources *sources)
{
    for (size_t i = 0; sources->of && i < KEYSPACES_MAX; i++)
        free(sources->of[i]);
    free(sources->of);
    shared_config_release(sources->config);
    *sources = (struct sources){0};
}
