/* nestguard ctl [what stands before] COMMAND [what follows]
 *                 read_globals()           read_arguments(), by the form's row in ctl_forms.c
 *
 * Whatever is wrong is said here, with what would be right, before anybody is asked.
 */
#include "ctl/ctl_words.h"

#include "base/text/arguments.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds: a tenth to a day. */
#define WATCH_LEAST 0.1
#define WATCH_MOST 86400.0

int ctl_complain(int status, const char *format, ...)
{
    va_list arguments;

    fputs("nestguard ctl: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return status;
}

/* A help text of two lines has its second below the first. */
void ctl_print_usage(FILE *out)
{
    fputs("usage: nestguard ctl [-c FILE | --control ADDRESS] [--token TOKEN] COMMAND [ARGS]\n\n",
          out);
    for (size_t i = 0; i < ctl_form_count; i++) {
        const char *help = ctl_forms[i].help;
        size_t line = strcspn(help, "\n");

        fprintf(out, "  %-38s %.*s\n", ctl_forms[i].usage, (int)line, help);
        if (help[line])
            fprintf(out, "  %-38s %s\n", "", help + line + 1);
    }
    fprintf(
        out,
        "\nADDRESS is HOST:PORT, [IPV6]:PORT or unix:/path (default: %s). With -c, address and\n"
        "token come from the guard's configuration. The token may also stand in the\n"
        "environment as NESTGUARD_TOKEN, where other users cannot see it. DURATION is a number\n"
        "with a unit: 30s, 10m, 2h. A key that begins with '-' goes after '--'. With --watch\n"
        "SECONDS what only asks does so again and again.\n"
        "Exit status: 0 done, 1 the guard refused or could not, 2 wrong usage.\n",
        ctl_default_address);
}

/* What stands before the form. Returns where that is, or -EINVAL after a complaint. */
static int read_globals(struct ctl_words *out, int count, char **words)
{
    const struct argument_option options[] = {{"config", &out->file, NULL, 'c'},
                                              {"control", &out->control, NULL, 0},
                                              {"token", &out->token, NULL, 0},
                                              {"help", NULL, &out->help, 'h'},
                                              {0}};
    struct arguments arguments = {.options = options, .command_follows = true};
    int at = arguments_read(&arguments, count, words);

    if (out->help)
        return count;
    if (at < 0 && arguments.fault == ARGUMENT_UNKNOWN)
        return ctl_complain(-EINVAL,
                            "unknown option %s; before the command there may be -c FILE, "
                            "--control ADDRESS and --token TOKEN",
                            arguments.wrong);
    if (at < 0)
        return ctl_complain(-EINVAL, "%s needs a value", arguments.wrong);
    for (const struct argument_option *option = options; option->name; option++)
        if (option->value && *option->value && !**option->value)
            return ctl_complain(-EINVAL, "--%s needs a value", option->name);
    if (out->file && out->control)
        return ctl_complain(-EINVAL, "-c and --control exclude each other");
    return at;
}

/* Always -EINVAL, after words that name the option or the usage. */
static int complain_of(const struct arguments *arguments, const struct ctl_form *form)
{
    const char *wrong = arguments->wrong;

    switch (arguments->fault) {
    case ARGUMENT_BARE:
        return ctl_complain(-EINVAL, "%s needs a %s", wrong,
                            arguments->option - arguments->options < CTL_OPTIONS &&
                                    form->options[arguments->option - arguments->options].value
                                ? form->options[arguments->option - arguments->options].value
                                : "number of SECONDS");
    case ARGUMENT_WITH_VALUE:
        return ctl_complain(-EINVAL, "--%s takes no value", arguments->option->name);
    case ARGUMENT_ONE_TOO_MANY:
        return ctl_complain(-EINVAL, "extra word \"%s\"; usage: nestguard ctl %s", wrong,
                            form->usage);
    case ARGUMENT_UNKNOWN:
        break;
    }
    return ctl_complain(-EINVAL, "unknown option %s; usage: nestguard ctl %s", wrong, form->usage);
}

/* What was said of the form's options: one of them, once, at the most. */
static int take_option(struct ctl_words *out, const unsigned *given, const char *const *values)
{
    const struct ctl_form *form = out->form;

    for (size_t i = 0; i < CTL_OPTIONS; i++) {
        if (!given[i])
            continue;
        if (given[i] > 1 || out->option)
            return ctl_complain(-EINVAL, "usage: nestguard ctl %s", form->usage);
        out->option = &form->options[i];
        out->value = values[i];
        if (out->option->value && !*out->value)
            return ctl_complain(-EINVAL, "--%s needs a %s", out->option->name, out->option->value);
    }
    return 0;
}

/* Seconds, with fractions; any less would keep the guard's keeper busy with answers. */
static int take_watch(struct ctl_words *out, const char *watch)
{
    char *end = NULL;
    if (!watch)
        return 0;
    out->watch = strtod(watch, &end);
    if (end != watch && !*end && out->watch >= WATCH_LEAST && out->watch <= WATCH_MOST)
        return 0;
    return ctl_complain(-EINVAL, "--watch needs seconds, 0.1 to 86400; \"%s\" is not that", watch);
}

/* An empty word is a shell variable that was never set, more likely than a key. What is sent is not
 * typed, unless somebody says so. */
static int check_plain(const struct ctl_words *words)
{
    const struct ctl_form *form = words->form;

    if (form->takes && !(words->subject && *words->subject))
        return ctl_complain(-EINVAL, "%s is %s; usage: nestguard ctl %s", form->takes,
                            words->subject ? "empty" : "missing", form->usage);
    if (form->sends && !words->body && isatty(STDIN_FILENO))
        return ctl_complain(-EINVAL,
                            "FILE is missing, and standard input is a terminal; usage: nestguard "
                            "ctl %s",
                            form->usage);
    return 0;
}

/* Reads words[0], the form's name, and what follows it. 0, or -EINVAL after a complaint. */
static int read_arguments(struct ctl_words *out, int count, char **words)
{
    const struct ctl_form *form = out->form;
    const char *values[CTL_OPTIONS] = {0};
    const char *watch = NULL;
    unsigned given[CTL_OPTIONS] = {0};
    struct argument_option options[CTL_OPTIONS + 3] = {0};
    const char *plain[2] = {NULL, NULL};
    struct arguments arguments = {
        .options = options, .plain = plain, .most = (form->takes != NULL) + form->sends};
    size_t own = 0;

    for (; own < CTL_OPTIONS && form->options[own].name; own++)
        options[own] = (struct argument_option){form->options[own].name,
                                                form->options[own].value ? &values[own] : NULL,
                                                &given[own], 0};
    options[own++] = (struct argument_option){"help", NULL, &out->help, 'h'};
    if (ctl_form_can_watch(form))
        options[own] = (struct argument_option){"watch", &watch, NULL, 0};
    int code = arguments_read(&arguments, count, words);
    if (out->help)
        return 0;
    if (code < 0)
        return complain_of(&arguments, form);
    out->subject = plain[0];
    out->body = plain[1];
    code = take_option(out, given, values);
    if (!code)
        code = take_watch(out, watch);
    return code ? code : check_plain(out);
}

/* 0, or -EINVAL after a list of all there are. */
static int read_form(struct ctl_words *out, const char *name)
{
    for (size_t i = 0; i < ctl_form_count; i++) {
        if (strcmp(ctl_forms[i].name, name) == 0) {
            out->form = &ctl_forms[i];
            return 0;
        }
    }
    fprintf(stderr, "nestguard ctl: unknown command %s; there are", name);
    for (size_t i = 0; i < ctl_form_count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", ctl_forms[i].name);
    fputc('\n', stderr);
    return -EINVAL;
}

int ctl_words_read(struct ctl_words *out, int count, char **words)
{
    int at = read_globals(out, count, words);

    if (at < 0 || out->help)
        return at < 0 ? at : 0;
    if (at == count) {
        ctl_print_usage(stderr);
        return -EINVAL;
    }
    if (read_form(out, words[at]) < 0)
        return -EINVAL;
    return read_arguments(out, count - at, words + at);
}
