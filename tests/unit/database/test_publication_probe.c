/* The fingerprint must change with everything that takes rows out of the stream's sight, and with
 * nothing that happens every day. */
#include "fakes/database.h"

#include "database/publication.h"

#include <signal.h>

#define ITEMS "- {name: items, key: 'item:{id}', table: items, value: json}\n"
#define PARTS "- {name: parts, key: 'part:{a}:{b}', table: public.parts, value: json}\n"
#define MOODS "- {name: moods, key: 'mood:{mood}', table: public.moods, value: json}\n"

static const char tables[] =
    "CREATE SCHEMA first; CREATE SCHEMA other; SET search_path = public;"
    "CREATE TABLE items (id int PRIMARY KEY, payload text, nr int, deleted_at timestamptz);"
    "INSERT INTO items SELECT n, 'x', n FROM generate_series(1, 50) n;"
    "CREATE TABLE parts (a int, b text, PRIMARY KEY (a, b)) PARTITION BY RANGE (a);"
    "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);"
    "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20) PARTITION BY LIST (b);"
    "CREATE TABLE parts_2a PARTITION OF parts_2 FOR VALUES IN ('a');"
    "CREATE TYPE mood AS ENUM ('sad', 'glad');"
    "CREATE TABLE moods (mood mood PRIMARY KEY);"
    "CREATE TABLE strangers (id int PRIMARY KEY);"
    "CREATE PUBLICATION nestguard FOR TABLE items, parts, moods"
    " WITH (publish_via_partition_root = true);"
    "SET search_path = first, public";

struct answer {
    char fingerprint[300], oids[100], identities[20], names[200];
    unsigned long long insert, flush;
};

static struct answer probe(struct pg_session *session, const char *sql)
{
    struct answer answer;
    struct pg_error error;
    PGresult *result = NULL;
    if (pg_session_exec(session, sql, 0, NULL, &result, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(PQntuples(result), 1);
    assert_int_equal(PQnfields(result), 8);
    assert_in_range(strlen(PQgetvalue(result, 0, 0)), 8, 299);
    snprintf(answer.fingerprint, sizeof answer.fingerprint, "%s", PQgetvalue(result, 0, 0));
    snprintf(answer.oids, sizeof answer.oids, "%s", PQgetvalue(result, 0, 1));
    snprintf(answer.identities, sizeof answer.identities, "%s", PQgetvalue(result, 0, 6));
    snprintf(answer.names, sizeof answer.names, "%s", PQgetvalue(result, 0, 7));
    answer.insert = strtoull(PQgetvalue(result, 0, 2), NULL, 10);
    answer.flush = strtoull(PQgetvalue(result, 0, 3), NULL, 10);
    PQclear(result);
    return answer;
}

enum effect { SAME, CHANGED };

struct step {
    const char *sql;
    enum effect effect;
};

/* Each begins with what the one before left. */
static const struct step steps[] = {
    {"ANALYZE", SAME},
    {"VACUUM items", SAME},
    {"VACUUM FULL items; VACUUM parts; VACUUM FULL pg_attribute", SAME},
    {"CLUSTER items USING items_pkey", SAME},
    {"REINDEX TABLE items; REINDEX TABLE CONCURRENTLY items", SAME},
    {"VACUUM FREEZE pg_attribute; VACUUM FREEZE pg_class", SAME},
    {"INSERT INTO items VALUES (1000); DELETE FROM items WHERE id = 2", SAME},
    {"TRUNCATE items", SAME},
    {"TRUNCATE parts", CHANGED},
    {"ALTER TABLE items ADD extra int DEFAULT 1", SAME},
    {"ALTER TABLE items ADD random float8 DEFAULT random()", SAME},
    {"ALTER TABLE items ALTER extra TYPE bigint USING extra + 1", SAME},
    {"ALTER TABLE items RENAME extra TO more; ALTER TABLE items DROP more", SAME},
    {"CREATE INDEX ON items (payload); CREATE UNIQUE INDEX items_nr ON items (nr)", SAME},
    {"CREATE UNIQUE INDEX CONCURRENTLY ON items (id)", SAME},
    {"GRANT SELECT ON items TO public; COMMENT ON TABLE items IS 'x'", SAME},
    {"ALTER TABLE items SET (fillfactor = 50)", SAME},
    {"ALTER TABLE items ADD CHECK (nr > 0)", SAME},
    {"ALTER TABLE strangers ADD x int; DROP TABLE strangers; CREATE TABLE strangers (id int)",
     SAME},
    {"CREATE PUBLICATION stranger FOR TABLE items WHERE (id > 3); DROP PUBLICATION stranger", SAME},
    {"CREATE TABLE other.items (id int)", SAME},

    {"BEGIN; ALTER PUBLICATION nestguard SET (publish = 'delete');"
     "ALTER PUBLICATION nestguard SET (publish = 'insert, update, delete, truncate'); COMMIT",
     CHANGED},
    {"ALTER PUBLICATION nestguard SET (publish = 'insert')", CHANGED},
    {"ALTER PUBLICATION nestguard SET (publish = 'insert, update, delete, truncate')", CHANGED},
    {"ALTER PUBLICATION nestguard SET (publish = 'update, delete, truncate')", CHANGED},
    {"ALTER PUBLICATION nestguard SET (publish = 'insert, delete, truncate')", CHANGED},
    {"ALTER PUBLICATION nestguard SET (publish = 'insert, update, truncate')", CHANGED},
    {"ALTER PUBLICATION nestguard SET (publish = 'insert, update, delete')", CHANGED},
    {"ALTER PUBLICATION nestguard SET (publish_via_partition_root = false)", CHANGED},
    {"ALTER PUBLICATION nestguard ADD TABLE strangers", SAME},
    {"ALTER PUBLICATION nestguard DROP TABLE items", CHANGED},
    {"ALTER PUBLICATION nestguard ADD TABLE items", CHANGED},
    {"ALTER PUBLICATION nestguard SET TABLE items WHERE (id > 0), parts, moods", CHANGED},
    {"ALTER PUBLICATION nestguard SET TABLE items WHERE (id > 1), parts, moods", CHANGED},
    {"ALTER PUBLICATION nestguard SET TABLE items WHERE (nr > 1), parts, moods", CHANGED},
    {"ALTER TABLE items RENAME payload TO load", SAME},
    {"ALTER TABLE items RENAME load TO payload", SAME},
    {"VACUUM FULL pg_attribute; VACUUM FREEZE pg_attribute; REINDEX TABLE items", SAME},
    {"BEGIN; ALTER TABLE items RENAME nr TO old_nr; ALTER TABLE items ADD nr int; COMMIT", CHANGED},
    {"BEGIN; ALTER TABLE items DROP nr; ALTER TABLE items RENAME old_nr TO nr; COMMIT", CHANGED},
    {"ALTER PUBLICATION nestguard SET TABLE items (id), parts, moods", CHANGED},
    {"ALTER PUBLICATION nestguard SET TABLE items (id, nr), parts, moods", CHANGED},
    {"ALTER PUBLICATION nestguard SET TABLE items, parts, moods", CHANGED},
    {"ALTER PUBLICATION nestguard ADD TABLES IN SCHEMA other", CHANGED},
    {"ALTER PUBLICATION nestguard DROP TABLES IN SCHEMA other", CHANGED},
    {"ALTER PUBLICATION nestguard RENAME TO gone", CHANGED},
    {"DROP PUBLICATION gone", SAME},
    {"CREATE PUBLICATION nestguard FOR ALL TABLES", CHANGED},
    {"DROP PUBLICATION nestguard", CHANGED},
    {"CREATE PUBLICATION nestguard FOR TABLE items, parts, moods", CHANGED},
    {"DROP PUBLICATION nestguard; CREATE PUBLICATION nestguard FOR TABLE items, parts, moods",
     CHANGED},

    {"BEGIN; ALTER TABLE items DROP CONSTRAINT items_pkey;"
     "ALTER TABLE items ADD PRIMARY KEY (id); COMMIT",
     CHANGED},
    {"ALTER TABLE items REPLICA IDENTITY FULL", CHANGED},
    {"ALTER TABLE items REPLICA IDENTITY NOTHING", CHANGED},
    {"ALTER TABLE items ALTER nr SET NOT NULL", SAME},
    {"ALTER TABLE items REPLICA IDENTITY USING INDEX items_nr", CHANGED},
    {"DROP INDEX items_nr", CHANGED},
    {"ALTER TABLE items REPLICA IDENTITY DEFAULT", CHANGED},
    {"ALTER TABLE items DROP CONSTRAINT items_pkey", CHANGED},
    {"ALTER TABLE items ADD PRIMARY KEY (id, nr)", CHANGED},
    {"ALTER PUBLICATION nestguard DROP TABLE items", CHANGED},
    {"ALTER TABLE items SET UNLOGGED", CHANGED},
    {"ALTER TABLE items SET LOGGED", CHANGED},
    {"ALTER PUBLICATION nestguard ADD TABLE items", CHANGED},

    {"ALTER TABLE items ALTER id TYPE bigint", CHANGED},
    {"ALTER TABLE items ALTER id TYPE bigint USING id + 1000", CHANGED},
    {"ALTER TABLE items ALTER id TYPE varchar(20)", CHANGED},
    {"ALTER TABLE items ALTER id TYPE varchar(30)", CHANGED},
    {"ALTER TABLE items ALTER id TYPE varchar(30) COLLATE \"POSIX\"", CHANGED},
    {"ALTER TABLE items RENAME id TO nummer", CHANGED},
    {"ALTER TABLE items RENAME nummer TO id", CHANGED},
    {"ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", CHANGED},
    {"BEGIN; ALTER TYPE mood RENAME VALUE 'blue' TO 'sad';"
     "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'; COMMIT",
     CHANGED},

    {"ALTER TABLE items ENABLE ROW LEVEL SECURITY", CHANGED},
    {"CREATE POLICY few ON items USING (nr > 5)", CHANGED},
    {"ALTER POLICY few ON items USING (nr > 6)", CHANGED},
    {"ALTER TABLE items FORCE ROW LEVEL SECURITY", CHANGED},
    {"DROP POLICY few ON items", CHANGED},
    {"ALTER TABLE items DISABLE ROW LEVEL SECURITY", CHANGED},

    {"CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (20) TO (30)", CHANGED},
    {"CREATE TABLE parts_2b PARTITION OF parts_2 FOR VALUES IN ('b')", CHANGED},
    {"ALTER TABLE parts_2 DETACH PARTITION parts_2b", CHANGED},
    {"ALTER TABLE parts_2 ATTACH PARTITION parts_2b FOR VALUES IN ('b')", CHANGED},
    {"BEGIN; ALTER TABLE parts_2 DETACH PARTITION parts_2b;"
     "ALTER TABLE parts_2 ATTACH PARTITION parts_2b FOR VALUES IN ('b'); COMMIT",
     CHANGED},
    {"ANALYZE parts; VACUUM parts; CREATE INDEX ON parts_2b (a)", SAME},
    {"ALTER TABLE parts_2b REPLICA IDENTITY FULL", CHANGED},
    {"ALTER TABLE parts DETACH PARTITION parts_1 CONCURRENTLY", CHANGED},
    {"DROP TABLE parts_2a", CHANGED},
    {"CREATE TABLE children () INHERITS (items)", CHANGED},
    {"ALTER TABLE children NO INHERIT items", CHANGED},

    {"CREATE TABLE first.items (id int PRIMARY KEY)", CHANGED}, /* earlier in the search path */
    {"DROP TABLE first.items", CHANGED},
    {"ALTER TABLE items RENAME TO elsewhere", CHANGED},
    {"CREATE TABLE items (id int PRIMARY KEY)", CHANGED},
    {"DROP TABLE items", CHANGED},
    {"ALTER TABLE elsewhere RENAME TO items", CHANGED},
    {"DROP TABLE other.items; ALTER TABLE items SET SCHEMA other", CHANGED},
};

/* Of a fresh database. */
static struct pg_session *session_with_tables(void)
{
    struct pg_session *session = session_as("postgres");
    run_sql(session, "DROP PUBLICATION IF EXISTS nestguard");
    run_sql(session, "DROP SCHEMA IF EXISTS first CASCADE; DROP SCHEMA IF EXISTS other CASCADE;"
                     "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    run_sql(session, tables);
    return session;
}

static void fingerprint_follows_what_matters_and_nothing_else(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config = config_of(ITEMS PARTS MOODS);
    char *sql = publication_probe_sql(config);
    struct answer before = probe(session, sql);
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        run_sql(session, steps[i].sql);
        struct answer after = probe(session, sql);
        bool changed = strcmp(before.fingerprint, after.fingerprint) != 0;
        if (changed != (steps[i].effect == CHANGED))
            fail_msg("%s: the fingerprint %s", steps[i].sql, changed ? "changed" : "is the same");
        before = after;
    }
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

#define DEEP(name) "- {name: " #name ", key: '" #name ":{" #name "}', table: deep, value: json}\n"

static const char deep[] =
    "SET search_path = public; CREATE DOMAIN moody AS mood; CREATE DOMAIN moodier AS moody;"
    "CREATE TYPE pair AS (one int, other moody); CREATE TYPE span AS RANGE (subtype = mood);"
    "CREATE TABLE deep (domain moodier, list moody[], range span, several span_multirange, pair "
    "pair);"
    "SET search_path = first, public";

/* A key's text is made by all the types that are in its columns' types. */
static void labels_of_a_key_are_found_however_deep_they_are(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config =
        config_of(DEEP(domain) DEEP(list) DEEP(range) DEEP(several) DEEP(pair) ITEMS);
    char *sql = publication_probe_sql(config);
    (void)state;
    run_sql(session, deep);
    struct answer before = probe(session, sql);
    run_sql(session, "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'");
    struct answer after = probe(session, sql);
    for (size_t i = 0; i < 5; i++)
        assert_false(publication_agrees(before.fingerprint, after.fingerprint, i));
    assert_true(publication_agrees(before.fingerprint, after.fingerprint, 5));
    run_sql(session, "ALTER TYPE pair ADD ATTRIBUTE more int");
    struct answer longer = probe(session, sql);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(publication_agrees(after.fingerprint, longer.fingerprint, i), i != 4);
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

/* One keyspace shows a column of each kind; RICH all of them. */
#define COLUMN(name) "- {name: " #name ", key: '" #name ":{id}', table: rich, value: " #name "}\n"
#define RICH "- {name: rich, key: 'rich:{id}', table: public.rich, value: json}\n"
#define MADE                                                                                       \
    "- {name: made, key: 'made:{id}', table: rich, value: "                                        \
    "\"label(text) || (SELECT max(name) FROM shelf WHERE shelf.id = rich.id) || 'x'::shade\","     \
    " ttl_expression: age_of(text)}\n"
#define OWN "- {name: own, key: 'own:{id}', table: public.rich, value: text, on_miss: pass}\n"

static const char rich[] =
    "SET search_path = public;"
    "CREATE TYPE feel AS ENUM ('sad', 'glad'); CREATE TYPE far AS ENUM ('here', 'there');"
    "CREATE DOMAIN fars AS far[]; CREATE TYPE leg AS (nr int, way fars);"
    "CREATE DOMAIN trip AS leg; CREATE TYPE range AS RANGE (subtype = far);"
    "CREATE TABLE rich (id int PRIMARY KEY, text text, feel feel, trips trip[], ranges multirange,"
    " made text GENERATED ALWAYS AS (upper(text)) STORED, other int); CREATE TABLE poor (id int);"
    "CREATE TABLE things (id int, name text); CREATE VIEW shelf AS SELECT * FROM things;"
    "CREATE FUNCTION age_of(text) RETURNS int LANGUAGE sql AS $$SELECT 1$$;"
    "CREATE TYPE shade AS ENUM ('x', 'y');"
    "CREATE FUNCTION label(text) RETURNS text LANGUAGE sql AS $$SELECT $1$$;"
    "SET search_path = first, public";

enum { VALUES = 7 };

static const char rich_keyspaces[] =
    COLUMN(text) COLUMN(feel) COLUMN(trips) COLUMN(ranges) RICH OWN MADE;

/* Which of these keyspaces a step alters: a letter for each, - for those that stay, ? for those
 * that only some servers count in: 17.12 writes the rows of all columns behind an altered one anew.
 */
static const struct value_step {
    const char *sql, *altered;
} value_steps[] = {
    {"ANALYZE; VACUUM FULL rich; CLUSTER rich USING rich_pkey; REINDEX TABLE rich", "-------"},
    {"VACUUM FULL pg_attribute; VACUUM FREEZE pg_attribute; VACUUM FREEZE pg_enum", "-------"},
    {"INSERT INTO rich VALUES (1, 'a'); UPDATE rich SET text = 'b'; TRUNCATE rich", "-------"},
    {"CREATE INDEX ON rich (text); GRANT SELECT ON rich TO public", "-------"},
    {"ALTER TABLE rich ADD CHECK (id > 0); ALTER TABLE rich REPLICA IDENTITY FULL", "-------"},
    {"ALTER TABLE poor ADD x feel; DROP TABLE poor; ALTER TYPE feel OWNER TO postgres", "-------"},
    {"CREATE PUBLICATION values FOR TABLE rich; DROP PUBLICATION values", "-------"},

    {"ALTER TABLE rich ALTER other TYPE int USING other + 1", "----rom"},
    {"BEGIN; ALTER TABLE rich ALTER other TYPE bigint; ALTER TABLE rich ALTER other TYPE int;"
     " COMMIT",
     "----rom"},
    {"ALTER TABLE rich RENAME other TO another", "----rom"},
    {"ALTER TABLE rich ADD token uuid DEFAULT gen_random_uuid()", "----rom"},
    {"ALTER TABLE rich DROP token", "----rom"},
    {"ALTER TABLE rich ALTER feel TYPE feel USING 'sad'", "-f??rom"},
    {"ALTER TYPE feel RENAME VALUE 'sad' TO 'blue'", "-f--rom"},
    {"BEGIN; ALTER TYPE feel RENAME VALUE 'blue' TO 'sad';"
     "ALTER TYPE feel RENAME VALUE 'sad' TO 'blue'; COMMIT",
     "-f--rom"},
    {"ALTER TYPE far RENAME VALUE 'here' TO 'near'", "--trrom"},
    {"ALTER TYPE leg RENAME ATTRIBUTE nr TO number", "--t-rom"},
    {"ALTER TYPE leg ADD ATTRIBUTE late boolean", "--t-rom"},
    {"ALTER TYPE leg DROP ATTRIBUTE late", "--t-rom"},
    {"CREATE FUNCTION as_json(feel) RETURNS json LANGUAGE sql AS $$SELECT '1'::json$$;"
     "CREATE CAST (feel AS json) WITH FUNCTION as_json(feel)",
     "-f--rom"},
    {"CREATE OR REPLACE FUNCTION as_json(feel) RETURNS json LANGUAGE sql AS $$SELECT '2'::json$$",
     "-f--rom"},
    {"DROP CAST (feel AS json)", "-f--rom"},
    {"ALTER TABLE rich DROP feel, ADD feel feel DEFAULT 'glad'", "-f--rom"},
    {"ALTER TABLE rich RENAME TO away", "tftrrom"},
    {"ALTER TABLE away RENAME TO rich", "tftrrom"},
    {"CREATE TABLE fresh (LIKE rich); DROP TABLE rich; ALTER TABLE fresh RENAME TO rich",
     "tftrrom"},

    {"CREATE FUNCTION stranger(text) RETURNS text LANGUAGE sql AS $$SELECT $1$$;"
     "INSERT INTO things VALUES (1, 'a')",
     "-------"},
    {"CREATE OR REPLACE FUNCTION public.label(text) RETURNS text LANGUAGE sql AS $$SELECT 'x' || "
     "$1$$",
     "------m"},
    {"CREATE FUNCTION other.label(text) RETURNS text LANGUAGE sql AS $$SELECT $1$$", "------m"},
    {"DROP FUNCTION public.label(text)", "------m"},
    {"CREATE OR REPLACE FUNCTION public.age_of(text) RETURNS int LANGUAGE sql AS $$SELECT 2$$",
     "------m"},
    {"ALTER TYPE shade RENAME VALUE 'x' TO 'z'", "------m"},
    {"CREATE OR REPLACE VIEW public.shelf AS SELECT id, upper(name) AS name FROM things",
     "------m"},
    {"DROP VIEW public.shelf; ALTER TABLE things RENAME TO shelf", "------m"},
    {"ALTER TABLE shelf ALTER name TYPE text USING lower(name)", "------m"},
};

/* Of each keyspace, from an answer of a whole list. */
static void read_prints(struct pg_session *session, const char *sql, int field,
                        char prints[VALUES][40])
{
    struct pg_error error;
    PGresult *result = NULL;
    if (pg_session_exec(session, sql, 0, NULL, &result, &error) < 0)
        fail_msg("%s", error.text);
    const char *at = PQgetvalue(result, 0, field);
    for (size_t i = 0; i < VALUES; i++) {
        size_t length = strcspn(at, ",");
        assert_in_range(length, 2, 32);
        assert_int_equal(at[length], i + 1 < VALUES ? ',' : '\0');
        snprintf(prints[i], sizeof prints[i], "%.*s", (int)length, at);
        at += length + 1;
    }
    PQclear(result);
}

static void values_have_a_fingerprint_for_each_keyspace(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config = config_of(rich_keyspaces);
    char *sql = publication_values_sql(config), *probe_sql = publication_probe_sql(config);
    char before[VALUES][40], after[VALUES][40], probed[VALUES][40];
    (void)state;
    run_sql(session, rich);
    read_prints(session, sql, 0, before);
    for (size_t i = 0; i < sizeof value_steps / sizeof *value_steps; i++) {
        const struct value_step *step = &value_steps[i];
        run_sql(session, step->sql);
        read_prints(session, sql, 0, after);
        read_prints(session, probe_sql, 5, probed);
        for (size_t k = 0; k < VALUES; k++) {
            assert_string_equal(after[k], probed[k]);
            bool altered = strcmp(before[k], after[k]) != 0;
            if (step->altered[k] != '?' && altered != (step->altered[k] != '-'))
                fail_msg("%s: keyspace %zu", step->sql, k);
        }
        memcpy(before, after, sizeof before);
    }
    free(sql);
    free(probe_sql);
    config_destroy(config);
    pg_session_close(session);
}

static void a_partition_by_itself_depends_on_what_it_is_a_partition_of(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config =
        config_of("- {name: leaf, key: 'l:{a}', table: public.parts_2a, value: json}\n");
    char *sql = publication_probe_sql(config);
    struct answer before = probe(session, sql);
    (void)state;
    assert_string_equal(before.oids, "0"); /* its rows are told as those of parts */
    run_sql(session, "CREATE TABLE parts_2b PARTITION OF parts_2 FOR VALUES IN ('b')");
    assert_string_equal(probe(session, sql).fingerprint, before.fingerprint);
    run_sql(session, "ALTER TABLE parts DETACH PARTITION parts_2");
    assert_string_not_equal(probe(session, sql).fingerprint, before.fingerprint);
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

static void what_is_undone_gives_the_old_fingerprint(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config = config_of(ITEMS PARTS);
    char *sql = publication_probe_sql(config);
    struct answer before = probe(session, sql);
    (void)state;
    run_sql(session, "BEGIN; ALTER TABLE items REPLICA IDENTITY FULL");
    assert_string_not_equal(probe(session, sql).fingerprint, before.fingerprint);
    run_sql(session, "ROLLBACK");
    assert_string_equal(probe(session, sql).fingerprint, before.fingerprint);
    struct pg_session *other = session_as("postgres");
    run_sql(other, "SET search_path = first, public");
    assert_string_equal(probe(other, sql).fingerprint, before.fingerprint);
    pg_session_close(other);
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

static void oids_are_in_the_keyspaces_order_and_0_for_what_is_not_published(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config =
        config_of(PARTS "- {name: gone, key: 'g:{x}', table: gone, value: json}\n" ITEMS
                        "- {name: s, key: 's:{id}', table: strangers, value: json}\n"
                        "- {name: again, key: 'again:{nr}', table: public.items, value: json}\n");
    char *sql = publication_probe_sql(config), wanted[100];
    struct pg_error error;
    PGresult *result = NULL;
    (void)state;
    pg_session_exec(session,
                    "SELECT concat_ws(',', 'parts'::regclass::oid, 0, 'items'::regclass::oid, 0,"
                    " 'items'::regclass::oid)",
                    0, NULL, &result, &error);
    snprintf(wanted, sizeof wanted, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    assert_string_equal(probe(session, sql).oids, wanted);
    run_sql(session, "DROP PUBLICATION nestguard");
    assert_string_equal(probe(session, sql).oids, "0,0,0,0,0");
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

/* Also when it leads there again. */
static void where_a_name_has_led_elsewhere_is_told(void **state)
{
    static const struct step moves[] = {
        {"ANALYZE; VACUUM items; VACUUM FREEZE pg_class; VACUUM FREEZE pg_namespace", SAME},
        {"VACUUM FULL pg_class; VACUUM FULL pg_namespace; REINDEX TABLE items", SAME},
        {"INSERT INTO items VALUES (5000); CREATE INDEX ON items (payload)", SAME},
        {"CREATE SCHEMA stranger; CREATE TABLE stranger.items (id int); DROP SCHEMA stranger"
         " CASCADE",
         SAME},
        {"ALTER TABLE items RENAME TO gone; ALTER TABLE gone RENAME TO items", CHANGED},
        {"ALTER SCHEMA other RENAME TO gone; ALTER SCHEMA gone RENAME TO other", SAME},
        {"ALTER SCHEMA public RENAME TO gone; ALTER SCHEMA gone RENAME TO public", CHANGED},
        {"ALTER SCHEMA first RENAME TO gone; ALTER SCHEMA gone RENAME TO first", CHANGED},
    };
    struct pg_session *session = session_with_tables();
    struct config *config = config_of(ITEMS);
    char *sql = publication_probe_sql(config);
    struct answer before = probe(session, sql);
    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        run_sql(session, moves[i].sql);
        struct answer after = probe(session, sql);
        bool changed = strcmp(before.names, after.names) != 0;
        if (changed != (moves[i].effect == CHANGED))
            fail_msg("%s: %s, %s", moves[i].sql, before.names, after.names);
        assert_string_equal(before.fingerprint, after.fingerprint);
        before = after;
    }
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

static void the_identities_are_in_the_same_order(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config =
        config_of(PARTS "- {name: gone, key: 'g:{x}', table: gone, value: json}\n"
                        "- {name: i, key: 'i:{id}', table: items, value: json,"
                        " depends: [moods on mood = id, gone]}\n"
                        "- {name: s, key: 's:{id}', table: strangers, value: json,"
                        " depends: [parts]}\n");
    char *sql = publication_probe_sql(config);
    (void)state;
    assert_string_equal(probe(session, sql).identities, "d-ddd-d");
    run_sql(session, "ALTER TABLE items REPLICA IDENTITY FULL;"
                     "ALTER TABLE strangers REPLICA IDENTITY NOTHING;"
                     "ALTER TABLE moods REPLICA IDENTITY USING INDEX moods_pkey;"
                     "ALTER TABLE parts_1 REPLICA IDENTITY FULL");
    assert_string_equal(probe(session, sql).identities, "d-fni-d");
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

static void positions_are_bytes_of_the_log(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config = config_of(ITEMS);
    char *sql = publication_probe_sql(config);
    struct answer before = probe(session, sql);
    (void)state;
    assert_true(before.insert > 0 && before.flush > 0);
    run_sql(session, "INSERT INTO items SELECT n FROM generate_series(1001, 2000) n");
    struct answer after = probe(session, sql);
    assert_in_range(after.insert - before.insert, 50 * 1000, 10 * 1000 * 1000);
    assert_true(after.flush > before.insert && after.flush <= after.insert);
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

/* What a standby has that takes over. */
static void another_server_is_told_by_the_same_catalogue(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config = config_of(ITEMS);
    char *sql = publication_probe_sql(config);
    struct answer before = probe(session, sql);
    (void)state;
    pg_session_close(session);
    server_kill(&server, SIGINT);
    postgres_start(&server);
    session = session_as("postgres");
    run_sql(session, "SET search_path = first, public; SET TimeZone = 'Asia/Tokyo'");
    struct answer after = probe(session, sql);
    assert_string_not_equal(after.fingerprint, before.fingerprint);
    assert_string_not_equal(publication_server(after.fingerprint),
                            publication_server(before.fingerprint));
    size_t catalogue = strcspn(before.fingerprint, "@");
    assert_int_equal(strncmp(after.fingerprint, before.fingerprint, catalogue), 0);
    run_sql(session, "ALTER TABLE items DROP CONSTRAINT items_pkey");
    assert_string_equal(publication_server(probe(session, sql).fingerprint),
                        publication_server(after.fingerprint));
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

static void a_table_that_is_locked_does_not_hold_the_question_up(void **state)
{
    struct pg_session *session = session_with_tables(), *other = session_as("postgres");
    struct config *config = config_of(ITEMS PARTS);
    char *sql = publication_probe_sql(config);
    (void)state;
    run_sql(other, "BEGIN; LOCK TABLE public.items; LOCK TABLE public.parts");
    run_sql(session, "SET statement_timeout = '5s'");
    probe(session, sql);
    pg_session_close(other);
    free(sql);
    config_destroy(config);
    pg_session_close(session);
}

static void names_are_taken_as_they_are(void **state)
{
    struct pg_session *session = session_with_tables();
    struct config *config =
        config_of("- {name: odd, key: \"o:{\\\"it's \\\\ \\\"\\\" x\\\"}\", value: json,\n"
                  "   table: \"\\\"s'\\\\\\\".\\\"T'\\\"\\\"; \\\"\"}\n");
    char *sql = publication_probe_sql(config), without[300];
    struct pg_error error;
    (void)state;
    assert_string_equal(probe(session, sql).oids, "0");
    run_sql(session, "SET standard_conforming_strings = off");
    assert_string_equal(probe(session, sql).oids, "0");
    snprintf(without, sizeof without, "%s", probe(session, sql).fingerprint);
    run_sql(session, "CREATE SCHEMA \"s'\\\"");
    assert_int_equal(pg_session_exec(session,
                                     "CREATE TABLE \"s'\\\".\"T'\"\"; \" (\"it's \\ \"\" x\" int)",
                                     0, NULL, NULL, &error),
                     0);
    assert_string_not_equal(probe(session, sql).fingerprint, without);
    assert_int_equal(pg_session_exec(session,
                                     "ALTER PUBLICATION nestguard ADD TABLE \"s'\\\".\"T'\"\"; \"",
                                     0, NULL, NULL, &error),
                     0);
    assert_string_not_equal(probe(session, sql).oids, "0");
    free(sql);
    config_destroy(config);
    run_sql(session, "DROP SCHEMA \"s'\\\" CASCADE");
    pg_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fingerprint_follows_what_matters_and_nothing_else),
        cmocka_unit_test(labels_of_a_key_are_found_however_deep_they_are),
        cmocka_unit_test(values_have_a_fingerprint_for_each_keyspace),
        cmocka_unit_test(a_partition_by_itself_depends_on_what_it_is_a_partition_of),
        cmocka_unit_test(what_is_undone_gives_the_old_fingerprint),
        cmocka_unit_test(oids_are_in_the_keyspaces_order_and_0_for_what_is_not_published),
        cmocka_unit_test(where_a_name_has_led_elsewhere_is_told),
        cmocka_unit_test(the_identities_are_in_the_same_order),
        cmocka_unit_test(positions_are_bytes_of_the_log),
        cmocka_unit_test(another_server_is_told_by_the_same_catalogue),
        cmocka_unit_test(a_table_that_is_locked_does_not_hold_the_question_up),
        cmocka_unit_test(names_are_taken_as_they_are),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
