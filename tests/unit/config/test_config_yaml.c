/* What the configuration in force looks like as a file: read again, it is the same. */
#include "config/config_yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config/config_reload.h"
#include "config/setting_value.h"
#include "fakes/config_file.h"

#include <stdlib.h>
#include <string.h>

#define KEYSPACES                                                                                  \
    "keyspaces:\n"                                                                                 \
    "  - {name: items, key: \"item:{id}\", table: '\"Odd \"\"name\"', value: '\"json\"',\n"        \
    "     where: \"a = '\\\\\\\"x\\\"' AND\\n b = '$${HOME}'\", false_positive_rate: 0.37%,\n"     \
    "     ttl: 90s, absent_value: \"\\u00e9\\u0007\", on_absent: value}\n"                         \
    "  - {name: \"null\", key: \"other:{a}:{b}\", table: s.others, value: json,\n"                 \
    "     publish: {key: \"p u b\", false_positive_rate: 3%, grow: true}}\n"                       \
    "  - {name: made, key: \"made:{a}\", table: t, value: '\"A\" || ''x'' -- \"'}\n"               \
    "  - {name: list, key: \"list:{a}\", table: t, fill: hash, value: [a, '\"b \"\"c\"', json]}\n"

static const char full[] =
    "listen: [127.0.0.1:7001, \"unix:/tmp/x.sock\"]\ncontrol: \"[::1]:7002\"\n"
    "control_token: t0ken\npassword: hunter2\nworkers: 3\n"
    "cache: redis://us%40er:s3cret@[::1]:6380/2\n"
    "database: \"host=db user=o\\\\'neill password=pa55 dbname='my shop'\"\n"
    "load_budget: 77\nmax_command: 1536kb\nmax_bulk: 1000b\n" KEYSPACES;

static char *yaml_of(const struct config *config)
{
    struct buffer out = {0};
    config_yaml(config, &out);
    return buffer_string(&out);
}

static void set_secrets(void)
{
    setenv("NESTGUARD_CONTROL_TOKEN", "t0ken", 1);
    setenv("NESTGUARD_PASSWORD", "hunter2", 1);
    setenv("NESTGUARD_CACHE", "s3cret", 1);
    setenv("NESTGUARD_DATABASE", "pa55", 1);
}

static void must_equal(const struct setting *row, const void *one, const void *other)
{
    for (; row->name; row++)
        if (!setting_equal(row, one, other))
            fail_msg("%s differs", row->name);
}

static void read_again_it_is_the_same(void **state)
{
    struct config *config = config_from_text(full);
    char *text = yaml_of(config);
    (void)state;
    set_secrets();
    struct config *again = config_from_text(text);
    must_equal(config_settings, config, again);
    assert_int_equal(again->keyspace_count, 4);
    assert_int_equal(again->keyspaces[3].columns.count, 3);
    assert_string_equal(again->keyspaces[3].columns.at[1], "b \"c");
    assert_string_equal(again->keyspaces[2].value_expression, "\"A\" || 'x' -- \"");
    for (size_t i = 0; i < 4; i++)
        must_equal(keyspace_settings, &config->keyspaces[i], &again->keyspaces[i]);
    char *same = yaml_of(again);
    assert_string_equal(same, text);
    free(same);
    free(text);
    config_destroy(again);
    config_destroy(config);
}

static void no_secret_is_in_it(void **state)
{
    static const char *const secrets[] = {"t0ken", "hunter2", "s3cret", "pa55"};
    struct config *config = config_from_text(full);
    char *text = yaml_of(config);
    (void)state;
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        assert_null(strstr(text, secrets[i]));
    assert_non_null(strstr(text, "\npassword: \"${NESTGUARD_PASSWORD}\"  # not shown\n"));
    assert_non_null(strstr(
        text, "\ncache: \"redis://us%40er:${NESTGUARD_CACHE}@[::1]:6380/2\"  # not shown\n"));
    free(text);
    config_destroy(config);
}

static const char *const caches[] = {
    "redis://h:1/0",
    "rediss://h:1/3",
    "unix:/tmp/cache?db=2",
    "redis-sentinel://a:1,[::2]:2/my%20master/1",
    "rediss-sentinel://:${NESTGUARD_CACHE}@a:1/m/0",
};

static void a_cache_of_any_form_is_written_as_it_is(void **state)
{
    (void)state;
    set_secrets();
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        char text[2000], line[200];
        snprintf(line, sizeof line, "\ncache: \"%s\"", caches[i]);
        snprintf(text, sizeof text, "database: dbname=x%s\n%s", line, KEYSPACES);
        struct config *config = config_from_text(text);
        char *yaml = yaml_of(config);
        if (!strstr(yaml, line))
            fail_msg("%s is not in %s", line, yaml);
        free(yaml);
        config_destroy(config);
    }
}

static void a_keyspace_that_was_removed_is_not_in_it(void **state)
{
    static const char head[] = "cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n"
                               "  - {name: items, key: \"item:{id}\", table: items, value: v}\n";
    static const char more[] = "  - {name: others, key: \"other:{id}\", table: items, value: v}\n";
    char both[500];
    struct setting_changes changes = {0};
    (void)state;
    snprintf(both, sizeof both, "%s%s", head, more);
    struct config *running = config_from_text(both), *wanted = config_from_text(head);
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    char *text = yaml_of(wanted);
    assert_non_null(strstr(text, "item:{id}"));
    assert_null(strstr(text, "other:{id}"));
    free(text);
    setting_changes_finish(&changes);
    config_destroy(running);
    config_destroy(wanted);
}

static void a_share_is_written_as_a_person_would(void **state)
{
    (void)state;
    struct config *config = config_from_text(
        "cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n"
        "  - {name: items, key: \"item:{id}\", table: items, value: v, max_shrink: 12.3456789%}\n");
    char *text = yaml_of(config);
    assert_non_null(strstr(text, "ttl_jitter: 0.1\n"));
    assert_non_null(strstr(text, "false_positive_rate: 0.0001\n"));
    assert_non_null(strstr(text, "max_shrink: 0.123456789\n"));
    free(text);
    config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_again_it_is_the_same),
        cmocka_unit_test(no_secret_is_in_it),
        cmocka_unit_test(a_cache_of_any_form_is_written_as_it_is),
        cmocka_unit_test(a_keyspace_that_was_removed_is_not_in_it),
        cmocka_unit_test(a_share_is_written_as_a_person_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
