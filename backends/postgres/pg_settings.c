/* A key is the text that PostgreSQL prints, a table is what its name leads to, and a row is there
 * when a statement sees it. What the builder read, what a load asks and what the log sends must
 * agree in all of that, whenever their connections were opened.
 */
#include "postgres/pg_settings.h"

#include "net/allocate.h"
#include "postgres/pg_server.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

/* The schemas that there are and that the role may look into, "$user" among them by its name: a
 * schema that comes later must not put its tables before those that were checked. */
static const char schemas[] =
    "coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(s), ', ' ORDER BY n)"
    " FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS x (s, n)), '')";

const struct pg_setting pg_settings[] = {
    /* How values are printed, and texts read: PostgreSQL's own defaults. */
    {"DateStyle", SETTING_DEFAULT, "ISO,MDY", 0},
    {"IntervalStyle", SETTING_DEFAULT, "postgres", 0},
    {"extra_float_digits", SETTING_DEFAULT, "1", 0},
    {"bytea_output", SETTING_DEFAULT, "hex", 0},
    {"xmlbinary", SETTING_DEFAULT, "base64", 0},
    {"xmloption", SETTING_DEFAULT, "content", 0},
    {"array_nulls", SETTING_DEFAULT, "on", 0},
    {"transform_null_equals", SETTING_DEFAULT, "off", 0},
    /* The guard's statements are short, or scan a share of a table: to compile one takes longer
     * than it gains. */
    {"jit", SETTING_FIXED, "off", 0},
    /* The guard's own SQL, and the names in what it asks of the catalogue. */
    {"standard_conforming_strings", SETTING_FIXED, "on", 0},
    {"quote_all_identifiers", SETTING_FIXED, "off", 0},
    /* Where a policy would hide rows, a statement fails: none takes a part for the whole. */
    {"row_security", SETTING_FIXED, "off", 0},
    /* A limit leaves out rows that an index has. */
    {"gin_fuzzy_search_limit", SETTING_FIXED, "0", 0},
    /* A serializable transaction may fail for what others do, a deferrable one waits for them. */
    {"default_transaction_isolation", SETTING_FIXED, "read committed", 0},
    {"default_transaction_deferrable", SETTING_FIXED, "off", 0},
    /* Limits are meant for queries. A statement of the guard may copy a table or wait for the
     * longest transaction on the server, and the exported snapshot is a transaction that idles
     * while others read all rows. Loads have a limit of their own. */
    {"statement_timeout", SETTING_FIXED, "0", 0},
    {"lock_timeout", SETTING_FIXED, "0", 0},
    {"idle_in_transaction_session_timeout", SETTING_FIXED, "0", 0},
    {"idle_session_timeout", SETTING_LATER, "0", 140000},
    {"transaction_timeout", SETTING_LATER, "0", 170000},
    /* Not in `options`: by what the server reports of it, libpq tells a server that takes writes
     * (target_session_attrs) from one that was set not to. */
    {"default_transaction_read_only", SETTING_LATER, "off", 0},
    /* What keys, conditions and names that lack a schema mean. */
    {"search_path", SETTING_FOUND, schemas, 0},
    {"TimeZone", SETTING_FOUND, NULL, 0},
    {"timezone_abbreviations", SETTING_FOUND, NULL, 0},
    {"lc_monetary", SETTING_FOUND, NULL, 0},
    {"lc_numeric", SETTING_FOUND, NULL, 0},
    {"lc_time", SETTING_FOUND, NULL, 0},
    {"default_text_search_config", SETTING_FOUND, NULL, 0},
};

const size_t pg_settings_count = sizeof pg_settings / sizeof *pg_settings;

enum { COUNT = sizeof pg_settings / sizeof *pg_settings };

/* Past this much, a walsender sends the changes of transactions in progress instead of keeping them
 * until they end: the less it keeps, the sooner all of a large transaction is known after its
 * commit. Small transactions, most of all, still come whole. */
static const char decoding[] = " -c logical_decoding_work_mem=4MB";

/* ---- what was found first ---- */

/* By the number of the setting, for as long as the process runs and servers take them: keys that
 * applications have got used to do not change under them. Sessions are opened by threads of their
 * own. */
struct found {
    char *conninfo, *values[COUNT];
    bool may_identify; /* the server, by its cluster */
    unsigned edition;
    struct found *next;
};

static struct found *all_found;
static pthread_mutex_t found_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct found *find(const char *conninfo)
{
    const struct found *found = all_found;
    while (found && strcmp(found->conninfo, conninfo) != 0)
        found = found->next;
    return found;
}

/* NULL: not known yet. What is known is never removed, nor changed: a later edition of the same
 * conninfo comes before it. */
static const struct found *found_for(const char *conninfo)
{
    pthread_mutex_lock(&found_lock);
    const struct found *found = find(conninfo);
    pthread_mutex_unlock(&found_lock);
    return found;
}

/* Where schemas are looked for no server refuses, whatever they are: a table stays the one that was
 * found. */
static const char *kept(const struct found *before, size_t setting)
{
    return before && pg_settings[setting].value ? before->values[setting] : NULL;
}

/* `before`: what it takes the place of; or NULL. */
static struct found *read_row(const char *conninfo, const PGresult *row, const struct found *before)
{
    struct found *found = allocate(1, sizeof *found);
    int column = 0;
    found->conninfo = allocate_text(conninfo);
    for (size_t i = 0; i < COUNT; i++) {
        if (pg_settings[i].kind != SETTING_FOUND)
            continue;
        const char *value = kept(before, i);
        found->values[i] = allocate_text(value ? value : PQgetvalue(row, 0, column));
        column++;
    }
    found->may_identify = PQgetvalue(row, 0, column)[0] == 't';
    found->edition = before ? before->edition + 1 : 0;
    return found;
}

static bool is_same(const struct found *found, const struct found *other)
{
    for (size_t i = 0; i < COUNT; i++)
        if (pg_settings[i].kind == SETTING_FOUND && strcmp(found->values[i], other->values[i]) != 0)
            return false;
    return true;
}

static void drop(struct found *found)
{
    for (size_t i = 0; i < COUNT; i++)
        free(found->values[i]);
    free(found->conninfo);
    free(found);
}

static bool makes_sense(const PGresult *row)
{
    int columns = 1;
    for (size_t i = 0; i < COUNT; i++)
        columns += pg_settings[i].kind == SETTING_FOUND;
    return PQntuples(row) == 1 && PQnfields(row) == columns;
}

/* Several that connect at the same time may all be the first, or the first that was refused: then
 * they find the same. */
bool pg_settings_found(const char *conninfo, const PGresult *row, bool again)
{
    if (!makes_sense(row))
        return false;
    pthread_mutex_lock(&found_lock);
    const struct found *before = find(conninfo);
    struct found *found = !before || again ? read_row(conninfo, row, before) : NULL;
    if (found && before && is_same(found, before)) {
        drop(found);
    } else if (found) {
        found->next = all_found;
        all_found = found;
    }
    pthread_mutex_unlock(&found_lock);
    return true;
}

/* Invalid values (PostgreSQL documentation, appendix A). Anything else says nothing of them. */
bool pg_settings_are_refused(const PGresult *result)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return sqlstate && strncmp(sqlstate, "22", 2) == 0;
}

/* ---- texts ---- */

struct text {
    char *at;
    size_t length;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t more = (size_t)vsnprintf(NULL, 0, format, again);
    va_end(again);
    text->at = allocated(realloc(text->at, text->length + more + 1));
    vsnprintf(text->at + text->length, more + 1, format, arguments);
    va_end(arguments);
    text->length += more;
}

/* ---- before the session is up ---- */

/* The `options` that the connection would have had without ours; to be freed, or NULL. */
static char *own_options(const char *conninfo)
{
    PQconninfoOption *parsed = PQconninfoParse(conninfo, NULL);
    const char *own = getenv("PGOPTIONS");
    for (const PQconninfoOption *option = parsed; option && option->keyword; option++)
        if (!strcmp(option->keyword, "options") && option->val)
            own = option->val;
    char *copy = own ? allocate_text(own) : NULL;
    PQconninfoFree(parsed);
    return copy;
}

/* Blanks and backslashes end or begin something in `options`. */
static void put_option(struct text *text, const struct pg_setting *setting)
{
    put(text, " -c %s=", setting->name);
    for (const char *at = setting->value; *at; at++)
        put(text, *at == ' ' || *at == '\\' ? "\\%c" : "%c", *at);
}

static void put_options(struct text *text, enum setting_kind kind)
{
    for (size_t i = 0; i < COUNT; i++)
        if (pg_settings[i].kind == kind)
            put_option(text, &pg_settings[i]);
}

/* A backslash at their end would join what follows to them. */
static void put_own(struct text *text, char *own)
{
    size_t length = strlen(own), kept = length;
    while (kept > 0 && own[kept - 1] == '\\')
        kept--;
    own[length - (length - kept) % 2] = '\0';
    put(text, " %s", own);
}

/* Of two that set the same, the later one counts. */
char *pg_settings_options(const char *conninfo, bool replication)
{
    struct text text = {0};
    char *own = own_options(conninfo);
    put_options(&text, SETTING_DEFAULT);
    put(&text, "%s", replication ? decoding : "");
    if (own)
        put_own(&text, own);
    put_options(&text, SETTING_FIXED);
    free(own);
    return text.at;
}

/* ---- once it is up ---- */

/* A database without an encoding takes and gives any bytes, if its client has none, either. */
static bool wants_bytes(const PGconn *pq)
{
    const char *server = PQparameterStatus(pq, "server_encoding");
    const char *client = PQparameterStatus(pq, "client_encoding");
    return server && !strcmp(server, "SQL_ASCII") && client && strcmp(client, "SQL_ASCII") != 0;
}

static char *find_statement(void)
{
    struct text text = {0};
    for (size_t i = 0; i < COUNT; i++) {
        const struct pg_setting *setting = &pg_settings[i];
        if (setting->kind != SETTING_FOUND)
            continue;
        put(&text, text.at ? ", " : "SELECT ");
        if (setting->value)
            put(&text, "%s", setting->value);
        else
            put(&text, "pg_catalog.current_setting('%s')", setting->name);
    }
    put(&text, ", %s", pg_server_may_identify);
    return text.at;
}

static void put_set(struct text *text, PGconn *pq, const char *name, const char *value)
{
    char *literal = PQescapeLiteral(pq, value, strlen(value));
    put(text, "%spg_catalog.set_config('%s', %s, false)", text->at ? ", " : "SELECT ", name,
        literal ? literal : "NULL"); /* NULL: its bytes are no text of this connection's encoding */
    PQfreemem(literal);
}

/* Those of the start-up packet once more: a pooler may have kept them to itself. Where a person has
 * `options` of his own, the ones that he may choose are left as they are. */
static bool is_sent(const struct pg_setting *setting, const PGconn *pq, bool has_own)
{
    switch (setting->kind) {
    case SETTING_DEFAULT:
        return !has_own;
    case SETTING_LATER:
        return PQserverVersion(pq) >= setting->since;
    case SETTING_FIXED:
    case SETTING_FOUND:
        break;
    }
    return true;
}

static bool has_own_options(const char *conninfo)
{
    char *own = own_options(conninfo);
    bool has = own && *own;
    free(own);
    return has;
}

static char *set_statement(PGconn *pq, const char *conninfo, const struct found *found)
{
    struct text text = {0};
    bool has_own = has_own_options(conninfo);
    for (size_t i = 0; i < COUNT; i++) {
        const struct pg_setting *setting = &pg_settings[i];
        if (is_sent(setting, pq, has_own))
            put_set(&text, pq, setting->name,
                    setting->kind == SETTING_FOUND ? found->values[i] : setting->value);
    }
    put(&text, ", %s", pg_server_columns);
    if (found->may_identify)
        put(&text, ", %s", pg_server_identifier);
    return text.at;
}

int pg_settings_read_server(struct pg_server *server, const PGconn *pq, const char *conninfo,
                            const PGresult *row)
{
    int column = 0;
    bool has_own = has_own_options(conninfo);
    for (size_t i = 0; i < COUNT; i++)
        column += is_sent(&pg_settings[i], pq, has_own);
    return pg_server_read(server, row, column);
}

char *pg_settings_statement(PGconn *pq, const struct pg_settings_of *of, struct pg_server *server)
{
    const struct found *found = found_for(of->conninfo);
    switch (of->step) {
    case SETTINGS_ENCODING:
        return wants_bytes(pq) ? allocate_text("SET client_encoding TO 'SQL_ASCII'") : NULL;
    case SETTINGS_FIND:
        return found && !of->again ? NULL : find_statement();
    case SETTINGS_SET:
        server->settings = found->edition;
        return set_statement(pq, of->conninfo, found);
    case SETTINGS_POSITION:
        return server->standby ? allocate_text(pg_server_position) : NULL;
    case SETTINGS_DONE:
        break;
    }
    return NULL;
}
