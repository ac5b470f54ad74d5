#include "database/printed_types.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* $1: the types of the columns. */
static const char looked_up[] =
    "WITH RECURSIVE columns AS (SELECT * FROM unnest($1::oid[]) WITH ORDINALITY AS c (type, "
    "number)),"
    " printed (number, type) AS (SELECT number, type FROM columns" TYPES_PRINTED_BELOW ")"
    "SELECT c.number, format_type(c.type, NULL), l.types"
    "  FROM columns c, LATERAL (" TYPES_LOOKED_UP " AND p.number = c.number) AS l (types)"
    " WHERE l.types IS NOT NULL ORDER BY c.number LIMIT 1";

char *printed_types_words(const char *column, const char *type, const char *looked_up_types)
{
    bool is_whole = strcmp(type, looked_up_types) == 0;
    return xasprintf(
        "key: column %s is of type %s%s%s%s, whose text is not the row's alone: PostgreSQL looks "
        "it up in the catalogue, and when an object there is renamed, moved or dropped, rows have "
        "other keys, of which nobody tells the filter; take a column of another type for the key, "
        "such as oid or text",
        column, type, is_whole ? "" : " (of ", is_whole ? "" : looked_up_types,
        is_whole ? "" : ")");
}

/* As SQL writes an array. */
static char *types_of(const PGresult *columns)
{
    struct buffer out = {0};
    for (int i = 0; i < PQnfields(columns); i++)
        buffer_printf(&out, "%s%u", i ? "," : "{", PQftype(columns, i));
    buffer_printf(&out, "}");
    return buffer_string(&out);
}

int printed_types_refuse(struct pg_session *session, const PGresult *columns,
                         struct pg_error *error)
{
    PGresult *found;
    char *types = types_of(columns);
    int status =
        pg_session_exec(session, looked_up, 1, (const char *const[]){types}, &found, error);
    free(types);
    if (status)
        return status;
    if (PQntuples(found)) {
        int column = atoi(PQgetvalue(found, 0, 0)) - 1;
        char *words = printed_types_words(PQfname(columns, column), PQgetvalue(found, 0, 1),
                                          PQgetvalue(found, 0, 2));
        pg_error_say(error, "%s", words);
        status = -EPROTO;
        free(words);
    }
    PQclear(found);
    return status;
}
