#include "base/unnamed_file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int unnamed_file_create(void)
{
    const char *directory = getenv("TMPDIR");
    char *name = xasprintf("%s/nestguard-XXXXXX", directory && *directory ? directory : "/tmp");
    int fd = mkostemp(name, O_CLOEXEC);
    int status = fd < 0 ? -errno : fd;
    if (fd >= 0)
        unlink(name);
    free(name);
    return status;
}
