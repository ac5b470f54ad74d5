/* The cache's URL: an address, user, password and database. */
#ifndef NESTGUARD_CACHE_URL_H
#define NESTGUARD_CACHE_URL_H

#include "base/text/address.h"

/* redis://[[user]:password@]host[:port][/db], rediss:// for TLS, or unix:/path[?db=N]; percent
 * escapes are decoded. */
struct cache_url {
    struct address address;
    char *user, *password; /* NULL: none */
    int db;
};
int cache_url_parse(struct cache_url *out, const char *text, const char **error);
void cache_url_finish(struct cache_url *url);
bool cache_url_equal(const struct cache_url *a, const struct cache_url *b);
void cache_url_copy(struct cache_url *to, const struct cache_url *from);

#endif
