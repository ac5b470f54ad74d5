/* A row as the hash that is cached of it: from the JSON object that the database writes of the row
 * to what Redis answers to HGETALL.
 *
 *   {"id":42,"name":"a \"b\"","tags":["x"],"gone":null}  ─▶  *6 id 42 name a "b" tags ["x"]
 *
 * A string is the field's value without its quotes and escapes; anything else is as it is written,
 * a number with all of its digits. A null has no field: Redis knows no NULL. An empty text, which
 * is the database's NULL, is a hash without fields.
 */
#ifndef NESTGUARD_ROW_HASH_H
#define NESTGUARD_ROW_HASH_H

#include "base/blob.h"

/* A new blob with the reply of RESP2 (which resp_map_open() opens), or NULL: it is no JSON object,
 * or one that names a member twice, or there is no memory for it; *error then says so. */
struct blob *row_hash_create(struct span json, const char **error);

#endif
