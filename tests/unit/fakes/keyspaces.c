#include "fakes/keyspaces.h"

#include "fakes/config_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct shared_config *keyspaces_config(uint16_t cache_port, const char *settings)
{
    char text[2000];
    snprintf(text, sizeof text,
             "cache: redis://127.0.0.1:%u\ndatabase: postgresql://app@db/shop\nsync: none\n"
             "cache_connections: 1\n%skeyspaces:\n"
             "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
             "  - {name: shadows, key: \"shadow:{id}\", table: items, value: v, enforce: false}\n"
             "  - {name: passed, key: \"passed:{id}\", table: items, on_miss: pass,\n"
             "     on_absent: value, absent_value: nope}\n",
             (unsigned)cache_port, settings);
    return shared_config_create(config_from_text(text));
}

struct generation *keyspaces_generation(void)
{
    static const char *const names[KEYSPACES] = {"item", "shadow", "passed"};
    struct filter_options options = {.capacity = 1000, .false_positive_rate = 1e-7};
    struct generation *generation = generation_create(1, KEYSPACES);
    const char *error;
    char key[30];
    for (size_t i = 0; i < KEYSPACES; i++)
        assert_int_equal(filter_create(&generation->filters[i], &options, &error), 0);
    for (int i = 0; i < 100 * KEYSPACES; i++) {
        snprintf(key, sizeof key, "%s:%d", names[i % KEYSPACES], i / KEYSPACES);
        uint64_t hash = filter_hash(&generation->seed, key, strlen(key));
        assert_int_equal(filter_insert(generation->filters[i % KEYSPACES], hash), 0);
    }
    return generation;
}

struct view *keyspaces_view(struct shared_config *shared, struct generation *generation,
                            enum keyspace_state state, unsigned holders)
{
    enum keyspace_state states[KEYSPACES];
    for (size_t i = 0; i < KEYSPACES; i++)
        states[i] = state;
    return view_create(shared, generation, states, holders);
}
