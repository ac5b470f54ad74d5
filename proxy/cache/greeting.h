/* What a connection to the cache begins with (redis_login.h), as bytes of RESP. */
#ifndef NESTGUARD_GREETING_H
#define NESTGUARD_GREETING_H

#include "base/buffer.h"
#include "cache/vouched.h"
#include "config/config.h"

/* Appends the commands that log in, select the database, and with `resp3` switch to that protocol;
 * `name` is for CLIENT SETNAME, or NULL; and ROLE, last of them. Returns how many replies they will
 * have. */
unsigned greeting_write(struct buffer *out, const struct cache_url *cache, bool resp3,
                        const char *name);

/* Behind that on a shared connection: the cache is not to hang up on it when clients take more
 * memory than maxmemory-clients, for all who share it would lose by that. It has one reply, which
 * may be an error: servers before 7.0 do not know it, and it is not for everybody. */
void greeting_write_stay(struct buffer *out);

/* Likewise: the cache's own limits are asked for. Each has one reply,
 * which may be an error: CONFIG is not for everybody. */
enum cache_limit { LIMIT_BULK, LIMIT_CLIENTS, CACHE_LIMITS };
void greeting_write_limits(struct buffer *out); /* in this order */

/* Of such a reply; what Redis has by default where it does not say. */
uint64_t greeting_read_limit(enum cache_limit limit, struct span reply);

/* Behind it on an own one: what the cache calls this connection, which has one reply. 0: it does
 * not say. */
void greeting_write_id(struct buffer *out);
uint64_t greeting_read_id(struct span reply);

/* Behind it on either, before these: which server it is, which has one reply, and may be an error.
 * "": it does not say. */
void greeting_write_server(struct buffer *out);
void greeting_read_run_id(char run_id[RUN_ID_SIZE], struct span reply);

/* Before that, of a cluster's node: its id in the cluster, which has one reply, and may be an
 * error.
 * "": it does not say. */
void greeting_write_node(struct buffer *out);
struct span greeting_read_node(struct span reply);

/* Only the first of them, also where no password is configured. */
void greeting_write_auth(struct buffer *out, const struct cache_url *cache);

/* The same together with a protocol: a connection that has been another user's. */
void greeting_write_hello(struct buffer *out, const struct cache_url *cache, bool resp3);

/* Of a reply to one of them but ROLE, or to HELLO: 0, or as redis_login_judge(); -EBUSY: the server
 * cannot do it now, and may be asked again; -EPROTO: it is no answer to that. */
int greeting_judge(struct span reply, bool is_hello);

/* ROLE, which may be asked again at any time, and what its reply says: why that server is no cache,
 * or that it is no answer (static text); or NULL. */
extern const char greeting_out_of_step[];
void greeting_write_role(struct buffer *out);
const char *greeting_judge_role(struct span reply);

/* An error that says nothing of later (LOADING, BUSY, MASTERDOWN); or one that a replica gives to
 * whoever writes. */
bool greeting_is_passing_trouble(struct span reply);
bool greeting_is_readonly(struct span reply);

#endif
