"""Thousands of random lookups, changes of rows, deletions, admissions and rebuilds, against a model
that knows what each reply may be. A nil for a row that the guard had to know of fails it.

    NESTGUARD_SEED   repeats a run
    NESTGUARD_STEPS  how many steps, 4000 unless it says otherwise

The guard runs with `sync: none`, so the model tells what nestguard was told from what it cannot
know. Of each key it holds

    row      the row's value now, or None
    stale    values that an earlier lookup may have left in the cache
    known    the guard must not take the key for absent: its generation has it, or it was admitted
    refused  a tombstone or a block: the reply is nil, whatever is there
"""
import os
import random

import pytest

from servers import PATIENCE
from waiting import wait_until

KEYS = 300
BLOCKED = {KEYS + n for n in range(1, 6)}  # rows that are blocked at some time, and stay it
SEED = int(os.environ.get("NESTGUARD_SEED", random.SystemRandom().randrange(1 << 32)))
STEPS = int(os.environ.get("NESTGUARD_STEPS", 4000))


class Key:
    def __init__(self, row):
        self.row = row
        self.stale = set()
        self.known = row is not None
        self.refused = False
        self.touched = False  # since the rebuild that is under way was asked for

    def change(self, row):
        """The row is changed behind the guard's back."""
        if self.row is not None:
            self.stale.add(self.row)
        elif row is not None:
            self.known = False  # the guard may have found out that there was none
        self.row = row
        self.touched = True

    def allowed(self):
        if self.refused:
            return {None}
        replies = self.stale | {self.row}
        return replies if self.known else replies | {None}

    def was_purged(self):
        self.stale = set()
        self.touched = True


class Run:
    """The guard, the database and the model, and the steps that change them."""

    def __init__(self, guard, database, seed):
        self.guard, self.database = guard, database
        self.chance = random.Random(seed)
        self.clients = [guard.redis() for _ in range(6)]
        self.keys = {n: Key(f"v{n}" if n <= KEYS // 2 or n in BLOCKED else None)
                     for n in [*range(1, KEYS + 1), *BLOCKED]}
        self.versions = 0
        self.awaited = None  # number of the generation that is being built
        for n, key in self.keys.items():
            if key.row:
                database.execute("INSERT INTO items VALUES (%s, %s)", (n, key.row))

    def pick(self):
        n = self.chance.randint(1, KEYS)
        return n, self.keys[n]

    def version(self):
        self.versions += 1
        return f"version {self.versions}"

    def call(self, method, n, query="", expected=()):
        response = self.guard.control(method, f"/v1/keys/item:{n}{query}")
        assert response.status_code in expected, f"{method} item:{n}{query}: {response.text}"
        return response.status_code

    def judge(self, n, reply):
        value = None if reply is None else reply.decode()
        key = self.keys.get(n)
        allowed = key.allowed() if key else {None}
        assert value in allowed, (
            f"item:{n} was answered {value!r}, allowed is {allowed}; {vars(key) if key else ''}; "
            f"{self.guard.explain(f'item:{n}')}")

    # the steps

    def get(self):
        n = self.chance.choice([self.pick()[0], self.chance.choice(list(self.keys))])
        self.judge(n, self.chance.choice(self.clients).get(f"item:{n}"))

    def get_unknown(self):
        n = self.chance.randint(10_000, 10**12)
        self.judge(n, self.chance.choice(self.clients).get(f"item:{n}"))

    def mget(self):
        some = [self.chance.choice(list(self.keys)) for _ in range(self.chance.randint(1, 60))]
        replies = self.chance.choice(self.clients).mget([f"item:{n}" for n in some])
        for n, reply in zip(some, replies, strict=True):
            self.judge(n, reply)

    def exists(self):
        n, key = self.pick()
        found = self.chance.choice(self.clients).exists(f"item:{n}")
        assert bool(found) in {value is not None for value in key.allowed()}, f"item:{n}"

    def insert(self):
        n, key = self.pick()
        if key.row is not None:
            return
        value = self.version()
        self.database.execute("INSERT INTO items VALUES (%s, %s)", (n, value))
        key.change(value)
        if self.chance.random() < 0.6:
            self.admit(n, key)

    def update(self):
        n, key = self.pick()
        if key.row is None:
            return
        value = self.version()
        self.database.execute("UPDATE items SET payload = %s WHERE id = %s", (value, n))
        key.change(value)

    def delete_row(self):
        n, key = self.pick()
        if key.row is None:
            return
        self.database.execute("DELETE FROM items WHERE id = %s", (n,))
        key.change(None)
        if self.chance.random() < 0.6:
            self.admin_delete(n, key)

    def admit(self, n=None, key=None):
        if n is None:
            n, key = self.pick()
        self.call("PUT", n, expected=(201, 204))
        key.known, key.refused, key.touched = True, False, True

    def is_admitted(self, n):
        """Its hint stays: whoever gave it may have a row that is not committed yet."""
        return self.guard.explain(f"item:{n}")["entry"] == "hint"

    def admin_delete(self, n=None, key=None):
        if n is None:
            n, key = self.pick()
        admitted = self.is_admitted(n)
        if self.call("DELETE", n, expected=(204, 409)) == 204:
            assert key.row is None, f"item:{n} has a row, and DELETE did not see it"
            key.known, key.refused = False, not admitted
            key.was_purged()
        else:
            assert key.row is not None, f"item:{n} has no row, and DELETE saw one"

    def admin_delete_row(self):
        n, key = self.pick()
        admitted = self.is_admitted(n)
        self.call("DELETE", n, "?row=delete", expected=(204,))
        assert not self.database.query("SELECT 1 FROM items WHERE id = %s", (n,))
        key.row, key.known, key.refused = None, False, not admitted
        key.was_purged()

    def block(self):
        n = self.chance.choice(list(BLOCKED))
        self.call("DELETE", n, "?block=1h", expected=(204,))
        self.keys[n].refused = True

    def rebuild(self):
        if self.awaited:
            return
        for n, key in self.keys.items():
            key.touched = False
            if n not in BLOCKED:  # a tombstone holds no longer than until the next generation
                key.refused = False
        response = self.guard.control("POST", "/v1/rebuild")
        assert response.status_code == 202
        self.awaited = response.json()["generation"]

    def look_for_rebuild(self):
        if not self.awaited or self.guard.generation() < self.awaited:
            return
        self.awaited = None
        for n, key in self.keys.items():
            if not key.touched and n not in BLOCKED:
                key.known = key.row is not None

    WEIGHTS = {get: 40, mget: 12, get_unknown: 8, exists: 6, insert: 10, update: 4, delete_row: 6,
               admit: 2, admin_delete: 3, admin_delete_row: 3, block: 0.2, rebuild: 1,
               look_for_rebuild: 4}

    def step(self):
        self.chance.choices(list(self.WEIGHTS), list(self.WEIGHTS.values()))[0](self)


@pytest.mark.parametrize("rate", [0.0001, 0.03])
def test_no_reply_is_wrong(start_guard, database, rate):
    print(f"NESTGUARD_SEED={SEED} NESTGUARD_STEPS={STEPS}")
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    guard = start_guard({"name": "items", "key": "item:{id}", "table": "items", "value": "payload",
                         "ttl": "1h", "false_positive_rate": rate}, hint_ttl="1h")
    run = Run(guard, database, SEED)
    guard.rebuild()
    for number in range(STEPS):
        try:
            run.step()
        except AssertionError as error:
            raise AssertionError(f"step {number} of NESTGUARD_SEED={SEED}: {error}") from error
    check_the_end(run)


def check_the_end(run):
    """After one more generation nothing is a matter of chance: each row is there, nothing else."""
    if run.awaited:
        wait_until(lambda: run.guard.generation() >= run.awaited, PATIENCE, "the last rebuild")
        run.look_for_rebuild()
    run.rebuild()
    wait_until(lambda: run.guard.generation() >= run.awaited, PATIENCE, "the final rebuild")
    run.look_for_rebuild()
    rows = dict(run.database.query("SELECT id, payload FROM items"))
    for n, key in run.keys.items():
        assert rows.get(n) == key.row, f"item:{n}: the model is wrong"
    for client in run.clients:
        for n, reply in zip(run.keys, client.mget([f"item:{n}" for n in run.keys]), strict=True):
            run.judge(n, reply)
            assert reply is not None or run.keys[n].row is None or n in BLOCKED, f"item:{n}"
