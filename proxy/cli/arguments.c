#include "cli/arguments.h"

#include <errno.h>
#include <string.h>

static int refuse(struct arguments *arguments, const char *wrong, const char *why)
{
    arguments->wrong = wrong;
    arguments->why = why;
    return -EINVAL;
}

/* Whether the word is this option, and what stands behind "=" in it. */
static bool is_option(const struct argument_option *option, const char *word, const char **value)
{
    size_t length = strlen(option->name);
    if (strncmp(word, option->name, length) != 0 || (word[length] && word[length] != '='))
        return false;
    *value = word[length] ? word + length + 1 : NULL;
    return true;
}

/* Takes an option and, where it has one, its value; *left is what follows. */
static int read_option(struct arguments *arguments, char ***word, int *left)
{
    const struct argument_option *option = arguments->options;
    const char *value, *name = **word;
    while (option->name && !is_option(option, name, &value))
        option++;
    if (!option->name)
        return refuse(arguments, name, "there is no such option");
    if (!option->value && value)
        return refuse(arguments, name, "it takes no value");
    if (option->value && !value) {
        if (*left == 0)
            return refuse(arguments, name, "its value is missing");
        value = *++*word;
        --*left;
    }
    if (option->value)
        *option->value = value;
    if (option->given)
        *option->given = true;
    return 0;
}

int arguments_read(struct arguments *arguments, int count, char **words)
{
    int plain = 0;
    bool options = true;
    while (count-- > 0) {
        const char *word = *words;
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1]) {
            int code = read_option(arguments, &words, &count);
            if (code)
                return code;
        } else if (plain == arguments->most) {
            return refuse(arguments, word, "it is one word too many");
        } else {
            arguments->plain[plain++] = word;
        }
        words++;
    }
    return plain;
}
