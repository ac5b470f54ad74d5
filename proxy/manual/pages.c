/* What no table has stands here in man's own notation, ready to print; what a table has is escaped.
 */
#include "manual/pages.h"

#include "cli/terminal/forms.h"
#include "config/settings.h"
#include "ctl/ctl_forms.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- man's notation ---- */

/* A hyphen that can be copied to a shell, and no character that man takes for its own. */
static void print_escaped(const char *text, FILE *out)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text == '\n' ? ' ' : *text, out);
    }
}

/* The help of a table as a sentence. */
static void print_sentence(const char *text, FILE *out)
{
    char first[] = {(char)toupper((unsigned char)*text), '\0'};
    print_escaped(first, out);
    print_escaped(text + 1, out);
    fputs(".\n", out);
}

/* Without a date: the same sources make the same page, whenever they are built. */
static void print_title(const char *name, const char *section, const char *summary, FILE *out)
{
    fprintf(out, ".TH \"%s\" \"%s\" \"\" \"nestguard %s\" \"nestguard\"\n.SH NAME\n", name, section,
            NESTGUARD_VERSION);
    print_escaped(name, out);
    fprintf(out, " \\- %s\n", summary);
}

/* Words in capitals stand for something else: those are slanted, what is to be typed is bold. */
static void print_words(const char *text, FILE *out)
{
    while (*text) {
        size_t run = strcspn(text, " []|");
        bool stands_for = run && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == run;
        char *word = strndup(text, run);
        fputs(!run ? "" : stands_for ? "\\fI" : "\\fB", out);
        print_escaped(word, out);
        fputs(run ? "\\fR" : "", out);
        free(word);
        text += run;
        if (*text)
            fputc(*text++, out);
    }
}

/* ---- nestguard(1) ---- */

static void print_form(const struct form *form, FILE *out)
{
    fputs("\\fBnestguard ", out);
    print_escaped(form->word, out);
    fputs("\\fR ", out);
    print_words(form->arguments, out);
    fputc('\n', out);
}

void page_nestguard(FILE *out)
{
    print_title("nestguard", "1", "reject lookups of keys without a row before they reach Redis",
                out);
    fputs(".SH SYNOPSIS\n", out);
    for (const struct form *form = forms; form->word; form++) {
        fputs(form == forms ? "" : ".br\n", out);
        print_form(form, out);
    }
    fputs(
        ".SH DESCRIPTION\n"
        "nestguard speaks the Redis protocol. It stands between an application and its Redis, and "
        "answers lookups of keys that have no row in PostgreSQL before they reach either. It "
        "reads from the database which keys exist, keeps them in a filter in memory, and follows "
        "the database's log. What it cannot know it passes on.\n"
        ".SH COMMANDS\n",
        out);
    for (const struct form *form = forms; form->word; form++) {
        fputs(".TP\n", out);
        print_form(form, out);
        print_sentence(form->help, out);
    }
    fputs(".SH SIGNALS\n"
          ".TP\n.B SIGHUP\nReads the file again; takes what can change, and says what cannot.\n"
          ".TP\n.B SIGUSR2\nStarts a successor, also of an upgraded program, which takes over the "
          "listening sockets when it guards. So does a second \\fBnestguard serve\\fR of the same "
          "file and user.\n"
          ".TP\n.BR SIGTERM \", \" SIGINT\nAfter \\fBdrain_delay\\fR no new clients; what is "
          "under way is finished, "
          "\\fBdrain_timeout\\fR at most. A second one ends at once.\n"
          ".SH EXIT STATUS\n0: done. 1: it failed, and said why. 2: wrong usage.\n"
          ".SH FILES\n"
          ".TP\n.I /etc/nestguard/nestguard.yaml\nWhat the service reads; see "
          "\\fBnestguard.yaml\\fR(5).\n"
          ".TP\n.I /etc/nestguard/environment\nVariables for the service, NAME=value a line: "
          "secrets that the file names as ${NAME}.\n"
          ".SH SEE ALSO\n.BR nestguard.yaml (5),\n.BR nestguard\\-ctl (1)\n",
          out);
}

/* ---- nestguard.yaml(5) ---- */

/* Name, type and bounds on one line, as --help has them, and below it the help as a sentence. */
static void print_settings(const struct setting *table, FILE *out)
{
    for (; table->name; table++) {
        char *type = NULL;
        size_t length;
        FILE *memory = open_memstream(&type, &length);
        setting_print_type(table, memory);
        fclose(memory);
        fprintf(out, ".TP\n\\fB%s\\fR (", table->name);
        print_escaped(type, out);
        fputs(table->fixed ? "; a change needs a restart)\n" : ")\n", out);
        print_sentence(table->help, out);
        free(type);
    }
}

void page_settings(FILE *out)
{
    print_title("nestguard.yaml", "5", "configuration of nestguard", out);
    fputs(".SH DESCRIPTION\n"
          "One YAML file. Unknown settings, wrong types and impossible values are errors that name "
          "file and line. ${NAME} takes a value from the environment, for secrets; $${ stands for "
          "${ itself. Durations are 250ms, 10s, 10m, 2h, 1d; sizes 64kb, 512mb, 1gb.\n"
          ".PP\n\\fBnestguard check \\-c\\fR \\fIFILE\\fR says everything that is wrong with the "
          "file, and with the cache and the database behind it. On SIGHUP a running guard reads "
          "the file again.\n"
          ".SH SETTINGS\n",
          out);
    print_settings(config_settings, out);
    fputs(".SH SETTINGS OF A KEYSPACE\n", out);
    print_settings(keyspace_settings, out);
    fputs(".SH SETTINGS OF A KEYSPACE'S PUBLISH\n", out);
    print_settings(publish_settings, out);
    fputs(".SH EXAMPLE\n.nf\n"
          "listen: 127.0.0.1:6380\n"
          "control: 127.0.0.1:6390\n"
          "cache: redis://127.0.0.1:6379/0\n"
          "database: postgresql://app@127.0.0.1:5432/shop\n"
          "keyspaces:\n"
          "  \\- name: items\n"
          "    key: \"item:{id}\"\n"
          "    table: public.items\n"
          "    value: payload\n"
          ".fi\n"
          ".SH SEE ALSO\n.BR nestguard (1),\n.BR nestguard\\-ctl (1)\n",
          out);
}

/* ---- nestguard-ctl(1) ---- */

void page_ctl(FILE *out)
{
    print_title("nestguard-ctl", "1", "ask or order a running nestguard", out);
    fputs(".SH SYNOPSIS\n.B nestguard ctl\n", out);
    print_words("[-c FILE | --control ADDRESS] [--token TOKEN] COMMAND [ARGUMENTS]", out);
    fputs(
        "\n"
        ".SH DESCRIPTION\n"
        "A client of the guard's control port; \\fBnestguard ctl\\fR and \\fBnestguard\\-ctl\\fR "
        "are the same. Answers are printed as JSON; those to \\fBattack\\fR, and on a terminal "
        "those to "
        "\\fBstatus\\fR, as tables, in colours unless the environment has NO_COLOR.\n"
        ".SH OPTIONS\n"
        ".TP\n\\fB\\-c\\fR \\fIFILE\\fR\nTakes address and token from the guard's configuration.\n"
        ".TP\n\\fB\\-\\-control\\fR \\fIADDRESS\\fR\nHOST:PORT, [IPV6]:PORT or unix:/path; "
        "without it and \\fB\\-c\\fR ",
        out);
    print_escaped(ctl_default_address, out);
    fputs(".\n"
          ".TP\n\\fB\\-\\-token\\fR \\fITOKEN\\fR\nThe \\fBcontrol_token\\fR; other users of the "
          "machine do not see it when it stands in the environment as NESTGUARD_TOKEN.\n"
          ".SH COMMANDS\n",
          out);
    for (size_t i = 0; i < ctl_form_count; i++) {
        fputs(".TP\n", out);
        print_words(ctl_forms[i].usage, out);
        fputc('\n', out);
        print_sentence(ctl_forms[i].help, out);
    }
    fputs(".PP\nWhat only asks takes \\fB\\-\\-watch\\fR \\fISECONDS\\fR, and is asked again and "
          "again; "
          "where JSON goes to a program, it is an object a line.\n",
          out);
    fputs(".PP\nA \\fIDURATION\\fR is a number with a unit: 30s, 10m, 2h. A key that begins with a "
          "hyphen goes after \\fB\\-\\-\\fR.\n"
          ".SH EXIT STATUS\n0: done. 1: the guard refused or could not. 2: wrong usage.\n"
          ".SH SEE ALSO\n.BR nestguard (1),\n.BR nestguard.yaml (5)\n",
          out);
}
