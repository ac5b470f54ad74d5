/* The cache's URL: an address, user, password and database. */
#ifndef NESTGUARD_CACHE_URL_H
#define NESTGUARD_CACHE_URL_H

#include "base/text/address.h"
#include <stddef.h>

enum { CACHE_SEEDS = 16 }; /* at most */

/* redis://[[user]:password@]host[:port][/db], rediss:// for TLS, or unix:/path[?db=N]; or
 * redis-sentinel://[[user]:password@]host[:port][,host[:port]]…/name[/db], rediss-sentinel://; or
 * redis-cluster://[[user]:password@]host[:port][,host[:port]]…[/0], rediss-cluster://. Percent
 * escapes are decoded. User and password are those of the cache, not of sentinels. */
struct cache_url {
    struct address address; /* of the cache; with sentinels or a cluster, of the first seed */
    char *user, *password;  /* NULL: none */
    int db;                 /* the number of the database, 0 unless the URL says so */
    char *primary;          /* the name that sentinels know it by; NULL: `address` is its own */
    bool is_cluster;
    struct address *seeds; /* sentinels, with `primary`; or nodes of a cluster */
    size_t seed_count;
};

/* 0, or -EINVAL and *error: static text that says what is allowed, and quotes nothing, for there
 * may be a password in it. On failure there is nothing to free. */
int cache_url_parse(struct cache_url *out, const char *text, const char **error);
void cache_url_finish(struct cache_url *url); /* zeroed memory, too */

/* The same servers, in the same order, with the same user, password, database and name of the
 * primary. */
bool cache_url_equal(const struct cache_url *a, const struct cache_url *b);

/* Which cache it is, however it is connected to: text, the caller's, that two have alike when they
 * name the same servers in the same order, the same primary and the same database. */
char *cache_url_place(const struct cache_url *url);

/* What `to` held before is not freed. Ended by cache_url_finish(). */
void cache_url_copy(struct cache_url *to, const struct cache_url *from);

#endif
