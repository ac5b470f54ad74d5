/* Reading settings, a function a type; comparing and freeing them is in setting_member.c. Errors
 * end up behind the setting's name ("max_lag "soon": must be ..."), and never quote the value:
 * whoever prints them knows whether it is a secret.
 */
#include "config/setting_value.h"

#include "base/memory.h"
#include "base/text/identifier.h"
#include "config/config.h"
#include "config/conninfo.h"
#include "config/syntax/expression.h"
#include "config/syntax/units.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(enum sync_mode) == sizeof(unsigned), "choices are stored as unsigned");

static int refuse(struct setting_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Always -EINVAL, so that it can stand behind a return. */
static int refuse(struct setting_error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return -EINVAL;
}

/* For the parsers whose errors are static texts; by address, as it is set while status is made. */
static int explain(int status, struct setting_error *error, const char *const *reason)
{
    return status ? refuse(error, "%s", *reason) : 0;
}

/* Bounds are told as they are written in the table: "10ms", not 10. */
static int out_of_range(const struct setting *setting, struct setting_error *error)
{
    return refuse(error, "must be from %s to %s", setting->least, setting->most);
}

/* Milliseconds, bytes, or a plain number. */
static int parse_whole(enum setting_type type, const char *text, uint64_t *out, const char **reason)
{
    switch (type) {
    case SETTING_DURATION:
        return units_duration(text, out, reason);
    case SETTING_SIZE:
        return units_size(text, out, reason);
    default:
        return units_count(text, out, reason);
    }
}

/* The row's bounds are written like its values. */
static uint64_t bound(const struct setting *setting, const char *text)
{
    uint64_t value = 0;
    const char *reason;
    parse_whole(setting->type, text, &value, &reason);
    return value;
}

/* Into the type that the setting's kind says (settings.h). */
static int read_whole(const struct setting *setting, void *member, const char *text,
                      struct setting_error *error)
{
    uint64_t value;
    const char *reason;
    if (parse_whole(setting->type, text, &value, &reason))
        return refuse(error, "%s", reason);
    if (value < bound(setting, setting->least) || value > bound(setting, setting->most))
        return out_of_range(setting, error);
    if (setting->type == SETTING_COUNT)
        *(unsigned *)member = (unsigned)value;
    else if (setting->type == SETTING_SIZE)
        *(size_t *)member = (size_t)value;
    else
        *(uint64_t *)member = value;
    return 0;
}

/* "0.1" or "10%". */
static int read_share(const struct setting *setting, void *member, const char *text,
                      struct setting_error *error)
{
    double value, least = 0, most = 0;
    const char *reason;
    if (units_fraction(text, &value, &reason))
        return refuse(error, "%s", reason);
    units_fraction(setting->least, &least, &reason);
    units_fraction(setting->most, &most, &reason);
    if (value < least || value > most)
        return out_of_range(setting, error);
    *(double *)member = value;
    return 0;
}

/* YAML's other words for them (yes, on, ...) are refused: one spelling. */
static int read_flag(const struct setting *setting, void *member, const char *text,
                     struct setting_error *error)
{
    (void)setting;
    bool on = strcmp(text, "true") == 0;
    if (!on && strcmp(text, "false") != 0)
        return refuse(error, "must be true or false");
    *(bool *)member = on;
    return 0;
}

/* The message lists the choices: "must be nil, error or value". */
static int read_choice(const struct setting *setting, void *member, const char *text,
                       struct setting_error *error)
{
    const char *const *choices = setting->choices;
    for (unsigned i = 0; choices[i]; i++) {
        if (strcmp(choices[i], text) == 0) {
            *(unsigned *)member = i;
            return 0;
        }
    }
    refuse(error, "must be %s", choices[0]);
    for (size_t i = 1; choices[i]; i++) {
        size_t used = strlen(error->text);
        snprintf(error->text + used, sizeof error->text - used, "%s%s",
                 choices[i + 1] ? ", " : " or ", choices[i]);
    }
    return -EINVAL;
}

/* Any bytes but zero, as many as the row's bounds say. */
static int read_text(const struct setting *setting, void *member, const char *text,
                     struct setting_error *error)
{
    size_t length = strlen(text);
    if (length < strtoul(setting->least, NULL, 10) || length > strtoul(setting->most, NULL, 10))
        return refuse(error, "must be %s to %s bytes long", setting->least, setting->most);
    *(char **)member = xstrdup(text);
    return 0;
}

/* A name stands in metrics, in log lines and in URLs: it must need no quoting in any. */
static int read_name(const struct setting *setting, void *member, const char *text,
                     struct setting_error *error)
{
    (void)setting;
    size_t length = strlen(text);
    if (length == 0 || length > 63 ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != length)
        return refuse(error, "must be 1 to 63 letters, digits, _, - and .");
    *(char **)member = xstrdup(text);
    return 0;
}

/* A secret goes into commands and headers, where a control character, such as the newline at the
 * end of a file that it was read from, would never match. */
static int read_secret(const struct setting *setting, void *member, const char *text,
                       struct setting_error *error)
{
    (void)setting;
    if (!*text)
        return refuse(error, "must not be empty");
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return refuse(error, "must not hold control characters, such as a newline at its end");
    *(char **)member = xstrdup(text);
    return 0;
}

/* Kept as it stands: libpq reads it anew for each connection. */
static int read_database(const struct setting *setting, void *member, const char *text,
                         struct setting_error *error)
{
    (void)setting;
    int status = conninfo_check(text, error->text, sizeof error->text);
    if (!status)
        *(char **)member = xstrdup(text);
    return status;
}

/* Also of a sentinel's URL. */
static int read_cache(const struct setting *setting, void *member, const char *text,
                      struct setting_error *error)
{
    (void)setting;
    const char *reason = NULL;
    return explain(cache_url_parse(member, text, &reason), error, &reason);
}

/* An address, and that there is one. */
static int read_control(const struct setting *setting, void *member, const char *text,
                        struct setting_error *error)
{
    struct config *config = (void *)((char *)member - setting->offset);
    const char *reason = NULL;
    int status = address_parse(&config->control, text, &reason);
    config->has_control = !status;
    if (!status && config->control.tls)
        return refuse(error, "the control port has no TLS; a loopback address behind a server that "
                             "has it, or a unix socket, is as good");
    return explain(status, error, &reason);
}

/* Called for each item of the list. */
static int read_listen(const struct setting *setting, void *member, const char *text,
                       struct setting_error *error)
{
    struct config *config = (void *)((char *)member - setting->offset);
    const char *reason = NULL;
    struct address address;
    if (address_parse(&address, text, &reason))
        return refuse(error, "%s", reason);
    config->listen = xrealloc(config->listen, (config->listens + 1) * sizeof *config->listen);
    config->listen[config->listens++] = address;
    return 0;
}

/* Parsed once, here: a template that is in force is right. */
static int read_key(const struct setting *setting, void *member, const char *text,
                    struct setting_error *error)
{
    (void)setting;
    const char *reason = NULL;
    return explain(key_template_parse(member, text, &reason), error, &reason);
}

/* "items" or "public.items", quoted as SQL does where need be. */
static int read_table(const struct setting *setting, void *member, const char *text,
                      struct setting_error *error)
{
    struct keyspace *keyspace = (void *)((char *)member - setting->offset);
    const char *reason = NULL;
    if (table_name_parse(text, &keyspace->table_schema, &keyspace->table_name, &reason))
        return refuse(error, "%s", reason);
    keyspace->table_text = xstrdup(text);
    return 0;
}

/* `json` is the word; a column of that name is written in quotes, as is one whose name looks like
 * an expression. */
static int read_value(const struct setting *setting, void *member, const char *text,
                      struct setting_error *error)
{
    struct keyspace *keyspace = (void *)((char *)member - setting->offset);
    const char *reason = NULL;
    keyspace->value_is_json = strcmp(text, "json") == 0;
    if (keyspace->value_is_json)
        return 0;
    if (expression_is_one(text)) {
        keyspace->value_expression = xstrdup(text);
        return 0;
    }
    return explain(column_name_parse(text, &keyspace->value, &reason), error, &reason);
}

/* Called for each item of the list, too. */
static int read_depends(const struct setting *setting, void *member, const char *text,
                        struct setting_error *error)
{
    struct dependencies *list = member;
    struct dependency fresh;
    const char *reason = NULL;
    (void)setting;
    if (dependency_parse(&fresh, text, &reason))
        return refuse(error, "%s", reason);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].text, text) == 0) {
            dependency_finish(&fresh);
            return refuse(error, "is listed twice");
        }
    list->at = xrealloc(list->at, (list->count + 1) * sizeof *list->at);
    list->at[list->count++] = fresh;
    return 0;
}

typedef int (*reader)(const struct setting *setting, void *member, const char *text,
                      struct setting_error *error);

int setting_read(const struct setting *setting, void *base, const char *text,
                 struct setting_error *error)
{
    static const reader readers[] = {
        [SETTING_COUNT] = read_whole,     [SETTING_DURATION] = read_whole,
        [SETTING_SIZE] = read_whole,      [SETTING_SHARE] = read_share,
        [SETTING_FLAG] = read_flag,       [SETTING_CHOICE] = read_choice,
        [SETTING_TEXT] = read_text,       [SETTING_NAME] = read_name,
        [SETTING_SECRET] = read_secret,   [SETTING_DATABASE] = read_database,
        [SETTING_CACHE] = read_cache,     [SETTING_CONTROL] = read_control,
        [SETTING_LISTEN] = read_listen,   [SETTING_KEY] = read_key,
        [SETTING_TABLE] = read_table,     [SETTING_VALUE] = read_value,
        [SETTING_DEPENDS] = read_depends,
    };
    return readers[setting->type](setting, (char *)base + setting->offset, text, error);
}

static int read_column(struct keyspace *keyspace, const char *text, struct setting_error *error)
{
    struct column_list *columns = &keyspace->columns;
    const char *reason = NULL;
    char *name = NULL;
    if (column_name_parse(text, &name, &reason))
        return refuse(error, "%s", reason);
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->at[i], name) == 0) {
            free(name);
            return refuse(error, "is listed twice");
        }
    columns->at = xrealloc(columns->at, (columns->count + 1) * sizeof *columns->at);
    columns->at[columns->count++] = name;
    return 0;
}

int setting_read_item(const struct setting *setting, void *base, const char *text,
                      struct setting_error *error)
{
    if (setting->type == SETTING_VALUE)
        return read_column(base, text, error);
    return setting_read(setting, base, text, error);
}
