/* Keys, paths and messages may hold any bytes; a JSON string must be UTF-8. */
#ifndef NESTGUARD_JSON_BYTES_H
#define NESTGUARD_JSON_BYTES_H

#include <jansson.h>
#include <stddef.h>

/* Bytes as a JSON string: as they are when all of them are UTF-8, else with every byte outside of
 * ASCII shown as \xNN. A new reference; where there is no memory for so much, a text that says so.
 */
json_t *json_bytes(const void *bytes, size_t length);

#endif
