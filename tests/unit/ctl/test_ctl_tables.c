/* What `nestguard ctl` prints for people of what a guard answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/ctl_attack.h"
#include "ctl/ctl_status.h"
#include "ctl/ctl_top.h"

#include <stdlib.h>
#include <string.h>

static char *printed;
static size_t length;
static struct ctl_paper paper;

static int begin(void **state)
{
    (void)state;
    paper = (struct ctl_paper){open_memstream(&printed, &length), false};
    return paper.out ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    fclose(paper.out);
    free(printed);
    return 0;
}

static void assert_has(const char *text)
{
    fflush(paper.out);
    if (!strstr(printed, text))
        fail_msg("\"%s\" is not in:\n%s", text, printed);
}

static void assert_has_not(const char *text)
{
    fflush(paper.out);
    if (strstr(printed, text))
        fail_msg("\"%s\" is in:\n%s", text, printed);
}

/* A status with one keyspace in that state. */
static json_t *status_of(const char *state, int lookups, int rejected)
{
    json_t *keyspace =
        json_pack("{s:s, s:s, s:s, s:f, s:b, s:n, s:i, s:i}", "name", "items", "state", state,
                  "reason", "the log's stream was lost: gone", "seconds_in_state", 90.0, "enforce",
                  1, "filter", "lookups", lookups, "rejected", rejected);
    return json_pack("{s:s, s:f, s:s, s:b, s:b, s:b, s:n, s:n, s:n, s:i, s:{}, s:[o]}", "version",
                     "1.2.3", "uptime_seconds", 3700.0, "sync", "replication", "ready", 1,
                     "guarding", 0, "attack", 1, "generation", "building", "last_build_error",
                     "clients", 3, "backends", "keyspaces", keyspace);
}

static void a_status_says_why_a_keyspace_does_not_guard(void **state)
{
    json_t *status = status_of("passing", 1500, 12);
    (void)state;
    ctl_status_print(status, &paper);
    assert_has("nestguard 1.2.3, up 1 h 1 m, sync: replication, serving, not guarding everything");
    assert_has("UNDER ATTACK");
    assert_has("items      passing      1 m 30 s");
    assert_has("the log's stream was lost: gone\n");
    assert_has(" 1.5 k");
    assert_has("generation  none yet\n");
    assert_has_not("\033");
    json_decref(status);
}

static void a_keyspace_that_guards_says_why_its_loads_are_refused(void **state)
{
    json_t *status = status_of("guarding", 0, 0);
    json_t *keyspace = json_array_get(json_object_get(status, "keyspaces"), 0);
    (void)state;
    json_object_set_new(keyspace, "last_load_error",
                        json_pack("{s:s, s:i, s:f}", "text", "permission denied\n", "count", 1500,
                                  "age_seconds", 2.0));
    ctl_status_print(status, &paper);
    assert_has("1.5 k loads refused by the database, the last 2 s ago: permission denied?\n");
    json_decref(status);
}

static void a_build_has_its_rate_and_rest(void **state)
{
    json_t *status = status_of("loading", 0, 0);
    (void)state;
    json_object_set_new(status, "building",
                        json_pack("{s:i, s:s, s:s, s:i, s:i, s:f, s:f}", "number", 2, "phase",
                                  "copying", "waits", "pid 7: SELECT", "rows", 1200000,
                                  "rows_total", 10000000, "rows_per_second", 600000.0,
                                  "remaining_seconds", 14.7));
    ctl_status_print(status, &paper);
    assert_has("building    2: copying, 1.2 M of about 10.0 M rows, 600 k a second, 14 s to go\n");
    assert_has("pid 7: SELECT");
    json_decref(status);
}

static void colours_are_there_when_asked_for(void **state)
{
    json_t *status = status_of("guarding", 0, 0);
    (void)state;
    paper.colours = true;
    ctl_status_print(status, &paper);
    assert_has("\033[32mguarding\033[0m");
    json_decref(status);
}

static void nothing_in_an_answer_can_do_anything_to_a_terminal(void **state)
{
    json_t *status = status_of("passing", 0, 0);
    json_t *keyspace = json_array_get(json_object_get(status, "keyspaces"), 0);
    (void)state;
    json_object_set_new(keyspace, "reason", json_string("\033[2Jwiped"));
    json_object_set_new(status, "last_build_error", json_string("a\nb\x07"));
    ctl_status_print(status, &paper);
    assert_has("?[2Jwiped");
    assert_has("a?b?");
    assert_has_not("\033");
    json_decref(status);
}

static json_t *node_of(const char *address, const char *role, const char *why, double down)
{
    return json_pack("{s:s, s:s, s:b, s:s?, s:o}", "address", address, "role", role, "up", down < 0,
                     "why", why, "down_seconds", down < 0 ? json_null() : json_real(down));
}

static json_t *status_of_cache(bool up, json_t *nodes)
{
    json_t *status = status_of("guarding", 0, 0);
    json_object_set_new(json_object_get(status, "backends"), "cache",
                        json_pack("{s:b, s:o}", "up", up, "nodes", nodes));
    return status;
}

static void a_node_that_is_down_is_named_with_its_role_reason_and_time(void **state)
{
    json_t *nodes = json_array();
    (void)state;
    json_array_append_new(nodes, node_of("10.0.0.1:6379", "primary", NULL, -1));
    json_array_append_new(nodes, node_of("10.0.0.2:6379", "primary", "connection refused", 75));
    json_array_append_new(nodes, node_of("10.0.0.3:6379", "replica", "too far behind", 3));
    json_array_append_new(nodes, node_of("10.0.0.4:26379", "sentinel", "timed out", 7));
    json_array_append_new(nodes,
                          node_of("10.0.0.5:6379", "primary", "OOM command not allowed", -1));
    json_t *status = status_of_cache(false, nodes);
    ctl_status_print(status, &paper);
    assert_has("cache       down, 10.0.0.1:6379 (primary), 10.0.0.2:6379 (primary), ");
    assert_has("            10.0.0.2:6379 (primary) is down, for 1 m 15 s: connection refused\n"
               "            10.0.0.3:6379 (replica) is not read from, for 3 s: too far behind\n"
               "            10.0.0.4:26379 (sentinel) names no primary, for 7 s: timed out\n"
               "            10.0.0.5:6379 (primary): OOM command not allowed\n");
    assert_has_not("            10.0.0.1:6379");
    json_decref(status);
}

static void of_many_nodes_that_are_down_the_first_are_named(void **state)
{
    json_t *nodes = json_array();
    (void)state;
    for (int i = 1; i <= 40; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.0.0.%d:6379", i);
        json_array_append_new(nodes, node_of(address, "primary", "timed out", 1));
    }
    json_t *status = status_of_cache(false, nodes);
    ctl_status_print(status, &paper);
    assert_has("10.0.0.6:6379 (primary) and 34 more\n");
    assert_has("10.0.0.10:6379 (primary) is down");
    assert_has_not("10.0.0.11:6379");
    assert_has("            and 30 more, which --json names\n");
    json_decref(status);
}

static void a_cache_of_which_nobody_knows_a_node_says_so(void **state)
{
    json_t *status =
        status_of_cache(false, json_pack("[o]", node_of("", "unknown", "not asked yet", 2)));
    (void)state;
    ctl_status_print(status, &paper);
    assert_has("            a server of unknown address is down, for 2 s: not asked yet\n");
    json_decref(status);
}

static void one_of_a_kind_is_told_in_the_singular(void **state)
{
    json_t *status = status_of_cache(true, json_array());
    (void)state;
    json_object_set_new(status, "workers", json_integer(1));
    json_object_set_new(json_object_get(status, "backends"), "database",
                        json_pack("{s:i}", "connections", 1));
    json_object_set_new(status, "generation", json_pack("{s:i, s:i}", "number", 1, "rows", 1));
    ctl_status_print(status, &paper);
    assert_has("; 1 worker\n");
    assert_has("database    1 connection, ");
    assert_has(" 1 row, ");
    json_decref(status);
}

static void a_file_that_was_refused_is_told_with_its_reason(void **state)
{
    json_t *status = status_of("guarding", 0, 0);
    (void)state;
    ctl_status_print(status, &paper);
    assert_has_not("reload");
    json_object_set_new(status, "reload_refused", json_string("guard.yaml:7: no such column"));
    ctl_status_print(status, &paper);
    assert_has("last reload guard.yaml:7: no such column\n");
    json_decref(status);
}

static void no_database_is_not_one_without_connections(void **state)
{
    json_t *status = status_of("guarding", 0, 0);
    json_t *database =
        json_pack("{s:n, s:i, s:i}", "connections", "loads_in_flight", 0, "load_budget", 200);
    const struct ctl_moment moment = {.status = status};
    (void)state;
    json_object_set_new(json_object_get(status, "backends"), "database", database);
    ctl_status_print(status, &paper);
    assert_has("database    none: no keyspace is of rows\n");
    ctl_top_print(&moment, &paper);
    assert_has(", no database\n");
    assert_has_not("0 connections");
    json_decref(status);
}

static void a_rate_that_nobody_measures_is_a_dash(void **state)
{
    json_t *status = status_of("guarding", 0, 0);
    json_t *keyspace = json_array_get(json_object_get(status, "keyspaces"), 0);
    (void)state;
    json_object_set_new(keyspace, "filter",
                        json_pack("{s:i, s:f, s:i, s:n}", "keys", 5, "fill", 0.5, "bytes", 100,
                                  "measured_false_positive_rate"));
    ctl_status_print(status, &paper);
    assert_has("   50 %    100 B          -");
    assert_has_not("0.0000 %");
    json_decref(status);
}

static void an_empty_answer_is_survived(void **state)
{
    json_t *nothing = json_object();
    const struct ctl_moment moment = {.status = nothing};
    (void)state;
    ctl_status_print(nothing, &paper);
    ctl_top_print(&moment, &paper);
    json_decref(nothing);
}

static void rates_are_the_difference_of_two_moments(void **state)
{
    json_t *before = status_of("guarding", 1000, 100), *now = status_of("guarding", 5000, 3100);
    struct ctl_moment moment = {.status = now, .before = before, .seconds = 2};
    (void)state;
    ctl_top_print(&moment, &paper);
    assert_has("items      guarding       2.0 k      1.5 k          0");
    json_decref(before);
    json_decref(now);
}

static void there_are_no_rates_before_the_second_moment_nor_from_another_guard(void **state)
{
    json_t *before = status_of("guarding", 1000, 100), *now = status_of("guarding", 5, 0);
    struct ctl_moment moment = {.status = now};
    (void)state;
    ctl_top_print(&moment, &paper);
    assert_has("items      guarding           -          -");
    moment.before = before;
    moment.seconds = 1;
    ctl_top_print(&moment, &paper);
    assert_has_not("guarding           0");
    json_decref(before);
    json_decref(now);
}

static void the_heaviest_clients_are_five_at_most(void **state)
{
    json_t *now = status_of("guarding", 0, 0), *heaviest = json_array(), *attack;
    struct ctl_moment moment = {.status = now};
    (void)state;
    for (int i = 1; i <= 6; i++)
        json_array_append_new(heaviest, json_pack("{s:o, s:s, s:s, s:i}", "address",
                                                  json_sprintf("10.0.0.%d", i), "name", "", "user",
                                                  "default", "count", 70 - i));
    attack = json_pack("{s:{s:{s:{s:i, s:o}}}}", "minute", "clients", "rejects", "total", 690,
                       "heaviest", heaviest);
    moment.attack = attack;
    ctl_top_print(&moment, &paper);
    assert_has(
        "10.0.0.1                                 -                default              69  10.0");
    assert_has("10.0.0.5");
    assert_has_not("10.0.0.6");
    json_decref(attack);
    json_decref(now);
}

static void an_attack_that_begins_is_told_before_its_second_is_over(void **state)
{
    json_t *attack = json_pack("{s:n, s:i, s:{s:f, s:i}}", "last_attack", "threshold", 1000,
                               "fresh", "seconds", 0.4, "rejects", 999);
    (void)state;
    ctl_attack_print(attack, "minute", &paper);
    assert_has(
        "No attack so far.\n\n999 rejects in the last 0.4 s, which the rates do not have yet.");
    assert_has("Who it is that is rejected is known in a second.\n");
    assert_has_not("BEGINNING");
    json_object_set_new(json_object_get(attack, "fresh"), "rejects", json_integer(1000));
    ctl_attack_print(attack, "minute", &paper);
    assert_has("AN ATTACK IS BEGINNING: 1000 rejects in the last 0.4 s");
    json_decref(attack);
}

static void numbers_are_short(void **state)
{
    char text[CTL_NUMBER_SIZE];
    (void)state;
    assert_string_equal(ctl_count(0, text), "0");
    assert_string_equal(ctl_count(999, text), "999");
    assert_string_equal(ctl_count(1000, text), "1.0 k");
    assert_string_equal(ctl_count(99949, text), "99.9 k");
    assert_string_equal(ctl_count(999499, text), "999 k");
    assert_string_equal(ctl_count(999500, text), "1.0 M");
    assert_string_equal(ctl_count(1e19, text), "10000000 T");
    assert_string_equal(ctl_bytes(812, text), "812 B");
    assert_string_equal(ctl_bytes(6.3e9, text), "6.3 GB");
    assert_string_equal(ctl_seconds(0.0123, text), "12 ms");
    assert_string_equal(ctl_seconds(59.9, text), "59 s");
    assert_string_equal(ctl_seconds(3599, text), "59 m 59 s");
    assert_string_equal(ctl_seconds(86400 * 12 + 3600 * 3, text), "12 d 3 h");
}

#define TABLE(test) cmocka_unit_test_setup_teardown(test, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TABLE(a_status_says_why_a_keyspace_does_not_guard),
        TABLE(a_keyspace_that_guards_says_why_its_loads_are_refused),
        TABLE(a_build_has_its_rate_and_rest),
        TABLE(colours_are_there_when_asked_for),
        TABLE(nothing_in_an_answer_can_do_anything_to_a_terminal),
        TABLE(a_node_that_is_down_is_named_with_its_role_reason_and_time),
        TABLE(of_many_nodes_that_are_down_the_first_are_named),
        TABLE(a_cache_of_which_nobody_knows_a_node_says_so),
        TABLE(one_of_a_kind_is_told_in_the_singular),
        TABLE(a_file_that_was_refused_is_told_with_its_reason),
        TABLE(no_database_is_not_one_without_connections),
        TABLE(a_rate_that_nobody_measures_is_a_dash),
        TABLE(an_empty_answer_is_survived),
        TABLE(rates_are_the_difference_of_two_moments),
        TABLE(there_are_no_rates_before_the_second_moment_nor_from_another_guard),
        TABLE(the_heaviest_clients_are_five_at_most),
        TABLE(an_attack_that_begins_is_told_before_its_second_is_over),
        cmocka_unit_test(numbers_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
