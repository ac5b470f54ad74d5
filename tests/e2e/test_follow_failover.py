"""With `sync: replication` and a database that is a primary with a standby: when the standby takes
over, the guard follows it by itself, and nothing is rejected meanwhile that has a row on the server
that applications write to.
"""
import contextlib
import shutil
import socket
import threading
import time

import pytest
import redis

import servers
from following import (fill, follow, insert, is_found, is_possible, senders, synchronous,
                       wait_followed, wait_generation, wait_purged, wait_state)
from gate import Gate
from servers import PATIENCE
from standby import Standby, value
from waiting import wait_until

MAX_LAG = 1


@pytest.fixture
def pair():
    """A primary, and a standby of it that has caught up."""
    with contextlib.ExitStack() as stack:
        primary = servers.Postgres()
        stack.callback(primary.remove)
        primary.start()
        standby = Standby(primary)
        stack.callback(standby.remove)
        yield primary, standby.start()


@pytest.fixture
def database(pair):
    """Made on the primary; `on_standby` is what becomes of it on the standby."""
    primary, standby = pair
    made = servers.Database(primary, "shop")
    made.on_standby = servers.Database.__new__(servers.Database)
    made.on_standby.server, made.on_standby.name = standby, made.name
    made.on_standby.connection = None
    return made


@pytest.fixture
def both_hosts(database, pair):
    """A connection string that leads to whichever of the two takes writes."""
    ports = ",".join(str(server.port) for server in pair)
    return (f"host=127.0.0.1,127.0.0.1 port={ports} dbname={database.name} user=guard"
            " target_session_attrs=read-write")


def start(follow, items, both_hosts):
    return follow(items(), database=both_hosts, max_lag=f"{MAX_LAG}s")


def test_a_crashed_primary_is_replaced_by_its_standby(follow, database, cache, items, pair,
                                                      both_hosts):
    primary, standby = pair
    guard = start(follow, items, both_hosts)
    fill(guard, cache, "item:7", "item:8")
    insert(database, 1000)
    standby.wait_replayed()
    primary.kill()
    began = time.monotonic()
    wait_state(guard, "passing")
    assert time.monotonic() - began < MAX_LAG + 1
    standby.promote()
    promoted = database.on_standby
    promoted.execute("DELETE FROM items WHERE id = 7; UPDATE items SET payload = 'new' WHERE id = 8")
    insert(promoted, 1001)
    wait_generation(guard, 2)
    wait_purged(cache, "item:7", "item:8")
    assert guard.redis().mget("item:7", "item:8") == [None, b"new"]
    assert is_found(guard, 1000) and is_found(guard, 1001)
    assert not is_possible(guard, "item:5000")
    insert(promoted, 1002)
    wait_followed(promoted)
    assert is_found(guard, 1002)


def test_a_primary_that_only_hangs_is_left_for_the_promoted_standby(
        follow, database, cache, items, pair, both_hosts):
    """Like a machine that lost its power: nothing says that a connection has ended."""
    primary, standby = pair
    guard = start(follow, items, both_hosts)
    standby.wait_replayed()
    primary.pause()
    try:
        began = time.monotonic()
        wait_state(guard, "passing")
        assert time.monotonic() - began < MAX_LAG + 1
        standby.promote()
        insert(database.on_standby, 1000)
        wait_until(lambda: guard.generation() == 2 and guard.is_ready(), 2 * PATIENCE,
                   lambda: f"{guard.status()}\n{guard.log()}")
        wait_until(lambda: answer(guard, 1000) == b"new 1000", PATIENCE, "a load")
        assert not is_possible(guard, "item:5000")
    finally:
        primary.resume()


def answer(guard, n):
    try:
        return guard.redis().get(f"item:{n}")
    except redis.ResponseError as error:  # a load may still wait for the one that hangs
        return str(error)


def test_what_the_standby_had_not_got_is_forgotten(follow, database, cache, items, pair,
                                                   both_hosts):
    """It was committed, and the failover has lost it: a new row may have that key."""
    primary, standby = pair
    guard = start(follow, items, both_hosts)
    standby.wait_replayed()
    with standby_apart(primary, standby):
        insert(database, 1000)
        database.execute("DELETE FROM items WHERE id = 7")
        wait_followed(database)
        assert guard.control("DELETE", guard.key_path("item:7")).status_code == 204
        fill(guard, cache, "item:1000")
        primary.kill()
    standby.promote()
    wait_generation(guard, 2)
    wait_purged(cache, "item:1000")
    assert guard.redis().mget("item:7", "item:1000") == [b"payload 7", None]
    assert not is_possible(guard, "item:1000")
    insert(database.on_standby, 1000)
    wait_followed(database.on_standby)
    assert is_found(guard, 1000)


@contextlib.contextmanager
def standby_apart(primary, standby):
    """While it lasts, nothing of the primary's log reaches the standby."""
    standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
    standby.execute("SELECT pg_reload_conf()")
    wait_until(lambda: not value(primary, "SELECT count(*) FROM pg_stat_replication"
                                          " WHERE application_name = 'walreceiver'"), PATIENCE,
               "the standby to leave")
    yield


def test_another_servers_log_vouches_for_nothing(follow, database, cache, items, pair, both_hosts):
    """The stream and the loads still come from the old primary while new connections lead to the
    promoted standby: positions of the one's log say nothing of the other's, nor do the one's rows.
    """
    primary, standby = pair
    guard = start(follow, items, both_hosts)
    standby.wait_replayed()
    standby.promote()
    primary.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    primary.execute("SELECT pg_reload_conf()")
    wait_until(lambda: value(primary, "SHOW transaction_read_only") == "on", PATIENCE, "read-only")
    lengthen_log(primary, standby)
    assert database.value("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                          " usename = 'guard' AND query LIKE '%guarded%'")
    insert(database.on_standby, 1000)
    wait_generation(guard, 2)
    insert(database.on_standby, 1001)
    wait_followed(database.on_standby)
    assert is_found(guard, 1000) and is_found(guard, 1001)


def lengthen_log(server, other):
    """So far that the other's log does not catch up."""
    other_end = value(other, "SELECT pg_current_wal_lsn()")
    connection = server.connect("postgres")
    try:
        cursor = connection.cursor()
        cursor.execute("SET transaction_read_only = off; SET default_transaction_read_only = off")
        cursor.execute("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM"
                       " generate_series(1, 20000)")
        cursor.execute("SELECT pg_current_wal_lsn() > %s", (other_end,))
        assert cursor.fetchone()[0]
    finally:
        connection.close()


def test_a_primary_that_comes_back_as_a_standby_is_named_as_the_reason(
        follow, database, cache, items, pair):
    """PostgreSQL 15 cannot decode its log on a standby."""
    primary, _ = pair
    guard = follow(items(), max_lag=f"{MAX_LAG}s")
    primary.stop()
    demote(primary)
    primary.start()
    wait_until(lambda: "standby" in (guard.status()["last_build_error"] or ""), PATIENCE,
               lambda: f"{guard.status()}\n{guard.log()}")
    assert guard.keyspace()["state"] == "passing"
    wait_until(lambda: "standby" in (guard.status()["backends"]["database"]["error"] or ""), PATIENCE,
               guard.log)
    assert answer(guard, 1000).startswith("NESTGUARD database down")  # it may be there on a primary
    primary.execute(f"SELECT pg_promote(true, {PATIENCE})")
    wait_generation(guard, 2)
    insert(database, 1000)
    wait_followed(database)
    assert is_found(guard, 1000) and not is_possible(guard, "item:5000")


def demote(server):
    """It ended in order; from its next start on it is a standby, for now of nobody."""
    signal_file = server.directory / "data" / "standby.signal"
    signal_file.touch()
    shutil.chown(signal_file, "postgres")


@contextlib.contextmanager
def gate_to(server):
    gate = Gate(server.port)
    try:
        yield gate
    finally:
        gate.close()


def refuse(gate):
    gate.listener.shutdown(socket.SHUT_RDWR)
    gate.threads[0].join()
    gate.listener.close()


def accept_again(gate):
    gate.listener = socket.create_server(("127.0.0.1", gate.port))
    gate.threads[0] = threading.Thread(target=gate._accept)  # pylint: disable=protected-access
    gate.threads[0].start()


def tried(standby):
    """How many connections of the guard the standby has, or has had."""
    return value(standby, "SELECT greatest((SELECT sum(sessions) FROM pg_stat_database WHERE datname ="
                 " 'shop'), (SELECT count(*) FROM pg_stat_activity WHERE usename = 'guard'))")


def test_loads_stay_with_the_server_whose_log_is_followed(follow, database, cache, items, pair):
    primary, standby = pair
    with gate_to(primary) as gate:
        guard = follow(items(ttl=0), max_lag="2s", database="host=127.0.0.1,127.0.0.1 "
                       f"port={gate.port},{standby.port} dbname={database.name} user=guard")
        fill(guard, cache, "item:7")
        refuse(gate)  # for a moment no new connection leads to the primary
        database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                         " 'guard' AND backend_type = 'client backend' AND query NOT LIKE '%guarded%'")
        wait_until(lambda: tried(standby) >= 4, PATIENCE, guard.log)
        accept_again(gate)
        standby.wait_replayed()
        value(standby, "SELECT pg_wal_replay_pause()")
        insert(database, 1000)
        wait_followed(database)
        wait_until(lambda: answers(guard, 1000), PATIENCE, guard.log)
        value(standby, "SELECT pg_wal_replay_resume()")


def answers(guard, n):
    """False while that is an error; never nil."""
    try:
        assert is_found(guard, n)
        return True
    except redis.ResponseError:
        return False
