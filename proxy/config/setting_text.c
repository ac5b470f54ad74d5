/* Values of settings as a person would write them, with units that leave no rest. */
#include "config/setting_value.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "config/config.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t size;
};

static const struct unit durations[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
static const struct unit sizes[] = {{"tb", UINT64_C(1) << 40},
                                    {"gb", UINT64_C(1) << 30},
                                    {"mb", UINT64_C(1) << 20},
                                    {"kb", UINT64_C(1) << 10},
                                    {"b", 1}};

/* In the largest unit of which it is a whole number; the last is 1, and ends the search. */
static char *with_unit(uint64_t value, const struct unit *units)
{
    if (!value)
        return xstrdup("0");
    while (value % units->size)
        units++;
    return xasprintf("%llu%s", (unsigned long long)(value / units->size), units->name);
}

/* Without a value, what holds then, in the row's words. A new string, as all of these give. */
static char *text_or(const struct setting *setting, const char *text)
{
    return xstrdup(text ? text : setting->otherwise ? setting->otherwise : "none");
}

static char *addresses(const struct config *config)
{
    struct buffer out = {0};
    for (size_t i = 0; i < config->listens; i++)
        buffer_printf(&out, "%s%s", i ? ", " : "", config->listen[i].text);
    return buffer_string(&out);
}

/* ---- what has a password in it ---- */

static void append_value(struct buffer *out, const char *keyword, const char *value)
{
    buffer_printf(out, "%s%s='", buffer_length(out) ? " " : "", keyword);
    for (; *value; value++)
        buffer_printf(out, "%s%c", *value == '\'' || *value == '\\' ? "\\" : "", *value);
    buffer_append(out, "'", 1);
}

/* In libpq's words, whichever way it was written. libpq says which of them are secret. */
static char *database_text(const char *conninfo, const char *hidden)
{
    struct buffer out = {0};
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    for (PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val)
            append_value(&out, option->keyword, *option->dispchar == '*' ? hidden : option->val);
    PQconninfoFree(options);
    return buffer_string(&out);
}

static void append_escaped(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        bool plain = strchr("-_.~", *text) || (*text >= '0' && *text <= '9') ||
                     (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        buffer_printf(out, plain ? "%c" : "%%%02X", (unsigned)(unsigned char)*text);
    }
}

static void append_server(struct buffer *out, const struct address *address)
{
    bool is_ipv6 = strchr(address->host, ':');
    buffer_printf(out, is_ipv6 ? "[%s]:%u" : "%s:%u", address->host, (unsigned)address->port);
}

static void append_servers(struct buffer *out, const struct cache_url *url)
{
    if (!url->seed_count)
        append_server(out, &url->address);
    for (size_t i = 0; i < url->seed_count; i++) {
        buffer_append(out, ",", i ? 1 : 0);
        append_server(out, &url->seeds[i]);
    }
    if (url->primary) {
        buffer_append(out, "/", 1);
        append_escaped(out, url->primary);
    }
}

/* A user comes with a password: the URL has none without. */
static char *cache_text(const struct cache_url *url, const char *hidden)
{
    struct buffer out = {0};
    if (url->address.path) {
        buffer_printf(&out, "unix:%s?db=%d", url->address.path, url->db);
        return buffer_string(&out);
    }
    buffer_printf(&out, "redis%s%s://", url->address.tls ? "s" : "",
                  url->is_cluster ? "-cluster"
                  : url->primary  ? "-sentinel"
                                  : "");
    if (url->user)
        append_escaped(&out, url->user);
    if (url->password)
        buffer_printf(&out, ":%s@", hidden);
    append_servers(&out, url);
    buffer_printf(&out, "/%d", url->db);
    return buffer_string(&out);
}

/* ---- what is there, or what holds without ---- */

/* Those that are configured: what was retired is none of the file's. */
static char *keyspace_names(const struct config *config)
{
    struct buffer out = {0};
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired)
            buffer_printf(&out, "%s%s", buffer_length(&out) ? ", " : "", config->keyspaces[i].name);
    return buffer_string(&out);
}

static char *columns_text(const struct column_list *columns)
{
    struct buffer out = {0};
    for (size_t i = 0; i < columns->count; i++)
        buffer_printf(&out, "%s%s", i ? ", " : "[", columns->at[i]);
    buffer_printf(&out, "]");
    return buffer_string(&out);
}

static char *value_text(const struct setting *setting, const struct keyspace *keyspace)
{
    if (keyspace->columns.count)
        return columns_text(&keyspace->columns);
    const char *text = keyspace->value_expression ? keyspace->value_expression : keyspace->value;
    return keyspace->value_is_json ? xstrdup("json") : text_or(setting, text);
}

static char *depends_text(const struct setting *setting, const struct dependencies *depends)
{
    struct buffer out = {0};
    if (!depends->count)
        return text_or(setting, NULL);
    for (size_t i = 0; i < depends->count; i++)
        buffer_printf(&out, "%s%s", i ? ", " : "[", depends->at[i].text);
    buffer_printf(&out, "]");
    return buffer_string(&out);
}

static bool has_value(const struct keyspace *keyspace)
{
    return keyspace->value_is_json || keyspace->value_expression || keyspace->value ||
           keyspace->columns.count;
}

bool setting_is_there(const struct setting *setting, const void *base)
{
    const void *member = (const char *)base + setting->offset;
    switch (setting->type) {
    case SETTING_TEXT:
    case SETTING_NAME:
    case SETTING_TABLE:
    case SETTING_SECRET:
    case SETTING_DATABASE:
        return *(char *const *)member;
    case SETTING_CONTROL:
        return ((const struct config *)base)->has_control;
    case SETTING_VALUE:
        return has_value(base);
    case SETTING_DEPENDS:
        return ((const struct dependencies *)member)->count > 0;
    case SETTING_PUBLISH:
        return ((const struct publish *)member)->key;
    default:
        return true;
    }
}

static char *control_text(const struct setting *setting, const struct config *config)
{
    return text_or(setting, config->has_control ? config->control.text : NULL);
}

/* Every type is named, so that the compiler asks about a new one. */
char *setting_text_hiding(const struct setting *setting, const void *base, const char *hidden)
{
    const void *member = (const char *)base + setting->offset;
    switch (setting->type) {
    case SETTING_COUNT:
        return xasprintf("%u", *(const unsigned *)member);
    case SETTING_DURATION:
        return with_unit(*(const uint64_t *)member, durations);
    case SETTING_SIZE:
        return with_unit(*(const size_t *)member, sizes);
    case SETTING_SHARE:
        return xasprintf("%g", *(const double *)member);
    case SETTING_FLAG:
        return xstrdup(*(const bool *)member ? "true" : "false");
    case SETTING_CHOICE:
        return xstrdup(setting->choices[*(const unsigned *)member]);
    case SETTING_TEXT:
    case SETTING_NAME:
    case SETTING_TABLE:
        return text_or(setting, *(char *const *)member);
    case SETTING_SECRET:
        return text_or(setting, *(char *const *)member ? hidden : NULL);
    case SETTING_DATABASE:
        return database_text(*(char *const *)member, hidden);
    case SETTING_CACHE:
        return cache_text(member, hidden);
    case SETTING_CONTROL:
        return control_text(setting, base);
    case SETTING_LISTEN:
        return addresses(base);
    case SETTING_KEYSPACES:
        return keyspace_names(base);
    case SETTING_KEY:
        return xstrdup(((const struct key_template *)member)->text);
    case SETTING_VALUE:
        return value_text(setting, base);
    case SETTING_DEPENDS:
        return depends_text(setting, member);
    case SETTING_PUBLISH:
        return text_or(setting, ((const struct publish *)member)->key);
    }
    return xstrdup("");
}

char *setting_text(const struct setting *setting, const void *base)
{
    return setting_text_hiding(setting, base, "(hidden)");
}
