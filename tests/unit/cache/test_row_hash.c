/* Rows as the database writes them, and the hashes that are made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/row_hash.h"
#include "resp/resp.h"

#include <stdlib.h>
#include <string.h>

/* In memory of exactly its size, so that a look behind its end is noticed. */
static struct blob *made_of(const char *json, size_t length, const char **error)
{
    char *copy = malloc(length ? length : 1);
    memcpy(copy, json, length);
    struct blob *blob = row_hash_create((struct span){copy, length}, error);
    free(copy);
    return blob;
}

/* "name=value " for each field. */
static void must_be(const char *json, const char *wanted)
{
    const char *at, *error;
    char text[500] = "";
    struct blob *blob = made_of(json, strlen(json), &error);
    assert_non_null(blob);
    struct span hash = blob_span(blob);
    int64_t pairs = resp_map_open(hash, &at);
    for (int64_t i = 0; i < 2 * pairs; i++) {
        struct span word = resp_bulk_text(resp_array_next(&at, hash.at + hash.length));
        strncat(text, word.at, word.length);
        strcat(text, i % 2 ? " " : "=");
    }
    assert_ptr_equal(at, hash.at + hash.length);
    assert_string_equal(text, wanted);
    blob_release(blob);
}

static void must_not_be(const char *json)
{
    const char *error = NULL;
    assert_null(made_of(json, strlen(json), &error));
    assert_string_equal(error, "the row's value is no JSON object");
}

static void each_member_is_a_field(void **state)
{
    (void)state;
    must_be("{}", "");
    must_be("{\"id\":42}", "id=42 ");
    must_be("{\"id\":42,\"name\":\"a b\",\"on\":true,\"off\":false}",
            "id=42 name=a b on=true off=false ");
    must_be(" {\n\"id\" : 42 ,\t\"b\" : \"x\" } ", "id=42 b=x ");
    must_be("{\"\":\"\",\"a\":\"\"}", "= a= ");
}

static void a_number_keeps_all_of_its_digits(void **state)
{
    (void)state;
    must_be("{\"a\":123456789012345678901234.50,\"b\":-1e-300}",
            "a=123456789012345678901234.50 b=-1e-300 ");
}

static void a_null_has_no_field(void **state)
{
    (void)state;
    must_be("{\"a\":null}", "");
    must_be("{\"a\":null,\"b\":1,\"c\":null}", "b=1 ");
    must_be("{\"a\":\"null\"}", "a=null ");
}

static void no_value_at_all_is_a_hash_without_fields(void **state)
{
    (void)state;
    must_be("", "");
}

static void no_field_comes_twice(void **state)
{
    static const char *const rows[] = {"{\"a\":1,\"a\":1}", "{\"b\":1,\"a\":1,\"\\u0062\":2}"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *error;
        assert_null(made_of(rows[i], strlen(rows[i]), &error));
        assert_string_equal(error, "the row's value names a field twice");
    }
    must_be("{\"a\":1,\"a\":null,\"ab\":1,\"\":2}", "a=1 ab=1 =2 ");
}

static void escapes_are_what_they_mean(void **state)
{
    (void)state;
    must_be("{\"a\\\"b\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "a\"b=\"\\/\b\f\n\r\t ");
    must_be("{\"a\":\"\\u0041\\u00e9\\u20AC\"}", "a=A\xc3\xa9\xe2\x82\xac ");
    must_be("{\"a\":\"\\ud83d\\ude00.\"}", "a=\xf0\x9f\x98\x80. ");
    must_be("{\"a\":\"\xc3\xa9\xff\"}", "a=\xc3\xa9\xff "); /* other bytes are as they are */
}

static void half_a_pair_of_surrogates_stays_as_it_is_written(void **state)
{
    (void)state;
    must_be("{\"a\":\"\\ud83d\"}", "a=\\ud83d ");
    must_be("{\"a\":\"\\ud83d\\u0041\"}", "a=\\ud83dA ");
    must_be("{\"a\":\"\\ude00\\ud83d\\n\"}", "a=\\ude00\\ud83d\n ");
}

static void what_is_nested_is_as_it_is_written(void **state)
{
    (void)state;
    must_be("{\"a\":[1, {\"b\":\"]}\\\"\"}],\"c\":{\"d\" : [null]},\"e\":[]}",
            "a=[1, {\"b\":\"]}\\\"\"}] c={\"d\" : [null]} e=[] ");
}

static void a_zero_byte_is_one(void **state)
{
    const char *error, *at;
    (void)state;
    struct blob *blob = made_of("{\"a\":\"\\u0000\"}", 14, &error);
    assert_int_equal(resp_map_open(blob_span(blob), &at), 1);
    assert_int_equal(blob_span(blob).length, strlen("*2\r\n$1\r\na\r\n$1\r\n") + 3);
    blob_release(blob);
}

static void what_is_no_object_is_refused(void **state)
{
    static const char *const others[] = {" ",
                                         "1",
                                         "null",
                                         "[]",
                                         "\"a\"",
                                         "{",
                                         "}",
                                         "{]",
                                         "{\"a\"",
                                         "{\"a\":",
                                         "{\"a\":}",
                                         "{\"a\":1",
                                         "{\"a\":1,",
                                         "{\"a\":1,}",
                                         "{\"a\":1}{",
                                         "{\"a\":1} x",
                                         "{a:1}",
                                         "{\"a\" 1}",
                                         "{\"a\":\"",
                                         "{\"a\":\"\\",
                                         "{\"a\":\"\\u00",
                                         "{\"a\":\"\\x\"}",
                                         "{\"a\":\"\\u00g0\"}",
                                         "{\"a\":1 2}",
                                         "{\"a\":[",
                                         "{\"a\":[\"",
                                         "{\"a\":[\"\\"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        must_not_be(others[i]);
}

/* Whatever the bytes are: no crash, and no look behind the end. */
static void cut_and_broken_rows_are_read_without_harm(void **state)
{
    static const char row[] =
        "{\"id\":42,\"n\":\"a\\\"\\ud83d\\ude00\\u0041\",\"t\":[\"x\",{\"y\":1}],"
        "\"g\":null,\"b\":true}";
    const char *error;
    (void)state;
    for (size_t length = 1; length < sizeof row - 1; length++)
        assert_null(made_of(row, length, &error));
    for (size_t at = 0; at < sizeof row - 1; at++)
        for (int byte = 0; byte < 256; byte++) {
            char broken[sizeof row];
            memcpy(broken, row, sizeof row);
            broken[at] = (char)byte;
            blob_release(made_of(broken, sizeof row - 1, &error));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_member_is_a_field),
        cmocka_unit_test(a_number_keeps_all_of_its_digits),
        cmocka_unit_test(a_null_has_no_field),
        cmocka_unit_test(no_value_at_all_is_a_hash_without_fields),
        cmocka_unit_test(no_field_comes_twice),
        cmocka_unit_test(escapes_are_what_they_mean),
        cmocka_unit_test(half_a_pair_of_surrogates_stays_as_it_is_written),
        cmocka_unit_test(what_is_nested_is_as_it_is_written),
        cmocka_unit_test(a_zero_byte_is_one),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(cut_and_broken_rows_are_read_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
