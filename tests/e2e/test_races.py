"""Races: what the guard was told while it waited for an answer that was true when it was given.

The database's answers are held at a gate, or a build by a lock, while rows and keys change.
"""
import concurrent.futures
import contextlib
import time

import pytest

from gate import POSTGRES_READY, Gate
from servers import PATIENCE
from waiting import wait_until

CLIENTS = 8  # enough to meet every worker, most of the time
HINT_TTL = 0.1


@pytest.fixture
def threads():
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        yield pool


@pytest.fixture
def gates():
    """gates(port) opens a gate before a server; released and closed at the end."""
    opened = []

    def before(port):
        opened.append(Gate(port))
        return opened[-1]

    yield before
    for gate in opened:
        gate.release()
        gate.close()


@pytest.fixture
def gated_guard(threads, gates, start_guard, database, items):
    """gated_guard(setting=value): (a guard, the gate between it and the database). It loads over
    one connection, which is up; so what is held is the answer to what the test had it ask. After
    `threads`, so that the gate is opened before they are waited for."""
    def start(**settings):
        gate = gates(database.server.port)
        url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
        guard = start_guard(items(), database=url, load_connections=1, load_timeout="60s",
                            **settings)
        assert guard.redis().get("item:99") == b"payload 99"
        gated.append(gate)
        return guard, gate

    gated = []
    yield start
    for gate in gated:
        gate.release()  # before the guard is told to end


def call(guard, method, key, query=""):
    return guard.control(method, guard.key_path(key) + query).status_code


def insert(database, number, payload="new"):
    database.execute("INSERT INTO items VALUES (%s, %s)", (number, payload))


def delete(database, number):
    database.execute("DELETE FROM items WHERE id = %s", (number,))


def update(database, number, payload):
    database.execute("UPDATE items SET payload = %s WHERE id = %s", (payload, number))


def outlive(seconds):
    """Nothing tells that a time is over but the clock."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, PATIENCE, "the clock")


def assert_found(guard, cache, key, value):
    """On every worker, whether the cache has it or not."""
    for _ in range(CLIENTS):
        cache.client().delete(key)
        client = guard.redis()
        assert client.exists(key) == 1, guard.explain(key)
        assert client.get(key) == value, guard.explain(key)
        assert client.mget(key, "item:1") == [value, b"payload 1"]


def wait_settled(guard, key):
    """A load answers before its value has reached the cache."""
    wait_until(lambda: not guard.explain(key)["in_flight"], PATIENCE, f"the load of {key}")


class TestRebuild:
    """A row that comes when the next generation's snapshot has been taken, and its key's SET."""

    @pytest.fixture
    def two_tables(self, start_guard, database, items):
        """A guard whose builds can be held by locking `later`: the rows of items are counted
        before it, which takes the snapshot, and copied after."""
        database.execute("CREATE TABLE later (id int PRIMARY KEY, v text)")
        return start_guard(items(), {"name": "later", "key": "later:{id}", "table": "later",
                                     "value": "v"}, hint_ttl=f"{HINT_TTL * 1000:.0f}ms")

    @contextlib.contextmanager
    def building(self, guard, database):
        """While it lasts a generation is being built, whose snapshot has been taken."""
        with database.locked("later"):
            number = guard.control("POST", "/v1/rebuild").json()["generation"]
            wait_until(lambda: self.is_counting(database), PATIENCE, "the snapshot")
            yield
        wait_until(lambda: guard.generation() >= number, PATIENCE, f"generation {number}")

    def is_counting(self, database):
        return database.query("""
            SELECT 1 FROM pg_locks JOIN pg_class ON pg_class.oid = relation
            WHERE relname = 'later' AND NOT granted""")

    def test_of_a_row_that_the_filter_still_holds(self, two_tables, database, cache):
        delete(database, 10)
        with self.building(two_tables, database):
            insert(database, 10)
            assert two_tables.redis().set("item:10", "new")
        outlive(HINT_TTL)
        assert_found(two_tables, cache, "item:10", b"new")

    def test_of_a_key_with_an_older_hint(self, two_tables, database, cache):
        assert two_tables.redis().set("item:500", "early")
        with self.building(two_tables, database):
            insert(database, 500)
            assert two_tables.redis().set("item:500", "new")
        outlive(HINT_TTL)
        assert_found(two_tables, cache, "item:500", b"new")

    @pytest.mark.parametrize("number", [10, 500])
    def test_of_a_key_that_was_admitted_for_a_second(self, two_tables, database, cache, number):
        delete(database, number)
        assert call(two_tables, "PUT", f"item:{number}", "?for=1s") == 201
        with self.building(two_tables, database):
            insert(database, number)
            assert two_tables.redis().set(f"item:{number}", "new")
        outlive(1)
        assert_found(two_tables, cache, f"item:{number}", b"new")

    def test_of_a_key_with_a_tombstone(self, two_tables, database, cache):
        delete(database, 10)
        assert call(two_tables, "DELETE", "item:10") == 204
        with self.building(two_tables, database):
            insert(database, 10)
            assert two_tables.redis().set("item:10", "new")
        outlive(HINT_TTL)
        assert_found(two_tables, cache, "item:10", b"new")

    def test_of_keys_of_an_mset_through_many_clients(self, two_tables, database, cache):
        numbers = range(11, 11 + CLIENTS)
        database.execute("DELETE FROM items WHERE id >= 11")
        with self.building(two_tables, database):
            for number in numbers:
                insert(database, number)
                insert(database, 1000 + number)
                assert two_tables.redis().mset({f"item:{number}": "new",
                                                f"item:{1000 + number}": "new"})
        outlive(HINT_TTL)
        for number in numbers:
            assert_found(two_tables, cache, f"item:{number}", b"new")
            assert_found(two_tables, cache, f"item:{1000 + number}", b"new")

    def test_ends_what_was_written_without_a_row(self, two_tables, database):
        """Admitted through the build, and one more: that one knows better."""
        with self.building(two_tables, database):
            assert two_tables.redis().set("item:500", "never")
        assert two_tables.explain("item:500")["verdict"] == "possible"
        outlive(HINT_TTL)
        two_tables.rebuild()
        wait_until(lambda: two_tables.explain("item:500")["verdict"] == "absent", PATIENCE,
                   "the end of the hint")


class TestRememberedAbsence:
    @pytest.fixture
    def guard(self, start_guard, database, items):
        """It remembers that row 10, which its filter holds, is gone."""
        guard = start_guard(items())
        delete(database, 10)
        assert guard.redis().get("item:10") is None
        assert guard.explain("item:10")["known_absent"]
        return guard

    def test_ends_with_a_write_of_the_key(self, guard, database, cache):
        insert(database, 10)
        assert guard.redis().set("item:10", "new")
        assert_found(guard, cache, "item:10", b"new")

    def test_ends_though_the_written_value_expires(self, guard, database, cache):
        insert(database, 10)
        assert guard.redis().set("item:10", "new", px=50)
        wait_until(lambda: not cache.client().exists("item:10"), PATIENCE, "the value's end")
        assert guard.redis().get("item:10") == b"new"
        assert_found(guard, cache, "item:10", b"new")

    def test_ends_with_an_admission(self, guard, database, cache):
        insert(database, 10)
        assert call(guard, "PUT", "item:10") == 201
        assert_found(guard, cache, "item:10", b"new")

    def test_is_not_made_of_an_answer_from_before_a_write(self, gated_guard, database, cache,
                                                          threads):
        guard, gate = gated_guard()
        delete(database, 10)
        gate.hold_answers()
        early = threads.submit(guard.redis().get, "item:10")
        gate.wait_held(POSTGRES_READY)
        insert(database, 10)
        assert guard.redis().set("item:10", "new")
        cache.client().delete("item:10")
        late = threads.submit(guard.redis().get, "item:10")
        wait_until(lambda: guard.counter("nestguard_cache_misses_total") >= 3, PATIENCE, "both")
        gate.release()
        assert early.result(PATIENCE) in (None, b"new")
        assert late.result(PATIENCE) == b"new"
        assert not guard.explain("item:10")["known_absent"]
        assert_found(guard, cache, "item:10", b"new")


class TestDeletionCall:
    """DELETE on the control port, whose answer from the database comes late."""

    @pytest.mark.parametrize("query", ["", "?row=delete"])
    @pytest.mark.parametrize("number", [10, 500])
    def test_is_overtaken_by_a_write(self, gated_guard, database, cache, threads, number, query):
        """`?row=delete` may also delete the new row: then it must be gone in both places."""
        guard, gate = gated_guard()
        delete(database, number)
        key = f"item:{number}"
        gate.hold_answers()
        deletion = threads.submit(call, guard, "DELETE", key, query)
        gate.wait_held(POSTGRES_READY)
        insert(database, number)
        assert guard.redis().set(key, "new")
        gate.release()
        status = deletion.result(PATIENCE)
        rows = database.value("SELECT count(*) FROM items WHERE id = %s", (number,))
        assert (status, rows) in ([(409, 1), (204, 0)] if query else [(409, 1)])
        if rows:
            assert_found(guard, cache, key, b"new")
        else:
            assert cache.client().exists(key) == 0
            assert [guard.redis().get(key) for _ in range(CLIENTS)] == [None] * CLIENTS

    def test_that_deletes_the_row_is_overtaken_by_a_write(self, gated_guard, database, cache,
                                                          threads):
        guard, gate = gated_guard()
        gate.hold_answers(b"DELETE 1\0")
        deletion = threads.submit(call, guard, "DELETE", "item:10", "?row=delete")
        gate.wait_held(POSTGRES_READY)
        insert(database, 10)
        assert guard.redis().set("item:10", "new")
        gate.release()
        assert deletion.result(PATIENCE) == 409
        assert database.value("SELECT payload FROM items WHERE id = 10") == "new"
        assert_found(guard, cache, "item:10", b"new")

    @pytest.mark.parametrize("number", [10, 500])
    def test_is_overtaken_by_an_admission(self, gated_guard, database, cache, threads, number):
        guard, gate = gated_guard()
        delete(database, number)
        gate.hold_answers()
        deletion = threads.submit(call, guard, "DELETE", f"item:{number}")
        gate.wait_held(POSTGRES_READY)
        insert(database, number)
        assert call(guard, "PUT", f"item:{number}") == 201
        gate.release()
        assert deletion.result(PATIENCE) == 409
        assert_found(guard, cache, f"item:{number}", b"new")

    def test_buries_all_the_same_where_a_write_made_no_row(self, gated_guard, database, cache,
                                                           threads):
        guard, gate = gated_guard()
        delete(database, 10)
        gate.hold_answers()
        deletion = threads.submit(call, guard, "DELETE", "item:10")
        gate.wait_held(POSTGRES_READY)
        assert guard.redis().set("item:10", "never")
        gate.release()
        assert deletion.result(PATIENCE) == 204
        assert cache.client().exists("item:10") == 0
        assert [guard.redis().get("item:10") for _ in range(CLIENTS)] == [None] * CLIENTS

    def test_of_a_key_that_is_written_without_end_buries_nothing(self, gated_guard, database,
                                                                 cache, threads):
        guard, gate = gated_guard()
        delete(database, 10)
        gate.hold_answers()
        deletion = threads.submit(call, guard, "DELETE", "item:10")
        while not deletion.done():
            gate.wait_held(POSTGRES_READY)
            assert guard.redis().set("item:10", "early")
            gate.release()
            gate.hold_answers()
            wait_until(lambda: deletion.done() or gate.is_holding(POSTGRES_READY), PATIENCE,
                       "the next question")
        gate.release()
        assert deletion.result() == 409
        insert(database, 10)
        assert_found(guard, cache, "item:10", b"new")


class TestBlock:
    def wait_block_ends(self, guard, key):
        wait_until(lambda: guard.explain(key)["entry"] != "block", PATIENCE, "the block's end")

    def test_leaves_the_hint_beneath_it(self, start_guard, database, cache, items):
        guard = start_guard(items())
        insert(database, 500)
        assert guard.redis().set("item:500", "new")
        assert call(guard, "DELETE", "item:500", "?block=1s") == 204
        assert guard.redis().get("item:500") is None
        self.wait_block_ends(guard, "item:500")
        assert_found(guard, cache, "item:500", b"new")

    def test_does_not_hide_what_is_written_under_it(self, start_guard, database, cache, items):
        guard = start_guard(items())
        assert call(guard, "DELETE", "item:500", "?block=1s") == 204
        insert(database, 500)
        assert guard.redis().set("item:500", "new")
        self.wait_block_ends(guard, "item:500")
        assert_found(guard, cache, "item:500", b"new")

    def test_outlasts_a_write(self, start_guard, database, items):
        guard = start_guard(items())
        assert call(guard, "DELETE", "item:500", "?block=1h") == 204
        insert(database, 500)
        assert guard.redis().set("item:500", "new")
        assert [guard.redis().get("item:500") for _ in range(CLIENTS)] == [None] * CLIENTS
        assert guard.explain("item:500")["entry"] == "block"

    def test_leaves_the_tombstone_beneath_it(self, start_guard, database, items):
        guard = start_guard(items())
        delete(database, 10)
        assert call(guard, "DELETE", "item:10") == 204
        assert call(guard, "DELETE", "item:10", "?block=1s") == 204
        self.wait_block_ends(guard, "item:10")
        loads = database.count_loads()
        assert guard.redis().get("item:10") is None
        assert database.count_loads() == loads
        assert guard.explain("item:10")["entry"] == "tombstone"

    def test_stays_when_the_key_is_buried_beneath_it(self, start_guard, database, cache, items):
        guard = start_guard(items())
        assert call(guard, "DELETE", "item:10", "?block=1h") == 204
        assert call(guard, "DELETE", "item:10", "?row=delete") == 204
        assert guard.explain("item:10")["entry"] == "block"
        insert(database, 10)
        assert call(guard, "PUT", "item:10") == 201
        assert_found(guard, cache, "item:10", b"new")

    @pytest.mark.parametrize("number", [10, 500])
    def test_ends_with_an_admission(self, start_guard, database, cache, items, number):
        guard = start_guard(items())
        key = f"item:{number}"
        assert call(guard, "DELETE", key, "?block=1h") == 204
        assert guard.redis().get(key) is None
        delete(database, number)
        insert(database, number)
        assert call(guard, "PUT", key) == 201
        assert_found(guard, cache, key, b"new")


def test_an_admission_for_a_second_does_not_shorten_what_a_write_admitted(
        start_guard, database, cache, items):
    guard = start_guard(items())
    insert(database, 500)
    assert guard.redis().set("item:500", "new")
    assert call(guard, "PUT", "item:500", "?for=1s") == 204
    outlive(1)
    assert_found(guard, cache, "item:500", b"new")


class TestRowsWithOneKeyText:
    KEYSPACE = {"name": "pairs", "key": "pair:{a}:{b}", "table": "pairs", "value": "v"}

    @pytest.fixture
    def pairs(self, database):
        database.execute("CREATE TABLE pairs (a text, b text, v text, PRIMARY KEY (a, b))")

    def test_by_the_hundreds_do_not_fill_the_filter(self, start_guard, database, items, pairs):
        database.execute("""
            INSERT INTO pairs SELECT repeat('s:', n) || 's', repeat('s:', 399 - n) || 's', n
            FROM generate_series(0, 399) n""")
        assert database.value("SELECT count(DISTINCT a || ':' || b) FROM pairs") == 1
        guard = start_guard(items(), self.KEYSPACE)
        assert guard.explain("pair:" + ":".join("s" * 401))["verdict"] == "possible"
        insert(database, 500)
        guard.rebuild()
        assert guard.redis().get("item:500") == b"new"
        assert guard.status()["last_build_error"] is None

    def test_are_each_found_when_the_other_goes(self, start_guard, database, pairs):
        database.execute("INSERT INTO pairs VALUES ('x', 'y:z', 'first'), ('x:y', 'z', 'second')")
        guard = start_guard(self.KEYSPACE)
        assert guard.redis().get("pair:x:y:z") in (b"first", b"second")
        database.execute("DELETE FROM pairs WHERE v = 'first'")
        assert call(guard, "DELETE", "pair:x:y:z") == 409
        guard.rebuild()
        database.execute("UPDATE pairs SET v = 'changed'")
        assert guard.redis().delete("pair:x:y:z")
        assert guard.redis().get("pair:x:y:z") == b"changed"
        database.execute("DELETE FROM pairs")
        assert call(guard, "DELETE", "pair:x:y:z") == 204
        assert guard.redis().get("pair:x:y:z") is None


DELETIONS = pytest.mark.parametrize("command", ["DEL", "UNLINK", "GETDEL"])


class TestStaleValue:
    """A row that is updated while its old value is on the way to the cache."""

    @pytest.fixture
    def loading(self, gated_guard, database, threads):
        """(guard, gate, lookups): clients on different workers wait for the old value of item:20,
        which is held; the row has been updated since."""
        guard, gate = gated_guard(workers=4)
        gate.hold_answers(b"payload 20")
        lookups = [threads.submit(guard.redis().get, "item:20") for _ in range(CLIENTS)]
        wait_until(lambda: guard.counter("nestguard_cache_misses_total") >= 1 + CLIENTS, PATIENCE,
                   "all lookups")
        gate.wait_held(POSTGRES_READY)
        update(database, 20, "new")
        return guard, gate, lookups

    @DELETIONS
    def test_is_not_cached_after_a_deletion(self, loading, cache, command):
        guard, gate, lookups = loading
        guard.redis().execute_command(command, "item:20")
        gate.release()
        assert {lookup.result(PATIENCE) for lookup in lookups} <= {b"payload 20", b"new"}
        wait_settled(guard, "item:20")
        assert cache.client().get("item:20") in (None, b"new")
        assert [guard.redis().get("item:20") for _ in range(CLIENTS)] == [b"new"] * CLIENTS

    @DELETIONS
    def test_is_not_given_to_who_asks_after_a_deletion(self, loading, cache, threads, command):
        guard, gate, lookups = loading
        guard.redis().execute_command(command, "item:20")
        late = [threads.submit(guard.redis().get, "item:20") for _ in range(CLIENTS)]
        wait_until(lambda: guard.counter("nestguard_cache_misses_total") >= 1 + 2 * CLIENTS,
                   PATIENCE, "the late lookups")
        gate.release()
        assert {lookup.result(PATIENCE) for lookup in lookups} <= {b"payload 20", b"new"}
        assert [lookup.result(PATIENCE) for lookup in late] == [b"new"] * CLIENTS
        wait_settled(guard, "item:20")
        assert cache.client().get("item:20") in (None, b"new")

    def test_is_not_cached_after_a_deletion_of_many_keys(self, loading, cache):
        guard, gate, lookups = loading
        guard.redis().delete("item:1", "unguarded", "item:20", "item:2")
        gate.release()
        assert {lookup.result(PATIENCE) for lookup in lookups} <= {b"payload 20", b"new"}
        wait_settled(guard, "item:20")
        assert guard.redis().get("item:20") == b"new"

    def test_does_not_replace_what_was_written(self, loading, cache):
        guard, gate, lookups = loading
        assert guard.redis().set("item:20", "new")
        gate.release()
        assert {lookup.result(PATIENCE) for lookup in lookups} <= {b"payload 20", b"new"}
        wait_settled(guard, "item:20")
        assert cache.client().get("item:20") == b"new"

    def test_is_not_cached_after_a_write_that_expires(self, loading, cache):
        guard, gate, lookups = loading
        assert guard.redis().set("item:20", "new", px=50)
        wait_until(lambda: not cache.client().exists("item:20"), PATIENCE, "the value's end")
        gate.release()
        assert {lookup.result(PATIENCE) for lookup in lookups} <= {b"payload 20", b"new"}
        wait_settled(guard, "item:20")
        assert guard.redis().get("item:20") == b"new"

    @DELETIONS
    def test_does_not_outlast_a_deletion_that_overtakes_it_on_the_way(
            self, gates, start_guard, database, cache, items, threads, command):
        """The fill is held between guard and cache: what deletes the key must come behind it."""
        gate = gates(cache.port)
        guard = start_guard(items(), cache=f"redis://127.0.0.1:{gate.port}/0",
                            cache_timeout="60s")
        gate.hold_requests(b"payload 20")
        assert guard.redis().get("item:20") == b"payload 20"
        gate.wait_held()
        update(database, 20, "new")
        deletion = threads.submit(guard.redis().execute_command, command, "item:20")
        wait_until(lambda: cache.calls(command.lower()) > 0, PATIENCE, "the deletion")
        gate.release()
        deletion.result(PATIENCE)
        assert [guard.redis().get("item:20") for _ in range(CLIENTS)] == [b"new"] * CLIENTS
        assert cache.client().get("item:20") == b"new"


class TestWithoutRoomForEntries:
    @pytest.fixture
    def full(self, start_guard, cache, items):
        """A guard that has admitted as many keys as it may; item:3 is cached."""
        guard = start_guard(items(), max_hints=1)
        assert call(guard, "PUT", "item:900") == 201
        assert guard.redis().get("item:3") == b"payload 3"
        cache.wait_for_key("item:3")
        return guard

    def test_no_row_is_deleted(self, full, database, cache):
        assert call(full, "DELETE", "item:3", "?row=delete") == 503
        assert database.value("SELECT payload FROM items WHERE id = 3") == "payload 3"
        assert_found(full, cache, "item:3", b"payload 3")

    def test_a_deletion_says_so(self, full, database):
        delete(database, 3)
        assert call(full, "DELETE", "item:3") == 503
        assert full.explain("item:3")["entry"] == "none"

    def test_a_block_still_purges_the_cache(self, full, cache):
        assert call(full, "DELETE", "item:3", "?block=10m") == 503
        assert cache.client().exists("item:3") == 0

    def test_what_is_written_is_found(self, full, database, cache):
        """Passed on until a generation knows it, and rejected again from then on."""
        for number in (500, 501):
            insert(database, number)
            assert full.redis().set(f"item:{number}", "new")
        for number in (500, 501):
            assert_found(full, cache, f"item:{number}", b"new")
        wait_until(lambda: full.keyspace()["state"] == "guarding", PATIENCE, "the generation")
        assert_found(full, cache, "item:500", b"new")
        assert full.explain("item:502")["verdict"] == "absent"

    def test_keys_that_have_an_entry_are_deleted(self, full, database):
        insert(database, 900)
        assert full.redis().get("item:900") == b"new"
        assert call(full, "DELETE", "item:900", "?row=delete") == 204
        assert full.redis().get("item:900") is None
        assert database.value("SELECT count(*) FROM items WHERE id = 900") == 0
