/* Filters in files (filters/filter_image.h has the format). */
#ifndef NESTGUARD_FILTER_FILE_H
#define NESTGUARD_FILTER_FILE_H

#include "filters/filter.h"

/* What went wrong, for a person; begins with the file's name. */
struct filter_file_error {
    char text[512];
};

/* Writes it under a temporary name beside the file, and renames it when it is on the disk: the file
 * is the old one or the whole new one, whatever happens. A symbolic link stays, the file that it
 * names is replaced. Whoever might read the old one may read the new one; of one that was not there
 * only the owner, as it holds the seed. Nobody may change the filter meanwhile. 0, or a negative
 * errno and *error; -EEXIST when a device, a socket or a folder has the name, -ENOENT also of a
 * link to nothing. If the very last step fails, the new file is there, but its name may not outlive
 * a loss of power. */
int filter_file_save(const char *path, struct filter *filter, const struct filter_seed *seed,
                     struct filter_file_error *error);

/* The filter in *out, which the caller frees with filter_destroy(), and its seed; it may take
 * max_bytes (0: no bound). 0, or a negative errno and *error; -EINVAL and -EBADMSG mean that it is
 * no such file or a damaged one, -E2BIG that it is larger. */
int filter_file_load(const char *path, size_t max_bytes, struct filter **out,
                     struct filter_seed *seed, struct filter_file_error *error);

#endif
