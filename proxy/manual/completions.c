/* Both shells get the same three lists: words to begin with, words of ctl, and what may stand
 * behind each of them. Values of options are files or nothing that could be known.
 */
#include "manual/completions.h"

#include "base/span.h"
#include "cli/terminal/forms.h"
#include "ctl/ctl_forms.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* A row for each word; a word may have several rows. */
static bool is_first_row(const struct form *form)
{
    return form == forms || strcmp(form->word, form[-1].word) != 0;
}

/* The next of "build KEYS FILE [--fpr P]" that is to be typed: all but capitals and brackets.
 * Empty: there is none. */
static struct span next_typed(const char **arguments)
{
    struct span word = {*arguments, 0};
    while (**arguments) {
        word = (struct span){*arguments, strcspn(*arguments, " []")};
        *arguments += word.length + (word.at[word.length] != '\0');
        if (word.length && !isupper((unsigned char)*word.at))
            return word;
    }
    return (struct span){word.at, 0};
}

static bool is_typed_before(const struct form *first, const struct form *end, struct span word)
{
    for (const struct form *row = first; row < end; row++) {
        const char *arguments = row->arguments;
        for (struct span other; (other = next_typed(&arguments)).length;)
            if (other.length == word.length && !memcmp(other.at, word.at, word.length))
                return true;
    }
    return false;
}

/* Of a row of those from `first` on that are of one word: what none before it has. */
static void print_typed(const struct form *first, const struct form *row, FILE *out)
{
    const char *arguments = row->arguments;
    for (struct span word; (word = next_typed(&arguments)).length;)
        if (!is_typed_before(first, row, word))
            fprintf(out, " %.*s", (int)word.length, word.at);
}

/* ---- bash ---- */

/* Arms of the script's `case $place`: each says which words are offered there. */

static void print_bash_words(FILE *out)
{
    fputs("    nestguard)\n        offered='", out);
    for (const struct form *form = forms; form->word; form++)
        if (is_first_row(form))
            fprintf(out, "%s%s", form == forms ? "" : " ", form->word);
    fputs("'\n        ;;\n", out);
    for (const struct form *form = forms; form->word; form++) {
        if (!is_first_row(form) || !strcmp(form->word, "ctl") || !*form->arguments)
            continue;
        fprintf(out, "    '%s')\n        offered='", form->word);
        for (const struct form *row = form; row->word && !strcmp(row->word, form->word); row++)
            print_typed(form, row, out);
        fputs("'\n        ;;\n", out);
    }
}

/* Options stand before ctl's command, and its own behind it. */
static void print_bash_ctl(FILE *out)
{
    fputs("    ctl)\n        offered='", out);
    fputs("-c --control --token ", out);
    for (size_t i = 0; i < ctl_form_count; i++)
        fprintf(out, "%s%s", i ? " " : "", ctl_forms[i].name);
    fputs("'\n        ;;\n", out);
    for (size_t i = 0; i < ctl_form_count; i++) {
        fprintf(out, "    'ctl %s')\n        offered='", ctl_forms[i].name);
        for (size_t at = 0; at < CTL_OPTIONS && ctl_forms[i].options[at].name; at++)
            fprintf(out, " --%s", ctl_forms[i].options[at].name);
        fputs(ctl_form_can_watch(&ctl_forms[i]) ? " --watch" : "", out);
        fputs(ctl_forms[i].sends ? "' files=1\n        ;;\n" : "'\n        ;;\n", out);
    }
}

/* The script goes through the words before the cursor and finds out where it stands:
 *
 *   nestguard ─ a word ─▶ that word
 *             ─ ctl ────▶ ctl ─ a command ─▶ "ctl COMMAND"        nestguard-ctl begins at ctl
 *
 * An option before ctl's command takes the next word along, unless its value stands behind a "=".
 */
void completion_bash(FILE *out)
{
    fputs("# bash completion of nestguard and nestguard-ctl\n"
          "_nestguard() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local place=nestguard offered='' files='' at\n"
          "    COMPREPLY=()\n"
          "    [ \"${COMP_WORDS[0]##*/}\" != nestguard-ctl ] || place=ctl\n"
          "    for ((at = 1; at < COMP_CWORD; at++)); do\n"
          "        case $place:${COMP_WORDS[at]} in\n"
          "        ctl:-*) [[ ${COMP_WORDS[at]} == *=* ]] || ((at++)) ;;\n"
          "        nestguard:*) place=${COMP_WORDS[at]} ;;\n"
          "        ctl:*) place=\"ctl ${COMP_WORDS[at]}\" ;;\n"
          "        esac\n"
          "    done\n"
          "    case $before in\n"
          "    -c | --config)\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
          "        return\n"
          "        ;;\n"
          "    --control | --token | --for | --block | --watch | --keys | --fpr | --filter) return "
          ";;\n"
          "    esac\n"
          "    case $place in\n",
          out);
    print_bash_words(out);
    print_bash_ctl(out);
    fputs("    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$offered\" -- \"$word\")\n"
          "    [[ $place != filter ]] || files=1\n"
          "    [[ ! $files || $word == -* ]] || {\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n"
          "    }\n"
          "}\n"
          "complete -F _nestguard nestguard nestguard-ctl\n",
          out);
}

/* ---- zsh ---- */

/* 'word:help', in single quotes. */
static void print_zsh_row(const char *word, const char *help, FILE *out)
{
    fprintf(out, "        '%s:", word);
    for (; *help; help++) {
        if (*help == '\'')
            fputs("'\\''", out);
        else
            fputc(*help == '\n' || *help == ':' ? ' ' : *help, out);
    }
    fputs("'\n", out);
}

static void print_zsh_lists(FILE *out)
{
    fputs("    local -a words_of_nestguard=(\n", out);
    for (const struct form *form = forms; form->word; form++)
        if (is_first_row(form))
            print_zsh_row(form->word, form->help, out);
    fputs("    )\n    local -a words_of_ctl=(\n", out);
    for (size_t i = 0; i < ctl_form_count; i++)
        print_zsh_row(ctl_forms[i].name, ctl_forms[i].help, out);
    fputs("    )\n", out);
}

static void print_zsh_options(const struct ctl_form *form, FILE *out)
{
    for (size_t i = 0; i < CTL_OPTIONS && form->options[i].name; i++) {
        const struct ctl_option *option = &form->options[i];
        fprintf(out, " '--%s", option->name);
        if (option->value)
            fprintf(out, ":%s:", option->value);
        fputs("'", out);
    }
    fputs(ctl_form_can_watch(form) ? " '--watch:SECONDS:'" : "", out);
}

static void print_zsh_ctl(FILE *out)
{
    fputs("_nestguard_ctl() {\n"
          "    local state\n"
          "    _arguments -C '-c:FILE:_files' '--control:ADDRESS:' '--token:TOKEN:' "
          "'1:command:->command' '*::argument:->argument'\n"
          "    case $state in\n"
          "    command) _describe command words_of_ctl ;;\n"
          "    argument)\n"
          "        case $words[1] in\n",
          out);
    for (size_t i = 0; i < ctl_form_count; i++) {
        const struct ctl_form *form = &ctl_forms[i];
        if (!form->options[0].name && !form->sends && !ctl_form_can_watch(form))
            continue;
        fprintf(out, "        %s) _arguments", form->name);
        print_zsh_options(form, out);
        if (form->sends)
            fprintf(out, " '1:%s:' '2:FILE:_files'", form->takes);
        fputs(" ;;\n", out);
    }
    fputs("        esac\n        ;;\n    esac\n}\n", out);
}

/* zsh is told of each option what kind of value it takes, and that stands in the table of forms for
 * people only: what follows serve, check, plan and filter is written out here. */
void completion_zsh(FILE *out)
{
    fputs("#compdef nestguard nestguard-ctl\n", out);
    print_zsh_ctl(out);
    fputs("_nestguard() {\n    local state\n", out);
    print_zsh_lists(out);
    fputs("    if [[ $service == nestguard-ctl ]]; then\n"
          "        _nestguard_ctl\n"
          "        return\n"
          "    fi\n"
          "    _arguments -C '1:command:->command' '*::argument:->argument'\n"
          "    case $state in\n"
          "    command) _describe command words_of_nestguard ;;\n"
          "    argument)\n"
          "        case $words[1] in\n"
          "        ctl) _nestguard_ctl ;;\n"
          "        serve) _arguments '-c:FILE:_files' ;;\n"
          "        check) _arguments '-c:FILE:_files' '--json' ;;\n"
          "        plan) _arguments '-c:FILE:_files' '--keys:N:' '--fpr:P:' '--table' ;;\n"
          "        filter) _arguments '1:command:(build info query)' '*:FILE:_files' '--fpr:P:' "
          "'--filter:KIND:' ;;\n"
          "        esac\n"
          "        ;;\n"
          "    esac\n"
          "}\n"
          "_nestguard \"$@\"\n",
          out);
}
