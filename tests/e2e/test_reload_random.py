"""Reloads at random: keyspaces are added, changed, removed, broken and mended, files are wrong, while rows
change and clients ask. No row of a keyspace that stays is denied, no client is cut off, what can be guarded
guards in the end and what cannot says why, and each reload says what it did.

    NESTGUARD_SEED      repeats the choices of a run (not their timing)
    NESTGUARD_SECONDS   how long it runs; some seconds without it
"""
import collections
import copy
import random
import threading
import time

import redis

from following import fill, wait_followed  # noqa: F401
from histories import Histories
from parts import MAX_LAG, SEED
from random_run import SECONDS
from servers import PATIENCE
from waiting import wait_until

ROWS, READERS, WRITERS = 40, 3, 2
NAMES = ["one", "two", "three", "four"]
TABLES = {"plain": None, "other": None, "flagged": "flag"}  # and what the publication tells of each
COLUMNS = "id int PRIMARY KEY, flag bool NOT NULL, payload text, note text"
GRACE = 1  # seconds until every worker decides by the file that was read


def right(keyspace):
    """Whether the guard can have it."""
    return TABLES.get(keyspace["table"], "") == keyspace.get("where")


class Model:
    """The rows and the file, as they should be."""

    def __init__(self, database):
        self.database, self.histories = database, Histories(MAX_LAG, MAX_LAG)
        self.stop, self.problems = threading.Event(), []
        self.counts = collections.Counter()
        self.file, self.stable = {}, 0  # by name; since when it is in force everywhere
        self.locks = collections.defaultdict(threading.Lock)
        for table in TABLES:
            for row in range(ROWS):
                for variant in (f"{table}:{row}", f"{table}/flag:{row}"):
                    self.histories.add_key(variant)

    def fail(self, text):
        self.problems.append(f"NESTGUARD_SEED={SEED}: {text}")
        self.stop.set()

    # ---- rows ----

    def write(self, number):
        chance = random.Random(f"{SEED} writer {number}")
        connection = self.database.connect()
        connection.autocommit = True
        cursor = connection.cursor()
        while not self.stop.is_set():
            table, row = chance.choice(list(TABLES)), chance.randrange(ROWS)
            with self.locks[table, row]:
                self.change(cursor, table, row, chance)
            self.stop.wait(0.002)
        connection.close()

    def change(self, cursor, table, row, chance):
        there = chance.random() < 0.7
        flag, text = chance.random() < 0.7, f"{table} {row} {chance.randrange(10**6)}"
        values = {f"{table}:{row}": text if there else None,
                  f"{table}/flag:{row}": text if there and flag else None}
        made = self.histories.begin(values)
        if there:
            cursor.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
                           " flag = excluded.flag, payload = excluded.payload, note = excluded.note",
                           (row, flag, text, f"note {text}"))
        else:
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", (row,))
        self.histories.commit(made)
        self.counts["changes"] += 1

    # ---- lookups ----

    def read(self, guard, number):
        chance = random.Random(f"{SEED} reader {number}")
        connection = guard.redis(retry=None).connection_pool.get_connection("GET")
        try:
            while not self.stop.is_set():
                self.look_up(connection, chance)
        except Exception as error:  # pylint: disable=broad-except
            self.fail(f"a client was cut off: {error!r}")

    def look_up(self, connection, chance):
        since, file = self.stable, self.file
        keyspace, row = chance.choice(list(file.values())), chance.randrange(ROWS)
        key, asked = keyspace["key"].replace("{id}", str(row)), self.histories.now()
        connection.send_command("GET", key)
        try:
            reply = connection.read_response()
        except redis.ResponseError as error:
            reply = error
        answered = time.monotonic()
        self.counts["lookups"] += 1
        if not since or self.stable != since or asked.time < since or not right(keyspace):
            return
        if isinstance(reply, redis.ResponseError):
            if "timeout" not in str(reply) and "busy" not in str(reply):
                self.fail(f"GET {key}: {reply}")
        elif reply is None:
            self.counts["nils"] += 1
            if None not in self.histories.allowed(version_of(keyspace, row), asked, answered):
                self.fail(f"GET {key}: nil though there is a row; {keyspace}")
        else:
            self.counts["values"] += 1


def version_of(keyspace, row):
    return f"{keyspace['table']}{'/flag' if keyspace.get('where') else ''}:{row}"


# ---- files ----

def draw(name, chance):
    keyspace = {"name": name, "key": f"{name}{chance.randrange(3)}:{{id}}",
                "table": chance.choice([*TABLES, *TABLES, "nowhere"]),
                "value": chance.choice(["payload", "note"]), "ttl": chance.choice(["10m", "1h", "0"]),
                "enforce": chance.random() < 0.8,
                "false_positive_rate": chance.choice([0.0001, 0.001])}
    where = TABLES.get(keyspace["table"])
    if chance.random() < 0.15:
        where = None if where else "flag"
    return {**keyspace, **({"where": where} if where else {})}


def alter(keyspace, chance):
    fresh = draw(keyspace["name"], chance)
    setting = chance.choice(["value", "ttl", "enforce", "false_positive_rate", "key", "table"])
    altered = {**keyspace, setting: fresh[setting]}
    if setting == "table":
        altered.pop("where", None)
        altered.update({"where": fresh["where"]} if "where" in fresh else {})
    return altered


def next_file(file, chance):
    """One to three changes."""
    file = copy.deepcopy(file)
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(NAMES)
        if name not in file:
            file[name] = draw(name, chance)
        elif chance.random() < 0.35 and len(file) > 1:
            del file[name]
        else:
            file[name] = alter(file[name], chance)
    return file


def fates(before, after):
    """What a reload says of the keyspaces."""
    return {"added": sorted(set(after) - set(before)), "removed": sorted(set(before) - set(after)),
            "changed": sorted(name for name in after if name in before and after[name] != before[name]),
            "left": sorted(name for name in after if before.get(name) == after[name])}


def refused(before, after, is_there):
    """Something that was changed cannot be had, and that is news."""
    def is_news(name):
        keyspace, was = after[name], before.get(name, {})
        if keyspace["table"] != "nowhere":
            return not right(keyspace)
        if is_there:
            return keyspace.get("where") is not None  # which the publication does not have
        return was.get("table") != "nowhere"
    return any(is_news(name) for name in after if after[name] != before.get(name))


class Administrator:
    def __init__(self, model, guard, database, cache):
        self.database = database
        self.model, self.guard, self.chance = model, guard, random.Random(f"{SEED} administrator")
        self.settings = {"cache": cache.url, "database": database.url, "sync": "replication",
                         "max_lag": f"{MAX_LAG * 1000:.0f}ms"}

    def write(self, file, **settings):
        self.guard.configure({**self.settings, "keyspaces": list(file.values()), **settings})

    def reload(self, file):
        """A table that is nowhere may be there for the moment in which the database is asked for it."""
        before, self.model.stable = self.model.file, 0
        self.write(file, load_connections=self.chance.randint(1, 5))
        is_there = self.chance.random() < 0.5
        if is_there:
            self.database.execute(f"CREATE TABLE nowhere ({COLUMNS}); ALTER PUBLICATION nestguard ADD TABLE nowhere")
        answer = self.guard.control("POST", "/v1/reload")
        if is_there:
            self.database.execute("DROP TABLE nowhere")
        if refused(before, file, is_there):
            assert answer.status_code == 409, (answer.text, before, file)
            file = before
        else:
            assert answer.status_code == 200, (answer.text, before, file)
        told = {fate: sorted(names) for fate, names in answer.json()["keyspaces"].items()}
        assert told == fates(before, file), (told, before, file)
        assert not answer.json()["restart"]
        self.model.file = file
        time.sleep(GRACE)  # there is nothing to be seen of a worker's view
        self.model.stable = time.monotonic()
        self.model.counts["reloads"] += answer.status_code == 200
        self.model.counts["refused by the database"] += answer.status_code == 409

    def refuse(self):
        """Nothing of a wrong file is taken."""
        fault = self.chance.choice([{"max_lagg": "1s"}, {"load_budget": -1}, {"keyspaces": []},
                                    {"cache": "memcached://h"}])
        self.write(next_file(self.model.file, self.chance), **fault)
        answer = self.guard.control("POST", "/v1/reload")
        assert answer.status_code == 409 and answer.json()["problems"], answer.text
        assert sorted(answer.json()["keyspaces"]["left"]) == sorted(self.model.file)
        self.model.counts["refused files"] += 1

    def states(self):
        return {keyspace["name"]: keyspace for keyspace in self.guard.status()["keyspaces"]}

    def are_as_expected(self):
        states = self.states()
        some = any(right(keyspace) for keyspace in self.model.file.values())
        return set(states) == set(self.model.file) and all(
            states[name]["state"] == "guarding" if right(keyspace) else
            states[name]["state"] != "guarding" and (not some or states[name]["state"] == "passing")
            for name, keyspace in self.model.file.items())

    def settle(self):
        wait_until(self.are_as_expected, 2 * PATIENCE,
                   lambda: f"SEED={SEED} {self.model.file}\n{self.states()}\n{self.guard.log(lines=300)}")
        self.model.counts["settled"] += 1

    def step(self):
        if self.chance.random() < 0.2:
            self.refuse()
            return
        self.reload(next_file(self.model.file, self.chance))
        if self.chance.random() < 0.5:
            self.settle()


def make_tables(database):
    for table in TABLES:
        database.execute(f"CREATE TABLE {table} ({COLUMNS}); ALTER TABLE {table} REPLICA IDENTITY FULL")
    database.execute("CREATE PUBLICATION nestguard FOR TABLE " + ", ".join(
        f"{table} WHERE ({where})" if where else table for table, where in TABLES.items()))


def check_the_end(model, administrator, database, guard):
    """Left alone, everything is as it is in the database, also what was cached by an older file."""
    administrator.settle()
    if not any(map(right, model.file.values())):
        return  # no log is followed
    wait_followed(database)
    wait_until(lambda: guard.status()["stream"]["purges_owed"] == 0, PATIENCE, guard.log)
    client = guard.redis()
    for keyspace in model.file.values():
        if not right(keyspace):
            continue
        where = f"WHERE {keyspace['where']}" if "where" in keyspace else ""
        rows = dict(database.query(f"SELECT id, {keyspace['value']} FROM {keyspace['table']} {where}"))
        for row in range(ROWS):
            key = keyspace["key"].replace("{id}", str(row))
            wanted = rows[row].encode() if row in rows else None
            wait_until(lambda key=key, wanted=wanted: client.get(key) == wanted, PATIENCE,
                       lambda key=key, wanted=wanted: f"SEED={SEED} {key}: {client.get(key)}, wanted"
                                                      f" {wanted}; {keyspace}\n{guard.log(lines=200)}")


def test_no_file_denies_a_row_or_cuts_anybody_off(start_guard, database, cache, capsys):
    make_tables(database)
    model = Model(database)
    model.file = {"one": {**draw("one", random.Random(1)), "table": "plain"}}
    model.file["one"].pop("where", None)
    guard = start_guard(*model.file.values(), sync="replication", max_lag=f"{MAX_LAG * 1000:.0f}ms")
    administrator = Administrator(model, guard, database, cache)
    threads = [*(threading.Thread(target=model.write, args=(n,)) for n in range(WRITERS)),
               *(threading.Thread(target=model.read, args=(guard, n)) for n in range(READERS))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end and not model.stop.is_set():
            administrator.step()
    finally:
        model.stop.set()
        for thread in threads:
            thread.join()
    with capsys.disabled():
        print(f"\nNESTGUARD_SEED={SEED}: {dict(model.counts)}")
    assert not model.problems, "\n".join([*model.problems, guard.log(lines=200)])
    check_the_end(model, administrator, database, guard)
