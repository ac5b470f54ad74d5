/* A filter as bytes, to be kept and read again:
 *
 *   header     magic, version, kind, seed, options, stages, the content's length, their checksum
 *   content    the filter's parts (filter_kind.h), in the byte order of the machine
 *   checksum   of the content
 *
 * The checksums find damage; they do not keep out a forger. A forged image may answer wrongly, but
 * harms nobody's memory. The image holds the secret seed: whoever reads it can make false
 * positives.
 */
#ifndef NESTGUARD_FILTER_IMAGE_H
#define NESTGUARD_FILTER_IMAGE_H

#include "filters/filter.h"

/* Takes the next bytes of an image; 0 or a negative errno, which ends the writing. */
struct filter_image_sink {
    int (*write)(void *arg, const void *bytes, size_t length);
    void *arg;
};

/* Gives exactly the next bytes of an image; 0 or a negative errno, which ends the reading. */
struct filter_image_source {
    int (*read)(void *arg, void *into, size_t length);
    void *arg;
    uint64_t length;  /* bytes that it has in all */
    size_t max_bytes; /* that the filter may take, from then on, too; 0: no bound */
};

/* Nobody may change the filter meanwhile. `seed` is that of the hashes that are in. Returns 0 or
 * what the sink returned. */
int filter_image_write(struct filter *filter, const struct filter_seed *seed,
                       const struct filter_image_sink *sink);

/* The filter in *out, which the caller frees with filter_destroy(), and its seed. Takes little more
 * memory than the source is long. Returns 0, -EINVAL (no image, or one of another version),
 * -EBADMSG (damaged or cut off), -E2BIG (over max_bytes), -ENOMEM or what the source returned;
 * *error then says why, for a person. */
int filter_image_read(struct filter **out, struct filter_seed *seed,
                      const struct filter_image_source *source, const char **error);

#endif
