/* An answer is a list of fingerprints, one for each keyspace in the order of their numbers, of
 * which only that it is another than before means anything. Of a number that an answer does not
 * reach (it was asked of fewer keyspaces) the last one stays, and is compared with the next that
 * comes.
 */
#include "follow/values.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct values {
    struct values_options options;
    char **prints;    /* of each keyspace; NULL: none yet */
    uint64_t *settle; /* when altered() is due once more; 0: it is not */
    size_t settling;  /* for how many it is: mostly none, and there is room for many */
    bool known;
};

struct values *values_create(const struct values_options *options)
{
    struct values *values = xcalloc(1, sizeof *values);
    values->options = *options;
    values->prints = xcalloc(options->keyspaces, sizeof *values->prints);
    values->settle = xcalloc(options->keyspaces, sizeof *values->settle);
    return values;
}

void values_destroy(struct values *values)
{
    if (!values)
        return;
    for (size_t i = 0; i < values->options.keyspaces; i++)
        free(values->prints[i]);
    free(values->prints);
    free(values->settle);
    free(values);
}

/* Takes the print over. */
static void learn(struct values *values, size_t keyspace, char *print, uint64_t now)
{
    char *before = values->prints[keyspace];
    bool altered = before && strcmp(before, print) != 0;
    free(before);
    values->prints[keyspace] = print;
    if (!altered)
        return;
    values->settling += !values->settle[keyspace];
    values->settle[keyspace] = now + VALUES_SETTLE_MS;
    values->options.altered(values->options.arg, (int)keyspace);
}

void values_learn(struct values *values, const char *answer, uint64_t now)
{
    values->known = true;
    for (size_t i = 0; i < values->options.keyspaces && *answer; i++) {
        size_t length = strcspn(answer, ",");
        learn(values, i, xstrndup(answer, length), now);
        answer += length + (answer[length] == ',');
    }
}

bool values_are_known(const struct values *values)
{
    return values->known;
}

void values_check_time(struct values *values, uint64_t now)
{
    for (size_t i = 0; values->settling && i < values->options.keyspaces; i++) {
        if (!values->settle[i] || now < values->settle[i])
            continue;
        values->settle[i] = 0;
        values->settling--;
        values->options.altered(values->options.arg, (int)i);
    }
}
