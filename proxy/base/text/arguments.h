/* The words of a command: "build KEYS FILE --fpr 0.01 --table", as getopt_long() takes them; but an
 * option's name is never cut short, for what deletes a row is not guessed. */
#ifndef NESTGUARD_ARGUMENTS_H
#define NESTGUARD_ARGUMENTS_H

#include <stdbool.h>

enum { ARGUMENTS_OPTIONS = 8 }; /* of one command, at most */

struct argument_option {
    const char *name;   /* "fpr" for --fpr */
    const char **value; /* gets the next word, or what stands behind "="; NULL: it takes none */
    unsigned *given;    /* counts how often it was; NULL: nobody asks */
    char letter;        /* 'c' for -c; 0: it has none */
};

enum argument_fault {
    ARGUMENT_UNKNOWN,     /* there is no such option */
    ARGUMENT_BARE,        /* an option without its value */
    ARGUMENT_WITH_VALUE,  /* one that takes none */
    ARGUMENT_ONE_TOO_MANY /* a plain word */
};

struct arguments {
    const struct argument_option *options; /* ends with a row without a name */
    const char **plain;                    /* gets the other words */
    int most;                              /* of them */
    bool command_follows;                  /* the first plain word ends it, and belongs to others */
    /* After a failure: the word, what is wrong with it, and whose it is if it is an option's. */
    const char *wrong, *why;
    enum argument_fault fault;
    const struct argument_option *option;
};

/* Sorts the words behind words[0], which is the command's own; "-" and all behind "--" are no
 * options. Returns how many plain ones there are, or where command_follows how many words were
 * read, words[0] among them; or -EINVAL, and what stood before the wrong word has been read. One
 * thread. */
int arguments_read(struct arguments *arguments, int count, char **words);

#endif
