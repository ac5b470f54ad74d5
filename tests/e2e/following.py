"""What the tests of `sync: replication` share: publishing tables, a guard that follows them, and
waiting until it has followed everything that is committed."""
import contextlib
import os
import pathlib
import signal
import threading

import pytest

from servers import PATIENCE
from waiting import wait_until

PUBLICATION = "nestguard"


def publish(database, *keyspaces):
    """The publication as an administrator makes it; `guard` may only follow it."""
    tables = {keyspace["table"]: keyspace.get("where") for keyspace in keyspaces}
    tables |= {table.split(" on ")[0]: None for keyspace in keyspaces
               for table in keyspace.get("depends", ()) if table.split(" on ")[0] not in tables}
    members = ", ".join(f"{table} WHERE ({where})" if where else table
                        for table, where in tables.items())
    database.execute(f"DROP PUBLICATION IF EXISTS {PUBLICATION}")
    database.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {members}"
                     " WITH (publish_via_partition_root = true)")


@pytest.fixture
def follow(start_guard, database):
    """follow(keyspace, ..., setting=value) publishes the keyspaces' tables and starts a guard that
    follows them."""
    def start(*keyspaces, **settings):
        publish(database, *keyspaces)
        return start_guard(*keyspaces, **{"sync": "replication", "max_lag": "2s", **settings})

    return start


def query_alone(database, sql, values=None):
    """Over a connection of its own, which any thread may have and the server may break."""
    connection = database.server.connect(database.name)
    try:
        cursor = connection.cursor()
        cursor.execute(sql, values)
        return cursor.fetchall()
    finally:
        connection.close()


def is_stopped(pid):
    return all(task.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "T"
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


@contextlib.contextmanager
def paused(pid):
    """What a thread was about to see when it was told to stop, it would see alone when it goes on: so it
    is waited for until all of them have stopped."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: is_stopped(pid), PATIENCE, "a pause")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def insert(database, n):
    database.execute("INSERT INTO items VALUES (%s, %s)", (n, f"new {n}"))


def is_found(guard, n):
    return guard.redis().get(f"item:{n}") == b"new %d" % n


def slots(database):
    return database.value("SELECT count(*) FROM pg_replication_slots"
                          " WHERE database = current_database()")


def senders(database):
    """The processes that send this database's log to guards, the newest last."""
    return [pid for pid, in database.query("""
        SELECT pid FROM pg_stat_replication JOIN pg_stat_activity USING (pid)
        WHERE datname = current_database() AND pg_stat_replication.state = 'streaming'
        ORDER BY pg_stat_activity.backend_start""")]


def has_followed(database, position):
    """A guard confirms positions of the generation in force alone."""
    return database.value("""
        SELECT coalesce(bool_or(flush_lsn >= %s), false) FROM pg_stat_replication
        JOIN pg_stat_activity USING (pid) WHERE datname = current_database()""", (position,))


def wait_followed(database):
    """Everything that was committed before this call is in the filter."""
    position = database.value("SELECT pg_current_wal_flush_lsn()")
    wait_until(lambda: has_followed(database, position), PATIENCE,
               lambda: f"{position} to be confirmed")


def held_removals(guard):
    return (guard.status()["stream"] or {}).get("removals_held")


def wait_removed(guard, database):
    """Nor is anything in the filter that was deleted before this call."""
    wait_followed(database)
    wait_until(lambda: held_removals(guard) == 0, PATIENCE, guard.status)


def purges_owed(guard):
    return guard.status()["stream"]["purges_owed"]


def wait_purged(cache, *keys):
    wait_until(lambda: not cache.client().exists(*keys), PATIENCE, f"{keys} to leave the cache")


def fill(guard, cache, *keys):
    """Has the guard load the keys until the cache holds them: a moment after a change of the row
    the guard does not fill."""
    for key in keys:
        def is_filled(key=key):
            assert guard.redis().get(key) is not None, f"{key} has no row"
            return cache.client().exists(key)

        wait_until(is_filled, PATIENCE, f"{key} in the cache")


def wait_state(guard, state, name="items"):
    """Waits until the keyspace is in the state, and returns what is said of it then."""

    def is_there():
        found = guard.keyspace(name)
        return found if found["state"] == state else None

    return wait_until(is_there, PATIENCE, lambda: f"{state}: {guard.status()}\n{guard.log()}")


def wait_generation(guard, number):
    """Waits for the generation, or a later one, to guard."""
    wait_until(lambda: guard.generation() >= number and guard.is_ready(), PATIENCE,
               lambda: f"generation {number}: {guard.status()}\n{guard.log()}")


def is_possible(guard, key):
    return guard.explain(key)["verdict"] != "absent"


@contextlib.contextmanager
def looking_up(guard, last):
    """While it lasts others look items 1 to `last` up without a pause; gives the list of the denied."""
    stop, denied = threading.Event(), []

    def look_up():
        client = guard.redis()
        while not stop.is_set():
            found = client.execute_command("BF.MEXISTS", "items", *range(1, last + 1))
            denied.extend(n + 1 for n, there in enumerate(found) if not there)

    threads = [threading.Thread(target=look_up) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield denied
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def name_standbys(server, names):
    server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    server.execute("SELECT pg_reload_conf()")


def wait_until_commits_wait(server):
    """For the standbys that are named, one of which must not be there. Sessions may know the
    setting before commits obey it: that begins when the checkpointer has read it."""
    writer, observer = server.connect("postgres"), server.connect("postgres")
    stop = threading.Event()

    def commit_again_and_again():
        while not stop.wait(0.005):
            writer.cursor().execute("SELECT pg_logical_emit_message(true, '', '')")

    def is_held():
        cursor = observer.cursor()
        cursor.execute("SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = %s",
                       (writer.info.backend_pid,))
        return cursor.fetchone()[0]

    thread = threading.Thread(target=commit_again_and_again)
    thread.start()
    try:
        wait_until(is_held, PATIENCE, "a commit to wait")
    finally:
        stop.set()
        observer.cursor().execute("SELECT pg_cancel_backend(%s)", (writer.info.backend_pid,))
        thread.join()
        observer.close()
        writer.close()


@contextlib.contextmanager
def synchronous(server, names="nestguard"):
    """While it lasts, a commit returns only when the guard that runs has confirmed it."""
    try:
        name_standbys(server, "nobody")
        wait_until_commits_wait(server)
        name_standbys(server, names)
        wait_until(lambda: sync_senders(server), PATIENCE, "a synchronous guard")
        yield
    finally:
        server.ensure_running()
        server.execute("ALTER SYSTEM RESET synchronous_standby_names")
        server.execute("SELECT pg_reload_conf()")


def sync_senders(server):
    connection = server.connect("postgres")
    try:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM pg_stat_replication"
                       " WHERE sync_state IN ('sync', 'quorum')")
        return cursor.fetchone()[0]
    finally:
        connection.close()
