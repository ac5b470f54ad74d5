/* How nestguard is called: one table, from which --help, the manual and the shells' completions are
 * made.
 */
#ifndef NESTGUARD_FORMS_H
#define NESTGUARD_FORMS_H

#include <stdio.h>

struct form {
    const char *word; /* "filter" */
    const char
        *arguments;   /* "build KEYS FILE [--fpr P]"; a word without capitals is a word to type */
    const char *help; /* one sentence, without a full stop */
};

/* Ends with a row without a word. */
extern const struct form forms[];

/* Prints every form of the word (NULL: of all words): a line of what is typed, and below it the
 * help, wrapped for a terminal. */
void forms_print(const char *word, FILE *out);

#endif
