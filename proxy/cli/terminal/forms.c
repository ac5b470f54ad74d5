/* The order is that of --help and of the manual. Rows of one word stand together, for the
 * completions know by its neighbour whether a row begins another word.
 */
#include "cli/terminal/forms.h"

#include "base/text/wrap.h"

#include <string.h>

const struct form forms[] = {
    {"serve", "-c FILE", "serves until SIGTERM"},
    {"check", "-c FILE [--json]",
     "says everything that is wrong with file, cache and database, and the SQL that mends it; "
     "--json: for programs"},
    {"ctl", "COMMAND", "asks or orders a running guard; `nestguard ctl --help` lists how"},
    {"plan", "--keys N --fpr P",
     "for each kind of filter: memory, false positives and speed with N keys at a rate of P, by "
     "the "
     "formulas and measured here with N keys, 10 million at most; the same of the bitmaps that are "
     "published, and what more and fewer functions do"},
    {"plan", "-c FILE [--keys N]",
     "for each keyspace of the file: the memory that its filter takes, with the rows that the "
     "database has now (or with N) and with more"},
    {"plan", "--table", "the textbook's table for Bloom filters, measured beside the formula"},
    {"filter", "build KEYS FILE [--fpr P] [--filter KIND]",
     "makes a filter of the keys in KEYS, a line each (-: standard input)"},
    {"filter", "info FILE", "says what a filter is: kind, size, fill, false positives"},
    {"filter", "query FILE",
     "for each line of standard input: \"absent\" or \"possible\", and the line"},
    {"--help", "", "prints this, and every setting of the file"},
    {"--version", "", "prints the version"},
    {0}};

void forms_print(const char *word, FILE *out)
{
    for (const struct form *form = forms; form->word; form++) {
        if (word && strcmp(form->word, word) != 0)
            continue;
        fprintf(out, "  nestguard %s%s%s\n", form->word, *form->arguments ? " " : "",
                form->arguments);
        print_wrapped(form->help, 8, out);
    }
}
