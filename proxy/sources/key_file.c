/* A file of lines is read twice, so that its filter has the right size and no list of hashes is
 * kept:
 *
 *   look ─▶ lines: each a key? how many? ─▶ a filter ─▶ lines: hash, insert ─▶ look: the same?
 *
 * A file that is being written may end anywhere: in the middle of a line, which shows, or behind
 * one, which does not. So the last line must be ended, and whoever reads waits until nothing is
 * written any more.
 */
#include "sources/key_file.h"

#include "sources/filter_file.h"
#include "sources/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Places for keys that are written while these are in force: one for so many. */
enum { SPARE_SHARE = 8, SPARE_LEAST = 1000 };

/* How every file of `nestguard filter build` begins (filter_image.c). */
static const char image_magic[8] = {'N', 'G', 'F', 'I', 'L', 'T', 'E', 'R'};

int key_file_look(const char *path, struct key_file_state *state)
{
    struct stat status;
    *state = (struct key_file_state){0};
    if (stat(path, &status))
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EINVAL;
    *state = (struct key_file_state){.device = (uint64_t)status.st_dev,
                                     .inode = (uint64_t)status.st_ino,
                                     .size = (uint64_t)status.st_size,
                                     .written = status.st_mtim,
                                     .changed = status.st_ctim};
    return 0;
}

static bool is_same_time(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

bool key_file_is_same(const struct key_file_state *one, const struct key_file_state *other)
{
    return one->device == other->device && one->inode == other->inode && one->size == other->size &&
           is_same_time(one->written, other->written) && is_same_time(one->changed, other->changed);
}

__attribute__((format(printf, 3, 4))) static int refuse(struct key_file_error *error, int status,
                                                        const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return status;
}

/* ---- lines ---- */

struct reading {
    const struct key_file_options *options;
    struct key_file_error *error;
    uint64_t lines;
    struct filter *filter;
    const struct filter_seed *seed;
};

/* One that no lookup could ever ask for has another meaning than was thought: with a carriage
 * return at its end, or only the part that differs, as 42 for item:42. */
static int count_line(void *arg, struct span line)
{
    struct reading *reading = arg;
    reading->lines++;
    if (atomic_load_explicit(reading->options->stop, memory_order_relaxed))
        return -ECANCELED;
    if (line.length && line.at[line.length - 1] == '\r')
        return refuse(reading->error, -EINVAL, "line %llu ends with a carriage return",
                      (unsigned long long)reading->lines);
    if (!key_template_matches(reading->options->key, line))
        return refuse(reading->error, -EINVAL, "line %llu is no key like %s",
                      (unsigned long long)reading->lines, reading->options->key->text);
    return 0;
}

static int insert_line(void *arg, struct span line)
{
    struct reading *reading = arg;
    uint64_t hash = filter_hash(reading->seed, line.at, line.length);
    if (atomic_load_explicit(reading->options->stop, memory_order_relaxed))
        return -ECANCELED;
    if (filter_contains(reading->filter, hash) || filter_insert(reading->filter, hash) == 0)
        return 0;
    return refuse(reading->error, -ENOSPC, "its filter has no place for all of them");
}

static int read_lines(int fd, struct reading *reading, int (*on_line)(void *arg, struct span line))
{
    const struct lines_reader reader = {.on_line = on_line, .arg = reading};
    if (lseek(fd, 0, SEEK_SET) < 0)
        return refuse(reading->error, -errno, "%s", strerror(errno));
    reading->error->text[0] = '\0';
    int status = lines_read(fd, &reader);
    if (status && !reading->error->text[0])
        refuse(reading->error, status, "%s", strerror(-status));
    return status;
}

/* Of a file that holds anything. */
static bool ends_its_last_line(int fd, uint64_t size)
{
    char last = '\0';
    return !size || (pread(fd, &last, 1, (off_t)size - 1) == 1 && last == '\n');
}

static int read_keys(int fd, struct filter **out, struct reading *reading)
{
    struct stat file;
    struct filter_options options = reading->options->filter;
    const char *why = NULL;
    int status = fstat(fd, &file) ? -errno : 0;
    if (status)
        return refuse(reading->error, status, "%s", strerror(-status));
    if (!ends_its_last_line(fd, (uint64_t)file.st_size))
        return refuse(reading->error, -EINVAL, "its last line does not end: is it cut short?");
    status = read_lines(fd, reading, count_line);
    if (status)
        return status;
    options.capacity = reading->lines + reading->lines / SPARE_SHARE + SPARE_LEAST;
    status = filter_create(out, &options, &why);
    if (status)
        return refuse(reading->error, status, "%s", why ? why : strerror(-status));
    reading->filter = *out;
    return read_lines(fd, reading, insert_line);
}

/* ---- either kind ---- */

static bool is_image(int fd)
{
    char magic[sizeof image_magic];
    return pread(fd, magic, sizeof magic, 0) == sizeof magic &&
           memcmp(magic, image_magic, sizeof magic) == 0;
}

static int read_image(struct filter **out, struct filter_seed *seed,
                      const struct key_file_options *options, struct key_file_error *error)
{
    const char *path = options->path;
    struct filter_file_error its;
    int status = filter_file_load(path, options->filter.max_bytes, out, seed, &its);
    if (!status)
        return 0;
    size_t named = strlen(path) + 2;
    return refuse(error, status, "%s", strlen(its.text) > named ? its.text + named : its.text);
}

static int read_open(int fd, struct filter **out, struct filter_seed *seed,
                     const struct key_file_options *options, struct key_file_error *error)
{
    struct reading reading = {.options = options, .error = error, .seed = seed};
    if (is_image(fd))
        return read_image(out, seed, options, error);
    int status = filter_seed_random(seed);
    if (status)
        return refuse(error, status, "%s", strerror(-status));
    return read_keys(fd, out, &reading);
}

int key_file_read(struct filter **out, struct filter_seed *seed, const struct key_file_state *state,
                  const struct key_file_options *options, struct key_file_error *error)
{
    struct key_file_state now;
    *out = NULL;
    int fd = open(options->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse(error, -errno, "%s", strerror(errno));
    int status = read_open(fd, out, seed, options, error);
    close(fd);
    if (key_file_look(options->path, &now) || !key_file_is_same(state, &now))
        status = refuse(error, -EAGAIN, "it changed while it was read");
    if (!status)
        return 0;
    filter_destroy(*out);
    *out = NULL;
    return status;
}

int key_file_read_lines(struct filter **out, int fd, const struct filter_seed *seed,
                        const struct key_file_options *options, uint64_t *lines,
                        struct key_file_error *error)
{
    struct reading reading = {.options = options, .error = error, .seed = seed};
    *out = NULL;
    int status = read_keys(fd, out, &reading);
    *lines = reading.lines;
    if (!status)
        return 0;
    filter_destroy(*out);
    *out = NULL;
    return status;
}
