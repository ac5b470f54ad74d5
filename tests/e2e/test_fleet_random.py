"""No reply is wrong, old, out of order or somebody else's while a guard's cache is a cluster, or
watched by sentinels, whose nodes are killed, paused, promoted, added and removed, and whose slots
move; and nothing is refused but for want of a primary. Rows change all the time. For the first half of the
time lookups are the primaries' alone, then replicas are read from, too (NESTGUARD_READS=replica: from
the beginning; =primary: never). See random_run.py for the other variables (a minute without
NESTGUARD_SECONDS); each prints a table of its faults.
"""
import collections
import os
import time

import pytest

import fleet_nemesis
from clusters import SLOTS, Cluster, slot_of
from fleet_clients import PATIENCE_OF_CACHE, Client, Listener, Prober, Watchman
from following import follow
from parts import SEED, Writer
from random_run import ONLY, Run, StreamMonitor, chosen
from sentinels import Fleet
from tables import WRITERS, create_tables, make_tables
from test_follow_random import check_the_end
from troubles import Troubles

SECONDS = float(os.environ.get("NESTGUARD_SECONDS", 60))
# How much of the time is over when replicas begin to be read from.
PRIMARIES = {"both": 0.5, "replica": 0, "primary": 2}[os.environ.get("NESTGUARD_READS", "both")]
STALE = 1  # seconds: the guard's cache_max_lag
CLIENTS = 4
LAG = 2  # seconds that the guard may be behind the database
PAUSE = 0.01  # seconds between two transactions of a writer: others need the machine, too


class Changer(Writer):
    """It rests while the guard is behind, which on a busy machine it might else be for ever."""

    def step(self):
        if self.run_.is_behind:
            self.run_.stop.wait(PAUSE)
            return
        super().step()
        self.run_.stop.wait(PAUSE)


class SlowMonitor(StreamMonitor):
    def step(self):
        super().step()
        self.run_.stop.wait(0.05)


class FleetRun(Run):
    def __init__(self, database, fleet, guard, tables, nemesis, slot):
        self.make, self.slot_of, self.is_behind = nemesis, slot, False
        self.troubles, self.refused = Troubles(), collections.Counter()
        self.probes, self.clients, self.listeners = self.probe_names(), [], []
        self.probe_slots = {slot(name) for name in self.probes}
        super().__init__(database, fleet, guard, tables, LAG, stale=STALE)
        self.truncates = False  # generations one upon the other are the matter of others

    def turn_to_replicas(self):
        """When it is time."""
        if self.histories.reads_replicas or time.monotonic() < self.begun + PRIMARIES * SECONDS:
            return
        self.histories.read_replicas()
        text = self.guard.file.read_text()
        self.guard.file.write_text(text.replace('"cache_reads": "primary"', '"cache_reads": "replica"'))
        assert self.guard.control("POST", "/v1/reload").status_code == 200

    def status(self):
        status = super().status()
        self.is_behind = bool(status) and not status["guarding"]
        return status

    def probe_names(self):
        """One of each third of the slots."""
        found = {}
        for name in (f"probe:{n}" for n in range(100)):
            found.setdefault(3 * self.slot_of(name) // SLOTS, name)
        return list(found.values())

    def is_probe(self, name):
        return self.slot_of(name) in self.probe_slots

    def make_nemesis(self, exported):
        return self.make(self)

    def make_parts(self, exported):
        self.clients = [Client(self, number) for number in range(CLIENTS)]
        self.listeners = [Listener(self, kind, self.probes) for kind in ("", "S")]
        return [*(Changer(self, n) for n in range(WRITERS)), SlowMonitor(self, "monitor"),
                *self.clients, *self.listeners, Prober(self, CLIENTS, self.probes), Watchman(self, "watchman")]

    def check_replicas(self):
        for name in ("replica_reads", "replica_misses"):
            self.counts[name] = int(self.guard.metric(f"nestguard_{name}_total"))
        assert bool(self.counts["replica_reads"]) == self.histories.reads_replicas

    def summary(self):
        kinds = {*fleet_nemesis.CLUSTER_KINDS, *fleet_nemesis.SENTINEL_KINDS}
        checks = sum(self.counts[kind] for kind in ("nils", "values", "exists", "own keys",
                                                    "own keys, surely"))
        rest = {kind: count for kind, count in self.counts.items() if kind not in kinds}
        faults = {kind: self.counts[kind] for kind in sorted(kinds) if self.counts[kind]}
        return "\n".join([f"NESTGUARD_SEED={SEED}: {checks} checks {rest}, states {dict(self.states)},"
                          f" {sum(faults.values())} faults {faults}", self.troubles.table(),
                          f"refused: {dict(self.refused.most_common())}"])


@pytest.fixture
def go(follow, database, capsys):
    """go(fleet, nemesis, slot): a run from its beginning to its end."""
    runs = []

    def start(fleet, nemesis, slot):
        create_tables(database)
        tables = make_tables()
        guard = follow(*(table.keyspace for table in tables), cache=fleet.url,
                       cache_reads="primary", cache_max_lag=f"{STALE}s",
                       max_lag=f"{LAG}s", cache_timeout=f"{PATIENCE_OF_CACHE}s",
                       load_timeout="10s")
        run = FleetRun(database, fleet, guard, tables, nemesis, slot)
        runs.append(run)
        run.go(SECONDS)
        check_the_end(run)
        run.check_replicas()

    yield start
    with capsys.disabled():
        for run in runs:
            print(f"\n{run.summary()}")


def test_nothing_is_wrong_while_a_cluster_changes(go):
    cluster = Cluster(settings=("--cluster-require-full-coverage", "no",
                                "--cluster-allow-replica-migration", "no")).start()
    try:
        go(cluster, lambda run: fleet_nemesis.ClusterNemesis(
            run, chosen(fleet_nemesis.CLUSTER_KINDS) + [
                kind for kind in fleet_nemesis.BY_NAME if kind in ONLY]), slot_of)
    finally:
        cluster.remove()


def test_nothing_is_wrong_while_sentinels_name_one_primary_after_the_other(go):
    fleet = Fleet().start()
    try:
        go(fleet, lambda run: fleet_nemesis.SentinelNemesis(
            run, chosen(fleet_nemesis.SENTINEL_KINDS)), lambda _: 0)
    finally:
        fleet.remove()
