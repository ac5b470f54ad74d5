"""What lies in the cache when a guard follows another may be old: of another cache than the one before had,
of one that its predecessor doubts, or to which it owed deletions. No lookup of a row gets it."""
import contextlib

import pytest

from following import fill, follow, publish, wait_purged
from gate import Gate
from gated import gate, other  # fixtures
from servers import PATIENCE
from waiting import wait_until


def settings_of(gate):
    """The guard would not wait as long for what a gate holds."""
    return {"cache": f"redis://127.0.0.1:{gate.port}/0", "cache_timeout": "60s"}


def takings(guard):
    return guard.log(lines=10**6).count("this one serves from here on")


@contextlib.contextmanager
def beside(guard):
    """With it a successor lets clients in, and its predecessor has one that stays; then that ends."""
    with guard.wire() as stays:
        wait_until(lambda: stays.ask("PING") == b"+PONG\r\n", PATIENCE, guard.log)  # it is connected again
        before, guard.process = guard.process, None
        count = takings(guard)
        guard.launch()
        wait_until(lambda: takings(guard) > count, PATIENCE, guard.log)
        yield before
    before.wait(PATIENCE)


def must_be_believed_when_swept(guard, server, gate):
    """None of the keys was asked for that is looked for here."""
    assert server.client().get("item:9") == b"old"
    gate.release()
    wait_purged(server, "item:9")
    fill(guard, server, "item:9")


def put_old(server):
    server.client().mset({f"item:{number}": "old" for number in (7, 8, 9)})


@pytest.mark.parametrize("has_reloaded", [False, True])
def test_another_cache_is_not_read_before_it_is_swept(start_guard, database, items, other, gate,
                                                      has_reloaded):
    """The file names it, and nobody has deleted anything there; or its sweep was not over."""
    keyspace = items()
    publish(database, keyspace)
    guard = start_guard(keyspace, sync="replication")
    put_old(other)
    gate.hold_requests(b"SCAN")
    guard.configure({"database": database.url, "keyspaces": [keyspace], "sync": "replication",
                     **settings_of(gate)})
    if has_reloaded:
        assert guard.control("POST", "/v1/reload").status_code == 200
        gate.wait_held()
    with beside(guard):
        assert guard.redis().get("item:7") == b"payload 7"
        must_be_believed_when_swept(guard, other, gate)


def test_nor_one_that_is_being_swept_under_the_same_name(start_guard, database, items, cache, other):
    """The name leads elsewhere by now, and only a reload has noticed."""
    keyspace = items()
    publish(database, keyspace)
    put_old(other)
    with Gate(cache.port) as gate:
        guard = start_guard(keyspace, sync="replication", **settings_of(gate))
        gate.server_port = other.port
        gate.hold_requests(b"SCAN")
        guard.configure({"database": database.url, "keyspaces": [keyspace], "sync": "replication",
                         **settings_of(gate), "cache": f"redis://default:any@127.0.0.1:{gate.port}/0"})
        assert guard.control("POST", "/v1/reload").status_code == 200
        gate.wait_held()
        with beside(guard):
            assert guard.redis().get("item:7") == b"payload 7"
            must_be_believed_when_swept(guard, other, gate)
        guard.stop()


def test_what_a_lost_predecessor_owed_is_not_read_before_it_is_deleted(follow, items, other, gate):
    guard = follow(items(), **settings_of(gate))
    with beside(guard) as before:
        put_old(other)
        assert guard.redis().get("item:8") == b"old"
        gate.hold_requests(b"SCAN")
        before.kill()
        wait_until(lambda: guard.redis().get("item:7") == b"payload 7", PATIENCE, guard.log)
        must_be_believed_when_swept(guard, other, gate)


def test_what_its_predecessor_doubts_a_successor_does_not_read(follow, items, other, gate):
    """The server has started anew, which is none to a successor that has not known it before."""
    guard = follow(items(), **settings_of(gate))
    put_old(other)
    other.client().save()
    gate.hold_requests(b"SCAN")
    other.kill()
    other.start()
    gate.wait_held()
    with beside(guard):
        assert guard.redis().get("item:7") == b"payload 7"
        must_be_believed_when_swept(guard, other, gate)


def test_a_cache_that_lacks_nothing_is_read_and_not_swept(follow, items, other, gate):
    guard = follow(items(), **settings_of(gate))
    put_old(other)
    for _ in range(2):  # who is followed knows that its own predecessor has ended
        with beside(guard):
            assert guard.redis().get("item:7") == b"old"
    assert other.calls("scan") == 0
