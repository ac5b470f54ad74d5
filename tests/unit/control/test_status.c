/* The account in its two forms, made from a report that no keeper has filled. */
#include "control/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"

#include <string.h>

static struct refused_load refusal;
static struct spelling spelling = {"item:042", "item:42"};
static struct keyspace keyspaces[2] = {{.name = "items", .table_text = "items", .enforce = true},
                                       {.name = "orders", .table_text = "orders"}};
static char database[] = "postgresql://guard@db/shop";
static struct config config = {
    .keyspace_count = 2, .keyspaces = keyspaces, .load_budget = 200, .database = database};

static struct report report_of_a_start(struct keyspace_report *reports)
{
    static char text[] = "item:{id}";
    keyspaces[0].key.text = keyspaces[1].key.text = text;
    for (size_t i = 0; i < 2; i++)
        reports[i] = (struct keyspace_report){.config = &keyspaces[i],
                                              .state = KEYSPACE_LOADING,
                                              .reason = "no generation is complete yet",
                                              .since = clock_ms(),
                                              .refusal = &refusal,
                                              .spelling = &spelling};
    return (struct report){.config = &config,
                           .started = clock_ms(),
                           .workers = 2,
                           .count = 2,
                           .keyspaces = reports,
                           .build.error = ""};
}

static void guard(struct report *report)
{
    report->generation =
        (struct generation_report){.number = 7, .rows = 10, .built_at = time(NULL)};
    for (size_t i = 0; i < report->count; i++) {
        report->keyspaces[i].state = KEYSPACE_GUARDING;
        report->keyspaces[i].has_filter = true;
    }
}

static void it_serves_until_it_drains_whatever_it_guards(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    (void)state;
    assert_true(status_is_serving(&report));
    report.is_draining = true;
    assert_false(status_is_serving(&report));
    report = report_of_a_start(reports);
    report.workers = 0;
    assert_false(status_is_serving(&report));
}

static void it_guards_when_every_keyspace_does(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    (void)state;
    assert_false(status_is_guarding(&report));
    guard(&report);
    assert_true(status_is_guarding(&report));
    reports[1].state = KEYSPACE_PASSING;
    assert_false(status_is_guarding(&report));
    json_t *states = status_states(&report);
    assert_string_equal(json_string_value(json_object_get(states, "items")), "guarding");
    assert_string_equal(json_string_value(json_object_get(states, "orders")), "passing");
    json_decref(states);
}

static bool cache_is_up(struct report *report, size_t nodes)
{
    report->cache_nodes = nodes;
    json_t *status = status_json(report);
    const json_t *cache = json_object_get(json_object_get(status, "backends"), "cache");
    bool up = json_is_true(json_object_get(cache, "up"));
    json_decref(status);
    return up;
}

static void a_cache_is_up_when_all_its_nodes_are_whatever_sentinels_say(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct redis_node nodes[] = {{.up = true, .role = REDIS_PRIMARY},
                                 {.up = false, .role = REDIS_SENTINEL},
                                 {.up = false, .role = REDIS_PRIMARY}};
    (void)state;
    report.cache = nodes;
    assert_false(cache_is_up(&report, 0));
    assert_true(cache_is_up(&report, 1));
    assert_true(cache_is_up(&report, 2));
    assert_false(cache_is_up(&report, 3));
    nodes[0].role = REDIS_SENTINEL;
    nodes[0].up = false;
    assert_false(cache_is_up(&report, 1));
}

static void a_node_that_is_down_says_since_when(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct redis_node nodes[] = {{.up = true, .role = REDIS_PRIMARY},
                                 {.role = REDIS_PRIMARY, .why = "gone", .down_ms = 2500}};
    (void)state;
    report.cache = nodes;
    report.cache_nodes = 2;
    json_t *status = status_json(&report), *list;
    list = json_object_get(json_object_get(json_object_get(status, "backends"), "cache"), "nodes");
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "down_seconds")));
    assert_true(json_real_value(json_object_get(json_array_get(list, 1), "down_seconds")) == 2.5);
    json_decref(status);
}

static const json_t *keyspace_at(const json_t *status, size_t i)
{
    return json_array_get(json_object_get(status, "keyspaces"), i);
}

static void what_is_not_there_is_null(void **state)
{
    static const char *const names[] = {"generation", "building", "last_build_error", "stream"};
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    (void)state;
    json_t *status = status_json(&report);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(json_is_null(json_object_get(status, names[i])));
    assert_true(json_is_null(json_object_get(keyspace_at(status, 0), "filter")));
    assert_true(json_is_null(json_object_get(keyspace_at(status, 0), "self_check")));
    assert_true(json_is_null(json_object_get(keyspace_at(status, 0), "last_load_error")));
    assert_true(json_is_null(json_object_get(keyspace_at(status, 0), "other_spelling_example")));
    json_decref(status);
}

static void a_keyspace_says_why_its_loads_are_refused(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct refused_load refused = {.count = 3, .time = clock_ms(), .text = "permission denied"};
    (void)state;
    guard(&report);
    reports[1].refusal = &refused;
    json_t *status = status_json(&report);
    const json_t *error = json_object_get(keyspace_at(status, 1), "last_load_error");
    assert_string_equal(json_string_value(json_object_get(error, "text")), "permission denied");
    assert_int_equal(json_integer_value(json_object_get(error, "count")), 3);
    assert_true(json_is_real(json_object_get(error, "age_seconds")));
    assert_true(json_is_null(json_object_get(keyspace_at(status, 0), "last_load_error")));
    json_decref(status);
}

static void every_counter_stands_under_its_name(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    (void)state;
    guard(&report);
    reports[0].rows = 100;
    reports[0].filter.keys = 99; /* two of them look alike */
    reports[0].lookups.rejected = 90;
    reports[0].false_positives = 10;
    reports[0].loads_row = 3;
    reports[0].loads_absent = 2;
    reports[0].other_spellings = 1;
    report.worker.commands = 12;
    report.worker.own_connections = 5;
    json_t *status = status_json(&report);
    const json_t *items = keyspace_at(status, 0);
    assert_int_equal(json_integer_value(json_object_get(items, "rows")), 100);
    assert_int_equal(json_integer_value(json_object_get(items, "rejected")), 90);
    assert_int_equal(json_integer_value(json_object_get(items, "loads")), 5);
    assert_int_equal(json_integer_value(json_object_get(keyspace_at(status, 1), "loads")), 0);
    assert_int_equal(json_integer_value(json_object_get(status, "commands")), 12);
    assert_int_equal(json_integer_value(json_object_get(status, "own_connections")), 5);
    json_t *filter = json_object_get(items, "filter");
    double rate = json_real_value(json_object_get(filter, "measured_false_positive_rate"));
    assert_true(rate > 0.0999 && rate < 0.1001);
    json_t *example = json_object_get(items, "other_spelling_example");
    assert_string_equal(json_string_value(json_object_get(example, "row")), "item:42");
    json_decref(status);
}

static void no_text_takes_the_account_away(void **state)
{
    static const char cut[] = "the row of \xd0\xb6\xd0";
    static const char *const of_keyspace[] = {"reason", "source_refused", "source", "query",
                                              "table"};
    static char *const given = (char *)(uintptr_t)cut;
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct redis_node node = {.why = cut};
    struct replica_word word = {.why = cut};
    struct keyspace odd = {
        .name = "odd", .key.text = given, .table_text = given, .query = given, .source = given};
    (void)state;
    strcpy(node.address, cut);
    strcpy(word.address, cut);
    strcpy(word.primary, cut);
    reports[0].config = &odd;
    reports[0].reason = reports[0].refused = cut;
    reports[0].published = (struct published_report){.key = cut, .state = "empty", .error = cut};
    report.build = (struct build_report){.error = cut, .at_work = true};
    strcpy(report.build.progress.waits, cut);
    report.cache = &node;
    report.replicas = &word;
    report.cache_nodes = report.replica_count = 1;
    report.database_error = report.refusal = cut;
    json_t *status = status_json(&report);
    assert_non_null(status);
    for (size_t i = 0; i < sizeof of_keyspace / sizeof *of_keyspace; i++)
        assert_string_equal(
            json_string_value(json_object_get(keyspace_at(status, 0), of_keyspace[i])),
            "the row of \xd0\xb6\\xd0");
    json_decref(status);
}

static void assert_line(struct buffer *text, const char *line)
{
    buffer_append(text, "", 1);
    assert_non_null(strstr(buffer_span(text).at, line));
}

static void assert_no_line(const struct buffer *text, const char *name)
{
    if (strstr(buffer_span(text).at, name))
        fail_msg("%s is in:\n%s", name, buffer_span(text).at);
}

static void what_is_not_known_is_no_figure(void **state)
{
    static const char *const unknown[] = {
        "\nnestguard_generation_age_seconds ", "\nnestguard_stream_last_commit_timestamp_seconds ",
        "\nnestguard_self_check_good{", "\nnestguard_self_check_rows{"};
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct buffer text = {0};
    (void)state;
    report.stream.is_followed = true;
    status_metrics(&report, &text);
    assert_line(&text, "\nnestguard_database_connections 0\n");
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_no_line(&text, unknown[i]);
    buffer_finish(&text);
}

/* Of a table beside a file: the check is of the one alone. */
static void a_keyspace_that_was_never_checked_fails_no_check(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct buffer text = {0};
    (void)state;
    guard(&report);
    report.check = (struct check_report){.generation = 7, .time = clock_ms()};
    reports[0].check = (struct selfcheck_account){SELFCHECK_PASSED, 3};
    status_metrics(&report, &text);
    assert_line(&text, "\nnestguard_self_check_good{keyspace=\"items\"} 1\n");
    assert_no_line(&text, "nestguard_self_check_good{keyspace=\"orders\"}");
    assert_no_line(&text, "nestguard_self_check_rows{keyspace=\"orders\"}");
    buffer_finish(&text);
    json_t *status = status_json(&report);
    assert_true(json_is_object(json_object_get(keyspace_at(status, 0), "self_check")));
    assert_true(json_is_null(json_object_get(keyspace_at(status, 1), "self_check")));
    json_decref(status);
}

static void without_a_database_none_is_down(void **state)
{
    struct config sources_alone = {.keyspace_count = 2, .keyspaces = keyspaces};
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct buffer text = {0};
    (void)state;
    report.config = &sources_alone;
    status_metrics(&report, &text);
    assert_line(&text, "\nnestguard_cache_up 0\n");
    assert_no_line(&text, "nestguard_database_connections 0");
    buffer_finish(&text);
    json_t *status = status_json(&report);
    const json_t *loads = json_object_get(json_object_get(status, "backends"), "database");
    assert_true(json_is_null(json_object_get(loads, "connections")));
    json_decref(status);
}

static json_t *measured(const json_t *status, size_t i)
{
    json_t *filter = json_object_get(keyspace_at(status, i), "filter");
    return json_object_get(filter, "measured_false_positive_rate");
}

/* There a false positive is the application's to find. */
static void where_misses_are_not_loaded_no_rate_is_measured(void **state)
{
    static char source[] = "push";
    struct keyspace passing = {.name = "passing", .table_text = "items", .on_miss = MISS_PASS};
    struct keyspace listed = {.name = "listed", .source = source};
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct buffer text = {0};
    (void)state;
    guard(&report);
    json_t *status = status_json(&report);
    assert_true(json_is_real(measured(status, 0)));
    json_decref(status);
    passing.key = listed.key = keyspaces[0].key;
    reports[0].config = &passing;
    reports[1].config = &listed;
    status = status_json(&report);
    assert_true(json_is_null(measured(status, 0)) && json_is_null(measured(status, 1)));
    json_decref(status);
    status_metrics(&report, &text);
    assert_line(&text, "\nnestguard_filter_keys{keyspace=\"listed\"}");
    assert_no_line(&text, "\nnestguard_measured_false_positive_rate{");
    buffer_finish(&text);
}

static void metrics_tell_the_same(void **state)
{
    struct keyspace_report reports[2];
    struct report report = report_of_a_start(reports);
    struct buffer text = {0};
    (void)state;
    guard(&report);
    reports[1].lookups.rejected = 90;
    reports[1].loads_absent = 2;
    report.stream = (struct stream_report){.is_followed = true, .position = 512, .behind = 64};
    status_metrics(&report, &text);
    assert_line(&text, "\nnestguard_rejected_total{keyspace=\"orders\"} 90\n");
    assert_line(&text, "\nnestguard_loads_total{keyspace=\"orders\",result=\"absent\"} 2\n");
    assert_line(&text, "\nnestguard_keyspace_state{keyspace=\"items\",state=\"guarding\"} 1\n");
    assert_line(&text, "\nnestguard_stream_lag_bytes 64\n");
    assert_line(&text, "\nnestguard_generation 7\n");
    buffer_finish(&text);
}

static void a_position_is_told_as_the_server_writes_it(void **state)
{
    struct stream_report stream = {.is_followed = true, .position = 0x16B3748};
    (void)state;
    json_t *text = status_position(&stream);
    assert_string_equal(json_string_value(text), "0/16B3748");
    json_decref(text);
    stream.is_followed = false;
    assert_true(json_is_null(status_position(&stream)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_serves_until_it_drains_whatever_it_guards),
        cmocka_unit_test(it_guards_when_every_keyspace_does),
        cmocka_unit_test(a_cache_is_up_when_all_its_nodes_are_whatever_sentinels_say),
        cmocka_unit_test(a_node_that_is_down_says_since_when),
        cmocka_unit_test(what_is_not_there_is_null),
        cmocka_unit_test(a_keyspace_says_why_its_loads_are_refused),
        cmocka_unit_test(every_counter_stands_under_its_name),
        cmocka_unit_test(no_text_takes_the_account_away),
        cmocka_unit_test(what_is_not_known_is_no_figure),
        cmocka_unit_test(a_keyspace_that_was_never_checked_fails_no_check),
        cmocka_unit_test(without_a_database_none_is_down),
        cmocka_unit_test(where_misses_are_not_loaded_no_rate_is_measured),
        cmocka_unit_test(metrics_tell_the_same),
        cmocka_unit_test(a_position_is_told_as_the_server_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
