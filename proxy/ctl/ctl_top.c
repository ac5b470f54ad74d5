/* A screen is written to memory, then as much of it as the terminal shows, line over line, so that
 * nothing flickers. A guard that does not answer leaves the last screen, and says so.
 */
#include "ctl/ctl_top.h"

#include "base/clock.h"
#include "ctl/ctl_status.h"
#include "ctl/ctl_terminal.h"

#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 1000, ANSWER_SECONDS = 3 };

/* ---- rates ---- */

/* Negative: not known. Counters begin anew with the guard that takes over. */
static double rate(const json_t *now, const json_t *before, double seconds, const char *name)
{
    double more = ctl_number(now, name) - ctl_number(before, name);
    return json_is_object(before) && seconds > 0 && more >= 0 ? more / seconds : -1;
}

/* The same keyspace, which its name says, in the status before; NULL: it was not there. */
static const json_t *keyspace_before(const struct ctl_moment *moment, const json_t *keyspace)
{
    const char *name = json_string_value(json_object_get(keyspace, "name"));
    size_t i;
    const json_t *other;
    json_array_foreach(json_object_get(moment->before, "keyspaces"), i, other)
    {
        const char *its = json_string_value(json_object_get(other, "name"));
        if (name && its && !strcmp(name, its))
            return other;
    }
    return NULL;
}

/* The column's name, and the counters of a keyspace whose rates it adds up. */
static const char *const columns[][8] = {
    {"lookups", "lookups"},
    {"rejects", "rejected", "would_reject"},
    {"hits", "cache_hits"},
    {"loads", "loads_row", "loads_absent"},
    {"errors", "loads_busy", "loads_cut", "loads_timeout", "loads_down", "loads_refused",
     "loads_too_large"},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* Negative: one of them is not known, and a sum without it would be a figure. */
static double sum_of_rates(const struct ctl_moment *moment, const json_t *keyspace, size_t column)
{
    const json_t *before = keyspace_before(moment, keyspace);
    double sum = 0;
    for (size_t i = 1; i < 8 && columns[column][i]; i++) {
        double one = rate(keyspace, before, moment->seconds, columns[column][i]);
        if (one < 0)
            return -1;
        sum += one;
    }
    return sum;
}

/* Less than 0: it is not known yet. */
static void print_rate(double per_second, const struct ctl_paper *paper)
{
    char text[CTL_NUMBER_SIZE];
    fprintf(paper->out, " %10s", per_second < 0 ? "-" : ctl_count(per_second, text));
}

/* ---- the screen ---- */

/* Which ones `ctl status` says. */
static void print_how_many_are_down(const json_t *nodes, const struct ctl_paper *paper)
{
    size_t i, down = 0;
    const json_t *node;
    json_array_foreach(nodes, i, node) down += !json_is_true(json_object_get(node, "up"));
    if (down && json_array_size(nodes) > 1)
        fprintf(paper->out, " (%zu of %zu nodes down)", down, json_array_size(nodes));
}

static void print_loads(const json_t *status, const struct ctl_paper *paper)
{
    const json_t *backends = json_object_get(status, "backends");
    const json_t *database = json_object_get(backends, "database");
    const json_t *stream = json_object_get(status, "stream");
    bool up = json_is_true(json_object_get(json_object_get(backends, "cache"), "up"));
    char lag[CTL_NUMBER_SIZE];
    fputs("cache ", paper->out);
    ctl_print_text(paper, up ? CTL_GREEN : CTL_RED, up ? "up" : "down", 0);
    print_how_many_are_down(json_object_get(json_object_get(backends, "cache"), "nodes"), paper);
    if (json_is_null(json_object_get(database, "connections")))
        fputs(", no database", paper->out);
    else
        fprintf(paper->out,
                ", database %.0f connection%s, loads %.0f of %.0f under way, %.0f waiting",
                ctl_number(database, "connections"), ctl_s(ctl_number(database, "connections")),
                ctl_number(database, "loads_in_flight"), ctl_number(database, "load_budget"),
                ctl_number(database, "loads_queued"));
    if (json_is_object(stream))
        fprintf(paper->out, ", %s behind", ctl_seconds(ctl_number(stream, "lag_seconds"), lag));
    fputc('\n', paper->out);
}

static void print_clients(const struct ctl_moment *moment, const struct ctl_paper *paper)
{
    char memory[CTL_NUMBER_SIZE], commands[CTL_NUMBER_SIZE];
    double each = rate(moment->status, moment->before, moment->seconds, "commands");
    fprintf(paper->out, "%.0f client%s with %s, %s commands a second\n",
            ctl_number(moment->status, "clients"), ctl_s(ctl_number(moment->status, "clients")),
            ctl_bytes(ctl_number(moment->status, "client_memory_bytes"), memory),
            each < 0 ? "-" : ctl_count(each, commands));
}

static void print_keyspaces(const struct ctl_moment *moment, const struct ctl_paper *paper)
{
    int width = ctl_status_name_width(moment->status);
    size_t i;
    const json_t *keyspace;
    fprintf(paper->out, "\n%-*s %-9s", width, "a second", "state");
    for (size_t column = 0; column < COLUMNS; column++)
        fprintf(paper->out, " %10s", columns[column][0]);
    fprintf(paper->out, " %10s %6s\n", "rows", "fill");
    json_array_foreach(json_object_get(moment->status, "keyspaces"), i, keyspace)
    {
        char rows[CTL_NUMBER_SIZE];
        const json_t *filter = json_object_get(keyspace, "filter");
        ctl_print_text(paper, CTL_PLAIN, json_string_value(json_object_get(keyspace, "name")),
                       width + 1);
        ctl_status_print_state(keyspace, 9, paper);
        for (size_t column = 0; column < COLUMNS; column++)
            print_rate(sum_of_rates(moment, keyspace, column), paper);
        fprintf(paper->out, " %10s %4.0f %%\n", ctl_count(ctl_number(filter, "keys"), rows),
                100 * ctl_number(filter, "fill"));
    }
}

/* A client, with its share of the total in percent. */
static void print_party(const json_t *party, double total, const struct ctl_paper *paper)
{
    char count[CTL_NUMBER_SIZE];
    ctl_print_text(paper, CTL_PLAIN, json_string_value(json_object_get(party, "address")), 41);
    ctl_print_text(paper, CTL_PLAIN, json_string_value(json_object_get(party, "name")), 17);
    ctl_print_text(paper, CTL_PLAIN, json_string_value(json_object_get(party, "user")), 13);
    fprintf(paper->out, "%10s %5.1f\n", ctl_count(ctl_number(party, "count"), count),
            100 * ctl_number(party, "count") / total);
}

static void print_parties(const json_t *minute, const char *burden, const struct ctl_paper *paper)
{
    enum { SHOWN = 5 };
    const json_t *parties = json_object_get(json_object_get(minute, "clients"), burden), *party;
    double total = ctl_number(parties, "total");
    size_t i;
    if (total <= 0)
        return;
    fprintf(paper->out, "\n%-40s %-16s %-12s%10s %5s\n", "the last minute's clients", "name",
            "user", burden, "%");
    json_array_foreach(json_object_get(parties, "heaviest"), i, party)
    {
        if (i == SHOWN)
            break;
        print_party(party, total, paper);
    }
}

void ctl_top_print(const struct ctl_moment *moment, const struct ctl_paper *paper)
{
    const json_t *minute = json_object_get(moment->attack, "minute");
    ctl_status_print_head(moment->status, paper);
    print_clients(moment, paper);
    print_loads(moment->status, paper);
    print_keyspaces(moment, paper);
    print_parties(minute, "commands", paper);
    print_parties(minute, "rejects", paper);
    print_parties(minute, "loads", paper);
}

/* ---- live ---- */

/* The two newest statuses, of which rates are made. A guard that cannot be asked leaves them as
 * they are, with the reason below. */
struct top {
    struct ctl_call call; /* its target is set anew for each question */
    json_t *status, *attack, *before;
    uint64_t taken, taken_before; /* clock_ms() of the two */
    char *error;                  /* why there is no newer one */
};

/* Both questions, one after the other; waits for the answers, a short while at most. */
static void ask(struct top *top)
{
    free(top->error);
    top->error = NULL;
    top->call.target = "/v1/status";
    json_t *status = ctl_ask(&top->call, &top->error);
    if (!status)
        return;
    json_decref(top->before);
    top->before = top->status;
    top->taken_before = top->taken;
    top->status = status;
    top->taken = clock_ms();
    top->call.target = "/v1/attack";
    json_decref(top->attack);
    top->attack = ctl_ask(&top->call, &top->error);
}

/* The whole screen is made first and then shown at once, so that it does not flicker. */
static void draw(const struct top *top)
{
    struct ctl_paper paper = ctl_paper_of_stdout();
    char *screen = NULL;
    size_t length;
    const struct ctl_moment moment = {.status = top->status,
                                      .attack = top->attack,
                                      .before = top->before,
                                      .seconds = (double)(top->taken - top->taken_before) / 1000};
    paper.out = open_memstream(&screen, &length);
    if (!paper.out)
        abort();
    if (top->status)
        ctl_top_print(&moment, &paper);
    if (top->error)
        ctl_print_text(&paper, CTL_RED, top->error, 0);
    fclose(paper.out);
    ctl_terminal_show(screen, "q quits");
    free(screen);
}

/* Another screen comes after a second, or at a key; another size of the terminal only has the last
 * one drawn again. */
int ctl_top_run(const struct ctl_call *call)
{
    struct top top = {.call = *call};
    int key = 0;
    top.call.seconds = ANSWER_SECONDS;
    if (ctl_terminal_open() < 0) {
        fputs("nestguard ctl: top needs a terminal; elsewhere there is `status --watch 1`\n",
              stderr);
        return 2;
    }
    do {
        ask(&top);
        draw(&top);
        uint64_t until = clock_ms() + EVERY_MS, now;
        while (!key && (now = clock_ms()) < until) {
            key = ctl_terminal_wait((int)(until - now));
            draw(&top);
        }
    } while (key != 'q' && key != CTL_TERMINAL_END && (key = 0, true));
    ctl_terminal_close();
    json_decref(top.status);
    json_decref(top.before);
    json_decref(top.attack);
    free(top.error);
    return 0;
}
