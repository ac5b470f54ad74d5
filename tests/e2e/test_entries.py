"""The guard's exact entries: admissions, blocks and tombstones beside each other, more of them than
there is room for, and rows that share a key."""
import pytest
import redis

from changes import CLIENTS, assert_found, call, delete, insert, outlive
from servers import PATIENCE
from test_build_rewrites import wait_in_the_way
from waiting import wait_until


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


class TestTombstoneWhileAFilterIsBuilt:
    """Without a log: a row that comes back before the filter's snapshot is in it."""

    THINGS = {"name": "things", "key": "thing:{id}", "table": "things", "value": "payload"}

    def delete_and_bring_back(self, guard, database):
        wait_in_the_way(database)
        delete(database, 5)
        assert call(guard, "DELETE", "item:5") == 204
        insert(database, 5)

    @pytest.fixture(params=["none", "poll"])
    def start(self, request, start_guard, database, items):
        database.execute("CREATE TABLE things (id bigint PRIMARY KEY, payload text)")
        return lambda **settings: start_guard(items(), self.THINGS, sync=request.param, **settings)

    def test_ends_with_the_first(self, start, database, cache):
        with database.locked("things"):
            guard = start(ready=False)
            self.delete_and_bring_back(guard, database)
        guard.wait_guarding()
        assert_found(guard, cache, "item:5", b"new")

    def test_ends_with_a_later_one(self, start, database, cache):
        guard = start()
        with database.locked("things"):
            number = guard.control("POST", "/v1/rebuild").json()["generation"]
            self.delete_and_bring_back(guard, database)
            assert guard.redis().get("item:5") is None, "until then it is rejected"
        wait_until(lambda: guard.generation() >= number, PATIENCE, "the filter")
        assert_found(guard, cache, "item:5", b"new")


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

    def test_a_write_of_a_new_key_says_so(self, full, database, cache):
        """It is not written, so that nothing contradicts the guard; and others are not harmed."""
        insert(database, 500)
        with pytest.raises(redis.ResponseError, match="max_hints"):
            full.redis().set("item:500", "new")
        assert not cache.client().exists("item:500")
        assert full.keyspace()["state"] == "guarding"
        assert full.redis().set("item:3", "another")
        full.rebuild()
        assert_found(full, cache, "item:500", b"new")

    def test_keys_that_have_an_entry_are_deleted(self, full, database):
        insert(database, 900)
        assert full.redis().get("item:900") == b"new"
        assert call(full, "DELETE", "item:900", "?row=delete") == 204
        assert full.redis().get("item:900") is None
        assert database.value("SELECT count(*) FROM items WHERE id = 900") == 0
