/* A keyspace's key: literal text with {column} placeholders, e.g. `order:{customer}:{number}`.
 *
 *   literal[0] column[0] literal[1] column[1] ... literal[columns]
 *
 * A placeholder stands for any bytes, also none, so one key may be split into columns in more than
 * one way ("order:a:b:c"). Whoever looks for the row must try them all. `{{` and `}}` stand for the
 * braces themselves.
 *
 * Once in force it is only read: any number of threads may match keys by it.
 */
#ifndef NESTGUARD_KEY_TEMPLATE_H
#define NESTGUARD_KEY_TEMPLATE_H

#include "base/buffer.h"
#include "base/span.h"
#include "filters/short_word.h"
#include <stdbool.h>
#include <stdint.h>

enum { KEY_COLUMNS_MAX = 8 };

struct key_template {
    struct span literal[KEY_COLUMNS_MAX + 1]; /* point into memory that the template owns */
    char *column[KEY_COLUMNS_MAX];            /* names as in the catalogue: exact, unquoted */
    size_t columns;           /* 1 at least; 0 in zeroed memory, of which nothing may be asked */
    uint64_t head, head_mask; /* the first bytes of literal[0], at most eight; which they are */
    size_t least;             /* bytes of the shortest key: of literal[0] and the last literal */
    bool is_head;             /* the head and a column behind it are all that there is */
    char *text;               /* as written */
    char *own;                /* the bytes of literals and columns */
};

/* 0, or -EINVAL and a static *error, and then there is nothing to free: no placeholder, an empty or
 * unclosed one, a stray brace, the same column twice, two placeholders with nothing between them,
 * more than KEY_COLUMNS_MAX. A name may be written in double quotes, which are dropped ("" inside
 * is one quote). */
int key_template_parse(struct key_template *out, const char *text, const char **error);
void key_template_finish(struct key_template *key);

/* For key_template_matches(): its head, and whether what begins like this template's keys is one.
 */
static inline uint64_t key_head(struct span text)
{
    return text.length < 8 ? short_word_load(text.at, text.length) : word_load(text.at);
}
bool key_template_matches_whole(const struct key_template *key, struct span text);

/* Whether the key is one of this template's: a comparison of its first eight bytes, mostly, which
 * is here for the compiler. Takes no memory. */
static inline bool key_template_matches(const struct key_template *key, struct span text)
{
    return text.length >= key->least && ((key_head(text) ^ key->head) & key->head_mask) == 0 &&
           (key->is_head || key_template_matches_whole(key, text));
}

/* From here on it matches nothing; keys are split and rendered as before. */
void key_template_close(struct key_template *key);

/* Every way in which `text` splits: ways[i][c] is column c of way i, pointing into text. Returns
 * the number of ways, of which at most `max` are written; more than `max` are told as max + 1, for
 * a hostile key can have more of them than anybody could count. */
size_t key_template_split(const struct key_template *template, struct span text,
                          struct span (*ways)[KEY_COLUMNS_MAX], size_t max);

/* Appends the key of a row to `out`; columns[c] is the text of column c. */
void key_template_render(const struct key_template *key, const struct span *columns,
                         struct buffer *out);

/* Appends the columns' texts with a ":" between each two. */
void key_template_join(const struct key_template *key, const struct span *columns,
                       struct buffer *out);

/* Whether some key matches both templates. */
bool key_template_overlaps(const struct key_template *a, const struct key_template *b);

/* Appends a key that matches both of two templates that overlap. */
void key_template_example(const struct key_template *a, const struct key_template *b,
                          struct buffer *out);

#endif
