/* The one beside comes first: a program that is tried out must not talk through an installed one.
 */
#include "cli/ctl_program.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "nestguard-ctl"

/* Returns only when that is not possible: nothing lies there, or our own path is not known. */
static void run_beside(char **argv)
{
    char self[PATH_MAX], path[PATH_MAX + sizeof PROGRAM + 1];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return;
    self[length] = '\0';
    snprintf(path, sizeof path, "%s/%s", dirname(self), PROGRAM);
    execv(path, argv);
}

int ctl_program_run(int argc, char **argv)
{
    char program[] = PROGRAM;
    (void)argc;
    argv[0] = program;
    run_beside(argv);
    execvp(PROGRAM, argv);
    fprintf(stderr,
            "nestguard ctl: " PROGRAM
            " cannot be run (%s): it is a program of its own, and belongs "
            "beside nestguard or on PATH (Debian: the package " PROGRAM ")\n",
            strerror(errno));
    return 1;
}
