/* Clients and keys are the heaviest of a stream, in bounded memory (traffic/heavy.h): a `count` may
 * be too high by its `error`, never too low.
 */
#include "control/attack.h"

#include "base/clock.h"
#include "config/config.h"
#include "http/json_bytes.h"
#include "traffic/traffic.h"

#include <string.h>

enum { MOST = 20 }; /* of clients, and of keys, in one list */

static json_t *rate_json(struct rate rate)
{
    return json_pack("{s:f, s:f, s:f}", "now", rate.now, "minute", rate.minute, "hour", rate.hour);
}

/* Null before the first. */
static json_t *last_json(const struct attack *attack)
{
    uint64_t now = clock_ms();
    if (!attack->number)
        return json_null();
    return json_pack("{s:b, s:I, s:f, s:f, s:I, s:f}", "active", attack->is_on, "number",
                     (json_int_t)attack->number, "seconds_since_it_began",
                     (double)(now - attack->since) / 1000, "seconds",
                     (double)(attack->until - attack->since) / 1000, "rejects",
                     (json_int_t)attack->rejects, "most_per_second", attack->peak);
}

static json_t *keyspaces_json(const struct traffic *traffic, const struct config *config)
{
    json_t *keyspaces = json_array();
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired)
            json_array_append_new(
                keyspaces, json_pack("{s:s, s:o}", "name", config->keyspaces[i].name,
                                     "rejects_per_second", rate_json(traffic_rate(traffic, i))));
    return keyspaces;
}

static json_t *party_json(const struct heavy_entry *entry)
{
    const struct party *party = entry->item;
    return json_pack("{s:o, s:o, s:o, s:I, s:I}", "address", json_text(party->address), "name",
                     json_text(party->name), "user", json_text(party->user), "count",
                     (json_int_t)entry->count, "error", (json_int_t)entry->error);
}

static json_t *address_json(const struct heavy_entry *entry)
{
    return json_pack("{s:o, s:I, s:I}", "address", json_text(entry->item), "count",
                     (json_int_t)entry->count, "error", (json_int_t)entry->error);
}

static json_t *heaviest_json(const struct heavy *all, json_t *(*one)(const struct heavy_entry *))
{
    struct heavy_entry entries[MOST];
    size_t count = heavy_top(all, entries, MOST);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, one(&entries[i]));
    return json_pack("{s:I, s:o}", "total", (json_int_t)heavy_total(all), "heaviest", list);
}

static json_t *key_json(const struct heavy_entry *entry, const struct config *config)
{
    const struct asked_key *key = entry->item;
    size_t length = key->length < ASKED_KEY_SIZE ? key->length : ASKED_KEY_SIZE;
    return json_pack("{s:o, s:b, s:s, s:I, s:I}", "key", json_bytes(key->text, length), "cut",
                     key->length > ASKED_KEY_SIZE, "keyspace",
                     config->keyspaces[key->keyspace].name, "count", (json_int_t)entry->count,
                     "error", (json_int_t)entry->error);
}

/* A flood of keys that are all different has none that is asked for most. */
static json_t *keys_json(const struct heavy *keys, const struct config *config)
{
    struct heavy_entry entries[MOST];
    size_t count = heavy_top(keys, entries, MOST);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (heavy_stands_out(keys, &entries[i]))
            json_array_append_new(list, key_json(&entries[i], config));
    return list;
}

static json_t *window_json(const struct traffic *traffic, const struct config *config,
                           enum traffic_window window)
{
    uint64_t ms;
    struct ledger *ledger = traffic_ledger(traffic, window, clock_ms(), &ms);
    json_t *clients = json_object(), *addresses = json_object();
    for (enum burden i = 0; i < BURDENS; i++) {
        json_object_set_new(clients, burden_name(i),
                            heaviest_json(ledger_parties(ledger, i), party_json));
        json_object_set_new(addresses, burden_name(i),
                            heaviest_json(ledger_addresses(ledger, i), address_json));
    }
    json_t *json =
        json_pack("{s:f, s:o, s:o, s:o}", "seconds", (double)ms / 1000, "clients", clients,
                  "addresses", addresses, "absent_keys", keys_json(ledger_keys(ledger), config));
    ledger_destroy(ledger);
    return json;
}

static json_t *fresh_json(const struct keeper *keeper)
{
    uint64_t ms, rejects = keeper_fresh_rejects(keeper, &ms);
    return json_pack("{s:f, s:I}", "seconds", (double)ms / 1000, "rejects", (json_int_t)rejects);
}

json_t *attack_json(const struct keeper *keeper)
{
    const struct traffic *traffic = keeper_traffic(keeper);
    const struct config *config = keeper_config(keeper);
    return json_pack(
        "{s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "last_attack", last_json(traffic_attack(traffic)),
        "threshold", (json_int_t)config->attack_threshold, "rejects_per_second",
        rate_json(traffic_rate_of_all(traffic)), "fresh", fresh_json(keeper), "keyspaces",
        keyspaces_json(traffic, config), "minute", window_json(traffic, config, TRAFFIC_MINUTE),
        "hour", window_json(traffic, config, TRAFFIC_HOUR));
}
