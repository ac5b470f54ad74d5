/* Configurations for tests, through the loader that the guard itself uses. */
#ifndef NESTGUARD_TEST_CONFIG_TEXT_H
#define NESTGUARD_TEST_CONFIG_TEXT_H

#include "config/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a file with this text gives; a mistake in it fails the test. */
static inline struct config *config_from_text(const char *text)
{
    char path[] = "/tmp/nestguard-test-XXXXXX";
    struct problems problems = {0};
    struct config *config = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int status = config_load(&config, path, &problems);
    unlink(path);
    if (status)
        problems_print(&problems, stderr);
    assert_int_equal(status, 0);
    problems_finish(&problems);
    return config;
}

#endif
