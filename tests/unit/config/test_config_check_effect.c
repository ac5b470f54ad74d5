/* Settings that have no effect, or more than was meant: warned of, and the file is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/config_file.h"

#define BACKENDS "cache: redis://c\ndatabase: postgresql://d/e\n"
#define KEYSPACE(more)                                                                             \
    "keyspaces:\n  - {name: items, key: \"item:{id}\", table: items, value: v" more "}\n"
#define SOURCE(more)                                                                               \
    "cache: redis://c\nkeyspaces:\n  - {name: items, key: \"item:{id}\", on_miss: pass,\n"         \
    "     source: file:/tmp/keys" more "}\n"

/* Each finding in a line of its own, as "LINE: TEXT"; the file must be taken. */
static char *said_of(const char *text)
{
    char *said = NULL;
    size_t size;
    struct problems problems = {0};
    struct config *config = NULL;
    int status = config_load_text(&config, text, &problems);
    FILE *out = open_memstream(&said, &size);
    for (size_t i = 0; i < problems.count; i++)
        fprintf(out, "%s: %s\n", strrchr(problems.at[i].place, ':') + 1, problems.at[i].text);
    fclose(out);
    if (status)
        fail_msg("refused:\n%s", said);
    assert_int_equal(problems.errors, 0);
    config_destroy(config);
    problems_finish(&problems);
    return said;
}

static void must_say(const char *text, const char *wanted)
{
    char *said = said_of(text);
    assert_string_equal(said, wanted);
    free(said);
}

#define IDLE(line, name, without)                                                                  \
    line ": " name " has no effect without " without ": set that, or leave this line out\n"

static void what_another_setting_keeps_from_counting_is_named(void **state)
{
    (void)state;
    must_say(BACKENDS "poll_interval: 1h\n" KEYSPACE(""), IDLE("3", "poll_interval", "sync: poll"));
    must_say(BACKENDS "sync: poll\nmax_lag: 3s\npublication: other\n" KEYSPACE(""),
             IDLE("4", "max_lag", "sync: replication")
                 IDLE("5", "publication", "sync: replication"));
    must_say(BACKENDS "cache_max_lag: 2s\n" KEYSPACE(""),
             IDLE("3", "cache_max_lag", "cache_reads: replica"));
    must_say(BACKENDS "sentinel_user: u\n" KEYSPACE(""),
             IDLE("3", "sentinel_user", "a cache that sentinels know, redis-sentinel://"));
    must_say(BACKENDS "cache_ca_file: /x\n" KEYSPACE(""),
             IDLE("3", "cache_ca_file", "a cache that is asked by TLS, rediss://"));
    must_say(BACKENDS "tls_client_ca_file: /x\n" KEYSPACE(""),
             IDLE("3", "tls_client_ca_file", "an address of listen with tls:"));
    must_say(BACKENDS "unix_socket_mode: 666\n" KEYSPACE(""),
             IDLE("3", "unix_socket_mode", "an address of listen or control with unix:"));
    must_say(BACKENDS "control_token: t0ken\n" KEYSPACE(""), IDLE("3", "control_token", "control"));
}

static void so_is_what_counts_for_rows_alone(void **state)
{
    (void)state;
    must_say(SOURCE(""), "");
    must_say("database: postgresql://d/e\nmax_lag: 3s\n" SOURCE(""),
             IDLE("1", "database", "a keyspace with a table or a query")
                 IDLE("2", "max_lag", "a keyspace with a table or a query"));
}

static void so_is_one_of_a_keyspace(void **state)
{
    (void)state;
    must_say(BACKENDS KEYSPACE(", absent_value: x"), IDLE("4", "absent_value", "on_absent: value"));
    must_say(BACKENDS KEYSPACE(", min_keys: 5, settle: 1s"),
             IDLE("4", "min_keys", "source") IDLE("4", "settle", "source: file:"));
    must_say(BACKENDS KEYSPACE(", on_miss: pass, ttl: 1h, ttl_jitter: 0.2"),
             IDLE("4", "ttl", "on_miss: load") IDLE("4", "ttl_jitter", "on_miss: load"));
    must_say(BACKENDS KEYSPACE(", ttl: 0, ttl_jitter: 0.2"), IDLE("4", "ttl_jitter", "a ttl"));
}

static void what_counts_or_is_the_default_is_not(void **state)
{
    (void)state;
    must_say(BACKENDS "poll_interval: 10m\nmax_lag: 1s\n" KEYSPACE(", min_keys: 1, ttl: 10m"), "");
    must_say(BACKENDS "sync: poll\npoll_interval: 1h\n" KEYSPACE(""), "");
    must_say(BACKENDS "sync: none\npoll_interval: 1h\n" KEYSPACE(""), "");
    must_say(BACKENDS "max_lag: 3s\n" KEYSPACE(", on_absent: value, absent_value: x, ttl: 0,"
                                               " ttl_expression: \"60\", ttl_jitter: 0.2"),
             "");
    must_say(SOURCE(", min_keys: 5, settle: 1s, max_shrink: 10%"), "");
}

static void a_key_that_takes_in_every_other_is_named(void **state)
{
    static const char *const broad[] = {"{id}", "{id}:", "{a}:{b}"};
    static const char *const told[] = {"item:{id}", "{id}:item", "{a}/of/{b}", "{{{id}}}x"};
    char text[500];
    (void)state;
    for (size_t i = 0; i < sizeof broad / sizeof *broad; i++) {
        snprintf(text, sizeof text,
                 BACKENDS "keyspaces:\n  - {name: items, key: \"%s\","
                          " table: items, value: v}\n",
                 broad[i]);
        char *said = said_of(text);
        assert_memory_equal(said, "4: key", strlen("4: key"));
        assert_non_null(strstr(said, i ? "every key of such a form" : "every key of the cache"));
        assert_non_null(strstr(said, "items:"));
        free(said);
    }
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        snprintf(text, sizeof text,
                 BACKENDS "keyspaces:\n  - {name: items, key: \"%s\","
                          " table: items, value: v}\n",
                 told[i]);
        must_say(text, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_another_setting_keeps_from_counting_is_named),
        cmocka_unit_test(so_is_what_counts_for_rows_alone),
        cmocka_unit_test(so_is_one_of_a_keyspace),
        cmocka_unit_test(what_counts_or_is_the_default_is_not),
        cmocka_unit_test(a_key_that_takes_in_every_other_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
