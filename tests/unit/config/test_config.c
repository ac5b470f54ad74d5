#include "config/config_reload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULTS                                                                                   \
    "cache: redis://127.0.0.1\n"                                                                   \
    "database: postgresql://app@db/shop\n"                                                         \
    "keyspaces:\n"                                                                                 \
    "  - name: items\n"                                                                            \
    "    key: \"item:{id}\"\n"                                                                     \
    "    table: public.items\n"                                                                    \
    "    value: payload\n"

enum { DEFAULT_LINES = 7 };

/* What loading a text gave; problems as "LINE: TEXT" lines. */
struct outcome {
    int status;
    struct config *config;
    char problems[8000];
    size_t count;
};

static void describe(struct outcome *out, const struct problems *problems, const char *path)
{
    size_t used = 0;
    out->count = problems->count;
    for (size_t i = 0; i < problems->count; i++) {
        const char *place = problems->at[i].place;
        assert_memory_equal(place, path, strlen(path));
        used += (size_t)snprintf(out->problems + used, sizeof out->problems - used, "%s: %s\n",
                                 place + strlen(path) + (place[strlen(path)] == ':'),
                                 problems->at[i].text);
        assert_true(used < sizeof out->problems);
    }
}

static struct outcome load_file(const char *path)
{
    struct problems problems = {0};
    struct outcome out = {0};
    out.status = config_load(&out.config, path, &problems);
    assert_int_equal(out.status != 0, problems.errors > 0);
    assert_int_equal(out.status != 0, out.config == NULL);
    describe(&out, &problems, path);
    problems_finish(&problems);
    return out;
}

static struct outcome load_bytes(const char *bytes, size_t length)
{
    char path[] = "/tmp/nestguard-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
    struct outcome out = load_file(path);
    unlink(path);
    return out;
}

/* With so many warnings. */
static struct config *loaded_with(const char *text, size_t warnings)
{
    struct outcome out = load_bytes(text, strlen(text));
    if (out.status)
        fail_msg("refused:\n%s", out.problems);
    assert_int_equal(out.count, warnings);
    return out.config;
}

static struct config *loaded(const char *text)
{
    return loaded_with(text, 0);
}

/* The text must give exactly these problems. */
static void must_report(const char *text, const char *wanted)
{
    struct outcome out = load_bytes(text, strlen(text));
    config_destroy(out.config);
    assert_string_equal(out.problems, wanted);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        count++;
        text++;
    }
    return count;
}

/* The text must give one problem, in this line, and each of the words must be in it. */
static void must_report_one(const char *text, int line, const char *words[])
{
    struct outcome out = load_bytes(text, strlen(text));
    char place[20];
    snprintf(place, sizeof place, "%d: ", line);
    config_destroy(out.config);
    if (out.count != 1 || strncmp(out.problems, place, strlen(place)) != 0)
        fail_msg("one problem in line %d is wanted, not:\n%s\nof:\n%s", line, out.problems, text);
    for (; *words; words++)
        if (!strstr(out.problems, *words))
            fail_msg("\"%s\" is not said in:\n%s", *words, out.problems);
}

#define WORDS(...) ((const char *[]){__VA_ARGS__, NULL})

/* A line added to a file that is right must give one problem. */
static void must_refuse_line(const char *line, const char *words[])
{
    char text[4000];
    snprintf(text, sizeof text, "%s%s\n", DEFAULTS, line);
    must_report_one(text, DEFAULT_LINES + 1, words);
}

static void the_rest_has_defaults(void **state)
{
    (void)state;
    struct config *c = loaded(DEFAULTS);
    assert_int_equal(c->listens, 1);
    assert_string_equal(c->listen[0].text, "127.0.0.1:6380");
    assert_false(c->has_control);
    assert_null(c->control_token);
    assert_null(c->password);
    assert_in_range(c->workers, 1, 256);
    assert_int_equal(c->sync, SYNC_REPLICATION);
    assert_int_equal(c->poll_interval_ms, 600000);
    assert_int_equal(c->max_lag_ms, 1000);
    assert_string_equal(c->publication, "nestguard");
    assert_int_equal(c->build_connections, 2);
    assert_int_equal(c->load_connections, 4);
    assert_int_equal(c->load_timeout_ms, 2000);
    assert_int_equal(c->load_budget, 200);
    assert_int_equal(c->cache_timeout_ms, 5000);
    assert_int_equal(c->cache_connections, 2);
    assert_int_equal(c->max_clients, 10000);
    assert_int_equal(c->max_arguments, 1048576);
    assert_int_equal(c->max_bulk, 512 << 20);
    assert_int_equal(c->max_command, 1 << 30);
    assert_int_equal(c->max_output, 64 << 20);
    assert_int_equal(c->output_timeout_ms, 30000);
    assert_int_equal(c->hint_ttl_ms, 10000);
    assert_int_equal(c->max_hints, 1000000);
    assert_int_equal(c->max_known_absent, 100000);
    assert_int_equal(c->max_filter_memory, 0);
    assert_int_equal(c->drain_timeout_ms, 10000);
    config_destroy(c);
}

static void a_keyspace_has_defaults(void **state)
{
    (void)state;
    struct config *c = loaded(DEFAULTS);
    assert_int_equal(c->keyspace_count, 1);
    struct keyspace *k = &c->keyspaces[0];
    assert_string_equal(k->name, "items");
    assert_string_equal(k->key.text, "item:{id}");
    assert_string_equal(k->table_text, "public.items");
    assert_string_equal(k->table_schema, "public");
    assert_string_equal(k->table_name, "items");
    assert_string_equal(k->value, "payload");
    assert_false(k->value_is_json);
    assert_null(k->where);
    assert_int_equal(k->ttl_ms, 600000);
    assert_float_equal(k->ttl_jitter, 0.1, 1e-12);
    assert_float_equal(k->false_positive_rate, 1e-4, 1e-15);
    assert_int_equal(k->filter, FILTER_CUCKOO);
    assert_int_equal(k->on_absent, ABSENT_NIL);
    assert_null(k->absent_value);
    assert_int_equal(k->on_miss, MISS_LOAD);
    assert_true(k->enforce);
    assert_int_equal(k->line, 4);
    config_destroy(c);
}

#define PUBLISH(settings)                                                                          \
    "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n"                                   \
    "  - {name: items, key: \"item:{id}\", table: items, value: payload,\n"                        \
    "     publish: " settings "}\n"

static void what_is_published_is_a_mapping_with_defaults(void **state)
{
    (void)state;
    struct config *c = loaded(PUBLISH("{key: published}"));
    struct publish *publish = &c->keyspaces[0].publish;
    assert_string_equal(publish->key, "published");
    assert_int_equal(publish->format, BITMAP_GUAVA_64);
    assert_float_equal(publish->false_positive_rate, 0.01, 1e-12);
    assert_int_equal(publish->items, PUBLISH_COLUMNS);
    assert_false(publish->grow);
    config_destroy(c);
    c = loaded(PUBLISH("{key: p, format: bkdr-sdbm-js, items: key, grow: true,\n"
                       "      false_positive_rate: 0.0005}"));
    assert_int_equal(c->keyspaces[0].publish.format, BITMAP_CLASSIC);
    assert_int_equal(c->keyspaces[0].publish.items, PUBLISH_KEY);
    assert_true(c->keyspaces[0].publish.grow);
    config_destroy(c);
}

static void what_cannot_be_published_is_named(void **state)
{
    (void)state;
    must_report_one(PUBLISH("published"), 5, WORDS("publish", "mapping"));
    must_report_one(PUBLISH("{format: bkdr-sdbm-js}"), 5, WORDS("key", "missing"));
    must_report_one(PUBLISH("{key: p, formt: x}"), 5, WORDS("formt", "format"));
    must_report_one(PUBLISH("{key: \"item:all\"}"), 5, WORDS("item:all", "guarded key", "items"));
    must_report_one("sync: poll\n" PUBLISH("{key: p}"), 6, WORDS("sync: replication"));
    must_report_one(
        PUBLISH(
            "{key: p}") "  - {name: others, key: \"other:{id}\", table: others, value: payload,\n"
                        "     publish: {key: \"p-3\"}}\n",
        7, WORDS("p-3", "\"p\"", "items"));
}

#define QUERY(sync, more)                                                                          \
    "cache: redis://cache\ndatabase: postgresql://app@db/shop\nsync: " sync "\nkeyspaces:\n"       \
    "  - name: items\n    key: \"item:{id}\"\n    value: payload\n"                                \
    "    query: |\n      SELECT id, payload FROM a\n      UNION SELECT * FROM b -- both\n" more

static void a_query_stands_in_place_of_a_table(void **state)
{
    (void)state;
    struct config *c = loaded(QUERY("poll", "    where: id > 5\n"));
    assert_string_equal(c->keyspaces[0].query,
                        "SELECT id, payload FROM a\nUNION SELECT * FROM b -- both\n");
    assert_null(c->keyspaces[0].table_name);
    assert_string_equal(c->keyspaces[0].where, "id > 5");
    assert_true(keyspace_has_rows(&c->keyspaces[0]));
    config_destroy(c);
    must_report_one(QUERY("replication", ""), 8, WORDS("query", "sync: poll or none", "table"));
    must_report_one(QUERY("poll", "    table: items\n"), 8, WORDS("query", "in place of table"));
}

static void every_setting_is_read(void **state)
{
    (void)state;
    struct config *c =
        loaded_with("listen: [127.0.0.1:1, '[::1]:2', unix:/tmp/s]\n"
                    "control: 0.0.0.0:3\n"
                    "control_token: t0ken\n"
                    "password: hunter2\n"
                    "workers: 3\n"
                    "cache: redis://u:p@h:4/5\n"
                    "database: host=/run dbname=shop\n"
                    "sync: poll\n"
                    "poll_interval: 2h\n"
                    "max_lag: 250ms\n"
                    "publication: Shop.items-2\n"
                    "load_connections: 6\n"
                    "load_timeout: 7s\n"
                    "load_budget: 8\n"
                    "max_bulk: 64kb\n"
                    "max_command: 1mb\n"
                    "keyspaces:\n"
                    "- name: a\n"
                    "  key: a:{x}:{y}\n"
                    "  table: '\"T\"'\n"
                    "  where: deleted_at IS NULL\n"
                    "  value: json\n"
                    "  ttl: 0\n"
                    "  ttl_jitter: 0.25\n"
                    "  false_positive_rate: 0.01%\n"
                    "  on_absent: value\n"
                    "  absent_value: ''\n"
                    "  enforce: false\n"
                    "- {name: b, key: 'b:{x}', table: t, on_miss: pass, on_absent: error,"
                    " false_positive_rate: 1e-4}\n",
                    3);
    assert_int_equal(c->listens, 3);
    assert_string_equal(c->listen[1].host, "::1");
    assert_string_equal(c->listen[2].path, "/tmp/s");
    assert_true(c->has_control);
    assert_int_equal(c->control.port, 3);
    assert_string_equal(c->control_token, "t0ken");
    assert_string_equal(c->password, "hunter2");
    assert_int_equal(c->workers, 3);
    assert_string_equal(c->cache.password, "p");
    assert_int_equal(c->cache.db, 5);
    assert_string_equal(c->database, "host=/run dbname=shop");
    assert_int_equal(c->sync, SYNC_POLL);
    assert_string_equal(sync_mode_name(c->sync), "poll");
    assert_int_equal(c->poll_interval_ms, 7200000);
    assert_int_equal(c->max_lag_ms, 250);
    assert_string_equal(c->publication, "Shop.items-2");
    assert_int_equal(c->max_bulk, 65536);
    const struct keyspace *a = &c->keyspaces[0], *b = &c->keyspaces[1];
    assert_int_equal(a->key.columns, 2);
    assert_null(a->table_schema);
    assert_string_equal(a->table_name, "T");
    assert_string_equal(a->where, "deleted_at IS NULL");
    assert_true(a->value_is_json);
    assert_null(a->value);
    assert_int_equal(a->ttl_ms, 0);
    assert_float_equal(a->ttl_jitter, 0.25, 1e-12);
    assert_int_equal(a->on_absent, ABSENT_VALUE);
    assert_string_equal(a->absent_value, "");
    assert_false(a->enforce);
    assert_int_equal(b->on_miss, MISS_PASS);
    assert_int_equal(b->on_absent, ABSENT_ERROR);
    assert_null(b->value);
    assert_float_equal(a->false_positive_rate, b->false_positive_rate, 1e-15);
    assert_int_equal(b->line, 29);
    config_destroy(c);
}

static void variables_come_from_the_environment(void **state)
{
    (void)state;
    setenv("NESTGUARD_TEST_A", "se", 1);
    setenv("NESTGUARD_TEST_B", "127.0.0.1:7", 1);
    struct config *c = loaded(DEFAULTS "password: x${NESTGUARD_TEST_A}-${NESTGUARD_TEST_A}$\n"
                                       "listen: ['${NESTGUARD_TEST_B}']\n"
                                       "control: 127.0.0.1:8\n"
                                       "control_token: $${NESTGUARD_TEST_A}$$\n");
    assert_string_equal(c->password, "xse-se$");
    assert_string_equal(c->listen[0].text, "127.0.0.1:7");
    assert_string_equal(c->control_token, "${NESTGUARD_TEST_A}$$");
    config_destroy(c);
}

static void a_variable_is_replaced_once_only(void **state)
{
    (void)state;
    setenv("NESTGUARD_TEST_A", "${NESTGUARD_TEST_B}: [x", 1);
    struct config *c = loaded(DEFAULTS "password: ${NESTGUARD_TEST_A}\n");
    assert_string_equal(c->password, "${NESTGUARD_TEST_B}: [x");
    config_destroy(c);
}

static void mistakes_with_variables_are_reported(void **state)
{
    (void)state;
    unsetenv("NESTGUARD_TEST_UNSET");
    setenv("NESTGUARD_TEST_EMPTY", "", 1);
    must_refuse_line("password: a${NESTGUARD_TEST_UNSET}",
                     WORDS("NESTGUARD_TEST_UNSET", "not set"));
    must_refuse_line("max_lag: ${NESTGUARD_TEST_UNSET}", WORDS("NESTGUARD_TEST_UNSET", "not set"));
    must_refuse_line("password: ${NESTGUARD_TEST_EMPTY}", WORDS("password", "must not be empty"));
    must_refuse_line("password: ${A", WORDS("${NAME}"));
    must_refuse_line("password: ${}", WORDS("${NAME}"));
    must_refuse_line("password: ${1A}", WORDS("${NAME}"));
    must_refuse_line("password: ${A-B}", WORDS("${NAME}"));
}

static void wrong_values_name_the_setting_and_what_is_allowed(void **state)
{
    (void)state;
    must_refuse_line("workers: many", WORDS("workers \"many\"", "whole number"));
    must_refuse_line("workers: 0", WORDS("from 1 to 256"));
    must_refuse_line("workers: 257", WORDS("from 1 to 256"));
    must_refuse_line("workers: 4294967297", WORDS("from 1 to 256"));
    must_refuse_line("max_lag: 10", WORDS("max_lag \"10\"", "250ms"));
    must_refuse_line("max_lag: 1d", WORDS("from 10ms to 1h"));
    must_refuse_line("publication: a b", WORDS("publication \"a b\"", "letters, digits"));
    must_refuse_line("publication: ''", WORDS("publication", "1 to 63"));
    must_refuse_line("max_bulk: 5 apples", WORDS("512mb"));
    must_refuse_line("max_output: 65tb", WORDS("from 1kb to 64gb"));
    must_refuse_line("sync: sometimes", WORDS("replication, poll or none"));
    must_refuse_line("sync: Poll", WORDS("replication, poll or none"));
    must_refuse_line("listen: 6380", WORDS("listen \"6380\"", "HOST:PORT"));
    must_refuse_line("listen: []", WORDS("at least one"));
    must_refuse_line("listen: [a:1, [b:2]]", WORDS("not a list"));
    must_refuse_line("control: 127.0.0.1:70000", WORDS("1 to 65535"));
    must_refuse_line("    ttl_jitter: 101%", WORDS("from 0% to 100%"));
    must_refuse_line("    ttl_jitter: -1%", WORDS("share"));
    must_refuse_line("    false_positive_rate: 0", WORDS("from 0.0000001 to 0.03"));
    must_refuse_line("    false_positive_rate: 4%", WORDS("from 0.0000001 to 0.03"));
    must_refuse_line("    on_absent: null", WORDS("on_absent has no value"));
    must_refuse_line("    on_absent: none", WORDS("nil, error or value"));
    must_refuse_line("    on_miss: nothing", WORDS("load or pass"));
    must_refuse_line("    enforce: yes", WORDS("true or false"));
    must_refuse_line("    ttl: 3651d", WORDS("from 0 to 3650d"));
    must_refuse_line("    where: ''", WORDS("1 to 65535 bytes"));
}

static void wrong_types_are_reported(void **state)
{
    (void)state;
    must_refuse_line("max_lag: [1s]", WORDS("max_lag", "one value", "list"));
    must_refuse_line("max_lag: {a: b}", WORDS("max_lag", "one value", "mapping", "quotes"));
    must_refuse_line("max_lag:", WORDS("max_lag has no value"));
    must_refuse_line("password: ~", WORDS("password has no value"));
    must_refuse_line("password: \"a\\0b\"", WORDS("zero byte"));
    must_refuse_line("password: \"a\\n\"", WORDS("control characters"));
    must_refuse_line("[a, b]: c", WORDS("setting's name"));
    must_refuse_line("\"listen\\0\": c", WORDS("setting's name"));
    must_refuse_line("  - just text", WORDS("a keyspace is a mapping"));
    must_refuse_line("  -", WORDS("a keyspace is a mapping"));
}

static void keyspace_values_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key, *table, *value;
        int line;
        const char *word;
    } rows[] = {{"a b", "a:{x}", "t", "v", 4, "letters"},
                {"''", "a:{x}", "t", "v", 4, "1 to 63"},
                {"a", "a:x", "t", "v", 5, "no placeholder"},
                {"a", "'{a}{b}'", "t", "v", 5, "nothing between"},
                {"a", "{x}", "t", "v", 5, "mapping"},
                {"a", "a:{x}", "a.b.c", "v", 6, "schema.table"},
                {"a", "a:{x}", "'\"a'", "v", 6, "closing quote"},
                {"a", "a:{x}", "t", "''", 7, "missing"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "cache: redis://127.0.0.1\ndatabase: dbname=x\nkeyspaces:\n"
                 "  - name: %s\n    key: %s\n    table: %s\n    value: %s\n",
                 rows[i].name, rows[i].key, rows[i].table, rows[i].value);
        must_report_one(text, rows[i].line, WORDS(rows[i].word));
    }
}

static void a_value_is_a_column_the_word_json_or_an_expression(void **state)
{
    static const struct {
        const char *text, *value, *expression;
        bool is_json;
    } rows[] = {{"payload", "payload", NULL, false},   {"json", NULL, NULL, true},
                {"'\"json\"'", "json", NULL, false},   {"'\"upper(x)\"'", "upper(x)", NULL, false},
                {"upper(x)", NULL, "upper(x)", false}, {"'\"X\" || y'", NULL, "\"X\" || y", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "cache: redis://127.0.0.1\ndatabase: dbname=x\nkeyspaces:\n"
                 "  - {name: a, key: \"a:{x}\", table: t, value: %s}\n",
                 rows[i].text);
        struct config *config = loaded(text);
        const struct keyspace *k = &config->keyspaces[0];
        const char *texts[] = {k->value, k->value_expression};
        const char *wanted[] = {rows[i].value, rows[i].expression};
        for (size_t t = 0; t < 2; t++) {
            assert_int_equal(texts[t] == NULL, wanted[t] == NULL);
            if (texts[t])
                assert_string_equal(texts[t], wanted[t]);
        }
        assert_int_equal(k->value_is_json, rows[i].is_json);
        config_destroy(config);
    }
}

static void unknown_settings_are_refused_with_the_nearest_name(void **state)
{
    (void)state;
    must_refuse_line("lisen: 127.0.0.1:1", WORDS("unknown setting \"lisen\"", "listen?"));
    must_refuse_line("max-lag: 1s", WORDS("did you mean max_lag?"));
    must_refuse_line("Workers: 1", WORDS("did you mean workers?"));
    must_refuse_line("zzzzz: 1", WORDS("unknown setting \"zzzzz\"", "--help"));
    must_refuse_line("    tll: 1s", WORDS("did you mean ttl?"));
    must_refuse_line("ttl: 1s", WORDS("setting of a keyspace"));
    must_refuse_line("    max_lag: 1s", WORDS("of the whole file"));
    must_refuse_line("<<: {a: b}", WORDS("merge keys"));
}

static void a_setting_is_set_once(void **state)
{
    (void)state;
    must_refuse_line("cache: redis://elsewhere", WORDS("set twice", "line 1"));
    must_refuse_line("    name: other", WORDS("name is set twice", "line 4"));
}

static void what_is_required_is_asked_for(void **state)
{
    (void)state;
    struct outcome out = load_bytes("workers: 1\n", 11);
    assert_int_equal(out.status, -EINVAL);
    assert_int_equal(out.count, 3);
    assert_int_equal(count_of(out.problems, "1: cache is missing"), 1);
    assert_int_equal(count_of(out.problems, "1: database is missing"), 1);
    assert_int_equal(count_of(out.problems, "1: keyspaces is missing"), 1);

    static const char text[] = "cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n  - ttl: 1s\n";
    out = load_bytes(text, sizeof text - 1);
    assert_int_equal(out.count, 4);
    assert_int_equal(count_of(out.problems, "4: name is missing"), 1);
    assert_int_equal(count_of(out.problems, "4: key is missing"), 1);
    assert_int_equal(count_of(out.problems, "4: table is missing"), 1);
    assert_int_equal(count_of(out.problems, "4: value is missing"), 1);

    must_report_one("cache: redis://h\ndatabase: dbname=x\nkeyspaces: []\n", 3,
                    WORDS("at least one keyspace"));
    must_report_one("cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n", 3,
                    WORDS("at least one keyspace"));
    must_report_one("cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n  name: x\n", 4,
                    WORDS("must be a list"));
}

/* Each on a line of its own, from the fourth on. */
static char *file_with_keyspaces(unsigned count)
{
    size_t size = 100 + count * (size_t)100;
    char *text = malloc(size);
    int used = snprintf(text, size, "cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n");
    for (unsigned i = 0; i < count; i++)
        used += snprintf(text + used, size - (size_t)used,
                         "  - {name: k%u, key: \"k%u:{id}\", table: t, value: v}\n", i, i);
    return text;
}

static void no_more_keyspaces_are_read_than_a_process_can_number(void **state)
{
    (void)state;
    char *text = file_with_keyspaces(KEYSPACES_MAX);
    config_destroy(loaded(text));
    free(text);
    text = file_with_keyspaces(KEYSPACES_MAX + 2);
    must_report_one(text, 3 + KEYSPACES_MAX + 1,
                    WORDS("1026 keyspaces", "no more than 1024", "another guard"));
    free(text);
}

static void a_filter_that_cannot_remove_is_refused_where_the_log_is_followed(void **state)
{
    (void)state;
    const char *const cannot[] = {"bloom", "blocked-bloom", "scalable-bloom"};
    for (size_t i = 0; i < sizeof cannot / sizeof cannot[0]; i++) {
        char line[100];
        snprintf(line, sizeof line, "    filter: %s", cannot[i]);
        must_refuse_line(line, WORDS(cannot[i], "sync: replication", "cuckoo", "counting-bloom"));
    }
    must_refuse_line("    filter: cookoo", WORDS("filter \"cookoo\"", "counting-bloom"));
    config_destroy(loaded(DEFAULTS "    filter: counting-bloom\n"));
    struct config *c = loaded("sync: poll\n" DEFAULTS "    filter: scalable-bloom\n");
    assert_int_equal(c->keyspaces[0].filter, FILTER_SCALABLE_BLOOM);
    config_destroy(c);
}

static void settings_that_contradict_each_other_are_reported(void **state)
{
    (void)state;
    must_refuse_line("    on_absent: value", WORDS("needs an absent_value"));
    must_refuse_line("control: 0.0.0.0:6390", WORDS("control_token is required"));
    must_refuse_line("control: 127.0.0.1:6380", WORDS("same address"));
    must_refuse_line("listen: [a:1, b:1, a:1]", WORDS("a:1 twice"));
    must_report_one("listen: 127.0.0.1:6379\n" DEFAULTS, 2, WORDS("guard's own address"));
    must_refuse_line("max_bulk: 2gb", WORDS("larger than max_command"));
    must_refuse_line("max_command: 1mb", WORDS("larger than max_command"));
    must_refuse_line("cache_reads: replica", WORDS("redis-sentinel://", "redis-cluster://"));
    config_destroy(loaded(DEFAULTS "control: 127.0.0.1:6390\n"));
    config_destroy(loaded(DEFAULTS "control: unix:/tmp/c\n"));
    config_destroy(loaded(DEFAULTS "control: 0.0.0.0:6390\ncontrol_token: x\n"));
    config_destroy(loaded(DEFAULTS "max_bulk: 2gb\nmax_command: 2gb\n"));
}

static void a_setting_that_was_wrong_causes_no_second_error(void **state)
{
    (void)state;
    must_refuse_line("    on_absent: valeu\n    absent_value: x", WORDS("on_absent \"valeu\""));
    must_refuse_line("control_token: [x]\ncontrol: 0.0.0.0:1", WORDS("control_token"));
    must_report_one("cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n"
                    "  - {name: a, key: 'a:{x}', table: t, on_miss: oass}\n",
                    4, WORDS("load or pass"));
    must_report_one("cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n"
                    "  - {name: a, key: 'a:{x}', table: t, value: [v]}\n",
                    4, WORDS("a list of columns is cached as a hash"));
}

static void a_list_of_columns_names_some_each_once(void **state)
{
    static const struct {
        const char *value, *words;
    } lists[] = {{"[]", "at least one column"}, {"[a, [b]]", "not a list"}, {"[a, a]", "twice"},
                 {"[a, '']", "value"},          {"[a, '\"a\"']", "twice"},  {"{a: b}", "mapping"}};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "cache: redis://h\ndatabase: dbname=x\nkeyspaces:\n"
                 "  - {name: a, key: 'a:{x}', table: t, fill: hash, value: %s}\n",
                 lists[i].value);
        must_report_one(text, 4, WORDS(lists[i].words));
    }
}

static void a_hash_is_of_more_than_a_columns_value(void **state)
{
    (void)state;
    struct config *config =
        loaded(DEFAULTS "  - {name: more, key: 'b:{y}', table: t, value: json, fill: hash}\n"
                        "  - {name: own, key: 'c:{y}', table: t, fill: hash, on_miss: pass}\n"
                        "  - {name: list, key: 'd:{y}', table: t, fill: hash,\n"
                        "     value: [a, '\"upper(x)\"', json]}\n"
                        "  - {name: one, key: 'e:{y}', table: t, fill: hash, value: [a]}\n"
                        "  - {name: sum, key: 'f:{y}', table: t, fill: hash, value: f(x)}\n");
    assert_int_equal(config->keyspaces[0].fill, FILL_STRING);
    assert_int_equal(config->keyspaces[1].fill, FILL_HASH);
    const struct keyspace *list = &config->keyspaces[3];
    assert_int_equal(list->columns.count, 3);
    assert_string_equal(list->columns.at[0], "a");
    assert_string_equal(list->columns.at[1], "upper(x)");
    assert_string_equal(list->columns.at[2], "json");
    assert_null(list->value);
    assert_false(list->value_is_json || list->value_expression);
    config_destroy(config);
    must_refuse_line("    fill: hash", WORDS("fill: hash needs a list of columns"));
    must_refuse_line("    fill: list", WORDS("fill \"list\"", "string or hash"));
}

static void what_would_do_is_named_whatever_is_wrong(void **state)
{
    (void)state;
    must_report_one("listen: unix:/a\nunix_socket_mode: 66\n" DEFAULTS, 2,
                    WORDS("three octal digits"));
    must_report_one("listen: unix:/a\nunix_socket_mode: 0660\n" DEFAULTS, 2,
                    WORDS("three octal digits"));
    must_report_one("listen: unix:/a\nunix_socket_mode: 66x\n" DEFAULTS, 2,
                    WORDS("three octal digits"));
    must_refuse_line("    min_keys: 99999999999999999999", WORDS("is too large a number"));
    must_refuse_line("    min_keys: 99999999999999999999x", WORDS("must be a whole number"));
    must_refuse_line("  - {name: b, key: 'b:{x}', source: psh, on_miss: pass}",
                     WORDS("file:/var/lib/shop/keys.txt, or push"));
}

static void keyspaces_must_not_share_names_or_keys(void **state)
{
    (void)state;
    must_refuse_line("  - {name: items, key: 'x:{y}', table: t, value: v}",
                     WORDS("\"items\" is taken", "line 4"));
    must_refuse_line("  - {name: more, key: 'item:{y}:price', table: t, value: v}",
                     WORDS("\"item:{y}:price\" overlaps with \"item:{id}\" in line 5",
                           "\"item:1:price\", for example"));
    config_destroy(loaded(DEFAULTS "  - {name: more, key: 'items:{y}', table: t, value: v}\n"));
}

static void all_mistakes_are_reported_at_once_each_once(void **state)
{
    (void)state;
    must_report("listen: nowhere\n"
                "colour: red\n"
                "max_lag: soon\n"
                "cache: http://127.0.0.1\n"
                "keyspaces:\n"
                "  - name: a\n"
                "    key: 'a:'\n"
                "    table: t\n"
                "    enforce: maybe\n"
                "  - name: a\n"
                "    key: b:{x}\n"
                "    table: t\n"
                "    value: v\n",
                "1: listen \"nowhere\": must be HOST:PORT, [IPV6]:PORT or unix:/path\n"
                "2: unknown setting \"colour\"; nestguard --help lists them all\n"
                "3: max_lag \"soon\": must be a duration: a whole number and its unit (ms, s, m, h "
                "or d), such as 250ms or 10m\n"
                "4: cache: must be redis://[user:password@]host[:port][/db], rediss://... for TLS, "
                "redis-sentinel://host[:port],.../name[/db], redis-cluster://host[:port],..., or "
                "unix:/path[?db=N]\n"
                "7: key \"a:\": no placeholder; a template names the key's columns, as in "
                "item:{id}\n"
                "9: enforce \"maybe\": must be true or false\n"
                "1: database is missing: the PostgreSQL with the rows: "
                "postgresql://user@host:port/name, or anything else that libpq takes\n"
                "6: value is missing: the column to cache, json for the whole row, or an SQL "
                "expression (only a keyspace with on_miss: pass needs none)\n"
                "10: name \"a\" is taken by the keyspace in line 6\n");
}

static void must_keep_secret(const char *line)
{
    char text[4000];
    snprintf(text, sizeof text, "%s%s\n", DEFAULTS, line);
    struct outcome out = load_bytes(text, strlen(text));
    if (out.status != -EINVAL)
        fail_msg("accepted: %s", line);
    if (strstr(out.problems, "hunter"))
        fail_msg("%s", out.problems);
}

static void secrets_are_never_shown(void **state)
{
    (void)state;
    setenv("NESTGUARD_TEST_A", "hunter2", 1);
    must_keep_secret("password: \"hunter2\\n\"");
    must_keep_secret("password: [hunter2]");
    must_keep_secret("pasword: hunter2");
    must_keep_secret("control_token: \"hunter\\x01\"");
    must_keep_secret("max_lag: ${NESTGUARD_TEST_A}");
    must_keep_secret("control: ${NESTGUARD_TEST_A}");

    static const char *const values[] = {
        "postgresql://u:hunter2@h:x/y", "postgresql://u:hunter2@h:0/y",     "hunter2",
        "'password=a hunter2'",         "'password=\"hunter2\" \"hunter3'", "'hunter2=1'",
        "postgresql://u:hunter%zz@h/x", "'postgresql://u:hunter2@[h/x'"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[1000];
        snprintf(text, sizeof text, "cache: redis://:hunter2@h:x\ndatabase: %s\n", values[i]);
        struct outcome out = load_bytes(text, strlen(text));
        assert_int_equal(count_of(out.problems, "cache: a port"), 1);
        assert_int_equal(count_of(out.problems, "2: database: "), 1);
        if (strstr(out.problems, "hunter"))
            fail_msg("%s", out.problems);
    }
}

static void long_values_are_cut_in_messages(void **state)
{
    (void)state;
    char line[600] = "max_lag: ";
    for (int i = 0; i < 200; i++)
        strcat(line, "ü");
    must_refuse_line(line, WORDS("ü...\": must be a duration"));
    must_refuse_line("max_lag: \"a\\nb\"", WORDS("\"a b\""));
}

static void syntax_errors_name_their_line(void **state)
{
    (void)state;
    must_report_one("a: b\nc: [d\n", 3, WORDS("not YAML"));
    must_report_one("a: b\n\tc: d\n", 2, WORDS("not YAML", "a tab: indent with blanks"));
    must_report_one("a: *nowhere\n", 1, WORDS("not YAML", "alias"));
    must_report_one("a: 'x\n", 2, WORDS("not YAML"));
    must_report_one("a: b\nc: \xff\n", 2, WORDS("not YAML"));
    must_report_one("listen: [${X}]\n", 1, WORDS("not YAML"));
}

static void a_file_is_one_mapping(void **state)
{
    (void)state;
    must_report_one("", 1, WORDS("empty"));
    must_report_one("# nothing\n", 1, WORDS("empty"));
    must_report_one("---\n...\n", 2, WORDS("empty"));
    must_report_one("- a\n", 1, WORDS("must be a mapping"));
    must_report_one("just text\n", 1, WORDS("must be a mapping"));
    must_report_one(DEFAULTS "---\na: b\n", DEFAULT_LINES + 1, WORDS("second document"));
    must_report_one(DEFAULTS "---\n[\n", DEFAULT_LINES + 3, WORDS("not YAML"));
    config_destroy(loaded("---\n" DEFAULTS "...\n"));
}

static void anchors_and_aliases_work(void **state)
{
    (void)state;
    struct config *c =
        loaded(DEFAULTS "    ttl: &long 1d\n"
                        "  - {name: b, key: 'b:{x}', table: t, value: v, ttl: *long}\n");
    assert_int_equal(c->keyspaces[1].ttl_ms, 86400000);
    config_destroy(c);
    must_report_one("cache: redis://h\ndatabase: dbname=x\nkeyspaces: &a [*a]\n", 3,
                    WORDS("a keyspace is a mapping"));
}

static void unreadable_files_are_reported(void **state)
{
    (void)state;
    struct outcome out = load_file("/nonexistent/nestguard.yaml");
    assert_int_equal(out.status, -ENOENT);
    assert_string_equal(out.problems, ": cannot be read: No such file or directory\n");
    out = load_file("/");
    assert_int_equal(out.status, -EISDIR);
    out = load_file("/dev/zero");
    assert_int_equal(out.status, -EFBIG);
}

static void random_bytes_do_no_harm(void **state)
{
    (void)state;
    static const char pieces[] = ":-[]{}\n  #&*!|>'\"%@`,?${}abc\t\xff\x80\0cache: listen: key";
    srand(5);
    for (int round = 0; round < 500; round++) {
        char text[400] = DEFAULTS;
        size_t from = (size_t)rand() % strlen(text), length = from + (size_t)rand() % 100;
        for (size_t i = from; i < length; i++)
            text[i] = pieces[(size_t)rand() % sizeof pieces];
        struct outcome out = load_bytes(text, length);
        config_destroy(out.config);
    }
}

/* Reloading */

/* What would take a restart, by name. */
static size_t differences(const char *before, const char *after, char *text, size_t size)
{
    struct setting_changes changes = {0};
    struct config *running = loaded(before), *wanted = loaded(after);
    size_t count = 0;
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    text[0] = '\0';
    for (size_t i = 0, used = 0; i < changes.count; i++) {
        const struct setting_change *change = &changes.at[i];
        if (change->taken)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s cannot: %s, %s\n", change->what,
                                 change->before, change->after);
        count++;
    }
    config_destroy(running);
    config_destroy(wanted);
    setting_changes_finish(&changes);
    return count;
}

static void what_may_change_is_no_difference(void **state)
{
    (void)state;
    char text[2000];
    assert_int_equal(differences(DEFAULTS, DEFAULTS, text, sizeof text), 0);
    assert_int_equal(differences(DEFAULTS,
                                 DEFAULTS "    ttl: 1s\n    ttl_jitter: 0\n    on_absent: value\n"
                                          "    absent_value: x\n    enforce: false\n"
                                          "    false_positive_rate: 1%\n"
                                          "sync: replication\nload_budget: 1\npassword: x\n"
                                          "max_clients: 3\nload_timeout: 1s\nmax_lag: 2s\n",
                                 text, sizeof text),
                     0);
    assert_int_equal(differences("sync: poll\n" DEFAULTS,
                                 "sync: poll\npoll_interval: 1s\n" DEFAULTS "    on_miss: pass\n",
                                 text, sizeof text),
                     0);
    /* The same values, otherwise written. */
    assert_int_equal(differences(DEFAULTS,
                                 "cache: redis://127.0.0.1:6379/0\n"
                                 "database: postgresql://app@db/shop\n"
                                 "listen: [127.0.0.1:6380]\nload_connections: 4\nkeyspaces:\n"
                                 "  - {name: items, key: 'item:{id}', table: PUBLIC.\"items\", "
                                 "value: '\"payload\"'}\n",
                                 text, sizeof text),
                     0);
}

static void what_cannot_change_is_named(void **state)
{
    (void)state;
    char text[4000];
    size_t count = differences(
        DEFAULTS,
        "cache: redis://:secret@127.0.0.1\ndatabase: dbname=o password=secret\nlisten: [a:1]\n"
        "control: unix:/c\ncontrol_token: secret\nsync: none\nload_connections: 5\n"
        "cache_connections: 5\nworkers: 255\nkeyspaces:\n"
        "  - {name: items, key: 'k:{id}', table: items, value: json, where: 'true'}\n",
        text, sizeof text);
    static const char *const names[] = {"listen cannot", "control cannot", "workers cannot",
                                        "sync cannot"};
    assert_int_equal(count, sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(count_of(text, names[i]), 1);
    assert_null(strstr(text, "secret"));
}

static void problems_are_printed_with_their_remedy(void **state)
{
    (void)state;
    struct problems problems = {0};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    problems_add(&problems, PROBLEM_ERROR, "f:1", NULL, "wrong %d%%", 5);
    problems_add(&problems, PROBLEM_WARNING, "table t", "GRANT a;\nGRANT b;", "may not");
    assert_int_equal(problems.count, 2);
    assert_int_equal(problems.errors, 1);
    problems_print(&problems, out);
    fclose(out);
    assert_string_equal(text, "f:1: error: wrong 5%\n"
                              "table t: warning: may not\n    GRANT a;\n    GRANT b;\n");
    free(text);
    problems_finish(&problems);
    assert_int_equal(problems.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_has_defaults),
        cmocka_unit_test(a_keyspace_has_defaults),
        cmocka_unit_test(what_is_published_is_a_mapping_with_defaults),
        cmocka_unit_test(what_cannot_be_published_is_named),
        cmocka_unit_test(a_query_stands_in_place_of_a_table),
        cmocka_unit_test(every_setting_is_read),
        cmocka_unit_test(variables_come_from_the_environment),
        cmocka_unit_test(a_variable_is_replaced_once_only),
        cmocka_unit_test(mistakes_with_variables_are_reported),
        cmocka_unit_test(wrong_values_name_the_setting_and_what_is_allowed),
        cmocka_unit_test(wrong_types_are_reported),
        cmocka_unit_test(keyspace_values_are_checked),
        cmocka_unit_test(a_value_is_a_column_the_word_json_or_an_expression),
        cmocka_unit_test(unknown_settings_are_refused_with_the_nearest_name),
        cmocka_unit_test(a_setting_is_set_once),
        cmocka_unit_test(what_is_required_is_asked_for),
        cmocka_unit_test(no_more_keyspaces_are_read_than_a_process_can_number),
        cmocka_unit_test(a_filter_that_cannot_remove_is_refused_where_the_log_is_followed),
        cmocka_unit_test(settings_that_contradict_each_other_are_reported),
        cmocka_unit_test(a_setting_that_was_wrong_causes_no_second_error),
        cmocka_unit_test(a_list_of_columns_names_some_each_once),
        cmocka_unit_test(a_hash_is_of_more_than_a_columns_value),
        cmocka_unit_test(what_would_do_is_named_whatever_is_wrong),
        cmocka_unit_test(keyspaces_must_not_share_names_or_keys),
        cmocka_unit_test(all_mistakes_are_reported_at_once_each_once),
        cmocka_unit_test(secrets_are_never_shown),
        cmocka_unit_test(long_values_are_cut_in_messages),
        cmocka_unit_test(syntax_errors_name_their_line),
        cmocka_unit_test(a_file_is_one_mapping),
        cmocka_unit_test(anchors_and_aliases_work),
        cmocka_unit_test(unreadable_files_are_reported),
        cmocka_unit_test(random_bytes_do_no_harm),
        cmocka_unit_test(what_may_change_is_no_difference),
        cmocka_unit_test(what_cannot_change_is_named),
        cmocka_unit_test(problems_are_printed_with_their_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
