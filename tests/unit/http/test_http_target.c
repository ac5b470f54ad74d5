#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "http/http_target.h"

#include <errno.h>
#include <stdlib.h>

static void assert_path(const char *text, const char *path, size_t length)
{
    struct http_target target;
    const char *error = NULL;

    assert_int_equal(http_target_parse(&target, text, &error), 0);
    assert_int_equal(target.path.length, length);
    assert_memory_equal(target.path.at, path, length);
    http_target_finish(&target);
}

static void assert_refused(const char *text)
{
    struct http_target target;
    const char *error = NULL;

    assert_int_equal(http_target_parse(&target, text, &error), -EINVAL);
    assert_non_null(error);
    assert_null(target.own);
}

static void a_path_is_decoded_by_length(void **state)
{
    (void)state;
    assert_path("/", "/", 1);
    assert_path("/v1/keys/a%2Fb%3fc", "/v1/keys/a/b?c", 14);
    assert_path("/%00%ff%25", "/\0\xff%", 4);
    assert_path("/a+b", "/a+b", 4);
    assert_path("/a?b=%41", "/a", 2);
    assert_path("/?", "/", 1);
    assert_path("/caf\xc3\xa9", "/caf\xc3\xa9", 6);
    assert_path("//x/../y", "//x/../y", 8);
}

static void an_absolute_target_loses_its_authority(void **state)
{
    (void)state;
    assert_path("http://guard:6390/v1/status?x=1", "/v1/status", 10);
    assert_path("HTTP://guard/", "/", 1);
    assert_refused("http://guard");
    assert_refused("http://guard?/path");
}

static void bad_escapes_are_refused(void **state)
{
    (void)state;
    assert_refused("/%");
    assert_refused("/%4");
    assert_refused("/%zz");
    assert_refused("/%4g");
    assert_refused("/a%%41");
    assert_refused("/ok?a=%");
    assert_refused("/ok?%2=a");
    assert_refused("/ok?a=1&b=%f");
}

static void what_must_be_escaped_is_refused(void **state)
{
    (void)state;
    assert_refused("");
    assert_refused("v1/status");
    assert_refused("*");
    assert_refused("/a b");
    assert_refused("/a\tb");
    assert_refused("/a\x7f");
    assert_refused("/a?b=\x01");
    assert_refused("/a?b=x%00y");
    assert_refused("/a?%00=y");
}

static void values_of_a_query_are_found_by_name(void **state)
{
    struct http_target target;
    const char *error;

    (void)state;
    assert_int_equal(http_target_parse(&target,
                                       "/k?row=delete&&for=10%6d&empty=&bare&sp=a+b%2Bc&row=twice"
                                       "&=nameless&a%26b=and&eq=x=y?z",
                                       &error),
                     0);
    assert_string_equal(http_target_query(&target, "row"), "delete");
    assert_string_equal(http_target_query(&target, "for"), "10m");
    assert_string_equal(http_target_query(&target, "empty"), "");
    assert_string_equal(http_target_query(&target, "bare"), "");
    assert_string_equal(http_target_query(&target, "sp"), "a b+c");
    assert_string_equal(http_target_query(&target, ""), "nameless");
    assert_string_equal(http_target_query(&target, "a&b"), "and");
    assert_string_equal(http_target_query(&target, "eq"), "x=y?z");
    assert_null(http_target_query(&target, "delete"));
    assert_null(http_target_query(&target, "ro"));
    http_target_finish(&target);
    http_target_finish(&target);
    assert_null(http_target_query(&target, "row"));
}

static void the_shortest_pairs_fit(void **state)
{
    char text[4002] = "/?";
    struct http_target target;
    const char *error;

    (void)state;
    for (size_t i = 2; i < sizeof(text) - 1; i++)
        text[i] = i % 2 ? '&' : 'a';
    assert_int_equal(http_target_parse(&target, text, &error), 0);
    assert_int_equal(target.query.length, 2000 * 3);
    http_target_finish(&target);
}

static void escaping_and_decoding_give_back_any_key(void **state)
{
    char key[256], *escaped, path[1024];
    struct http_target target;
    const char *error;

    (void)state;
    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (char)i;
    escaped = http_target_escape((struct span){key, sizeof(key)});
    snprintf(path, sizeof(path), "/%s", escaped);
    assert_int_equal(strlen(escaped), 66 + 3 * (256 - 66));
    assert_int_equal(http_target_parse(&target, path, &error), 0);
    assert_int_equal(target.path.length, 257);
    assert_memory_equal(target.path.at + 1, key, sizeof(key));
    http_target_finish(&target);
    free(escaped);
    escaped = http_target_escape(span_of("a-_.~Z9/"));
    assert_string_equal(escaped, "a-_.~Z9%2F");
    free(escaped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_decoded_by_length),
        cmocka_unit_test(an_absolute_target_loses_its_authority),
        cmocka_unit_test(bad_escapes_are_refused),
        cmocka_unit_test(what_must_be_escaped_is_refused),
        cmocka_unit_test(values_of_a_query_are_found_by_name),
        cmocka_unit_test(the_shortest_pairs_fit),
        cmocka_unit_test(escaping_and_decoding_give_back_any_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
