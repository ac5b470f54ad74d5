/* A keyspace's keys out of a file: a cache key a line, or what `nestguard filter build` made of
 * such lines. A file is believed as a whole or not at all.
 */
#ifndef NESTGUARD_KEY_FILE_H
#define NESTGUARD_KEY_FILE_H

#include "config/syntax/key_template.h"
#include "filters/filter.h"

#include <stdatomic.h>
#include <time.h>

/* What tells one state of a file from another; zeroed: there is none. */
struct key_file_state {
    uint64_t device, inode, size;
    struct timespec written, changed; /* its content; its name, rights or content */
};

/* 0, or a negative errno. A file that is no regular one is -EINVAL. */
int key_file_look(const char *path, struct key_file_state *state);
bool key_file_is_same(const struct key_file_state *one, const struct key_file_state *other);

struct key_file_options {
    const char *path;
    const struct key_template *key; /* that each line must be a key of */
    struct filter_options filter;   /* but for the capacity; of an image its max_bytes only */
    const atomic_bool *stop;        /* looked at while reading; it ends with -ECANCELED */
};

struct key_file_error {
    char text[512];
};

/* The keys in *out, which the caller frees with filter_destroy(), and their seed. `state` is what
 * the file was seen as: -EAGAIN when it is another by the end. -EINVAL: it is no such file, or a
 * part of one; -E2BIG: the filter would be larger than `options` allow. Else another negative
 * errno. *error says why, and names no file. */
int key_file_read(struct filter **out, struct filter_seed *seed, const struct key_file_state *state,
                  const struct key_file_options *options, struct key_file_error *error);

/* The same of lines that nobody else can change, in the file that is open as `fd`, which stays so;
 * their filter is made with the seed that is given. *lines: how many of them there are; the
 * filter's keys are fewer by those that are there twice, or seem so to it. -E2BIG: the filter would
 * be larger than `options` allow. */
int key_file_read_lines(struct filter **out, int fd, const struct filter_seed *seed,
                        const struct key_file_options *options, uint64_t *lines,
                        struct key_file_error *error);

#endif
