/* The command line of `nestguard ctl`. */
#ifndef NESTGUARD_CTL_WORDS_H
#define NESTGUARD_CTL_WORDS_H

#include "ctl/ctl_commands.h"

/* The command line, taken apart. */
struct ctl_words {
    const char *file, *control, *token;
    unsigned help;
    const struct ctl_command *command;
    const char *key;
    const struct ctl_option *option;
    const char *value;
    double watch; /* seconds from one asking to the next; 0: once */
};

/* Reads words[0], "ctl", and what follows it. 0 with out->help or out->command set, or -EINVAL
 * after a complaint. */
int ctl_words_read(struct ctl_words *out, int count, char **words);

void ctl_print_usage(FILE *out);

/* Says what is wrong and returns `status`, so that it can stand behind a return. */
int ctl_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
