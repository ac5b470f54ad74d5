/* The command line. */
#include "check/check.h"
#include "cli/ctl.h"
#include "cli/filter_command.h"
#include "cli/plan.h"
#include "cli/serve.h"
#include "config/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Those that need no configuration file; they get the words behind their own. */
static const struct {
    const char *word;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"ctl", ctl_main},
    {"filter", filter_command_main},
    {"plan", plan_main},
};

static int usage(FILE *out)
{
    fputs(
        "nestguard stands between an application and its Redis, and answers lookups of keys that "
        "have\n"
        "no row in PostgreSQL before they reach either.\n\n"
        "  nestguard serve -c FILE     serve\n"
        "  nestguard check -c FILE     say everything that is wrong with file, cache and database\n"
        "  nestguard ctl COMMAND       ask or order a running guard; `nestguard ctl --help` lists "
        "how\n"
        "  nestguard plan              compare the kinds of filter; `nestguard plan --help`\n"
        "  nestguard filter            build a filter from a file of keys, and ask it;\n"
        "                              `nestguard filter --help`\n"
        "  nestguard --help            this page, and every setting of the file\n"
        "  nestguard --version\n",
        out);
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

static int with_file(int argc, char **argv, int (*run)(const char *file))
{
    if (argc > 2 && asks_for_help(argv[2]))
        return usage(stdout);
    if (argc == 4 && (!strcmp(argv[2], "-c") || !strcmp(argv[2], "--config")))
        return run(argv[3]);
    if (argc == 3 && !strncmp(argv[2], "--config=", 9))
        return run(argv[2] + 9);
    fprintf(stderr, "nestguard %s: the configuration file is missing; say: nestguard %s -c FILE\n",
            argv[1], argv[1]);
    return 2;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "serve"))
        return with_file(argc, argv, serve_main);
    if (!strcmp(word, "check"))
        return with_file(argc, argv, check_main);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (!strcmp(word, commands[i].word))
            return commands[i].run(argc - 2, argv + 2);
    if (asks_for_help(word) || !strcmp(word, "help"))
        return help();
    if (!strcmp(word, "--version") || !strcmp(word, "version")) {
        puts("nestguard " NESTGUARD_VERSION);
        return 0;
    }
    if (*word)
        fprintf(stderr, "nestguard: \"%s\" is no command\n\n", word);
    return usage(stderr);
}
