"""`nestguard check` finds what is wrong with cache and database, and what it prints mends it."""
import http.server
import json
import re
import threading

import psycopg2
import pytest

import servers
from checking import GOOD, assert_in_order, check, keyspace, run_check  # check is a fixture
from ports import free_port


def refuse(check, *parts, level="error", **settings):
    """The one finding holds all the parts; returns its remedy."""
    report = check(keyspace(**settings))
    text, remedy = report.one(level)
    for part in parts:
        assert part in text, report.text
    assert report.status == (1 if level == "error" else 0)
    return remedy


def test_good_configuration_is_in_order_and_names_the_versions(check, database, cache):
    database.execute(GOOD)
    report = check(keyspace(), keyspace(name="kinds", key="kind:{kind}:{id}", value="json",
                                        where="deleted_at IS NULL"))
    assert_in_order(report)
    postgres = database.value("SHOW server_version").split()[0]
    redis = cache.client().info("server")["redis_version"]
    assert report.last == (f"everything is in order: 2 keyspaces, PostgreSQL {postgres}, "
                           f"Redis {redis}")


def test_finding_names_keyspace_file_and_line(check):
    place = check(keyspace(table="nothing")).findings[0][0]
    assert re.fullmatch(r"keyspace items \(.*nestguard\.yaml:\d+\)", place)


def test_all_findings_of_all_keyspaces_are_reported_at_once(check, database):
    database.execute(GOOD)
    report = check(keyspace(value="paylod"), keyspace(name="b", key="b:{nr}"),
                   keyspace(name="c", key="c:{id}", table="gone", where="true"))
    assert report.levels() == ["error"] * 3
    assert report.last == "3 errors, 0 warnings" and report.status == 1


def test_warning_alone_does_not_fail(check, database):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    report = check(keyspace())
    text, remedy = report.one("warning")
    assert "empty string" in text and report.status == 0
    assert report.last == "0 errors, 1 warning"
    database.execute(remedy)
    assert_in_order(check(keyspace()))


def test_what_is_needed_is_told_apart_from_what_is_advised(check, database):
    """Both parts are SQL as they stand, whose comments say why."""
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text);"
                     "REVOKE ALL ON items FROM guard")
    text = check(keyspace()).text
    said = re.fullmatch(r"(-- needed\n.*?)(-- advised\n.*?\n)(?:keyspace .*\n)?1 error, 2 warn.*",
                        text, re.DOTALL)
    assert said, text
    needed, advised = said.groups()
    assert re.search(r"-- keyspace items .*: error: role guard may not read id, payload of .*\n"
                     r"    GRANT SELECT ON public.items TO guard;\n", needed), text
    assert re.search(r"-- keyspace items .*: warning: value: column payload may be NULL: .*\n"
                     r"    ALTER TABLE public.items ALTER COLUMN payload SET NOT NULL;\n", advised)
    assert "GRANT DELETE" in advised
    database.execute(needed)
    assert check(keyspace()).levels() == ["warning", "warning"]
    database.execute(advised)
    assert_in_order(check(keyspace()))


def test_a_lower_limit_of_the_cache_is_told(check, database, cache):
    database.execute(GOOD)
    admin = cache.client()
    before = admin.config_get("proto-max-bulk-len")["proto-max-bulk-len"]
    admin.config_set("proto-max-bulk-len", 1024 * 1024)
    try:
        text, _ = check(keyspace()).one("warning")
        assert "proto-max-bulk-len is 1048576" in text and "max_bulk is 536870912" in text
    finally:
        admin.config_set("proto-max-bulk-len", before)


def test_fewer_places_in_the_cache_than_the_guard_may_want_are_told(check, database, cache):
    database.execute(GOOD)
    admin = cache.client()
    before = admin.config_get("maxclients")["maxclients"]
    admin.config_set("maxclients", 100)
    try:
        report = check(keyspace())
        assert report.status == 0
        assert "note: maxclients is 100, and own_connections of all workers may be more" in report.text
    finally:
        admin.config_set("maxclients", before)


@pytest.fixture
def configure(cache):
    """configure(name, value), until the end of the test."""
    admin, before = cache.client(), {}

    def change(name, value):
        before.setdefault(name, admin.config_get(name)[name])
        admin.config_set(name, value)

    yield change
    for name, value in before.items():
        admin.config_set(name, value)


@pytest.mark.parametrize("limit", ["normal 33554432 0 0", "normal 0 1048576 10"])
def test_a_limit_of_output_by_which_all_who_share_a_connection_are_lost_is_told(
        check, database, cache, configure, limit):
    database.execute(GOOD)
    configure("client-output-buffer-limit", limit)
    text, remedy = check(keyspace()).one("warning")
    assert "client-output-buffer-limit is set for normal clients" in text
    name, value = remedy.removeprefix("CONFIG SET ").split(" ", 1)
    cache.client().config_set(name, value.strip('"'))
    assert_in_order(check(keyspace()))


@pytest.mark.parametrize("limit", ["64mb", "5%"])
def test_a_cache_that_evicts_no_connection_that_is_to_stay_is_in_order(
        check, database, configure, limit):
    database.execute(GOOD)
    configure("maxmemory-clients", limit)
    assert_in_order(check(keyspace()))


class TestJson:
    def test_every_finding_has_the_same_shape(self, check, database, cache, tmp_path):
        database.execute(GOOD + "REVOKE DELETE ON items FROM guard")
        check(keyspace(), keyspace(name="b", key="b:{id}", table="itmes"))
        told = json.loads(run_check(tmp_path / "nestguard.yaml", "--json").stdout)
        findings = told.pop("findings")
        assert told == {"ok": False, "errors": 1, "warnings": 1, "notes": 1,
                        "cache": cache.client().info("server")["redis_version"],
                        "database": database.value("SHOW server_version").split()[0]}
        assert all(sorted(one) == ["level", "place", "remedy", "sql", "text"] for one in findings)
        assert sorted((one["level"], one["sql"], one["remedy"]) for one in findings
                      if one["level"] != "note") == [
            ("error", None, "table: public.items"),
            ("warning", *["GRANT DELETE ON public.items TO guard;"] * 2)]

    def test_a_file_with_errors_is_told_as_well(self, tmp_path):
        process = run_check(tmp_path / "none.yaml", "--json")
        told = json.loads(process.stdout)
        assert process.returncode == 1 and told["errors"] == 1
        assert told["cache"] is None and told["database"] is None
        assert "none.yaml" in told["findings"][0]["place"] + told["findings"][0]["text"]


class TestTable:
    def test_missing_one_is_suggested_by_similar_names(self, check, database):
        database.execute(GOOD)
        remedy = refuse(check, "itmes does not exist", "public.items", table="itmes")
        assert remedy == "table: public.items"

    def test_one_of_another_schema_is_suggested(self, check, database):
        database.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY)")
        remedy = refuse(check, "orders does not exist", "search path", table="orders")
        assert remedy == "table: shop.orders"

    def test_one_whose_name_needs_quotes_is_suggested_with_them(self, check, database):
        database.execute('CREATE TABLE "Items" (id int PRIMARY KEY, payload text NOT NULL)')
        remedy = refuse(check, "does not exist", table="Items")
        assert remedy == 'table: public."Items"'
        assert_in_order(check(keyspace(table='public."Items"')))

    def test_missing_one_without_a_likeness_has_no_suggestion(self, check):
        assert refuse(check, "does not exist", table="public.zebra") is None

    @pytest.mark.parametrize("sql, word", [
        ("CREATE SEQUENCE x", "sequence"),
        ("CREATE INDEX x ON items (kind)", "index"),
    ])
    def test_what_is_no_table_is_refused(self, check, database, sql, word):
        database.execute(GOOD + sql)
        refuse(check, "x", word, table="x")

    @pytest.mark.parametrize("kind", ["view", "materialized view"])
    def test_view_is_refused_with_a_log(self, check, database, kind):
        database.execute(GOOD + f"CREATE {kind} x AS SELECT * FROM items; GRANT SELECT ON x TO guard")
        findings = check(keyspace(table="x"), sync="replication", control=None).text
        assert f"public.x is a {kind}: the database's log does not say" in findings
        assert "sync: poll" in findings

    @pytest.mark.parametrize("sync", ["poll", "none"])
    @pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
    def test_view_is_accepted_without_a_log(self, check, database, kind, sync):
        database.execute(GOOD + f"CREATE {kind} x AS SELECT * FROM items; GRANT SELECT ON x TO guard")
        findings = check(keyspace(table="x"), sync=sync, control=None)
        assert findings.levels() == [], findings.text

    @pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
    def test_views_rows_that_share_a_key_are_a_warning(self, check, database, kind):
        database.execute(GOOD + f"""CREATE {kind} x AS
            SELECT n % 3 AS id, 'payload ' || n AS payload FROM generate_series(1, 4) n;
            GRANT SELECT ON x TO guard""")
        text, _ = check(keyspace(table="x"), sync="poll", control=None).one("warning")
        assert "several rows of public.x have the key item:1" in text

    def test_foreign_table_is_refused(self, check, database):
        database.execute("CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw;"
                         "CREATE FOREIGN TABLE x (id int) SERVER f OPTIONS (program 'true')")
        refuse(check, "foreign table", table="x")

    def test_partitioned_one_is_accepted(self, check, database):
        database.execute("""
            CREATE TABLE items (id bigint, payload text NOT NULL, PRIMARY KEY (id))
                PARTITION BY HASH (id);
            CREATE TABLE items_0 PARTITION OF items FOR VALUES WITH (MODULUS 1, REMAINDER 0)""")
        assert_in_order(check(keyspace()))

    def test_one_with_inheriting_tables_is_a_warning(self, check, database):
        database.execute(GOOD + "CREATE TABLE old_items () INHERITS (items)")
        refuse(check, "inherit", level="warning")


class TestExpressions:
    """Each is tried on a row."""
    ROWS = GOOD + "INSERT INTO items VALUES (1, '17', 'a'), (2, '18', 'b');"

    @pytest.mark.parametrize("value", [
        "lower(payload)", "payload || kind", "payload::json", "items.payload::int + 1",
        "jsonb_build_object('id', id, 'n', payload)::text", "encode(payload::bytea, 'hex') -- hm"])
    def test_one_that_goes_well_is_in_order_and_its_cost_is_told(self, check, database, value):
        database.execute(self.ROWS)
        report = check(keyspace(value=value))
        assert_in_order(report)
        [note] = [note for note in report.notes if note.startswith("value:")]
        assert re.search(r"expects a load to cost \d+\.\d+, of which \d+\.\d+ are for finding",
                         note), note

    @pytest.mark.parametrize("value, parts", [
        ("lower(paylaod)", ["value, an expression over a row, is not accepted",
                            'column "paylaod" does not exist']),
        ("lower(payload", ["is not accepted", "syntax error"]),
        ("unnest(ARRAY[payload])", ["is not accepted", "set-returning"]),
        ("(SELECT id, payload)", ["is not accepted", "one column"])])
    def test_one_that_makes_no_sense_is_an_error_in_the_servers_words(self, check, database, value,
                                                                      parts):
        database.execute(self.ROWS)
        refuse(check, *parts, value=value)

    @pytest.mark.parametrize("value, words", [("1 / (id - 1)", "division by zero"),
                                              ("payload::date", "value out of range")])
    def test_one_that_fails_for_a_row_is_a_warning(self, check, database, value, words):
        database.execute(self.ROWS)
        refuse(check, "value fails for item:1: ", words, "answered with an error",
               level="warning", value=value)

    def test_a_ttl_is_tried_too(self, check, database):
        database.execute(self.ROWS)
        assert_in_order(check(keyspace(ttl_expression="id * interval '1 hour'")))
        assert_in_order(check(keyspace(ttl_expression="NULL", value="lower(payload)")))
        refuse(check, "ttl_expression, an expression over a row, is not accepted", "lifetime",
               ttl_expression="(lifetime)")
        refuse(check, "ttl_expression fails for item:1: division by zero", level="warning",
               ttl_expression="1 / (id - 1)")
        refuse(check, "value or ttl_expression fails for item:1", level="warning",
               ttl_expression="1 / (id - 1)", value="lower(payload)")
        refuse(check, 'ttl_expression gives "a" for item:1', "is not cached", level="warning",
               ttl_expression="kind")

    def test_without_a_row_there_is_nothing_to_try_it_on(self, check, database):
        database.execute(GOOD)
        report = check(keyspace(value="1 / (id - 1)"))
        assert_in_order(report)
        assert "value: there is no row to try it on" in report.notes

    @pytest.mark.parametrize("value, what", [
        ("payload || now()", "now()"), ("payload || current_date", "current_date"),
        ("payload || random()", "random()"), ("own(payload)", "own()"),
        ("payload || (SELECT count(*) FROM others)", "a subquery")])
    def test_what_changes_without_the_row_is_a_warning(self, check, database, value, what):
        database.execute(self.ROWS + "CREATE TABLE others (id int); CREATE FUNCTION own(text)"
                         " RETURNS text STABLE LANGUAGE sql AS 'SELECT $1'; GRANT SELECT ON others"
                         " TO public")
        refuse(check, f"the result of {what} changes", "until its ttl is over", level="warning",
               value=value)

    def test_a_costly_one_is_a_warning(self, check, database):
        database.execute(self.ROWS + "CREATE TABLE others (id int, name text); INSERT INTO others"
                         " SELECT n, 'x' FROM generate_series(1, 100000) n; ANALYZE others")
        report = check(keyspace(
            value="(SELECT max(name) FROM others WHERE others.id = items.id)"))
        assert report.levels() == ["warning"] * 2, report.text
        assert any("may lack an index" in text for _, _, text, _ in report.findings)

    def test_a_column_whose_name_looks_like_one_is_written_in_quotes(self, check, database):
        database.execute(GOOD + 'ALTER TABLE items RENAME payload TO "total (EUR)"')
        remedy = refuse(check, "is a column of table public.items and reads as an expression",
                        value="total (EUR)")
        assert remedy == """value: '"total (EUR)"'"""
        assert_in_order(check(keyspace(value='"total (EUR)"')))

    def test_a_role_that_may_not_read_it_is_told(self, check, database):
        database.execute(self.ROWS + "REVOKE ALL ON items FROM guard;"
                         "GRANT SELECT (id), DELETE ON items TO guard")
        refuse(check, "permission denied", value="lower(payload)")


class TestColumns:
    def test_missing_ones_are_named_with_those_that_exist(self, check, database):
        database.execute(GOOD)
        refuse(check, "key:", "no column nr", "id, payload, kind, deleted_at",
               key="item:{nr}")
        refuse(check, "value:", "no column body", "id, payload, kind, deleted_at",
               value="body")

    def test_slip_and_case_are_suggested(self, check, database):
        database.execute(GOOD)
        assert refuse(check, "case of letters", key="item:{ID}") == \
            "in the key: {id} in place of {ID}"
        assert refuse(check, "no column paylaod", value="paylaod") == "value: payload"

    def test_dropped_column_does_not_exist(self, check, database):
        database.execute(GOOD + "ALTER TABLE items DROP COLUMN payload")
        refuse(check, "no column payload")

    @pytest.mark.parametrize("kind", ["json", "xml", "point"])
    def test_type_without_equality_is_refused(self, check, database, kind):
        database.execute(f"CREATE TABLE items (id {kind} NOT NULL, nr int UNIQUE NOT NULL, "
                         "payload text NOT NULL)")
        refuse(check, f"column id is of type {kind}", "equality", key="item:{nr}:{id}")

    def test_nullable_key_column_is_a_warning_with_its_remedy(self, check, database):
        database.execute('CREATE TABLE items ("Nr" int UNIQUE, payload text NOT NULL)')
        remedy = refuse(check, "column Nr may be NULL", level="warning", key="item:{Nr}")
        database.execute(remedy)
        assert_in_order(check(keyspace(key="item:{Nr}")))

    def test_domain_that_is_not_null_is_not_nullable(self, check, database):
        database.execute("CREATE DOMAIN nr AS int NOT NULL;"
                         "CREATE TABLE items (id nr UNIQUE, payload text NOT NULL)")
        assert_in_order(check(keyspace()))


class TestUniqueIndex:
    TABLE = "CREATE TABLE items (id int NOT NULL, payload text NOT NULL, kind text NOT NULL, " \
            "deleted_at timestamptz);"

    def test_missing_one_is_refused_and_the_remedy_makes_it(self, check, database):
        database.execute(self.TABLE)
        remedy = refuse(check, "no unique index")
        assert remedy.startswith("CREATE UNIQUE INDEX CONCURRENTLY ON public.items (id)")
        database.execute(remedy)
        assert_in_order(check(keyspace()))

    def test_remedy_quotes_names_and_takes_the_condition_along(self, check, database):
        database.execute('CREATE TABLE "It""ems" ("Id" int NOT NULL, "b c" text NOT NULL, '
                         'payload text NOT NULL)')
        settings = {"table": '"It""ems"', "key": "i:{b c}:{Id}", "where": "\"Id\" > 5"}
        remedy = refuse(check, "no unique index", **settings)
        database.execute(remedy)
        assert_in_order(check(keyspace(**settings)))

    @pytest.mark.parametrize("index", [
        "(payload)", "(id, payload)", "((id + 1))", "(id) WHERE kind = 'a'",
    ])
    def test_one_that_says_nothing_of_the_key_does_not_count(self, check, database, index):
        database.execute(self.TABLE + f"CREATE UNIQUE INDEX ON items {index}")
        refuse(check, "no unique index")

    def test_ordinary_index_does_not_count(self, check, database):
        database.execute(self.TABLE + "CREATE INDEX ON items (id)")
        refuse(check, "no unique index")

    def test_one_over_fewer_columns_suffices(self, check, database):
        database.execute(self.TABLE + "CREATE UNIQUE INDEX ON items (id)")
        assert_in_order(check(keyspace(key="item:{kind}:{id}")))

    def test_column_that_it_only_includes_does_not_matter(self, check, database):
        database.execute(self.TABLE + "CREATE UNIQUE INDEX ON items (id) INCLUDE (payload)")
        assert_in_order(check(keyspace()))

    def test_deferrable_one_does_not_count(self, check, database):
        database.execute(self.TABLE + "ALTER TABLE items ADD UNIQUE (id) DEFERRABLE")
        refuse(check, "no unique index", "deferrable")

    def test_invalid_one_does_not_count(self, check, database):
        database.execute(self.TABLE + "INSERT INTO items VALUES (1, '', ''), (1, '', '')")
        with pytest.raises(psycopg2.errors.UniqueViolation):
            database.execute("CREATE UNIQUE INDEX CONCURRENTLY broken ON items (id)")
        refuse(check, "no unique index", "broken is not valid")

    @pytest.mark.parametrize("where", [
        "deleted_at IS NULL", "  ((deleted_at is\n null)) ", "items.deleted_at IS NULL -- soft",
    ])
    def test_partial_one_counts_for_the_same_condition(self, check, database, where):
        database.execute(self.TABLE + "CREATE UNIQUE INDEX ON items (id) WHERE deleted_at IS NULL")
        assert_in_order(check(keyspace(where=where)))

    @pytest.mark.parametrize("where", [None, "deleted_at IS NOT NULL", "kind = 'IS NULL'"])
    def test_partial_one_does_not_count_for_another_condition(self, check, database, where):
        database.execute(self.TABLE + "CREATE UNIQUE INDEX ON items (id) WHERE deleted_at IS NULL")
        settings = {"where": where} if where else {}
        refuse(check, "no unique index", "(deleted_at IS NULL)", **settings)

    def test_conditions_that_no_partition_meets_are_different(self, check, database):
        database.execute("""
            CREATE TABLE items (id int NOT NULL, payload text NOT NULL) PARTITION BY LIST (id);
            CREATE TABLE items_1 PARTITION OF items FOR VALUES IN (1);
            CREATE UNIQUE INDEX ON items (id, payload) WHERE id = 8""")
        settings = {"key": "item:{id}:{payload}"}
        refuse(check, "no unique index", "(id = 8)", where="id = 7", **settings)
        assert_in_order(check(keyspace(where="(ID  = 8)", **settings)))

    def test_remedy_for_a_partitioned_table_can_be_run(self, check, database):
        database.execute("""
            CREATE TABLE items (id int NOT NULL, payload text NOT NULL) PARTITION BY HASH (id);
            CREATE TABLE items_0 PARTITION OF items FOR VALUES WITH (MODULUS 1, REMAINDER 0)""")
        database.execute(refuse(check, "no unique index"))
        assert_in_order(check(keyspace()))


class TestWhere:
    @pytest.mark.parametrize("where, words", [
        ("deleted_at IS", "syntax error"), ("id + 1", "type boolean"),
        ("gone IS NULL", 'column "gone" does not exist'), ("id = 'x'", "invalid input syntax"),
        ("count(*) > 1", "aggregate"), ("true; DROP TABLE items", "syntax error"),
        ("nothing(id)", "does not exist"), ("id = $1", "parameter"),
    ])
    def test_what_the_server_refuses_is_reported_in_its_words(self, check, database, where, words):
        database.execute(GOOD)
        refuse(check, "where is not accepted", words, where=where)
        assert database.value("SELECT count(*) FROM items") == 0

    @pytest.mark.parametrize("where, words", [
        ("deleted_at > now()", "now()"), ("random() < 0.5", "random()"),
        ("deleted_at > CURRENT_TIMESTAMP", "current_timestamp"),
        ("id IN (SELECT 1)", "a subquery"),
    ])
    def test_result_that_changes_by_itself_is_a_warning(self, check, database, where, words):
        database.execute(GOOD)
        refuse(check, "where", words, level="warning", where=where)

    @pytest.mark.parametrize("where", [
        "lower(kind) = 'now()'", "id IN (1, 2) AND (kind = 'select' OR abs(id) > 3)",
        "deleted_at IS NULL",
    ])
    def test_result_that_follows_from_the_row_is_in_order(self, check, database, where):
        database.execute(GOOD)
        assert_in_order(check(keyspace(where=where)))


class TestPermission:
    def test_missing_select_and_delete_are_mended_by_the_remedies(self, check, database):
        database.execute(GOOD + "REVOKE ALL ON items FROM guard")
        report = check(keyspace())
        assert report.levels() == ["error", "warning"], report.text
        assert "may not read id, payload of table public.items" in report.findings[0][2]
        assert "?row=delete" in report.findings[1][2]
        for finding in report.findings:
            database.execute(finding[3])
        assert_in_order(check(keyspace()))

    def test_select_on_the_columns_that_are_read_suffices(self, check, database):
        database.execute(GOOD + "REVOKE SELECT ON items FROM guard;"
                                "GRANT SELECT (id, payload) ON items TO guard")
        assert_in_order(check(keyspace()))
        refuse(check, "may not read kind, deleted_at", value="json")

    def test_column_that_only_the_condition_reads_is_missed(self, check, database):
        database.execute(GOOD + "REVOKE SELECT ON items FROM guard;"
                                "GRANT SELECT (id, payload) ON items TO guard")
        settings = {"where": "kind = 'a'"}
        database.execute(refuse(check, "where", "permission denied", **settings))
        assert_in_order(check(keyspace(**settings)))

    def test_remedy_is_not_given_for_another_table_of_the_condition(self, check, database):
        database.execute(GOOD + "CREATE TABLE others (nr int); REVOKE ALL ON others FROM guard")
        remedy = refuse(check, "permission denied for table others",
                        where="id IN (SELECT nr FROM others)")
        assert remedy is None

    def test_missing_usage_of_the_schema_is_mended_by_the_remedy(self, check, database):
        database.execute('CREATE SCHEMA "Shop"; REVOKE ALL ON SCHEMA "Shop" FROM guard;'
                         'CREATE TABLE "Shop".items (id int PRIMARY KEY, payload text NOT NULL)')
        settings = {"table": '"Shop".items'}
        remedy = refuse(check, "may not use the schema", **settings)
        assert remedy == 'GRANT USAGE ON SCHEMA "Shop" TO guard;'
        database.execute(remedy)
        assert_in_order(check(keyspace(**settings)))

    def test_delete_is_not_missed_without_a_control_port(self, check, database):
        database.execute(GOOD + "REVOKE DELETE ON items FROM guard")
        refuse(check, "may not delete", level="warning")
        assert_in_order(check(keyspace(), control=None))

    def test_row_security_is_mended_by_the_remedy(self, check, database):
        """Also where a policy shows all rows: the guard's sessions refuse what policies touch."""
        database.execute(GOOD + "ALTER TABLE items ENABLE ROW LEVEL SECURITY;"
                                "CREATE POLICY every ON items USING (true)")
        remedy = refuse(check, "row-level security", "reject")
        assert remedy == "ALTER ROLE guard BYPASSRLS;"
        try:
            database.execute(remedy)
            assert_in_order(check(keyspace()))
        finally:
            database.execute("ALTER ROLE guard NOBYPASSRLS")

    def test_row_security_does_not_matter_to_who_bypasses_it(self, check, database):
        database.execute(GOOD + "ALTER TABLE items ENABLE ROW LEVEL SECURITY;")
        url = database.url.replace("guard@", "postgres@")
        assert_in_order(check(keyspace(), database=url))


class TestServer:
    def test_limit_of_the_role_is_mended_by_the_remedy(self, check, database):
        database.execute(GOOD + "DROP ROLE IF EXISTS narrow; CREATE ROLE narrow LOGIN "
                                "CONNECTION LIMIT 3; GRANT SELECT, DELETE ON items TO narrow")
        url = database.url.replace("guard@", "narrow@")
        try:
            text, remedy = check(keyspace(), database=url).one("error")
            assert "3 connections" in text and "needs 6" in text
            database.execute(remedy)
            assert_in_order(check(keyspace(), database=url))
        finally:
            database.execute("DROP OWNED BY narrow; DROP ROLE narrow")

    def test_limit_of_the_database_is_mended_by_the_remedy(self, check, database):
        database.execute(GOOD + f'ALTER DATABASE "{database.name}" CONNECTION LIMIT 5')
        text, remedy = check(keyspace()).one("error")
        assert "5 connections" in text and "load_connections: 4" in text
        database.execute(remedy)
        assert_in_order(check(keyspace()))

    def test_more_connections_than_the_server_has_are_refused(self, check, database):
        database.execute(GOOD)
        text, remedy = check(keyspace(), load_connections=60).one("error")
        assert "max_connections" in text
        assert remedy.startswith("ALTER SYSTEM SET max_connections = 65;")

    def test_one_that_is_down_is_an_error(self, check):
        url = f"postgresql://guard:secret@127.0.0.1:{servers.free_port()}/shop"
        report = check(keyspace(), database=url)
        text, _ = report.one("error")
        assert "no connection" in text and "secret" not in report.text
        assert "is PostgreSQL running there" in text and "listen_addresses" in text
        assert "/shop" in report.findings[0][0]

    def test_missing_database_and_unknown_role_are_errors_with_the_servers_words(
            self, check, database):
        report = check(keyspace(), database=database.url + "_not")
        assert "does not exist" in report.one("error")[0] and "psql -l" in report.text
        report = check(keyspace(), database=database.url.replace("guard@", "nobody:secret@"))
        assert 'role "nobody" does not exist' in report.one("error")[0]
        assert "CREATE ROLE ... LOGIN" in report.text and "pg_hba.conf" in report.text
        assert "secret" not in report.text

    @pytest.mark.parametrize("begin, end, words", [
        ("ALTER ROLE guard CONNECTION LIMIT 0", "ALTER ROLE guard CONNECTION LIMIT -1",
         "ALTER ROLE ... CONNECTION LIMIT"),
        ("ALTER DATABASE {} CONNECTION LIMIT 0", "ALTER DATABASE {} CONNECTION LIMIT -1",
         "ALTER DATABASE ... CONNECTION LIMIT"),
        ("ALTER DATABASE {} ALLOW_CONNECTIONS false", "ALTER DATABASE {} ALLOW_CONNECTIONS true",
         "ALTER DATABASE ... ALLOW_CONNECTIONS true"),
        ("REVOKE CONNECT ON DATABASE {} FROM PUBLIC, guard",
         "GRANT CONNECT ON DATABASE {} TO PUBLIC", "GRANT CONNECT"),
    ])
    def test_a_server_that_takes_no_connection_is_running(self, check, database, postgres_server,
                                                          begin, end, words):
        database.execute(GOOD)
        name = database.url.rpartition("/")[2]
        postgres_server.execute(begin.format(name), "template1")
        try:
            text, remedy = check(keyspace()).one("error")
            assert words in text and "is PostgreSQL running" not in text
            assert ("GRANT" in words) == (remedy is not None)
            if remedy:
                assert remedy == f'GRANT CONNECT ON DATABASE "{name}" TO "guard";'
                postgres_server.execute(remedy, "template1")
                assert_in_order(check(keyspace()))
        finally:
            postgres_server.execute(end.format(name), "template1")

    def test_url_of_another_database_is_told_from_a_broken_one(self, check):
        text, _ = check(keyspace(), database="mysql://app:secret@127.0.0.1/shop").one("error")
        assert "mysql:// is the URL of another database" in text
        assert "postgresql://user@host:5432/name" in text and "secret" not in text

    def test_password_in_a_broken_connection_string_is_not_repeated(self, check):
        for broken in ("postgresql://guard:secret@[::1/shop", "password=secret secret2 host=x",
                       "postgresql://guard:secret@127.0.0.1:5432/shop?what=secret3"):
            report = check(keyspace(), database=broken)
            assert report.status == 1 and "secret" not in report.text, report.text

    def test_locked_table_does_not_hang_the_check(self, check, database):
        database.execute(GOOD)
        other = database.connect()
        other.cursor().execute("LOCK TABLE items")
        report = check(keyspace())
        other.rollback()
        other.close()
        assert "locked" in report.one("warning")[0]

    def test_silent_server_does_not_hang_the_check(self, check, database, postgres_server):
        postgres_server.pause()
        try:
            report = check(keyspace())
        finally:
            postgres_server.resume()
        assert report.levels() == ["error"] and report.findings[0][0].startswith("database")


class TestCache:
    def test_one_that_is_down_is_an_error(self, check, database):
        database.execute(GOOD)
        port = servers.free_port()
        report = check(keyspace(), cache=f"redis://:secret@127.0.0.1:{port}/0")
        text, _ = report.one("error")
        assert "no connection" in text and f"127.0.0.1:{port}" in report.findings[0][0]
        assert "is Redis running there" in text
        assert "secret" not in report.text

    def test_wrong_and_missing_passwords_are_errors(self, check, database, cache):
        database.execute(GOOD)
        url = cache.url.replace("//", "//:wrong-secret@")
        cache.client().config_set("requirepass", "right")
        try:
            wrong, missing = check(keyspace(), cache=url), check(keyspace())
        finally:
            cache.client(password="right").config_set("requirepass", "")
        assert "user or password in `cache` are not" in wrong.one("error")[0]
        assert "wrong-secret" not in wrong.text and "no Redis" not in wrong.text + missing.text
        assert "NOAUTH" in missing.text and "it wants a password" in missing.one("error")[0]

    def test_a_password_that_the_cache_does_not_have_is_told_as_that(self, check, database, cache):
        database.execute(GOOD)
        text, _ = check(keyspace(), cache=cache.url.replace("//", "//:secret@")).one("error")
        assert "the server has no password, but `cache` has one" in text and "secret" not in text

    def test_tls_to_a_port_without_it_is_told_as_that(self, check, database, cache):
        database.execute(GOOD)
        text, _ = check(keyspace(), cache=cache.url.replace("redis:", "rediss:")).one("error")
        assert "write redis:// instead of rediss://" in text

    def test_database_number_that_it_does_not_have_is_an_error(self, check, database, cache):
        database.execute(GOOD)
        text, _ = check(keyspace(), cache=cache.url.replace("/0", "/99")).one("error")
        assert "99" in text or "out of range" in text

    def test_one_that_is_not_redis_is_an_error(self, check, database, postgres_server):
        database.execute(GOOD)
        report = check(keyspace(), cache=f"redis://127.0.0.1:{postgres_server.port}/0")
        assert report.levels() == ["error"] and report.findings[0][0].startswith("cache")

    def test_web_server_is_no_redis(self, check, database):
        database.execute(GOOD)
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as web:
            thread = threading.Thread(target=web.serve_forever, daemon=True)
            thread.start()
            report = check(keyspace(), cache=f"redis://127.0.0.1:{web.server_port}/0")
            web.shutdown()
            thread.join()
        assert "no Redis" in report.one("error")[0]

    def test_replica_is_an_error(self, check, database, cache):
        database.execute(GOOD)
        cache.client().replicaof("127.0.0.1", servers.free_port())
        try:
            assert "replica" in check(keyspace()).one("error")[0]
        finally:
            cache.client().replicaof("NO", "ONE")

    def test_full_memory_that_refuses_writes_is_a_warning_with_its_remedy(
            self, check, database, cache):
        database.execute(GOOD)
        cache.client().config_set("maxmemory", "100mb")
        try:
            text, remedy = check(keyspace()).one("warning")
            assert "noeviction" in text
            assert cache.client().execute_command(*remedy.split()) in (b"OK", "OK", True)
            assert_in_order(check(keyspace()))
        finally:
            cache.client().config_set("maxmemory-policy", "noeviction")
            cache.client().config_set("maxmemory", "0")


class TestFile:
    def test_cache_and_database_are_asked_beside_errors_of_the_file(self, check, database, cache):
        """All of it is told in one round."""
        database.execute(GOOD + "REVOKE SELECT ON items FROM guard")
        cache.client().config_set("maxmemory", "100mb")
        try:
            report = check(keyspace(ttl="soon"), keyspace(name="b", key="no placeholder"),
                           keyspace(name="c", key="c:{id}", table="itmes"), load_budget=-1)
        finally:
            cache.client().config_set("maxmemory", "0")
        for part in ('ttl "soon"', 'key "no placeholder"', 'load_budget "-1"', "noeviction",
                     "may not read id, payload of table public.items", "table itmes does not exist"):
            assert part in report.text, report.text
        assert "1 keyspace not looked at" in report.text and "not asked" not in report.text
        assert report.status == 1 and report.last == "5 errors, 1 warning"

    @pytest.mark.parametrize("setting, unasked, asked", [
        ({"cache": "http://127.0.0.1"}, "the cache was not asked", "may not read id"),
        ({"cache": "redis://127.0.0.1:6380"}, "the cache was not asked", "may not read id"),
        ({"cache": "redis://${NOT_SET_ANYWHERE}@127.0.0.1"}, "the cache was not asked", "may not read"),
        ({"database": "mysql://app@127.0.0.1/shop"}, "the database was not asked", "noeviction"),
        ({"sync": "sometimes"}, None, "may not read id"),
        ({"keyspaces": []}, None, "noeviction"),
    ])
    def test_what_the_file_does_not_say_is_not_guessed(self, check, database, cache, setting,
                                                       unasked, asked):
        database.execute(GOOD + "REVOKE SELECT ON items FROM guard")
        cache.client().config_set("maxmemory", "100mb")
        try:
            report = check(keyspace(), **setting)
        finally:
            cache.client().config_set("maxmemory", "0")
        assert asked in report.text and report.status == 1, report.text
        assert (unasked or "not asked") in report.text if unasked else "not asked" not in report.text
        assert "wal_level" not in report.text, report.text

    def test_nothing_is_asked_by_a_file_that_says_nothing(self, tmp_path):
        (tmp_path / "list.yaml").write_text("- a\n")
        process = run_check(tmp_path / "list.yaml")
        assert process.returncode == 1 and "cache and database were not asked" in process.stdout

    def test_a_publication_is_not_planned_for_some_of_the_keyspaces(self, check, database, postgres_server):
        """What is printed would not be what the whole file needs."""
        database.execute(GOOD)
        report = check(keyspace(), keyspace(name="b", key="no placeholder", table="others"),
                       sync="replication")
        assert "CREATE PUBLICATION" not in report.text, report.text

    def test_several_hosts_of_the_cache_are_called_that(self, check):
        report = check(keyspace(), cache="redis://127.0.0.1:6379,127.0.0.1:6380")
        assert "names several servers" in report.text and "bracket" not in report.text

    def test_missing_file_is_an_error(self, tmp_path):
        process = run_check(tmp_path / "none.yaml")
        assert process.returncode == 1 and "none.yaml" in process.stdout

    @pytest.mark.parametrize("listen, url", [
        ("127.0.0.1:{}", "redis://localhost:{}"),
        ("localhost:{}", "redis://127.0.0.1:{}/0"),
        ("0.0.0.0:{}", "redis://127.0.0.1:{}"),
        ("0.0.0.0:{}", "redis-cluster://127.0.0.1:1,localhost:{}"),
        ("127.0.0.1:{}", "redis-sentinel://localhost:{}/mymaster")])
    @pytest.mark.parametrize("runs", [True, False])
    def test_the_guard_as_its_own_cache_is_an_error(self, check, start_guard, database, items, listen,
                                                    url, runs):
        port = start_guard(items()).port if runs else free_port()
        report = check(items(), listen=[listen.format(port)], cache=url.format(port))
        place, _, text, _ = next(finding for finding in report.findings if finding[1] == "error")
        assert place.startswith("cache ") and place.endswith(f":{port}")
        assert f"it is the guard's own address (listen: {listen.format(port)})" in text
        assert report.levels().count("error") == 1 and report.status == 1

    def test_a_cache_with_the_guards_port_elsewhere_is_another(self, check, database, cache):
        database.execute(GOOD)
        assert_in_order(check(keyspace(), listen=[f"127.0.0.2:{cache.port}"],
                              cache=f"redis://localhost:{cache.port}"))

    def test_an_address_that_is_not_this_machines_is_an_error(self, check, database):
        """192.0.2.0/24 is nobody's (RFC 5737)."""
        database.execute(GOOD)
        text, _ = check(keyspace(), listen=["192.0.2.7:6380"]).one("error")
        assert "listen: 192.0.2.7:6380 is no address of this machine" in text and "0.0.0.0" in text
        text, _ = check(keyspace(), control="192.0.2.7:6390", control_token="t").one("error")
        assert "control: 192.0.2.7:6390 is no address of this machine" in text

    @pytest.mark.parametrize("where", [None, "id <= 50000"])
    def test_too_little_memory_for_filters_is_a_warning_with_what_is_needed(self, check, database, where):
        database.execute(GOOD + "INSERT INTO items SELECT n, '', '' FROM generate_series(1, 100000) n; ANALYZE items")
        items = {"where": where} if where else {}
        text, remedy = check(keyspace(**items), max_filter_memory="64kb").one("warning")
        assert "max_filter_memory is 64.0 KiB" in text and "need about" in text
        rows = int(re.search(r"about (\d+): a keyspace", text)[1])
        assert (40000 if where else 90000) < rows < (60000 if where else 110000), text
        assert remedy == "max_filter_memory: 1mb"
        assert_in_order(check(keyspace(**items), max_filter_memory="1mb"))

    def test_what_has_no_effect_is_a_warning_with_its_line(self, check, database):
        database.execute(GOOD)
        report = check(keyspace(absent_value="none"), max_lag="1m")
        assert report.status == 0 and report.levels() == ["warning", "warning"]
        assert "max_lag has no effect without sync: replication" in report.text
        assert "absent_value has no effect without on_absent: value" in report.text
        assert all(re.search(r"nestguard.yaml:\d+$", place) for place, *_ in report.findings)

    def test_a_key_that_is_every_key_is_a_warning(self, check, database):
        database.execute(GOOD)
        text, _ = check(keyspace(key="{id}")).one("warning")
        assert "every key of the cache" in text and "items:{id}" in text and "enforce: false" in text
