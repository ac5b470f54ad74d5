/* Saving: temporary file, sync, rename, sync of the directory. Loading: one pass, into the filter's
 * own memory. */
#include "sources/filter_file.h"

#include "base/memory.h"
#include "filters/filter_image.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct filter_file_error *error, const char *path, int code, const char *why)
{
    snprintf(error->text, sizeof error->text, "%s: %s", path, why ? why : strerror(-code));
    return code;
}

static int write_some(void *arg, const void *bytes, size_t length)
{
    return fwrite(bytes, 1, length, arg) == length ? 0 : -errno;
}

/* A file that became shorter since it was opened ends early without an error. */
static int read_some(void *arg, void *into, size_t length)
{
    if (fread(into, 1, length, arg) == length)
        return 0;
    return ferror((FILE *)arg) ? -errno : -EBADMSG;
}

/* Takes over the descriptor. The bytes are on the disk when this returns 0, so before the file gets
 * its name: a rename may survive what the content of the file does not. */
static int write_all(int fd, struct filter *filter, const struct filter_seed *seed)
{
    FILE *file = fdopen(fd, "wb");
    if (!file) {
        close(fd);
        return -ENOMEM;
    }
    const struct filter_image_sink sink = {write_some, file};
    int code = filter_image_write(filter, seed, &sink);
    if (!code && fflush(file))
        code = -errno;
    if (!code && fsync(fileno(file)))
        code = -errno;
    if (fclose(file) && !code)
        code = -errno;
    return code;
}

/* So that the new name, too, outlives a loss of power. */
static int sync_directory(const char *path)
{
    char *copy = xstrdup(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return code;
}

/* The file that a save replaces. */
struct place {
    char *path; /* links followed */
    bool is_there;
    struct stat status; /* its own, where it is there */
};

/* A rename would put a file in the place of a device or a socket, and of a link. 0, or a negative
 * errno, and *why where its text would not say it. */
static int find_place(struct place *place, const char *path, const char **why)
{
    *place = (struct place){.path = realpath(path, NULL)};
    if (place->path && !stat(place->path, &place->status)) {
        place->is_there = true;
        if (S_ISREG(place->status.st_mode))
            return 0;
        *why = "it is there, and no regular file";
        return -EEXIST;
    }
    int code = -errno;
    free(place->path);
    place->path = xstrdup(path);
    if (code == -ENOENT && lstat(path, &place->status))
        return 0;
    *why = code == -ENOENT ? "it is a symbolic link to a file that is not there" : NULL;
    return code;
}

/* Who could read the file before can read it now, and nobody else: where the group cannot be
 * kept, another one is not given what it had. mkstemp() has made a file of the owner's alone, as a
 * new one stays. */
static int keep_rights(int fd, const struct place *place)
{
    if (!place->is_there)
        return 0;
    const struct stat *before = &place->status;
    mode_t mode = before->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    if (fchown(fd, before->st_uid, before->st_gid) && fchown(fd, (uid_t)-1, before->st_gid))
        mode &= (mode & S_IRWXO) << 3 | S_IRWXU | S_IRWXO;
    return fchmod(fd, mode) ? -errno : 0;
}

static int save_at(const struct place *place, struct filter *filter, const struct filter_seed *seed)
{
    char *temporary = xasprintf("%s.XXXXXX", place->path);
    int fd = mkstemp(temporary);
    int code = fd < 0 ? -errno : keep_rights(fd, place);
    if (code && fd >= 0)
        close(fd);
    if (!code)
        code = write_all(fd, filter, seed);
    if (!code && rename(temporary, place->path))
        code = -errno;
    if (code && fd >= 0)
        unlink(temporary);
    free(temporary);
    return code ? code : sync_directory(place->path);
}

int filter_file_save(const char *path, struct filter *filter, const struct filter_seed *seed,
                     struct filter_file_error *error)
{
    struct place place;
    const char *why = NULL;
    int code = find_place(&place, path, &why);
    if (!code)
        code = save_at(&place, filter, seed);
    free(place.path);
    return code ? refuse(error, path, code, why) : 0;
}

/* How long the file is goes along: no number in a damaged header can ask for more memory than a
 * file of that length may need. */
int filter_file_load(const char *path, size_t max_bytes, struct filter **out,
                     struct filter_seed *seed, struct filter_file_error *error)
{
    struct stat status;
    const char *why = NULL;
    *out = NULL;
    FILE *file = fopen(path, "rbe");
    if (!file)
        return refuse(error, path, -errno, NULL);
    int code = fstat(fileno(file), &status) ? -errno : 0;
    if (!code && !S_ISREG(status.st_mode)) {
        code = -EINVAL;
        why = "it is no regular file";
    }
    if (!code) {
        const struct filter_image_source source = {read_some, file, (uint64_t)status.st_size,
                                                   max_bytes};
        code = filter_image_read(out, seed, &source, &why);
    }
    fclose(file);
    return code ? refuse(error, path, code, why) : 0;
}
