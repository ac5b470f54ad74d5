/* Templates: parsing, and the matching of every guarded lookup. A placeholder is a wildcard, so a
 * template is a pattern of literals with "any bytes" between them:
 *
 *   prefix * middle * middle * suffix
 *
 * Prefix and suffix are compared in place. Whether the middles fit is settled by taking each at its
 * leftmost place: if any choice fits, that one does.
 */
#include "config/syntax/key_template.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

/* Reading a template's text; literals and names are copied to `out`, which never overtakes `at`:
 * a name's closing zero byte takes the room of a brace. */
struct parser {
    const char *at;
    char *out;
    const char *error;
};

static int failed(struct parser *parser, const char *error)
{
    parser->error = error;
    return -EINVAL;
}

static int read_literal(struct parser *parser, struct span *literal)
{
    literal->at = parser->out;
    while (*parser->at && !(parser->at[0] == '{' && parser->at[1] != '{')) {
        if (*parser->at == '{' || *parser->at == '}') {
            if (parser->at[1] != parser->at[0])
                return failed(parser, "a } without its {; a brace itself is written twice, }}");
            parser->at++;
        }
        *parser->out++ = *parser->at++;
    }
    literal->length = (size_t)(parser->out - literal->at);
    return 0;
}

static int read_quoted_name(struct parser *parser)
{
    for (parser->at++; *parser->at; parser->at++) {
        if (*parser->at == '"' && *++parser->at != '"')
            return 0;
        if (*parser->at)
            *parser->out++ = *parser->at;
    }
    return failed(parser, "a quoted column name without its closing quote");
}

static int read_plain_name(struct parser *parser)
{
    for (; *parser->at && *parser->at != '}'; parser->at++) {
        if (*parser->at == '{')
            return failed(parser, "a { inside a placeholder; placeholders are {column}");
        if (*parser->at == '"')
            return failed(parser, "a quote inside a column name; such a name is written in quotes, "
                                  "{\"a\"\"b\"}");
        *parser->out++ = *parser->at;
    }
    return 0;
}

/* Reads the placeholder that begins here. */
static int read_column(struct parser *parser, char **column)
{
    *column = parser->out;
    parser->at++;
    int status = *parser->at == '"' ? read_quoted_name(parser) : read_plain_name(parser);
    if (status)
        return status;
    if (*parser->at == '\0')
        return failed(parser, "a placeholder without its closing }");
    if (*parser->at != '}')
        return failed(parser, "a quoted column name is followed by }");
    if (parser->out == *column)
        return failed(parser, "an empty placeholder; placeholders are {column}");
    parser->at++;
    *parser->out++ = '\0';
    return 0;
}

/* Called before it is counted: number `columns` is the new one. */
static int check_new_column(struct parser *parser, const struct key_template *key)
{
    size_t last = key->columns;
    for (size_t i = 0; i < last; i++)
        if (strcmp(key->column[i], key->column[last]) == 0)
            return failed(parser, "the same column twice");
    if (last > 0 && key->literal[last].length == 0)
        return failed(parser, "two placeholders with nothing between them, so that nobody can say "
                              "where one column ends");
    return 0;
}

static int parse(struct parser *parser, struct key_template *key)
{
    int status = read_literal(parser, &key->literal[0]);
    while (!status && *parser->at) {
        if (key->columns == KEY_COLUMNS_MAX)
            return failed(parser, "more than 8 placeholders");
        status = read_column(parser, &key->column[key->columns]);
        if (!status)
            status = check_new_column(parser, key);
        if (status)
            return status;
        key->columns++;
        status = read_literal(parser, &key->literal[key->columns]);
    }
    if (!status && key->columns == 0)
        return failed(parser,
                      "no placeholder; a template names the key's columns, as in item:{id}");
    return status;
}

/* So that nearly all keys of other keyspaces are told apart by one comparison of words. The mask
 * has the bytes that the prefix fills; a longer prefix is compared whole, behind that. */
static void keep_head(struct key_template *key)
{
    struct span prefix = key->literal[0], suffix = key->literal[key->columns];
    key->least = prefix.length + suffix.length;
    key->is_head = key->columns == 1 && suffix.length == 0 && prefix.length <= 8;
    key->head = key_head(prefix);
    key->head_mask = prefix.length < 8 ? (UINT64_C(1) << 8 * prefix.length) - 1 : UINT64_MAX;
}

int key_template_parse(struct key_template *out, const char *text, const char **error)
{
    *out = (struct key_template){.text = xstrdup(text), .own = xmalloc(strlen(text) + 1)};
    struct parser parser = {.at = text, .out = out->own};
    int status = parse(&parser, out);
    *error = parser.error;
    keep_head(out);
    if (status)
        key_template_finish(out);
    return status;
}

void key_template_finish(struct key_template *key)
{
    free(key->text);
    free(key->own);
    *key = (struct key_template){0};
}

/* The first place of `literal` in from..end, or NULL. */
static const char *find_first(struct span literal, const char *from, const char *end)
{
    return memmem(from, (size_t)(end - from), literal.at, literal.length);
}

/* The last place: memmem() from behind, which there is none of. */
static const char *find_last(struct span literal, const char *from, const char *end)
{
    for (size_t room = (size_t)(end - from); room >= literal.length; room--)
        if (memcmp(from + room - literal.length, literal.at, literal.length) == 0)
            return from + room - literal.length;
    return NULL;
}

/* Each at its leftmost place. */
__attribute__((noinline)) static bool middles_match(const struct key_template *key,
                                                    struct span text)
{
    const char *at = text.at + key->literal[0].length;
    const char *end = text.at + text.length - key->literal[key->columns].length;
    for (size_t i = 1; i < key->columns; i++) {
        at = find_first(key->literal[i], at, end);
        if (!at)
            return false;
        at += key->literal[i].length;
    }
    return true;
}

/* Prefix and suffix must not share bytes of the key, hence the length. */
static bool ends_match(const struct key_template *key, struct span text)
{
    struct span prefix = key->literal[0], suffix = key->literal[key->columns];
    return text.length >= prefix.length + suffix.length &&
           memcmp(text.at, prefix.at, prefix.length) == 0 &&
           (!suffix.length ||
            memcmp(text.at + text.length - suffix.length, suffix.at, suffix.length) == 0);
}

bool key_template_matches_whole(const struct key_template *key, struct span text)
{
    return ends_match(key, text) && (key->columns == 1 || middles_match(key, text));
}

/* No key is long enough. */
void key_template_close(struct key_template *key)
{
    key->least = SIZE_MAX;
}

/* Splitting. at[i] is where literal i lies now; last[i] is the rightmost place that leaves room for
 * those behind it. Every place from the end of the literal before it to last[i] can be completed,
 * so that the search never runs into a dead end, whatever the key. */
struct split {
    const struct key_template *key;
    const char *begin, *end; /* what lies between prefix and suffix */
    const char *at[KEY_COLUMNS_MAX];
    const char *last[KEY_COLUMNS_MAX];
};

/* From the last literal to the first, each as far right as it goes. False: they do not all fit. */
static bool find_last_places(struct split *split)
{
    const char *end = split->end;
    for (size_t i = split->key->columns - 1; i > 0; i--) {
        split->last[i] = find_last(split->key->literal[i], split->begin, end);
        if (!split->last[i])
            return false;
        end = split->last[i];
    }
    return true;
}

/* The first place of literal i at or behind `from` that leaves room for the others; NULL: none. */
static const char *place_from(const struct split *split, size_t i, const char *from)
{
    struct span literal = split->key->literal[i];
    if (from > split->last[i])
        return NULL;
    return find_first(literal, from, split->last[i] + literal.length);
}

/* Puts the literals from number i on to their leftmost places. */
static void place_rest(struct split *split, size_t i)
{
    for (; i < split->key->columns; i++) {
        const char *from =
            i == 1 ? split->begin : split->at[i - 1] + split->key->literal[i - 1].length;
        split->at[i] = place_from(split, i, from);
    }
}

/* Moves on to the next way, the last literal fastest. False: that was the last one. */
static bool next_way(struct split *split)
{
    for (size_t i = split->key->columns - 1; i > 0; i--) {
        const char *next = place_from(split, i, split->at[i] + 1);
        if (next) {
            split->at[i] = next;
            place_rest(split, i + 1);
            return true;
        }
    }
    return false;
}

/* What lies between the literals are the columns. */
static void write_way(const struct split *split, struct span *way)
{
    size_t columns = split->key->columns;
    const char *from = split->begin;
    for (size_t c = 0; c < columns; c++) {
        const char *to = c + 1 < columns ? split->at[c + 1] : split->end;
        way[c] = (struct span){from, (size_t)(to - from)};
        if (c + 1 < columns)
            from = to + split->key->literal[c + 1].length;
    }
}

/* Also of a key that was matched before the template was closed. */
size_t key_template_split(const struct key_template *template, struct span text,
                          struct span (*ways)[KEY_COLUMNS_MAX], size_t max)
{
    struct key_template open = *template, *key = &open;
    open.least = key->literal[0].length + key->literal[key->columns].length;
    if (!ends_match(key, text))
        return 0;
    struct split split = {
        .key = key,
        .begin = text.at + key->literal[0].length,
        .end = text.at + text.length - key->literal[key->columns].length,
    };
    if (!find_last_places(&split))
        return 0;
    place_rest(&split, 1);
    size_t count = 0;
    do {
        if (count == max)
            return max + 1;
        write_way(&split, ways[count++]);
    } while (next_way(&split));
    return count;
}

void key_template_render(const struct key_template *key, const struct span *columns,
                         struct buffer *out)
{
    for (size_t i = 0; i < key->columns; i++) {
        buffer_append(out, key->literal[i].at, key->literal[i].length);
        buffer_append(out, columns[i].at, columns[i].length);
    }
    buffer_append(out, key->literal[key->columns].at, key->literal[key->columns].length);
}

static struct span longer(struct span a, struct span b)
{
    return a.length > b.length ? a : b;
}

static size_t shorter_length(struct span a, struct span b)
{
    return a.length < b.length ? a.length : b.length;
}

void key_template_join(const struct key_template *key, const struct span *columns,
                       struct buffer *out)
{
    for (size_t i = 0; i < key->columns; i++) {
        if (i)
            buffer_append(out, ":", 1);
        buffer_append(out, columns[i].at, columns[i].length);
    }
}

/* Each template has at least one wildcard, so only the ends can keep two apart: with the ends
 * agreeing, the key of key_template_example() matches both. */
bool key_template_overlaps(const struct key_template *a, const struct key_template *b)
{
    struct span a_end = a->literal[a->columns], b_end = b->literal[b->columns];
    size_t prefix = shorter_length(a->literal[0], b->literal[0]);
    size_t suffix = shorter_length(a_end, b_end);
    return memcmp(a->literal[0].at, b->literal[0].at, prefix) == 0 &&
           memcmp(a_end.at + a_end.length - suffix, b_end.at + b_end.length - suffix, suffix) == 0;
}

static void append_middles(const struct key_template *key, struct buffer *out)
{
    for (size_t i = 1; i < key->columns; i++) {
        buffer_append(out, key->literal[i].at, key->literal[i].length);
        buffer_append(out, "1", 1);
    }
}

void key_template_example(const struct key_template *a, const struct key_template *b,
                          struct buffer *out)
{
    struct span prefix = longer(a->literal[0], b->literal[0]);
    struct span suffix = longer(a->literal[a->columns], b->literal[b->columns]);
    buffer_append(out, prefix.at, prefix.length);
    buffer_append(out, "1", 1);
    append_middles(a, out);
    append_middles(b, out);
    buffer_append(out, suffix.at, suffix.length);
}
