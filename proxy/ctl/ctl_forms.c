#include "ctl/ctl_forms.h"

#include "ctl/ctl_attack.h"
#include "ctl/ctl_reload.h"
#include "ctl/ctl_status.h"

#include <string.h>

static void print_status(const json_t *body, const char *option, const struct ctl_paper *paper)
{
    (void)option;
    ctl_status_print(body, paper);
}

static void print_attack(const json_t *body, const char *option, const struct ctl_paper *paper)
{
    ctl_attack_print(body, option && !strcmp(option, "hour") ? "hour" : "minute", paper);
}

bool ctl_form_can_watch(const struct ctl_form *form)
{
    return !strcmp(form->method, "GET") && !form->is_live;
}

const char ctl_default_address[] = "127.0.0.1:6390";

const struct ctl_form ctl_forms[] = {
    {.name = "status",
     .method = "GET",
     .path = "/v1/status",
     .options = {{"json", NULL, NULL}, {"table", NULL, NULL}},
     .usage = "status [--json | --table]",
     .help = "everything: keyspaces, generation, fill, clients; a table on a terminal, elsewhere\n"
             "JSON",
     .print = print_status,
     .table_on_terminal = true},
    {.name = "top",
     .method = "GET",
     .path = "/v1/status",
     .usage = "top",
     .help = "what happens now, on a terminal: rates by keyspace, loads, the heaviest clients;\n"
             "q quits",
     .is_live = true},
    {.name = "attack",
     .method = "GET",
     .path = "/v1/attack",
     .options = {{"hour", NULL, NULL}, {"json", NULL, NULL}},
     .usage = "attack [--hour | --json]",
     .help =
         "who asks: rates of rejects, the heaviest clients, the most asked absent keys, of the\n"
         "last minute or hour; --json: all of it, for programs",
     .print = print_attack},
    {.name = "metrics",
     .method = "GET",
     .path = "/metrics",
     .usage = "metrics",
     .help = "the counters, as Prometheus reads them"},
    {.name = "health",
     .method = "GET",
     .path = "/healthz",
     .usage = "health",
     .help = "is the guard alive"},
    {.name = "ready",
     .method = "GET",
     .path = "/readyz",
     .usage = "ready",
     .help = "are clients served (exit status 1 when not)"},
    {.name = "guarding",
     .method = "GET",
     .path = "/guardz",
     .usage = "guarding",
     .help = "is every keyspace guarding (exit status 1 when not)"},
    {.name = "explain",
     .method = "GET",
     .path = "/v1/keys/",
     .takes = "KEY",
     .usage = "explain KEY",
     .help = "what the guard says of a key, and why",
     .answers = 404},
    {.name = "admit",
     .method = "PUT",
     .path = "/v1/keys/",
     .takes = "KEY",
     .options = {{"for", "for=", "DURATION"}},
     .usage = "admit KEY [--for DURATION]",
     .help = "let a key pass before its row is seen"},
    {.name = "delete",
     .method = "DELETE",
     .path = "/v1/keys/",
     .takes = "KEY",
     .options = {{"row", "row=delete", NULL}, {"block", "block=", "DURATION"}},
     .usage = "delete KEY [--row | --block DURATION]",
     .help = "purge and reject a key whose row is gone; --row deletes the row, too;\n"
             "--block refuses the key for a time although its row is there"},
    {.name = "push",
     .method = "PUT",
     .path = "/v1/keyspaces/",
     .takes = "KEYSPACE",
     .path_end = "/keys",
     .sends = true,
     .usage = "push KEYSPACE [FILE | -]",
     .help = "send all keys of a keyspace with source: push, a line each, from the file or from\n"
             "standard input; they are taken as a whole, or nothing changes"},
    {.name = "rebuild",
     .method = "POST",
     .path = "/v1/rebuild",
     .usage = "rebuild",
     .help = "build a new generation of the filters"},
    {.name = "reload",
     .method = "POST",
     .path = "/v1/reload",
     .options = {{"json", NULL, NULL}},
     .usage = "reload [--json]",
     .help = "have the guard read its file again: what it takes, and what needs a restart\n"
             "(exit status 1 when the file has errors: nothing is taken; or a part cannot be)",
     .print = ctl_reload_print,
     .shortfall = ctl_reload_shortfall},
    {.name = "config",
     .method = "GET",
     .path = "/v1/config",
     .usage = "config",
     .help = "the configuration in force, defaults and all, as a file without its secrets"},
};

const size_t ctl_form_count = sizeof ctl_forms / sizeof ctl_forms[0];
