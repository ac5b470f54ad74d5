/* Configurations for tests, through the loader that the guard itself uses. */
#ifndef NESTGUARD_FAKES_CONFIG_FILE_H
#define NESTGUARD_FAKES_CONFIG_FILE_H

#include "config/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a file with this text gives; a mistake in it fails the test. */
struct config *config_from_text(const char *text);

#endif
