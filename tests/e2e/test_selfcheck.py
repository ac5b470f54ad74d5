"""The self-check sees rows of the keyspace, says how many, and finds a key that the filter lacks, in
every sync mode; rows that came after the filter was built do not fool it."""
import re

import pytest

from following import is_possible, publish, wait_generation
from servers import PATIENCE
from untold import NAMING_TABLES, NAMED, NO_ROW, RENAMED, named, rename_first  # fixtures, too
from waiting import wait_until

# Three rows of 60,000, in the middle of the table: none is in a page that a sample reads.
SPARSE = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "10m",
          "where": "live"}
ROWS = 60_000
LIVE = (30_000, 30_001, 30_002)


@pytest.fixture
def sparse(database):
    # About 10 rows a page: 6,000 pages, of which a sample takes some 64.
    database.execute(f"""
        CREATE TABLE items (id bigint PRIMARY KEY, payload text, live bool);
        ALTER TABLE items REPLICA IDENTITY FULL;
        INSERT INTO items SELECT n, rpad('payload ' || n, 700), n IN {LIVE}
            FROM generate_series(1, {ROWS}) n""")
    return SPARSE


def start_across_rename(gate, start_guard, database, keyspace, sync):
    """The row's key changes, and nothing else, between the first build and its check."""
    url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
    gate.hold_requests(b"TABLESAMPLE")
    guard = start_guard(keyspace, sync=sync, database=url, ready=False)
    gate.wait_held()
    rename_first(database)
    gate.release()
    guard.wait_guarding()
    return guard


def assert_first_was_refused(guard):
    [line] = [line for line in guard.log(500).splitlines() if "the self-check failed" in line]
    assert line.split()[1] == "error" and "generation 1" in line and "named:{thing_3}" in line
    assert guard.generation() == 2, guard.log(500)


def self_check(guard, name="items"):
    return guard.keyspace(name)["self_check"]


def checks_passed(guard):
    """The rows of each keyspace, as each generation's first check logged them."""
    return re.findall(r"generation (\d+): the self-check of (\d+) rows passed: (.*)", guard.log(500))


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
class TestSeen:
    def test_rows_of_a_sparse_condition_are_seen(self, start_guard, database, sparse, sync):
        publish(database, sparse)
        guard = start_guard(sparse, sync=sync)
        found = self_check(guard)
        assert found["outcome"] == "passed" and found["rows_seen"] == 3, guard.log()
        assert found["generation"] == 1 and found["age_seconds"] < PATIENCE
        assert checks_passed(guard) == [("1", "3", "items 3")]
        assert guard.counter("nestguard_self_check_rows") == 3
        assert guard.counter("nestguard_self_check_good") == 1

    def test_an_empty_keyspace_is_said_to_be_empty(self, start_guard, database, sparse, sync):
        database.execute("UPDATE items SET live = false WHERE live")
        publish(database, sparse)
        guard = start_guard(sparse, sync=sync)
        found = self_check(guard)
        assert (found["outcome"], found["rows_seen"]) == ("the database has no row", 0)
        assert checks_passed(guard) == [("1", "0", "items 0 (the database has no row)")]
        assert not is_possible(guard, "item:7")

    def test_rows_that_lie_in_no_sampled_page_cannot_be_lacked(self, gate, start_guard, database,
                                                               sync):
        database.execute(NAMING_TABLES + f"""
            CREATE TABLE named (what table_name[] NOT NULL, n int, payload text, live bool,
                                PRIMARY KEY (what, n));
            ALTER TABLE named REPLICA IDENTITY FULL;
            INSERT INTO named SELECT '{{thing_1}}', n, rpad('payload ' || n, 700), n IN {LIVE}
                FROM generate_series(1, {ROWS}) n""")
        keyspace = {**NAMED, "key": "named:{what}:{n}", "where": "live"}
        publish(database, keyspace)
        guard = start_across_rename(gate, start_guard, database, keyspace, sync)
        assert_first_was_refused(guard)
        assert guard.redis().get(f"named:{{thing_3}}:{LIVE[0]}").startswith(b"payload")
        assert self_check(guard, "named")["rows_seen"] == 3

    def test_a_generation_that_lacks_a_row_does_not_come_into_force(self, gate, start_guard,
                                                                    database, named, sync):
        publish(database, named)
        guard = start_across_rename(gate, start_guard, database, named, sync)
        assert_first_was_refused(guard)
        assert guard.redis().mget(RENAMED, NO_ROW) == [b"first", None]

    def test_the_one_in_force_goes_on_when_the_next_lacks_a_row(self, gate, start_guard, database,
                                                                named, sync):
        publish(database, named)
        url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
        guard = start_guard(named, sync=sync, database=url)
        # So that the question is sent once more over a new connection, by its text.
        database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                         " WHERE usename = 'guard' AND query LIKE '%nestguard''s start%'")
        gate.hold_requests(b"TABLESAMPLE")
        guard.control("POST", "/v1/rebuild")
        gate.wait_held()
        rename_first(database)
        gate.release()
        wait_until(lambda: "the self-check failed" in guard.log(500), PATIENCE,
                   lambda: f"{guard.status()}\n{guard.log()}")
        assert guard.is_ready() and not is_possible(guard, NO_ROW)
        wait_until(lambda: guard.redis().get(RENAMED) == b"first", PATIENCE, guard.status)
        assert guard.generation() > 2 and guard.is_ready()


@pytest.mark.parametrize("sync", ["poll", "none"])
class TestWithoutLog:
    def test_a_role_that_may_read_some_columns_only_has_them_checked(self, start_guard, database,
                                                                     sparse, sync):
        database.execute("REVOKE ALL ON items FROM guard;"
                         "GRANT SELECT (id, payload, live) ON items TO guard")
        guard = start_guard(sparse, sync=sync)
        assert self_check(guard)["outcome"] == "passed" and self_check(guard)["rows_seen"] == 3

    def test_rows_that_came_later_do_not_fool_it(self, gate, start_guard, database, items, sync):
        """They are written between the filter's snapshot and the check, in savepoints, too, beside
        a transaction from before the snapshot; the first check is held until they are there."""
        url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
        older = database.server.connect(database.name)
        older.autocommit = False
        cursor = older.cursor()
        cursor.execute("SAVEPOINT part; INSERT INTO items VALUES (1001, 'older')")
        gate.hold_requests(b"TABLESAMPLE")
        guard = start_guard(items(), sync=sync, database=url, ready=False)
        gate.wait_held()
        older.commit()
        older.close()
        database.execute("INSERT INTO items SELECT n, 'new' FROM generate_series(1002, 1100) n;"
                         "UPDATE items SET payload = payload || '.' WHERE id <= 50")
        gate.release()
        wait_generation(guard, 1)
        assert guard.generation() == 1 and self_check(guard)["rows_seen"] == 50
        assert not is_possible(guard, "item:1002")
        assert "the self-check failed" not in guard.log(500)

    def test_a_filter_of_whose_rows_none_is_left_is_built_anew(self, gate, start_guard, database,
                                                               items, sync):
        """What was reloaded since is newer than the snapshot, all of it: nothing vouches for it, not
        even what the filter takes for known by chance, which are some."""
        url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
        gate.hold_requests(b"TABLESAMPLE")
        guard = start_guard(items(false_positive_rate=0.03), sync=sync, database=url, ready=False)
        gate.wait_held()
        database.execute("TRUNCATE items;"
                         "INSERT INTO items SELECT n, 'new' FROM generate_series(501, 900) n")
        gate.release()
        guard.wait_guarding()
        assert guard.generation() == 2 and is_possible(guard, "item:501"), guard.log()
        assert "saw no row that was there" in guard.log(500)
        assert guard.redis().mget("item:501", "item:7") == [b"new", None]

    def test_a_key_that_is_cut_within_a_character_is_told(self, gate, start_guard, database, sync):
        """The table is another of its name by then, with a row whose key is too long to show."""
        database.execute("""
            CREATE TABLE texts (id text PRIMARY KEY, payload text);
            CREATE TABLE others (LIKE texts INCLUDING ALL);
            INSERT INTO texts VALUES ('short', 'first');
            INSERT INTO others VALUES (repeat('ж', 150), 'second')""")
        url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
        gate.hold_requests(b"TABLESAMPLE")
        guard = start_guard({"name": "texts", "key": "text:{id}", "table": "texts",
                             "value": "payload"}, sync=sync, database=url, ready=False)
        gate.wait_held()
        database.execute("ALTER TABLE texts RENAME TO past; ALTER TABLE others RENAME TO texts")
        gate.release_held()  # the next check is held, so that what this one found stands
        wait_until(lambda: "ж" * 97 + "..." in str(guard.status()["last_build_error"]), PATIENCE,
                   guard.status)
        gate.release()
        guard.wait_guarding()

    def test_a_row_that_it_lacks_ends_its_guarding(self, start_guard, database, named, sync):
        """At the check that comes after a minute: the row is as it was, and has another key."""
        guard = start_guard(named, sync=sync)
        assert guard.redis().mget(RENAMED, NO_ROW) == [None, None]
        rename_first(database)
        wait_until(lambda: guard.generation() == 2, 60 + PATIENCE,
                   lambda: f"{guard.status()}\n{guard.log()}")
        assert "error" in [line.split()[1] for line in guard.log(500).splitlines()
                           if "the self-check failed" in line]
        assert "passing, was guarding: keyspace named: the database has a row" in guard.log(500)
        guard.wait_guarding()
        assert guard.redis().mget(RENAMED, NO_ROW) == [b"first", None]
