/* The command line of `nestguard plan`: which questions its words put.
 *
 *   --keys N --fpr P      ─▶ plan_formulas(), plan_kinds(), plan_bitmaps()
 *   -c FILE [--keys N]    ─▶ plan_file()
 *   --table               ─▶ plan_table(), alone or behind one of these
 */
#include "cli/plan/plan.h"

#include "base/text/arguments.h"
#include "cli/plan/plan_parts.h"
#include "cli/terminal/forms.h"
#include "config/syntax/units.h"

#include <stdio.h>

enum { EXIT_DONE = 0, EXIT_USAGE = 2 };

/* Beyond, the memory of no machine holds a filter. */
#define KEYS_MAX (UINT64_C(1) << 48)

/* NULL, 0: not given. */
struct words {
    const char *keys, *rate, *file;
    unsigned table, help;
};

static int usage(FILE *out)
{
    forms_print("plan", out);
    return out == stdout ? EXIT_DONE : EXIT_USAGE;
}

static int misuse(const char *what, const char *why)
{
    fprintf(stderr, "nestguard plan: %s: %s\n\n", what, why);
    return usage(stderr);
}

/* These two give EXIT_DONE and the number, or EXIT_USAGE after a complaint. */
static int read_keys(const char *keys, uint64_t *count)
{
    const char *why;
    if (units_count(keys, count, &why))
        return misuse(keys, why);
    if (*count == 0 || *count > KEYS_MAX)
        return misuse(keys, "the number of keys must be from 1 to 2^48");
    return EXIT_DONE;
}

static int read_rate(const char *rate, double *number)
{
    const char *why;
    if (units_fraction(rate, number, &why))
        return misuse(rate, why);
    if (!filter_rate_is_possible(*number))
        return misuse(rate, "the rate must be from 0.0000001 to 0.03");
    return EXIT_DONE;
}

static int run_file(const struct words *words)
{
    uint64_t keys = 0;
    if (words->rate)
        return misuse("--fpr", "the file says at which rates");
    int status = words->keys ? read_keys(words->keys, &keys) : EXIT_DONE;
    return status == EXIT_DONE ? plan_file(words->file, keys) : status;
}

static int run_filters(const struct words *words)
{
    struct filter_options planned = {.capacity = 0};
    uint64_t keys = 0;
    if (!words->keys || !words->rate)
        return misuse(words->keys ? "--fpr" : "--keys",
                      "say how many keys, and at what rate; or -c FILE");
    int status = read_keys(words->keys, &keys);
    if (status == EXIT_DONE)
        status = read_rate(words->rate, &planned.false_positive_rate);
    if (status != EXIT_DONE)
        return status;
    planned.capacity = keys;
    status = plan_formulas(keys, planned.false_positive_rate);
    status |= plan_kinds(planned);
    putchar('\n');
    return status | plan_bitmaps(keys, planned.false_positive_rate);
}

/* Without any word it is run_filters() that says what is missing. A failure on the way keeps nobody
 * from the table, wrong usage does. */
static int run(const struct words *words)
{
    bool filters = words->keys || words->rate || !words->table;
    int status = EXIT_DONE;
    if (words->file)
        status = run_file(words);
    else if (filters)
        status = run_filters(words);
    if (status != EXIT_USAGE && (filters || words->file) && words->table)
        putchar('\n');
    if (status != EXIT_USAGE && words->table)
        status |= plan_table();
    return status;
}

int plan_main(int argc, char **argv)
{
    struct words words = {0};
    const struct argument_option options[] = {
        {"keys", &words.keys, NULL, 0},     {"fpr", &words.rate, NULL, 0},
        {"config", &words.file, NULL, 'c'}, {"table", NULL, &words.table, 0},
        {"help", NULL, &words.help, 'h'},   {0}};
    struct arguments arguments = {.options = options, .most = 0};
    if (arguments_read(&arguments, argc, argv) < 0)
        return misuse(arguments.wrong, arguments.why);
    return words.help ? usage(stdout) : run(&words);
}
