/* Most commands have them in the table; of some their other arguments tell. What cannot be read is
 * the cache's to refuse: then there are none. */
#include "worker/command/keys/write_keys.h"

/* As many as the argument before them says; more than there are is the cache's to refuse. */
static struct write_keys counted_keys(const struct request *request)
{
    size_t first = (size_t)request->command->first_key, number = 0;
    struct span text = request->arguments[first - 1];
    for (size_t i = 0; i < text.length && number < request->count; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return (struct write_keys){0, 0};
        number = number * 10 + (size_t)(text.at[i] - '0');
    }
    size_t end = first + number * (size_t)request->command->key_step;
    return (struct write_keys){first, end < request->count ? end : request->count};
}

static bool is_store(struct span word)
{
    return span_is_word(word, "STORE") || span_is_word(word, "STOREDIST");
}

/* Words that belong to this option of SORT or GEORADIUS, and may read like one. */
static size_t values_of(struct span option)
{
    if (span_is_word(option, "LIMIT"))
        return 2;
    return is_store(option) || span_is_word(option, "BY") || span_is_word(option, "GET") ||
           span_is_word(option, "COUNT");
}

/* The last one counts. */
static struct write_keys stored_key(const struct request *request)
{
    struct write_keys stored = {0, 0};
    for (size_t i = (size_t)request->command->first_key; i + 1 < request->count;
         i += 1 + values_of(request->arguments[i]))
        if (is_store(request->arguments[i]))
            stored = (struct write_keys){i + 1, i + 2};
    return stored;
}

/* A BITFIELD of GETs alone only reads. */
static bool writes_no_field(const struct request *request)
{
    if (strcmp(request->command->name, "BITFIELD") != 0)
        return false;
    for (size_t i = 2; i < request->count; i++)
        if (span_is_word(request->arguments[i], "SET") ||
            span_is_word(request->arguments[i], "INCRBY"))
            return false;
    return true;
}

struct write_keys write_keys_of(const struct request *request)
{
    const struct command *command = request->command;
    size_t first = (size_t)command->first_key;
    if (writes_no_field(request))
        return (struct write_keys){0, 0};
    if (command->last_key >= 0)
        return (struct write_keys){first, (size_t)command->last_key + 1};
    if (command->last_key == KEYS_COUNTED)
        return counted_keys(request);
    if (command->last_key == KEYS_STORED)
        return stored_key(request);
    return (struct write_keys){first, request->count};
}
