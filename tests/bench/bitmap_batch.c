#include "bitmap_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_FRAME = 16, NUMBER_MOST = 24 }; /* "$20\r\n" and "\r\n" */

bool bitmap_batch_parse(const char *text, struct bitmap_batch *batch)
{
    int end = 0;
    *batch = (struct bitmap_batch){.shape.format = BITMAP_GUAVA_64};
    int read =
        sscanf(text, "%99[^,],%" SCNu64 ",%u%n,%99[^,],%99[^,]%n", batch->name, &batch->shape.bits,
               &batch->shape.functions, &end, batch->sha, batch->generation, &end);
    return (read == 3 || read == 5) && !text[end] && batch->shape.bits &&
           batch->shape.functions - 1 < BITMAP_FUNCTIONS_MAX;
}

size_t bitmap_batch_most(const struct bitmap_batch *batch, unsigned count)
{
    size_t place = 3 * (WORD_FRAME + NUMBER_MOST);
    size_t item = 4 * (WORD_FRAME + BITMAP_WORD_MOST) + (batch->shape.functions + 1) * place;
    return 6 * (WORD_FRAME + BITMAP_WORD_MOST) + count * item;
}

/* ---- words ---- */

static char *put_head(char *at, unsigned words)
{
    return at + sprintf(at, "*%u\r\n", words);
}

static char *put_word(char *at, const char *word)
{
    return at + sprintf(at, "$%zu\r\n%s\r\n", strlen(word), word);
}

static char *put_number(char *at, uint64_t number)
{
    char text[NUMBER_MOST];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return put_word(at, text);
}

static void places_of(const struct bitmap_batch *batch, uint64_t id,
                      uint64_t places[BITMAP_FUNCTIONS_MAX])
{
    char text[NUMBER_MOST];
    int length = snprintf(text, sizeof text, "%" PRIu64, id);
    bitmap_places(&batch->shape, text, (size_t)length, places);
}

/* ---- commands ---- */

static char *put_get(char *at, uint64_t bit)
{
    return put_number(put_word(put_word(at, "GET"), "u1"), bit);
}

static char *put_bitfield(const struct bitmap_batch *batch, char *at, uint64_t id)
{
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    places_of(batch, id, places);
    at = put_head(at, 2 + 3 * (1 + batch->shape.functions));
    at = put_word(put_word(at, "BITFIELD"), batch->name);
    at = put_get(at, batch->shape.bits);
    for (unsigned i = 0; i < batch->shape.functions; i++)
        at = put_get(at, places[i]);
    return at;
}

static char *put_script(const struct bitmap_batch *batch, char *at, const uint64_t *ids,
                        unsigned count)
{
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    char lease[BITMAP_WORD_MOST + 8];
    snprintf(lease, sizeof lease, "%s:lease", batch->name);
    at = put_head(at, 8 + count * batch->shape.functions);
    at = put_word(put_word(put_word(at, "EVALSHA"), batch->sha), "2");
    at = put_word(put_word(put_word(at, lease), batch->name), batch->generation);
    at = put_number(put_number(at, batch->shape.bits), batch->shape.functions);
    for (unsigned i = 0; i < count; i++) {
        places_of(batch, ids[i], places);
        for (unsigned k = 0; k < batch->shape.functions; k++)
            at = put_number(at, places[k]);
    }
    return at;
}

char *bitmap_batch_write(const struct bitmap_batch *batch, char *at, const uint64_t *ids,
                         unsigned count)
{
    if (batch->sha[0])
        return put_script(batch, at, ids, count);
    for (unsigned i = 0; i < count; i++)
        at = put_bitfield(batch, at, ids[i]);
    return at;
}

/* ---- replies ---- */

static const char *line_behind(const char *p, const char *end)
{
    const char *last = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return last ? last + 1 : NULL;
}

/* Bit m, and then those of the item. */
static struct bitmap_found take_bits(const struct bitmap_batch *batch, const char *p,
                                     const char *end, const char **next)
{
    struct bitmap_found found = {0};
    unsigned zeros = 0;
    const char *line = line_behind(p, end);
    bool is_whole = line && line < end && line[1] == '1';
    for (unsigned i = 0; line && i <= batch->shape.functions; i++) {
        zeros += line + 1 < end && line[1] == '0';
        line = line_behind(line, end);
    }
    if (!line)
        return found;
    *next = line;
    found.failed = !is_whole;
    found.absent = is_whole && zeros;
    found.possible = is_whole && !zeros;
    return found;
}

static struct bitmap_found take_letters(unsigned count, const char *p, const char *end,
                                        const char **next)
{
    struct bitmap_found found = {0};
    const char *letters = line_behind(p, end);
    size_t length = letters ? strtoul(p + 1, NULL, 10) : 0;
    if (!letters || (size_t)(end - letters) < length + 2)
        return found;
    *next = letters + length + 2;
    for (size_t i = 0; i < length && length == count; i++) {
        found.absent += letters[i] == 'A';
        found.possible += letters[i] == 'P';
    }
    found.failed = count - found.absent - found.possible;
    return found;
}

struct bitmap_found bitmap_batch_take(const struct bitmap_batch *batch, unsigned count,
                                      const char *p, const char *end, const char **next)
{
    struct bitmap_found found = {0};
    if (p == end || !line_behind(p, end))
        return found;
    if (*p == (batch->sha[0] ? '$' : '*'))
        return batch->sha[0] ? take_letters(count, p, end, next) : take_bits(batch, p, end, next);
    *next = line_behind(p, end); /* an error */
    found.failed = batch->sha[0] ? count : 1;
    return found;
}
