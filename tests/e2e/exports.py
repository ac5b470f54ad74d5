"""Tables of which the guard knows nothing but files of their keys, which an exporter writes again and
again: whole, and in each of the ways in which it may go wrong.

    rows ─▶ Exporter ─▶ whole file ─▶ taken: known is what was there before it was begun
                    └─▶ broken one ─▶ refused: known is what was before
"""
import os
import threading
import time

import redis

from following import query_alone
from parts import Part
from servers import run_nestguard
from tables import WRITERS, Table

ABSENT = "__absent__"
STAY = range(WRITERS * 1000, WRITERS * 1000 + 150)  # rows that nobody changes: most of each file
MARKS = 10**9  # above them: keys of which each file has one of its own, and no row


class Exported(Table):
    """The application loads by itself, and caches through the guard what it found."""
    reads_through = False

    def __init__(self, database, directory, ttl, keyspace, ids):
        super().__init__({"table": keyspace["name"], "value": "payload", **keyspace},
                         [*ids, *STAY], "payload")
        self.database, self.ttl, self.own = database, ttl, threading.local()
        self.file = directory / f"{self.name}.keys"
        self.keyspace = {**keyspace, "source": f"file:{self.file}", "on_miss": "pass",
                         "on_absent": "value", "absent_value": ABSENT, "settle": "200ms",
                         "false_positive_rate": 1e-6}

    def first(self, number):
        return f"{self.key(number)} stays" if number in STAY else None

    def ask(self, client, chance, keys):
        replies = super().ask(client, chance, keys)
        return [self.load(client, chance, key) if reply is None else
                None if reply == ABSENT.encode() else reply for key, reply in zip(keys, replies)]

    def load(self, client, chance, key):
        if not hasattr(self.own, "connection"):
            self.own.connection = self.database.server.connect(self.database.name)
        cursor = self.own.connection.cursor()
        [value] = self.read(cursor, [int(key.split(":")[1])]).values()
        if value is not None and chance.random() < 0.5:
            client.set(key, value, px=int(self.ttl * 1000))
        return value and value.encode()

    def lines(self, mark):
        rows = query_alone(self.database, f"SELECT id FROM {self.full}")
        return "".join(f"{self.key(number)}\n" for number in [*(n for n, in rows), mark])


def make_exported(database, directory, ttl):
    """`docs` are exported as a filter."""
    tables = [Exported(database, directory, ttl, {"name": name, "key": f"{name}:{{id}}"},
                       [writer * 1000 + n for writer in range(WRITERS) for n in range(count)])
              for name, count in (("items", 60), ("docs", 20))]
    for table in tables:
        database.execute(f"INSERT INTO {table.full} (id, payload) SELECT n, %s || n || ' stays'"
                         " FROM generate_series(%s, %s) n",
                         (f"{table.prefix}:", STAY.start, STAY.stop - 1))
        table.keyspace["min_keys"] = table.lines(MARKS).count("\n") // 2  # a guard that starts knows of none before
        write_whole(table, table.lines(MARKS))
    return tables


def write_whole(table, text):
    fresh = table.file.with_suffix(".new")
    fresh.write_text(text)
    if table.name == "docs":
        made = table.file.with_suffix(".filter")
        status, said = run_nestguard("filter", "build", fresh, made, "--fpr", "1e-6")
        assert status == 0, said
        os.rename(made, table.file)
    else:
        os.rename(fresh, table.file)


class Exporter(Part):
    """Writes files, and finds out up to when rows are in those that were taken."""

    def __init__(self, run):
        super().__init__(run, "exporter")
        self.mark = MARKS
        self.client = run.guard.redis(socket_timeout=5)

    def close(self):
        self.client.close()

    def step(self):
        self.export()
        for _ in range(self.chance.choice([0, 1, 1, 2])):
            self.break_one()
        self.run_.stop.wait(self.chance.choice([0, 0, 0.1, 0.5]))

    def export(self):
        """What is in force when all have been taken is not older than this moment."""
        life, moment = self.run_.lives, time.monotonic()
        self.mark += 1
        for table in self.run_.tables:
            write_whole(table, table.lines(self.mark))
        if all(self.wait(life, lambda table=table: self.is_taken(table))
               for table in self.run_.tables):
            self.run_.histories.confirm_followed(moment)
            self.run_.counts["confirmations"] += 1

    def wait(self, life, condition):
        """Whether it came true; not when a guard has ended, or is about to."""
        while not self.run_.stop.is_set() and life == self.run_.lives:
            if condition():
                return life == self.run_.lives
            time.sleep(0.02)
        return False

    def is_taken(self, table):
        """A guard that rejects nothing says 1 of the other, too."""
        try:
            found = self.client.execute_command(
                "BF.MEXISTS", table.name, self.mark, MARKS + self.chance.randrange(10**9, 10**12))
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        return found == [1, 0]

    # what goes wrong

    def break_one(self):
        """What was there before comes back, or a new one takes its place. A refusal is this one's, and
        in the log, where there was none: behind a guard that has come anew nobody waits for the end of
        the last."""
        table, life = self.chance.choice(self.run_.tables), self.run_.lives
        was_taken = self.is_refused(table) is False
        kind = self.chance.choice(["cut", "halve", "empty", "delete", "spoil", "folder"])
        self.run_.counts[f"file: {kind}"] += 1
        kept, data = table.file.with_suffix(".kept"), table.file.read_bytes()
        os.rename(table.file, kept)
        getattr(self, kind)(table, data)
        if self.wait(life, lambda: self.is_refused(table)) and was_taken:
            self.run_.counts["refused files"] += 1
        self.run_.stop.wait(self.chance.choice([0, 0, 0.3]))
        if table.file.is_dir():
            table.file.rmdir()
        os.rename(kept, table.file)
        if self.chance.random() < 0.5:
            self.wait(life, lambda: not self.is_refused(table))
        else:
            self.export()

    def put(self, table, data):
        """All at once, or in place."""
        if self.chance.random() < 0.5:
            table.file.write_bytes(data)
            return
        fresh = table.file.with_suffix(".new")
        fresh.write_bytes(data)
        os.rename(fresh, table.file)

    def cut(self, table, data):
        """Within a line; of a filter, anywhere."""
        end = self.chance.randrange(len(data) // 2, len(data) - 1)
        while table.name != "docs" and data[end - 1:end] == b"\n":
            end -= 1
        self.put(table, data[:end])

    def halve(self, table, data):
        """As if the exporter had been ended, at a line's end. Of more than half it could not be told
        that it is no whole file."""
        if table.name == "docs":
            lines = table.lines(self.mark).splitlines(keepends=True)
            write_whole(table, "".join(lines[:len(lines) // 5]))
        else:
            self.put(table, data[:data.index(b"\n", len(data) // 5) + 1])

    def empty(self, table, _):
        self.put(table, b"")

    def spoil(self, table, data):
        place = self.chance.randrange(len(data) // 4, len(data) - 1)
        while data[place:place + 1] == b"\n" or table.name != "docs" and data[place - 1:place] != b"\n":
            place -= 1
        self.put(table, data[:place] + bytes([data[place] ^ 1]) + data[place + 1:])

    def delete(self, table, _):
        """It is away already."""

    def folder(self, table, _):
        table.file.mkdir()

    def is_refused(self, table):
        """None: no guard says so."""
        status = self.run_.status()
        return status and any(keyspace["source_refused"] for keyspace in status["keyspaces"]
                              if keyspace["name"] == table.name)
