/* What a reload is said to have done. */
#include "control/configuration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/config_file.h"

#include <stdlib.h>

#define HEAD "cache: redis://h\ndatabase: dbname=x\n"
#define ITEMS "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
#define SLOWER "  - {name: items, key: \"item:{id}\", table: items, value: v, ttl: 1h}\n"
#define USERS "  - {name: users, key: \"user:{id}\", table: users, value: v}\n"
#define ORDERS "  - {name: orders, key: \"order:{id}\", table: orders, value: v}\n"

/* A new string: what is answered when this follows that. */
static char *answer(const char *before, const char *after)
{
    struct reload reload = {0};
    struct config *running = config_from_text(before), *wanted = config_from_text(after);
    assert_int_equal(config_follow(wanted, running, &reload.changes), 0);
    json_t *body = configuration_reload_json(&reload, wanted);
    char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(body);
    reload_finish(&reload);
    config_destroy(running);
    config_destroy(wanted);
    return text;
}

static void must_say(const char *before, const char *after, const char *said)
{
    char *text = answer(before, after);
    assert_string_equal(text, said);
    free(text);
}

static void each_change_and_each_keyspace_is_named(void **state)
{
    (void)state;
    must_say(HEAD "load_budget: 10\nkeyspaces:\n" ITEMS USERS ORDERS,
             HEAD "load_budget: 20\nlisten: 127.0.0.1:7000\nkeyspaces:\n" SLOWER USERS
                  "  - {name: shops, key: \"shop:{id}\", table: shops, value: v}\n",
             "{\"changes\":["
             "{\"after\":\"127.0.0.1:7000\",\"before\":\"127.0.0.1:6380\",\"taken\":false,"
             "\"what\":\"listen\"},"
             "{\"after\":\"20\",\"before\":\"10\",\"taken\":true,\"what\":\"load_budget\"},"
             "{\"after\":\"\",\"before\":\"order:{id}\",\"taken\":true,\"what\":\"keyspace "
             "orders\"},"
             "{\"after\":\"1h\",\"before\":\"10m\",\"taken\":true,\"what\":\"ttl of keyspace "
             "items\"},"
             "{\"after\":\"shop:{id}\",\"before\":\"\",\"taken\":true,\"what\":\"keyspace shops\"}"
             "],\"keyspaces\":{\"added\":[\"shops\"],\"changed\":[\"items\"],\"left\":[\"users\"],"
             "\"removed\":[\"orders\"]},\"problems\":[],\"restart\":[\"listen\"]}");
}

static void the_same_file_changes_nothing(void **state)
{
    (void)state;
    must_say(HEAD "keyspaces:\n" ITEMS, HEAD "keyspaces:\n" ITEMS,
             "{\"changes\":[],\"keyspaces\":{\"added\":[],\"changed\":[],\"left\":[\"items\"],"
             "\"removed\":[]},\"problems\":[],\"restart\":[]}");
}

static void a_file_that_is_refused_is_said_to_have_changed_nothing(void **state)
{
    struct reload reload = {.refused = true};
    struct config *running = config_from_text(HEAD "keyspaces:\n" ITEMS);
    (void)state;
    problems_add(&reload.problems, PROBLEM_ERROR, "guard.yaml:7", "guard it", "unknown setting");
    json_t *body = configuration_reload_json(&reload, running);
    char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(
        text, "{\"changes\":[],\"error\":\"the file has errors: nothing was changed\","
              "\"keyspaces\":{\"added\":[],\"changed\":[],\"left\":[\"items\"],\"removed\":[]},"
              "\"problems\":[{\"level\":\"error\",\"place\":\"guard.yaml:7\",\"remedy\":\"guard "
              "it\",\"text\":\"unknown "
              "setting\"}],\"restart\":[]}");
    free(text);
    json_decref(body);
    reload_finish(&reload);
    config_destroy(running);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_and_each_keyspace_is_named),
        cmocka_unit_test(the_same_file_changes_nothing),
        cmocka_unit_test(a_file_that_is_refused_is_said_to_have_changed_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
