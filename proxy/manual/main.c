/* A tool of the build: makes the manual's pages and the shells' completions from the tables that
 * the programs go by, so that none of them can say another thing than the program does.
 *
 *   nestguard-manual nestguard.1 | nestguard.yaml.5 | nestguard-ctl.1 | bash | zsh   prints one
 */
#include "manual/completions.h"
#include "manual/pages.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    void (*print)(FILE *out);
} products[] = {
    {"nestguard.1", page_nestguard}, {"nestguard.yaml.5", page_settings},
    {"nestguard-ctl.1", page_ctl},   {"bash", completion_bash},
    {"zsh", completion_zsh},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof products / sizeof products[0]; i++) {
        if (strcmp(argv[1], products[i].name) != 0)
            continue;
        products[i].print(stdout);
        return fflush(stdout) != 0;
    }
    fputs("usage: nestguard-manual nestguard.1 | nestguard.yaml.5 | nestguard-ctl.1 | bash | zsh\n",
          stderr);
    return 2;
}
