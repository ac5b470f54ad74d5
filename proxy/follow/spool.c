/* The file's writes go to the system's page cache in small pieces, so that whoever writes on an
 * event loop does not hold it up.
 *
 * What was written through stdio may fail only when it is flushed, that is at the rewinding: an
 * error there is one of writing. From then on until it is cleared a spool is only read. */
#include "follow/spool.h"

#include "base/unnamed_file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void close_file(struct spool *spool)
{
    if (spool->file)
        fclose(spool->file);
    spool->file = NULL;
}

void spool_finish(struct spool *spool)
{
    close_file(spool);
    spool->taken = 0;
    buffer_finish(&spool->buffer);
}

void spool_clear(struct spool *spool)
{
    close_file(spool);
    spool->taken = 0;
    buffer_clear(&spool->buffer);
    buffer_trim(&spool->buffer, SPOOL_MEMORY_MAX);
}

/* stdio need not say why it failed. */
static int file_error(void)
{
    return errno ? -errno : -EIO;
}

static int write_bytes(struct spool *spool, const void *bytes, size_t length)
{
    errno = 0;
    return fwrite(bytes, 1, length, spool->file) == length ? 0 : file_error();
}

static int move_to_file(struct spool *spool)
{
    struct span held = buffer_span(&spool->buffer);
    int fd = unnamed_file_create();
    if (fd < 0)
        return fd;
    spool->file = fdopen(fd, "w+");
    if (!spool->file) {
        close(fd);
        return -ENOMEM;
    }
    int status = write_bytes(spool, held.at, held.length);
    buffer_finish(&spool->buffer);
    return status;
}

int spool_append(struct spool *spool, const void *bytes, size_t length)
{
    if (!spool->file && length > SPOOL_MEMORY_MAX - buffer_length(&spool->buffer)) {
        int status = move_to_file(spool);
        if (status)
            return status;
    }
    if (spool->file)
        return write_bytes(spool, bytes, length);
    buffer_append(&spool->buffer, bytes, length);
    return 0;
}

int spool_rewind(struct spool *spool)
{
    errno = 0;
    spool->taken = 0;
    return !spool->file || fseek(spool->file, 0, SEEK_SET) == 0 ? 0 : file_error();
}

static int read_bytes(struct spool *spool, size_t length, struct span *bytes)
{
    buffer_clear(&spool->buffer);
    char *to = buffer_reserve(&spool->buffer, length);
    *bytes = (struct span){to, length};
    errno = 0;
    if (fread(to, 1, length, spool->file) == length)
        return 0;
    return ferror(spool->file) ? file_error() : -ENODATA;
}

int spool_take(struct spool *spool, size_t length, struct span *bytes)
{
    if (spool->file)
        return read_bytes(spool, length, bytes);
    if (buffer_length(&spool->buffer) - spool->taken < length)
        return -ENODATA;
    *bytes = (struct span){buffer_span(&spool->buffer).at + spool->taken, length};
    spool->taken += length;
    return 0;
}
