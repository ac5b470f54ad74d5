#include "base/keymap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct entry {
    int number;
    struct keymap_node node;
    char key[24];
};

static struct keymap_node *find(const struct keymap *map, struct span key)
{
    return keymap_find(map, key, keymap_hash(key));
}

static struct entry *entry_of(struct keymap_node *node)
{
    return container_of(node, struct entry, node);
}

static struct entry *entries_create(int count)
{
    struct entry *entries = calloc((size_t)count, sizeof *entries);
    for (int i = 0; i < count; i++) {
        snprintf(entries[i].key, sizeof entries[i].key, "key:%d", i);
        entries[i].number = i;
        entries[i].node.key = span_of(entries[i].key);
        entries[i].node.hash = keymap_hash(entries[i].node.key);
    }
    return entries;
}

static void an_empty_map_finds_nothing(void **state)
{
    struct keymap map;
    (void)state;
    keymap_init(&map);
    assert_null(find(&map, span_of("")));
    assert_null(find(&map, span_of("key")));
    assert_int_equal(map.count, 0);
    keymap_finish(&map);
    keymap_finish(&map);
}

/* Zero bytes, the empty key and one key that begins with another are all different keys. */
static void keys_are_compared_by_all_their_bytes(void **state)
{
    static const struct span keys[] = {{"", 0},     {"\0", 1},      {"\0\0", 2}, {"a", 1},
                                       {"a\0", 2},  {"a\0b", 3},    {"a\0c", 3}, {"ab", 2},
                                       {"\xff", 1}, {"\xff\xfe", 2}};
    enum { KEYS = sizeof keys / sizeof *keys };
    struct keymap_node nodes[KEYS] = {{0}};
    struct keymap map;
    (void)state;
    keymap_init(&map);
    for (size_t i = 0; i < KEYS; i++) {
        assert_null(find(&map, keys[i]));
        nodes[i].key = keys[i];
        nodes[i].hash = keymap_hash(keys[i]);
        keymap_insert(&map, &nodes[i]);
    }
    for (size_t i = 0; i < KEYS; i++)
        assert_ptr_equal(find(&map, keys[i]), &nodes[i]);
    for (size_t i = 0; i < KEYS; i++) {
        keymap_remove(&map, &nodes[i]);
        assert_null(find(&map, keys[i]));
    }
    keymap_finish(&map);
}

static void check_order(const struct keymap *map, const int *wanted, size_t count)
{
    size_t at = 0;
    assert_int_equal(map->count, count);
    for (struct keymap_node *node = map->oldest; node; node = node->newer)
        assert_int_equal(entry_of(node)->number, wanted[at++]);
    assert_int_equal(at, count);
    for (struct keymap_node *node = map->newest; node; node = node->older)
        assert_int_equal(entry_of(node)->number, wanted[--at]);
    assert_int_equal(at, 0);
}

static void the_order_of_insertion_survives_removals(void **state)
{
    struct entry *e = entries_create(5);
    struct keymap map;
    (void)state;
    keymap_init(&map);
    for (int i = 0; i < 5; i++)
        keymap_insert(&map, &e[i].node);
    check_order(&map, (int[]){0, 1, 2, 3, 4}, 5);
    keymap_remove(&map, &e[2].node);
    check_order(&map, (int[]){0, 1, 3, 4}, 4);
    keymap_remove(&map, &e[0].node);
    keymap_remove(&map, &e[4].node);
    check_order(&map, (int[]){1, 3}, 2);
    keymap_insert(&map, &e[0].node);
    check_order(&map, (int[]){1, 3, 0}, 3);
    keymap_remove(&map, &e[3].node);
    keymap_remove(&map, &e[1].node);
    keymap_remove(&map, &e[0].node);
    check_order(&map, NULL, 0);
    keymap_finish(&map);
    free(e);
}

static void a_burst_grows_the_table_and_gives_the_memory_back(void **state)
{
    enum { MANY = 20000 };
    struct entry *e = entries_create(MANY);
    struct keymap map;
    (void)state;
    keymap_init(&map);
    for (int i = 0; i < MANY; i++)
        keymap_insert(&map, &e[i].node);
    assert_in_range(map.size, MANY, 2 * MANY);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(find(&map, span_of(e[i].key)), &e[i].node);
    for (int i = 0; i < MANY - 1; i++) {
        keymap_remove(&map, &e[i].node);
        assert_ptr_equal(find(&map, span_of(e[MANY - 1].key)), &e[MANY - 1].node);
    }
    assert_in_range(map.size, 1, 16);
    keymap_remove(&map, &e[MANY - 1].node);
    keymap_finish(&map);
    free(e);
}

/* With the insertion that makes it necessary, and with each one after that. */
static void nodes_move_to_more_buckets_some_at_a_time(void **state)
{
    enum { FULL = 16384 };
    struct entry *e = entries_create(2 * FULL);
    struct keymap map;
    size_t moved = 0;
    int i = 0;
    (void)state;
    keymap_init(&map);
    while (map.size <= FULL)
        keymap_insert(&map, &e[i++].node);
    assert_int_equal(map.before.size, FULL);
    for (; map.before.buckets; i++) {
        assert_in_range(map.before.moved, moved, moved + FULL / 100);
        moved = map.before.moved;
        assert_ptr_equal(find(&map, span_of(e[i - 1].key)), &e[i - 1].node);
        assert_ptr_equal(find(&map, span_of(e[i % 100].key)), &e[i % 100].node);
        keymap_insert(&map, &e[i].node);
    }
    assert_in_range(i, FULL + 100, FULL + FULL / 2);
    while (i--)
        assert_ptr_equal(find(&map, span_of(e[i].key)), &e[i].node);
    keymap_finish(&map);
    free(e);
}

/* Against a plain array that says which entries are in; there come to be many of them, and few. */
static void random_insertions_and_removals_agree_with_a_model(void **state)
{
    enum { KEYS = 3000, STEPS = 200000, TIDE = 20000 };
    struct entry *e = entries_create(KEYS);
    bool in[KEYS] = {false};
    size_t count = 0;
    struct keymap map;
    (void)state;
    srand(1);
    keymap_init(&map);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % KEYS;
        bool ebbs = step / TIDE % 2;
        assert_ptr_equal(find(&map, span_of(e[i].key)), in[i] ? &e[i].node : NULL);
        if (in[i] != ebbs && rand() % 8)
            continue;
        (in[i] ? keymap_remove : keymap_insert)(&map, &e[i].node);
        in[i] = !in[i];
        count += in[i] ? 1 : (size_t)-1;
        assert_int_equal(map.count, count);
    }
    keymap_finish(&map);
    free(e);
}

static uint64_t hash_of_another_process(struct span key)
{
    int pipe_fds[2], status;
    uint64_t hash;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (!child) {
        hash = keymap_hash(key);
        _exit(write(pipe_fds[1], &hash, sizeof hash) != sizeof hash);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(read(pipe_fds[0], &hash, sizeof hash), sizeof hash);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return hash;
}

/* Who chooses the keys must not be able to choose their buckets. Runs first: no seed is drawn yet.
 */
static void each_process_hashes_under_a_seed_of_its_own(void **state)
{
    struct span key = span_of("key");
    (void)state;
    uint64_t one = hash_of_another_process(key), other = hash_of_another_process(key);
    assert_int_not_equal(one, other);
    assert_int_equal(keymap_hash(key), keymap_hash(key));
    assert_int_not_equal(keymap_hash(key), one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_hashes_under_a_seed_of_its_own),
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(keys_are_compared_by_all_their_bytes),
        cmocka_unit_test(the_order_of_insertion_survives_removals),
        cmocka_unit_test(a_burst_grows_the_table_and_gives_the_memory_back),
        cmocka_unit_test(nodes_move_to_more_buckets_some_at_a_time),
        cmocka_unit_test(random_insertions_and_removals_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
