/* What a published filter is called must be nobody else's: a guarded key would be purged, rejected
 * or swept like any other, and two filters under one name would be neither.
 */
#include "config/config_source.h"

#include <stdio.h>
#include <string.h>

/* All that is in the cache under a publish.key; of the numbers, one that stands for all. */
static const char *const suffixes[] = {"",    ":info",          ":lease",           "-cursor",
                                       "-12", ":building:12-1", "-12:building:12-1"};

enum { SUFFIXES = sizeof suffixes / sizeof *suffixes, NAME_SIZE = 500 };

static void report_guarded(const struct config *config, const struct config_source *source,
                           const char *key, int line)
{
    char name[NAME_SIZE];
    for (size_t i = 0; i < SUFFIXES; i++) {
        snprintf(name, sizeof name, "%s%s", key, suffixes[i]);
        for (size_t k = 0; k < config->keyspace_count; k++) {
            const struct key_template *guarded = &config->keyspaces[k].key;
            if (!guarded->columns ||
                !key_template_matches(guarded, (struct span){name, strlen(name)}))
                continue;
            config_report(source, line,
                          "what is published under \"%s\" would be a guarded key: \"%s\" matches "
                          "\"%s\" of keyspace %s",
                          key, name, guarded->text, config->keyspaces[k].name);
            return;
        }
    }
}

/* Whether `text` is the key or something that is called after it. */
static bool belongs_to(const char *text, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(text, key, length) != 0)
        return false;
    text += length;
    for (size_t i = 0; i < SUFFIXES; i++)
        if (strcmp(text, suffixes[i]) == 0)
            return true;
    return *text == '-' && text[1] && strspn(text + 1, "0123456789") == strlen(text + 1);
}

bool config_has_hash_tag(const char *key)
{
    const char *begin = strchr(key, '{');
    const char *end = begin ? strchr(begin, '}') : NULL;
    return end && end > begin + 1;
}

void config_check_publish(const struct config *config, const struct config_source *source,
                          size_t keyspace, int line)
{
    const char *key = config->keyspaces[keyspace].publish.key;
    if (config->cache.is_cluster && !config_has_hash_tag(key))
        config_report(source, line,
                      "with a Redis Cluster as the cache publish.key needs a hash tag, so that all "
                      "that is published has one slot, as in \"{%s}\"",
                      key);
    report_guarded(config, source, key, line);
    for (size_t i = 0; i < keyspace; i++) {
        const char *other = config->keyspaces[i].publish.key;
        if (other && (belongs_to(key, other) || belongs_to(other, key)))
            config_report(source, line,
                          "publish.key \"%s\" and \"%s\" of keyspace %s get in each other's way",
                          key, other, config->keyspaces[i].name);
    }
}
