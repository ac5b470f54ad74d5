#include "check/check_sources.h"

#include "base/memory.h"
#include "build/filter_size.h"
#include "sources/key_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* `taken`: by the others before it; its filter's bytes are added. */
static int read_file(const struct config *config, const struct keyspace *keyspace, size_t *taken,
                     uint64_t *keys, struct key_file_error *error)
{
    static const atomic_bool stop;
    struct key_file_options options = {
        .path = keyspace_source_path(keyspace),
        .key = &keyspace->key,
        .filter = {.kind = keyspace->filter,
                   .false_positive_rate = keyspace->false_positive_rate,
                   .max_bytes = filter_size_room(config, *taken)},
        .stop = &stop};
    struct key_file_state state;
    struct filter_seed seed;
    struct filter *filter = NULL;
    int status = key_file_look(options.path, &state);
    if (status)
        snprintf(error->text, sizeof error->text, "%s",
                 status == -EINVAL ? "it is no regular file" : strerror(-status));
    else
        status = key_file_read(&filter, &seed, &state, &options, error);
    *keys = filter ? filter_stats(filter).keys : 0;
    *taken += filter ? filter_stats(filter).bytes : 0;
    filter_destroy(filter);
    return status;
}

/* One that is being written just now is nobody's mistake. */
static void check_source(const struct config *config, const struct keyspace *keyspace,
                         size_t *taken, struct problems *problems)
{
    struct key_file_error error;
    uint64_t keys;
    char *place = xasprintf("keyspace %s (%s:%d)", keyspace->name, config->file, keyspace->line);
    int status = read_file(config, keyspace, taken, &keys, &error);
    if (status)
        problems_add(problems, status == -EAGAIN ? PROBLEM_WARNING : PROBLEM_ERROR, place, NULL,
                     "source: %s: %s", keyspace_source_path(keyspace), error.text);
    else if (keys < keyspace->min_keys)
        problems_add(problems, PROBLEM_ERROR, place, NULL,
                     "source: %s has %llu keys, fewer than min_keys (%u): a guard refuses it",
                     keyspace_source_path(keyspace), (unsigned long long)keys, keyspace->min_keys);
    free(place);
}

size_t check_sources(const struct config *config, struct problems *problems)
{
    size_t taken = 0;
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (keyspace_has_file(&config->keyspaces[i]) &&
            strncmp(config->keyspaces[i].source, "file:/", 6) == 0) /* else the file is wrong */
            check_source(config, &config->keyspaces[i], &taken, problems);
    return taken;
}
