/* What a part under test tells the keeper, in the test's place: words in their order. */
#ifndef NESTGUARD_TEST_TELLING_BENCH_H
#define NESTGUARD_TEST_TELLING_BENCH_H

#include <stdio.h>
#include <string.h>

/* A bench begins with it, so that whoever is given the bench can be told. */
struct heard {
    char words[300]; /* "begins begun ..." */
};

static inline void hear(void *bench, const char *what)
{
    struct heard *heard = bench;
    size_t length = strlen(heard->words);
    snprintf(heard->words + length, sizeof heard->words - length, "%s%s", length ? " " : "", what);
}

/* Whatever it was. */
static inline void forget(void *bench)
{
    struct heard *heard = bench;
    heard->words[0] = '\0';
}

/* Exactly this since the last time. */
static inline void must_hear(void *bench, const char *wanted)
{
    struct heard *heard = bench;
    assert_string_equal(heard->words, wanted);
    forget(bench);
}

#endif
