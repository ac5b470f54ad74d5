/* The part of filter.h that is the same for every kind of filter: seeds and hashes. The rest is in
 * filter_dispatch.c. */
#include "filters/filter.h"

#include "filters/siphash.h"

#include <errno.h>
#include <sys/random.h>

/* The system may give fewer bytes than were asked for, and a signal may come before the first. */
int filter_seed_random(struct filter_seed *seed)
{
    char *at = (char *)seed;
    size_t left = sizeof *seed;
    while (left > 0) {
        ssize_t got = getrandom(at, left, 0);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0) {
            at += got;
            left -= (size_t)got;
        }
    }
    return 0;
}

uint64_t filter_hash(const struct filter_seed *seed, const void *bytes, size_t length)
{
    return siphash_1_3(seed->k0, seed->k1, bytes, length);
}
