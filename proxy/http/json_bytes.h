/* Keys, paths and messages may hold any bytes, also where they were cut off; a JSON string must be
 * UTF-8. What the guard did not spell itself becomes JSON here, and nowhere else.
 */
#ifndef NESTGUARD_JSON_BYTES_H
#define NESTGUARD_JSON_BYTES_H

#include <jansson.h>
#include <stddef.h>

/* Bytes as a JSON string: as they are, but those that are of no character of UTF-8 are shown as
 * \xNN. A new reference; where there is no memory for so much, a text that says so.
 */
json_t *json_bytes(const void *bytes, size_t length);

/* The same of a string; NULL is JSON's null. */
json_t *json_text(const char *text);

#endif
