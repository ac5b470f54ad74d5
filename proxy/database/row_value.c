/* Each copy of a large value costs the keeper's thread a fresh page for every 4 KB, and everybody
 * who waits for that the time. So it stays where libpq has put it.
 */
#include "database/row_value.h"

#include "database/rows_statements.h"

#include <string.h>

enum { BYTEA_OID = 17 };

static struct blob *copy(struct span text)
{
    char *bytes;
    struct blob *blob = blob_create(text.length, &bytes);
    if (blob)
        memcpy(bytes, text.at, text.length);
    return blob;
}

static void clear(void *result)
{
    PQclear(result);
}

static struct blob *take_result(const struct pg_answer *answer, struct span text)
{
    PGresult *result = *answer->owner;
    *answer->owner = NULL;
    return blob_adopt(text, clear, result);
}

/* For want of memory it fails, and for nothing else: the text comes from the server's own output
 * function. */
static struct blob *unescape(const char *text)
{
    size_t length;
    unsigned char *raw = PQunescapeBytea((const unsigned char *)text, &length);
    return raw ? blob_adopt((struct span){(char *)raw, length}, PQfreemem, raw) : NULL;
}

struct blob *row_value_take(const struct pg_answer *answer, int row)
{
    const PGresult *result = answer->result;
    struct span text = {PQgetvalue(result, row, 0), (size_t)PQgetlength(result, row, 0)};
    if (PQftype(result, 0) == BYTEA_OID)
        return unescape(text.at);
    return text.length > ROW_SMALL ? take_result(answer, text) : copy(text);
}
