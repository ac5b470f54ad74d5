#include "filter_figures.h"

#include <math.h>
#include <stdio.h>

static const char *const names[] = {
    [INSERT] = "insert",   [BULK_INSERT] = "bulk_insert",
    [ABSENT] = "absent",   [ABSENT_BATCH] = "absent_batch",
    [PRESENT] = "present", [PRESENT_BATCH] = "present_batch",
    [REMOVE] = "remove",   [CHURN] = "churn",
    [FLOOR] = "floor",
};

static void print_number(const char *name, double number)
{
    printf(", \"%s\": ", name);
    if (isnan(number))
        printf("null");
    else
        printf("%.6g", number);
}

void filter_figures_print_json(const struct result *result)
{
    printf("{\"filter\": \"%s\", \"keys\": %zu", result->filter, result->keys);
    print_number("bits_per_key", result->bits_per_key);
    print_number("false_positive_rate", result->rate);
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        char name[32];
        snprintf(name, sizeof name, "%s_ns", names[figure]);
        print_number(name, result->ns[figure]);
    }
    printf("}\n");
    fflush(stdout);
}

void filter_figures_print_text(const struct result *result)
{
    printf("%s, %zu keys\n", result->filter, result->keys);
    printf("  %-14s %10.2f bits\n", "memory a key", result->bits_per_key);
    printf("  %-14s %10.3g\n", "false positive", result->rate);
    if (result->rate > 0)
        printf("  %-14s %10.2f bits a key\n", "over log2(1/e)",
               result->bits_per_key + log2(result->rate));
    for (enum figure figure = 0; figure < FIGURES; figure++)
        if (!isnan(result->ns[figure]))
            printf("  %-14s %10.2f ns\n", names[figure], result->ns[figure]);
    printf("  clock / counter %9.4f\n", result->wall_share);
    if (result->disagreed)
        printf("  %zu of these are of a machine too busy to agree with itself\n",
               result->disagreed);
    fflush(stdout);
}
