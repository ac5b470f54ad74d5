#include "redis/topology/redis_redirect.h"

#include <stdio.h>
#include <stdlib.h>

/* MOVED or ASK, slot, host and port: no longer than this when it is right. */
enum { TEXT_SIZE = REDIS_PLACE_TEXT + 24 };

static bool read_place(struct redis_place *place, char *text, const struct redis_place *from)
{
    char *colon = strrchr(text, ':');
    if (!colon)
        return false;
    *colon = '\0';
    return redis_place_set(place, *text ? text : from->host, colon + 1);
}

static const char *behind(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 ? text + length : NULL;
}

bool redis_redirect_is_meant(const char *error, size_t length)
{
    return (length >= 6 && strncmp(error, "MOVED ", 6) == 0) ||
           (length >= 4 && strncmp(error, "ASK ", 4) == 0);
}

bool redis_redirect_read(struct redis_redirect *out, const char *error, size_t length,
                         const struct redis_place *from)
{
    char text[TEXT_SIZE], *end;
    if (length >= sizeof text || (error[0] != 'M' && error[0] != 'A'))
        return false;
    snprintf(text, sizeof text, "%.*s", (int)length, error);
    const char *slot = behind(text, "MOVED ");
    out->asks = !slot;
    if (!slot)
        slot = behind(text, "ASK ");
    if (!slot || *slot < '0' || *slot > '9')
        return false;
    unsigned long number = strtoul(slot, &end, 10);
    if (*end != ' ' || number >= REDIS_SLOTS)
        return false;
    out->slot = (unsigned)number;
    return read_place(&out->place, end + 1, from);
}
