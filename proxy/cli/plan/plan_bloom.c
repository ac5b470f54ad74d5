/* A measured rate is worth as much as the hits that it was counted by: of 60 the error is an eighth
 * of the rate. So questions go up as the rate goes down, within bounds of time. Few keys are put
 * into several filters instead of one, each with other hashes: so what shows is the formula, and
 * not the luck of one filter.
 */
#include "cli/plan/plan_bloom.h"

#include "cli/plan/plan_run.h"
#include "filters/bloom/bloom.h"

#include <math.h>

enum { HITS_WANTED = 60, BLOCK = 1000 }; /* BLOCK: hashes that are made at once */

/* With expm1() nothing is lost of the small difference where there are many bits a key. */
double plan_bloom_rate(double bits_a_key, unsigned functions)
{
    return pow(-expm1(-(double)functions / bits_a_key), functions);
}

/* In whole blocks. */
static uint64_t questions_for(double rate)
{
    double wanted = HITS_WANTED / rate / BLOCK;
    return wanted * BLOCK < PLAN_BLOOM_ASKED_MIN   ? PLAN_BLOOM_ASKED_MIN
           : wanted * BLOCK > PLAN_BLOOM_ASKED_MAX ? PLAN_BLOOM_ASKED_MAX
                                                   : (uint64_t)wanted * BLOCK;
}

static uint64_t block_size(uint64_t at, uint64_t end)
{
    return end - at < BLOCK ? end - at : BLOCK;
}

/* One filter of the hashes number `first` and up, and so many questions behind them: none of these
 * is in. Those that it takes for possible are added to *wrong. */
static void fill_and_ask(struct filter *filter, uint64_t first, uint64_t keys, uint64_t questions,
                         uint64_t *wrong)
{
    uint64_t block[BLOCK], end = first + keys, last = end + questions;
    for (uint64_t at = first; at < end; at += BLOCK) {
        uint64_t count = block_size(at, end);
        plan_hashes(at, block, count);
        (void)filter_insert_batch(filter, block, count, NULL); /* it was made for as many */
    }
    for (uint64_t at = end; at < last; at += BLOCK) {
        uint64_t count = block_size(at, last);
        plan_hashes(at, block, count);
        for (uint64_t i = 0; i < count; i++)
            *wrong += filter_contains(filter, block[i]);
    }
}

int plan_bloom_measure(uint64_t keys, uint64_t bits, unsigned functions, uint64_t *wrong,
                       uint64_t *asked)
{
    uint64_t questions = questions_for(plan_bloom_rate((double)bits / (double)keys, functions));
    uint64_t filters = keys < PLAN_BLOOM_KEYS ? PLAN_BLOOM_KEYS / keys : 1, first = 0;
    *wrong = 0;
    *asked = questions / filters * filters;
    for (uint64_t i = 0; i < filters; i++) {
        struct filter *filter;
        const char *error;
        int code = bloom_create_as(&filter, keys, bits, functions, &error);
        if (code)
            return code;
        fill_and_ask(filter, first, keys, questions / filters, wrong);
        first += keys + questions / filters;
        filter_destroy(filter);
    }
    return 0;
}
