/* False-positive rates of Bloom filters by m/n and k, as Fan, Cao, Almeida and Broder print them in
 * "Summary Cache" (2000), each beside its measurement. */
#include "cli/plan.h"

#include "cli/plan_run.h"
#include "cli/progress.h"
#include "filters/bloom/bloom.h"

#include <math.h>
#include <stdio.h>

enum { BITS_MIN = 2, BITS_MAX = 32, HASHES_MAX = 8, KEYS = 20000, BLOCK = 1000 };

/* Absent keys to ask for: more where fewer are let pass. */
enum { PROBES_MIN = 200000, PROBES_MAX = 1000000, HITS_WANTED = 60 };

/* (1 - e^(-k n/m))^k */
static double theory(unsigned bits, unsigned hashes)
{
    return pow(-expm1(-(double)hashes / bits), hashes);
}

static uint64_t probes_for(double rate)
{
    double wanted = HITS_WANTED / rate / BLOCK;
    return wanted * BLOCK < PROBES_MIN   ? PROBES_MIN
           : wanted * BLOCK > PROBES_MAX ? PROBES_MAX
                                         : (uint64_t)wanted * BLOCK;
}

static int measure(unsigned bits, unsigned hashes, double *rate)
{
    uint64_t block[BLOCK];
    struct filter *filter;
    const char *error;
    uint64_t hits = 0, probes = probes_for(theory(bits, hashes));
    int code = bloom_create_as(&filter, KEYS, (uint64_t)bits * KEYS, hashes, &error);
    if (code)
        return code;
    for (uint64_t at = 0; at < KEYS; at += BLOCK) {
        plan_hashes(at, block, BLOCK);
        (void)filter_insert_batch(filter, block, BLOCK, NULL); /* it was made for as many */
    }
    for (uint64_t at = KEYS; at < KEYS + probes; at += BLOCK) {
        plan_hashes(at, block, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            hits += filter_contains(filter, block[i]);
    }
    filter_destroy(filter);
    *rate = (double)hits / (double)probes;
    return 0;
}

static int print_row(unsigned bits)
{
    double rates[HASHES_MAX];
    for (unsigned k = 1; k <= HASHES_MAX; k++) {
        progress_show("measuring", (bits - BITS_MIN) * HASHES_MAX + k,
                      (BITS_MAX - BITS_MIN + 1) * HASHES_MAX);
        int code = measure(bits, k, &rates[k - 1]);
        if (code)
            return code;
    }
    progress_end();
    printf("%4u  %-8s", bits, "theory");
    for (unsigned k = 1; k <= HASHES_MAX; k++)
        printf("  %8.3g", theory(bits, k));
    printf("\n%4s  %-8s", "", "measured");
    for (unsigned k = 1; k <= HASHES_MAX; k++)
        printf("  %8.3g", rates[k - 1]);
    putchar('\n');
    return 0;
}

int plan_print_table(void)
{
    int code = 0;
    printf("False positives of a Bloom filter of m bits and n keys with k hashes,\n"
           "measured with %d keys and %d to %d others\n\n m/n          ",
           KEYS, PROBES_MIN, PROBES_MAX);
    for (unsigned k = 1; k <= HASHES_MAX; k++)
        printf("      k=%u ", k);
    putchar('\n');
    for (unsigned bits = BITS_MIN; bits <= BITS_MAX && !code; bits++)
        code = print_row(bits);
    return code;
}
