/* A keyspace's rows in its filter, with a real server: all of them, however wrong the estimate was,
 * or an error. */
#include "fakes/database.h"

#include "build/build_session.h"
#include "build/filling.h"
#include "fakes/allocator.h"

#include <errno.h>
#include <string.h>

enum { ROWS = 30000 };

static struct pg_session *session;
static struct config *config;
static struct generation *generation;
static struct pg_error error;
static _Atomic uint64_t rows;
static atomic_bool halt, hurried = true;
static _Atomic size_t beside;

static int start(void **state)
{
    start_server(state);
    struct pg_session *owner = session_as("postgres");
    run_sql(owner, "CREATE TABLE items (id int);"
                   "INSERT INTO items SELECT generate_series(1, 30000);"
                   "CREATE TABLE twins (id int);"
                   "INSERT INTO twins SELECT 7 FROM generate_series(1, 100);"
                   "CREATE TABLE large (id text); INSERT INTO large VALUES ('a');"
                   "INSERT INTO large SELECT repeat('x', 1000000)");
    pg_session_close(owner);
    config = config_of("  - {name: i, key: \"i:{id}\", table: items, on_miss: pass}\n"
                       "  - {name: t, key: \"t:{id}\", table: twins, on_miss: pass}\n"
                       "  - {name: n, key: \"n:{id}\", table: nowhere, on_miss: pass}\n"
                       "  - {name: l, key: \"l:{id}\", table: large, on_miss: pass}\n");
    return 0;
}

static int stop(void **state)
{
    config_destroy(config);
    return stop_server(state);
}

static int begin(void **state)
{
    (void)state;
    session = session_as("postgres");
    assert_int_equal(build_session_begin(session, &error), 0);
    generation = generation_create(1, config->keyspace_count);
    rows = 0;
    halt = false;
    config->max_filter_memory = 0;
    beside = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    generation_release(generation);
    pg_session_close(session);
    return 0;
}

/* The scan in one go: how it is divided is table_scan's. */
static int fill(size_t keyspace, uint64_t estimate, bool keeps_copies)
{
    static const struct table_scan whole = {0};
    static const struct build_helpers none = {0};
    struct filling filling = {.config = config,
                              .keyspace = keyspace,
                              .generation = generation,
                              .session = session,
                              .helpers = &none,
                              .keeps_copies = keeps_copies,
                              .rows = &rows,
                              .halt = &halt,
                              .hurried = &hurried,
                              .beside = &beside};
    error.text[0] = '\0';
    int status = filling_begin(&filling, estimate, &error);
    return status ? status : filling_run(&filling, &whole, &error);
}

/* The generation is as it was before that keyspace was filled. */
static void forget(size_t keyspace)
{
    filter_destroy(generation->filters[keyspace]);
    generation->filters[keyspace] = NULL;
}

static bool holds(size_t keyspace, const char *key)
{
    uint64_t hash = filter_hash(&generation->seed, key, strlen(key));
    return filter_contains(generation->filters[keyspace], hash);
}

static void must_hold_all(void)
{
    char key[30];
    for (int i = 1; i <= ROWS; i++) {
        snprintf(key, sizeof key, "i:%d", i);
        assert_true(holds(0, key));
    }
    assert_int_equal(rows, ROWS);
    assert_int_equal(generation->rows, ROWS);
}

static void all_rows_are_in_it(void **state)
{
    (void)state;
    assert_int_equal(fill(0, ROWS, true), 0);
    must_hold_all();
}

/* Too few, and the filter would have no place for them; too many, and memory would be wasted. */
static void a_wrong_estimate_has_them_read_once_more_into_one_that_fits(void **state)
{
    (void)state;
    assert_int_equal(fill(0, 10, true), 0);
    must_hold_all();
    size_t capacity = filter_stats(generation->filters[0]).capacity;
    rows = 0;
    generation->rows = 0;
    forget(0);
    assert_int_equal(fill(0, 100 * ROWS, true), 0);
    must_hold_all();
    assert_int_equal(filter_stats(generation->filters[0]).capacity, capacity);
}

static void a_filter_of_that_size_that_cannot_be_had_is_an_error(void **state)
{
    (void)state;
    config->max_filter_memory = 20000; /* enough for the estimate */
    assert_int_not_equal(fill(0, 10, true), 0);
    assert_non_null(strstr(error.text, "30000 rows of keyspace i"));
    assert_null(generation->filters[0]);
}

static void filters_of_sources_have_their_share_of_the_memory(void **state)
{
    (void)state;
    config->max_filter_memory = 1 << 20;
    assert_int_equal(fill(0, ROWS, true), 0);
    forget(0);
    beside = (1 << 20) - 20000;
    assert_int_equal(fill(0, ROWS, true), -E2BIG);
}

/* Only a log tells of each one's removal. */
static void copies_of_a_key_are_entries_where_a_log_is_followed(void **state)
{
    (void)state;
    assert_int_equal(fill(1, 100, false), 0);
    assert_int_equal(filter_stats(generation->filters[1]).keys, 1);
    assert_int_equal(generation->shared[1], 99);
    forget(1);
    assert_int_equal(fill(1, 100, true), 0);
    assert_true(filter_stats(generation->filters[1]).keys > 1);
}

static void rows_that_cannot_be_read_are_an_error(void **state)
{
    (void)state;
    assert_int_equal(fill(2, 10, true), -EPROTO);
    assert_non_null(strstr(error.text, "nowhere"));
    assert_true(halt); /* the other shares' sessions look at it */
}

/* Whoever writes rows chooses their size. */
static void a_row_without_memory_for_its_key_is_an_error(void **state)
{
    (void)state;
    allocator_fail(1000000, 1);
    assert_int_equal(fill(3, 2, true), -ENOMEM);
    assert_true(allocator_failed());
    assert_string_equal(error.text, "no memory for a key of keyspace l");
    allocator_fail(0, 0);
    pg_session_close(session); /* broken off in the middle */
    session = session_as("postgres");
    halt = false;
    rows = generation->rows = 0;
    forget(3);
    assert_int_equal(fill(3, 2, true), 0);
    assert_int_equal(rows, 2);
    assert_true(holds(3, "l:a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_rows_are_in_it, begin, end),
        cmocka_unit_test_setup_teardown(a_wrong_estimate_has_them_read_once_more_into_one_that_fits,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_filter_of_that_size_that_cannot_be_had_is_an_error, begin,
                                        end),
        cmocka_unit_test_setup_teardown(filters_of_sources_have_their_share_of_the_memory, begin,
                                        end),
        cmocka_unit_test_setup_teardown(copies_of_a_key_are_entries_where_a_log_is_followed, begin,
                                        end),
        cmocka_unit_test_setup_teardown(rows_that_cannot_be_read_are_an_error, begin, end),
        cmocka_unit_test_setup_teardown(a_row_without_memory_for_its_key_is_an_error, begin, end),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
