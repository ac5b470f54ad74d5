"""With synchronous commit, a commit returns once no guard can reject its key: because the generation
in force knows it, or because nothing is rejected until there is one that knows it."""
import contextlib
import os
import random
import threading
import time

import psycopg2
import pytest
import redis

from following import (follow, is_found, is_possible, paused, query_alone, senders,
                       synchronous, wait_generation, wait_state)
from servers import PATIENCE
from waiting import wait_until

SECONDS = float(os.environ.get("NESTGUARD_SECONDS", 8))


def insert(database, n):
    """Over a connection of its own. A wait for the guard that is given up is told by a warning."""
    connection = database.server.connect(database.name)
    try:
        cursor = connection.cursor()
        cursor.execute(f"SET statement_timeout = '{PATIENCE}s'")
        cursor.execute("INSERT INTO items VALUES (%s, %s)", (n, f"new {n}"))
        assert not connection.notices, connection.notices
    finally:
        connection.close()


def is_answered(guard, n):
    """With the row, or with an error for now."""
    try:
        value = guard.redis().get(f"item:{n}")
    except redis.ResponseError:
        return False
    assert value == b"new %d" % n, guard.log()
    return True


def is_waiting(database):
    return query_alone(database, "SELECT count(*) FROM pg_stat_activity"
                       " WHERE wait_event = 'SyncRep' AND datname = current_database()")[0][0]


def confirms_everything(guard):
    return guard.status()["confirms_everything"]


def wait_confirming(guard):
    wait_until(lambda: confirms_everything(guard), PATIENCE,
               lambda: f"commits to be let go: {guard.status()}\n{guard.log()}")


@contextlib.contextmanager
def unfinished(database):
    """A transaction that keeps the next generation from getting its slot."""
    connection = database.connect()
    connection.cursor().execute("SELECT pg_current_xact_id()")
    try:
        yield
    finally:
        with contextlib.suppress(psycopg2.Error):  # the server was restarted meanwhile
            connection.rollback()
        connection.close()


def lose_streams(database):
    query_alone(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")


class TestCommitThatWaits:
    @pytest.mark.parametrize("names", ["ANY 1 (nestguard)", "FIRST 1 (nestguard)", "*"])
    def test_for_a_guard_that_was_killed_returns_when_it_is_back(
            self, follow, postgres_server, database, items, threads, names):
        guard = follow(items())
        with synchronous(postgres_server, names):
            guard.pause()
            waiting = threads.submit(insert, database, 1000)
            wait_until(lambda: is_waiting(database), PATIENCE, "the commit to wait")
            guard.kill()
            wait_until(lambda: not senders(database), PATIENCE, "the server to notice")
            assert not waiting.done()
            guard.start()
            waiting.result(PATIENCE)
            assert is_found(guard, 1000)
            assert is_possible(guard, "item:1000") and not is_possible(guard, "item:5000")

    def test_for_a_stream_that_was_lost_returns(self, follow, postgres_server, database, items,
                                                threads):
        guard = follow(items())
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            guard.pause()
            waiting = threads.submit(insert, database, 1000)
            wait_until(lambda: is_waiting(database), PATIENCE, "the commit to wait")
            lose_streams(database)
            wait_until(lambda: not senders(database), PATIENCE, "the end of the stream")
            assert not waiting.done()
            guard.resume()
            waiting.result(PATIENCE)
            assert is_found(guard, 1000)
            wait_generation(guard, 2)
            assert is_possible(guard, "item:1000") and not is_possible(guard, "item:5000")


class TestWhileNothingIsRejected:
    def test_commits_return_at_once(self, follow, postgres_server, database, items):
        guard = follow(items())
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            with unfinished(database):
                lose_streams(database)
                wait_confirming(guard)
                for n in range(1000, 1100):
                    insert(database, n)
                    assert is_found(guard, n)
                assert confirms_everything(guard) and guard.keyspace()["state"] == "passing"
            wait_generation(guard, 2)
            assert not confirms_everything(guard)
            assert all(is_possible(guard, f"item:{n}") for n in range(1000, 1100))
            assert not is_possible(guard, "item:5000")
            insert(database, 2000)
            assert is_found(guard, 2000)
        wait_until(lambda: len(senders(database)) == 1, PATIENCE, "the other stream's end")

    def test_also_before_the_first_generation(self, follow, postgres_server, database, items):
        """An older guard has left the setting behind."""
        guard = follow(items())
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            guard.stop()
            with unfinished(database):
                guard.start_unready()
                insert(database, 1000)
                assert guard.keyspace()["state"] == "loading" and is_found(guard, 1000)
            guard.wait_guarding()
            assert is_possible(guard, "item:1000") and not is_possible(guard, "item:5000")

    def test_of_names_that_are_quoted_and_in_capitals(self, follow, postgres_server, database,
                                                      items):
        name = 'Nest "guard"'
        guard = follow(items(), database=f"host=127.0.0.1 port={postgres_server.port} user=guard"
                       f" dbname={database.name} application_name='{name}'")
        with synchronous(postgres_server, 'FIRST 1 (other, "nEST ""GUARD""")'):
            with unfinished(database):
                lose_streams(database)
                insert(database, 1000)
                assert is_found(guard, 1000) and confirms_everything(guard)
            wait_generation(guard, 2)

    def test_a_server_that_does_not_wait_sends_no_log(self, follow, postgres_server, database,
                                                      items):
        guard = follow(items())
        with unfinished(database):
            lose_streams(database)
            wait_state(guard, "passing")
            insert(database, 1000)
            began = time.monotonic()
            while time.monotonic() - began < 2:
                assert not confirms_everything(guard) and not senders(database)
            with synchronous(postgres_server, "ANY 1 (nestguard)"):  # begins to
                insert(database, 1001)
                assert confirms_everything(guard)
        wait_generation(guard, 2)
        assert is_possible(guard, "item:1000") and is_possible(guard, "item:1001")

    def test_a_lost_connection_is_made_again(self, follow, postgres_server, database, items):
        guard = follow(items())
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            with unfinished(database):
                for n in range(1000, 1005):
                    lose_streams(database)
                    insert(database, n)
                    assert is_found(guard, n)
                    wait_confirming(guard)
            wait_generation(guard, 2)
            assert all(is_possible(guard, f"item:{n}") for n in range(1000, 1005))

    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_a_server_that_ends_and_comes_back(self, follow, postgres_server, database, items,
                                               end):
        guard = follow(items())
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            for n in range(1000, 1003):
                with unfinished(database):
                    lose_streams(database)
                    wait_confirming(guard)
                    getattr(postgres_server, end)()
                    wait_until(lambda: not confirms_everything(guard), PATIENCE, "its end")
                    postgres_server.start()
                insert(database, n)
                wait_until(lambda row=n: is_answered(guard, row), PATIENCE, "connections for loads")
                wait_until(guard.is_ready, PATIENCE, lambda: f"{guard.status()}\n{guard.log()}")
                assert is_possible(guard, f"item:{n}") and not is_possible(guard, "item:5000")


class TestRenewal:
    @pytest.mark.parametrize("names", ["ANY 1 (nestguard)", "FIRST 1 (nestguard)"])
    def test_commits_are_not_held_up_by_the_next_generation(
            self, follow, postgres_server, database, items, names):
        guard = follow(items())
        with synchronous(postgres_server, names):
            times = []
            for n in range(1000, 1400):
                if n % 20 == 0:
                    guard.control("POST", "/v1/rebuild")
                began = time.monotonic()
                insert(database, n)
                times.append(time.monotonic() - began)
                assert is_found(guard, n), guard.status()
            print(f"with {names} the longest commit took {max(times):.3f} s")
            assert sum(took > 0.8 for took in times) < 3
        wait_until(lambda: guard.generation() > 5, PATIENCE, "some generations")


# A row as the self-check gets it: the key of item:57, and its xmin. Loads get the payload first.
CHECKED_ROW = b"\0\2\0\0\0\x0257"


class TestTakeover:
    """Of a generation that has stopped following the log after its last look at where that ends,
    while its self-check was not answered."""

    @pytest.fixture
    def guard(self, gate, follow, database, items):
        url = database.url.replace(f":{database.server.port}/", f":{gate.port}/")
        yield follow(items(), database=url, max_lag="60s")
        gate.release()

    def hold_next(self, gate, guard, database):
        """Waits for the next generation's self-check; returns the process that sends it the log."""
        gate.hold_answers(CHECKED_ROW)
        guard.control("POST", "/v1/rebuild")
        gate.wait_held()
        return database.value("SELECT active_pid FROM pg_replication_slots JOIN pg_stat_activity"
                              " ON pid = active_pid ORDER BY backend_start DESC LIMIT 1")

    def test_waits_for_what_was_confirmed_while_there_was_none(
            self, gate, guard, postgres_server, database, threads):
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            [serving] = senders(database)
            sender = self.hold_next(gate, guard, database)
            query_alone(database, "SELECT pg_terminate_backend(%s)", (serving,))
            wait_confirming(guard)
            with paused(sender):
                insert(database, 1000)
                gate.release()
                wait_until(lambda: not confirms_everything(guard), PATIENCE, "the takeover")
                waiting = threads.submit(insert, database, 1001)
                wait_until(lambda: is_waiting(database), PATIENCE, "the commit to wait")
                assert is_found(guard, 1000) and guard.keyspace()["state"] == "passing"
            waiting.result(PATIENCE)
            wait_generation(guard, 2)
            assert is_possible(guard, "item:1000") and is_possible(guard, "item:1001")
            assert not is_possible(guard, "item:5000")

    def test_waits_for_what_a_lost_stream_had_confirmed(self, gate, guard, postgres_server,
                                                        database):
        with synchronous(postgres_server, "ANY 1 (nestguard)"):
            [serving] = senders(database)
            sender = self.hold_next(gate, guard, database)
            with paused(sender):
                insert(database, 1000)
                set_standbys(postgres_server, "")  # so nothing more is confirmed in its name
                query_alone(database, "SELECT pg_terminate_backend(%s)", (serving,))
                wait_state(guard, "passing")
                gate.release()
                checked = "generation 2: the self-check of"
                wait_until(lambda: checked in guard.log(), PATIENCE, checked)
                assert is_found(guard, 1000) and guard.keyspace()["state"] == "passing"
            wait_generation(guard, 2)
            assert is_possible(guard, "item:1000") and not is_possible(guard, "item:5000")


def set_standbys(server, names):
    server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    server.execute("SELECT pg_reload_conf()")


class Attack:
    """Writers whose commits wait for the guard ask for their row as soon as they return, while
    whatever the commits wait for is killed again and again."""

    def __init__(self, guard, database):
        self.guard, self.database = guard, database
        self.stop = threading.Event()
        self.commits = self.errors = 0
        self.seed = int(os.environ.get("NESTGUARD_SEED", random.SystemRandom().randrange(1 << 32)))
        self.chance = random.Random(self.seed)

    def write(self, number):
        connection = self.database.server.connect(self.database.name)
        cursor = connection.cursor()
        cursor.execute(f"SET statement_timeout = '{PATIENCE}s'")
        rows = []
        try:
            for n in range(number * 1000000, (number + 1) * 1000000):
                if self.stop.is_set():
                    return rows
                cursor.execute("INSERT INTO items VALUES (%s, 'x')", (n,))
                assert not connection.notices, connection.notices
                self.commits += 1
                rows.append(n)
                for known in (n, random.choice(rows), rows[-20:][0]):
                    self.expect(known)
        finally:
            self.stop.set()
            connection.close()

    def expect(self, n):
        """The row, or an error; never that there is none."""
        try:
            with self.guard.redis() as client:
                value = client.get(f"item:{n}")
        except redis.RedisError:
            self.errors += 1
            return
        assert value == b"x", f"item:{n}, seed {self.seed}: {value!r}\n{self.guard.log(200)}"

    def step(self):
        kind = self.chance.choice(["all", "all", "one", "renew", "pause", "kill"])
        found = senders(self.database)
        if kind == "all":
            lose_streams(self.database)
        elif kind == "one" and found:
            query_alone(self.database, "SELECT pg_terminate_backend(%s)",
                        (self.chance.choice(found),))
        elif kind == "pause" and found:
            with contextlib.suppress(ProcessLookupError), paused(self.chance.choice(found)):
                time.sleep(self.chance.choice([0.02, 0.3]))
        elif kind == "kill":
            self.guard.kill()
            self.guard.start_unready()
        else:
            self.guard.control("POST", "/v1/rebuild")

    def go(self, threads, seconds):
        writers = [threads.submit(self.write, number) for number in (1, 2, 3)]
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and not self.stop.wait(self.chance.uniform(0.05, 0.7)):
                self.step()
        finally:
            self.stop.set()
        return [n for writer in writers for n in writer.result(2 * PATIENCE)]


def test_no_row_is_denied_once_its_commit_has_returned(follow, postgres_server, database, items,
                                                       threads):
    guard = follow(items(), max_lag="1s", load_budget=1000)
    with synchronous(postgres_server, "ANY 1 (nestguard)"):
        attack = Attack(guard, database)
        rows = attack.go(threads, SECONDS)
        let_go = guard.log(lines=100000).count("return at once while nothing is rejected")
        print(f"seed {attack.seed}: {attack.commits} commits, {attack.errors} errors,"
              f" {let_go} times all were confirmed")
        guard.wait_guarding()
    assert attack.commits and let_go
    assert [n for n in rows if not is_possible(guard, f"item:{n}")] == []
    assert not is_possible(guard, "item:5000")
