#include "config/syntax/key_template.h"

#include "base/buffer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct key_template parsed(const char *text)
{
    struct key_template key;
    const char *error = NULL;
    if (key_template_parse(&key, text, &error) != 0)
        fail_msg("\"%s\" was refused: %s", text, error);
    return key;
}

static bool matches(const char *template, struct span text)
{
    struct key_template key = parsed(template);
    bool answer = key_template_matches(&key, text);
    assert_int_equal(key_template_split(&key, text, NULL, 0) > 0, answer);
    key_template_finish(&key);
    return answer;
}

/* All ways of one key as "a|b / a|b". */
static void check_ways(const char *template, const char *text, const char *wanted)
{
    struct key_template key = parsed(template);
    struct span ways[16][KEY_COLUMNS_MAX];
    char got[512] = "";
    size_t count = key_template_split(&key, span_of(text), ways, 16), used = 0;
    assert_true(count <= 16);
    for (size_t w = 0; w < count; w++)
        for (size_t c = 0; c < key.columns; c++)
            used +=
                (size_t)snprintf(got + used, sizeof got - used, "%s%.*s",
                                 c ? "|" : (w ? " / " : ""), (int)ways[w][c].length, ways[w][c].at);
    assert_string_equal(got, wanted);
    key_template_finish(&key);
}

static void a_template_is_literals_and_columns(void **state)
{
    (void)state;
    struct key_template key = parsed("order:{customer}:{number}!");
    assert_int_equal(key.columns, 2);
    assert_string_equal(key.column[0], "customer");
    assert_string_equal(key.column[1], "number");
    assert_memory_equal(key.literal[0].at, "order:", 6);
    assert_int_equal(key.literal[0].length, 6);
    assert_int_equal(key.literal[1].length, 1);
    assert_memory_equal(key.literal[2].at, "!", 1);
    assert_string_equal(key.text, "order:{customer}:{number}!");
    key_template_finish(&key);
    key_template_finish(&key);
}

static void names_are_exact_and_may_be_quoted(void **state)
{
    (void)state;
    struct key_template key = parsed("{Größe}-{\"a \"\"}\"\" b\"}-{\"x{y\"}");
    assert_string_equal(key.column[0], "Größe");
    assert_string_equal(key.column[1], "a \"}\" b");
    assert_string_equal(key.column[2], "x{y");
    key_template_finish(&key);
}

static void doubled_braces_are_braces(void **state)
{
    (void)state;
    assert_true(matches("{{tag}}:{id}", span_of("{tag}:7")));
    assert_false(matches("{{tag}}:{id}", span_of("{{tag}}:7")));
    assert_true(matches("{id}}}", span_of("7}")));
    assert_true(matches("{{{id}}}", span_of("{7}")));
}

static void mistakes_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } rows[] = {{"", "no placeholder"},
                {"item:", "no placeholder"},
                {"item:{{id}}", "no placeholder"},
                {"item:{}", "empty placeholder"},
                {"item:{\"\"}", "empty placeholder"},
                {"item:{id", "closing }"},
                {"item:{", "closing }"},
                {"item:{\"id}", "closing quote"},
                {"item:{\"id\"", "closing }"},
                {"item:{\"id\"x}", "followed by }"},
                {"item:id}", "}}"},
                {"item:{id}}", "}}"},
                {"item:{a{b}", "{ inside"},
                {"item:{a\"b}", "in quotes"},
                {"{id}:{id}", "same column twice"},
                {"{id}:{\"id\"}", "same column twice"},
                {"{a}{b}", "nothing between"},
                {"{a}1{b}2{c}3{d}4{e}5{f}6{g}7{h}8{i}", "more than 8"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct key_template key;
        const char *error = "";
        if (key_template_parse(&key, rows[i].text, &error) != -EINVAL)
            fail_msg("\"%s\" was accepted", rows[i].text);
        if (!strstr(error, rows[i].reason))
            fail_msg("\"%s\": %s", rows[i].text, error);
        assert_null(key.own);
        assert_null(key.text);
    }
}

static void eight_columns_are_allowed(void **state)
{
    (void)state;
    check_ways("{a}1{b}2{c}3{d}4{e}5{f}6{g}7{h}", "A1B2C3D4E5F6G7H", "A|B|C|D|E|F|G|H");
}

static void matching_compares_the_literals(void **state)
{
    (void)state;
    assert_true(matches("item:{id}", span_of("item:7")));
    assert_true(matches("item:{id}", span_of("item:")));
    assert_false(matches("item:{id}", span_of("item")));
    assert_false(matches("item:{id}", span_of("")));
    assert_false(matches("item:{id}", span_of("Item:7")));
    assert_false(matches("item:{id}", span_of("xitem:7")));
    assert_true(matches("{id}", span_of("")));
    assert_true(matches("a{b}c", span_of("ac")));
    assert_false(matches("ab{x}ba", span_of("aba"))); /* prefix and suffix may not share bytes */
    assert_true(matches("ab{x}ba", span_of("abba")));
    assert_true(matches("{a}:{b};{c}", span_of("::;;")));
    assert_false(matches("{a}:{b};{c}", span_of(";;:")));
    assert_false(matches("o:{a}:{b}", span_of("o:a")));
    assert_false(matches("x:{a}::{b}:y", span_of("x:1:2:y")));
    assert_false(matches("x{a}--{b}-y", span_of("x--y"))); /* the middle may not eat the suffix */
}

static void keys_may_hold_any_bytes(void **state)
{
    (void)state;
    assert_true(matches("k:{a}:{b}", (struct span){"k:\0\n:\xff", 6}));
    assert_false(matches("k:{a}:{b}", (struct span){"k\0:a:b", 6}));
}

static void a_key_splits_in_every_possible_way(void **state)
{
    (void)state;
    check_ways("item:{id}", "item:7", "7");
    check_ways("item:{id}", "item:", "");
    check_ways("item:{id}", "other:7", "");
    check_ways("order:{c}:{n}", "order:a:b", "a|b");
    check_ways("order:{c}:{n}", "order:a:b:c", "a|b:c / a:b|c");
    check_ways("{a}:{b}:{c}", "1:2:3:4", "1|2|3:4 / 1|2:3|4 / 1:2|3|4");
    check_ways("{a}aa{b}", "aaaa", "|aa / a|a / aa|");
    check_ways("{a}:{b};{c}", "1:2;3:4;5", "1|2|3:4;5 / 1|2;3:4|5 / 1:2;3|4|5");
    check_ways("{a}:{b}", "::", "|: / :|");
}

static void too_many_ways_are_told_and_do_not_overrun(void **state)
{
    (void)state;
    struct key_template key = parsed("k:{a}:{b}");
    struct span ways[3][KEY_COLUMNS_MAX];
    assert_int_equal(key_template_split(&key, span_of("k:1:2"), ways, 2), 1);
    assert_int_equal(key_template_split(&key, span_of("k:1:2:3"), ways, 2), 2);
    ways[2][0].at = NULL;
    assert_int_equal(key_template_split(&key, span_of("k:1:2:3:4:5:6"), ways, 2), 3);
    assert_null(ways[2][0].at);
    assert_int_equal(key_template_split(&key, span_of("k:1:2"), NULL, 0), 1);
    key_template_finish(&key);
}

/* A thousand colons for seven of them have some 10^17 ways; and with the literal that fits last
 * only, a naive search would walk through all dead ends before it. */
static void hostile_keys_cost_little(void **state)
{
    (void)state;
    struct key_template key = parsed("{a}:{b}:{c}:{d}:{e}:{f}:{g};{h}");
    struct span ways[4][KEY_COLUMNS_MAX];
    char text[4001];
    memset(text, ':', sizeof text);
    text[0] = ';';
    assert_int_equal(key_template_split(&key, (struct span){text, 4000}, ways, 4), 0);
    assert_false(key_template_matches(&key, (struct span){text, 4000}));
    text[4000] = ';';
    assert_int_equal(key_template_split(&key, (struct span){text, 4001}, ways, 4), 5);
    key_template_finish(&key);
}

/* Against the plainest matcher there is: try every length for every placeholder. */
static size_t count_slowly(const struct key_template *key, size_t column, struct span text)
{
    struct span literal = key->literal[column];
    if (text.length < literal.length || memcmp(text.at, literal.at, literal.length) != 0)
        return 0;
    text.at += literal.length;
    text.length -= literal.length;
    if (column == key->columns)
        return text.length == 0;
    size_t count = 0;
    for (size_t i = 0; i <= text.length; i++)
        count += count_slowly(key, column + 1, (struct span){text.at + i, text.length - i});
    return count;
}

static void check_every_way(const struct key_template *key, struct span text)
{
    struct span ways[512][KEY_COLUMNS_MAX];
    size_t count = key_template_split(key, text, ways, 512);
    assert_int_equal(count, count_slowly(key, 0, text));
    assert_int_equal(key_template_matches(key, text), count > 0);
    for (size_t w = 0; w < count; w++) {
        struct buffer again = {0};
        key_template_render(key, ways[w], &again);
        assert_int_equal(buffer_length(&again), text.length);
        assert_memory_equal(buffer_span(&again).at, text.at, text.length);
        buffer_finish(&again);
        for (size_t other = 0; other < w; other++)
            assert_memory_not_equal(ways[w], ways[other], key->columns * sizeof(struct span));
    }
}

static void random_bytes(char *out, size_t length)
{
    for (size_t i = 0; i < length; i++)
        out[i] = "ab:"[rand() % 3];
    out[length] = '\0';
}

static void splitting_agrees_with_a_plain_search(void **state)
{
    (void)state;
    srand(20);
    for (int round = 0; round < 3000; round++) {
        char literal[4][4], text[64], key_text[20];
        for (int i = 0; i < 4; i++)
            random_bytes(literal[i], (size_t)(i == 0 || i == 3 ? rand() % 3 : 1 + rand() % 2));
        snprintf(text, sizeof text, "%s{x}%s{y}%s{z}%s", literal[0], literal[1], literal[2],
                 literal[3]);
        struct key_template key = parsed(text);
        random_bytes(key_text, (size_t)rand() % 14);
        check_every_way(&key, span_of(key_text));
        key_template_finish(&key);
    }
}

static void check_overlap(const char *a_text, const char *b_text, bool wanted)
{
    struct key_template a = parsed(a_text), b = parsed(b_text);
    if (key_template_overlaps(&a, &b) != wanted)
        fail_msg("%s and %s", a_text, b_text);
    assert_int_equal(key_template_overlaps(&b, &a), wanted);
    if (wanted) {
        struct buffer example = {0};
        key_template_example(&a, &b, &example);
        assert_true(key_template_matches(&a, buffer_span(&example)));
        assert_true(key_template_matches(&b, buffer_span(&example)));
        buffer_finish(&example);
    }
    key_template_finish(&a);
    key_template_finish(&b);
}

static void templates_overlap_when_some_key_matches_both(void **state)
{
    (void)state;
    check_overlap("item:{id}", "item:{id}", true);
    check_overlap("item:{id}", "items:{id}", false);
    check_overlap("item:{id}", "item:{id}:price", true);
    check_overlap("item:{id}:price", "item:{id}:stock", false);
    check_overlap("{id}", "anything:{x}", true);
    check_overlap("{id}:a", "b:{id}", true);
    check_overlap("{id}:a", "{id}:ba", false);
    check_overlap("{id}a", "{id}:ba", true);
    check_overlap("o:{a}:{b}", "o:{a};{b}", true);
    check_overlap("o:{a}:{b}", "p:{a};{b}", false);
    check_overlap("ab{x}c", "a{y}bc", true);
}

/* Around the eight bytes that are compared at once: each byte of each prefix counts, and the key
 * may end anywhere. */
static void every_byte_of_a_prefix_counts(void **state)
{
    (void)state;
    for (size_t length = 1; length <= 20; length++) {
        char template[64] = {0}, prefix[32] = {0};
        const char *error;
        struct key_template key;
        memcpy(prefix, "abcdefghijklmnopqrst", length);
        snprintf(template, sizeof template, "%s{id}", prefix);
        assert_int_equal(key_template_parse(&key, template, &error), 0);
        assert_true(key_template_matches(&key, (struct span){prefix, length}));
        assert_true(key_template_matches(&key, (struct span){prefix, length + 3}));
        assert_false(key_template_matches(&key, (struct span){prefix, length - 1}));
        for (size_t at = 0; at < length; at++) {
            prefix[at] ^= 0x20;
            assert_false(key_template_matches(&key, (struct span){prefix, length}));
            assert_false(key_template_matches(&key, (struct span){prefix, length + 3}));
            prefix[at] ^= 0x20;
        }
        key_template_finish(&key);
    }
}

static void columns_are_joined_without_the_literals(void **state)
{
    const struct span columns[] = {{"1", 1}, {"", 0}, {"b:c", 3}};
    struct key_template key;
    struct buffer joined = {0};
    const char *error;
    (void)state;
    assert_int_equal(key_template_parse(&key, "order/{a}-{b}-{c}!", &error), 0);
    key_template_join(&key, columns, &joined);
    assert_int_equal(buffer_length(&joined), 6);
    assert_memory_equal(buffer_span(&joined).at, "1::b:c", 6);
    buffer_finish(&joined);
    key_template_finish(&key);
}

static void a_closed_one_matches_nothing_and_splits_what_was_matched_before(void **state)
{
    struct key_template key;
    struct span ways[2][KEY_COLUMNS_MAX];
    const char *error;
    (void)state;
    assert_int_equal(key_template_parse(&key, "order:{a}:{b}", &error), 0);
    key_template_close(&key);
    assert_false(key_template_matches(&key, span_of("order:1:2")));
    assert_int_equal(key_template_split(&key, span_of("order:1:2"), ways, 2), 1);
    assert_true(span_is(ways[0][0], "1"));
    assert_true(span_is(ways[0][1], "2"));
    assert_int_equal(key_template_split(&key, span_of("order:"), ways, 2), 0);
    key_template_finish(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_template_is_literals_and_columns),
        cmocka_unit_test(names_are_exact_and_may_be_quoted),
        cmocka_unit_test(doubled_braces_are_braces),
        cmocka_unit_test(mistakes_are_refused_with_a_reason),
        cmocka_unit_test(eight_columns_are_allowed),
        cmocka_unit_test(matching_compares_the_literals),
        cmocka_unit_test(every_byte_of_a_prefix_counts),
        cmocka_unit_test(keys_may_hold_any_bytes),
        cmocka_unit_test(a_key_splits_in_every_possible_way),
        cmocka_unit_test(too_many_ways_are_told_and_do_not_overrun),
        cmocka_unit_test(hostile_keys_cost_little),
        cmocka_unit_test(splitting_agrees_with_a_plain_search),
        cmocka_unit_test(columns_are_joined_without_the_literals),
        cmocka_unit_test(templates_overlap_when_some_key_matches_both),
        cmocka_unit_test(a_closed_one_matches_nothing_and_splits_what_was_matched_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
