/* False-positive rates of Bloom filters by m/n and k, as Fan, Cao, Almeida and Broder print them in
 * "Summary Cache" (2000), each beside its measurement. */
#include "cli/plan/plan_parts.h"

#include "cli/plan/plan_bloom.h"
#include "cli/terminal/progress.h"

#include <stdio.h>

enum { BITS_MIN = 2, BITS_MAX = 32, HASHES_MAX = 8 };

/* Two lines, when all of the row is measured. 0 or a negative errno: then neither. */
static int print_row(unsigned bits)
{
    double rates[HASHES_MAX];
    for (unsigned k = 1; k <= HASHES_MAX; k++) {
        uint64_t wrong, asked;
        progress_show("measuring", (bits - BITS_MIN) * HASHES_MAX + k,
                      (BITS_MAX - BITS_MIN + 1) * HASHES_MAX);
        int code = plan_bloom_measure(PLAN_BLOOM_KEYS, (uint64_t)bits * PLAN_BLOOM_KEYS, k, &wrong,
                                      &asked);
        if (code)
            return code;
        rates[k - 1] = (double)wrong / (double)asked;
    }
    progress_end();
    printf("%4u  %-8s", bits, "theory");
    for (unsigned k = 1; k <= HASHES_MAX; k++)
        printf("  %8.3g", plan_bloom_rate(bits, k));
    printf("\n%4s  %-8s", "", "measured");
    for (unsigned k = 1; k <= HASHES_MAX; k++)
        printf("  %8.3g", rates[k - 1]);
    putchar('\n');
    return 0;
}

int plan_table(void)
{
    int code = 0;
    printf("False positives of a Bloom filter of m bits and n keys with k hashes,\n"
           "measured with %d keys and %d to %d others\n\n m/n          ",
           PLAN_BLOOM_KEYS, PLAN_BLOOM_ASKED_MIN, PLAN_BLOOM_ASKED_MAX);
    for (unsigned k = 1; k <= HASHES_MAX; k++)
        printf("      k=%u ", k);
    putchar('\n');
    for (unsigned bits = BITS_MIN; bits <= BITS_MAX && !code; bits++)
        code = print_row(bits);
    return code ? 1 : 0;
}
