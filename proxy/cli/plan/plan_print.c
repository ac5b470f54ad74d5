/* The columns' widths are counted here alone: head and lines must have the same.
 */
#include "cli/plan/plan_print.h"

#include "base/text/byte_unit.h"
#include "cli/terminal/progress.h"

#include <stdio.h>
#include <string.h>

void plan_memory_text(const struct plan_memory *memory, char text[PLAN_FIGURE])
{
    const char *unit;
    double bytes = byte_unit(memory->bytes, &unit);
    snprintf(text, PLAN_FIGURE, "%s%.1f %-3s", memory->estimated ? "~" : "", bytes, unit);
}

void plan_count_text(uint64_t count, char text[PLAN_FIGURE])
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *text++ = ',';
        *text++ = digits[i];
    }
    *text = '\0';
}

void plan_measured_text(uint64_t wrong, uint64_t asked, char text[PLAN_FIGURE])
{
    if (wrong)
        snprintf(text, PLAN_FIGURE, "%.2g", (double)wrong / (double)asked);
    else
        snprintf(text, PLAN_FIGURE, "<%.1g", 1.0 / (double)asked);
}

void plan_print_head(const char *what, const char *layout)
{
    printf("%-20s  %8s  %11s  %9s  %9s  %6s  %6s  %7s  %-7s  %s\n", what, "bits/key", "memory",
           "expected", "measured", "insert", "absent", "present", "removes", layout);
}

void plan_print_line(const struct plan_line *line)
{
    char memory[PLAN_FIGURE], measured[PLAN_FIGURE];
    plan_memory_text(&line->memory, memory);
    plan_measured_text(line->wrong, line->asked, measured);
    progress_end();
    printf("%-20s  %8.2f  %11s  %9.2g  %9s  %6.1f  %6.1f  %7.1f  %-7s  %s\n", line->name,
           line->bits_a_key, memory, line->expected, measured, line->insert_ns, line->absent_ns,
           line->present_ns, line->removes ? "yes" : "no", line->layout);
    fflush(stdout);
}
