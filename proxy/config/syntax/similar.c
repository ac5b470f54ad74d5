/* The matrix of Wagner and Fischer ("The String-to-String Correction Problem", 1974), of which one
 * row is kept.
 */
#include "config/syntax/similar.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST = 127 };

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Turns row i of the distance matrix into row i + 1, in place; `before` is the value up and to the
 * left of the one being computed. */
static void next_row(size_t *row, size_t i, char letter, const char *b, size_t b_length)
{
    size_t before = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b_length; j++) {
        size_t replaced = before + (lower(letter) != lower(b[j]));
        before = row[j + 1];
        row[j + 1] = least(replaced, row[j] + 1, before + 1);
    }
}

size_t name_distance(const char *a, const char *b)
{
    size_t row[LONGEST + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > LONGEST || b_length > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 0; i < a_length; i++)
        next_row(row, i, a[i], b, b_length);
    return row[b_length];
}

bool name_is_similar(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    size_t longer = a_length > b_length ? a_length : b_length;
    size_t allowed = longer < 8 ? (longer < 3 ? 0 : 2) : longer / 4;
    return name_distance(a, b) <= allowed;
}
