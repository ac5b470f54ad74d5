"""Deletions that the cache has forgotten, that are owed when the guard ends, and that are more than it
takes: the old value goes, and the database waits for nobody."""
import concurrent.futures
import contextlib

import pytest

from beside import redis_beside
from following import (fill, follow, paused, purges_owed, query_alone, senders, synchronous,
                       wait_followed, wait_purged, wait_state)
from gate import Gate
from gated import other  # a fixture
from servers import PATIENCE
from waiting import wait_until

MANY = 20_000


@pytest.fixture
def gate(other):
    """Between the guard and `other`, until it leads elsewhere."""
    opened = Gate(other.port)
    yield opened
    with contextlib.suppress(OSError):
        opened.close()


def change(database, *numbers):
    database.execute("UPDATE items SET payload = 'changed' WHERE id = ANY (%s)", (list(numbers),))


def wait_settled(guard, database):
    """All that was committed before is purged, and the cache has confirmed it."""
    wait_followed(database)
    wait_until(lambda: purges_owed(guard) == 0, PATIENCE, guard.status)


def ups(guard):
    return guard.log(lines=1000).count("connection for fills and purges is up")


def wait_reconnected(guard, before):
    wait_until(lambda: ups(guard) > before, PATIENCE, lambda: f"the cache\n{guard.log()}")


def cut(server):
    """The guard's connections to it, as an idle timeout or a failover does."""
    server.client().client_kill_filter(_type="normal", skipme=True)


def must_be_forgotten_by_the_guard(guard, server, key, plain):
    wait_purged(server, key)
    assert server.client().get(plain) == b"stays"
    assert guard.redis().get(key) == b"changed"


class TestForgotten:
    """The cache confirmed the deletion, and then does not know of it any more."""

    @pytest.fixture
    def guard(self, follow, items, other, gate):
        started = follow(items(), cache=f"redis://127.0.0.1:{gate.port}/0")
        fill(started, other, "item:7", "item:8")
        other.client().set("plain", "stays")
        return started

    def test_by_a_server_that_starts_again_from_an_older_snapshot(self, guard, database, other):
        other.client().save()
        change(database, 7)
        wait_purged(other, "item:7")
        wait_settled(guard, database)
        with paused(guard.process.pid):
            other.kill()
            other.start()
            assert other.client().get("item:7") == b"payload 7"
        must_be_forgotten_by_the_guard(guard, other, "item:7", "plain")

    def test_by_a_replica_that_missed_it_and_takes_the_place(self, guard, database, other, gate):
        with redis_beside() as replica:
            replica.client().replicaof("127.0.0.1", other.port)
            wait_until(lambda: replica.client().exists("item:7"), PATIENCE, "the replica")
            replica.client().replicaof("NO", "ONE")
            change(database, 7)
            wait_purged(other, "item:7")
            wait_settled(guard, database)
            assert replica.client().get("item:7") == b"payload 7"
            gate.server_port = replica.port
            other.kill()
            must_be_forgotten_by_the_guard(guard, replica, "item:7", "plain")

    def take_over_older_data(self, database, other, guard, meanwhile=lambda: None):
        """`other` becomes the replica of one that missed a deletion, and a primary again."""
        with redis_beside() as older:
            older.client().mset({"item:7": "payload 7", "plain": "stays"})
            change(database, 7)
            wait_purged(other, "item:7")
            wait_settled(guard, database)
            other.client().replicaof("127.0.0.1", older.port)
            wait_until(lambda: other.client().exists("item:7"), PATIENCE, "the older data")
            meanwhile()
            other.client().replicaof("NO", "ONE")

    def test_by_one_that_was_a_replica_before_the_connection_was_lost(self, guard, database, other):
        self.take_over_older_data(database, other, guard)
        cut(other)
        must_be_forgotten_by_the_guard(guard, other, "item:7", "plain")

    def test_by_one_that_refused_a_deletion_as_a_replica(self, guard, database, other):
        def refuse():
            change(database, 9)
            wait_until(lambda: "it is a replica" in guard.log(), PATIENCE, guard.log)

        self.take_over_older_data(database, other, guard, meanwhile=refuse)
        must_be_forgotten_by_the_guard(guard, other, "item:7", "plain")

    def test_is_nothing_when_the_same_server_was_out_of_reach(self, guard, database, other):
        before = ups(guard)
        cut(other)
        wait_reconnected(guard, before)
        change(database, 7)
        wait_purged(other, "item:7")
        wait_settled(guard, database)
        assert other.client().get("item:8") == b"payload 8"
        assert "went through the cache" not in guard.log()


def test_a_server_that_does_not_say_who_it_is_is_swept_at_each_new_connection(
        follow, items, database, other):
    other.client().execute_command(*"ACL SETUSER guard on >pass ~* &* +@all".split())
    guard = follow(items(), cache=f"redis://guard:pass@127.0.0.1:{other.port}/0")
    fill(guard, other, "item:7")
    other.client().execute_command("ACL", "SETUSER", "guard", "-info")
    other.client().set("item:7", "payload 7")  # as a server would have it that forgot its deletion
    cut(other)
    wait_purged(other, "item:7")
    fill(guard, other, "item:7")
    cut(other)
    wait_purged(other, "item:7")


@pytest.fixture
def many(database, items):
    """Rows enough that not all of their keys' deletions may be on their way at once."""
    database.execute("INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(101, %s) n",
                     (MANY,))
    return items()


def cache_many(server):
    server.client().mset({f"item:{n}": f"payload {n}" for n in range(1, MANY + 1)})


def change_many(database):
    query_alone(database, "UPDATE items SET payload = 'changed' RETURNING 1")


class TestAtTheEnd:
    def end(self, guard):
        """SIGTERM, and clients and control port are served no more."""
        guard.signal(guard.stop_signal)
        wait_until(lambda: not guard.is_alive(), PATIENCE, guard.log)

    def test_what_is_owed_is_still_delivered(self, follow, database, cache, many):
        guard = follow(many, cache_timeout="60s", drain_timeout="60s", max_lag="60s")
        cache_many(cache)
        cache.pause()
        change_many(database)
        wait_followed(database)
        assert purges_owed(guard) == MANY
        self.end(guard)
        cache.resume()
        assert guard.wait() == 0
        assert cache.client().dbsize() == 0

    def test_what_was_committed_before_it_is_still_followed(self, follow, database, cache, items):
        guard = follow(items(), drain_timeout="60s", max_lag="60s")
        fill(guard, cache, "item:7")
        [sender] = senders(database)
        with paused(sender):
            change(database, 7)
            self.end(guard)
        assert guard.wait() == 0
        assert not cache.client().exists("item:7")

    def test_what_a_lost_stream_did_not_tell_goes_with_all_keys(
            self, follow, database, cache, items, postgres_server):
        guard = follow(items(), drain_timeout="60s")
        fill(guard, cache, "item:7")
        cache.client().set("plain", "stays")
        [sender] = senders(database)
        with paused(sender):
            change(database, 7)
            postgres_server.kill()
        wait_until(lambda: guard.keyspace()["state"] == "passing", PATIENCE, guard.status)
        assert cache.client().exists("item:7")
        guard.signal(guard.stop_signal)
        assert guard.wait() == 0
        assert not cache.client().exists("item:7")
        assert cache.client().get("plain") == b"stays"

    def test_what_cannot_be_delivered_is_named(self, follow, database, other, items):
        guard = follow(items(), cache=other.url, drain_timeout="200ms")
        other.kill()
        change(database, 7, 8, 9)
        wait_until(lambda: purges_owed(guard) == 3, PATIENCE, guard.status)
        assert guard.stop() == 0
        assert "3 keys were not deleted from the cache" in guard.log()
        assert "purge_at_start" in guard.log()


class TestMoreThanTheCacheTakes:
    def test_holds_up_no_commit_while_it_hangs(self, follow, postgres_server, database, cache,
                                               many):
        guard = follow(many, cache_timeout="10m", max_lag="60s")
        cache_many(cache)
        with synchronous(postgres_server), concurrent.futures.ThreadPoolExecutor(1) as pool:
            cache.pause()
            try:
                for _ in range(3):
                    pool.submit(change_many, database).result(PATIENCE)
                assert purges_owed(guard) >= MANY
            finally:
                cache.resume()  # else nothing ends where commits wait for it
            wait_until(lambda: purges_owed(guard) == 0, PATIENCE, guard.status)
            assert cache.client().dbsize() == 0

    def test_is_left_to_a_sweep_after_the_flood(self, follow, database, cache, many):
        guard = follow(many, cache_timeout="10m", max_lag="60s", max_hints=1000)
        cache_many(cache)
        cache.client().set("plain", "stays")
        cache.pause()
        for _ in range(3):
            change_many(database)
        wait_followed(database)
        cache.resume()
        wait_until(lambda: purges_owed(guard) == 0, PATIENCE, guard.status)
        assert cache.client().keys() == [b"plain"]
        assert guard.log(lines=1000).count("went through the cache") == 1


# ---- a keyspace that is passed on alone ----

NOTES = {"name": "notes", "key": "note:{id}", "table": "notes", "value": "payload"}


def test_what_the_log_still_tells_of_a_keyspace_that_alone_passes_is_purged(
        follow, items, database, cache):
    """Its table is the one that is followed, altered; the next filter waits for a transaction."""
    database.execute("CREATE TABLE notes (id bigint PRIMARY KEY, payload text)")
    guard = follow(items(), NOTES)
    with contextlib.closing(database.connect()) as holder:
        holder.cursor().execute("SELECT pg_current_xact_id()")
        database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
        wait_state(guard, "passing")
        fill(guard, cache, "item:5", "item:6", "item:7")
        change(database, 5)
        database.execute("DELETE FROM items WHERE id = 6")
        wait_purged(cache, "item:5", "item:6")
        assert cache.client().exists("item:7")
        assert guard.keyspace()["state"] == "passing"
        assert guard.keyspace("notes")["state"] == "guarding"
