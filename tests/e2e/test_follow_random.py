"""Random changes of rows beside random lookups through a guard that follows them, while a nemesis
kills, pauses and restarts whatever takes part. histories.py knows what each reply may be: a wrong
one, however short the time, fails the test; an error never does.

    NESTGUARD_SEED      repeats the choices of a run (not their timing)
    NESTGUARD_SECONDS   how long each test runs; a few seconds without it

Each key has one writer. A commit whose answer never came is looked up in the journal, into which
every transaction writes its number.
"""
import collections
import contextlib
import io
import os
import random
import threading
import time

import psycopg2
import pytest
import redis
import requests

from following import follow, paused, query_alone, synchronous, wait_followed
from histories import Histories
from servers import PATIENCE
from waiting import wait_until

SEED = int(os.environ.get("NESTGUARD_SEED", random.SystemRandom().randrange(1 << 32)))
SECONDS = float(os.environ.get("NESTGUARD_SECONDS", 10))
WRITERS, READERS, KEYS, BULK = 3, 3, 60, 300
MAX_LAG = 0.5
ROUNDING = 0.003  # of times that the guard tells, in milliseconds

ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "where": "deleted_at IS NULL",
         "value": "payload", "ttl": "1h", "false_positive_rate": 0.02}
BULKS = {"name": "bulk", "key": "bulk:{id}", "table": "bulk", "value": "payload", "ttl": "1h"}


class Part(threading.Thread):
    """One of those that take part: step() again and again until the end."""

    def __init__(self, run, name):
        super().__init__(name=name)
        self.run_, self.chance = run, random.Random(f"{SEED} {name}")

    def run(self):
        try:
            while not self.run_.stop.is_set():
                self.step()
        except Exception as error:  # pylint: disable=broad-except
            self.run_.fail(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            self.close()

    def close(self):
        pass


class Writer(Part):
    def __init__(self, run, number):
        super().__init__(run, f"writer {number}")
        self.keys = [f"item:{number * 1000 + n}" for n in range(KEYS)]
        self.bulk = [f"bulk:{n}" for n in range(BULK)] if number == 0 else []
        self.numbers = iter(range(number * 10**9, (number + 1) * 10**9))
        self.connection = None
        for key in self.keys + self.bulk:
            run.histories.add_key(key)

    def close(self):
        if self.connection:
            self.connection.close()

    def step(self):
        number, values = next(self.numbers), {}
        try:
            if not self.connection or self.connection.closed:
                self.connection = self.run_.database.connect()
            cursor = self.connection.cursor()
            self.change(cursor, values)
            cursor.execute("INSERT INTO journal VALUES (%s)", (number,))
            if self.chance.random() < 0.1:
                self.connection.rollback()
                return
        except psycopg2.OperationalError:
            self.forget_connection()
            return
        self.commit(number, values)

    def forget_connection(self):
        self.close()
        self.connection = None
        self.run_.stop.wait(0.05)

    def commit(self, number, values):
        histories = self.run_.histories
        histories.begin(values)
        try:
            self.connection.commit()
            done, grace = True, 0
        except psycopg2.OperationalError:
            self.forget_connection()
            done, grace = self.is_committed(number), MAX_LAG
        if done:
            histories.commit(values, grace)
            self.run_.counts["commits"] += 1
        else:
            histories.undo(values)

    def is_committed(self, number):
        self.run_.counts["in doubt"] += 1
        while True:
            try:
                return bool(query_alone(
                    self.run_.database, "SELECT 1 FROM journal WHERE number = %s", (number,)))
            except psycopg2.OperationalError:
                time.sleep(0.05)  # the nemesis brings the database back before it ends

    def change(self, cursor, values):
        """Some changes; `values` takes what they make of the rows."""
        if self.bulk and self.chance.random() < 0.1:
            self.change_bulk(cursor, values)
            return
        for _ in range(self.chance.choice([1, 1, 1, 2, 5])):
            if self.chance.random() < 0.3:
                self.change_in_savepoint(cursor, values, self.chance.random() < 0.5)
            self.change_item(cursor, values)

    def change_in_savepoint(self, cursor, values, is_kept):
        cursor.execute("SAVEPOINT one")
        self.change_item(cursor, values if is_kept else dict(values))
        cursor.execute("RELEASE one" if is_kept else "ROLLBACK TO one")

    def value(self, key, values):
        return values[key] if key in values else self.run_.histories.value(key)

    def change_item(self, cursor, values):
        key, other = self.chance.sample(self.keys, 2)
        fresh = f"{key} {self.chance.randrange(1 << 48):x}"
        if self.value(key, values) is None:
            cursor.execute("INSERT INTO items VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET"
                           " payload = excluded.payload, deleted_at = NULL", (id_of(key), fresh))
            values[key] = fresh
            return
        kind = self.chance.choice(["update", "update", "delete", "hide", "move", "again"])
        if kind == "update":
            cursor.execute("UPDATE items SET payload = %s WHERE id = %s", (fresh, id_of(key)))
        elif kind == "again":
            cursor.execute("DELETE FROM items WHERE id = %s", (id_of(key),))
            cursor.execute("INSERT INTO items VALUES (%s, %s)", (id_of(key), fresh))
        elif kind == "delete":
            cursor.execute("DELETE FROM items WHERE id = %s", (id_of(key),))
            fresh = None
        elif kind == "hide":
            cursor.execute("UPDATE items SET deleted_at = now() WHERE id = %s", (id_of(key),))
            fresh = None
        else:
            cursor.execute("DELETE FROM items WHERE id = %s", (id_of(other),))
            cursor.execute("UPDATE items SET id = %s WHERE id = %s", (id_of(other), id_of(key)))
            values[other], fresh = self.value(key, values), None
        values[key] = fresh

    def change_bulk(self, cursor, values):
        truncates = self.chance.random() < 0.5
        cursor.execute("TRUNCATE bulk" if truncates else "DELETE FROM bulk")
        values.update((key, None) for key in self.bulk  # no row's deletion purges no key
                      if truncates or self.run_.histories.value(key) is not None)
        for key in self.chance.sample(self.bulk, self.chance.choice([0, 5, BULK])):
            values[key] = f"{key} {self.chance.randrange(1 << 48):x}"
        rows = [f"{id_of(key)}\t{value}\n" for key, value in values.items() if value]
        cursor.copy_from(io.StringIO("".join(rows)), "bulk", columns=("id", "payload"))


def id_of(key):
    return int(key.split(":")[1])


class Reader(Part):
    def __init__(self, run, number):
        super().__init__(run, f"reader {number}")
        self.client = run.guard.redis(socket_timeout=5)

    def close(self):
        self.client.close()

    def step(self):
        keys = self.chance.sample(self.run_.keys, self.chance.choice([1, 1, 1, 20]))
        asked = self.run_.histories.now()
        try:
            if len(keys) > 1:
                replies = self.client.mget(keys)
            elif self.chance.random() < 0.8:
                replies = [self.client.get(keys[0])]
            else:
                self.judge_exists(keys[0], asked, self.client.exists(keys[0]))
                return
        except (redis.ConnectionError, redis.TimeoutError):
            self.run_.counts["no answer"] += 1
            time.sleep(0.01)
            return
        except redis.ResponseError as error:
            self.take_error(error)
            return
        answered = time.monotonic()
        for key, reply in zip(keys, replies, strict=True):
            self.judge(key, asked, answered, reply)

    def take_error(self, error):
        assert str(error).startswith("NESTGUARD "), error
        self.run_.counts["errors"] += 1
        self.run_.stop.wait(0.002)

    def judge(self, key, asked, answered, reply):
        if isinstance(reply, redis.ResponseError):
            self.take_error(reply)
            return
        value = None if reply is None else reply.decode()
        allowed = self.run_.histories.allowed(key, asked, answered)
        self.run_.counts["values" if reply else "nils"] += 1
        if value not in allowed:
            self.fail(key, asked, f"GET was answered {value!r} at {answered:.4f}", allowed)

    def judge_exists(self, key, asked, found):
        answered = time.monotonic()
        allowed = self.run_.histories.allowed(key, asked, answered)
        self.run_.counts["exists"] += 1
        if bool(found) not in {value is not None for value in allowed}:
            self.fail(key, asked, f"EXISTS was answered {found} at {answered:.4f}", allowed)

    def fail(self, key, asked, what, allowed):
        self.run_.fail(f"{key}: {what}, allowed: {allowed}\n"
                       + self.run_.histories.explain(key, asked))


class Monitor(Part):
    """Finds out up to when changes are followed and purged, as the guard itself reports it."""

    def step(self):
        moment = time.monotonic()
        try:
            [(position,)] = query_alone(self.run_.database, "SELECT pg_current_wal_flush_lsn()")
        except psycopg2.OperationalError:
            time.sleep(0.05)
            return
        end = moment + 2
        while not self.run_.stop.is_set() and time.monotonic() < end:
            if self.has_purged(number_of(position)):
                self.run_.histories.confirm_purged(moment)
                self.run_.counts["confirmations"] += 1
                return
            time.sleep(0.01)

    def has_purged(self, position):
        asked = time.monotonic()
        try:
            status = requests.get(
                f"http://127.0.0.1:{self.run_.guard.control_port}/v1/status", timeout=5).json()
        except requests.RequestException:
            return False
        stream = status["stream"]
        if not stream:
            return False
        self.run_.histories.confirm_followed(asked - stream["lag_seconds"] - ROUNDING)
        return number_of(stream["position"]) >= position and stream["purges_owed"] == 0


def number_of(position):
    high, low = position.split("/")
    return int(high, 16) << 32 | int(low, 16)


class Nemesis:
    """On the main thread: what it starts dies with the thread that started it."""

    def __init__(self, run, kinds):
        self.run_, self.kinds, self.chance = run, kinds, random.Random(f"{SEED} nemesis")

    def step(self):
        if self.run_.stop.wait(self.chance.uniform(0.1, 1.0)):
            return
        kind = self.chance.choice(self.kinds)
        self.run_.counts[kind] += 1
        getattr(self, kind.replace(" ", "_"))()

    def pause(self, server):
        server.pause()
        time.sleep(self.chance.choice([0.05, 0.2, MAX_LAG + 0.1, 1.2]))
        server.resume()

    def pause_guard(self):
        self.pause(self.run_.guard)

    def pause_database(self):
        self.pause(self.run_.database.server)

    def pause_cache(self):
        self.pause(self.run_.cache)

    def restart_cache(self):
        self.run_.cache.kill()
        time.sleep(self.chance.choice([0, 0.3]))
        self.run_.cache.start()

    def kill_database(self):
        self.run_.database.server.kill()
        time.sleep(self.chance.choice([0, 0.3]))
        self.run_.database.server.start()

    def kill_walsender(self):
        query_alone(self.run_.database,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")

    def pause_walsender(self):
        for (pid,) in query_alone(self.run_.database, "SELECT pid FROM pg_stat_replication"):
            with contextlib.suppress(ProcessLookupError), paused(pid):
                time.sleep(self.chance.choice([0.05, MAX_LAG + 0.1, 3 * MAX_LAG]))

    def renew(self):
        try:
            requests.post(f"http://127.0.0.1:{self.run_.guard.control_port}/v1/rebuild", timeout=5)
        except requests.RequestException:
            pass

    def kill_guard(self):
        self.run_.histories.open_gap()
        self.run_.guard.kill()
        time.sleep(self.chance.choice([0, 0.3]))
        self.run_.guard.start()
        self.run_.histories.close_gap()


class Run:
    def __init__(self, database, cache, guard, slack, kinds):
        self.database, self.cache, self.guard = database, cache, guard
        self.histories = Histories(slack)
        self.stop = threading.Event()
        self.problems = []
        self.counts = collections.Counter()
        self.nemesis = Nemesis(self, kinds)
        writers = [Writer(self, n) for n in range(WRITERS)]
        self.keys = list(self.histories.versions)
        readers = [Reader(self, n) for n in range(READERS)]
        self.parts = [*writers, *readers, Monitor(self, "monitor")]

    def fail(self, text):
        self.problems.append(f"NESTGUARD_SEED={SEED} at {time.monotonic():.4f}: {text}")
        self.stop.set()

    def go(self, seconds):
        end = time.monotonic() + seconds
        for part in self.parts:
            part.start()
        try:
            while not self.stop.is_set() and time.monotonic() < end:
                self.nemesis.step()
        finally:
            self.stop.set()
            for part in self.parts:
                part.join()
        assert not self.problems, "\n".join(self.problems)

    def summary(self):
        checks = sum(self.counts[kind] for kind in ("nils", "values", "exists"))
        faults = {kind: self.counts.pop(kind) for kind in sorted(set(FAULTS) & set(self.counts))}
        return f"{checks} checks {dict(self.counts)}, {sum(faults.values())} faults {faults}"

    def check_the_end(self):
        """Left alone it guards again, and knows every row."""
        wait_until(lambda: self.guard.is_ready(), PATIENCE, self.guard.status)
        wait_followed(self.database)
        client = self.guard.redis()
        rows = {f"{name}:{n}": payload for name, n, payload in self.database.query(
            "SELECT 'item', id, payload FROM items WHERE deleted_at IS NULL"
            " UNION ALL SELECT 'bulk', id, payload FROM bulk")}
        assert rows == {key: self.histories.value(key) for key in self.keys
                        if self.histories.value(key)}, "the model is wrong"
        assert [key for key in rows if client.get(key) is None] == []
        assert [key for key in self.keys if key not in rows and
                self.guard.explain(key)["verdict"] == "absent"], "nothing would be rejected"


FAULTS = ["pause guard", "pause database", "pause cache", "restart cache", "pause walsender",
          "renew", "renew", "kill database", "kill walsender", "kill walsender", "kill guard"]


@pytest.fixture
def start_run(follow, database, cache, capsys):
    """start_run(slack): what takes part, ready to go."""
    database.execute("""
        CREATE TABLE items (id bigint PRIMARY KEY, payload text NOT NULL, deleted_at timestamptz);
        ALTER TABLE items REPLICA IDENTITY FULL;
        CREATE TABLE bulk (id bigint PRIMARY KEY, payload text NOT NULL);
        CREATE TABLE journal (number bigint PRIMARY KEY);
        ALTER ROLE guard SET logical_decoding_work_mem = '64kB'""")
    guard = follow(ITEMS, BULKS, max_lag=f"{MAX_LAG * 1000:.0f}ms", cache_timeout="500ms")
    runs = []

    def start(slack):
        runs.append(Run(database, cache, guard, slack, FAULTS))
        return runs[0]

    yield start
    with capsys.disabled():
        for run in runs:
            print(f"\nNESTGUARD_SEED={SEED} NESTGUARD_SECONDS={SECONDS:g}: {run.summary()}")


def test_no_row_is_denied_for_longer_than_max_lag(start_run):
    run = start_run(MAX_LAG)
    run.go(SECONDS)
    run.check_the_end()


def test_no_row_is_denied_once_its_commit_has_returned(start_run, postgres_server):
    run = start_run(0)
    with synchronous(postgres_server):
        run.go(SECONDS)
    run.check_the_end()
