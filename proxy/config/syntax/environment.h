/* `${NAME}` in a setting takes a value from the environment; `$${` stands for `${` itself. */
#ifndef NESTGUARD_ENVIRONMENT_H
#define NESTGUARD_ENVIRONMENT_H

#include "base/buffer.h"

/* Appends `text` with its variables replaced to `out`. 0, or -EINVAL with *error, a new string that
 * names the variable but no value; `out` then ends anywhere. */
int environment_expand(const char *text, struct buffer *out, char **error);

#endif
