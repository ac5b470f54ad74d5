#include "base/utf8.h"

#include <stdbool.h>

enum { LONGEST = 4 };

static bool goes_on(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* By the first byte. Those of 0xc0 and 0xc1 could only say what one byte says. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* What the second byte may be is narrower behind some: no number in more bytes than it needs, no
 * surrogates, and none above 0x10ffff. */
static bool may_follow(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second < 0xa0;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second < 0x90;
    default:
        return true;
    }
}

size_t utf8_character(const char *text, size_t left)
{
    size_t length = length_of((unsigned char)text[0]);
    if (length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!goes_on(text[i]))
            return 0;
    return length < 2 || may_follow((unsigned char)text[0], (unsigned char)text[1]) ? length : 0;
}

size_t utf8_cut(const char *text, size_t most)
{
    size_t cut = most;
    while (cut && most - cut < LONGEST - 1 && goes_on(text[cut]))
        cut--;
    return goes_on(text[cut]) ? most : cut; /* then it is no UTF-8 */
}
