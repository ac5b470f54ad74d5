/* Configuration files of any bytes. What is accepted follows itself without a change. */
#include "config/config.h"
#include "config/config_reload.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

/* Beyond that it is the library's time, not ours. */
enum { MOST_BYTES = 64 * 1024 };

static struct config *load(const char *path)
{
    struct config *config = NULL;
    struct problems problems = {0};
    int status = config_load(&config, path, &problems);
    CHECK((status == 0) == (config != NULL));
    CHECK((status == 0) == (problems.errors == 0));
    for (size_t i = 0; i < problems.count; i++)
        CHECK(problems.at[i].place && problems.at[i].text && *problems.at[i].text);
    problems_finish(&problems);
    return config;
}

static void check_follows_itself(struct config *running, const char *path)
{
    struct setting_changes changes = {0};
    struct config *wanted = load(path);
    CHECK(wanted);
    CHECK(config_follow(wanted, running, &changes) == 0);
    CHECK(changes.count == 0);
    setting_changes_finish(&changes);
    config_destroy(wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("nestguard.yaml", MFD_CLOEXEC);
        CHECK(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        setenv("NAME", "value", 1);
    }
    if (size > MOST_BYTES)
        return 0;
    CHECK(ftruncate(file, 0) == 0 && pwrite(file, bytes, size, 0) == (ssize_t)size);
    struct config *config = load(path);
    if (config)
        check_follows_itself(config, path);
    config_destroy(config);
    return 0;
}
