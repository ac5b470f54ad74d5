/* The words behind a command: "KEYS FILE --fpr 0.01 --table". */
#ifndef NESTGUARD_ARGUMENTS_H
#define NESTGUARD_ARGUMENTS_H

#include <stdbool.h>

struct argument_option {
    const char *name;   /* "--fpr" */
    const char **value; /* takes the next word, or what stands behind "="; NULL: it takes none */
    bool *given;        /* NULL: nobody asks */
};

struct arguments {
    const struct argument_option *options; /* ends with a row without a name */
    const char **plain;                    /* gets the other words */
    int most;                              /* of them */
    const char *wrong, *why; /* after a failure: the word, and what is wrong with it */
};

/* Sorts the words; "-" and all behind "--" are no options. Returns how many others there are, or
 * -EINVAL with `wrong` and `why`. */
int arguments_read(struct arguments *arguments, int count, char **words);

#endif
