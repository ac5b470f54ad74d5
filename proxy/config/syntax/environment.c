/* Runs on the text of single scalars, after YAML has been parsed: a value from the environment can
 * hold anything and still is one value. What it holds is not expanded again.
 */
#include "config/syntax/environment.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

/* Letters, digits and _, not beginning with a digit. */
static size_t name_length(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return *text >= '0' && *text <= '9' ? 0 : strspn(text, letters);
}

/* Replaces the variable whose name begins here; *text moves on behind its brace. */
static int replace(const char **text, struct buffer *out, char **error)
{
    size_t length = name_length(*text);
    if (length == 0 || (*text)[length] != '}') {
        *error = xstrdup("${ begins the name of an environment variable, as in ${NAME} (letters, "
                         "digits and _); ${ itself is written $${");
        return -EINVAL;
    }
    char *name = xstrndup(*text, length);
    const char *value = getenv(name);
    if (value)
        buffer_append(out, value, strlen(value));
    else
        *error = xasprintf("the environment variable %s is not set", name);
    free(name);
    *text += length + 1;
    return value ? 0 : -EINVAL;
}

int environment_expand(const char *text, struct buffer *out, char **error)
{
    while (*text) {
        if (strncmp(text, "$${", 3) == 0) {
            buffer_append(out, "${", 2);
            text += 3;
        } else if (strncmp(text, "${", 2) == 0) {
            text += 2;
            int status = replace(&text, out, error);
            if (status)
                return status;
        } else {
            buffer_append(out, text++, 1);
        }
    }
    return 0;
}
