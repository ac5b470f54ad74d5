/* Who runs the statements is mostly somebody else, who wants to know of each why, and which of them
 * he may leave out. */
#include "check/check_sql.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

bool check_is_sql(const struct problem *problem)
{
    static const char *const verbs[] = {"ALTER ", "CREATE ", "DROP ", "GRANT ", "REVOKE "};
    for (size_t i = 0; problem->remedy && i < sizeof verbs / sizeof *verbs; i++)
        if (strncmp(problem->remedy, verbs[i], strlen(verbs[i])) == 0)
            return true;
    return false;
}

/* A line whatever the text has in it: what came behind a line's end would be run. */
static void print_comment(const struct problem *problem, FILE *out)
{
    char *line =
        xasprintf("%s: %s: %s", problem->place, problem_level_name(problem->level), problem->text);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    fprintf(out, "-- %s\n", line);
    free(line);
}

static void print_statements(const struct problems *problems, enum problem_level level,
                             const char *head, FILE *out)
{
    bool begun = false;
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->at[i];
        if (problem->level != level || !check_is_sql(problem))
            continue;
        if (!begun)
            fprintf(out, "-- %s\n", head);
        begun = true;
        print_comment(problem, out);
        problem_print_remedy(problem, out);
    }
}

void check_sql_print(const struct problems *problems, FILE *out)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->at[i];
        if (problem->level != PROBLEM_NOTE && !check_is_sql(problem))
            problem_print(problem, out);
    }
    print_statements(problems, PROBLEM_ERROR, "needed", out);
    print_statements(problems, PROBLEM_WARNING, "advised", out);
}
