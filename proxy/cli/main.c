/* The command line: its first word says who reads the others.
 *
 *   serve, check        ─▶ here: -c FILE, and little else
 *   ctl, filter, plan   ─▶ themselves, from their own word on
 *   anything else       ─▶ --help, --version, or wrong usage, whose status is 2
 */
#include "base/standard_files.h"
#include "base/text/arguments.h"
#include "check/check.h"
#include "cli/ctl_program.h"
#include "cli/filter_form.h"
#include "cli/plan/plan.h"
#include "cli/serve.h"
#include "cli/terminal/forms.h"
#include "cli/terminal/progress.h"
#include "config/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Those that need no configuration file; they get their own word and those behind it. */
static const struct {
    const char *word;
    int (*run)(int argc, char **argv);
} readers[] = {
    {"ctl", ctl_program_run},
    {"filter", filter_form_main},
    {"plan", plan_main},
};

/* On standard output it was asked for; elsewhere it follows a mistake, as the status says. */
static int usage(FILE *out)
{
    fputs("nestguard stands between an application and its Redis, and answers lookups of keys that "
          "have\nno row in PostgreSQL before they reach either.\n\n",
          out);
    forms_print(NULL, out);
    return out == stdout ? 0 : 2;
}

static int help(void)
{
    usage(stdout);
    putchar('\n');
    config_print_settings(stdout);
    return 0;
}

static bool asks_for_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static int check(const char *file, bool as_json)
{
    struct check_result result;
    progress_wait_begin("asking cache and database");
    check_run(&result, file);
    progress_wait_end();
    int status = check_print(&result, as_json);
    check_finish(&result);
    return status;
}

/* `words[0]` is the command, `serve` or `check`. The last row of the options stays empty: it ends
 * them. Returns the exit status. */
static int with_file(int count, char **words)
{
    const char *file = NULL, *command = words[0];
    unsigned asks_help = 0, as_json = 0;
    struct argument_option options[4] = {{"config", &file, NULL, 'c'},
                                         {"help", NULL, &asks_help, 'h'}};
    if (!strcmp(command, "check"))
        options[2] = (struct argument_option){"json", NULL, &as_json, 0};
    struct arguments arguments = {.options = options};
    int code = arguments_read(&arguments, count, words);
    if (asks_help)
        return usage(stdout);
    if (!code && file)
        return strcmp(command, "check") == 0 ? check(file, as_json) : serve_main(file);
    if (code)
        fprintf(stderr, "nestguard %s: %s: %s; say: nestguard %s -c FILE\n", command,
                arguments.wrong, arguments.why, command);
    else
        fprintf(stderr,
                "nestguard %s: the configuration file is missing; say: nestguard %s -c FILE\n",
                command, command);
    return 2;
}

/* Those of ctl/ctl_forms.c, which is the client's, with its libraries. Whoever forgets the word
 * before them means them all the same. */
static bool is_of_ctl(const char *word)
{
    static const char *const words[] = {"status", "top",      "attack",  "metrics", "health",
                                        "ready",  "guarding", "explain", "admit",   "delete",
                                        "push",   "rebuild",  "reload",  "config"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(word, words[i]))
            return true;
    return false;
}

static int refuse(const char *word)
{
    if (is_of_ctl(word)) {
        fprintf(stderr,
                "nestguard: \"%s\" is asked of a running guard; "
                "say: nestguard ctl %s, or nestguard ctl -c FILE %s\n",
                word, word, word);
        return 2;
    }
    if (*word)
        fprintf(stderr, "nestguard: \"%s\" is no command\n\n", word);
    return usage(stderr);
}

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "serve") || !strcmp(word, "check"))
        return with_file(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (!strcmp(word, readers[i].word))
            return readers[i].run(argc - 1, argv + 1);
    if (asks_for_help(word) || !strcmp(word, "help"))
        return help();
    if (!strcmp(word, "--version") || !strcmp(word, "version")) {
        puts("nestguard " NESTGUARD_VERSION);
        return 0;
    }
    return refuse(word);
}

int main(int argc, char **argv)
{
    standard_files_open();
    return standard_files_end("nestguard", run(argc, argv));
}
