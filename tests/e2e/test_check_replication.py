"""`nestguard check` finds what keeps a database from being followed by its log (sync: replication);
what it prints mends it, and never disturbs the application."""
import contextlib
import socket
import threading

import pytest

import servers
from checking import GOOD, assert_in_order, check, keyspace  # check is a fixture
from standby import Standby

PARTS = """
    CREATE TABLE parts (id int, kind text, payload text NOT NULL, PRIMARY KEY (id, kind))
        PARTITION BY LIST (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
"""
ALIVE = {"where": "deleted_at IS NULL"}


def number_queries(database, setting):
    """What pg_stat_statements has servers do; the numbers are in plans, too."""
    database.execute(f"ALTER DATABASE {database.name} SET compute_query_id = '{setting}'")


@pytest.fixture
def follow(check):
    """follow(keyspace, ..., setting=value) checks with sync: replication."""
    return lambda *keyspaces, **settings: check(*keyspaces, sync="replication", **settings)


def parts(**settings):
    return keyspace(name="parts", key="part:{id}:{kind}", table="parts", **settings)


def owner_url(database):
    """Of a role that may create publications."""
    return database.url.replace("guard@", "postgres@")


def mend(follow, database, words, *keyspaces):
    """Runs all that is printed, from above to below, after which nothing is left; returns the
    report. The application can change its rows after every step."""
    report = follow(*keyspaces)
    assert any(words in finding[2] for finding in report.findings), report.text
    for _, level, _, remedy in report.findings:
        assert level == "error" and remedy, report.text
        database.execute(remedy)
        change_rows(database)
    assert_in_order(follow(*keyspaces))
    return report


def change_rows(database):
    """What an application does, as a role of its own."""
    for table in ("items", "parts"):
        if database.value("SELECT to_regclass(%s)", (table,)) is None:
            continue
        with contextlib.closing(database.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"INSERT INTO {table} (id, kind, payload) VALUES (1, 'a', 'a');"
                           f"UPDATE {table} SET payload = 'b'; UPDATE {table} SET kind = 'c';"
                           f"UPDATE {table} SET id = 2; DELETE FROM {table}")
            connection.rollback()


class TestPublication:
    def test_missing_one_is_mended_by_the_remedy_of_the_owner(self, follow, database):
        database.execute(GOOD + PARTS)
        report = mend(follow, database, "there is no publication nestguard", keyspace(), parts())
        assert report.one("error")[1] == (
            "CREATE PUBLICATION nestguard FOR TABLE public.items, public.parts "
            "WITH (publish_via_partition_root = true);")

    def test_who_may_create_it_hears_nothing_and_check_creates_nothing(self, follow, database):
        database.execute(GOOD + PARTS + "ALTER TABLE items REPLICA IDENTITY FULL")
        url = owner_url(database)
        assert_in_order(follow(keyspace(), parts(), database=url))
        assert_in_order(follow(keyspace(**ALIVE), database=url))
        assert database.value("SELECT count(*) FROM pg_publication") == 0

    def test_ownership_of_the_tables_and_create_on_the_database_suffice(self, follow, database):
        database.execute(GOOD + "ALTER TABLE items OWNER TO guard")
        text, _ = follow(keyspace()).one("error")
        assert "role guard may not create it" in text
        database.execute(f'GRANT CREATE ON DATABASE "{database.name}" TO guard')
        assert_in_order(follow(keyspace()))

    def test_name_is_that_of_the_configuration(self, follow, database):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        text, remedy = follow(keyspace(), publication="My-Shop").one("error")
        assert "My-Shop" in text
        database.execute(remedy)
        assert_in_order(follow(keyspace(), publication="My-Shop"))

    def test_missing_table_is_added_by_the_remedy(self, follow, database):
        database.execute(GOOD + PARTS + "CREATE PUBLICATION nestguard FOR TABLE items "
                                        "WITH (publish_via_partition_root = true)")
        mend(follow, database, "publication nestguard lacks tables", keyspace(), parts())

    @pytest.mark.parametrize("made, words", [
        ("FOR TABLE items, parts", "partitions' names"),
        ("FOR TABLE items WITH (publish = 'insert')", "update, delete, truncate"),
        ("FOR TABLE items WHERE (id > 1)", "only rows that meet (id > 1)"),
        ("FOR TABLE parts (id, kind) WHERE (id > 1) WITH (publish_via_partition_root = true)",
         "only rows that meet (id > 1)"),
    ])
    def test_wrong_one_is_mended_by_the_remedy(self, follow, database, made, words):
        database.execute(GOOD + PARTS + "CREATE PUBLICATION nestguard " + made)
        mend(follow, database, words, keyspace(), parts())

    def test_column_list_without_the_key_is_mended_by_the_remedy(self, follow, database):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items (payload)")
        report = follow(keyspace())
        assert "without id" in report.one("error")[0]
        database.execute(report.one("error")[1])
        change_rows(database)
        assert_in_order(follow(keyspace()))

    @pytest.mark.parametrize("made", ["FOR ALL TABLES", "FOR TABLES IN SCHEMA public"])
    def test_one_of_everything_is_left_to_others(self, follow, database, made):
        database.execute(GOOD + "CREATE PUBLICATION nestguard " + made)
        text, remedy = follow(keyspace()).one("error")
        name, value = remedy.split(": ")
        assert "every change" in text and name == "publication"
        assert_in_order(follow(keyspace(), database=owner_url(database), publication=value))

    def test_errors_of_tables_hide_nothing(self, follow, database):
        """What the role may not do, and what the file has wrong, is told with all the rest."""
        database.execute(GOOD + "REVOKE ALL ON items FROM guard")
        settings = {"where": "deleted_at IS NULL", "value": "gone"}
        report = follow(keyspace(**settings), keyspace(name="b", key="b:{id}", table="nothing"))
        for words in ("no column gone", "may not read id", "IDENTITY FULL", "table nothing"):
            assert words in report.text, report.text
        assert "CREATE PUBLICATION" not in report.text, "a keyspace of it is still to be found"
        report = follow(keyspace(**settings))
        for _, _, _, remedy in report.findings:
            if remedy and not remedy.startswith("value"):
                database.execute(remedy)
        assert "no column gone" in follow(keyspace(**settings)).one("error")[0]

    def test_all_that_a_new_database_lacks_takes_one_round(self, follow, database):
        database.execute(GOOD + "REVOKE ALL ON items FROM guard; CREATE TABLE plain (id int NOT NULL,"
                                " payload text NOT NULL); REVOKE ALL ON plain FROM guard")
        keyspaces = keyspace(**ALIVE), keyspace(name="plain", key="p:{id}", table="plain")
        report = follow(*keyspaces)
        for _, _, _, remedy in report.findings:
            database.execute(remedy)
        assert_in_order(follow(*keyspaces))


class TestIdentity:
    def test_condition_needs_its_columns(self, follow, database):
        database.execute(GOOD)
        report = mend(follow, database, "where: the replica identity", keyspace(**ALIVE))
        assert report.findings[0][3] == "ALTER TABLE public.items REPLICA IDENTITY FULL;"

    def test_key_that_is_no_identity_gets_its_unique_index(self, follow, database):
        database.execute(GOOD + "CREATE UNIQUE INDEX kinds ON items (kind)")
        report = mend(follow, database, "lacks kind", keyspace(key="item:{kind}"))
        assert report.findings[0][3] == \
            "ALTER TABLE public.items REPLICA IDENTITY USING INDEX kinds;"

    def test_table_without_a_primary_key_gets_one(self, follow, database):
        database.execute("CREATE TABLE items (id int NOT NULL, kind text, payload text NOT NULL);"
                         "CREATE UNIQUE INDEX ids ON items (id)")
        mend(follow, database, "lacks id", keyspace())

    def test_all_partitions_are_mended_at_once(self, follow, database):
        database.execute(PARTS + "ALTER TABLE parts_1 REPLICA IDENTITY NOTHING;"
                                 "ALTER TABLE parts_2 REPLICA IDENTITY NOTHING")
        report = mend(follow, database, "parts_1 lacks id, kind", parts())
        assert report.findings[0][3].count("\n") == 1

    def test_partitions_with_a_condition_are_mended_at_once(self, follow, database):
        database.execute(PARTS)
        report = mend(follow, database, "where: the replica identity",
                      parts(where="payload <> ''"))
        assert report.findings[0][3].count("FULL;") == 2


    def test_keyspaces_of_one_table_agree_on_an_index_over_all_their_keys(self, follow, database):
        database.execute(GOOD + "CREATE UNIQUE INDEX kinds ON items (kind);"
                                "CREATE UNIQUE INDEX pairs ON items (kind, id)")
        report = mend(follow, database, "lacks kind", keyspace(),
                      keyspace(name="kinds", key="kind:{kind}"))
        assert report.findings[0][3] == \
            "ALTER TABLE public.items REPLICA IDENTITY USING INDEX pairs;"

    def test_keyspaces_of_one_table_agree_on_full_where_no_index_will_do(self, follow, database):
        """And what it costs is said."""
        database.execute(GOOD + "CREATE UNIQUE INDEX kinds ON items (kind)")
        report = mend(follow, database, "about twice the log", keyspace(),
                      keyspace(name="kinds", key="kind:{kind}"))
        assert report.findings[0][3] == "ALTER TABLE public.items REPLICA IDENTITY FULL;"


class TestTable:
    def test_unlogged_one_is_mended_by_the_remedy(self, follow, database):
        database.execute(GOOD + "ALTER TABLE items SET UNLOGGED")
        mend(follow, database, "unlogged", keyspace())

    def test_temporary_one_is_refused(self, follow, database):
        database.execute(GOOD + "CREATE TEMP TABLE items (id int)")
        schema = database.value("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")
        report = follow(keyspace(table=f"{schema}.items"))
        assert "is a temporary table" in report.one("error")[0]

    def test_foreign_partition_is_refused(self, follow, database):
        database.execute("""
            CREATE TABLE items (id int NOT NULL, kind text, payload text NOT NULL)
                PARTITION BY LIST (id);
            CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw;
            CREATE FOREIGN TABLE far PARTITION OF items FOR VALUES IN (3)
                SERVER f OPTIONS (program 'true')""")
        # A table with a foreign partition cannot have the unique index, either.
        report = follow(keyspace())
        assert "no unique index" in report.text and "partition public.far is a foreign" in report.text

    def test_inheriting_table_is_refused(self, follow, database):
        database.execute(GOOD + "CREATE TABLE old_items () INHERITS (items)")
        text, remedy = follow(keyspace()).one("error")
        assert "public.old_items inherits" in text and remedy is None

    def test_generated_key_is_refused(self, follow, database):
        database.execute("CREATE TABLE items (nr int, id int GENERATED ALWAYS AS (nr + 1) STORED "
                         "NOT NULL UNIQUE, payload text NOT NULL);"
                         "ALTER TABLE items REPLICA IDENTITY FULL")
        assert "generated" in follow(keyspace()).one("error")[0]

    def test_two_conditions_on_one_table_are_refused(self, follow, database):
        database.execute(GOOD + "ALTER TABLE items REPLICA IDENTITY FULL")
        other = keyspace(name="other", key="other:{id}", where="kind = 'a'")
        assert "another condition" in follow(keyspace(**ALIVE), other).one("error")[0]
        assert "another condition" in follow(keyspace(), other).one("error")[0]
        other["where"] = "(Deleted_At  is null)"
        mend(follow, database, "no publication", keyspace(**ALIVE), other)

    @pytest.mark.parametrize("condition, row_filter", [
        ("code < 'M'", "code COLLATE \"C\" < 'M'"),
        ("code COLLATE \"C\" < 'M'", "code < 'M'"),
        ("kind COLLATE \"C\" < 'M'", "kind COLLATE \"POSIX\" < 'M'"),
        ("kind COLLATE \"C\" BETWEEN 'a' AND 'm'", "kind COLLATE \"POSIX\" BETWEEN 'a' AND 'm'"),
        ("code COLLATE \"C\" < 'M' AND other < 'M'", "code < 'M' AND other COLLATE \"C\" < 'M'"),
        ("code COLLATE \"C\" < 'M' AND other COLLATE \"POSIX\" < 'M'",
         "code COLLATE \"POSIX\" < 'M' AND other COLLATE \"C\" < 'M'"),
        ("code COLLATE \"default\" < 'M'", "code < 'M'")])
    def test_row_filter_that_compares_by_another_collation_is_another(self, follow, database,
                                                                      condition, row_filter):
        number_queries(database, "off")
        database.execute(GOOD + "ALTER TABLE items ADD code varchar, ADD other varchar;"
                         "ALTER TABLE items REPLICA IDENTITY FULL;"
                         f"CREATE PUBLICATION nestguard FOR TABLE items WHERE ({row_filter})")
        mend(follow, database, "only rows that meet", keyspace(where=condition))

    @pytest.mark.parametrize("numbered", ["on", "off"])
    @pytest.mark.parametrize("condition", [
        "code collate pg_catalog.\"C\" BETWEEN 'a' AND 'm' AND kind < 'M' collate \"POSIX\"",
        "code || kind COLLATE \"C\" IN ('a', 'b COLLATE x') -- or COLLATE y",
        "short COLLATE \"C\" IN ('a', 'b') AND lower(kind COLLATE \"POSIX\") > 'a'"])
    def test_row_filter_by_the_same_collations_is_the_same(self, follow, database, condition,
                                                           numbered):
        number_queries(database, numbered)
        database.execute(GOOD + "ALTER TABLE items ADD code varchar(9), ADD short char(5);"
                         "ALTER TABLE items REPLICA IDENTITY FULL;"
                         f"CREATE PUBLICATION nestguard FOR TABLE items WHERE ({condition}\n)")
        assert_in_order(follow(keyspace(where=condition)))

    def test_unique_index_of_rows_by_another_collation_does_not_count(self, follow, database):
        number_queries(database, "off")
        database.execute("CREATE TABLE items (id int NOT NULL, payload text NOT NULL, kind text);"
                         "ALTER TABLE items REPLICA IDENTITY FULL;"
                         "CREATE UNIQUE INDEX ON items (id) WHERE kind COLLATE \"POSIX\" < 'M'")
        condition = "kind COLLATE \"C\" < 'M'"
        report = follow(keyspace(where=condition), database=owner_url(database))
        assert "no unique index" in report.one("error")[0]

    def test_condition_that_no_row_filter_can_have_is_refused(self, follow, database):
        database.execute(GOOD + "ALTER TABLE items REPLICA IDENTITY FULL")
        report = follow(keyspace(where="deleted_at > now()"), database=owner_url(database))
        assert sorted(report.levels()) == ["error", "warning"]
        assert "mutable functions" in report.text
        assert database.value("SELECT count(*) FROM pg_publication") == 0

    def test_locked_table_hangs_nothing(self, follow, database):
        database.execute(GOOD + "ALTER TABLE items REPLICA IDENTITY FULL")
        with contextlib.closing(database.connect()) as other:
            other.cursor().execute("LOCK TABLE items IN SHARE ROW EXCLUSIVE MODE")
            assert_in_order(follow(keyspace(**ALIVE), database=owner_url(database)))

    def test_table_that_nobody_can_read_now_is_no_error(self, follow, database):
        database.execute(GOOD + "ALTER TABLE items REPLICA IDENTITY FULL;"
                         "CREATE PUBLICATION nestguard FOR TABLE items WHERE (deleted_at IS NULL)")
        with database.locked():
            report = follow(keyspace(**ALIVE))
        assert report.levels() == ["warning", "warning"], report.text
        assert "publication could not be looked at" in report.text


@pytest.fixture
def own_server():
    """own_server(setting=value) starts a PostgreSQL of the test's own, with one database."""
    with contextlib.ExitStack() as stack:
        def start(server):
            stack.callback(server.remove)
            return server.start()
        yield start


@contextlib.contextmanager
def pooler(port):
    """What a pooler does: it hands ordinary connections on, and drops those for replication."""
    def copy(source, target):
        with contextlib.suppress(OSError):
            while block := source.recv(65536):
                target.sendall(block)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                begin = client.recv(65536)
                if begin[4:8] == bytes([4, 210, 22, 47]):  # asks for TLS
                    client.sendall(b"N")
                    begin = client.recv(65536)
                if b"replication\0" in begin:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", port))
                server.sendall(begin)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=copy, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


class TestServer:
    def test_limits_and_level_are_mended_by_the_remedies(self, follow, own_server):
        server = own_server(servers.Postgres(wal_level=None))
        for setting in ("max_replication_slots = 1", "max_wal_senders = 1"):
            server.execute(f"ALTER SYSTEM SET {setting}")
        server.restart()
        database = servers.Database(server, "shop")
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        report = follow(keyspace(), database=database.url)
        assert report.levels() == ["error"] * 3, report.text
        for words in ("wal_level is replica", "max_replication_slots is 1, of which 0",
                      "max_wal_senders is 1, of which 0"):
            assert words in report.text
        for finding in report.findings:
            assert "restart" in finding[3]
            database.execute(finding[3])
        server.restart()
        assert_in_order(follow(keyspace(), database=database.url))

    def test_slots_in_use_do_not_count(self, follow, own_server):
        server = own_server(servers.Postgres(max_replication_slots=3))
        database = servers.Database(server, "shop")
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        assert_in_order(follow(keyspace(), database=database.url))
        for name in "ab":
            database.execute(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        text, remedy = follow(keyspace(), database=database.url).one("error")
        assert "max_replication_slots is 3, of which 2 are in use" in text
        assert remedy.startswith("ALTER SYSTEM SET max_replication_slots = 4;")

    @pytest.fixture
    def shop(self, own_server):
        """Two slots and senders, as many as one guard needs."""
        server = own_server(servers.Postgres(max_replication_slots=2, max_wal_senders=2))
        database = servers.Database(server, "shop")
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        return database

    def test_the_guards_own_slot_is_none_too_few_beside_it(self, follow, start_guard, shop):
        guard = start_guard(keyspace(), sync="replication", database=shop.url)
        own = {"listen": [f"127.0.0.1:{guard.port}"], "control": f"127.0.0.1:{guard.control_port}"}
        report = follow(keyspace(), database=shop.url, **own)
        assert report.levels() == ["warning"] * 2 and report.text.count("is taken") == 2
        assert sum("enough for that one" in note for note in report.notes) == 2
        guard.stop()
        report = follow(keyspace(), database=shop.url, **own)
        assert_in_order(report)
        assert report.notes == follow(keyspace(), database=shop.url).notes

    def test_another_guards_slot_leaves_too_few_for_this_one(self, follow, start_guard, shop):
        start_guard(keyspace(), sync="replication", database=shop.url)
        report = follow(keyspace(), database=shop.url)
        assert report.levels() == ["warning"] * 2
        for finding, setting in zip(report.findings, ("max_replication_slots", "max_wal_senders")):
            assert (f"{setting} is 2, of which 1 are in use, 1 by a guard of this database: enough "
                    "for that one, which needs 2 in all") in finding[2]
            assert "another guard beside it needs 1 more" in finding[2]
            assert finding[3].startswith(f"ALTER SYSTEM SET {setting} = 3;")

    def test_a_guard_whose_slot_others_leave_no_second_is_told(self, follow, start_guard, shop):
        start_guard(keyspace(), sync="replication", database=shop.url)
        shop.execute("SELECT pg_create_logical_replication_slot('other', 'pgoutput')")
        report = follow(keyspace(), database=shop.url)
        text = next(finding[2] for finding in report.findings if finding[1] == "error")
        assert "max_replication_slots is 2, of which 2 are in use: the guard needs 2" in text

    def test_a_guard_beside_another_starts_with_the_slot_that_is_left(self, start_guard, shop):
        for _ in range(2):
            guard = start_guard(keyspace(), sync="replication", database=shop.url)
        assert "another guard beside it needs 1 more" in guard.log(lines=1000)

    def test_missing_right_is_mended_by_the_remedy(self, follow, database):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items;"
                                'CREATE ROLE "No Rights" LOGIN;'
                                'GRANT SELECT, DELETE ON items TO "No Rights"')
        url = database.url.replace("guard@", "No%20Rights@")
        try:
            text, remedy = follow(keyspace(), database=url).one("error")
            assert "may not follow" in text and remedy == 'ALTER ROLE "No Rights" REPLICATION;'
            database.execute(remedy)
            assert_in_order(follow(keyspace(), database=url))
        finally:
            database.execute('DROP OWNED BY "No Rights"; DROP ROLE "No Rights"')

    def test_role_of_the_cloud_provider_is_the_remedy_where_there_is_one(self, follow, database):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items;"
                                "CREATE ROLE rds_replication; CREATE ROLE plain LOGIN;"
                                "GRANT SELECT, DELETE ON items TO plain")
        url = database.url.replace("guard@", "plain@")
        try:
            text, remedy = follow(keyspace(), database=url).one("error")
            assert "may not follow" in text and remedy == "GRANT rds_replication TO plain;"
            database.execute(remedy)
            # This server does not know what that role means.
            assert "no replication connection" in follow(keyspace(), database=url).one("error")[0]
        finally:
            database.execute("DROP OWNED BY plain; DROP ROLE plain; DROP ROLE rds_replication")

    @pytest.mark.parametrize("role, level, limit, right", [
        ("rds_superuser", "rds.logical_replication = 1 in the parameter group",
         "Amazon RDS, Aurora: max_wal_senders = 2 in the parameter group", "GRANT rds_replication TO"),
        ("cloudsqlsuperuser", "--database-flags=cloudsql.logical_decoding=on",
         "--database-flags=max_wal_senders=2", "REPLICATION; -- as a member of cloudsqlsuperuser"),
        ("azure_pg_admin", "--name wal_level --value logical",
         "--name max_wal_senders --value 2", "REPLICATION; -- as a member of azure_pg_admin"),
    ])
    def test_managed_services_have_words_of_their_own(self, follow, own_server, role, level, limit,
                                                      right):
        server = own_server(servers.Postgres(wal_level=None))
        server.execute("ALTER SYSTEM SET max_wal_senders = 1")
        server.restart()
        database = servers.Database(server, "shop")
        database.execute(GOOD + f"CREATE PUBLICATION nestguard FOR TABLE items; CREATE ROLE {role};"
                                "ALTER ROLE guard NOREPLICATION")
        report = follow(keyspace(), database=database.url)
        remedies = "\n".join(finding[3] for finding in report.findings)
        assert level in remedies and limit in remedies and right in remedies, report.text
        assert "ALTER SYSTEM" not in report.text

    def test_standby_is_refused(self, follow, database, postgres_server, own_server):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        standby = own_server(Standby(postgres_server))
        url = database.url.replace(str(postgres_server.port), str(standby.port))
        text, _ = follow(keyspace(), database=url).one("error")
        assert "is a standby" in text

    def test_timeout_that_is_off_is_mended_by_the_remedy(self, follow, database):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        database.execute("ALTER SYSTEM SET wal_sender_timeout = 0")
        database.execute("SELECT pg_reload_conf()")
        try:
            servers.wait_until(lambda: database.value("SHOW wal_sender_timeout") == "0", 10,
                               "the setting")
            text, remedy = follow(keyspace()).one("warning")
            assert "wal_sender_timeout is off" in text
            for statement in remedy.rstrip(";").split("; "):
                database.execute(statement)
            servers.wait_until(lambda: database.value("SHOW wal_sender_timeout") == "1min", 10,
                               "the setting")
            assert_in_order(follow(keyspace()))
        finally:
            database.execute("ALTER SYSTEM RESET wal_sender_timeout")
            database.execute("SELECT pg_reload_conf()")

    def test_pooler_is_refused(self, follow, database, postgres_server):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        with pooler(postgres_server.port) as port:
            url = database.url.replace(str(postgres_server.port), str(port))
            text, _ = follow(keyspace(), database=url).one("error")
        assert "no replication connection" in text and "pooler" in text

    @pytest.mark.parametrize("form", ["host=127.0.0.1 port={port} user=guard dbname='{name}'",
                                      "postgresql://guard:it's%20%5C@127.0.0.1:{port}/{name}"
                                      "?application_name=it's%20%5C"])
    def test_connection_string_may_have_any_form(self, follow, database, postgres_server, form):
        database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
        url = form.format(port=postgres_server.port, name=database.name)
        assert_in_order(follow(keyspace(), database=url))

    def test_database_that_is_down_is_one_error(self, follow):
        url = f"postgresql://guard@127.0.0.1:{servers.free_port()}/shop"
        assert "no connection" in follow(keyspace(), database=url).one("error")[0]
