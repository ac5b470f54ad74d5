"""With `sync: replication` the filter knows each committed change of a row, and the cache loses the
key that it was about."""
import concurrent.futures
import itertools

import pytest

from following import (fill, follow, is_possible, paused, query_alone, senders, synchronous,
                       wait_followed, wait_generation, wait_purged, wait_removed)
from servers import PATIENCE
from waiting import wait_until


def test_an_inserted_row_is_found(follow, database, cache, items):
    guard = follow(items())
    client = guard.redis()
    assert client.get("item:1000") is None
    assert database.count_loads() == 0
    database.execute("INSERT INTO items VALUES (1000, 'new')")
    wait_followed(database)
    assert client.get("item:1000") == b"new"
    assert client.mget("item:1000", "item:1001") == [b"new", None]
    assert client.exists("item:1000", "item:1001") == 1


CHANGES = {
    "update": ("UPDATE items SET payload = 'new' WHERE id = 7", {7: b"new"}),
    "update to NULL": ("UPDATE items SET payload = NULL WHERE id = 7", {7: b""}),
    "update that changes nothing": ("UPDATE items SET id = id WHERE id = 7", {7: b"payload 7"}),
    "key update": ("UPDATE items SET id = 1007 WHERE id = 7", {7: None, 1007: b"payload 7"}),
    "key update of all": ("UPDATE items SET id = id + 500", {7: None, 507: b"payload 7"}),
    "keys in turn": ("UPDATE items SET id = 1007 WHERE id = 7; "
                     "UPDATE items SET id = 7 WHERE id = 8; "
                     "UPDATE items SET id = 8 WHERE id = 1007",
                     {7: b"payload 8", 8: b"payload 7", 1007: None}),
    "delete": ("DELETE FROM items WHERE id = 7", {7: None, 8: b"payload 8"}),
    "delete all": ("DELETE FROM items", {7: None, 8: None}),
    "truncate": ("TRUNCATE items", {7: None, 8: None}),
    "delete and insert": ("DELETE FROM items WHERE id = 7; INSERT INTO items VALUES (7, 'again')",
                          {7: b"again"}),
    "truncate and insert": ("TRUNCATE items; INSERT INTO items VALUES (7, 'again')",
                            {7: b"again", 8: None}),
    "insert on conflict": ("INSERT INTO items VALUES (7, 'x'), (1007, 'y') ON CONFLICT (id)"
                           " DO UPDATE SET payload = excluded.payload", {7: b"x", 1007: b"y"}),
    "merge": ("MERGE INTO items USING (VALUES (7), (1007)) v (n) ON id = n"
              " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (n, 'merged')",
              {7: None, 1007: b"merged"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_purges_its_key_and_the_filter_follows(follow, database, cache, items, change):
    sql, wanted = CHANGES[change]
    guard = follow(items())
    fill(guard, cache, "item:7")
    database.execute("BEGIN; " + sql + "; COMMIT")
    wait_purged(cache, "item:7")
    wait_removed(guard, database)
    assert {n: guard.redis().get(f"item:{n}") for n in wanted} == wanted
    if change not in ("truncate", "truncate and insert"):  # its keys go with the next generation
        possible = {n: is_possible(guard, f"item:{n}") for n in wanted}
        assert possible == {n: value is not None for n, value in wanted.items()}


def test_keys_that_did_not_change_stay_in_the_cache(follow, database, cache, items):
    guard = follow(items())
    fill(guard, cache, "item:7", "item:8")
    database.execute("UPDATE items SET payload = 'new' WHERE id = 8")
    wait_purged(cache, "item:8")
    assert cache.client().get("item:7") == b"payload 7"


def test_a_truncated_table_is_rejected_after_the_next_generation(follow, database, items):
    guard = follow(items())
    database.execute("TRUNCATE items; INSERT INTO items VALUES (7, 'again')")
    wait_until(lambda: not is_possible(guard, "item:8"), PATIENCE, "item:8 to be absent")
    assert guard.redis().mget("item:7", "item:8") == [b"again", None]
    assert guard.generation() > 1


def test_a_truncate_that_only_the_first_generation_tells_of_empties_its_filter(follow, database,
                                                                               items):
    """It waits for the rows to be copied, and comes before the generation is in force."""
    keyspace = items()
    database.execute("INSERT INTO items SELECT n, 'new ' || n FROM generate_series(1000, 300000) n")
    guard = follow(keyspace)
    guard.kill()
    guard.start_unready()
    wait_until(lambda: query_alone(database, "SELECT count(*) FROM pg_locks WHERE relation ="
                                   " 'items'::regclass AND mode = 'AccessShareLock'")[0][0],
               PATIENCE, "the rows to be copied")
    database.execute("TRUNCATE items")
    guard.wait_guarding()
    assert guard.redis().get("item:1000") is None
    wait_until(lambda: not is_possible(guard, "item:1000"), PATIENCE,
               lambda: f"the old keys to be gone: {guard.status()}\n{guard.log()}")


@pytest.mark.parametrize("purge", [True, False])
def test_what_changed_while_no_guard_ran_is_purged_if_wanted(
        follow, database, cache, items, purge):
    guard = follow(items(), purge_at_start=purge)
    assert guard.redis().get("item:1") == b"payload 1"
    cache.wait_for_key("item:1")
    cache.client().set("other", "stays")
    guard.stop()
    database.execute("UPDATE items SET payload = 'changed' WHERE id = 1")
    guard.start()
    if purge:
        wait_until(lambda: guard.redis().get("item:1") == b"changed", PATIENCE, "the new value")
    else:
        assert guard.redis().get("item:1") == b"payload 1"
    assert cache.client().get("other") == b"stays"


class TestTransactions:
    def test_one_that_is_rolled_back_leaves_no_trace(self, follow, database, cache, items):
        guard = follow(items())
        fill(guard, cache, "item:7")
        rows = guard.keyspace()["rows"]
        database.execute("""
            BEGIN; UPDATE items SET payload = 'never' WHERE id = 7; DELETE FROM items WHERE id = 8;
            INSERT INTO items SELECT n, 'never' FROM generate_series(1000, 1999) n; ROLLBACK""")
        database.execute("INSERT INTO items VALUES (2000, 'after')")
        wait_followed(database)
        assert cache.client().get("item:7") == b"payload 7"
        assert guard.keyspace()["rows"] == rows + 1
        assert guard.redis().mget("item:1000", "item:8") == [None, b"payload 8"]

    def test_savepoints_keep_what_is_committed_alone(self, follow, database, cache, items):
        guard = follow(items())
        fill(guard, cache, "item:6", "item:7")
        database.execute("""
            BEGIN; INSERT INTO items VALUES (1000, 'a');
            SAVEPOINT one; INSERT INTO items VALUES (1001, 'b'); DELETE FROM items WHERE id = 7;
              SAVEPOINT two; INSERT INTO items VALUES (1002, 'c'); RELEASE two;
            ROLLBACK TO one; INSERT INTO items VALUES (1003, 'd');
            SAVEPOINT three; DELETE FROM items WHERE id = 6; RELEASE three; COMMIT""")
        wait_removed(guard, database)
        wait_purged(cache, "item:6")
        assert cache.client().get("item:7") == b"payload 7"
        keys = [1000, 1001, 1002, 1003, 6, 7]
        possible = [is_possible(guard, f"item:{n}") for n in keys]
        assert possible == [True, False, False, True, False, True]

    def test_nothing_is_seen_before_the_commit(self, follow, database, cache, items):
        guard = follow(items())
        fill(guard, cache, "item:7")
        writer = database.connect()
        writer.cursor().execute("INSERT INTO items VALUES (1000, 'x'); "
                                "DELETE FROM items WHERE id = 7")
        database.execute("INSERT INTO items VALUES (1001, 'other')")
        wait_followed(database)
        assert not is_possible(guard, "item:1000")
        assert cache.client().get("item:7") == b"payload 7"
        writer.commit()
        wait_followed(database)
        wait_purged(cache, "item:7")
        assert guard.redis().mget("item:1000", "item:7") == [b"x", None]
        writer.close()

    def test_a_prepared_one_counts_when_it_is_committed(self, follow, database, items):
        guard = follow(items())
        database.execute("BEGIN; INSERT INTO items VALUES (1000, 'x'); PREPARE TRANSACTION 'one'")
        database.execute("INSERT INTO items VALUES (1001, 'other')")
        wait_followed(database)
        assert not is_possible(guard, "item:1000")
        database.execute("COMMIT PREPARED 'one'")
        wait_followed(database)
        assert guard.redis().get("item:1000") == b"x"

    def test_a_copy_of_many_rows_in_one_transaction(self, follow, database, items):
        """Some are beyond what the generation has places for, so another takes over."""
        guard = follow(items(), load_budget=1000)
        database.execute("COPY items (id, payload) FROM PROGRAM"
                         " 'seq 1001 101000 | sed s/$/,bulk/' WITH (FORMAT csv)")
        wait_until(lambda: has_every_row(guard, database), PATIENCE, guard.status)
        client = guard.redis()
        for begin in range(1001, 101001, 5000):
            keys = [f"item:{n}" for n in range(begin, begin + 200)]
            assert client.mget(keys) == [b"bulk"] * 200
        assert client.get("item:101001") is None


def has_every_row(guard, database):
    return (guard.is_ready()
            and guard.keyspace()["rows"] == database.value("SELECT count(*) FROM items"))


class TestTables:
    def test_a_soft_delete_is_a_delete_and_can_be_taken_back(self, follow, database, cache, items):
        database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
        guard = follow(items(where="deleted_at IS NULL"))
        fill(guard, cache, "item:7")
        database.execute("UPDATE items SET deleted_at = now() WHERE id = 7")
        wait_purged(cache, "item:7")
        wait_removed(guard, database)
        assert guard.redis().get("item:7") is None and not is_possible(guard, "item:7")
        database.execute("INSERT INTO items VALUES (1000, 'gone', now()); "
                         "UPDATE items SET payload = 'still gone' WHERE id = 7")
        wait_followed(database)
        assert not is_possible(guard, "item:1000") and not is_possible(guard, "item:7")
        database.execute("UPDATE items SET deleted_at = NULL, payload = 'back' WHERE id = 7; "
                         "UPDATE items SET deleted_at = now(), id = 1008 WHERE id = 8")
        wait_removed(guard, database)
        assert guard.redis().mget("item:7", "item:8", "item:1008") == [b"back", None, None]
        assert not is_possible(guard, "item:8") and not is_possible(guard, "item:1008")

    def test_a_partitioned_table(self, follow, database, cache):
        database.execute("""
            CREATE TABLE parts (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
            CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
            CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000);
            INSERT INTO parts SELECT n, 'payload ' || n FROM generate_series(1, 100) n""")
        guard = follow({"name": "items", "key": "part:{id}", "table": "parts", "value": "payload"})
        fill(guard, cache, "part:7", "part:8", "part:9")
        database.execute("UPDATE parts SET id = 1007 WHERE id = 7; "  # into the other partition
                         "UPDATE parts SET payload = 'new' WHERE id = 8; "
                         "DELETE FROM parts_1 WHERE id = 9; INSERT INTO parts_2 VALUES (1500, 'x')")
        wait_removed(guard, database)
        wait_purged(cache, "part:7", "part:8", "part:9")
        keys = ["part:7", "part:1007", "part:8", "part:9", "part:1500"]
        assert guard.redis().mget(keys) == [None, b"payload 7", b"new", None, b"x"]
        assert [is_possible(guard, key) for key in keys] == [False, True, True, False, True]

    def test_a_partition_that_comes_brings_its_rows(self, follow, database):
        database.execute("""
            CREATE TABLE parts (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
            CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
            CREATE TABLE parts_2 (LIKE parts INCLUDING ALL);
            INSERT INTO parts_2 VALUES (1007, 'brought')""")
        guard = follow({"name": "items", "key": "part:{id}", "table": "parts", "value": "payload"})
        assert guard.redis().get("part:1007") is None
        database.execute("ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (1000) TO"
                         " (2000)")
        wait_until(lambda: guard.redis().get("part:1007") == b"brought", PATIENCE, "the new rows")
        wait_until(guard.is_ready, PATIENCE, "guarding")
        assert guard.redis().get("part:1008") is None and not is_possible(guard, "part:1008")

    def test_a_partition_that_is_truncated_takes_its_rows_out_of_the_cache(
            self, follow, database, cache):
        database.execute("""
            CREATE TABLE parts (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
            CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
            INSERT INTO parts SELECT n, 'payload ' || n FROM generate_series(1, 100) n""")
        guard = follow({"name": "items", "key": "part:{id}", "table": "parts", "value": "payload"})
        fill(guard, cache, "part:7")
        database.execute("TRUNCATE parts_1")
        wait_purged(cache, "part:7")
        assert guard.redis().get("part:7") is None

    def test_two_keyspaces_on_one_table(self, follow, database, cache):
        database.execute("""
            CREATE TABLE users (id bigint PRIMARY KEY, mail text NOT NULL UNIQUE, name text);
            ALTER TABLE users REPLICA IDENTITY FULL;
            INSERT INTO users VALUES (1, 'a@x', 'Ann'), (2, 'b@x', 'Bob')""")
        guard = follow({"name": "by_id", "key": "user:{id}", "table": "users", "value": "name"},
                       {"name": "by_mail", "key": "mail:{mail}", "table": "users", "value": "id"})
        fill(guard, cache, "user:1", "mail:a@x", "mail:b@x")
        database.execute("UPDATE users SET mail = 'c@x', name = 'Anna' WHERE id = 1")
        wait_followed(database)
        wait_purged(cache, "user:1", "mail:a@x")
        assert cache.client().get("mail:b@x") == b"2"
        assert guard.redis().mget("user:1", "mail:a@x", "mail:c@x") == [b"Anna", None, b"1"]
        database.execute("DELETE FROM users WHERE id = 2; INSERT INTO users VALUES (3, 'b@x', 'B')")
        wait_followed(database)
        wait_purged(cache, "mail:b@x")
        assert guard.redis().mget("user:2", "user:3", "mail:b@x") == [None, b"B", b"3"]

    def test_composite_and_quoted_keys(self, follow, database, cache):
        database.execute("""
            CREATE SCHEMA "odd Schema";
            CREATE TABLE "odd Schema"."Ta""ble" ("A b" int, "c'd" text, extra int DEFAULT 0,
                "Va:lue" text, PRIMARY KEY ("A b", "c'd"));
            INSERT INTO "odd Schema"."Ta""ble"
            VALUES (1, 'x y', 0, 'one'), (2, E'q''\\\\', 0, 'two')""")
        guard = follow({"name": "items", "key": "o:{A b}:{c'd}", "value": "Va:lue",
                        "table": '"odd Schema"."Ta""ble"'})
        fill(guard, cache, "o:1:x y", "o:2:q'\\")
        database.execute("""
            ALTER TABLE "odd Schema"."Ta""ble" DROP COLUMN extra;
            UPDATE "odd Schema"."Ta""ble" SET "c'd" = E'"z\\n"' WHERE "A b" = 1;
            INSERT INTO "odd Schema"."Ta""ble" VALUES (1, 'x:y', 'three')""")
        wait_purged(cache, "o:1:x y")
        wait_followed(database)
        keys = ["o:1:x y", 'o:1:"z\n"', "o:2:q'\\", "o:1:x:y", "o:2:x:y"]
        assert guard.redis().mget(keys) == [None, b"one", b"two", b"three", None]

    def test_keys_that_are_not_ascii(self, follow, database, cache):
        database.execute("CREATE TABLE words (word text PRIMARY KEY, payload text); "
                         "INSERT INTO words VALUES ('Zoë', 'ё'), ('日本', '語')")
        guard = follow({"name": "items", "key": "wörd:{word}", "table": "words",
                        "value": "payload"})
        fill(guard, cache, "wörd:Zoë", "wörd:日本")
        database.execute("UPDATE words SET word = 'Zoé 🐘' WHERE word = 'Zoë'; "
                         "UPDATE words SET payload = '语' WHERE word = '日本'")
        wait_purged(cache, "wörd:Zoë", "wörd:日本")
        wait_followed(database)
        keys = ["wörd:Zoë", "wörd:Zoé 🐘", "wörd:日本", "wörd:本"]
        assert guard.redis().mget(keys) == [None, "ё".encode(), "语".encode(), None]

    @pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
    def test_a_long_value_that_an_update_leaves_alone(self, follow, database, cache, identity):
        """The log holds nothing of a column that is stored elsewhere and was not changed."""
        database.execute(f"""
            CREATE TABLE long (id bigint PRIMARY KEY, n int, payload text);
            ALTER TABLE long ALTER payload SET STORAGE EXTERNAL, REPLICA IDENTITY {identity};
            INSERT INTO long SELECT n, 0, repeat('x', 100000) FROM generate_series(1, 3) n""")
        guard = follow({"name": "items", "key": "long:{id}", "table": "long", "value": "payload"})
        fill(guard, cache, "long:1", "long:2", "long:3")
        database.execute("UPDATE long SET n = 1 WHERE id = 1; UPDATE long SET id = 20 WHERE id = 2")
        wait_purged(cache, "long:1", "long:2")
        wait_followed(database)
        assert guard.redis().strlen("long:3") == 100000
        assert [len(value or "") for value in guard.redis().mget("long:1", "long:2", "long:20")] \
            == [100000, 0, 100000]

    def test_a_long_key_that_an_update_leaves_alone(self, follow, database, cache):
        database.execute("""
            CREATE TABLE long (id text PRIMARY KEY, n int);
            ALTER TABLE long ALTER id SET STORAGE EXTERNAL;
            INSERT INTO long SELECT repeat(n::text, 2500), n FROM generate_series(1, 3) n""")
        guard = follow({"name": "items", "key": "long:{id}", "table": "long", "value": "n"})
        one, two = "long:" + "1" * 2500, "long:" + "2" * 2500
        fill(guard, cache, one, two)
        database.execute("UPDATE long SET n = 10 WHERE n = 1")
        wait_purged(cache, one)
        wait_followed(database)
        assert guard.redis().mget(one, two) == [b"10", b"2"]
        database.execute("DELETE FROM long WHERE n = 10")
        wait_removed(guard, database)
        wait_purged(cache, one)
        assert guard.redis().get(one) is None and not is_possible(guard, one)


class TestLoads:
    def test_one_whose_row_changes_meanwhile_does_not_fill(
            self, follow, database, cache, items, threads):
        guard = follow(items(), load_connections=1, load_timeout="60s")
        assert guard.redis().get("item:1") == b"payload 1"
        with paused(load_connection(database)):
            waiting = threads.submit(guard.redis().get, "item:7")
            wait_until(lambda: guard.status()["backends"]["database"]["loads_in_flight"] == 1,
                       PATIENCE, "the load")
            database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
            wait_followed(database)
        assert waiting.result(PATIENCE) == b"new"
        fill(guard, cache, "item:8")
        assert not cache.client().exists("item:7")
        fill(guard, cache, "item:7")

    def test_a_remembered_false_positive_is_forgotten_when_its_key_appears(
            self, follow, database, items):
        guard = follow(items(false_positive_rate=0.03))
        client = guard.redis()
        possible = (n for n in range(1000, 50000) if is_possible(guard, f"item:{n}"))
        false = list(itertools.islice(possible, 3))  # about one in 400: the filter has room
        for _ in range(2):
            assert client.mget([f"item:{n}" for n in false]) == [None] * len(false)
        assert guard.counter("nestguard_known_absent_total") == len(false)
        for n in false:
            database.execute("INSERT INTO items VALUES (%s, 'appeared')", (n,))
            wait_followed(database)
            assert client.get(f"item:{n}") == b"appeared"


def load_connection(database):
    """The one process that loads rows."""
    found = database.query("SELECT pid FROM pg_stat_activity WHERE usename = 'guard'"
                           " AND datname = current_database() AND query LIKE '%%$1%%'"
                           " AND (query NOT LIKE '%%pg\\_%%' OR query LIKE '%%pg\\_column\\_size%%')")
    assert len(found) == 1, found
    return found[0][0]


class TestReadYourWrites:
    def test_what_is_committed_is_found_at_once(self, follow, postgres_server, database, items):
        guard = follow(items())
        client = guard.redis()
        with synchronous(postgres_server):
            for n in range(1000, 1500):
                database.execute("INSERT INTO items VALUES (%s, %s)", (n, f"new {n}"))
                assert client.get(f"item:{n}") == b"new %d" % n
                if n % 2:
                    database.execute("UPDATE items SET id = id + 10000 WHERE id = %s", (n,))
                    assert client.exists(f"item:{n + 10000}") == 1

    def test_also_while_generations_replace_each_other(
            self, follow, postgres_server, database, items):
        guard = follow(items())
        client = guard.redis()
        with synchronous(postgres_server):
            rows = itertools.count(1000)
            while guard.generation() <= 5:
                guard.control("POST", "/v1/rebuild")
                for n in itertools.islice(rows, 20):
                    database.execute("INSERT INTO items VALUES (%s, %s)", (n, f"new {n}"))
                    assert client.get(f"item:{n}") == b"new %d" % n, guard.status()

    def test_only_the_generation_in_force_lets_commits_return(
            self, follow, postgres_server, database, items):
        """The next one may know of a row before the one that still serves does."""
        guard = follow(items(), max_lag="60s")
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            for n in range(1000, 1010):
                [serving] = senders(database)
                with paused(serving):
                    number = guard.control("POST", "/v1/rebuild").json()["generation"]
                    wait_until(lambda: len(senders(database)) == 2, PATIENCE, "the next one")
                    database.execute("INSERT INTO items VALUES (%s, 'x')", (n,))
                    assert guard.redis().get(f"item:{n}") == b"x", guard.status()
                wait_generation(guard, number)
                wait_until(lambda: len(senders(database)) == 1, PATIENCE, "the older one's end")

    def test_a_commit_waits_while_the_guard_stands_still(
            self, follow, postgres_server, database, items, threads):
        guard = follow(items())
        with synchronous(postgres_server):
            guard.pause()
            try:
                waiting = threads.submit(database.execute, "INSERT INTO items VALUES (1000, 'x')")
                observer = postgres_server.connect(database.name)
                wait_until(lambda: is_waiting(observer), PATIENCE, "the commit to wait")
                with pytest.raises(concurrent.futures.TimeoutError):
                    waiting.result(1)
            finally:
                guard.resume()
            waiting.result(PATIENCE)
            assert guard.redis().get("item:1000") == b"x"
            observer.close()

    def test_a_transaction_may_do_without(self, follow, postgres_server, database, items):
        guard = follow(items())
        with synchronous(postgres_server):
            guard.pause()
            try:
                database.execute("BEGIN; SET LOCAL synchronous_commit = local; "
                                 "INSERT INTO items VALUES (1000, 'x'); COMMIT")
            finally:
                guard.resume()
        wait_followed(database)
        assert guard.redis().get("item:1000") == b"x"

    def test_under_another_name(self, follow, postgres_server, database, items):
        guard = follow(items(), database=database.url + "?application_name=other")
        with synchronous(postgres_server, "ANY 1 (absent, other)"):
            for n in range(1000, 1020):
                database.execute("INSERT INTO items VALUES (%s, 'x')", (n,))
                assert guard.redis().get(f"item:{n}") == b"x"


def is_waiting(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    return cursor.fetchone()[0] > 0
