/* A file with mistakes, as far as it was understood: for `check`, which asks cache and database
 * what can be asked of them, so that all that is wrong is told in one round. What could not be
 * understood is not guessed: where a server is, which rows a keyspace has, how they are followed.
 * Other settings get their defaults, by which nobody serves.
 */
#include "config/config_source.h"

#include "config/setting_value.h"

static bool was_misread(const struct mention *mention)
{
    return mention->line && !mention->good;
}

static bool is_lacking(const struct setting *row, const struct mention *mention)
{
    return was_misread(mention) || (row->required && !mention->line);
}

static const struct mention *top(const struct config_source *source, const char *name)
{
    return &source->settings[setting_index(config_settings, name)];
}

/* Addresses are a list, of which the good ones are there. */
static void use_defaults(const struct setting *table, const struct mention *mentions, void *base)
{
    struct setting_error error;
    for (size_t i = 0; table[i].name; i++) {
        if (!was_misread(&mentions[i]) || !table[i].standard || table[i].type == SETTING_LISTEN)
            continue;
        setting_finish(&table[i], base);
        (void)setting_read(&table[i], base, table[i].standard, &error); /* takes its own default */
    }
}

/* Which rows it has, and under which keys, is known. */
static bool is_understood(const struct keyspace *keyspace, const struct mention *mentions)
{
    if (!keyspace->line)
        return false;
    for (size_t i = 0; keyspace_settings[i].name; i++)
        if (keyspace_settings[i].remakes && is_lacking(&keyspace_settings[i], &mentions[i]))
            return false;
    return keyspace_is_of_rows(keyspace) || keyspace->source;
}

static void keep_understood(struct config *config, const struct config_source *source)
{
    size_t kept = 0;
    for (size_t i = 0; i < config->keyspace_count; i++) {
        struct keyspace *keyspace = &config->keyspaces[i];
        if (is_understood(keyspace, source->keyspaces[i])) {
            use_defaults(keyspace_settings, source->keyspaces[i], keyspace);
            config->keyspaces[kept++] = *keyspace;
            continue;
        }
        for (const struct setting *row = keyspace_settings; row->name; row++)
            setting_finish(row, keyspace);
    }
    config->left_out = config->keyspace_count - kept;
    config->keyspace_count = kept;
}

/* Whether `query` or `sync` is the mistake nobody knows: nothing is asked about following. */
static bool follows_a_query(const struct config *config)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (config->keyspaces[i].query && config->sync == SYNC_REPLICATION)
            return true;
    return false;
}

void config_make_draft(struct config *config, const struct config_source *source)
{
    config->is_draft = true;
    config->lacks_cache = !config_cache_is_known(config, source);
    config->lacks_database = !top(source, "database")->good;
    use_defaults(config_settings, source->settings, config);
    if (was_misread(top(source, "sync")) || was_misread(top(source, "publication")) ||
        follows_a_query(config))
        config->sync = SYNC_NONE;
    if (config->keyspaces)
        keep_understood(config, source);
}
