#include "redis/redis_survey.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the headers above */
#include <cmocka.h>

static struct redis_survey survey_of(const char *text)
{
    struct redis_survey survey;
    memset(&survey, 0xff, sizeof survey);
    redis_survey_read(&survey, text);
    return survey;
}

static void test_fields_are_read_wherever_they_stand(void **state)
{
    (void)state;
    struct redis_survey survey = survey_of("# Server\r\nredis_version:7.0.15\r\n\r\n# Memory\r\n"
                                           "maxmemory:104857600\r\nmaxmemory_human:100.00M\r\n"
                                           "maxmemory_policy:allkeys-lru\r\n# Replication\r\n"
                                           "role:slave\r\ncluster_enabled:1\r\n");
    assert_string_equal(survey.version, "7.0.15");
    assert_int_equal(survey.max_memory, 104857600);
    assert_string_equal(survey.memory_policy, "allkeys-lru");
    assert_int_equal(survey.role, REDIS_REPLICA);
    assert_true(survey.is_cluster_node);
}

static void test_an_ordinary_primary_is_neither_replica_nor_node(void **state)
{
    (void)state;
    struct redis_survey survey = survey_of("role:master\r\ncluster_enabled:0\r\nmaxmemory:0\r\n");
    assert_int_equal(survey.role, REDIS_PRIMARY);
    assert_false(survey.is_cluster_node);
    assert_int_equal(survey.max_memory, 0);
    assert_string_equal(survey.memory_policy, "");
}

static void test_only_whole_names_and_values_count(void **state)
{
    (void)state;
    struct redis_survey survey = survey_of("xmaxmemory:5\nmaxmemory_human:7\nslave_role:slave\n"
                                           "role:slavery\ncluster_enabled:10\n");
    assert_int_equal(survey.max_memory, 0);
    assert_int_equal(survey.role, REDIS_ROLE_UNKNOWN);
    assert_false(survey.is_cluster_node);
}

static void test_text_of_any_kind_is_taken(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",           "\n",          "\r\n\r\n",          "role",     "role:",
        "maxmemory:", "maxmemory:-", "maxmemory_policy:", "role:slav"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct redis_survey survey = survey_of(texts[i]);
        assert_int_equal(survey.max_memory, 0);
        assert_string_equal(survey.memory_policy, "");
        assert_int_equal(survey.role, REDIS_ROLE_UNKNOWN);
    }
    assert_int_equal(survey_of("role:slave").role, REDIS_REPLICA);
    assert_int_equal(survey_of("redis_mode:sentinel\r\nrole:master").role, REDIS_SENTINEL);
}

static void test_a_policy_too_long_for_its_place_is_cut(void **state)
{
    (void)state;
    char text[200] = "maxmemory_policy:";
    memset(text + strlen(text), 'p', 100);
    struct redis_survey survey = survey_of(text);
    assert_int_equal(strlen(survey.memory_policy), sizeof survey.memory_policy - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_are_read_wherever_they_stand),
        cmocka_unit_test(test_an_ordinary_primary_is_neither_replica_nor_node),
        cmocka_unit_test(test_only_whole_names_and_values_count),
        cmocka_unit_test(test_text_of_any_kind_is_taken),
        cmocka_unit_test(test_a_policy_too_long_for_its_place_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
