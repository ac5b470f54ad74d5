/* Reads the keys that keyspace_sql_pack_pages() has put into one value, each column as the text
 * that the server would have printed. */
#ifndef NESTGUARD_PACKED_KEYS_H
#define NESTGUARD_PACKED_KEYS_H

#include "base/span.h"
#include "config/config.h"
#include "database/keyspace_sql.h"

#include <stdint.h>

enum { PACKED_TEXT_MAX = 40 }; /* of a uuid, 36 */

struct packed_keys {
    const enum column_packing *packing;
    size_t columns, width; /* of a key, in bytes */
    struct span rest;
    char texts[KEY_COLUMNS_MAX][PACKED_TEXT_MAX];
};

/* `packing`, one for each column and none of them PACKS_NOT, and `value` must live as long. */
void packed_keys_begin(struct packed_keys *keys, const enum column_packing *packing, size_t columns,
                       struct span value);

/* The columns of the next key; they live until the one after it is asked for. False: there is none
 * any more. What is left in `rest` then is no whole key: not all keys were understood. */
bool packed_keys_next(struct packed_keys *keys, struct span *texts);

#endif
