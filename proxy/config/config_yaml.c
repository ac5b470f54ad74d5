/* A configuration as a file that could be read again.
 *
 *   a row of a table that has a value ─▶ name: number or word, where YAML can take it for no other
 *                                     ─▶ name: "text", everywhere else
 *                                     ─▶ name: a list, or the rows of the next table, indented
 */
#include "config/config_yaml.h"

#include "base/memory.h"
#include "base/text/identifier.h"
#include "config/setting_value.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Stands for a secret until its line is written: the variable is named after the setting, which is
 * not known where the text is made. Nobody writes such a character into a file. */
static const char secret[] = "\x01";

struct writer {
    struct buffer *out;
    const char *indent, *first; /* before each line, and before the first */
};

static void begin_line(struct writer *writer, const char *name)
{
    buffer_printf(writer->out, "%s%s:", writer->first, name);
    writer->first = writer->indent;
}

/* ---- values ---- */

static void append_variable(struct buffer *out, const char *name)
{
    buffer_printf(out, "${NESTGUARD_");
    for (; *name; name++)
        buffer_printf(out, "%c", toupper((unsigned char)*name));
    buffer_printf(out, "%s", "}");
}

/* In double quotes, as YAML has them; `$${` is for what reads variables. `of` has a secret; or
 * NULL. */
static void append_quoted(struct buffer *out, const char *text, const char *of)
{
    buffer_append(out, "\"", 1);
    for (; *text; text++) {
        if (of && *text == *secret)
            append_variable(out, of);
        else if (*text == '"' || *text == '\\')
            buffer_printf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            buffer_printf(out, "\\x%02X", (unsigned)*text);
        else
            buffer_printf(out, "%s%c", strncmp(text, "${", 2) == 0 ? "$" : "", *text);
    }
    buffer_append(out, "\"", 1);
}

/* As few digits as lead back to the same number: a person has written 0.1. */
static char *share_text(double share)
{
    char text[32];
    int digits = 6;
    do
        snprintf(text, sizeof text, "%.*g", digits, share);
    while (strtod(text, NULL) != share && digits++ < 17);
    return xstrdup(text);
}

/* A column is quoted as SQL has it, so that none is taken for the word `json`. */
static char *text_of(const struct setting *setting, const void *base)
{
    const struct keyspace *keyspace = base;
    if (setting->type == SETTING_SHARE)
        return share_text(*(const double *)((const char *)base + setting->offset));
    if (setting->type == SETTING_VALUE && keyspace->value)
        return identifier_quote(keyspace->value);
    return setting_text_hiding(setting, base, secret);
}

/* Numbers, units and words of the tables: YAML reads those as they are. */
static bool is_plain(enum setting_type type)
{
    return type == SETTING_COUNT || type == SETTING_DURATION || type == SETTING_SIZE ||
           type == SETTING_SHARE || type == SETTING_FLAG || type == SETTING_CHOICE;
}

static void write_value(struct writer *writer, const struct setting *setting, const void *base)
{
    char *text = text_of(setting, base);
    begin_line(writer, setting->name);
    buffer_append(writer->out, " ", 1);
    if (is_plain(setting->type))
        buffer_printf(writer->out, "%s", text);
    else
        append_quoted(writer->out, text, setting_is_secret(setting) ? setting->name : NULL);
    bool hides = setting_is_secret(setting) && strstr(text, secret);
    buffer_printf(writer->out, hides ? "  # not shown\n" : "\n");
    free(text);
}

static void write_listen(struct writer *writer, const struct config *config)
{
    begin_line(writer, "listen");
    for (size_t i = 0; i < config->listens; i++) {
        buffer_printf(writer->out, "%s", i ? ", " : " [");
        append_quoted(writer->out, config->listen[i].text, NULL);
    }
    buffer_printf(writer->out, "]\n");
}

/* Each quoted as SQL has it, too. */
static void write_columns(struct writer *writer, const struct column_list *columns)
{
    begin_line(writer, "value");
    for (size_t i = 0; i < columns->count; i++) {
        char *name = identifier_quote(columns->at[i]);
        buffer_printf(writer->out, "%s", i ? ", " : " [");
        append_quoted(writer->out, name, NULL);
        free(name);
    }
    buffer_printf(writer->out, "]\n");
}

static void write_depends(struct writer *writer, const struct dependencies *depends)
{
    begin_line(writer, "depends");
    for (size_t i = 0; i < depends->count; i++) {
        buffer_printf(writer->out, "%s", i ? ", " : " [");
        append_quoted(writer->out, depends->at[i].text, NULL);
    }
    buffer_printf(writer->out, "]\n");
}

/* ---- tables ---- */

static void write_table(struct writer *writer, const struct setting *table, const void *base);

static void write_publish(struct writer *writer, const struct setting *setting, const void *base)
{
    static const char indent[] = "      ";
    struct writer inner = {writer->out, indent, indent};
    begin_line(writer, setting->name);
    buffer_printf(writer->out, "\n");
    write_table(&inner, publish_settings, (const char *)base + setting->offset);
}

static void write_keyspaces(struct writer *writer, const struct config *config)
{
    begin_line(writer, "keyspaces");
    buffer_printf(writer->out, "\n");
    for (size_t i = 0; i < config->keyspace_count; i++) {
        struct writer inner = {writer->out, "    ", "  - "};
        if (!config->keyspaces[i].retired)
            write_table(&inner, keyspace_settings, &config->keyspaces[i]);
    }
}

static void write_setting(struct writer *writer, const struct setting *setting, const void *base)
{
    if (!setting_is_there(setting, base))
        return;
    if (setting->type == SETTING_LISTEN)
        write_listen(writer, base);
    else if (setting->type == SETTING_KEYSPACES)
        write_keyspaces(writer, base);
    else if (setting->type == SETTING_VALUE && ((const struct keyspace *)base)->columns.count)
        write_columns(writer, &((const struct keyspace *)base)->columns);
    else if (setting->type == SETTING_DEPENDS)
        write_depends(writer, &((const struct keyspace *)base)->depends);
    else if (setting->type == SETTING_PUBLISH)
        write_publish(writer, setting, base);
    else
        write_value(writer, setting, base);
}

static void write_table(struct writer *writer, const struct setting *table, const void *base)
{
    for (; table->name; table++)
        write_setting(writer, table, base);
}

void config_yaml(const struct config *config, struct buffer *out)
{
    struct writer writer = {out, "", ""};
    write_table(&writer, config_settings, config);
}
