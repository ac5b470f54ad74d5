/* The best filter by the formulas, and what becomes of the rate when its bits are kept and the
 * functions are fewer or more: there is one best number, and being off by one costs little.
 * (Broder and Mitzenmacher, "Network Applications of Bloom Filters: A Survey", 2004.)
 */
#include "cli/plan/plan_parts.h"

#include "cli/plan/plan_bloom.h"
#include "cli/plan/plan_print.h"
#include "cli/terminal/progress.h"
#include "filters/bitmap/bitmap_shape.h"

#include <stdio.h>

/* Rows behind the best one; rows at least. */
enum { FUNCTIONS_BEYOND = 2, FUNCTIONS_MIN = 8, WORD_BITS = 64 };

/* Filters are made of whole words. */
static uint64_t whole_words(double bits)
{
    return ((uint64_t)bits + WORD_BITS - 1) / WORD_BITS * WORD_BITS;
}

/* One row: theory, and a measurement with so many keys and bits. 0 or 1. */
static int print_functions(unsigned functions, uint64_t keys, uint64_t bits, bool is_best)
{
    char measured[PLAN_FIGURE];
    uint64_t wrong, asked;
    if (plan_bloom_measure(keys, bits, functions, &wrong, &asked)) {
        puts("this machine does not grant as much memory");
        return 1;
    }
    plan_measured_text(wrong, asked, measured);
    progress_end();
    printf("%5u  %9.2g  %9s%s\n", functions,
           plan_bloom_rate((double)bits / (double)keys, functions), measured,
           is_best ? "  the best for these bits" : "");
    return 0;
}

/* As many bits a key do the same with fewer keys: the rate depends on m/n and k alone. So what is
 * measured is a small filter of the same proportions. */
int plan_formulas(uint64_t keys, double rate)
{
    char count[PLAN_FIGURE], size[PLAN_FIGURE];
    uint64_t bits = bitmap_optimal_bits(keys, rate);
    unsigned best = bitmap_optimal_functions(keys, bits);
    unsigned most =
        best + FUNCTIONS_BEYOND > FUNCTIONS_MIN ? best + FUNCTIONS_BEYOND : FUNCTIONS_MIN;
    uint64_t run = keys < PLAN_BLOOM_KEYS ? keys : PLAN_BLOOM_KEYS;
    uint64_t run_bits = whole_words((double)bits * (double)run / (double)keys);
    plan_count_text(keys, count);
    plan_count_text(bits, size);
    printf("%s keys, false positives wanted: %g at most\n", count, rate);
    printf("a Bloom filter by the formulas: m = -n ln p / (ln 2)^2 = %s bits, k = m/n ln 2 = "
           "%u functions\n\n",
           size, best);
    printf("%5s  %9s  %9s\n", "k", "theory", "measured");
    for (unsigned k = 1; k <= most; k++) {
        progress_show("functions", k, most);
        if (print_functions(k, run, run_bits, k == best))
            return 1;
    }
    putchar('\n');
    return 0;
}
