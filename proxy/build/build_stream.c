/*   fingerprint ─▶ survey ─▶ the same fingerprint? ─▶ slot
 *        ▲                        │ no
 *        └────────────────────────┘
 *
 * A survey is many questions, and a table or the publication may be altered between any two of
 * them, or after the last: what it found then, good or bad, is true of no moment.
 */
#include "build/build_stream.h"

#include "base/memory.h"
#include "database/catalogue/publication_ensure.h"
#include "database/publication.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SURVEYS_MAX = 8 };

struct survey {
    const struct build_stream_options *options;
    char *fingerprint; /* the last one, or NULL */
    char *tables;      /* as it came with that: "123,456" */
    char *identities;  /* the same: "df" */
    bool again;        /* what was found does not count */
};

static int probe(struct survey *survey, struct pg_error *error)
{
    PGresult *result;
    char *sql = publication_probe_sql(survey->options->whole);
    int status = pg_session_exec(survey->options->session, sql, 0, NULL, &result, error);
    free(sql);
    if (status)
        return status;
    free(survey->tables);
    free(survey->identities);
    survey->fingerprint = xstrdup(PQgetvalue(result, 0, 0));
    survey->tables = xstrdup(PQgetvalue(result, 0, 1));
    survey->identities = xstrdup(PQgetvalue(result, 0, 6));
    PQclear(result);
    return 0;
}

/* "123,456", from the next one on. */
static uint32_t next_table(const char **list)
{
    char *end;
    uint32_t table = (uint32_t)strtoul(*list, &end, 10);
    *list = *end ? end + 1 : end;
    return table;
}

/* False, with *error, when it is of a keyspace that has rows and not there. `what` is "the table",
 * or how else it is called. */
static bool has_table(const struct build_stream_options *options, const struct keyspace *keyspace,
                      uint32_t table, const char *what, struct pg_error *error)
{
    if (table || !keyspace_has_rows(keyspace))
        return true;
    *options->blamed = keyspace;
    pg_error_say(error, "%s of keyspace %s is not there or not published", what, keyspace->name);
    return false;
}

/* What is followed for each keyspace, by its oid in the stream. */
static int read_tables(struct built *built, const struct build_stream_options *options,
                       const char *list, struct pg_error *error)
{
    const struct config *config = options->config;
    uint32_t *table = built->tables = xcalloc(config_followed(config), sizeof *built->tables);
    for (size_t i = 0; i < config->keyspace_count; i++, table++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        uint32_t found = next_table(&list);
        *table = keyspace_has_rows(keyspace) ? found : 0;
        if (!has_table(options, keyspace, found, "the table", error))
            return -EPROTO;
    }
    for (size_t i = 0; i < config->keyspace_count; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        for (size_t j = 0; j < keyspace->depends.count; j++, table++) {
            uint32_t found = next_table(&list);
            *table = keyspace_has_rows(keyspace) ? found : 0;
            if (!has_table(options, keyspace, found, "a table in `depends`", error))
                return -EPROTO;
        }
    }
    return 0;
}

/* Whether what was looked at is what is followed. What is not there is none of these. */
static bool is_followed(const struct survey *survey, const char *inspected)
{
    const char *followed = survey->tables;
    bool same = true;
    while (*followed && same) {
        uint32_t table = next_table(&followed), looked_at = next_table(&inspected);
        same = !table || !looked_at || table == looked_at;
    }
    return same;
}

/* What publication_ensure() says, or why it could not be asked. It counts when nothing was altered
 * between the last fingerprint, of which there may be none, and another, and no name led elsewhere
 * meanwhile. */
static int survey_once(struct survey *survey, struct pg_error *error)
{
    const struct build_stream_options *options = survey->options;
    struct pg_error unasked;
    char *before = survey->fingerprint, *inspected;
    survey->fingerprint = NULL;
    survey->again = false;
    int status =
        publication_ensure(options->session, options->config, &inspected, options->blamed, error);
    if (status == 0 || status == -EPROTO) {
        int probed = probe(survey, status ? &unasked : error);
        survey->again = !probed && (!before || strcmp(before, survey->fingerprint) != 0 ||
                                    (inspected && !is_followed(survey, inspected)));
        status = status ? status : probed;
    }
    free(inspected);
    free(before);
    return status;
}

/* A server that does not answer the first question is told from one that can be followed by the
 * survey. */
int build_stream_survey(struct built *built, const struct build_stream_options *options,
                        struct pg_error *error)
{
    struct survey survey = {.options = options, .again = true};
    *options->blamed = NULL;
    int status = probe(&survey, error);
    if (status && status != -EPROTO)
        return status;
    for (unsigned i = 0; i < SURVEYS_MAX && survey.again; i++)
        status = survey_once(&survey, error);
    if (survey.again) {
        pg_error_say(error,
                     "publication %s or a table is altered again and again while it is "
                     "looked at",
                     options->config->publication);
        status = -EPROTO;
    }
    if (!status)
        status = read_tables(built, options, survey.tables, error);
    built->fingerprint = survey.fingerprint;
    built->identities = survey.identities;
    free(survey.tables);
    return status;
}

/* Keyspaces that the build goes without count for nothing. */
static const struct keyspace *find_altered(const struct built *built, const struct config *config,
                                           const char *fingerprint)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (keyspace_has_rows(&config->keyspaces[i]) &&
            !publication_agrees(fingerprint, built->fingerprint, i))
            return &config->keyspaces[i];
    return NULL;
}

int build_stream_compare(const struct built *built, const struct build_stream_options *options,
                         struct pg_error *error)
{
    struct survey now = {.options = options};
    int status = probe(&now, error);
    if (status)
        return status;
    const struct keyspace *altered = find_altered(built, options->config, now.fingerprint);
    if (altered)
        pg_error_say(error,
                     "the table of keyspace %s or the publication was altered before the "
                     "snapshot that a generation was to be built from",
                     altered->name);
    free(now.fingerprint);
    free(now.tables);
    free(now.identities);
    return altered ? -ESTALE : 0;
}

int build_stream_open(struct built *built, const struct build_stream_options *options,
                      struct pg_error *error)
{
    struct pg_stream_options stream = {.conninfo = options->log->conninfo,
                                       .application = options->log->application,
                                       .connect_timeout = options->log->connect_timeout,
                                       .stop = options->log->stop,
                                       .publication = options->config->publication};
    return pg_stream_open(&built->stream, &stream, error);
}
