"""Those that take part in a random run, each a thread: what changes rows and what looks them up.

A commit whose answer never came is looked up in the journal, into which every transaction writes
its number.
"""
import io
import os
import random
import threading
import time

import psycopg2
import redis

from following import query_alone
from published import Published
from tables import ids_of_writer

SEED = int(os.environ.get("NESTGUARD_SEED", random.SystemRandom().randrange(1 << 32)))
MAX_LAG = 0.5
ROUNDING = 0.003  # of times that the guard and the cache tell, in milliseconds


class Soloist(threading.Thread):
    """Its step() again and again for so many seconds, and then its close(). What went wrong is its
    `problem`."""

    def __init__(self, number, seconds):
        super().__init__(daemon=True)
        self.number, self.problem = number, None
        self.chance = random.Random(f"{SEED} {number}")
        self.end = time.monotonic() + seconds

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.step()
        except Exception as error:  # pylint: disable=broad-except
            self.problem = f"NESTGUARD_SEED={SEED}: client {self.number}: {error!r}"
        finally:
            self.close()


class Part(threading.Thread):
    """One of those that take part: step() again and again until the end."""

    def __init__(self, run, name):
        super().__init__(name=name, daemon=True)
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

    def step(self):
        raise NotImplementedError


class Committer(Part):
    """Changes the database, and tells the model of it."""

    def __init__(self, run, name, number):
        super().__init__(run, name)
        self.numbers = iter(range(number * 10**12, (number + 1) * 10**12))
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()

    def cursor(self):
        if not self.connection or self.connection.closed:
            self.connection = self.run_.database.connect()
            self.connection.cursor().execute("SET deadlock_timeout = '100ms';"
                                             " SET lock_timeout = '2s'")
            self.connection.commit()
        return self.connection.cursor()

    def forget_connection(self):
        self.close()
        self.connection = None

    def give_up(self):
        """What was begun has failed, for whatever reason."""
        try:
            self.connection.rollback()
        except (psycopg2.Error, AttributeError):
            self.forget_connection()
            time.sleep(0.05)

    def fresh(self, key):
        return f"{key} {self.chance.randrange(1 << 48):x}"

    def news(self, values):
        """Those of the values that the model does not have. Nobody else changes these rows before
        this transaction has ended: all others who have are in the model already."""
        return {key: value for key, value in values.items()
                if value != self.run_.histories.value(key)}

    def commit(self, cursor, values, unlogged=False):
        """Whether the transaction, which makes this of the keys, has been committed."""
        histories, number = self.run_.histories, next(self.numbers)
        cursor.execute("INSERT INTO journal VALUES (%s)", (number,))
        made = histories.begin(self.news(values), unlogged)
        try:
            self.connection.commit()
            done, grace = True, 0
        except psycopg2.Error:
            self.forget_connection()
            done, grace = self.is_committed(number), MAX_LAG
        if done:
            histories.commit(made, grace)
            self.run_.counts["commits"] += 1
        else:
            histories.undo(made)
        return done

    def is_committed(self, number):
        self.run_.counts["in doubt"] += 1
        while True:
            try:
                return bool(query_alone(
                    self.run_.database, "SELECT 1 FROM journal WHERE number = %s", (number,)))
            except psycopg2.OperationalError:
                time.sleep(0.05)  # the nemesis brings the database back before it ends


class Changes:
    """What one transaction does to rows, and to which."""

    def __init__(self, cursor, fresh):
        self.cursor, self.fresh, self.made = cursor, fresh, {}

    def note(self, table, number, count):
        if count:  # else the row is not this transaction's, and anybody's to change
            self.made.setdefault(table, set()).add(number)

    def read(self):
        values = {}
        for table, ids in self.made.items():
            values.update(table.read(self.cursor, ids))
        return values

    def random(self, chance, table, ids):
        some = ids[:len(ids) // 3] if chance.random() < 0.8 else ids  # what is old shows elsewhere
        number, other = chance.sample(some, 2)
        payload = self.fresh(table.key(number))
        kinds = ["insert", "update", "update", "delete", "again", "move"]
        kind = chance.choice([*kinds, "hide"] if hasattr(table, "hide") else
                             [*kinds, *["depend"] * 6] if hasattr(table, "depend") else kinds)
        if kind == "update":
            self.note(table, number, table.update(self.cursor, number, payload))
        elif kind == "hide":
            self.note(table, number, table.hide(self.cursor, number))
        elif kind == "depend":
            for one in table.depend(self.cursor, chance, number, other, payload):
                self.note(table, one, 1)
        elif kind == "move":
            self.note(table, other, table.delete(self.cursor, other))
            moved = table.move(self.cursor, number, other)
            self.note(table, number, moved)
            self.note(table, other, moved)
        if kind in ("delete", "again"):
            self.note(table, number, table.delete(self.cursor, number))
        if kind in ("insert", "again"):
            self.note(table, number, table.insert(self.cursor, number, payload))


class Writer(Committer):
    def __init__(self, run, number):
        super().__init__(run, f"writer {number}", number)
        self.ids = {table: ids_of_writer(table, number) for table in run.tables}
        self.bulk = next((table for table in run.tables if table.name == "bulk"), None)
        self.tables = [table for table in run.tables if table is not self.bulk]

    def step(self):
        if self.chance.random() < 0.01:
            self.run_.stop.wait(self.chance.uniform(0, 3))
        while self.run_.resting.is_set() and not self.run_.stop.wait(0.01):
            pass
        try:
            cursor = self.cursor()
            changes = Changes(cursor, self.fresh)
            self.change(changes)
            values = changes.read()
            if self.chance.random() < 0.1:
                self.connection.rollback()
                return
            self.commit(cursor, values)
        except psycopg2.Error:
            self.run_.counts["refused"] += 1
            self.give_up()

    def change(self, changes):
        if self.ids.get(self.bulk) and self.chance.random() < 0.1:
            self.change_bulk(changes)
            return
        for _ in range(self.chance.choice([1, 1, 1, 2, 5])):
            if self.chance.random() < 0.3:
                self.change_in_savepoint(changes, self.chance.random() < 0.5)
            self.change_one(changes)

    def change_one(self, changes):
        table = self.chance.choice(self.tables)
        changes.random(self.chance, table, self.ids[table])

    def change_in_savepoint(self, changes, is_kept):
        changes.cursor.execute("SAVEPOINT one")
        before = {table: set(ids) for table, ids in changes.made.items()}
        self.change_one(changes)
        if not is_kept:
            changes.made = before
        changes.cursor.execute("RELEASE one" if is_kept else "ROLLBACK TO one")

    def change_bulk(self, changes):
        """All of it is this transaction's: what was there goes, and nobody else inserts."""
        truncates = self.run_.truncates and self.chance.random() < 0.5
        changes.cursor.execute("TRUNCATE public.bulk" if truncates else "DELETE FROM public.bulk")
        ids = self.chance.sample(self.bulk.ids, self.chance.choice([0, 5, len(self.bulk.ids)]))
        rows = [f"{n}\t{self.fresh(self.bulk.key(n))}\n" for n in ids]
        changes.cursor.copy_from(io.StringIO("".join(rows)), "bulk", columns=("id", "payload"))
        changes.made[self.bulk] = set(self.bulk.ids)


class Reader(Part):
    def __init__(self, run, number):
        super().__init__(run, f"reader {number}")
        self.client = run.guard.redis(socket_timeout=5)

    def close(self):
        self.client.close()

    def step(self):
        table = self.chance.choice(self.run_.tables)
        ids = self.chance.sample(table.ids, self.chance.choice([1, 1, 1, 20]))
        keys = [table.key(n) for n in ids]
        asked = self.run_.histories.now()
        try:
            if self.chance.random() < 0.2:
                self.judge_members(keys, asked, self.client.bf().mexists(
                    table.name, *(ids if self.chance.random() < 0.5 else keys)))
                return
            if table.reads_through and len(keys) == 1 and self.chance.random() < 0.2:
                self.judge_exists(keys[0], asked, self.client.exists(keys[0]))
                return
            replies = table.ask(self.client, self.chance, keys)
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
            self.fail(key, asked, f"a lookup was answered {value!r} at {answered:.4f}", allowed)

    def judge_exists(self, key, asked, found):
        answered = time.monotonic()
        allowed = self.run_.histories.allowed(key, asked, answered)
        self.run_.counts["exists"] += 1
        if bool(found) not in {value is not None for value in allowed}:
            self.fail(key, asked, f"EXISTS was answered {found} at {answered:.4f}", allowed)

    def judge_members(self, keys, asked, found):
        """1 says nothing, but 0 that there is no row."""
        answered = time.monotonic()
        for key, bit in zip(keys, found, strict=True):
            allowed = self.run_.histories.allowed(key, asked, answered)
            self.run_.counts["members" if bit else "no members"] += 1
            if not bit and None not in allowed:
                self.fail(key, asked, f"BF.MEXISTS was answered 0 at {answered:.4f}", allowed)

    def fail(self, key, asked, what, allowed):
        self.run_.fail(f"{key}: {what}, allowed: {allowed}\n"
                       + self.run_.histories.explain(key, asked))


class PublishedReader(Part):
    """Asks in the cache, as an application does that looks there for itself."""

    def __init__(self, run):
        super().__init__(run, "published reader")
        self.client = run.cache.client(socket_timeout=5)
        self.published = {table: Published(self.client, table.publish["key"])
                          for table in run.tables}

    def close(self):
        self.client.close()

    def step(self):
        table = self.chance.choice(self.run_.tables)
        ids = self.chance.sample(table.ids, self.chance.choice([1, 5, 20]))
        asked = self.run_.histories.now()
        try:
            absent = self.published[table].absent(*map(str, ids))
        except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError):
            self.run_.counts["no answer"] += 1
            time.sleep(0.01)
            return
        answered = time.monotonic()
        self.run_.counts["published absent"] += sum(absent)
        self.run_.counts["published possible"] += len(ids) - sum(absent)
        for number, is_absent in zip(ids, absent, strict=True):
            key = table.key(number)
            if is_absent and not self.run_.histories.may_be_missing(
                    key, asked, answered, MAX_LAG + ROUNDING):
                self.run_.fail(f"{key} is missing from what is published at {answered:.4f}\n"
                               + self.run_.histories.explain(key, asked))
        time.sleep(0.001)
