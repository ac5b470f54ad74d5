"""A random run: migrations and random changes of rows beside random lookups through a guard, while
a nemesis kills, pauses and restarts whatever takes part.

    NESTGUARD_SEED      repeats the choices of a run (not their timing)
    NESTGUARD_SECONDS   how long each test runs; a few seconds without it
    NESTGUARD_FAULTS    only these, of nemesis.py and migrations.py: "rewrite,renew,kill guard"

histories.py knows what each reply may be: a wrong one, however short the time, fails the test; an
error never does. In the end the guard must guard again.
"""
import collections
import contextlib
import os
import random
import sys
import threading
import time
import traceback

import psycopg2
import requests

import migrations
import nemesis
from exports import Exporter
from following import query_alone
from histories import Histories
from parts import MAX_LAG, ROUNDING, SEED, Part, PublishedReader, Reader, Writer
from servers import PATIENCE
from tables import WRITERS
from waiting import wait_until

SECONDS = float(os.environ.get("NESTGUARD_SECONDS", 10))
ONLY = os.environ.get("NESTGUARD_FAULTS", "all").split(",")
READERS = 3
SEASON, SHARES = 6, [0, 0.35, 1]  # in seconds; how many of the faults one has, but at least one


class StreamMonitor(Part):
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
        status = self.run_.status()
        stream = status and status["stream"]
        if not stream:
            return False
        followed = asked - stream["lag_seconds"] - ROUNDING
        self.run_.histories.confirm_followed(followed)
        if any(keyspace["state"] != "guarding" for keyspace in status["keyspaces"]):
            return False  # its log may not be believed: then its keys are purged when it is again
        if stream["purges_owed"] == 0:
            self.run_.histories.confirm_probed(followed)
        return number_of(stream["position"]) >= position and stream["purges_owed"] == 0


def number_of(position):
    high, low = position.split("/")
    return int(high, 16) << 32 | int(low, 16)


class PollMonitor(Part):
    """Finds out up to when rows are in the generation in force: it is one that was asked for
    afterwards."""

    def step(self):
        life, moment, wanted = self.run_.lives, time.monotonic(), self.run_.rebuild()
        while wanted and not self.run_.stop.is_set():
            status = self.run_.status()
            if not status or life != self.run_.lives:
                return
            if status["generation"] and status["generation"]["number"] >= wanted:
                self.run_.histories.confirm_followed(moment)
                self.run_.counts["confirmations"] += 1
                break
            time.sleep(0.02)
        self.run_.stop.wait(self.chance.choice([0.1, 1, 4]))


class Run:
    """`publishes`: the guard follows a publication; else what is cached lives for so long as `max_age`,
    and the guard polls, or knows files of keys that are `exported`, and no table. `stale`: how old
    replicas' words may be."""

    def __init__(self, database, cache, guard, tables, slack, max_age=None, exported=False, stale=0):
        self.database, self.cache, self.guard, self.tables = database, cache, guard, tables
        self.publishes, self.truncates = max_age is None, bool(chosen(["truncate"]))
        self.histories = Histories(slack, MAX_LAG, max_age, stale)
        self.stop = threading.Event()
        self.starting = threading.Lock()  # held while a guard is, or while none should be
        self.locking = threading.Lock()
        self.resting = threading.Event()  # writers do
        self.begun = time.monotonic()
        self.lives = 0  # changes before a guard ends and when the next one guards
        self.problems, self.refusals = [], collections.Counter()
        self.counts, self.states = collections.Counter(), collections.Counter()
        for table in tables:
            for number in table.ids:
                self.histories.add_key(table.key(number), table.first(number))
        self.nemesis = self.make_nemesis(exported)
        self.parts = self.make_parts(exported)

    def make_nemesis(self, exported):
        return nemesis.Nemesis(self, chosen(nemesis.FILE_KINDS if exported else nemesis.KINDS
                                            + nemesis.STREAM_KINDS * self.publishes))

    def make_parts(self, exported):
        return [
            *(Writer(self, n) for n in range(WRITERS)), *(Reader(self, n) for n in range(READERS)),
            *(migrations.Migrator(self, n, self.tables[n::2], chosen(migrations.KINDS))
              for n in range(0 if exported else 2)),
            StreamMonitor(self, "monitor") if self.publishes else
            Exporter(self) if exported else PollMonitor(self, "monitor"),
            *([PublishedReader(self)] if self.publishes else [])]

    def in_season(self, who, kinds):
        """Those of his faults that happen now. Some are seen only while others rest: what one
        leaves in the cache, another would sweep away."""
        season = int((time.monotonic() - self.begun) / SEASON)
        chance = random.Random(f"{SEED} {who} {season}")
        count = max(1, round(len(kinds) * chance.choice(SHARES)))
        return chance.sample(kinds, count) if kinds else []

    def fail(self, text):
        self.problems.append(f"NESTGUARD_SEED={SEED} at {time.monotonic():.4f}: {text}")
        self.stop.set()

    def note(self, who, error):
        """A migration that was refused."""
        self.counts["refused migrations"] += 1
        self.refusals[f"{who}: {str(error).splitlines()[:1]}"] += 1

    @contextlib.contextmanager
    def quiet(self):
        """Nobody but migrators changes rows meanwhile, after what is under way."""
        self.resting.set()
        try:
            yield
        finally:
            self.resting.clear()

    def rebuild(self):
        """The number of the generation, whose snapshot is yet to be taken; None without a guard."""
        try:
            return requests.post(f"http://127.0.0.1:{self.guard.control_port}/v1/rebuild",
                                 timeout=5).json()["generation"]
        except (requests.RequestException, KeyError, ValueError):
            return None

    def let_it_guard(self, seconds):
        """Or else, after migrations one upon the other, it would rest longer and longer between
        its builds."""
        end = time.monotonic() + seconds
        while not self.stop.is_set() and time.monotonic() < end:
            status = self.status()
            if status and status["guarding"]:
                return
            if status and not status["building"]:
                self.rebuild()
            time.sleep(0.1)

    def status(self):
        try:
            status = requests.get(f"http://127.0.0.1:{self.guard.control_port}/v1/status",
                                  timeout=5).json()
        except requests.RequestException:
            return None
        self.states[status["keyspaces"][0]["state"]] += 1
        return status

    def situation(self):
        """What everybody does, for whoever has waited in vain."""
        frames = sys._current_frames()  # pylint: disable=protected-access
        lines = [f"{part.name}: {''.join(traceback.format_stack(frames[part.ident])[-6:])}"
                 for part in self.parts if part.ident in frames]
        try:
            lines += map(str, query_alone(
                self.database, "SELECT pid, application_name, state, wait_event, query,"
                " now() - xact_start, array(SELECT (relation::regclass, mode, granted)::text"
                "  FROM pg_locks l WHERE l.pid = a.pid AND locktype = 'relation'"
                "  AND (NOT granted OR relation > 16384)), pg_blocking_pids(pid)"
                " FROM pg_stat_activity a WHERE datname = current_database()"))
        except psycopg2.Error as error:
            lines.append(f"the database does not answer: {error}")
        return "\n".join([f"{self.status()}", *lines, self.guard.log()])

    def end_guard(self):
        self.lives += 1
        self.guard.kill()

    def go(self, seconds=SECONDS):
        self.begun, patience = time.monotonic(), 1
        for part in self.parts:
            part.start()
        try:
            while not self.stop.is_set() and time.monotonic() < self.begun + seconds:
                self.nemesis.step()
            patience = 4 * PATIENCE
        finally:
            self.stop.set()
            for part in self.parts:
                part.join(patience)
            self.counts["seconds"] = round(time.monotonic() - self.begun)
        self.problems += [f"{part.name} does not end" for part in self.parts if part.is_alive()]
        assert not self.problems, "\n".join(self.problems)

    def summary(self):
        checks = sum(self.counts[kind] for kind in ("nils", "values", "exists"))
        kinds = {*nemesis.KINDS, *nemesis.STREAM_KINDS, *migrations.KINDS}
        faults = {kind: self.counts[kind] for kind in sorted(kinds) if self.counts[kind]}
        rest = {kind: count for kind, count in self.counts.items() if kind not in kinds}
        return (f"NESTGUARD_SEED={SEED}: {checks} checks {rest}, states {dict(self.states)},"
                f" {sum(faults.values())} faults {faults}" )

    def check_the_end(self):
        """Left alone it guards again, and knows every row. Call it when the guard has had the time
        to know of all."""
        client, rows = self.guard.redis(), {}
        connection = self.database.connect()
        for table in self.tables:
            rows.update(table.read(connection.cursor()))
        connection.close()
        keys = list(self.histories.versions)
        assert rows == {key: self.histories.value(key) for key in keys}, "the model is wrong"
        table_of = {key: table for table in self.tables for key in table.keys()}
        for key in keys:
            asked = self.histories.now()
            [reply] = table_of[key].ask(client, random.Random(key), [key])
            allowed = self.histories.allowed(key, asked, time.monotonic())
            assert (reply.decode() if reply else None) in allowed, (
                f"{key}: {reply} in the end; {self.histories.explain(key, asked)}")
        assert [key for key in keys if rows[key] is None and
                self.guard.explain(key)["verdict"] == "absent"], "nothing would be rejected"

    def wait_guarding(self):
        wait_until(self.guard.is_ready, PATIENCE, self.situation)


def chosen(kinds):
    return [kind for kind in kinds if "all" in ONLY or kind in ONLY]
