#include "fakes/config_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int config_load_text(struct config **config, const char *text, struct problems *problems)
{
    char path[] = "/tmp/nestguard-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int status = config_load(config, path, problems);
    unlink(path);
    return status;
}

struct config *config_from_text(const char *text)
{
    struct problems problems = {0};
    struct config *config = NULL;
    int status = config_load_text(&config, text, &problems);
    if (status)
        problems_print(&problems, stderr);
    assert_int_equal(status, 0);
    problems_finish(&problems);
    return config;
}
