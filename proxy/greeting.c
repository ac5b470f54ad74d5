/* SELECT is sent also for database 0: its error tells of a cache that wants a password. */
#include "greeting.h"

#include "resp.h"

#include <stdio.h>

static void write_auth(struct buffer *out, const struct cache_url *cache)
{
    struct span words[3] = {span_of("AUTH")};
    size_t count = 1;
    if (cache->user)
        words[count++] = span_of(cache->user);
    words[count++] = span_of(cache->password);
    resp_write_command(out, words, count);
}

unsigned greeting_write(struct buffer *out, const struct cache_url *cache)
{
    char db[16];
    snprintf(db, sizeof db, "%d", cache->db);
    if (cache->password)
        write_auth(out, cache);
    resp_write_command(out, (struct span[]){span_of("SELECT"), span_of(db)}, 2);
    return cache->password ? 2 : 1;
}
