/* A key is the text that PostgreSQL prints, a table is what its name leads to, and a row is there
 * when a statement sees it. What the builder read, what a load asks and what the log sends must
 * agree in all of that, whenever their connections were opened.
 */
#include "postgres/pg_settings.h"

#include "net/allocate.h"
#include "postgres/pg_options.h"
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

/* Values by the number of the setting. One that differs in any of them has a number of its own. */
struct found {
    char *values[COUNT];
    unsigned edition;
    const struct found *next;
};

/* Where a connection string leads, and which of these values hold there, for as long as the process
 * runs and servers take them: keys that applications have got used to do not change under them.
 * Sessions are opened by threads of their own. */
struct known {
    char *conninfo;
    const struct found *found;
    bool may_identify; /* the server, by its cluster */
    char place[PG_SERVER_PLACE];
    struct known *next;
};

static const struct found *all_found;
static struct known *first_known;
static pthread_mutex_t found_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. */
static struct known *find(const char *conninfo)
{
    struct known *known = first_known;
    while (known && strcmp(known->conninfo, conninfo) != 0)
        known = known->next;
    return known;
}

static const struct known *find_by_place(const char *place)
{
    const struct known *known = first_known;
    while (known && strcmp(known->place, place) != 0)
        known = known->next;
    return known;
}

/* As it is now; without .found it is not known yet. Values are never removed, nor changed. */
static struct known known_of(const char *conninfo)
{
    pthread_mutex_lock(&found_lock);
    const struct known *known = find(conninfo);
    struct known copy = known ? *known : (struct known){0};
    pthread_mutex_unlock(&found_lock);
    return copy;
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
    free(found);
}

/* The one that there is with these values, in place of this, or this one. */
static const struct found *intern(struct found *found)
{
    for (const struct found *other = all_found; other; other = other->next) {
        if (is_same(found, other)) {
            drop(found);
            return other;
        }
    }
    found->edition = all_found ? all_found->edition + 1 : 0;
    found->next = all_found;
    return all_found = found;
}

/* Where schemas are looked for is a matter of the database: another has others. No server refuses
 * them, whatever they are. */
static bool is_path(size_t setting)
{
    return pg_settings[setting].value != NULL;
}

/* The row's values; but the path of `path`, and all else of `other`, where these are not NULL. */
static const struct found *read_row(const PGresult *row, const struct found *path,
                                    const struct found *other)
{
    struct found *found = allocate(1, sizeof *found);
    int column = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (pg_settings[i].kind != SETTING_FOUND)
            continue;
        const struct found *from = is_path(i) ? path : other;
        found->values[i] = allocate_text(from ? from->values[i] : PQgetvalue(row, 0, column));
        column++;
    }
    return intern(found);
}

/* The same database by another name, role or password has what it had by the one before; another
 * has its schemas, and the values of the process's first. */
static const struct found *find_first(const PGresult *row, const char *place)
{
    const struct known *same = find_by_place(place);
    if (same)
        return same->found;
    return read_row(row, NULL, first_known ? first_known->found : NULL);
}

/* All else than where tables are looked for: a table stays the one that was found. */
static void find_again(const struct known *known, const PGresult *row)
{
    const struct found *before = known->found, *now = read_row(row, before, NULL);
    for (struct known *other = first_known; other; other = other->next)
        if (other->found == before && !strcmp(other->place, known->place))
            other->found = now;
}

/* The first one stays the first. */
static struct known *add(const char *conninfo, const char *place, const PGresult *row)
{
    struct known *known = allocate(1, sizeof *known), **end = &first_known;
    known->conninfo = allocate_text(conninfo);
    snprintf(known->place, sizeof known->place, "%s", place);
    known->found = find_first(row, place);
    while (*end)
        end = &(*end)->next;
    return *end = known;
}

static int count_found(void)
{
    int columns = 0;
    for (size_t i = 0; i < COUNT; i++)
        columns += pg_settings[i].kind == SETTING_FOUND;
    return columns;
}

/* Several that connect at the same time may all be the first, or the first that was refused: then
 * they find the same. */
bool pg_settings_found(const char *conninfo, const PGresult *row, bool again)
{
    int columns = count_found();
    if (PQntuples(row) != 1 || PQnfields(row) != columns + 2)
        return false;
    pthread_mutex_lock(&found_lock);
    struct known *known = find(conninfo);
    if (!known)
        known = add(conninfo, PQgetvalue(row, 0, columns + 1), row);
    else if (again)
        find_again(known, row);
    known->may_identify = PQgetvalue(row, 0, columns)[0] == 't';
    pthread_mutex_unlock(&found_lock);
    return true;
}

/* It may be another since it was found: a server that was restarted, or promoted. */
static void note_place(const char *conninfo, const struct pg_server *server)
{
    pthread_mutex_lock(&found_lock);
    struct known *known = find(conninfo);
    if (known)
        pg_server_place(server, known->place);
    pthread_mutex_unlock(&found_lock);
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
    char *own = pg_options_own(conninfo);
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
    put(&text, ", %s, %s", pg_server_may_identify, pg_server_place_column);
    return text.at;
}

static void put_set(struct text *text, PGconn *pq, const char *name, const char *value)
{
    char *literal = PQescapeLiteral(pq, value, strlen(value));
    put(text, "%spg_catalog.set_config('%s', %s, false)", text->at ? ", " : "SELECT ", name,
        literal ? literal : "NULL"); /* NULL: its bytes are no text of this connection's encoding */
    PQfreemem(literal);
}

/* Those of the start-up packet once more: a pooler may have kept them to itself. */
static bool is_sent(const struct pg_setting *setting, const PGconn *pq)
{
    return setting->kind != SETTING_LATER || PQserverVersion(pq) >= setting->since;
}

/* What a person has chosen stands. A date's order may be chosen alone. */
static void put_default(struct text *text, PGconn *pq, const struct pg_setting *setting,
                        const char *own)
{
    struct text style = {0};
    char *value = pg_options_value(own, setting->name);
    if (value && !strcmp(setting->name, "DateStyle"))
        put(&style, "ISO,%s", value);
    put_set(text, pq, setting->name, style.at ? style.at : value ? value : setting->value);
    free(style.at);
    free(value);
}

static char *set_statement(PGconn *pq, const struct known *known)
{
    struct text text = {0};
    char *own = pg_options_own(known->conninfo);
    for (size_t i = 0; i < COUNT; i++) {
        const struct pg_setting *setting = &pg_settings[i];
        if (!is_sent(setting, pq))
            continue;
        if (setting->kind == SETTING_DEFAULT)
            put_default(&text, pq, setting, own);
        else
            put_set(&text, pq, setting->name,
                    setting->kind == SETTING_FOUND ? known->found->values[i] : setting->value);
    }
    put(&text, ", %s", pg_server_columns);
    if (known->may_identify)
        put(&text, ", %s", pg_server_identifier);
    free(own);
    return text.at;
}

int pg_settings_read_server(struct pg_server *server, const PGconn *pq, const char *conninfo,
                            const PGresult *row)
{
    int column = 0;
    for (size_t i = 0; i < COUNT; i++)
        column += is_sent(&pg_settings[i], pq);
    int rc = pg_server_read(server, row, column);
    if (!rc)
        note_place(conninfo, server);
    return rc;
}

char *pg_settings_statement(PGconn *pq, const struct pg_settings_of *of, struct pg_server *server)
{
    struct known known = known_of(of->conninfo);
    switch (of->step) {
    case SETTINGS_ENCODING:
        return wants_bytes(pq) ? allocate_text("SET client_encoding TO 'SQL_ASCII'") : NULL;
    case SETTINGS_FIND:
        return known.found && !of->again ? NULL : find_statement();
    case SETTINGS_SET:
        server->settings = known.found->edition;
        return set_statement(pq, &known);
    case SETTINGS_POSITION:
        return server->standby ? allocate_text(pg_server_position) : NULL;
    case SETTINGS_DONE:
        break;
    }
    return NULL;
}
