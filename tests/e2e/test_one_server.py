"""A name or a balancer leads to one server now and to another a moment later. All connections of the
guard speak with the one that its filter is of: what another says, that lags behind or has a log of
its own, is never an answer.
"""
import os
import signal

import psycopg2
import pytest
import redis

from following import (fill, follow, is_possible, publish, wait_followed, wait_generation,
                       wait_state)
from gate import Gate
from servers import PATIENCE
from standby import Standby, value
from test_follow_failover import database, insert, is_found, pair
from waiting import wait_until

# The prober's question alone has this in it.
PROBER = "query LIKE '%guarded%'"


@pytest.fixture
def balancer(pair):
    """Leads to the primary, until its server_port is another."""
    gate = Gate(pair[0].port)
    yield gate
    gate.close()


@pytest.fixture
def lead_to(balancer, database, pair):
    def lead(server, which="TRUE"):
        """From now on; the guard's connections that are `which` must be opened anew."""
        balancer.server_port = server.port
        for each in pair:
            value(each, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename ="
                  f" 'guard' AND backend_type = 'client backend' AND ({which})")
    return lead


@pytest.fixture
def address(balancer, database):
    return f"postgresql://guard@127.0.0.1:{balancer.port}/{database.name}"


def finds_no_nil(guard, n):
    """True when the row is found, False while that is an error; never nil."""
    try:
        assert is_found(guard, n)
        return True
    except redis.ResponseError as error:
        assert str(error).startswith("NESTGUARD "), error
        return False


def wait_found(guard, n):
    wait_until(lambda: finds_no_nil(guard, n), PATIENCE, lambda: f"{guard.status()}\n{guard.log()}")


def complaint(guard):
    return guard.status()["backends"]["database"]["error"] or ""


def wait_complaint(guard, text):
    wait_until(lambda: text in complaint(guard), PATIENCE, guard.log)


@pytest.fixture
def lagging(pair):
    """The standby, which stays as it is."""
    standby = pair[1]
    standby.wait_replayed()
    value(standby, "SELECT pg_wal_replay_pause()")
    yield standby
    if value(standby, "SELECT pg_is_in_recovery()"):
        value(standby, "SELECT pg_wal_replay_resume()")


def test_no_load_asks_a_standby_that_the_name_leads_to(follow, database, items, pair, address,
                                                       lead_to, lagging):
    guard = follow(items(ttl=0), max_lag="2s", database=address)
    lead_to(lagging, f"NOT {PROBER}")
    wait_complaint(guard, "standby")
    insert(database, 1000)
    wait_followed(database)
    assert not finds_no_nil(guard, 1000)
    assert guard.keyspace()["state"] == "guarding"
    wait_until(lambda: "the connection leads to a standby" in guard.log(), PATIENCE, guard.log)
    lead_to(pair[0], "FALSE")
    wait_found(guard, 1000)
    wait_until(lambda: not complaint(guard), PATIENCE, guard.log)
    assert guard.generation() == 1


def test_probes_come_back_from_a_standby(follow, database, items, pair, address, lead_to, lagging):
    guard = follow(items(ttl=0), max_lag="1s", database=address)
    lead_to(lagging)
    wait_state(guard, "passing")
    lead_to(pair[0], "FALSE")
    insert(database, 1000)
    wait_state(guard, "guarding")
    wait_found(guard, 1000)
    assert not is_possible(guard, "item:5000")


@pytest.mark.parametrize("which", [f"NOT {PROBER}", PROBER], ids=["loads", "probes"])
def test_a_database_that_has_moved_is_followed_though_the_old_one_lives(
        follow, database, items, pair, address, lead_to, which):
    """Whichever connection notices."""
    guard = follow(items(ttl=0), max_lag="2s", database=address)
    standby = pair[1]
    standby.wait_replayed()
    standby.promote()
    insert(database.on_standby, 1000)
    lead_to(standby, which)
    wait_found_on(guard, 1000)
    wait_until(lambda: guard.generation() >= 2 and guard.is_ready(), PATIENCE, guard.log)
    insert(database.on_standby, 1001)
    wait_followed(database.on_standby)
    wait_found(guard, 1001)
    assert not is_possible(guard, "item:5000")
    assert "another server" in guard.log()


def wait_found_on(guard, n):
    """Before anything leads to the new server, the row is not known there."""
    def found():
        try:
            return is_found(guard, n)
        except redis.ResponseError:
            return False
    wait_until(found, PATIENCE, lambda: f"{guard.status()}\n{guard.log()}")


@pytest.mark.parametrize("sync", ["poll", "none"])
def test_without_a_log_loads_ask_the_server_that_the_filter_is_of(
        start_guard, database, items, pair, address, lead_to, lagging, sync):
    insert(database, 1000)
    guard = start_guard(items(ttl=0), sync=sync, database=address)
    assert is_possible(guard, "item:1000")
    lead_to(lagging)
    wait_complaint(guard, "standby")
    assert not finds_no_nil(guard, 1000)
    guard.control("POST", "/v1/rebuild")
    wait_until(lambda: "standby" in (guard.status()["last_build_error"] or ""), PATIENCE, guard.log)
    assert is_possible(guard, "item:1000") and not is_possible(guard, "item:5000")
    lead_to(pair[0], "FALSE")
    wait_found(guard, 1000)


@pytest.mark.parametrize("sync", ["poll", "none"])
def test_without_a_log_a_database_that_has_moved_is_read_anew(
        start_guard, database, items, pair, address, lead_to, sync):
    guard = start_guard(items(ttl=0), sync=sync, database=address)
    standby = pair[1]
    standby.wait_replayed()
    standby.promote()
    insert(database.on_standby, 1000)
    lead_to(standby)
    wait_until(lambda: guard.generation() >= 2 and guard.is_ready(), PATIENCE, guard.log)
    wait_found(guard, 1000)
    assert not is_possible(guard, "item:5000")


@pytest.mark.parametrize("sync", ["poll", "none"])
def test_without_a_log_a_restart_of_the_database_changes_nothing(start_guard, items, pair, address,
                                                                 sync):
    guard = start_guard(items(ttl=0), sync=sync, database=address)
    pair[0].restart()
    wait_until(lambda: guard.status()["backends"]["database"]["connections"] > 0, PATIENCE, guard.log)
    wait_until(lambda: answer(guard, 7) == b"payload 7", PATIENCE, guard.log)
    assert guard.generation() == 1 and not is_possible(guard, "item:5000")


def answer(guard, n):
    try:
        return guard.redis().get(f"item:{n}")
    except redis.ResponseError as error:
        return str(error)


def test_a_standby_may_be_the_database_that_is_polled(start_guard, database, items, pair):
    """Its own filter and its own rows, whatever becomes of it."""
    keyspace = items(ttl=0)
    standby = pair[1]
    standby.wait_replayed()
    gate = Gate(standby.port)
    try:
        guard = start_guard(keyspace, sync="poll",
                            database=f"postgresql://guard@127.0.0.1:{gate.port}/{database.name}")
        assert guard.redis().get("item:7") == b"payload 7"
        assert not is_possible(guard, "item:5000")
        standby.restart()
        wait_until(lambda: guard.generation() >= 2 and guard.is_ready(), PATIENCE, guard.log)
        wait_until(lambda: answer(guard, 7) == b"payload 7", PATIENCE, guard.log)
        assert not is_possible(guard, "item:5000")
    finally:
        gate.close()


def set_delay(standby, delay):
    """How long it waits with what was committed, once what its files hold is consistent."""
    run(standby, f"ALTER SYSTEM SET recovery_min_apply_delay = '{delay}'")
    value(standby, "SELECT pg_reload_conf()")


def crash(standby):
    """One of its processes is killed, so that all begin anew but the postmaster. It accepts connections
    until it knows; another's end says that it does."""
    victim, witness = (standby.connect("postgres") for _ in range(2))
    os.kill(victim.info.backend_pid, signal.SIGKILL)
    wait_until(lambda: not alive(witness), PATIENCE, standby.log)
    wait_until(standby.is_ready, PATIENCE, standby.log)


def alive(connection):
    try:
        connection.cursor().execute("SELECT 1")
        return True
    except psycopg2.Error:
        return False


@pytest.fixture
def forgetful(pair, database, items):
    """The standby, which writes nothing down by itself of what comes later."""
    items()
    primary, standby = pair
    run(standby, "ALTER SYSTEM SET bgwriter_lru_maxpages = 0")
    value(standby, "SELECT pg_reload_conf()")
    run(primary, "CHECKPOINT")
    standby.wait_replayed()
    run(standby, "CHECKPOINT")
    return standby


def run(server, sql):
    connection = server.connect("postgres")
    connection.autocommit = True
    connection.cursor().execute(sql)
    connection.close()


@pytest.mark.parametrize("sync", ["poll", "none"])
def test_a_standby_that_has_gone_back_denies_nothing_that_it_had_shown(
        start_guard, database, items, forgetful, sync):
    insert(database, 1000)
    forgetful.wait_replayed()
    guard = start_guard(items(ttl=0), sync=sync,
                        database=f"postgresql://guard@127.0.0.1:{forgetful.port}/{database.name}")
    assert is_possible(guard, "item:1000")
    set_delay(forgetful, "1h")
    crash(forgetful)
    assert value(forgetful, "SELECT count(*) FROM items WHERE id = 1000", database.name) == 0
    wait_complaint(guard, "begun its recovery anew")
    assert not finds_no_nil(guard, 1000)
    guard.control("POST", "/v1/rebuild")
    wait_until(lambda: "recovery anew" in (guard.status()["last_build_error"] or ""), PATIENCE,
               guard.log)
    assert not finds_no_nil(guard, 1000)
    assert guard.generation() == 1 and not is_possible(guard, "item:5000")
    set_delay(forgetful, "0")
    wait_found(guard, 1000)
    assert guard.generation() == 1


def test_a_standby_that_crashes_and_has_not_gone_back_is_the_same(start_guard, database, items,
                                                                  forgetful):
    insert(database, 1000)
    forgetful.wait_replayed()
    guard = start_guard(items(ttl=0), sync="poll",
                        database=f"postgresql://guard@127.0.0.1:{forgetful.port}/{database.name}")
    crash(forgetful)
    wait_found(guard, 1000)
    insert(database, 1001)
    forgetful.wait_replayed()
    guard.rebuild()
    assert is_found(guard, 1001) and guard.generation() == 2


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_a_database_that_has_moved_is_noticed_though_no_connection_has_ended(
        start_guard, database, items, pair, address, balancer, sync):
    """The applications' new connections lead there. A self-check opens one, a minute later."""
    publish(database, items())
    guard = start_guard(items(ttl=0), sync=sync, max_lag="2s", database=address)
    standby = pair[1]
    standby.wait_replayed()
    standby.promote()
    insert(database.on_standby, 1000)
    balancer.server_port = standby.port
    wait_until(lambda: guard.generation() >= 2 and guard.is_ready(), 60 + PATIENCE, guard.log)
    wait_found(guard, 1000)
    assert not is_possible(guard, "item:5000")
    assert "another server" in guard.log(500)
