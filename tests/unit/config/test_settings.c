/* The tables of settings, and the sample file that must agree with them. */
#include "config/config.h"
#include "config/setting_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* deploy/nestguard.yaml, seen from this file. */
static FILE *open_sample(char path[1000])
{
    snprintf(path, 1000, "%s/deploy/nestguard.yaml", SOURCE_ROOT);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    return file;
}

typedef void (*row_test)(const struct setting *row, void *base);

static void for_each_row(row_test test)
{
    union {
        struct config config;
        struct keyspace keyspace;
        struct publish publish;
    } base;
    const struct setting *const tables[] = {config_settings, keyspace_settings, publish_settings};
    for (size_t t = 0; t < 3; t++) {
        for (const struct setting *row = tables[t]; row->name; row++) {
            memset(&base, 0, sizeof base);
            test(row, &base);
            setting_finish(row, &base);
        }
    }
}

static void check_default(const struct setting *row, void *base)
{
    struct setting_error error;
    assert_true(!row->required + !row->standard + !row->otherwise == 2);
    if (row->standard && setting_read(row, base, row->standard, &error))
        fail_msg("%s: %s", row->name, error.text);
}

static void a_default_or_its_absence_is_stated_and_valid(void **state)
{
    (void)state;
    for_each_row(check_default);
}

static bool has_bounds(const struct setting *row)
{
    return row->type == SETTING_COUNT || row->type == SETTING_DURATION ||
           row->type == SETTING_SIZE || row->type == SETTING_SHARE;
}

static void check_bounds(const struct setting *row, void *base)
{
    struct setting_error error;
    if (!has_bounds(row))
        return;
    if (setting_read(row, base, row->least, &error) || setting_read(row, base, row->most, &error))
        fail_msg("%s: %s", row->name, error.text);
}

static void bounds_are_values_of_their_type(void **state)
{
    (void)state;
    for_each_row(check_bounds);
}

static void check_words(const struct setting *row, void *base)
{
    (void)base;
    assert_true(row->help && strlen(row->help) > 10);
    assert_non_null(setting_type_name(row->type));
    assert_int_equal(row->type == SETTING_CHOICE, row->choices != NULL);
    bool inside = setting_index(keyspace_settings, row->name) >= 0;
    bool outside = setting_index(config_settings, row->name) >= 0;
    bool deeper = setting_index(publish_settings, row->name) >= 0; /* behind a name of its own */
    assert_true(inside != outside || deeper);                      /* a name means one thing */
}

static void every_setting_has_help_and_a_name_of_its_own(void **state)
{
    (void)state;
    for_each_row(check_words);
    assert_int_equal(setting_index(config_settings, "name"), -1);
    assert_int_equal(setting_index(config_settings, ""), -1);
}

static void the_nearest_name_is_suggested(void **state)
{
    (void)state;
    assert_string_equal(setting_similar(config_settings, "databse")->name, "database");
    assert_string_equal(setting_similar(config_settings, "LISTEN")->name, "listen");
    assert_string_equal(setting_similar(config_settings, "keyspace")->name, "keyspaces");
    assert_string_equal(setting_similar(keyspace_settings, "on_mis")->name, "on_miss");
    assert_null(setting_similar(config_settings, "something else"));
    assert_null(setting_similar(config_settings, ""));
}

static void the_kinds_of_filter_are_called_as_the_filters_call_them(void **state)
{
    (void)state;
    const struct setting *row = &keyspace_settings[setting_index(keyspace_settings, "filter")];
    enum filter_kind kind = 0;
    for (; filter_kind_name(kind); kind++)
        assert_string_equal(row->choices[kind], filter_kind_name(kind));
    assert_null(row->choices[kind]);
}

static void the_formats_are_called_as_the_filters_call_them(void **state)
{
    (void)state;
    const struct setting *row = &publish_settings[setting_index(publish_settings, "format")];
    for (unsigned format = 0; format < BITMAP_FORMATS; format++)
        assert_string_equal(row->choices[format], bitmap_format_name((enum bitmap_format)format));
    assert_null(row->choices[BITMAP_FORMATS]);
}

static void help_lists_every_setting(void **state)
{
    (void)state;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    config_print_settings(out);
    fclose(out);
    for (const struct setting *row = config_settings; row->name; row++)
        assert_non_null(strstr(text, row->name));
    for (const struct setting *row = keyspace_settings; row->name; row++)
        assert_non_null(strstr(text, row->name));
    for (const struct setting *row = publish_settings; row->name; row++)
        assert_non_null(strstr(text, row->name));
    assert_non_null(strstr(text, "duration, 10ms to 1h; default 1s"));
    assert_non_null(strstr(text, "one of nil | error | value; default nil"));
    assert_null(strstr(text, "(null)"));
    free(text);
}

/* The sample file */

static struct config *load(const char *path)
{
    struct problems problems = {0};
    struct config *config;
    if (config_load(&config, path, &problems)) {
        problems_print(&problems, stderr);
        fail_msg("%s is refused", path);
    }
    assert_int_equal(problems.count, 0);
    return config;
}

static void the_sample_loads(void **state)
{
    (void)state;
    char path[1000];
    fclose(open_sample(path));
    config_destroy(load(path));
}

/* A line of the sample as a setting: "name: value", "- name: value", or either after "#". */
struct sample_line {
    char name[64], value[200];
    bool inside, given;
};

static bool read_line(const char *text, struct sample_line *out)
{
    size_t indent = strspn(text, " ");
    const char *at = text + indent;
    out->given = *at != '#';
    at += !out->given;
    if (strncmp(at, "- ", 2) == 0)
        at += 2;
    out->inside = indent > 0;
    size_t name = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
    if (name == 0 || name >= sizeof out->name || at[name] != ':')
        return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)name, at);
    at += name + 1;
    at += strspn(at, " ");
    snprintf(out->value, sizeof out->value, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

static void check_sample_line(const struct sample_line *line, bool (*seen)[SETTINGS_MAX])
{
    const struct setting *table = line->inside ? keyspace_settings : config_settings;
    int index = setting_index(table, line->name);
    if (index < 0)
        fail_msg("the sample has %s, which is no setting", line->name);
    if (seen[line->inside][index])
        fail_msg("the sample has %s twice", line->name);
    seen[line->inside][index] = true;
    if (!line->given && table[index].required)
        fail_msg("the sample leaves %s out, which is required", line->name);
    if (!line->given && table[index].standard)
        assert_string_equal(line->value, table[index].standard);
}

static void the_sample_shows_every_setting_and_its_default(void **state)
{
    (void)state;
    char path[1000], text[300];
    bool seen[2][SETTINGS_MAX] = {{false}};
    struct sample_line line;
    FILE *file = open_sample(path);
    while (fgets(text, sizeof text, file))
        if (read_line(text, &line))
            check_sample_line(&line, seen);
    fclose(file);
    const struct setting *const tables[] = {config_settings, keyspace_settings};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; tables[t][i].name; i++)
            if (!seen[t][i])
                fail_msg("the sample says nothing of %s", tables[t][i].name);
}

/* The sample with each # before a setting taken away, but of what is in the place of another. */
static void write_uncommented(FILE *sample, int fd)
{
    char text[300];
    struct sample_line line;
    while (fgets(text, sizeof text, sample)) {
        char *mark = read_line(text, &line) && !line.given ? strchr(text, '#') : NULL;
        if (mark && strcmp(line.name, "source") != 0 && strcmp(line.name, "query") != 0)
            memmove(mark, mark + 1, strlen(mark));
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    }
}

static void what_the_sample_leaves_out_could_be_put_in(void **state)
{
    (void)state;
    char path[1000], copy[] = "/tmp/nestguard-test-XXXXXX";
    setenv("NESTGUARD_TOKEN", "t0ken", 1);
    setenv("NESTGUARD_PASSWORD", "hunter2", 1);
    setenv("NESTGUARD_SENTINEL_PASSWORD", "a password", 1);
    FILE *sample = open_sample(path);
    int fd = mkstemp(copy);
    assert_true(fd >= 0);
    write_uncommented(sample, fd);
    fclose(sample);
    close(fd);

    struct problems problems = {0};
    struct config *config;
    int status = config_load(&config, copy, &problems);
    unlink(copy);
    assert_int_equal(status, 0); /* some of them have no effect together: warnings */
    assert_int_equal(problems.errors, 0);
    config_destroy(config);
    problems_finish(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_default_or_its_absence_is_stated_and_valid),
        cmocka_unit_test(bounds_are_values_of_their_type),
        cmocka_unit_test(every_setting_has_help_and_a_name_of_its_own),
        cmocka_unit_test(the_nearest_name_is_suggested),
        cmocka_unit_test(the_kinds_of_filter_are_called_as_the_filters_call_them),
        cmocka_unit_test(the_formats_are_called_as_the_filters_call_them),
        cmocka_unit_test(help_lists_every_setting),
        cmocka_unit_test(the_sample_loads),
        cmocka_unit_test(the_sample_shows_every_setting_and_its_default),
        cmocka_unit_test(what_the_sample_leaves_out_could_be_put_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
