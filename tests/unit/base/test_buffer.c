#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/buffer.h"

static void assert_holds(const struct buffer *buffer, const char *text)
{
    assert_int_equal(buffer_length(buffer), strlen(text));
    assert_memory_equal(buffer_span(buffer).at, text, strlen(text));
}

static void zeroed_memory_is_an_empty_buffer(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    assert_int_equal(buffer_length(&buffer), 0);
    assert_int_equal(buffer_span(&buffer).length, 0);
    buffer_take(&buffer, 0);
    buffer_clear(&buffer);
    buffer_trim(&buffer, 0);
    buffer_append(&buffer, NULL, 0);
    assert_null(buffer.bytes);
    buffer_finish(&buffer);
    buffer_finish(&buffer);
}

static void what_is_readable_becomes_a_string(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    char *empty = buffer_string(&buffer);
    buffer_printf(&buffer, "%d bottles", 10);
    buffer_take(&buffer, 3);
    char *text = buffer_string(&buffer);
    assert_string_equal(empty, "");
    assert_string_equal(text, "bottles");
    assert_null(buffer.bytes);
    free(empty);
    free(text);
}

static void even_no_room_gives_a_place_to_write(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    assert_non_null(buffer_reserve(&buffer, 0));
    buffer_finish(&buffer);
}

static void bytes_come_out_in_the_order_in_which_they_went_in(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_append(&buffer, "one ", 4);
    buffer_append(&buffer, "two ", 4);
    buffer_take(&buffer, 4);
    memcpy(buffer_reserve(&buffer, 10), "three", 5);
    buffer_commit(&buffer, 5);
    assert_holds(&buffer, "two three");
    buffer_take(&buffer, 9);
    assert_int_equal(buffer_length(&buffer), 0);
    buffer_finish(&buffer);
}

static void reserved_room_can_be_written_to_its_last_byte(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    for (size_t room = 0; room < 5000; room += 37) {
        memset(buffer_reserve(&buffer, room), 'x', room);
        buffer_commit(&buffer, room);
        buffer_take(&buffer, buffer_length(&buffer) / 3);
    }
    for (size_t i = 0; i < buffer_length(&buffer); i++) {
        assert_int_equal(buffer_span(&buffer).at[i], 'x');
    }
    buffer_finish(&buffer);
}

static void a_buffer_that_is_read_as_fast_as_it_is_written_does_not_grow(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_append(&buffer, "0123456789", 10);
    size_t size = buffer.size;
    for (int i = 0; i < 10000; i++) {
        buffer_append(&buffer, "0123456789", 10);
        assert_memory_equal(buffer_span(&buffer).at, "01234567890123456789", 20);
        buffer_take(&buffer, 10);
    }
    assert_int_equal(buffer.size, size);
    buffer_finish(&buffer);
}

static void growing_doubles_so_that_appending_stays_cheap(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    int growths = 0;
    for (int i = 0; i < 1000000; i++) {
        size_t before = buffer.size;
        buffer_append(&buffer, "x", 1);
        growths += buffer.size != before;
    }
    assert_in_range(growths, 2, 20);
    buffer_finish(&buffer);
}

/* Below what is mapped, from there beyond it, mapped; and each with some of it already taken. */
static void bytes_stay_the_same_however_large_the_buffer_grows(void **state)
{
    (void)state;
    static const size_t sizes[] = {900 * 1000, 3 << 20, (12 << 20) + 1, 40 << 20};
    for (size_t taken = 0; taken < 100; taken += 99) {
        struct buffer buffer = {0};
        size_t in = 0, out = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *at = buffer_reserve(&buffer, sizes[i] - in);
            for (size_t j = 0; in < sizes[i]; in++)
                at[j++] = (char)(in % 251);
            buffer_commit(&buffer, sizes[i] - out - buffer_length(&buffer));
            buffer_take(&buffer, taken);
            out += taken;
            struct span all = buffer_span(&buffer);
            assert_int_equal(all.length, sizes[i] - out);
            for (size_t j = 0; j < all.length; j++)
                if (all.at[j] != (char)((out + j) % 251))
                    fail_msg("byte %zu of %zu", j, all.length);
        }
        buffer_take(&buffer, buffer_length(&buffer));
        buffer_trim(&buffer, 0);
        assert_null(buffer.bytes);
    }
}

static void more_than_there_is_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    for (size_t size = 1000; size < 40 << 20; size *= 20000) {
        struct buffer buffer = {0};
        memset(buffer_reserve(&buffer, size), 'x', size);
        buffer_commit(&buffer, size);
        assert_null(buffer_try_reserve(&buffer, SIZE_MAX / 4));
        assert_int_equal(buffer_length(&buffer), size);
        assert_int_equal(buffer_span(&buffer).at[size - 1], 'x');
        buffer_finish(&buffer);
    }
}

static void printf_appends_text_of_any_length_without_its_zero(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_append(&buffer, "a", 1);
    buffer_printf(&buffer, "=%d;", 42);
    buffer_printf(&buffer, "%s", "");
    assert_holds(&buffer, "a=42;");
    char *many = malloc(10001);
    memset(many, 'm', 10000);
    many[10000] = '\0';
    buffer_clear(&buffer);
    buffer_printf(&buffer, "%s", many);
    assert_holds(&buffer, many);
    free(many);
    buffer_finish(&buffer);
}

static void trim_gives_memory_back_only_when_empty_and_large(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_reserve(&buffer, 100000);
    buffer_append(&buffer, "x", 1);
    buffer_trim(&buffer, 1000);
    assert_holds(&buffer, "x");
    buffer_clear(&buffer);
    buffer_trim(&buffer, 1000000);
    assert_non_null(buffer.bytes);
    buffer_trim(&buffer, 1000);
    assert_null(buffer.bytes);
    assert_int_equal(buffer.size, 0);
    buffer_append(&buffer, "y", 1);
    assert_holds(&buffer, "y");
    buffer_finish(&buffer);
}

static void fill(struct buffer *buffer, char byte, size_t length)
{
    memset(buffer_reserve(buffer, length), byte, length);
    buffer_commit(buffer, length);
}

static void what_is_poured_is_copied_only_where_it_must_be(void **state)
{
    enum { MUCH = 3 * 1024 * 1024 };
    struct buffer to = {0}, from = {0};
    (void)state;
    assert_true(buffer_try_pour(&to, &from));
    fill(&from, 'a', MUCH);
    const char *bytes = from.bytes;
    assert_true(buffer_try_pour(&to, &from));
    assert_ptr_equal(to.bytes, bytes);
    assert_int_equal(buffer_length(&to), MUCH);
    fill(&from, 'b', MUCH);
    assert_true(buffer_try_pour(&to, &from));
    assert_int_equal(buffer_length(&from), 0);
    assert_int_equal(buffer_length(&to), 2 * MUCH);
    assert_int_equal(buffer_span(&to).at[MUCH - 1], 'a');
    assert_int_equal(buffer_span(&to).at[MUCH], 'b');
    fill(&from, 'c', 3);
    assert_true(buffer_try_pour(&to, &from));
    assert_memory_equal(buffer_span(&to).at + 2 * MUCH - 1, "bccc", 4);
    buffer_finish(&to);
    buffer_finish(&from);
}

/* And nothing beside it. */
static void what_is_forgotten_of_much_takes_no_memory(void **state)
{
    enum { MUCH = 16 * 1024 * 1024, PART = 1024 * 1024 };
    struct buffer buffer = {0};
    unsigned char there[PART / 4096 + 2];
    (void)state;
    fill(&buffer, 'a', MUCH);
    const char *part = buffer_span(&buffer).at + 5000;
    buffer_forget(&buffer, (struct span){part, PART});
    assert_int_equal(part[-1], 'a');
    assert_int_equal(part[0], 'a'); /* of a page that begins before it */
    assert_int_equal(part[PART], 'a');
    assert_int_equal(mincore(buffer.bytes, PART, there), 0);
    assert_int_equal(there[1] & 1, 1);
    assert_int_equal(there[2] & 1, 0);
    buffer_forget(&buffer, (struct span){part, 1});
    assert_int_equal(part[0], 'a');
    buffer_finish(&buffer);
    fill(&buffer, 'a', PART); /* of malloc() */
    buffer_forget(&buffer, buffer_span(&buffer));
    assert_int_equal(buffer_span(&buffer).at[PART / 2], 'a');
    buffer_finish(&buffer);
}

static void any_mix_of_calls_keeps_the_bytes(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    unsigned in = 0, out = 0;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        size_t length = (size_t)rand() % 100;
        char *at = buffer_reserve(&buffer, length + (size_t)rand() % 100);
        for (size_t i = 0; i < length; i++) {
            at[i] = (char)in++;
        }
        buffer_commit(&buffer, length);
        size_t take = (size_t)rand() % (buffer_length(&buffer) + 1);
        for (size_t i = 0; i < take; i++) {
            assert_int_equal(buffer_span(&buffer).at[i], (char)out++);
        }
        buffer_take(&buffer, take);
    }
    buffer_finish(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_memory_is_an_empty_buffer),
        cmocka_unit_test(what_is_readable_becomes_a_string),
        cmocka_unit_test(even_no_room_gives_a_place_to_write),
        cmocka_unit_test(bytes_come_out_in_the_order_in_which_they_went_in),
        cmocka_unit_test(reserved_room_can_be_written_to_its_last_byte),
        cmocka_unit_test(a_buffer_that_is_read_as_fast_as_it_is_written_does_not_grow),
        cmocka_unit_test(growing_doubles_so_that_appending_stays_cheap),
        cmocka_unit_test(bytes_stay_the_same_however_large_the_buffer_grows),
        cmocka_unit_test(more_than_there_is_leaves_the_buffer_as_it_was),
        cmocka_unit_test(printf_appends_text_of_any_length_without_its_zero),
        cmocka_unit_test(trim_gives_memory_back_only_when_empty_and_large),
        cmocka_unit_test(what_is_poured_is_copied_only_where_it_must_be),
        cmocka_unit_test(what_is_forgotten_of_much_takes_no_memory),
        cmocka_unit_test(any_mix_of_calls_keeps_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
