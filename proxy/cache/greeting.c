/* SELECT is sent also for database 0: its error tells of a cache that wants a password. */
#include "cache/greeting.h"

#include "resp/resp.h"

#include <stdio.h>

void greeting_write_auth(struct buffer *out, const struct cache_url *cache)
{
    struct span words[3] = {span_of("AUTH")};
    size_t count = 1;
    if (cache->user || !cache->password)
        words[count++] = span_of(cache->user ? cache->user : "default");
    words[count++] = span_of(cache->password ? cache->password : "");
    resp_write_command(out, words, count);
}

unsigned greeting_write(struct buffer *out, const struct cache_url *cache, bool resp3,
                        const char *name)
{
    char db[16];
    unsigned replies = 1;
    snprintf(db, sizeof db, "%d", cache->db);
    if (cache->password) {
        greeting_write_auth(out, cache);
        replies++;
    }
    resp_write_command(out, (struct span[]){span_of("SELECT"), span_of(db)}, 2);
    if (resp3) {
        resp_write_command(out, (struct span[]){span_of("HELLO"), span_of("3")}, 2);
        replies++;
    }
    if (name) {
        struct span words[] = {span_of("CLIENT"), span_of("SETNAME"), span_of(name)};
        resp_write_command(out, words, 3);
        replies++;
    }
    return replies;
}
