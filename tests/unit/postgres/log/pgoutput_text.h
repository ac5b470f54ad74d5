/* Events of the log as text, one line each, for tests to compare:
 *
 *     begin
 *     update items key (1, NULL) new (10, uno)
 *     commit
 *
 * Positions, times and types are left out; a long value is only counted.
 */
#ifndef NESTGUARD_TEST_PGOUTPUT_TEXT_H
#define NESTGUARD_TEST_PGOUTPUT_TEXT_H

#include "postgres/log/pgoutput.h"

#include <stdio.h>
#include <string.h>

enum { EVENT_TEXT_MAX = 16384, VALUE_TEXT_MAX = 24 };

struct event_text {
    char at[EVENT_TEXT_MAX];
    size_t length;
    const char *(*relation_name)(uint32_t id); /* NULL: the number */
};

#define PRINT(text, ...)                                                                           \
    ((text)->length +=                                                                             \
     (size_t)snprintf((text)->at + (text)->length, EVENT_TEXT_MAX - (text)->length, __VA_ARGS__),  \
     assert_true((text)->length < EVENT_TEXT_MAX))

static void print_value(struct event_text *text, const struct pgoutput_value *value)
{
    if (value->kind == PGOUTPUT_NULL)
        PRINT(text, "NULL");
    else if (value->kind == PGOUTPUT_UNCHANGED)
        PRINT(text, "unchanged");
    else if (value->kind == PGOUTPUT_BINARY)
        PRINT(text, "%u binary bytes", (unsigned)value->length);
    else if (value->length > VALUE_TEXT_MAX)
        PRINT(text, "%u bytes", (unsigned)value->length);
    else
        PRINT(text, "%.*s", (int)value->length, value->at);
}

static void print_tuple(struct event_text *text, const char *what, struct pgoutput_tuple tuple)
{
    struct pgoutput_value value;
    unsigned count = 0;
    if (!tuple.at)
        return;
    PRINT(text, " %s (", what);
    while (pgoutput_tuple_next(&tuple, &value)) {
        PRINT(text, "%s", count++ ? ", " : "");
        print_value(text, &value);
    }
    PRINT(text, ")");
    assert_int_equal(count, tuple.columns);
}

static void print_relation_id(struct event_text *text, uint32_t id)
{
    if (text->relation_name)
        PRINT(text, " %s", text->relation_name(id));
    else
        PRINT(text, " %u", (unsigned)id);
}

static void print_described(struct event_text *text, struct pgoutput_relation relation)
{
    struct pgoutput_column column;
    unsigned count = 0;
    PRINT(text, " %s.%s %c (", relation.schema, relation.name, relation.identity);
    while (pgoutput_column_next(&relation, &column))
        PRINT(text, "%s%s%s", count++ ? ", " : "", column.name, column.is_key ? "*" : "");
    PRINT(text, ")");
    assert_int_equal(count, relation.columns);
}

static void print_truncated(struct event_text *text, const struct pgoutput_event *event)
{
    struct pgoutput_truncated truncated = event->truncated;
    uint32_t relation, count = 0;
    for (; pgoutput_truncated_next(&truncated, &relation); count++)
        print_relation_id(text, relation);
    assert_int_equal(count, event->truncated_count);
    PRINT(text, "%s%s", event->cascade ? " cascade" : "",
          event->restart_identity ? " restart identity" : "");
}

static void print_event(struct event_text *text, const struct pgoutput_event *event)
{
    static const char *const names[] = {
        "begin",        "commit",      "relation",      "insert",      "update",
        "delete",       "truncate",    "type",          "origin",      "message",
        "stream start", "stream stop", "stream commit", "stream abort"};
    PRINT(text, "%s", names[event->kind]);
    if (event->relation)
        print_relation_id(text, event->relation);
    print_tuple(text, event->old_is_key ? "key" : "old", event->old_tuple);
    print_tuple(text, "new", event->new_tuple);
    if (event->kind == PGOUTPUT_RELATION)
        print_described(text, event->described);
    if (event->kind == PGOUTPUT_TRUNCATE)
        print_truncated(text, event);
    PRINT(text, "\n");
}

#endif
