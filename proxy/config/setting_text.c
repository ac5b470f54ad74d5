/* Values of settings as a person would write them, with units that leave no rest. */
#include "config/setting_value.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "config/config.h"

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

static char *with_unit(uint64_t value, const struct unit *units)
{
    if (!value)
        return xstrdup("0");
    while (value % units->size)
        units++;
    return xasprintf("%llu%s", (unsigned long long)(value / units->size), units->name);
}

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

/* Who and where; what else is in it may be a secret. */
static char *cache_text(const struct cache_url *url)
{
    const char *user = url->user ? url->user : "";
    const char *hidden = url->password ? ":(hidden)@" : url->user ? "@" : "";
    return xasprintf("%s%s%s, database %d", user, hidden, url->address.text, url->db);
}

static char *keyspace_names(const struct config *config)
{
    struct buffer out = {0};
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired)
            buffer_printf(&out, "%s%s", buffer_length(&out) ? ", " : "", config->keyspaces[i].name);
    return buffer_string(&out);
}

static char *value_text(const struct setting *setting, const struct keyspace *keyspace)
{
    return keyspace->value_is_json ? xstrdup("json") : text_or(setting, keyspace->value);
}

static char *control_text(const struct setting *setting, const struct config *config)
{
    return text_or(setting, config->has_control ? config->control.text : NULL);
}

/* Every type is named, so that the compiler asks about a new one. */
char *setting_text(const struct setting *setting, const void *base)
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
    case SETTING_DATABASE:
        return text_or(setting, *(char *const *)member ? "(hidden)" : NULL);
    case SETTING_CACHE:
        return cache_text(member);
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
    case SETTING_PUBLISH:
        return text_or(setting, ((const struct publish *)member)->key);
    }
    return xstrdup("");
}
