/* Lookups in rows that are cached as hashes (fill: hash), by HGET, HMGET, HSTRLEN, HEXISTS, HLEN,
 * HGETALL, HKEYS, HVALS:
 *
 *   decide ─reject─▶ the absent answer (lookup.c)
 *      └─pass─▶ cache ─┬─ something ─▶ reply
 *                      ├─ no hash (HLEN and the like: 0 or nothing) ─▶ keeper: load ─▶ reply
 *                      └─ no field, or no hash? ─▶ cache: HGETALL ─┬─ not this field ─▶ reply
 *                                                                  └─ no hash ─▶ keeper: load
 *
 * That a field is not there is believed only of a reply that shows the hash beside it. To ask for
 * the key's existence in a command of its own would not do, before or behind the other: the key may
 * come or go between the two, and a nil would be told of a row that has the field.
 */
#ifndef NESTGUARD_HASH_LOOKUP_H
#define NESTGUARD_HASH_LOOKUP_H

#include "worker/request/request.h"

/* Whether the lookup of one guarded key, by a READ, is such a one. */
static inline bool hash_lookup_is_one(const struct client *client, const struct request *request)
{
    const struct keyspace *keyspace = serving_keyspace(client->serving, request->keyspace);
    return request->command->hash != HASH_NOT && keyspace->fill == FILL_HASH &&
           keyspace->on_miss == MISS_LOAD;
}

/* Dispatches it; it is not rejected. `shadowed`: it would have been, but for shadow mode. To the
 * `replica` (reads_replica()), or with NULL to the client's connection. */
void hash_lookup_dispatch(struct client *client, const struct request *request, bool shadowed,
                          struct upstream *replica);

/* What a lookup of a key without a row gets where that depends on how many fields it asks for. */
void hash_lookup_write_absent(struct client *client, const struct request *request);

#endif
