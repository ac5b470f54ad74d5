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

static void print_time(const char *before, double seconds, const struct ctl_paper *paper)
{
    char text[CTL_NUMBER_SIZE];
    fprintf(paper->out, "%s%s", before, ctl_seconds(seconds, text));
}

static void print_past(const json_t *last, const struct ctl_paper *paper)
{
    print_time("No attack; the last one began ", number(last, "seconds_since_it_began"), paper);
    print_time(" ago and took ", number(last, "seconds"), paper);
}

static void print_state(const json_t *body, const struct ctl_paper *paper)
{
    const json_t *last = json_object_get(body, "last_attack");
    if (!json_is_object(last))
        fputs("No attack so far", paper->out);
    else if (json_is_true(json_object_get(last, "active")))
        print_time("UNDER ATTACK for ", number(last, "seconds"), paper);
    else
        print_past(last, paper);
    if (json_is_object(last))
        fprintf(paper->out, ": %.0f reject%s, %.0f a second at most", number(last, "rejects"),
                ctl_s(number(last, "rejects")), number(last, "most_per_second"));
    fputs(".\n\n", paper->out);
}

/* A flood is an attack when the second is over in which it began; until then the rates say nothing
 * of it. */
static void print_fresh(const json_t *body, const struct ctl_paper *paper)
{
    const json_t *fresh = json_object_get(body, "fresh");
    bool active = json_is_true(json_object_get(json_object_get(body, "last_attack"), "active"));
    double rejects = number(fresh, "rejects"), threshold = number(body, "threshold");
    if (rejects <= 0)
        return;
    if (!active && threshold > 0 && rejects >= threshold)
        fputs("AN ATTACK IS BEGINNING: ", paper->out);
    fprintf(paper->out, "%.0f reject%s in the last %.1f s, which the rates do not have yet.\n\n",
            rejects, ctl_s(rejects), number(fresh, "seconds"));
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

static const json_t *first_of(const json_t *parties)
{
    return json_array_get(json_object_get(parties, "heaviest"), 0);
}

/* Where one address has more than its heaviest client: by many names, which are its own choice. */
static void print_addresses(const char *burden, const json_t *addresses, const json_t *clients,
                            const struct ctl_paper *paper)
{
    size_t i;
    const json_t *address;
    double total = number(addresses, "total");
    if (total <= 0 || number(first_of(addresses), "count") <= number(first_of(clients), "count"))
        return;
    fprintf(paper->out, "\n%-70s %12s %6s\n", "heaviest addresses", burden, "%");
    json_array_foreach(json_object_get(addresses, "heaviest"), i, address)
    {
        print_text(address, "address", 71, paper);
        fprintf(paper->out, "%12.0f %6.1f\n", number(address, "count"),
                100 * number(address, "count") / total);
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

/* Workers tell of their clients once a second. */
static bool is_anybody_unnamed(const json_t *body, const json_t *part)
{
    const json_t *parties = json_object_get(json_object_get(part, "clients"), "rejects");
    const json_t *rates = json_object_get(body, "rejects_per_second");
    return number(parties, "total") <= 0 &&
           (number(json_object_get(body, "fresh"), "rejects") > 0 || number(rates, "now") > 0);
}

void ctl_attack_print(const json_t *body, const char *window, const struct ctl_paper *paper)
{
    const json_t *part = json_object_get(body, window), *parties;
    const char *burden;
    print_state(body, paper);
    print_fresh(body, paper);
    print_keyspaces(body, paper);
    fprintf(paper->out, "\nIn the last %.0f s:\n", number(part, "seconds"));
    /* jansson's loop wants what could be changed, and changes nothing. */
    json_object_foreach((json_t *)(size_t)json_object_get(part, "clients"), burden, parties)
    {
        const json_t *addresses = json_object_get(json_object_get(part, "addresses"), burden);
        print_addresses(burden, addresses, parties, paper);
        print_parties(burden, parties, paper);
    }
    if (is_anybody_unnamed(body, part))
        fputs("\nWho it is that is rejected is known in a second.\n", paper->out);
    print_keys(json_object_get(part, "absent_keys"), paper);
}
