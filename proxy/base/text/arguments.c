/* getopt_long() knows the syntax. What it does besides is kept from it: to guess names that are cut
 * short, to print what is wrong, to move words about. Its state is the process', so this is for one
 * thread.
 */
#include "base/text/arguments.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

/* What getopt_long() returns: for options without a letter what no letter is, for plain words 1. */
enum { FIRST_LONG = 256, PLAIN = 1, UNKNOWN = '?', BARE = ':' };

/* The options as getopt_long() wants them. */
struct table {
    struct option names[ARGUMENTS_OPTIONS + 1];
    char letters[2 + 2 * ARGUMENTS_OPTIONS + 1];
};

/* The sign at the front is getopt(3)'s: with "+" the first plain word is the end, with "-" plain
 * words are given as if they were an option's. */
static void build_table(struct table *table, const struct arguments *arguments)
{
    char *letter = table->letters;
    *letter++ = arguments->command_follows ? '+' : '-'; /* in order, and none is moved */
    *letter++ = ':';                                    /* a missing value is told apart */
    for (int i = 0; arguments->options[i].name; i++) {
        const struct argument_option *option = &arguments->options[i];
        assert(i < ARGUMENTS_OPTIONS);
        table->names[i] = (struct option){
            option->name, option->value ? required_argument : no_argument, NULL, FIRST_LONG + i};
        if (option->letter)
            *letter++ = option->letter;
        if (option->letter && option->value)
            *letter++ = ':';
    }
}

static int refuse(struct arguments *arguments, enum argument_fault fault, const char *wrong)
{
    static const char *const why[] = {
        [ARGUMENT_UNKNOWN] = "there is no such option",
        [ARGUMENT_BARE] = "its value is missing",
        [ARGUMENT_WITH_VALUE] = "it takes no value",
        [ARGUMENT_ONE_TOO_MANY] = "it is one word too many",
    };
    arguments->fault = fault;
    arguments->wrong = wrong;
    arguments->why = why[fault];
    return -EINVAL;
}

/* By what getopt_long() returned, or said that it is about; NULL: none. */
static const struct argument_option *find_option(const struct arguments *arguments, int found)
{
    for (int i = 0; arguments->options[i].name; i++)
        if (found == FIRST_LONG + i || (found && found == arguments->options[i].letter))
            return &arguments->options[i];
    return NULL;
}

/* "--ro" is found as "--row", if no other begins so. */
static bool is_cut_short(const struct argument_option *option, const char *word)
{
    return word[0] == '-' && word[1] == '-' && strcspn(word + 2, "=") != strlen(option->name);
}

static int take_option(struct arguments *arguments, int found, const char *word)
{
    bool fault = found == UNKNOWN || found == BARE;
    const struct argument_option *option = find_option(arguments, fault ? optopt : found);
    if (!option || is_cut_short(option, word))
        return refuse(arguments, ARGUMENT_UNKNOWN, word);
    arguments->option = option;
    if (fault)
        return refuse(arguments, found == BARE ? ARGUMENT_BARE : ARGUMENT_WITH_VALUE, word);
    if (option->value)
        *option->value = optarg;
    if (option->given)
        ++*option->given;
    return 0;
}

static int take_plain(struct arguments *arguments, int plain, const char *word)
{
    if (plain == arguments->most)
        return refuse(arguments, ARGUMENT_ONE_TOO_MANY, word);
    arguments->plain[plain] = word;
    return 0;
}

int arguments_read(struct arguments *arguments, int count, char **words)
{
    struct table table = {0};
    int plain = 0, code = 0, found;
    build_table(&table, arguments);
    optind = 0; /* from the beginning, whatever was read before */
    opterr = 0;
    for (int at = 1; !code; at = optind) {
        found = getopt_long(count, words, table.letters, table.names, NULL);
        if (found == -1)
            break;
        code = found == PLAIN ? take_plain(arguments, plain++, optarg)
                              : take_option(arguments, found, words[at]);
    }
    if (arguments->command_follows)
        return code ? code : optind;
    for (; !code && optind < count; optind++) /* behind "--" */
        code = take_plain(arguments, plain++, words[optind]);
    return code ? code : plain;
}
