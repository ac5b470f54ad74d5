/* What is wrong with a configuration, a database or a cache: collected, so that a person sees every
 * mistake at once. */
#ifndef NESTGUARD_PROBLEM_H
#define NESTGUARD_PROBLEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum problem_level {
    PROBLEM_NOTE, /* nothing is wrong: what is good to know */
    PROBLEM_WARNING,
    PROBLEM_ERROR
};

/* "note", "warning", "error". */
const char *problem_level_name(enum problem_level level);

struct problem {
    enum problem_level level;
    char *place;       /* "nestguard.yaml:12", "table public.items" */
    char *text;        /* what is wrong and what is allowed */
    char *remedy;      /* SQL or a setting that mends it, or NULL */
    const void *about; /* what alone it concerns, as its finder knows it; NULL: the whole */
};

struct problems {
    struct problem *at;
    size_t count, errors, notes; /* of all; and how many of these are of that level */
};

/* Frees all findings; the list is empty again, as zeroed memory is. */
void problems_finish(struct problems *problems);

/* Adds a finding; place and remedy are copied, remedy may be NULL. */
void problems_add(struct problems *problems, enum problem_level level, const char *place,
                  const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void problems_add_list(struct problems *problems, enum problem_level level, const char *place,
                       const char *remedy, const char *format, va_list list);

/* Adds copies of them; what they are about may be gone by then, and is left out. */
void problems_append(struct problems *problems, const struct problems *more);

/* "PLACE: error: TEXT" and, indented, the remedy; and that alone, if there is one. */
void problem_print(const struct problem *problem, FILE *out);
void problem_print_remedy(const struct problem *problem, FILE *out);

/* One finding a paragraph. Without notes: those are for who has asked what there is to say. */
void problems_print(const struct problems *problems, FILE *out);
void problems_print_notes(const struct problems *problems, FILE *out);

#endif
