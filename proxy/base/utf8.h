/* UTF-8 in texts that may be any bytes: keys, names, what servers say. */
#ifndef NESTGUARD_UTF8_H
#define NESTGUARD_UTF8_H

#include <stddef.h>

/* How many bytes the character takes that `text` begins with, of whose bytes `left` are there, one
 * at least; 0: that is none (Unicode 15.0, table 3-7). */
size_t utf8_character(const char *text, size_t left);

/* Where to cut a text off that has more than `most` bytes: not within a character. */
size_t utf8_cut(const char *text, size_t most);

#endif
