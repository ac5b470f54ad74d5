/* Keys go in block by block, and are asked for block by block: hashes are made between two readings
 * of the clock, not within what is timed. A filter that does not find again what it took is an
 * error, whatever its rate: by such a one rows would be rejected.
 */
#include "cli/plan/plan_run.h"

#include "cli/terminal/progress.h"

#include <errno.h>
#include <uv.h>

enum { BLOCK = 4096 };

/* Hits that make a measured rate worth printing, and bounds for what that takes. */
enum { HITS_WANTED = 300, ASKED_MIN = 1000000, ASKED_MAX = 20000000 };

/* splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014): the
 * step is an odd number, and the finaliser a bijection, so no hash comes twice. */
void plan_hashes(uint64_t first, uint64_t *hashes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t x = (first + i) * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x2545f4914f6cdd1d);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        hashes[i] = x ^ x >> 31;
    }
}

/* Hashes come in blocks; making them is not timed. */
struct block {
    uint64_t hashes[BLOCK];
    uint64_t count;
};

static void next_block(struct block *block, uint64_t first, uint64_t end)
{
    block->count = end - first < BLOCK ? end - first : BLOCK;
    plan_hashes(first, block->hashes, block->count);
}

/* Hashes number 0 to count - 1. 0 or -ENOSPC; *ns is that of one insertion, on average. */
static int insert(struct filter *filter, const char *kind, uint64_t count, double *ns)
{
    struct block block;
    uint64_t took = 0;
    int code = 0;
    for (uint64_t at = 0; at < count && !code; at += block.count) {
        next_block(&block, at, count);
        uint64_t began = uv_hrtime();
        code = filter_insert_batch(filter, block.hashes, block.count, NULL);
        took += uv_hrtime() - began;
        progress_show(kind, at, count);
    }
    *ns = (double)took / (double)(count ? count : 1);
    return code;
}

/* Asks for hashes from `first` on; how many are possible. The block is static, for it is large. */
static uint64_t ask(const struct filter *filter, uint64_t first, uint64_t count, double *ns)
{
    static struct block block;
    static bool found[BLOCK];
    uint64_t took = 0, possible = 0;
    for (uint64_t at = first; at < first + count; at += block.count) {
        next_block(&block, at, first + count);
        uint64_t began = uv_hrtime();
        filter_contains_batch(filter, block.hashes, block.count, found);
        took += uv_hrtime() - began;
        for (uint64_t i = 0; i < block.count; i++)
            possible += found[i];
    }
    *ns = (double)took / (double)(count ? count : 1);
    return possible;
}

static uint64_t asked_for(double rate)
{
    double wanted = HITS_WANTED / rate;
    return wanted < ASKED_MIN ? ASKED_MIN : (wanted > ASKED_MAX ? ASKED_MAX : (uint64_t)wanted);
}

int plan_run(const struct filter_options *options, struct plan_run *run, const char **error)
{
    struct filter *filter;
    int code = filter_create(&filter, options, error);
    if (code)
        return code;
    uint64_t keys = options->capacity;
    code = insert(filter, filter_kind_name(options->kind), keys, &run->insert_ns);
    run->asked = asked_for(options->false_positive_rate);
    run->wrong = ask(filter, keys, run->asked, &run->absent_ns);
    uint64_t possible = ask(filter, 0, keys, &run->present_ns);
    run->stats = filter_stats(filter);
    filter_describe(filter, run->layout, sizeof run->layout);
    filter_destroy(filter);
    if (code || possible != keys) {
        *error = code ? "there was no place for a key" : "it has lost a key";
        return code ? code : -EIO;
    }
    return 0;
}
