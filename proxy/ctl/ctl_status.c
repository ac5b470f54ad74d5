/* A head, a table of the keyspaces, and a line for each of the rest that there is. What is null in
 * the answer is a "-", a word, or no line at all: a 0 would be a figure.
 */
#include "ctl/ctl_status.h"

#include <string.h>

double ctl_number(const json_t *of, const char *name)
{
    return json_number_value(json_object_get(of, name));
}

static const char *text_of(const json_t *of, const char *name)
{
    return json_string_value(json_object_get(of, name));
}

static bool is_true(const json_t *of, const char *name)
{
    return json_is_true(json_object_get(of, name));
}

static void print_count(const json_t *of, const char *name, const struct ctl_paper *paper)
{
    char text[CTL_NUMBER_SIZE];
    fprintf(paper->out, " %8s", ctl_count(ctl_number(of, name), text));
}

/* ---- the head ---- */

void ctl_status_print_head(const json_t *body, const struct ctl_paper *paper)
{
    char up[CTL_NUMBER_SIZE];
    bool guards = is_true(body, "guarding"), ready = is_true(body, "ready");
    ctl_print_text(paper, CTL_BOLD, "nestguard ", 0);
    ctl_print_text(paper, CTL_BOLD, text_of(body, "version"), 0);
    fprintf(paper->out, ", up %s, sync: %s, ", ctl_seconds(ctl_number(body, "uptime_seconds"), up),
            text_of(body, "sync"));
    ctl_print_text(paper, ready ? CTL_GREEN : CTL_RED, ready ? "serving" : "not serving", 0);
    fputs(", ", paper->out);
    ctl_print_text(paper, guards ? CTL_GREEN : CTL_RED,
                   guards ? "guarding" : "not guarding everything", 0);
    if (is_true(body, "attack"))
        ctl_print_text(paper, CTL_RED, ", UNDER ATTACK (ctl attack says by whom)", 0);
    fputc('\n', paper->out);
}

/* ---- keyspaces ---- */

int ctl_status_name_width(const json_t *body)
{
    enum { LEAST = 10, MOST = 40 };
    size_t width = LEAST, i;
    const json_t *keyspace;
    json_array_foreach(json_object_get(body, "keyspaces"), i, keyspace)
    {
        const char *name = text_of(keyspace, "name");
        if (name && strlen(name) > width)
            width = strlen(name);
    }
    return width > MOST ? MOST : (int)width;
}

void ctl_status_print_state(const json_t *keyspace, int width, const struct ctl_paper *paper)
{
    const char *state = text_of(keyspace, "state");
    enum ctl_colour colour = !state                       ? CTL_PLAIN
                             : !strcmp(state, "guarding") ? CTL_GREEN
                             : !strcmp(state, "loading")  ? CTL_YELLOW
                                                          : CTL_RED;
    ctl_print_text(paper, colour, state, width);
}

static void print_filter(const json_t *filter, const struct ctl_paper *paper)
{
    char text[CTL_NUMBER_SIZE];
    if (!json_is_object(filter)) {
        fprintf(paper->out, " %8s %6s %8s %10s", "-", "-", "-", "-");
        return;
    }
    print_count(filter, "keys", paper);
    fprintf(paper->out, " %4.0f %%", 100 * ctl_number(filter, "fill"));
    fprintf(paper->out, " %8s", ctl_bytes(ctl_number(filter, "bytes"), text));
    if (json_is_null(json_object_get(filter, "measured_false_positive_rate")))
        fprintf(paper->out, " %10s", "-");
    else
        fprintf(paper->out, " %8.4f %%", 100 * ctl_number(filter, "measured_false_positive_rate"));
}

/* Whatever the state is: a keyspace guards on while none of its rows can be loaded. */
static void print_load_error(const json_t *error, int width, const struct ctl_paper *paper)
{
    char count[CTL_NUMBER_SIZE], age[CTL_NUMBER_SIZE];
    double times = ctl_number(error, "count");
    if (!json_is_object(error))
        return;
    fprintf(paper->out, "%*s %s load%s refused by the database, the last %s ago: ", width, "",
            ctl_count(times, count), ctl_s(times),
            ctl_seconds(ctl_number(error, "age_seconds"), age));
    ctl_print_text(paper, CTL_RED, text_of(error, "text"), 0);
    fputc('\n', paper->out);
}

/* Widths are those of the head in print_keyspaces(). Why a keyspace does not guard stands below it.
 */
static void print_keyspace(const json_t *keyspace, int width, const struct ctl_paper *paper)
{
    char text[CTL_NUMBER_SIZE];
    const char *state = text_of(keyspace, "state");
    ctl_print_text(paper, CTL_PLAIN, text_of(keyspace, "name"), width + 1);
    ctl_status_print_state(keyspace, 9, paper);
    fprintf(paper->out, " %11s", ctl_seconds(ctl_number(keyspace, "seconds_in_state"), text));
    print_filter(json_object_get(keyspace, "filter"), paper);
    print_count(keyspace, "lookups", paper);
    print_count(keyspace, is_true(keyspace, "enforce") ? "rejected" : "would_reject", paper);
    print_count(keyspace, "cache_hits", paper);
    print_count(keyspace, "loads", paper);
    fputc('\n', paper->out);
    if (state && strcmp(state, "guarding") != 0) {
        fprintf(paper->out, "%*s ", width, "");
        ctl_print_text(paper, CTL_PLAIN, text_of(keyspace, "reason"), 0);
        fputc('\n', paper->out);
    }
    if (text_of(keyspace, "source_refused")) {
        fprintf(paper->out, "%*s ", width, "");
        ctl_print_text(paper, CTL_RED, text_of(keyspace, "source_refused"), 0);
        fputc('\n', paper->out);
    }
    print_load_error(json_object_get(keyspace, "last_load_error"), width, paper);
    if (!is_true(keyspace, "enforce"))
        fprintf(paper->out, "%*s shadow mode: rejected is what would have been\n", width, "");
}

static void print_keyspaces(const json_t *body, const struct ctl_paper *paper)
{
    int width = ctl_status_name_width(body);
    size_t i;
    const json_t *keyspace;
    fprintf(paper->out, "\n%-*s %-9s %11s %8s %6s %8s %10s %8s %8s %8s %8s\n", width, "keyspace",
            "state", "for", "rows", "fill", "memory", "wrong", "lookups", "rejected", "hits",
            "loads");
    json_array_foreach(json_object_get(body, "keyspaces"), i, keyspace)
        print_keyspace(keyspace, width, paper);
    fputc('\n', paper->out);
}

/* ---- the rest, a line each ---- */

static void print_generation(const json_t *generation, const struct ctl_paper *paper)
{
    char age[CTL_NUMBER_SIZE], took[CTL_NUMBER_SIZE], text[CTL_NUMBER_SIZE];
    double rows = ctl_number(generation, "rows");
    if (!json_is_object(generation)) {
        fputs("generation  none yet\n", paper->out);
        return;
    }
    fprintf(paper->out, "generation  %.0f, %s row%s, %s old, built in %s\n",
            ctl_number(generation, "number"), ctl_count(rows, text), ctl_s(rows),
            ctl_seconds(ctl_number(generation, "age_seconds"), age),
            ctl_seconds(ctl_number(generation, "build_seconds"), took));
}

static void print_rest_of_build(const json_t *building, const struct ctl_paper *paper)
{
    char rate[CTL_NUMBER_SIZE], rest[CTL_NUMBER_SIZE];
    if (ctl_number(building, "rows_per_second") > 0)
        fprintf(paper->out, ", %s a second",
                ctl_count(ctl_number(building, "rows_per_second"), rate));
    if (json_is_number(json_object_get(building, "remaining_seconds")))
        fprintf(paper->out, ", %s to go",
                ctl_seconds(ctl_number(building, "remaining_seconds"), rest));
    fputc('\n', paper->out);
}

static void print_building(const json_t *building, const struct ctl_paper *paper)
{
    char done[CTL_NUMBER_SIZE], all[CTL_NUMBER_SIZE];
    if (!json_is_object(building))
        return;
    fprintf(paper->out, "building    %.0f: %s, %s of about %s row%s",
            ctl_number(building, "number"), text_of(building, "phase"),
            ctl_count(ctl_number(building, "rows"), done),
            ctl_count(ctl_number(building, "rows_total"), all),
            ctl_s(ctl_number(building, "rows_total")));
    print_rest_of_build(building, paper);
    if (text_of(building, "waits")) {
        fputs("            ", paper->out);
        ctl_print_text(paper, CTL_YELLOW, text_of(building, "waits"), 0);
        fputc('\n', paper->out);
    }
}

static void print_stream(const json_t *stream, const struct ctl_paper *paper)
{
    char lag[CTL_NUMBER_SIZE], behind[CTL_NUMBER_SIZE], changes[CTL_NUMBER_SIZE];
    if (!json_is_object(stream))
        return;
    fprintf(paper->out, "log         at %s, %s and %s behind, %s change%s followed\n",
            text_of(stream, "position"), ctl_seconds(ctl_number(stream, "lag_seconds"), lag),
            ctl_bytes(ctl_number(stream, "lag_bytes"), behind),
            ctl_count(ctl_number(stream, "changes"), changes),
            ctl_s(ctl_number(stream, "changes")));
}

static void print_error(const char *before, const char *error, const struct ctl_paper *paper)
{
    if (!error)
        return;
    fputs(before, paper->out);
    ctl_print_text(paper, CTL_RED, error, 0);
    fputc('\n', paper->out);
}

/* Of a fleet, what one can take in; --json has all. */
enum { NODES_SHOWN = 6, TROUBLES_SHOWN = 10 };

static void print_node(const json_t *node, const struct ctl_paper *paper)
{
    const char *address = text_of(node, "address"), *role = text_of(node, "role");
    ctl_print_text(paper, is_true(node, "up") ? CTL_PLAIN : CTL_RED,
                   address && *address ? address : "a server of unknown address", 0);
    if (role && strcmp(role, "unknown") != 0) {
        fputs(" (", paper->out);
        ctl_print_text(paper, CTL_PLAIN, role, 0);
        fputc(')', paper->out);
    }
}

/* What it is that a node of its role does not do. */
static const char *absence_of(const json_t *node)
{
    const char *role = text_of(node, "role");
    if (role && !strcmp(role, "sentinel"))
        return "names no primary";
    return role && !strcmp(role, "replica") ? "is not read from" : "is down";
}

/* Since when, which a guard of a version before does not say. One that is up may have a reason,
 * too: what it complains of. */
static void print_trouble(const json_t *node, const struct ctl_paper *paper)
{
    char text[CTL_NUMBER_SIZE];
    const json_t *down = json_object_get(node, "down_seconds");
    fputs("            ", paper->out);
    print_node(node, paper);
    if (!is_true(node, "up"))
        fprintf(paper->out, " %s", absence_of(node));
    if (json_is_number(down))
        fprintf(paper->out, ", for %s", ctl_seconds(json_number_value(down), text));
    print_error(": ", text_of(node, "why"), paper);
    if (!text_of(node, "why"))
        fputc('\n', paper->out);
}

static void print_troubles(const json_t *nodes, const struct ctl_paper *paper)
{
    size_t i, count = 0;
    const json_t *node;
    json_array_foreach(nodes, i, node)
    {
        if (is_true(node, "up") && !text_of(node, "why"))
            continue;
        if (count++ < TROUBLES_SHOWN)
            print_trouble(node, paper);
    }
    if (count > TROUBLES_SHOWN)
        fprintf(paper->out, "            and %zu more, which --json names\n",
                count - TROUBLES_SHOWN);
}

static void print_cache(const json_t *cache, const struct ctl_paper *paper)
{
    bool up = is_true(cache, "up");
    char text[64];
    const json_t *nodes = json_object_get(cache, "nodes"), *node;
    size_t i, count = json_array_size(nodes);
    fputs("cache       ", paper->out);
    ctl_print_text(paper, up ? CTL_GREEN : CTL_RED, up ? "up" : "down", 0);
    json_array_foreach(nodes, i, node)
    {
        if (i == NODES_SHOWN)
            break;
        fputs(", ", paper->out);
        print_node(node, paper);
    }
    if (count > NODES_SHOWN)
        fprintf(paper->out, " and %zu more", count - NODES_SHOWN);
    fputc('\n', paper->out);
    if (ctl_number(cache, "slots_uncovered") > 0) {
        snprintf(text, sizeof text, "%.0f slots that no node has",
                 ctl_number(cache, "slots_uncovered"));
        print_error("            ", text, paper);
    }
    print_troubles(nodes, paper);
}

static void print_database(const json_t *database, const struct ctl_paper *paper)
{
    double connections = ctl_number(database, "connections");
    if (json_is_null(json_object_get(database, "connections"))) {
        fputs("database    none: no keyspace is of rows\n", paper->out);
        return;
    }
    fprintf(paper->out,
            "database    %.0f connection%s, %.0f of %.0f loads under way, %.0f waiting\n",
            connections, ctl_s(connections), ctl_number(database, "loads_in_flight"),
            ctl_number(database, "load_budget"), ctl_number(database, "loads_queued"));
    print_error("            ", text_of(database, "error"), paper);
}

static void print_clients(const json_t *body, const struct ctl_paper *paper)
{
    char memory[CTL_NUMBER_SIZE], limit[CTL_NUMBER_SIZE];
    const json_t *limits = json_object_get(body, "limits");
    fprintf(paper->out, "clients     %.0f of %.0f, %s of %s; %.0f worker%s\n",
            ctl_number(body, "clients"), ctl_number(limits, "clients"),
            ctl_bytes(ctl_number(body, "client_memory_bytes"), memory),
            ctl_bytes(ctl_number(limits, "client_memory"), limit), ctl_number(body, "workers"),
            ctl_s(ctl_number(body, "workers")));
}

void ctl_status_print(const json_t *body, const struct ctl_paper *paper)
{
    const json_t *backends = json_object_get(body, "backends");
    ctl_status_print_head(body, paper);
    print_keyspaces(body, paper);
    print_generation(json_object_get(body, "generation"), paper);
    print_building(json_object_get(body, "building"), paper);
    print_error("last build  ", text_of(body, "last_build_error"), paper);
    print_error("last reload ", text_of(body, "reload_refused"), paper);
    print_stream(json_object_get(body, "stream"), paper);
    print_cache(json_object_get(backends, "cache"), paper);
    print_database(json_object_get(backends, "database"), paper);
    print_clients(body, paper);
}
