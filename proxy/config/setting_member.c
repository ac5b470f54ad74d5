/* Comparing, copying and freeing the members that settings are stored in. */
#include "config/setting_value.h"

#include "base/memory.h"
#include "config/config.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

/* What was written differently but means the same is equal: a restart must not be asked for without
 * need. */

/* NULL is another text than "". */
static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* In the same order, which is that of the sockets. */
static bool same_listen(const struct config *a, const struct config *b)
{
    if (a->listens != b->listens)
        return false;
    for (size_t i = 0; i < a->listens; i++)
        if (!address_equal(&a->listen[i], &b->listen[i]))
            return false;
    return true;
}

/* Of two lists of the same keywords. */
static bool same_options(const PQconninfoOption *a, const PQconninfoOption *b)
{
    while (a->keyword && same_text(a->val, b->val)) {
        a++;
        b++;
    }
    return !a->keyword;
}

/* By what libpq reads in it; what it cannot read is compared as it stands. */
static bool same_database(const char *a, const char *b)
{
    PQconninfoOption *x = PQconninfoParse(a ? a : "", NULL), *y = PQconninfoParse(b ? b : "", NULL);
    bool same = x && y ? same_options(x, y) : same_text(a, b);
    PQconninfoFree(x);
    PQconninfoFree(y);
    return same;
}

static const char *word_of(const PQconninfoOption *option, const char *keyword)
{
    while (option && option->keyword && strcmp(option->keyword, keyword) != 0)
        option++;
    return option && option->keyword ? option->val : NULL;
}

bool setting_same_in_conninfo(const char *a, const char *b, const char *keyword)
{
    PQconninfoOption *x = PQconninfoParse(a ? a : "", NULL), *y = PQconninfoParse(b ? b : "", NULL);
    bool same = same_text(word_of(x, keyword), word_of(y, keyword));
    PQconninfoFree(x);
    PQconninfoFree(y);
    return same;
}

/* Without one the addresses are both empty. */
static bool same_control(const struct config *a, const struct config *b)
{
    return a->has_control == b->has_control && address_equal(&a->control, &b->control);
}

/* Not as it was written: `items` and "items" are one. */
static bool same_table(const struct keyspace *a, const struct keyspace *b)
{
    return same_text(a->table_schema, b->table_schema) && same_text(a->table_name, b->table_name);
}

/* In the same order, which is that of the fields. */
static bool same_columns(const struct column_list *a, const struct column_list *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        same = same_text(a->at[i], b->at[i]);
    return same;
}

static bool same_value(const struct keyspace *a, const struct keyspace *b)
{
    return same_columns(&a->columns, &b->columns) && a->value_is_json == b->value_is_json &&
           same_text(a->value, b->value) && same_text(a->value_expression, b->value_expression);
}

/* Row by row of its own table. */
static bool same_publish(const void *a, const void *b)
{
    const struct setting *row = publish_settings;
    while (row->name && setting_equal(row, a, b))
        row++;
    return !row->name;
}

/* Types whose member is a plain value of so many bytes, that compares byte by byte. */
static size_t plain_size(enum setting_type type)
{
    static const size_t sizes[] = {
        [SETTING_COUNT] = sizeof(unsigned),
        [SETTING_CHOICE] = sizeof(unsigned),
        [SETTING_DURATION] = sizeof(uint64_t),
        [SETTING_SIZE] = sizeof(size_t),
        [SETTING_SHARE] = sizeof(double),
        [SETTING_FLAG] = sizeof(bool),
        [SETTING_PUBLISH] = 0, /* the last type: those not named are 0, too */
    };
    return sizes[type];
}

/* `a` and `b` are what the setting's offset counts from: config, keyspace or publish. So in the
 * other two. */
bool setting_equal(const struct setting *setting, const void *a, const void *b)
{
    const void *x = (const char *)a + setting->offset, *y = (const char *)b + setting->offset;
    if (plain_size(setting->type))
        return memcmp(x, y, plain_size(setting->type)) == 0;
    switch (setting->type) {
    case SETTING_CACHE:
        return cache_url_equal(x, y);
    case SETTING_DATABASE:
        return same_database(*(char *const *)x, *(char *const *)y);
    case SETTING_CONTROL:
        return same_control(a, b);
    case SETTING_LISTEN:
        return same_listen(a, b);
    case SETTING_KEY:
        return same_text(((const struct key_template *)x)->text,
                         ((const struct key_template *)y)->text);
    case SETTING_TABLE:
        return same_table(a, b);
    case SETTING_VALUE:
        return same_value(a, b);
    case SETTING_DEPENDS:
        return dependencies_equal(x, y);
    case SETTING_PUBLISH:
        return same_publish(x, y);
    case SETTING_KEYSPACES: /* compared one by one, by their own rows */
        return true;
    default: /* a text */
        return same_text(*(char *const *)x, *(char *const *)y);
    }
}

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static void copy_listen(struct config *to, const struct config *from)
{
    to->listens = from->listens;
    to->listen = xcalloc(from->listens, sizeof *to->listen);
    for (size_t i = 0; i < from->listens; i++)
        address_copy(&to->listen[i], &from->listen[i]);
}

static void copy_key(struct key_template *to, const struct key_template *from)
{
    const char *error;
    if (key_template_parse(to, from->text, &error) < 0)
        abort(); /* the same text was parsed before */
}

static void copy_table(struct keyspace *to, const struct keyspace *from)
{
    to->table_text = copy_text(from->table_text);
    to->table_schema = copy_text(from->table_schema);
    to->table_name = copy_text(from->table_name);
}

static void copy_value(struct keyspace *to, const struct keyspace *from)
{
    to->value = copy_text(from->value);
    to->value_is_json = from->value_is_json;
    to->value_expression = copy_text(from->value_expression);
    to->columns.count = from->columns.count;
    to->columns.at = xcalloc(from->columns.count, sizeof *to->columns.at);
    for (size_t i = 0; i < from->columns.count; i++)
        to->columns.at[i] = copy_text(from->columns.at[i]);
}

static void copy_publish(struct publish *to, const struct publish *from)
{
    for (const struct setting *row = publish_settings; row->name; row++)
        setting_copy(row, to, from);
}

/* Every type is named, so that the compiler asks about a new one. */
void setting_copy(const struct setting *setting, void *to, const void *from)
{
    void *x = (char *)to + setting->offset;
    const void *y = (const char *)from + setting->offset;
    switch (setting->type) {
    case SETTING_COUNT:
    case SETTING_CHOICE:
        *(unsigned *)x = *(const unsigned *)y;
        break;
    case SETTING_DURATION:
        *(uint64_t *)x = *(const uint64_t *)y;
        break;
    case SETTING_SIZE:
        *(size_t *)x = *(const size_t *)y;
        break;
    case SETTING_SHARE:
        *(double *)x = *(const double *)y;
        break;
    case SETTING_FLAG:
        *(bool *)x = *(const bool *)y;
        break;
    case SETTING_VALUE:
        copy_value(to, from);
        break;
    case SETTING_DEPENDS:
        dependencies_copy(x, y);
        break;
    case SETTING_TEXT:
    case SETTING_NAME:
    case SETTING_SECRET:
    case SETTING_DATABASE:
        *(char **)x = copy_text(*(char *const *)y);
        break;
    case SETTING_CACHE:
        cache_url_copy(x, y);
        break;
    case SETTING_CONTROL:
        ((struct config *)to)->has_control = ((const struct config *)from)->has_control;
        address_copy(x, y);
        break;
    case SETTING_LISTEN:
        copy_listen(to, from);
        break;
    case SETTING_KEY:
        copy_key(x, y);
        break;
    case SETTING_TABLE:
        copy_table(to, from);
        break;
    case SETTING_PUBLISH:
        copy_publish(x, y);
        break;
    case SETTING_KEYSPACES:
        break;
    }
}

/* Zero again, so that it may be freed twice. */
static void finish_text(char **text)
{
    free(*text);
    *text = NULL;
}

static void finish_listen(struct config *config)
{
    for (size_t i = 0; i < config->listens; i++)
        address_finish(&config->listen[i]);
    free(config->listen);
    config->listen = NULL;
    config->listens = 0;
}

static void finish_table(struct keyspace *keyspace)
{
    finish_text(&keyspace->table_text);
    finish_text(&keyspace->table_schema);
    finish_text(&keyspace->table_name);
}

static void finish_value(struct keyspace *keyspace)
{
    finish_text(&keyspace->value);
    finish_text(&keyspace->value_expression);
    for (size_t i = 0; i < keyspace->columns.count; i++)
        free(keyspace->columns.at[i]);
    free(keyspace->columns.at);
    keyspace->columns = (struct column_list){0};
}

static void finish_publish(struct publish *publish)
{
    for (const struct setting *row = publish_settings; row->name; row++)
        setting_finish(row, publish);
}

void setting_finish(const struct setting *setting, void *base)
{
    void *member = (char *)base + setting->offset;
    switch (setting->type) {
    case SETTING_TEXT:
    case SETTING_NAME:
    case SETTING_SECRET:
    case SETTING_DATABASE:
        finish_text(member);
        break;
    case SETTING_VALUE:
        finish_value(base);
        break;
    case SETTING_DEPENDS:
        dependencies_finish(member);
        break;
    case SETTING_CACHE:
        cache_url_finish(member);
        break;
    case SETTING_CONTROL:
        address_finish(member);
        break;
    case SETTING_LISTEN:
        finish_listen(base);
        break;
    case SETTING_KEY:
        key_template_finish(member);
        break;
    case SETTING_TABLE:
        finish_table(base);
        break;
    case SETTING_PUBLISH:
        finish_publish(member);
        break;
    default: /* plain numbers */
        break;
    }
}
