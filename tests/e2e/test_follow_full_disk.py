"""With `sync: replication` and a database whose disk is full: it passes or goes on guarding, says
why it cannot follow, and is back by itself when there is room again. Needs the right to mount a
small disk; without it the tests are skipped.
"""
import contextlib
import shutil
import subprocess
import time

import psycopg2
import pytest

import servers
from following import (insert, is_found, is_possible, publish, senders, wait_followed,
                       wait_generation, wait_state)
from servers import PATIENCE
from waiting import wait_until

MAX_LAG = 1


class SmallDisk:
    """A file system of its own in place of one of a server's directories."""

    def __init__(self, directory, megabytes):
        self.directory = directory
        self.ballast = directory / "ballast"
        size = f"size={megabytes}m,mode=700"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", directory],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
        shutil.chown(directory, "postgres")

    def fill(self):
        with open(self.ballast, "ab", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(bytes(size))

    def empty(self):
        self.ballast.unlink()

    def unmount(self):
        subprocess.run(["umount", "-l", self.directory], check=True)


class SmallPostgres(servers.Postgres):
    """One of its directories, empty after initdb but for what is copied, has little room."""

    def __init__(self, directory, megabytes, **settings):
        super().__init__(**settings)
        self.small = (directory, megabytes)
        self.disk = None

    def create(self):
        super().create()
        name, megabytes = self.small
        place = self.directory / "data" / name
        kept = self.directory / "kept"
        subprocess.run(["cp", "-a", place, kept], check=True)
        self.disk = SmallDisk(place, megabytes)
        subprocess.run(["cp", "-a", f"{kept}/.", place], check=True)

    def remove(self):
        self.kill()
        if self.disk:
            self.disk.unmount()
            self.disk = None
        super().remove()


@pytest.fixture
def small():
    """small(directory, megabytes) starts a server and makes the items in a database of it."""
    with contextlib.ExitStack() as stack:
        def start(*arguments, **settings):
            server = SmallPostgres(*arguments, **settings)
            stack.callback(server.remove)
            server.start()
            database = servers.Database(server, "shop")
            database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text);"
                             "INSERT INTO items SELECT n, 'payload ' || n"
                             " FROM generate_series(1, 100) n")
            return database
        yield start


@pytest.fixture
def follow_small(start_guard):
    def start(database):
        keyspace = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload"}
        publish(database, keyspace)
        return start_guard(keyspace, database=database.url, sync="replication",
                           max_lag=f"{MAX_LAG}s")

    return start


def test_no_room_for_a_slot_is_named_and_passes_until_there_is_some(small, follow_small):
    database = small("pg_replslot", 1)
    guard = follow_small(database)
    database.server.disk.fill()
    insert(database, 1000)
    wait_followed(database)
    assert is_found(guard, 1000) and guard.is_ready()
    [pid] = senders(database)
    database.execute("SELECT pg_terminate_backend(%s)", (pid,))
    wait_until(lambda: "No space left" in (guard.status()["last_build_error"] or ""), PATIENCE,
               lambda: f"the reason: {guard.status()}\n{guard.log()}")
    assert guard.keyspace()["state"] == "passing"
    insert(database, 1001)
    assert is_found(guard, 1001)
    database.server.disk.empty()
    wait_generation(guard, 2)
    assert is_found(guard, 1001) and not is_possible(guard, "item:5000")


def test_a_transaction_that_finds_no_room_while_it_is_decoded_is_not_lost(small, follow_small):
    """What does not fit the server's memory for decoding is put down beside the slot."""
    database = small("pg_replslot", 1, logical_decoding_work_mem="64kB")
    guard = follow_small(database)
    database.execute("INSERT INTO items SELECT n, 'new ' || n"
                     " FROM generate_series(1000, 30999) n")
    wait_until(lambda: is_found(guard, 30999), PATIENCE, "a row of the transaction")
    wait_state(guard, "guarding")
    insert(database, 31000)
    wait_followed(database)
    for n in range(1000, 31001, 500):
        assert is_found(guard, n)
    assert not is_possible(guard, "item:50000")


def test_a_log_without_room_stops_the_server_and_loses_nothing(small, follow_small):
    database = small("pg_wal", 80, min_wal_size="32MB", max_wal_size="32MB", wal_keep_size="0",
                     restart_after_crash="off")
    guard = follow_small(database)
    database.server.disk.fill()
    committed = 1000
    with pytest.raises(psycopg2.Error):
        while True:  # it has some room left in files that are there already
            database.connection.cursor().execute(
                "INSERT INTO items SELECT n, 'new ' || n FROM generate_series(%s, %s) n",
                (committed, committed + 999))
            committed += 1000
    began = time.monotonic()
    wait_state(guard, "passing")
    assert time.monotonic() - began < MAX_LAG + 1
    assert "No space left" in database.server.log(1000)
    database.server.kill()
    database.server.disk.empty()
    database.server.start()
    wait_generation(guard, 2)
    for n in range(1000, committed, 500):
        assert is_found(guard, n)
    insert(database, committed + 5000)
    wait_followed(database)
    assert is_found(guard, committed + 5000)
