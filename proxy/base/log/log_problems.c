#include "base/log/log_problems.h"

#include "base/log/log.h"

void log_problems(const char *format, const struct problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->at[i];
        const char *remedy = problem->remedy;
        if (problem->level != PROBLEM_NOTE)
            log_line(problem->level == PROBLEM_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, format,
                     problem->place, problem->text, remedy ? "; what mends it: " : "",
                     remedy ? remedy : "");
    }
}
