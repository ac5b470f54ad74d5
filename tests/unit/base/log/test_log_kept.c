#include "base/log/log_kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

static struct log_entry lines[LOG_KEPT];
static uint64_t last;

static void at_first_there_are_none(void **state)
{
    (void)state;
    assert_int_equal(log_kept(0, lines, &last), 0);
    assert_int_equal(last, 0);
}

static void they_come_oldest_first_and_behind_a_number(void **state)
{
    (void)state;
    log_keep(LOG_LEVEL_INFO, "one");
    log_keep(LOG_LEVEL_ERROR, "two");
    assert_int_equal(log_kept(0, lines, &last), 2);
    assert_int_equal(last, 2);
    assert_string_equal(lines[0].text, "one");
    assert_int_equal(lines[1].level, LOG_LEVEL_ERROR);
    assert_int_equal(strlen(lines[1].time), 24);
    assert_int_equal(log_kept(1, lines, &last), 1);
    assert_string_equal(lines[0].text, "two");
    assert_int_equal(log_kept(2, lines, &last), 0);
}

static void a_number_from_elsewhere_brings_none(void **state)
{
    (void)state;
    assert_int_equal(log_kept(UINT64_MAX, lines, &last), 0);
    assert_int_equal(last, 2);
}

static void a_long_line_is_cut_and_says_so(void **state)
{
    char text[LOG_KEPT_TEXT + 10];
    (void)state;
    memset(text, 'x', sizeof text);
    text[LOG_KEPT_TEXT - 1] = '\0';
    log_keep(LOG_LEVEL_INFO, text);
    assert_int_equal(log_kept(2, lines, &last), 1);
    assert_string_equal(lines[0].text, text);
    text[LOG_KEPT_TEXT - 1] = 'x';
    text[LOG_KEPT_TEXT] = '\0';
    log_keep(LOG_LEVEL_INFO, text);
    assert_int_equal(log_kept(3, lines, &last), 1);
    assert_int_equal(strlen(lines[0].text), LOG_KEPT_TEXT - 1);
    assert_string_equal(lines[0].text + LOG_KEPT_TEXT - 5, "x...");
}

static void only_the_last_are_kept(void **state)
{
    char text[20];
    (void)state;
    for (int i = 1; i <= LOG_KEPT + 50; i++) {
        snprintf(text, sizeof text, "line %d", i);
        log_keep(LOG_LEVEL_INFO, text);
    }
    assert_int_equal(log_kept(0, lines, &last), LOG_KEPT);
    assert_string_equal(lines[0].text, "line 51");
    assert_int_equal(lines[LOG_KEPT - 1].number, last);
    assert_string_equal(lines[LOG_KEPT - 1].text, "line 250");
}

static void *keep_many(void *arg)
{
    for (int i = 0; i < 1000; i++)
        log_keep(LOG_LEVEL_INFO, arg);
    return NULL;
}

static void threads_do_not_mix_lines(void **state)
{
    static char texts[2][8] = {"aaaaaaa", "bbbbbbb"};
    pthread_t threads[2];
    uint64_t before;
    (void)state;
    log_kept(0, lines, &before);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, keep_many, texts[i]);
    for (int i = 0; i < 100; i++)
        log_kept(0, lines, &last);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    size_t count = log_kept(0, lines, &last);
    assert_int_equal(last, before + 2000);
    for (size_t i = 0; i < count; i++)
        assert_true(!strcmp(lines[i].text, texts[0]) || !strcmp(lines[i].text, texts[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_first_there_are_none),
        cmocka_unit_test(they_come_oldest_first_and_behind_a_number),
        cmocka_unit_test(a_number_from_elsewhere_brings_none),
        cmocka_unit_test(a_long_line_is_cut_and_says_so),
        cmocka_unit_test(only_the_last_are_kept),
        cmocka_unit_test(threads_do_not_mix_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
