/* Names, order and types are RedisBloom's, so that client libraries find what they look for. A
 * filter of the guard does not scale by stages: the next generation is as large as it must be.
 */
#include "worker/command/keys/filter_report.h"

#include "guard/guard.h"

#include <string.h>

struct figure {
    const char *name;  /* in the reply */
    const char *field; /* as BF.INFO is asked for it alone; NULL: it cannot be */
    int64_t value;
    bool is_nil;
};

enum { BUCKET_SIZE = 4 };

static void write_figure(struct buffer *out, const struct figure *figure, bool resp3)
{
    if (figure->is_nil)
        resp_write_nil(out, resp3);
    else
        resp_write_integer(out, figure->value);
}

static void write_figures(struct client *client, const struct figure *figures, size_t count)
{
    struct buffer *out = client_reply(client);
    bool resp3 = client->replies.resp3;
    resp_write_map(out, count, resp3);
    for (size_t i = 0; i < count; i++) {
        resp_write_status(out, figures[i].name);
        write_figure(out, &figures[i], resp3);
    }
}

/* In RESP2 without its name. */
static void write_field(struct client *client, const struct figure *figures, size_t count,
                        struct span field)
{
    struct buffer *out = client_reply(client);
    size_t i = 0;
    while (i < count && !span_is_word(field, figures[i].field))
        i++;
    if (i == count) {
        resp_write_error(out, "ERR Invalid information value");
    } else if (client->replies.resp3) {
        write_figures(client, &figures[i], 1);
    } else {
        resp_write_array(out, 1);
        write_figure(out, &figures[i], false);
    }
}

static void bf_info(struct client *client, const struct request *request,
                    const struct filter_stats *stats)
{
    const struct figure figures[] = {
        {"Capacity", "CAPACITY", (int64_t)stats->capacity, false},
        {"Size", "SIZE", (int64_t)stats->bytes, false},
        {"Number of filters", "FILTERS", 1, false},
        {"Number of items inserted", "ITEMS", (int64_t)stats->keys, false},
        {"Expansion rate", "EXPANSION", 0, true},
    };
    size_t count = sizeof figures / sizeof *figures;
    if (request->count > 3)
        resp_write_error(client_reply(client),
                         "ERR wrong number of arguments for 'bf.info' command");
    else if (request->count == 3)
        write_field(client, figures, count, request->arguments[2]);
    else
        write_figures(client, figures, count);
}

/* A Bloom filter has no buckets: then each place is one. */
static void cf_info(struct client *client, const struct request *request,
                    const struct filter_stats *stats)
{
    size_t in_bucket = stats->stash_size ? BUCKET_SIZE : 1;
    const struct figure figures[] = {
        {"Size", NULL, (int64_t)stats->bytes, false},
        {"Number of buckets", NULL, (int64_t)(stats->slots / in_bucket), false},
        {"Number of filters", NULL, 1, false},
        {"Number of items inserted", NULL, (int64_t)stats->keys, false},
        {"Number of items deleted", NULL, 0, false},
        {"Bucket size", NULL, (int64_t)in_bucket, false},
        {"Expansion rate", NULL, 0, false},
        {"Max iterations", NULL, 0, false},
    };
    (void)request;
    write_figures(client, figures, sizeof figures / sizeof *figures);
}

static void bf_card(struct client *client, const struct request *request,
                    const struct filter_stats *stats)
{
    (void)request;
    resp_write_integer(client_reply(client), (int64_t)stats->keys);
}

/* Before there is a filter nothing is known of it, not even that it is empty. */
static void tell(struct client *client, const struct request *request, int keyspace,
                 void (*write)(struct client *, const struct request *,
                               const struct filter_stats *))
{
    const struct view *view = client->serving->view;
    if (!view->asked[keyspace].filter) {
        resp_write_error(client_reply(client),
                         "NESTGUARD loading: keyspace %s has no filter yet: every item may exist",
                         view->config->keyspaces[keyspace].name);
        return;
    }
    struct filter_stats stats = filter_stats(view->asked[keyspace].filter);
    write(client, request, &stats);
}

static const char *const made_of_rows =
    "is a keyspace, whose filter the guard makes of the rows of its table and sizes by itself";

/* Each says why it is not done, and what is to be done in its place; `name` is of the table, in
 * upper case. */
static void refuse(struct client *client, const struct request *request,
                   const struct keyspace *keyspace)
{
    const char *name = request->command->name;
    struct buffer *out = client_reply(client);
    if (!strcmp(name, "CF.DEL"))
        resp_write_error(out,
                         "NESTGUARD evidence: nothing was removed from keyspace %s: only the "
                         "database's word that a row is gone removes its key; delete the row, or "
                         "where no log is followed ask the control port for it (nestguard ctl "
                         "delete KEY)",
                         keyspace->name);
    else if (strstr(name, ".RESERVE"))
        resp_write_error(out, "ERR item exists: %s %s (false_positive_rate)", keyspace->name,
                         made_of_rows);
    else
        resp_write_error(out, "NESTGUARD unsupported: %s %s", keyspace->name, made_of_rows);
}

/* A table of those that tell something; all other commands of the kind are refused. */
void filter_report(struct client *client, const struct request *request, int keyspace)
{
    static const struct {
        const char *name;
        void (*write)(struct client *, const struct request *, const struct filter_stats *);
    } rows[] = {{"BF.INFO", bf_info}, {"CF.INFO", cf_info}, {"BF.CARD", bf_card}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, request->command->name) == 0) {
            tell(client, request, keyspace, rows[i].write);
            return;
        }
    }
    refuse(client, request, serving_keyspace(client->serving, keyspace));
}
