/* The forms of `nestguard ctl`, one a word behind it: one table, from which its command line,
 * --help, the manual and the shells' completions are made.
 */
#ifndef NESTGUARD_CTL_FORMS_H
#define NESTGUARD_CTL_FORMS_H

#include "ctl/ctl_paper.h"

#include <jansson.h>
#include <stddef.h>

enum { CTL_OPTIONS = 2 }; /* of a form, at most */

struct ctl_option {
    const char *name; /* "for" of --for */
    const char
        *query; /* what it adds to the URL, before its value; NULL: how the answer is printed */
    const char *value; /* what its value is called; NULL: it takes none */
};

/* A form takes at most one of its options. */
struct ctl_form {
    const char *name, *method;
    const char *path;  /* what it takes goes behind it, and before path_end (NULL: nothing) */
    const char *takes; /* what its first word is called, "KEY"; NULL: it takes none */
    const char *path_end;
    bool sends; /* a file, which a second word names; else standard input */
    struct ctl_option options[CTL_OPTIONS]; /* the first without a name ends them */
    const char *usage, *help;               /* help: a line, or two with a newline between */
    /* Prints the answer for people, unless an option asks for JSON. `option`: the name of the one
     * that was given, or NULL. Without such a function it is JSON. */
    void (*print)(const json_t *body, const char *option, const struct ctl_paper *paper);
    bool table_on_terminal; /* elsewhere, and without --table, it is JSON that was always read */
    bool is_live;           /* `top`: asks again and again by itself */
    long answers;           /* a status that is an answer, too, though it is no success; 0: none */
    /* What a success lacks to be one, a new string, with which ctl exits as if refused; or NULL.
     * Without such a function it lacks nothing. */
    char *(*shortfall)(const json_t *body);
};

/* In the order in which they are listed. Their names are a contract with scripts. */
extern const struct ctl_form ctl_forms[];
extern const size_t ctl_form_count;

/* Whether it only asks, so that it may be asked again and again. */
bool ctl_form_can_watch(const struct ctl_form *form);

/* Where a guard is looked for when nothing else is said. */
extern const char ctl_default_address[];

#endif
