/* The command line of `nestguard ctl`. */
#ifndef NESTGUARD_CTL_WORDS_H
#define NESTGUARD_CTL_WORDS_H

#include "ctl/ctl_forms.h"

/* The command line, taken apart. All texts are argv's own. */
struct ctl_words {
    const char *file;    /* -c; NULL: not given, as the next two */
    const char *control; /* --control, an address; never with `file` */
    const char *token;
    unsigned help; /* not 0: it was asked for, and nothing else counts */
    const struct ctl_form *form;
    const char *subject;             /* the key or keyspace; NULL where the form takes none */
    const char *body;                /* the file that it sends; NULL: standard input, as "-" */
    const struct ctl_option *option; /* of the form's, the one that was given; or NULL */
    const char *value;               /* the option's, if it takes one */
    double watch;                    /* seconds from one asking to the next; 0: once */
};

/* Reads words[0], "ctl", and what follows it. 0 with out->help or out->form set, or -EINVAL
 * after a complaint. */
int ctl_words_read(struct ctl_words *out, int count, char **words);

/* All forms, a line or two each, from their table. */
void ctl_print_usage(FILE *out);

/* Says what is wrong and returns `status`, so that it can stand behind a return. */
int ctl_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
