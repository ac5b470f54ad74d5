/* The cache's URL, and that every member of it and of an address is compared and copied. */
#include "config/syntax/cache_url.h"
#include "members.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A URL beside another that differs from it in one member alone. */
struct pair {
    struct member member;
    const char *one, *other;
};

static const struct pair address_pairs[] = {
    {MEMBER(struct address, host), "redis://a:1", "redis://b:1"},
    {MEMBER(struct address, path), "unix:/a", "unix:/b"},
    {MEMBER(struct address, port), "redis://a:1", "redis://a:2"},
    {MEMBER(struct address, tls), "redis://a:1", "rediss://a:1"},
    {MEMBER(struct address, text), NULL, NULL}, /* as written: not compared */
};

static const struct pair url_pairs[] = {
    {MEMBER(struct cache_url, address), "redis://a:1", "redis://b:1"},
    {MEMBER(struct cache_url, user), "redis://u:p@a:1", "redis://v:p@a:1"},
    {MEMBER(struct cache_url, password), "redis://u:p@a:1", "redis://u:q@a:1"},
    {MEMBER(struct cache_url, db), "redis://a:1/0", "redis://a:1/1"},
    {MEMBER(struct cache_url, primary), "redis-sentinel://a/b", "redis-sentinel://a/c"},
    {MEMBER(struct cache_url, seeds), "redis-sentinel://a,b/n", "redis-sentinel://a,c/n"},
    {MEMBER(struct cache_url, is_cluster), "redis-sentinel://a/n", "redis-cluster://a"},
    {MEMBER(struct cache_url, seed_count), "redis-sentinel://a/n", "redis-sentinel://a,b/n"},
};

static struct cache_url parsed_url(const char *text)
{
    struct cache_url url;
    const char *error = "";
    if (cache_url_parse(&url, text, &error) != 0)
        fail_msg("\"%s\" was refused: %s", text, error);
    return url;
}

static void must_differ(const struct pair *pair)
{
    struct cache_url one = parsed_url(pair->one), other = parsed_url(pair->other), copy;
    if (cache_url_equal(&one, &other) || cache_url_equal(&other, &one))
        fail_msg("%s is taken for %s", pair->one, pair->other);
    cache_url_copy(&copy, &other);
    if (!cache_url_equal(&copy, &other) || strcmp(copy.address.text, other.address.text) != 0)
        fail_msg("%s is not copied whole", pair->other);
    cache_url_finish(&one);
    cache_url_finish(&other); /* the copy stands by itself */
    cache_url_finish(&copy);
}

static void check_pairs(void *marked, size_t size, const struct pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unmark(marked, &pairs[i].member, 1);
        if (pairs[i].one)
            must_differ(&pairs[i]);
    }
    if (first_marked(marked, size) < size)
        fail_msg("nothing is known of the member at %zu", first_marked(marked, size));
}

static void every_member_is_compared_and_copied(void **state)
{
    struct address address;
    struct cache_url url;
    (void)state;
    MARK_MEMBERS(&address);
    check_pairs(&address, sizeof address, address_pairs, COUNT_OF(address_pairs));
    MARK_MEMBERS(&url);
    check_pairs(&url, sizeof url, url_pairs, COUNT_OF(url_pairs));
}

/* What a URL means, as "ADDRESS user=U password=P db=N". */
static void check_url(const char *text, const char *wanted)
{
    struct cache_url url;
    const char *error = NULL;
    char got[200];
    if (cache_url_parse(&url, text, &error) != 0)
        fail_msg("\"%s\" was refused: %s", text, error);
    snprintf(got, sizeof got, "%s user=%s password=%s db=%d", url.address.text,
             url.user ? url.user : "-", url.password ? url.password : "-", url.db);
    assert_string_equal(got, wanted);
    cache_url_finish(&url);
}

static void a_cache_url_gives_address_user_password_and_database(void **state)
{
    (void)state;
    check_url("redis://127.0.0.1:6380/0", "127.0.0.1:6380 user=- password=- db=0");
    check_url("redis://127.0.0.1", "127.0.0.1:6379 user=- password=- db=0");
    check_url("redis://cache/", "cache:6379 user=- password=- db=0");
    check_url("redis://[::1]", "[::1]:6379 user=- password=- db=0");
    check_url("redis://[::1]:7/3", "[::1]:7 user=- password=- db=3");
    check_url("redis://:pw@h:7", "h:7 user=- password=pw db=0");
    check_url("redis://me:p%40%2f:w@h/15", "h:6379 user=me password=p@/:w db=15");
    check_url("redis://me:p@w@h", "h:6379 user=me password=p@w db=0");
    check_url("redis://%41:%7E@h", "h:6379 user=A password=~ db=0");
    check_url("unix:/run/redis.sock", "unix:/run/redis.sock user=- password=- db=0");
    check_url("unix:/run/redis.sock?db=4", "unix:/run/redis.sock user=- password=- db=4");
}

static void a_cluster_is_named_by_some_of_its_nodes(void **state)
{
    struct cache_url url;
    const char *error;
    (void)state;
    check_url("redis-cluster://n1", "n1:6379 user=- password=- db=0");
    check_url("redis-cluster://me:pw@n1:7,n2/0", "n1:7 user=me password=pw db=0");
    assert_int_equal(cache_url_parse(&url, "rediss-cluster://n1,[::1]:8/", &error), 0);
    assert_true(url.is_cluster && url.address.tls);
    assert_null(url.primary);
    assert_int_equal(url.seed_count, 2);
    assert_string_equal(url.seeds[1].host, "::1");
    assert_int_equal(url.seeds[1].port, 8);
    cache_url_finish(&url);
}

static void sentinels_are_named_with_what_they_know(void **state)
{
    struct cache_url url;
    const char *error;
    (void)state;
    check_url("redis-sentinel://s1/mymaster", "s1:26379 user=- password=- db=0");
    check_url("redis-sentinel://me:pw@s1:7,s2/n/4", "s1:7 user=me password=pw db=4");
    assert_int_equal(cache_url_parse(&url, "rediss-sentinel://s1,[::1]:8,s3/a%2fb", &error), 0);
    assert_true(url.address.tls);
    assert_string_equal(url.primary, "a/b");
    assert_int_equal(url.seed_count, 3);
    assert_string_equal(url.seeds[1].host, "::1");
    assert_int_equal(url.seeds[1].port, 8);
    assert_int_equal(url.seeds[2].port, 26379);
    cache_url_finish(&url);
}

static void mistakes_in_cache_urls_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } rows[] = {{"", "redis://"},
                {"127.0.0.1:6379", "redis://"},
                {"http://127.0.0.1", "redis://"},
                {"rediss://", "host is missing"},
                {"redis-cluster://", "host is missing"},
                {"redis-cluster://a/1", "database 0 only"},
                {"rediss-cluster://a,b/0/", "database 0 only"},
                {"redis-sentinel:///n", "host is missing"},
                {"redis-sentinel://a,,b/n", "host is missing"},
                {"redis-sentinel://a", "name of the primary"},
                {"redis-sentinel://a,b/", "name of the primary"},
                {"redis-sentinel://a/n/x", "database is a number"},
                {"redis-sentinel://a/%", "hexadecimal"},
                {"redis-sentinel://a:0/n", "1 to 65535"},
                {"redis-sentinel://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/n", "16 servers"},
                {"redis://", "host is missing"},
                {"redis:///0", "host is missing"},
                {"redis://:pw@", "host is missing"},
                {"redis://pw@h", "user:password"},
                {"redis://me:@h", "password before the @ is empty"},
                {"redis://:%@h", "hexadecimal"},
                {"redis://:%4@h", "hexadecimal"},
                {"redis://:%4g@h", "hexadecimal"},
                {"redis://:%00@h", "hexadecimal"},
                {"redis://:%@h", "%40"},
                {"redis://:se/cret@h", "%2F"},
                {"redis://app:63/0@h:6379/0", "%2F"},
                {"redis://app:a@b/c@h", "%2F"},
                {"redis-cluster://:5/cret@h", "%2F"},
                {"redis-sentinel://app:5/cret@h/mymaster/0", "%2F"},
                {"redis://h:0", "1 to 65535"},
                {"redis://h:x/0", "1 to 65535"},
                {"redis://::1", "brackets"},
                {"redis://a:6379,b:6379", "several servers"},
                {"redis://:pass@a,[::1]:6379/1", "several servers"},
                {"redis://[::1", "HOST:PORT"},
                {"redis://h/x", "database is a number"},
                {"redis://h/-1", "database is a number"},
                {"redis://h/0/1", "database is a number"},
                {"redis://h/1000000", "database is a number"},
                {"redis://h/0?x=1", "database is a number"},
                {"unix:redis.sock", "absolute"},
                {"unix:/r?db=", "?db=NUMBER"},
                {"unix:/r?x=1", "?db=NUMBER"},
                {"unix:/r?db=x", "database is a number"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache_url url;
        const char *error = "";
        if (cache_url_parse(&url, rows[i].text, &error) != -EINVAL)
            fail_msg("\"%s\" was accepted", rows[i].text);
        if (!strstr(error, rows[i].reason))
            fail_msg("\"%s\": %s", rows[i].text, error);
        assert_null(url.password);
        assert_null(url.address.text);
    }
}

static bool is_one_place(const char *one, const char *other)
{
    struct cache_url url = parsed_url(one), second = parsed_url(other);
    char *place = cache_url_place(&url), *places = cache_url_place(&second);
    bool is_one = strcmp(place, places) == 0;
    free(place);
    free(places);
    cache_url_finish(&url);
    cache_url_finish(&second);
    return is_one;
}

/* Nor is there a password in it. */
static void who_connects_makes_no_other_cache_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof url_pairs / sizeof *url_pairs; i++) {
        const struct pair *pair = &url_pairs[i];
        bool is_who = strstr(pair->one, "u:p@");
        if (is_one_place(pair->one, pair->other) != is_who)
            fail_msg("%s and %s", pair->one, pair->other);
    }
    assert_false(is_one_place("unix:/a", "unix:/b"));
    assert_true(is_one_place("redis://a", "rediss://u:p@a:6379/0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_compared_and_copied),
        cmocka_unit_test(a_cache_url_gives_address_user_password_and_database),
        cmocka_unit_test(sentinels_are_named_with_what_they_know),
        cmocka_unit_test(a_cluster_is_named_by_some_of_its_nodes),
        cmocka_unit_test(mistakes_in_cache_urls_are_explained),
        cmocka_unit_test(who_connects_makes_no_other_cache_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
