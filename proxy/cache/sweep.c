/* The server picks by a glob pattern, so that other keys do not travel; the template has the last
 * word.
 */
#include "cache/sweep.h"

#include "base/memory.h"

#include <stdlib.h>

enum { STEP = 1000 }; /* keys that the server looks at in one step: some 0.3 ms */

static void append_literal(struct buffer *pattern, struct span literal)
{
    for (size_t i = 0; i < literal.length; i++) {
        if (memchr("*?[]\\^-", literal.at[i], 7))
            buffer_append(pattern, "\\", 1);
        buffer_append(pattern, &literal.at[i], 1);
    }
}

/* item:{id}:{lang} as item:*:*, with what means something to a pattern escaped. */
static void write_pattern(struct buffer *pattern, const struct key_template *key)
{
    buffer_clear(pattern);
    append_literal(pattern, key->literal[0]);
    for (size_t i = 1; i <= key->columns; i++) {
        buffer_append(pattern, "*", 1);
        append_literal(pattern, key->literal[i]);
    }
}

static void set_cursor(struct sweep *sweep, const char *cursor)
{
    char *copy = xstrdup(cursor);
    free(sweep->cursor);
    sweep->cursor = copy;
}

void sweep_begin(struct sweep *sweep, const struct key_template *key)
{
    const char *error;
    if (key_template_parse(&sweep->key, key->text, &error) < 0)
        abort(); /* the same text was parsed before */
    write_pattern(&sweep->pattern, key);
    set_cursor(sweep, "0");
}

static void take_page(struct sweep *sweep, const struct redis_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        struct span key = {page->keys[i].at, page->keys[i].length};
        if (key_template_matches(&sweep->key, key))
            sweep->found(sweep->arg, key);
    }
    set_cursor(sweep, page->cursor);
    if (strcmp(page->cursor, "0") == 0)
        key_template_finish(&sweep->key);
}

/* A step that was abandoned meanwhile is counted as over, and what it found is dropped. */
static void on_page(void *arg, const struct redis_answer *answer)
{
    struct sweep *sweep = arg;
    enum redis_outcome outcome = answer->outcome;
    const char *error = answer->error;
    sweep->asking = false;
    if (outcome == REDIS_DONE && !answer->page.cursor) {
        outcome = REDIS_REFUSED;
        error = "its reply has no cursor";
    }
    if (outcome != REDIS_DONE)
        key_template_finish(&sweep->key);
    else if (!sweep_is_over(sweep))
        take_page(sweep, &answer->page);
    sweep->stepped(sweep->arg, outcome, error);
}

void sweep_step(struct sweep *sweep)
{
    struct span pattern = buffer_span(&sweep->pattern);
    sweep->asking = true;
    redis_scan(sweep->redis, sweep->cursor, (struct redis_bytes){pattern.at, pattern.length}, STEP,
               on_page, sweep);
}

void sweep_abandon(struct sweep *sweep)
{
    key_template_finish(&sweep->key);
}

void sweep_finish(struct sweep *sweep)
{
    key_template_finish(&sweep->key);
    buffer_finish(&sweep->pattern);
    free(sweep->cursor);
    sweep->cursor = NULL;
}
