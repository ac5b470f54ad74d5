/* The answer as control/attack.h describes it. The guard may be of another version than we are: a
 * number that it does not tell is a 0 here, and a text a "-".
 */
#include "ctl/ctl_attack.h"

static double number(const json_t *of, const char *name)
{
    return json_number_value(json_object_get(of, name));
}

static void print_text(const json_t *of, const char *name, int width, const struct ctl_paper *paper)
{
    ctl_print_text(paper, CTL_PLAIN, json_string_value(json_object_get(of, name)), width);
}

/* "now" is the last second, the others are averages. */
static void print_rates(const json_t *of, const struct ctl_paper *paper)
{
    const json_t *rate = json_object_get(of, "rejects_per_second");
    fprintf(paper->out, "%12.0f %12.0f %12.0f\n", number(rate, "now"), number(rate, "minute"),
            number(rate, "hour"));
}

static void print_state(const json_t *body, const struct ctl_paper *paper)
{
    const json_t *last = json_object_get(body, "last_attack");
    if (!json_is_object(last))
        fputs("No attack so far", paper->out);
    else if (json_is_true(json_object_get(last, "active")))
        fprintf(paper->out, "UNDER ATTACK for %.0f s", number(last, "seconds"));
    else
        fprintf(paper->out, "No attack; the last one began %.0f s ago and took %.0f s",
                number(last, "seconds_since_it_began"), number(last, "seconds"));
    if (json_is_object(last))
        fprintf(paper->out, ": %.0f rejects, %.0f a second at most", number(last, "rejects"),
                number(last, "most_per_second"));
    fputs(".\n\n", paper->out);
}

static void print_keyspaces(const json_t *body, const struct ctl_paper *paper)
{
    size_t i;
    const json_t *keyspace;
    fprintf(paper->out, "%-40s %12s %12s %12s\n", "rejects a second", "now", "minute", "hour");
    json_array_foreach(json_object_get(body, "keyspaces"), i, keyspace)
    {
        print_text(keyspace, "name", 41, paper);
        print_rates(keyspace, paper);
    }
    fprintf(paper->out, "%-41s", "all");
    print_rates(body, paper);
}

/* A table for one burden, as "rejects", with each client's share of all; none where there was none
 * of it. */
static void print_parties(const char *burden, const json_t *parties, const struct ctl_paper *paper)
{
    size_t i;
    const json_t *party;
    double total = number(parties, "total");
    if (total <= 0)
        return;
    fprintf(paper->out, "\n%-40s %-16s %-12s %12s %6s\n", "heaviest clients", "name", "user",
            burden, "%");
    json_array_foreach(json_object_get(parties, "heaviest"), i, party)
    {
        print_text(party, "address", 41, paper);
        print_text(party, "name", 17, paper);
        print_text(party, "user", 13, paper);
        fprintf(paper->out, "%12.0f %6.1f\n", number(party, "count"),
                100 * number(party, "count") / total);
    }
}

static void print_keys(const json_t *keys, const struct ctl_paper *paper)
{
    size_t i;
    const json_t *key;
    if (!json_array_size(keys))
        return;
    fprintf(paper->out, "\n%-70s %12s\n", "most asked absent keys (estimated)", "lookups");
    json_array_foreach(keys, i, key)
    {
        print_text(key, "key", 71, paper);
        fprintf(paper->out, "%12.0f\n", number(key, "count"));
    }
}

void ctl_attack_print(const json_t *body, const char *window, const struct ctl_paper *paper)
{
    const json_t *part = json_object_get(body, window), *parties;
    const char *burden;
    print_state(body, paper);
    print_keyspaces(body, paper);
    fprintf(paper->out, "\nIn the last %.0f s:\n", number(part, "seconds"));
    /* jansson's loop wants what could be changed, and changes nothing. */
    json_object_foreach((json_t *)(size_t)json_object_get(part, "clients"), burden, parties)
        print_parties(burden, parties, paper);
    print_keys(json_object_get(part, "absent_keys"), paper);
}
