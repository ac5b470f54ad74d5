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

/* A rename would put a file in the place of a device or a socket. */
static bool may_be_replaced(const char *path)
{
    struct stat status;
    return stat(path, &status) || S_ISREG(status.st_mode);
}

/* mkstemp() makes a file that its owner alone may read, and a rename keeps it so. */
int filter_file_save(const char *path, struct filter *filter, const struct filter_seed *seed,
                     struct filter_file_error *error)
{
    if (!may_be_replaced(path))
        return refuse(error, path, -EEXIST, "it is there, and no regular file");
    char *temporary = xasprintf("%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    int code = fd < 0 ? -errno : write_all(fd, filter, seed);
    if (!code && rename(temporary, path))
        code = -errno;
    if (code && fd >= 0)
        unlink(temporary);
    free(temporary);
    if (!code)
        code = sync_directory(path);
    return code ? refuse(error, path, code, NULL) : 0;
}

/* How long the file is goes along: no number in a damaged header can ask for more memory than a
 * file of that length may need. */
int filter_file_load(const char *path, struct filter **out, struct filter_seed *seed,
                     struct filter_file_error *error)
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
        const struct filter_image_source source = {read_some, file, (uint64_t)status.st_size};
        code = filter_image_read(out, seed, &source, &why);
    }
    fclose(file);
    return code ? refuse(error, path, code, why) : 0;
}
