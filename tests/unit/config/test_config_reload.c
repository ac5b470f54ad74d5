/* What a reload keeps of the running configuration, and what it takes from the file. */
#include "config/config_reload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "base/memory.h"
#include "config/setting_value.h"
#include "fakes/config_file.h"
#include "members.h"

#define HEAD                                                                                       \
    "cache: redis://user:secret@127.0.0.1:6379/2\n"                                                \
    "database: postgresql://app@db/shop\n"                                                         \
    "sync: poll\n"
#define ITEMS "  - {name: items, key: \"item:{id}\", table: public.items, value: payload"
#define OTHERS "  - {name: others, key: \"other:{a}:{b}\", table: others, value: json"

/* A value for every setting, each other than the default. */
static const char full[] =
    "listen: [127.0.0.1:7001, \"unix:/tmp/x.sock\"]\ncontrol: \"[::1]:7002\"\n"
    "control_token: t0ken\nunix_socket_mode: 600\npassword: hunter2\nworkers: 3\n" HEAD
    "poll_interval: 3m\nmax_lag: 3s\npublication: other\nbuild_connections: 5\n"
    "load_connections: 7\nload_timeout: 7s\nload_budget: 77\n"
    "cache_timeout: 8s\ncache_connections: 5\nmax_clients: 55\nmax_strangers: 56\n"
    "authentication_timeout: 57s\nclient_idle_timeout: 58s\nmax_arguments: 555\n"
    "max_bulk: 5mb\nmax_command: 6mb\nmax_output: 7mb\noutput_timeout: 9s\nhint_ttl: 4s\n"
    "max_hints: 44\nmax_known_absent: 45\nmax_filter_memory: 46mb\ndrain_delay: "
    "48s\ndrain_timeout: 47s\n"
    "log_format: json\nlog_level: error\n"
    "keyspaces:\n" ITEMS ", where: \"not gone\", ttl: 1h,\n"
    "     ttl_jitter: 20%, false_positive_rate: 0.001, on_absent: value, absent_value: nope,\n"
    "     on_miss: pass, enforce: false}\n" OTHERS "}\n";

/* What a reload has not taken. */
static size_t refused(const struct setting_changes *changes)
{
    size_t count = 0;
    for (size_t i = 0; i < changes->count; i++)
        count += !changes->at[i].taken;
    return count;
}

/* The configuration after a reload of `wanted`; how many differences need a restart. */
static struct config *reloaded(const char *running_text, const char *wanted_text, size_t *reported)
{
    struct setting_changes changes = {0}, again = {0};
    struct config *running = config_from_text(running_text);
    struct config *wanted = config_from_text(wanted_text);
    struct config *same = config_from_text(wanted_text);
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    *reported = refused(&changes);
    assert_int_equal(config_follow(same, wanted, &again), 0);
    assert_int_equal(again.count, *reported); /* nothing but what is fixed differs still */
    setting_changes_finish(&changes);
    setting_changes_finish(&again);
    config_destroy(same);
    config_destroy(running); /* the copies must stand by themselves */
    return wanted;
}

/* ---- copying ---- */

static void check_copies(const struct setting *table, const void *from, void *to)
{
    for (const struct setting *row = table; row->name; row++) {
        setting_copy(row, to, from);
        if (!setting_equal(row, from, to))
            fail_msg("the copy of %s differs", row->name);
    }
}

static void finish_copies(const struct setting *table, void *copy)
{
    for (const struct setting *row = table; row->name; row++)
        setting_finish(row, copy);
}

static void a_copy_equals_and_shares_no_memory(void **state)
{
    struct config *config = config_from_text(full);
    struct config copy = {0};
    struct keyspace keyspaces[2] = {{0}};
    (void)state;
    check_copies(config_settings, config, &copy);
    for (size_t i = 0; i < 2; i++)
        check_copies(keyspace_settings, &config->keyspaces[i], &keyspaces[i]);
    config_destroy(config);
    assert_int_equal(copy.listens, 2);
    assert_string_equal(copy.listen[1].path, "/tmp/x.sock");
    assert_string_equal(copy.control.host, "::1");
    assert_string_equal(copy.cache.password, "secret");
    assert_int_equal(copy.drain_timeout_ms, 47000);
    assert_int_equal(copy.log_format, LOG_JSON);
    assert_int_equal(copy.log_level, LOG_LEVEL_ERROR);
    assert_string_equal(keyspaces[0].absent_value, "nope");
    assert_true(key_template_matches(&keyspaces[1].key, span_of("other:1:2")));
    assert_true(keyspaces[1].value_is_json);
    assert_null(keyspaces[1].where);
    finish_copies(config_settings, &copy);
    for (size_t i = 0; i < 2; i++)
        finish_copies(keyspace_settings, &keyspaces[i]);
}

/* ---- keeping ---- */

#define TWO HEAD "keyspaces:\n" ITEMS "}\n" OTHERS "}\n"

static void the_same_file_changes_nothing(void **state)
{
    size_t reported;
    struct config *config = reloaded(full, full, &reported);
    (void)state;
    assert_int_equal(reported, 0);
    assert_int_equal(config->keyspace_count, 2);
    config_destroy(config);
}

static void what_can_change_is_taken_from_the_file(void **state)
{
    size_t reported;
    struct config *config = reloaded(TWO,
                                     HEAD "load_budget: 9\npassword: fresh\nmax_output: 9mb\n"
                                          "poll_interval: 9m\nkeyspaces:\n" ITEMS
                                          ", ttl: 9s, enforce: false}\n" OTHERS "}\n",
                                     &reported);
    (void)state;
    assert_int_equal(reported, 0);
    assert_int_equal(config->load_budget, 9);
    assert_string_equal(config->password, "fresh");
    assert_int_equal(config->max_output, 9 * 1024 * 1024);
    assert_int_equal(config->poll_interval_ms, 9 * 60 * 1000);
    assert_int_equal(config->keyspaces[0].ttl_ms, 9000);
    assert_false(config->keyspaces[0].enforce);
    assert_true(config->keyspaces[1].enforce);
    config_destroy(config);
}

static void what_is_fixed_is_kept_and_named(void **state)
{
    size_t reported;
    struct config *config =
        reloaded(TWO,
                 "listen: 127.0.0.1:7009\ncontrol: 127.0.0.1:7010\n"
                 "workers: 200\n"
                 "cache: redis://127.0.0.1:6399\ndatabase: host=elsewhere\n"
                 "sync: none\npublication: elsewhere\nload_connections: 9\ncache_connections: 9\n"
                 "keyspaces:\n" ITEMS "}\n" OTHERS "}\n",
                 &reported);
    (void)state;
    assert_int_equal(reported, 5);
    assert_string_equal(config->listen[0].text, "127.0.0.1:6380");
    assert_false(config->has_control);
    assert_int_not_equal(config->workers, 200);
    assert_int_equal(config->cache.address.port, 6399);
    assert_null(config->cache.user);
    assert_string_equal(config->database, "host=elsewhere");
    assert_int_equal(config->sync, SYNC_POLL);
    assert_string_equal(config->publication, "nestguard");
    assert_int_equal(config->load_connections, 9);
    assert_int_equal(config->cache_connections, 9);
    config_destroy(config);
}

static const struct setting_change *find_change(const struct setting_changes *changes,
                                                const char *what)
{
    for (size_t i = 0; i < changes->count; i++)
        if (strcmp(changes->at[i].what, what) == 0)
            return &changes->at[i];
    return NULL;
}

/* Whoever asked it was told that it is no use. */
static void a_cache_that_stays_is_named_with_its_reason(void **state)
{
    struct setting_changes changes = {.cache_stays = xstrdup("it is a replica")};
    struct config *running = config_from_text(TWO);
    struct config *wanted = config_from_text("cache: redis://:secret@127.0.0.1:6399\n"
                                             "sentinel_user: me\nload_budget: 9\n"
                                             "database: postgresql://app@db/shop\nsync: poll\n"
                                             "keyspaces:\n" ITEMS "}\n" OTHERS "}\n");
    (void)state;
    assert_true(config_moves_cache(running, wanted));
    assert_false(config_moves_cache(running, running));
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    for (size_t i = 0; i < 2; i++) {
        const struct setting_change *change = find_change(&changes, i ? "sentinel_user" : "cache");
        assert_false(change->taken);
        assert_string_equal(change->why, "it is a replica");
    }
    assert_true(find_change(&changes, "load_budget")->taken);
    assert_null(strstr(find_change(&changes, "cache")->after, "secret"));
    assert_string_equal(wanted->cache.user, "user");
    assert_null(wanted->sentinel_user);
    assert_false(config_moves_cache(running, wanted));
    setting_changes_finish(&changes);
    config_destroy(wanted);
    config_destroy(running);
}

#define PUBLISHED "keyspaces:\n" ITEMS ", publish: {key: one}}\n"

static void must_not_publish(const char *running_text, const char *wanted_text, const char *why)
{
    struct setting_changes changes = {.cache_stays = xstrdup("it takes a restart")};
    struct config *running = config_from_text(running_text);
    struct config *wanted = config_from_text(wanted_text);
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    const struct setting_change *change = find_change(&changes, "publish of keyspace items");
    assert_false(change->taken);
    assert_non_null(strstr(change->why, why));
    assert_null(wanted->keyspaces[wanted->keyspace_count - 1].publish.key);
    setting_changes_finish(&changes);
    config_destroy(wanted);
    config_destroy(running);
}

/* Each file is right by itself. */
static void nothing_is_published_by_what_stays(void **state)
{
    static const char plain[] = "cache: redis://c\n", cluster[] = "cache: redis-cluster://c\n";
    static const char *const syncs[] = {"poll", "none"};
    static const char database[] = "database: postgresql://d/e\n";
    (void)state;
    for (int has_items = 0; has_items < 2; has_items++) {
        const char *keyspace = has_items ? ITEMS "}\n" : OTHERS "}\n";
        char *running = xasprintf("%s%skeyspaces:\n%s", cluster, database, keyspace);
        char *wanted = xasprintf("%s%s" PUBLISHED, plain, database);
        must_not_publish(running, wanted, "it takes a restart");
        free(running);
        for (size_t i = 0; i < (has_items ? 2 : 1); i++) { /* none takes no new table */
            running =
                xasprintf("%s%ssync: %s\nkeyspaces:\n%s", plain, database, syncs[i], keyspace);
            must_not_publish(running, wanted, "new rows");
            free(running);
        }
        free(wanted);
    }
}

/* A log does not tell of a query's rows, and tells of deletions. */
static void what_only_another_sync_can_have_is_refused(void **state)
{
    static const char *const keyspaces[] = {
        ITEMS ", filter: bloom}\n",
        "  - {name: items, key: \"item:{id}\", query: \"SELECT id, v FROM t\", value: v}\n"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct setting_changes changes = {0};
        char *text = xasprintf("cache: redis://c\ndatabase: postgresql://d/e\nsync: poll\n"
                               "keyspaces:\n%s",
                               keyspaces[i]);
        struct config *running = config_from_text("cache: redis://c\ndatabase: postgresql://d/e\n"
                                                  "keyspaces:\n" ITEMS "}\n");
        struct config *wanted = config_from_text(text);
        assert_int_equal(config_follow(wanted, running, &changes), -EINVAL);
        setting_changes_finish(&changes);
        config_destroy(wanted);
        config_destroy(running);
        free(text);
    }
}

/* With none, its new rows would be denied for good; which is in force, too, without any rows. */
static void a_table_that_would_not_be_followed_is_refused(void **state)
{
    static const char *const before[] = {
        "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n"
        "  - {name: files, key: \"file:{id}\", source: \"file:/keys\", on_miss: pass}\n",
        "cache: redis://c\ndatabase: postgresql://d/e\nsync: none\nkeyspaces:\n" OTHERS "}\n"};
    static const char *const syncs[] = {"replication", "poll", "none"};
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct setting_changes changes = {0};
        struct config *running = config_from_text(before[i % 2]);
        char *text =
            xasprintf("%s" ITEMS "}\nsync: %s\n",
                      "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n", syncs[i / 2]);
        struct config *wanted = config_from_text(text);
        assert_int_equal(config_follow(wanted, running, &changes), i / 2 == 2 ? 0 : -EINVAL);
        setting_changes_finish(&changes);
        config_destroy(wanted);
        config_destroy(running);
        free(text);
    }
}

/* Whatever the file says. */
static void a_table_that_is_there_stays_by_none(void **state)
{
    static const char head[] = "cache: redis://c\ndatabase: postgresql://d/e\n";
    struct setting_changes changes = {0};
    char *text = xasprintf("%ssync: none\nkeyspaces:\n" ITEMS "}\n", head);
    struct config *running = config_from_text(text);
    (void)state;
    free(text);
    text = xasprintf("%skeyspaces:\n" ITEMS ", ttl: 1m}\n", head);
    struct config *wanted = config_from_text(text);
    free(text);
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    assert_int_equal(wanted->sync, SYNC_NONE);
    setting_changes_finish(&changes);
    config_destroy(wanted);
    config_destroy(running);
}

/* Of several hosts the process keeps to the primary from its start on. */
static void several_hosts_in_the_place_of_one_need_a_restart(void **state)
{
    static const char one[] = "cache: redis://h\ndatabase: host=a\nkeyspaces:\n" ITEMS "}\n",
                      two[] = "cache: redis://h\ndatabase: \"host=a,b\"\nkeyspaces:\n" ITEMS "}\n",
                      three[] =
                          "cache: redis://h\ndatabase: \"host=a,b,c\"\nkeyspaces:\n" ITEMS "}\n";
    size_t reported;
    (void)state;
    struct config *config = reloaded(one, two, &reported);
    assert_int_equal(reported, 1);
    assert_string_equal(config->database, "host=a");
    config_destroy(config);
    config = reloaded(two, three, &reported);
    assert_int_equal(reported, 0);
    assert_string_equal(config->database, "host=a,b,c");
    config_destroy(config);
}

/* No connection tells what else of the same server's it would show. */
static void what_the_same_database_shows_otherwise_needs_a_restart(void **state)
{
    static const char one[] = "cache: redis://h\ndatabase: host=a\nkeyspaces:\n" ITEMS "}\n",
                      path[] = "cache: redis://h\ndatabase: \"host=a options='-c search_path=b'\"\n"
                               "keyspaces:\n" ITEMS "}\n",
                      role[] = "cache: redis://h\ndatabase: host=a user=b dbname=c password=d\n"
                               "keyspaces:\n" ITEMS "}\n";
    size_t reported;
    (void)state;
    struct config *config = reloaded(one, path, &reported);
    assert_int_equal(reported, 1);
    assert_string_equal(config->database, "host=a");
    config_destroy(config);
    config = reloaded(one, role, &reported);
    assert_int_equal(reported, 0);
    assert_string_equal(config->database, "host=a user=b dbname=c password=d");
    config_destroy(config);
}

static void a_control_port_that_stays_open_to_others_keeps_its_token(void **state)
{
    size_t reported;
    struct config *config = reloaded("control: 0.0.0.0:7002\ncontrol_token: t0ken\n" TWO,
                                     "control: 127.0.0.1:7002\n" TWO, &reported);
    (void)state;
    assert_int_equal(reported, 2);
    assert_string_equal(config->control.text, "0.0.0.0:7002");
    assert_string_equal(config->control_token, "t0ken");
    config_destroy(config);
    config = reloaded("control: 0.0.0.0:7002\ncontrol_token: t0ken\n" TWO,
                      "control: 0.0.0.0:7002\ncontrol_token: other\n" TWO, &reported);
    assert_int_equal(reported, 0);
    assert_string_equal(config->control_token, "other");
    config_destroy(config);
}

static void what_was_there_stays_when_the_file_leaves_it_out(void **state)
{
    size_t reported;
    struct config *config = reloaded(full, TWO, &reported);
    (void)state;
    assert_int_equal(config->listens, 2);
    assert_true(config->has_control);
    assert_null(config->control_token); /* the control port is a loopback address */
    assert_null(config->password);
    assert_int_equal(config->workers, 3);
    assert_int_equal(config->keyspaces[1].ttl_ms, 600000);
    config_destroy(config);
}

/* ---- keyspaces and their numbers ---- */

#define MORE "  - {name: more, key: \"more:{id}\", table: more, value: v}\n"

static bool matches(const struct config *config, size_t number, const char *key)
{
    return key_template_matches(&config->keyspaces[number].key, span_of(key));
}

static void a_new_keyspace_gets_the_next_number_wherever_it_stands(void **state)
{
    size_t reported;
    struct config *config =
        reloaded(TWO, HEAD "keyspaces:\n" MORE OTHERS "}\n" ITEMS ", ttl: 9s}\n", &reported);
    (void)state;
    assert_int_equal(reported, 0);
    assert_int_equal(config->keyspace_count, 3);
    assert_string_equal(config->keyspaces[0].name, "items");
    assert_int_equal(config->keyspaces[0].ttl_ms, 9000);
    assert_string_equal(config->keyspaces[1].name, "others");
    assert_string_equal(config->keyspaces[2].name, "more");
    assert_false(config->keyspaces[0].retired || config->keyspaces[1].retired);
    config_destroy(config);
}

static void one_that_is_removed_keeps_its_number_and_matches_nothing(void **state)
{
    size_t reported;
    struct config *config = reloaded(TWO, HEAD "keyspaces:\n" OTHERS "}\n", &reported);
    (void)state;
    assert_int_equal(config->keyspace_count, 2);
    assert_true(config->keyspaces[0].retired);
    assert_false(matches(config, 0, "item:1"));
    assert_true(matches(config, 1, "other:1:2"));
    assert_string_equal(config->keyspaces[0].table_name, "items");
    config_destroy(config);
}

/* The filter of the one before would reject by another rule. */
static void must_become_another(const char *settings)
{
    char wanted[2000];
    size_t reported;
    snprintf(wanted, sizeof wanted, "%skeyspaces:\n  - {%s}\n%s}\n", HEAD, settings, OTHERS);
    struct config *config = reloaded(TWO, wanted, &reported);
    assert_int_equal(reported, 0);
    assert_int_equal(config->keyspace_count, 3);
    assert_true(config->keyspaces[0].retired);
    assert_false(matches(config, 0, "item:1"));
    assert_false(config->keyspaces[2].retired);
    config_destroy(config);
}

static void with_other_keys_or_rows_it_is_another(void **state)
{
    (void)state;
    must_become_another("name: items, key: \"thing:{id}\", table: public.items, value: payload");
    must_become_another("name: items, key: \"item:{no}\", table: public.items, value: payload");
    must_become_another("name: items, key: \"item:{id}\", table: other.items, value: payload");
    must_become_another("name: items, key: \"item:{id}\", table: public.items, value: payload, "
                        "where: \"x = 1\"");
    must_become_another("name: renamed, key: \"item:{id}\", table: public.items, value: payload");
}

static void with_other_values_it_is_the_same_and_that_is_seen(void **state)
{
    struct setting_changes changes = {0};
    struct config *running = config_from_text(TWO);
    struct config *wanted = config_from_text(
        HEAD "keyspaces:\n  - {name: items, key: \"item:{id}\", table: public.items, value: body,"
             " enforce: false}\n" OTHERS "}\n");
    (void)state;
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    assert_int_equal(wanted->keyspace_count, 2);
    assert_false(config_same_values(&running->keyspaces[0], &wanted->keyspaces[0]));
    assert_true(config_same_values(&running->keyspaces[1], &wanted->keyspaces[1]));
    assert_int_equal(changes.count, 2);
    assert_string_equal(changes.at[0].what, "value of keyspace items");
    assert_string_equal(changes.at[0].before, "payload");
    assert_string_equal(changes.at[0].after, "body");
    assert_true(changes.at[0].taken);
    assert_string_equal(changes.at[1].what, "enforce of keyspace items");
    setting_changes_finish(&changes);
    config_destroy(wanted);
    config_destroy(running);
}

static void what_comes_back_is_not_what_was_removed(void **state)
{
    struct setting_changes changes = {0};
    size_t reported;
    struct config *without = reloaded(TWO, HEAD "keyspaces:\n" OTHERS "}\n", &reported);
    struct config *back = config_from_text(TWO);
    (void)state;
    assert_int_equal(config_follow(back, without, &changes), 0);
    assert_int_equal(back->keyspace_count, 3);
    assert_true(back->keyspaces[0].retired);
    assert_string_equal(back->keyspaces[2].name, "items");
    assert_true(matches(back, 2, "item:1"));
    assert_int_equal(changes.count, 1);
    assert_string_equal(changes.at[0].what, "keyspace items");
    assert_string_equal(changes.at[0].before, "");
    assert_string_equal(changes.at[0].after, "item:{id}");
    setting_changes_finish(&changes);
    config_destroy(without);
    config_destroy(back);
}

/* Each time another where: the numbers end, and what runs is left as it is. */
static void numbers_are_not_given_twice(void **state)
{
    struct config *running = config_from_text(TWO);
    int status = 0;
    unsigned times = 0;
    (void)state;
    for (; !status; times++) {
        char text[500];
        struct setting_changes changes = {0};
        snprintf(text, sizeof text, "%skeyspaces:\n%s, where: \"x = %u\"}\n%s}\n", HEAD, ITEMS,
                 times, OTHERS);
        struct config *wanted = config_from_text(text);
        status = config_follow(wanted, running, &changes);
        setting_changes_finish(&changes);
        config_destroy(status ? wanted : running);
        running = status ? running : wanted;
    }
    assert_int_equal(times, KEYSPACES_MAX - 2 + 1);
    assert_int_equal(running->keyspace_count, KEYSPACES_MAX);
    config_destroy(running);
}

static void no_secret_is_told(void **state)
{
    struct setting_changes changes = {0};
    struct config *running = config_from_text("password: hunter2\n" TWO);
    struct config *wanted = config_from_text("password: swordfish\n" TWO);
    (void)state;
    assert_int_equal(config_follow(wanted, running, &changes), 0);
    assert_int_equal(changes.count, 1);
    assert_string_equal(changes.at[0].what, "password");
    assert_string_equal(changes.at[0].before, "(hidden)");
    assert_string_equal(changes.at[0].after, "(hidden)");
    setting_changes_finish(&changes);
    config_destroy(wanted);
    config_destroy(running);
}

static void a_keyspace_with_a_value_may_stop_and_begin_to_load(void **state)
{
    static const char passing[] = HEAD "keyspaces:\n" ITEMS ", on_miss: pass}\n";
    static const char loading[] = HEAD "keyspaces:\n" ITEMS ", on_miss: load}\n";
    size_t reported;
    struct config *config = reloaded(passing, loading, &reported);
    (void)state;
    assert_int_equal(config->keyspaces[0].on_miss, MISS_LOAD);
    config_destroy(config);
    config = reloaded(loading, passing, &reported);
    assert_int_equal(config->keyspaces[0].on_miss, MISS_PASS);
    config_destroy(config);
}

/* ---- every member ---- */

/* What a row keeps in its struct; those that it keeps beside its own member are `derived`. */
static size_t member_size(enum setting_type type)
{
    static const size_t sizes[] = {
        [SETTING_COUNT] = sizeof(unsigned),
        [SETTING_DURATION] = sizeof(uint64_t),
        [SETTING_SIZE] = sizeof(size_t),
        [SETTING_SHARE] = sizeof(double),
        [SETTING_FLAG] = sizeof(bool),
        [SETTING_CHOICE] = sizeof(unsigned),
        [SETTING_TEXT] = sizeof(char *),
        [SETTING_NAME] = sizeof(char *),
        [SETTING_SECRET] = sizeof(char *),
        [SETTING_DATABASE] = sizeof(char *),
        [SETTING_CACHE] = sizeof(struct cache_url),
        [SETTING_CONTROL] = sizeof(struct address),
        [SETTING_LISTEN] = sizeof(struct address *),
        [SETTING_KEYSPACES] = sizeof(struct keyspace *),
        [SETTING_KEY] = sizeof(struct key_template),
        [SETTING_TABLE] = sizeof(char *),
        [SETTING_VALUE] = sizeof(char *),
        [SETTING_DEPENDS] = sizeof(struct dependencies),
        [SETTING_PUBLISH] = sizeof(struct publish),
    };
    return sizes[type];
}

static void unmark_rows(void *marked, const struct setting *table)
{
    for (const struct setting *row = table; row->name; row++) {
        struct member member = {row->offset, member_size(row->type)};
        unmark(marked, &member, 1);
    }
}

/* A member that no row stands for is neither compared nor copied by one, so it must be known here
 * who sees to it. */
static void every_member_has_a_row_or_is_made_of_what_has(void **state)
{
    static const struct member config_derived[] = {
        MEMBER(struct config, file),           /* where it was read */
        MEMBER(struct config, listens),        /* with listen */
        MEMBER(struct config, has_control),    /* with control */
        MEMBER(struct config, keyspace_count), /* with keyspaces */
        MEMBER(struct config, clients_tls),    /* read again; kept where it is wanted no more */
        MEMBER(struct config, cache_tls),      /* kept, unless the cache is elsewhere */
        MEMBER(struct config, sentinels_tls),  /* likewise */
        MEMBER(struct config, limits),         /* worked out anew, of those that are kept, too */
        MEMBER(struct config, is_draft),       /* none that is served by */
        MEMBER(struct config, lacks_cache),    /* with that */
        MEMBER(struct config, lacks_database), /* with that */
        MEMBER(struct config, left_out),       /* with that */
    };
    struct config config;
    (void)state;
    MARK_MEMBERS(&config);
    unmark_rows(&config, config_settings);
    unmark(&config, config_derived, COUNT_OF(config_derived));
    assert_int_equal(first_marked(&config, sizeof config), sizeof config);
}

/* A list of values by position: that one is missing is a mistake to the compiler. (What it says of
 * the padding in a struct with arrays of structs cannot be relied on.) */
static void every_member_of_a_keyspace_is_known(void **state)
{
    static const struct member derived[] = {
        MEMBER(struct keyspace, table_schema),     /* with table */
        MEMBER(struct keyspace, table_name),       /* with table */
        MEMBER(struct keyspace, value_is_json),    /* with value */
        MEMBER(struct keyspace, value_expression), /* likewise */
        MEMBER(struct keyspace, columns),          /* likewise */
        MEMBER(struct keyspace, line),             /* where it was read */
        MEMBER(struct keyspace, retired),          /* when it is none any more */
    };
    struct keyspace every = {NULL,
                             {.columns = 1},
                             NULL,
                             1,
                             1,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             true,
                             FILL_STRING,
                             NULL,
                             {NULL, 1},
                             {NULL, 1},
                             1,
                             NULL,
                             1,
                             1,
                             FILTER_CUCKOO,
                             1,
                             ABSENT_NIL,
                             NULL,
                             MISS_LOAD,
                             true,
                             {NULL, BITMAP_GUAVA_64, 1, PUBLISH_KEY, true},
                             1,
                             false};
    size_t rows = 0;
    (void)state;
    while (keyspace_settings[rows].name)
        rows++;
    assert_int_equal(rows + COUNT_OF(derived), 29);
    memset(&every, 0xff, sizeof every);
    unmark_rows(&every, keyspace_settings);
    unmark(&every, derived, COUNT_OF(derived));
    assert_int_equal(first_marked(&every, offsetof(struct keyspace, value_is_json)),
                     offsetof(struct keyspace, value_is_json));
}

/* The two differ in one thing that a row of this type stands for. */
static void must_see(const struct setting *row, const void *a, const void *b)
{
    if (setting_equal(row, a, b) || setting_equal(row, b, a))
        fail_msg("a change of %s is not seen", row->name);
}

static const struct setting *row_of(const struct setting *table, const char *name)
{
    return &table[setting_index(table, name)];
}

static void every_difference_in_a_plain_member_or_a_text_is_seen(const struct setting *table,
                                                                 void *one, void *other)
{
    static char texts[] = "another";
    for (const struct setting *row = table; row->name; row++) {
        char *member = (char *)other + row->offset;
        bool is_text = row->type == SETTING_TEXT || row->type == SETTING_NAME ||
                       row->type == SETTING_SECRET || row->type == SETTING_DATABASE;
        if (row->type <= SETTING_CHOICE)
            member[0] ^= 1;
        else if (is_text)
            *(char **)member = texts;
        else
            continue;
        must_see(row, one, other);
        memcpy(member, (char *)one + row->offset, member_size(row->type));
    }
}

static void every_difference_is_seen(void **state)
{
    struct config one = {0}, other = {0};
    struct keyspace a = {.table_name = (char *)"a"}, b = {.table_name = (char *)"b"};
    struct address plain = {.host = (char *)"a", .port = 1}, encrypted = plain;
    (void)state;
    encrypted.tls = true;
    every_difference_in_a_plain_member_or_a_text_is_seen(config_settings, &one, &other);
    one = (struct config){
        .listen = &plain, .listens = 1, .control = plain, .cache = {.address = plain}};
    other = one;
    other.listen = &encrypted;
    must_see(row_of(config_settings, "listen"), &one, &other);
    other.control = encrypted;
    must_see(row_of(config_settings, "control"), &one, &other);
    other.cache.address = encrypted;
    must_see(row_of(config_settings, "cache"), &one, &other);
    must_see(row_of(keyspace_settings, "table"), &a, &b);
    b = (struct keyspace){.table_name = a.table_name, .table_schema = (char *)"s"};
    must_see(row_of(keyspace_settings, "table"), &a, &b);
    b.value_is_json = true;
    must_see(row_of(keyspace_settings, "value"), &a, &b);
    b = a;
    every_difference_in_a_plain_member_or_a_text_is_seen(keyspace_settings, &a, &b);
    b = a;
    every_difference_in_a_plain_member_or_a_text_is_seen(publish_settings, &a.publish, &b.publish);
    b.publish.grow = true;
    must_see(row_of(keyspace_settings, "publish"), &a, &b);
}

static void what_is_published_may_change_and_makes_no_other_keyspace(void **state)
{
    static const char running[] = "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n" ITEMS
                                  ", publish: {key: one, items: key}}\n";
    static const char wanted[] = "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n" ITEMS
                                 ", publish: {key: other}}\n";
    static const char without[] =
        "cache: redis://c\ndatabase: postgresql://d/e\nkeyspaces:\n" ITEMS "}\n";
    size_t reported;
    (void)state;
    struct config *config = reloaded(running, wanted, &reported);
    assert_int_equal(reported, 0);
    assert_int_equal(config->keyspace_count, 1);
    assert_string_equal(config->keyspaces[0].publish.key, "other");
    assert_int_equal(config->keyspaces[0].publish.items, PUBLISH_COLUMNS);
    config_destroy(config);
    config = reloaded(without, wanted, &reported);
    assert_string_equal(config->keyspaces[0].publish.key, "other");
    config_destroy(config);
    config = reloaded(wanted, without, &reported);
    assert_null(config->keyspaces[0].publish.key);
    assert_int_equal(config->keyspace_count, 1);
    config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_equals_and_shares_no_memory),
        cmocka_unit_test(the_same_file_changes_nothing),
        cmocka_unit_test(what_can_change_is_taken_from_the_file),
        cmocka_unit_test(what_is_fixed_is_kept_and_named),
        cmocka_unit_test(a_cache_that_stays_is_named_with_its_reason),
        cmocka_unit_test(nothing_is_published_by_what_stays),
        cmocka_unit_test(what_only_another_sync_can_have_is_refused),
        cmocka_unit_test(a_table_that_would_not_be_followed_is_refused),
        cmocka_unit_test(a_table_that_is_there_stays_by_none),
        cmocka_unit_test(several_hosts_in_the_place_of_one_need_a_restart),
        cmocka_unit_test(what_the_same_database_shows_otherwise_needs_a_restart),
        cmocka_unit_test(a_control_port_that_stays_open_to_others_keeps_its_token),
        cmocka_unit_test(what_was_there_stays_when_the_file_leaves_it_out),
        cmocka_unit_test(a_new_keyspace_gets_the_next_number_wherever_it_stands),
        cmocka_unit_test(one_that_is_removed_keeps_its_number_and_matches_nothing),
        cmocka_unit_test(with_other_keys_or_rows_it_is_another),
        cmocka_unit_test(with_other_values_it_is_the_same_and_that_is_seen),
        cmocka_unit_test(what_comes_back_is_not_what_was_removed),
        cmocka_unit_test(numbers_are_not_given_twice),
        cmocka_unit_test(no_secret_is_told),
        cmocka_unit_test(a_keyspace_with_a_value_may_stop_and_begin_to_load),
        cmocka_unit_test(every_member_has_a_row_or_is_made_of_what_has),
        cmocka_unit_test(every_member_of_a_keyspace_is_known),
        cmocka_unit_test(every_difference_is_seen),
        cmocka_unit_test(what_is_published_may_change_and_makes_no_other_keyspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
