/* Key templates and keys of any text: a template, a newline, another template, a newline, a key.
 * Each way in which a key splits renders as that key, and there is one if and only if it matches.
 */
#include "config/syntax/key_template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

enum { WAYS = 40 };

static void check_renders(const struct key_template *key, struct span text,
                          const struct span *columns)
{
    struct buffer out = {0};
    key_template_render(key, columns, &out);
    CHECK(buffer_length(&out) == text.length);
    CHECK(memcmp(buffer_span(&out).at, text.at, text.length) == 0);
    buffer_finish(&out);
}

static void check_key(const struct key_template *key, struct span text)
{
    struct span ways[WAYS][KEY_COLUMNS_MAX];
    size_t count = key_template_split(key, text, ways, WAYS);
    CHECK(count <= WAYS + 1);
    CHECK(key_template_matches(key, text) == (count > 0));
    CHECK(key_template_split(key, text, ways, 1) == (count > 1 ? 2 : count));
    key_template_split(key, text, ways, WAYS);
    for (size_t i = 0; i < count && i < WAYS; i++) {
        for (size_t column = 0; column < key->columns; column++) {
            const char *end = ways[i][column].at + ways[i][column].length;
            CHECK(ways[i][column].at >= text.at && end <= text.at + text.length);
        }
        check_renders(key, text, ways[i]);
    }
}

/* Two templates that one key matches overlap, and those that overlap have an example. */
static void check_pair(const struct key_template *one, const struct key_template *other,
                       struct span text)
{
    bool overlap = key_template_overlaps(one, other);
    CHECK(overlap == key_template_overlaps(other, one));
    CHECK(overlap || !key_template_matches(one, text) || !key_template_matches(other, text));
    if (!overlap)
        return;
    struct buffer example = {0};
    key_template_example(one, other, &example);
    struct span made = buffer_span(&example);
    CHECK(key_template_matches(one, made) && key_template_matches(other, made));
    buffer_finish(&example);
}

static bool parse(struct key_template *key, const char *text)
{
    const char *error = NULL;
    int status = key_template_parse(key, text, &error);
    CHECK(status == 0 || (status == -EINVAL && error && *error));
    if (status == 0)
        CHECK(key->columns >= 1 && key->columns <= KEY_COLUMNS_MAX && strcmp(key->text, text) == 0);
    return status == 0;
}

/* The line's end becomes a NUL; NULL: there is none. */
static char *end_line(char *text, size_t length)
{
    char *end = memchr(text, '\n', length);
    if (end)
        *end = '\0';
    return end;
}

static void check_all(char *first, char *second, struct span text)
{
    struct key_template one, other;
    if (!parse(&one, first))
        return;
    check_key(&one, text);
    if (parse(&other, second)) {
        check_key(&other, text);
        check_pair(&one, &other, text);
        key_template_finish(&other);
    }
    key_template_close(&one);
    CHECK(!key_template_matches(&one, text));
    key_template_finish(&one);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    CHECK(text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    char *middle = end_line(text, size);
    char *end = middle ? end_line(middle + 1, (size_t)(text + size - middle - 1)) : NULL;
    if (end) {
        size_t length = (size_t)(text + size - end - 1);
        char *key = malloc(length ? length : 1); /* ends where AddressSanitizer watches */
        CHECK(key);
        memcpy(key, end + 1, length);
        check_all(text, middle + 1, (struct span){key, length});
        free(key);
    }
    free(text);
    return 0;
}
