/* Findings are few and small: they are copied, so that nobody has to keep what they are about. */
#include "base/problem.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>

/* Printed twice: once for the length, once in place. The list can be gone through only once, hence
 * the copy. */
static char *text_of(const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    size_t size = length < 0 ? 1 : (size_t)length + 1;
    char *text = xcalloc(size, 1);
    vsnprintf(text, size, format, again);
    va_end(again);
    return text;
}

void problems_add_list(struct problems *problems, enum problem_level level, const char *place,
                       const char *remedy, const char *format, va_list list)
{
    problems->at = xrealloc(problems->at, (problems->count + 1) * sizeof *problems->at);
    problems->at[problems->count++] = (struct problem){
        .level = level,
        .place = xstrdup(place),
        .text = text_of(format, list),
        .remedy = remedy ? xstrdup(remedy) : NULL,
    };
    problems->errors += level == PROBLEM_ERROR;
    problems->notes += level == PROBLEM_NOTE;
}

void problems_add(struct problems *problems, enum problem_level level, const char *place,
                  const char *remedy, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    problems_add_list(problems, level, place, remedy, format, list);
    va_end(list);
}

void problems_append(struct problems *problems, const struct problems *more)
{
    for (size_t i = 0; i < more->count; i++)
        problems_add(problems, more->at[i].level, more->at[i].place, more->at[i].remedy, "%s",
                     more->at[i].text);
}

void problems_finish(struct problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        free(problems->at[i].place);
        free(problems->at[i].text);
        free(problems->at[i].remedy);
    }
    free(problems->at);
    *problems = (struct problems){0};
}

/* A remedy may be several lines of SQL: all are indented alike, so that they can be copied. */
void problem_print_remedy(const struct problem *problem, FILE *out)
{
    if (!problem->remedy)
        return;
    fputs("    ", out);
    for (const char *c = problem->remedy; *c; c++) {
        fputc(*c, out);
        if (*c == '\n' && c[1])
            fputs("    ", out);
    }
    fputc('\n', out);
}

const char *problem_level_name(enum problem_level level)
{
    static const char *const levels[] = {
        [PROBLEM_NOTE] = "note", [PROBLEM_WARNING] = "warning", [PROBLEM_ERROR] = "error"};
    return levels[level];
}

void problem_print(const struct problem *problem, FILE *out)
{
    fprintf(out, "%s: %s: %s\n", problem->place, problem_level_name(problem->level), problem->text);
    problem_print_remedy(problem, out);
}

/* Notes alone, or all but the notes; in the order in which they were found. */
static void print(const struct problems *problems, bool notes, FILE *out)
{
    for (size_t i = 0; i < problems->count; i++)
        if ((problems->at[i].level == PROBLEM_NOTE) == notes)
            problem_print(&problems->at[i], out);
}

void problems_print(const struct problems *problems, FILE *out)
{
    print(problems, false, out);
}

void problems_print_notes(const struct problems *problems, FILE *out)
{
    print(problems, true, out);
}
