/* Configurations for tests, through the loader that the guard itself uses. */
#ifndef NESTGUARD_FAKES_CONFIG_FILE_H
#define NESTGUARD_FAKES_CONFIG_FILE_H

#include "config/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As config_load() of a file with this text, whose name nobody knows before. */
int config_load_text(struct config **config, const char *text, struct problems *problems);

/* What a file with this text gives; a mistake in it fails the test. */
struct config *config_from_text(const char *text);

#endif
