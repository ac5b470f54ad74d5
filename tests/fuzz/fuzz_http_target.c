/* Targets of HTTP requests, of any text. What is accepted is escaped and read again as the same. */
#include "http/http_target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

/* Pairs of C strings, none of which reaches beyond the end; a name's first value is found. */
static void check_query(const struct http_target *target)
{
    const char *at = target->query.at, *end = at + target->query.length;
    while (at < end) {
        const char *name = at;
        const char *value = memchr(name, '\0', (size_t)(end - name));
        CHECK(value && ++value < end);
        at = memchr(value, '\0', (size_t)(end - value));
        CHECK(at++);
        const char *found = http_target_query(target, name);
        CHECK(found && found <= value && found >= target->query.at);
    }
    CHECK(!http_target_query(target, "no such name, for it has blanks and \x01"));
}

/* As one segment behind a slash: every byte of it comes back. */
static void check_escaped(struct span path)
{
    struct http_target target;
    const char *error = NULL;
    char *escaped = http_target_escape(path);
    size_t length = strlen(escaped);
    char *text = malloc(length + 2);
    CHECK(text);
    text[0] = '/';
    memcpy(text + 1, escaped, length + 1);
    CHECK(strchr(escaped, '/') == NULL);
    CHECK(http_target_parse(&target, text, &error) == 0);
    CHECK(target.path.length == path.length + 1 && target.query.length == 0);
    CHECK(memcmp(target.path.at + 1, path.at, path.length) == 0);
    http_target_finish(&target);
    free(text);
    free(escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct http_target target;
    const char *error = NULL;
    char *text = malloc(size + 1);
    CHECK(text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    int status = http_target_parse(&target, text, &error);
    CHECK(status == 0 || (status == -EINVAL && error && *error));
    if (status == 0) {
        CHECK(target.path.length > 0 && target.path.at[0] == '/');
        check_query(&target);
        check_escaped(target.path);
        http_target_finish(&target);
    }
    check_escaped((struct span){text, size});
    free(text);
    return 0;
}
