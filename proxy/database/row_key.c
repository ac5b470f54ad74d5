/* The log describes a table's columns once and then sends rows by position. So a keyspace's columns
 * are looked up by name in the description, and their places are remembered; a row that has another
 * number of columns than was described is of another table than is known.
 *
 * An update may leave out what it did not change and what is stored out of line (TOAST): such a
 * value is "unchanged" and nowhere in the new row. It is then taken from the old one, where the
 * table's identity sends that; else the key cannot be told.
 *
 * Of an old row the identity's columns alone may be sent. All others are NULL then, whatever the
 * row had in them; but an identity that is an index has no NULL in its columns. So a NULL there is
 * a column that was not sent, and never a row without a key.
 */
#include "database/row_key.h"

#include <errno.h>

static int find_column(struct pgoutput_relation relation, const char *name, uint16_t *place)
{
    struct pgoutput_column column;
    for (uint16_t i = 0; pgoutput_column_next(&relation, &column); i++) {
        if (strcmp(column.name, name) != 0)
            continue;
        *place = i;
        return 0;
    }
    return -ENOENT;
}

int row_shape_read(struct row_shape *shape, const struct key_template *key,
                   struct pgoutput_relation relation, const char **missing)
{
    shape->columns = relation.columns;
    for (size_t c = 0; c < key->columns; c++) {
        *missing = key->column[c];
        if (find_column(relation, *missing, &shape->place[c]) < 0)
            return -ENOENT;
    }
    return 0;
}

bool row_identity_tells(const struct key_template *key, struct pgoutput_relation relation)
{
    struct pgoutput_column column;
    size_t told = 0;
    if (relation.identity == 'f')
        return true;
    while (pgoutput_column_next(&relation, &column))
        for (size_t c = 0; c < key->columns; c++)
            told += column.is_key && strcmp(column.name, key->column[c]) == 0;
    return told == key->columns;
}

bool row_shape_fits(const struct row_shape *shape, const struct pgoutput_event *event)
{
    return shape->described &&
           (!event->new_tuple.at || event->new_tuple.columns == shape->columns) &&
           (!event->old_tuple.at || event->old_tuple.columns == shape->columns);
}

/* Finds those of the key columns' values that are not given yet. */
static enum row_key_outcome read_columns(const struct row_shape *shape, size_t count,
                                         struct pgoutput_tuple tuple, struct span *columns,
                                         bool *given)
{
    struct pgoutput_value value;
    enum row_key_outcome outcome = ROW_KEY_WHOLE;
    for (uint16_t i = 0; pgoutput_tuple_next(&tuple, &value); i++) {
        for (size_t c = 0; c < count; c++) {
            bool told = value.kind != PGOUTPUT_NULL || !tuple.is_key;
            if (shape->place[c] != i || given[c] || !told)
                continue;
            if (value.kind == PGOUTPUT_NULL)
                outcome = ROW_KEY_NONE;
            given[c] = value.kind == PGOUTPUT_NULL || value.kind == PGOUTPUT_TEXT;
            columns[c] = (struct span){value.at, value.length};
        }
    }
    return outcome;
}

enum row_key_outcome row_key_read(const struct row_shape *shape, const struct key_template *key,
                                  struct pgoutput_tuple tuple, struct pgoutput_tuple spare,
                                  struct buffer *out)
{
    struct span columns[KEY_COLUMNS_MAX];
    bool given[KEY_COLUMNS_MAX] = {false};
    enum row_key_outcome outcome = read_columns(shape, key->columns, tuple, columns, given);
    if (outcome == ROW_KEY_WHOLE && spare.at)
        outcome = read_columns(shape, key->columns, spare, columns, given);
    if (outcome != ROW_KEY_WHOLE)
        return outcome;
    for (size_t c = 0; c < key->columns; c++)
        if (!given[c])
            return ROW_KEY_UNKNOWN;
    buffer_clear(out);
    key_template_render(key, columns, out);
    return ROW_KEY_WHOLE;
}
