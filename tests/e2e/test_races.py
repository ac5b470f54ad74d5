"""Races: what the guard was told while it waited for an answer that was true when it was given.

The database's answers are held at a gate, or what a build asks, while rows and keys change.
"""
import contextlib

import pytest

from changes import CLIENTS, assert_found, call, delete, insert, outlive, update
from gate import POSTGRES_READY, Gate
from servers import PATIENCE
from waiting import wait_until
from wire import command

HINT_TTL = 0.1


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


def wait_settled(guard, key):
    """A load answers before its value has reached the cache."""
    wait_until(lambda: not guard.explain(key)["in_flight"], PATIENCE, f"the load of {key}")


class TestRebuild:
    """A row that comes when the next generation's snapshot has been taken, and its key's SET."""

    @pytest.fixture
    def renewing(self, gates, start_guard, database, items):
        """A guard, and a gate between it and the database."""
        gate = gates(database.server.port)
        url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
        guard = start_guard(items(), database=url, hint_ttl=f"{HINT_TTL * 1000:.0f}ms")
        guard.gate = gate
        return guard

    @contextlib.contextmanager
    def building(self, guard):
        """While it lasts a generation is being built, whose snapshot has been taken."""
        guard.gate.hold_requests(b"COPY (")
        try:
            number = guard.control("POST", "/v1/rebuild").json()["generation"]
            guard.gate.wait_held()
            yield
        finally:
            guard.gate.release()
        wait_until(lambda: guard.generation() >= number, PATIENCE, f"generation {number}")

    def test_of_a_row_that_the_filter_still_holds(self, renewing, database, cache):
        delete(database, 10)
        with self.building(renewing):
            insert(database, 10)
            assert renewing.redis().set("item:10", "new")
        outlive(HINT_TTL)
        assert_found(renewing, cache, "item:10", b"new")

    def test_of_a_key_with_an_older_hint(self, renewing, database, cache):
        assert renewing.redis().set("item:500", "early")
        with self.building(renewing):
            insert(database, 500)
            assert renewing.redis().set("item:500", "new")
        outlive(HINT_TTL)
        assert_found(renewing, cache, "item:500", b"new")

    @pytest.mark.parametrize("number", [10, 500])
    def test_of_a_key_that_was_admitted_for_a_second(self, renewing, database, cache, number):
        delete(database, number)
        assert call(renewing, "PUT", f"item:{number}", "?for=1s") == 201
        with self.building(renewing):
            insert(database, number)
            assert renewing.redis().set(f"item:{number}", "new")
        outlive(1)
        assert_found(renewing, cache, f"item:{number}", b"new")

    def test_of_a_key_with_a_tombstone(self, renewing, database, cache):
        delete(database, 10)
        assert call(renewing, "DELETE", "item:10") == 204
        with self.building(renewing):
            insert(database, 10)
            assert renewing.redis().set("item:10", "new")
        outlive(HINT_TTL)
        assert_found(renewing, cache, "item:10", b"new")

    def test_of_keys_of_an_mset_through_many_clients(self, renewing, database, cache):
        numbers = range(11, 11 + CLIENTS)
        database.execute("DELETE FROM items WHERE id >= 11")
        with self.building(renewing):
            for number in numbers:
                insert(database, number)
                insert(database, 1000 + number)
                assert renewing.redis().mset({f"item:{number}": "new",
                                                f"item:{1000 + number}": "new"})
        outlive(HINT_TTL)
        for number in numbers:
            assert_found(renewing, cache, f"item:{number}", b"new")
            assert_found(renewing, cache, f"item:{1000 + number}", b"new")

    def test_ends_what_was_written_without_a_row(self, renewing, database):
        """Admitted through the build, and one more: that one knows better."""
        with self.building(renewing):
            assert renewing.redis().set("item:500", "never")
        assert renewing.explain("item:500")["verdict"] == "possible"
        outlive(HINT_TTL)
        renewing.rebuild()
        wait_until(lambda: renewing.explain("item:500")["verdict"] == "absent", PATIENCE,
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
            gate.release_held()
            wait_until(lambda: deletion.done() or gate.is_holding(POSTGRES_READY), PATIENCE,
                       "the next question")
        gate.release()
        assert deletion.result() == 409
        insert(database, 10)
        assert_found(guard, cache, "item:10", b"new")


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

    def test_takes_nothing_that_is_sent_behind_the_deletion(self, loading, cache):
        """The guard deletes once more behind fills, and not what the client has written since."""
        guard, gate, _ = loading
        with guard.wire() as wire:
            wire.send(command("DEL", "item:20") + command("SET", "item:20", "mine"))
            assert wire.read_replies(2) == b":0\r\n+OK\r\n"
        gate.release()
        wait_settled(guard, "item:20")
        assert cache.client().get("item:20") == b"mine"

    def test_a_deletion_that_is_discarded_deletes_nothing(self, loading, cache):
        guard, gate, _ = loading
        cache.client().set("item:20", "new")
        with guard.wire() as wire:
            wire.send(command("MULTI") + command("DEL", "item:20"))
            assert wire.read_replies(2) == b"+OK\r\n+QUEUED\r\n"
            assert wire.ask("DISCARD") == b"+OK\r\n"
        gate.release()
        wait_settled(guard, "item:20")
        assert cache.client().get("item:20") == b"new"

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
        wait_until(lambda: (guard.redis().get("item:20"), cache.client().get("item:20"))
                   == (b"new", b"new"), PATIENCE, "the new value in the cache")
