/* A configuration as a file that could be read again. */
#ifndef NESTGUARD_CONFIG_YAML_H
#define NESTGUARD_CONFIG_YAML_H

#include "base/buffer.h"
#include "config/config.h"

/* Appends it: every setting that has a value, defaults and all, and the keyspaces that are not
 * retired. What is secret is left to the environment, `${NESTGUARD_PASSWORD}`: to be without it is
 * an error to whoever reads this, where no password, or a wrong one, would not be. */
void config_yaml(const struct config *config, struct buffer *out);

#endif
