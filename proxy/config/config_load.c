/* From the YAML document to a struct config.
 *
 *   file ──config_file──▶ document ──rows of settings.c──▶ values ──config_check──▶ struct config
 *
 * A mistake is reported and the reading goes on, so that a person sees all of them at once.
 */
#include "config/config.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "config/config_file.h"
#include "config/config_source.h"
#include "config/file_limits.h"
#include "config/memory_limit.h"
#include "config/setting_value.h"
#include "config/syntax/environment.h"
#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include <uv.h>

/* One reading of one file. */
struct loader {
    struct config_source source; /* where each setting stands, for messages */
    yaml_document_t document;
    struct config *config; /* filled as it is read; destroyed if there was a mistake */
};

/* One mapping that settings are read from: the whole file, a keyspace, or what it publishes. */
struct section {
    const struct setting *table; /* which settings it may have */
    void *base;                  /* of the members that their rows name */
    struct mention *mentions;    /* one for each row, zeroed at first */
    int line;                    /* where it begins */
};

static void add(const struct config_source *source, int line, enum problem_level level,
                const char *format, va_list list)
{
    char *place = xasprintf("%s:%d", source->file, line);
    problems_add_list(source->problems, level, place, NULL, format, list);
    free(place);
}

void config_report(const struct config_source *source, int line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add(source, line, PROBLEM_ERROR, format, list);
    va_end(list);
}

void config_warn(const struct config_source *source, int line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add(source, line, PROBLEM_WARNING, format, list);
    va_end(list);
}

/* As editors count: from 1. */
static int line_of(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

static const char *text_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* "setting:" without a value, or what YAML takes for null. To read it as text or as a default would
 * be guessing. */
static bool is_nothing(const yaml_node_t *node)
{
    const char *text = text_of(node);
    return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0);
}

/* A value as a message may show it: one line of its beginning. */
struct shown {
    char text[64];
};

static struct shown shown(const char *value)
{
    struct shown out;
    size_t length = strlen(value), room = sizeof out.text - 4;
    bool cut = length > room;
    if (cut)
        length = utf8_cut(value, room);
    snprintf(out.text, sizeof out.text, "%.*s%s", (int)length, value, cut ? "..." : "");
    for (char *c = out.text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return out;
}

/* The scalar's text with its variables replaced, or false after a report. */
static bool read_text(const struct loader *loader, const char *name, const yaml_node_t *node,
                      struct buffer *out)
{
    int line = line_of(node);
    char *error = NULL;
    if (node->type != YAML_SCALAR_NODE) {
        config_report(&loader->source, line,
                      "%s must be one value, not a %s; text that begins with %s stands in quotes",
                      name, node->type == YAML_SEQUENCE_NODE ? "list" : "mapping",
                      node->type == YAML_SEQUENCE_NODE ? "[" : "{");
    } else if (is_nothing(node)) {
        config_report(&loader->source, line, "%s has no value", name);
    } else if (strlen(text_of(node)) != node->data.scalar.length) {
        config_report(&loader->source, line, "%s holds a zero byte", name);
    } else if (environment_expand(text_of(node), out, &error)) {
        config_report(&loader->source, line, "%s: %s", name, error);
        free(error);
    } else {
        buffer_append(out, "", 1);
        return true;
    }
    return false;
}

typedef int (*text_reader)(const struct setting *setting, void *base, const char *text,
                           struct setting_error *error);

static bool read_by(text_reader reader, const struct loader *loader, const struct section *section,
                    const struct setting *setting, const yaml_node_t *node)
{
    struct buffer text = {0};
    struct setting_error error;
    bool good = read_text(loader, setting->name, node, &text);
    if (good && reader(setting, section->base, buffer_span(&text).at, &error)) {
        good = false;
        /* Shown as it stands in the file: what a variable holds may be a secret. */
        if (setting_is_secret(setting))
            config_report(&loader->source, line_of(node), "%s: %s", setting->name, error.text);
        else
            config_report(&loader->source, line_of(node), "%s \"%s\": %s", setting->name,
                          shown(text_of(node)).text, error.text);
    }
    buffer_finish(&text);
    return good;
}

/* Reads one value into its member; false after a report. */
static bool read_scalar(const struct loader *loader, const struct section *section,
                        const struct setting *setting, const yaml_node_t *node)
{
    return read_by(setting_read, loader, section, setting, node);
}

static yaml_node_t *node_at(struct loader *loader, yaml_node_item_t item)
{
    return yaml_document_get_node(&loader->document, item);
}

static size_t list_length(const yaml_node_t *list)
{
    return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

/* Takes one value, too, and not in a list: most have one. */
static bool read_list(struct loader *loader, const struct section *section,
                      const struct setting *setting, const yaml_node_t *node)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return read_scalar(loader, section, setting, node);
    bool good = true;
    for (size_t i = 0; i < list_length(node); i++) {
        yaml_node_t *item = node_at(loader, node->data.sequence.items.start[i]);
        good &= read_by(setting_read_item, loader, section, setting, item);
    }
    if (list_length(node) == 0)
        config_report(&loader->source, line_of(node), "%s must name at least one %s", setting->name,
                      setting->type == SETTING_LISTEN    ? "address"
                      : setting->type == SETTING_DEPENDS ? "table"
                                                         : "column");
    return good && list_length(node) > 0;
}

static bool read_keyspaces(struct loader *loader, const yaml_node_t *node);
static bool read_publish(struct loader *loader, struct publish *publish, const yaml_node_t *node);

/* Lists and mappings are read here; all others are one scalar, which setting_read() knows by its
 * row.
 */
static bool read_setting(struct loader *loader, const struct section *section,
                         const struct setting *setting, const yaml_node_t *node)
{
    if (setting->type == SETTING_KEYSPACES)
        return read_keyspaces(loader, node);
    if (setting->type == SETTING_PUBLISH)
        return read_publish(loader, (struct publish *)((char *)section->base + setting->offset),
                            node);
    if (setting->type == SETTING_LISTEN || setting->type == SETTING_VALUE ||
        setting->type == SETTING_DEPENDS)
        return read_list(loader, section, setting, node);
    return read_scalar(loader, section, setting, node);
}

/* A name of the file's top level in a keyspace, or the other way round. */
static bool is_of_another(const struct section *section, const char *name)
{
    const struct setting *elsewhere =
        section->table == config_settings ? keyspace_settings : config_settings;
    return section->table != publish_settings && setting_index(elsewhere, name) >= 0;
}

/* A name that exists in the other table was put in the wrong place; another may be a slip. */
static void report_unknown(const struct loader *loader, const struct section *section,
                           const char *name, int line)
{
    bool inside = section->table == keyspace_settings;
    const struct setting *similar = setting_similar(section->table, name);
    if (strcmp(name, "<<") == 0)
        config_report(&loader->source, line, "merge keys (<<) are not supported");
    else if (is_of_another(section, name))
        config_report(&loader->source, line, "%s is a setting of %s", name,
                      inside ? "the whole file, not of a keyspace"
                             : "a keyspace: it stands in an item of keyspaces");
    else if (similar)
        config_report(&loader->source, line, "unknown setting \"%s\"; did you mean %s?",
                      shown(name).text, similar->name);
    else
        config_report(&loader->source, line,
                      "unknown setting \"%s\"; nestguard --help lists them all", shown(name).text);
}

/* Counts as mentioned also when its value is bad: so that it is not reported as missing, too. */
static void read_pair(struct loader *loader, const struct section *section, const yaml_node_t *key,
                      const yaml_node_t *value)
{
    int line = line_of(key);
    if (key->type != YAML_SCALAR_NODE || strlen(text_of(key)) != key->data.scalar.length) {
        config_report(&loader->source, line, "a setting's name is expected here");
        return;
    }
    int index = setting_index(section->table, text_of(key));
    if (index < 0) {
        report_unknown(loader, section, text_of(key), line);
        return;
    }
    struct mention *mention = &section->mentions[index];
    if (mention->line) {
        config_report(&loader->source, line, "%s is set twice; the first time in line %d",
                      text_of(key), mention->line);
        return;
    }
    mention->line = line;
    mention->good = read_setting(loader, section, &section->table[index], value);
}

/* Settings that the file does not mention. */
static void fill_in(const struct loader *loader, const struct section *section)
{
    for (int i = 0; section->table[i].name; i++) {
        const struct setting *setting = &section->table[i];
        struct setting_error error;
        int status = 0;
        if (section->mentions[i].line)
            continue;
        if (setting->required)
            config_report(&loader->source, section->line, "%s is missing: %s", setting->name,
                          setting->help);
        else if (setting->standard)
            status = setting_read(setting, section->base, setting->standard, &error);
        assert(status == 0); /* a row accepts its own default */
        (void)status;
    }
}

/* Every pair first, so that a default never stands in the place of a value that comes later. */
static void read_section(struct loader *loader, const struct section *section,
                         const yaml_node_t *node)
{
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++)
        read_pair(loader, section, node_at(loader, pair->key), node_at(loader, pair->value));
    fill_in(loader, section);
}

/* As with a keyspace, mistakes within it are reported for themselves. */
static bool read_publish(struct loader *loader, struct publish *publish, const yaml_node_t *node)
{
    struct mention mentions[SETTINGS_MAX] = {0};
    struct section section = {publish_settings, publish, mentions, line_of(node)};
    if (node->type != YAML_MAPPING_NODE) {
        config_report(&loader->source, section.line,
                      "publish is a mapping, as in {key: \"items:published\"}");
        return false;
    }
    read_section(loader, &section, node);
    return mentions[setting_index(publish_settings, "key")].good;
}

/* Mistakes within it are its settings' own: only something that is no keyspace is not good. */
static bool read_keyspace(struct loader *loader, size_t index, const yaml_node_t *node)
{
    struct keyspace *keyspace = &loader->config->keyspaces[index];
    struct section section = {keyspace_settings, keyspace, loader->source.keyspaces[index],
                              line_of(node)};
    if (node->type != YAML_MAPPING_NODE) {
        config_report(&loader->source, section.line,
                      "a keyspace is a mapping, which begins with \"- name: ...\"");
        return false;
    }
    keyspace->line = section.line;
    read_section(loader, &section, node);
    return true;
}

/* So many of the list are read. Of more, the place of the first of them. */
static size_t keyspaces_to_read(struct loader *loader, const yaml_node_t *list)
{
    size_t count = list_length(list);
    if (count <= KEYSPACES_MAX)
        return count;
    config_report(&loader->source,
                  line_of(node_at(loader, list->data.sequence.items.start[KEYSPACES_MAX])),
                  "there are %zu keyspaces, and one process can have no more than %d: let another "
                  "guard, with a file of its own, have those from here on",
                  count, KEYSPACES_MAX);
    return KEYSPACES_MAX;
}

/* Their number is that of the file's items, also when one of them is no keyspace: nothing is used
 * of a file with a mistake. */
static bool read_keyspaces(struct loader *loader, const yaml_node_t *node)
{
    size_t count = node->type == YAML_SEQUENCE_NODE ? keyspaces_to_read(loader, node) : 0;
    bool good = count > 0;
    if (!good)
        config_report(
            &loader->source, line_of(node),
            "keyspaces must be a list of at least one keyspace, each of which begins with "
            "\"- name: ...\"");
    loader->config->keyspaces = xcalloc(count, sizeof *loader->config->keyspaces);
    loader->config->keyspace_count = count;
    loader->source.keyspaces = xcalloc(count, sizeof *loader->source.keyspaces);
    for (size_t i = 0; i < count; i++)
        good &= read_keyspace(loader, i, node_at(loader, node->data.sequence.items.start[i]));
    return good;
}

/* The rules that join several settings come last. False: there are no settings. */
static bool read_root(struct loader *loader)
{
    const yaml_node_t *root = yaml_document_get_root_node(&loader->document);
    struct section section = {config_settings, loader->config, loader->source.settings,
                              line_of(root)};
    if (root->type != YAML_MAPPING_NODE) {
        bool empty = root->type == YAML_SCALAR_NODE && is_nothing(root);
        config_report(&loader->source, section.line, "%s",
                      empty ? config_file_empty
                            : "the file must be a mapping: lines of the form \"setting: value\"");
        return false;
    }
    read_section(loader, &section, root);
    config_check(loader->config, &loader->source);
    config_check_effect(loader->config, &loader->source);
    return true;
}

/* Those that the process may run on, within the bounds of `workers`. */
static unsigned cores(void)
{
    unsigned count = uv_available_parallelism();
    return count < 1 ? 1 : (count > 256 ? 256 : count);
}

/* False: it is no mapping, of which nothing can be understood. */
static bool load(struct loader *loader, const char *path)
{
    loader->config = xcalloc(1, sizeof *loader->config);
    loader->config->file = xstrdup(path);
    loader->config->workers = cores();
    loader->config->max_client_memory = (size_t)(memory_limit() / 4);
    return read_root(loader);
}

int config_load_draft(struct config **out, const char *path, struct problems *problems)
{
    struct loader loader = {.source = {.file = path, .problems = problems}};
    size_t errors = problems->errors;
    *out = NULL;
    int status = config_file_read(&loader.document, path, problems);
    if (status)
        return status;
    bool understood = load(&loader, path);
    status = problems->errors > errors ? -EINVAL : 0;
    if (status && understood)
        config_make_draft(loader.config, &loader.source);
    yaml_document_delete(&loader.document);
    free(loader.source.keyspaces);
    if (!understood) {
        config_destroy(loader.config);
        return status;
    }
    loader.config->limits = file_limits_of(loader.config, file_limits_hard());
    *out = loader.config;
    return status;
}

int config_load(struct config **out, const char *path, struct problems *problems)
{
    int status = config_load_draft(out, path, problems);
    if (status) {
        config_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* What was never read is zero, and zero has nothing to free. */
static void finish_all(const struct setting *table, void *base)
{
    for (; table->name; table++)
        setting_finish(table, base);
}

void config_destroy(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->keyspace_count; i++)
        finish_all(keyspace_settings, &config->keyspaces[i]);
    free(config->keyspaces);
    finish_all(config_settings, config);
    tls_context_release(config->clients_tls);
    tls_context_release(config->cache_tls);
    tls_context_release(config->sentinels_tls);
    free(config->file);
    free(config);
}
