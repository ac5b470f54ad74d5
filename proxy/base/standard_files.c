/* A closed file is replaced by /dev/null opened the wrong way round: reads and writes of it fail as
 * those of a closed one would, so that nobody takes lost output for printed output.
 */
#include "base/standard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In this order open() gives the number that is missing: it is the lowest that is free. */
void standard_files_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* Of the first failure, of which the stream itself only knows that there was one. */
static int why;

int standard_output_flush(void)
{
    int status = fflush(stdout) ? -errno : 0;
    if (!why)
        why = -status;
    return status;
}

int standard_files_end(const char *program, int status)
{
    if (!standard_output_flush() && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: the output could not be written%s%s\n", program, why ? ": " : "",
            why ? strerror(why) : "");
    return status ? status : 1;
}
