"""What kills, pauses and restarts those that take part in a random run."""
import contextlib
import json
import random
import signal
import time

from following import paused, query_alone
from parts import MAX_LAG, SEED
from waiting import wait_until
from servers import PATIENCE

KINDS = ["pause guard", "pause database", "pause cache", "restart cache", "forget", "forget",
         "renew", "renew", "kill database", "kill guard", "kill guard", "start cold", "start cold"]
STREAM_KINDS = ["pause walsender", "kill walsender", "kill walsender", "lose published",
                "publish otherwise"]
FILE_KINDS = ["pause guard", "pause cache", "restart cache", "forget", "renew", "renew", "kill guard",
              "kill guard", "start cold"]
NOTICED = 1  # seconds in which the guard has another connection to a cache that is back


class Nemesis:
    """On the main thread: what it starts dies with the thread that started it."""

    def __init__(self, run, kinds):
        self.run_, self.kinds, self.chance = run, kinds, random.Random(f"{SEED} nemesis")

    def step(self):
        kinds = self.run_.in_season("nemesis", self.kinds)
        if self.run_.stop.wait(self.chance.uniform(0.1, 1.0)) or not kinds:
            return
        kind = self.chance.choice(kinds)
        self.run_.counts[kind] += 1
        getattr(self, kind.replace(" ", "_"))()

    def rest(self, *seconds):
        time.sleep(self.chance.choice(seconds))

    def pause(self, server):
        server.pause()
        self.rest(0.05, 0.2, MAX_LAG + 0.1, 1.2)
        server.resume()

    def pause_guard(self):
        self.pause(self.run_.guard)

    def pause_database(self):
        self.pause(self.run_.database.server)

    def pause_cache(self):
        self.pause(self.run_.cache)

    def kill_database(self):
        self.run_.database.server.kill()
        self.rest(0, 0.3)
        self.run_.database.server.start()

    def kill_walsender(self):
        query_alone(self.run_.database,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")

    def pause_walsender(self):
        for (pid,) in query_alone(self.run_.database, "SELECT pid FROM pg_stat_replication"):
            with contextlib.suppress(ProcessLookupError), paused(pid):
                self.rest(0.05, MAX_LAG + 0.1, 3 * MAX_LAG)

    def renew(self):
        self.run_.rebuild()

    # the cache

    def restart_cache(self):
        self.run_.cache.kill()
        self.rest(0, 0.3)
        self.run_.cache.start()

    def forget(self):
        """The cache comes back as it was some moments ago: a snapshot of it, or a replica that had
        not heard all yet."""
        run, dump = self.run_, self.run_.cache.directory / "dump.rdb"
        moment = run.histories.now()
        run.cache.client().save()
        self.rest(0.1, 0.5, 1)
        run.histories.begin_lapse(moment)
        run.cache.kill()
        self.rest(0, 0.3)
        run.cache.start()
        dump.unlink()
        if run.publishes:
            self.wait_owing_nothing()
        run.histories.end_lapse()

    def lose_published(self):
        """What somebody deletes, or the cache evicts."""
        table = self.chance.choice(self.run_.tables)
        lost = self.chance.choice(["", ":info", ":lease", "-0", "-cursor"])
        self.run_.cache.client().delete(table.publish["key"] + lost)

    def publish_otherwise(self):
        """The file is read again, and has one keyspace publish with another rate, or otherwise grown, or
        not at all until the next time."""
        guard = self.run_.guard
        settings = json.loads(guard.file.read_text())
        keyspace = self.chance.choice(settings["keyspaces"])
        [table] = [table for table in self.run_.tables if table.name == keyspace["name"]]
        keyspace["publish"] = {**table.publish, **self.chance.choice(
            [{}, {"grow": not table.publish["grow"]}, {"false_positive_rate": 0.01}])}
        if self.chance.random() < 0.2:
            del keyspace["publish"]
        guard.file.write_text(json.dumps(settings))
        guard.signal(signal.SIGHUP)

    def wait_owing_nothing(self):
        """It may take the guard a moment to see that the cache is another."""
        noticed = time.monotonic() + NOTICED

        def is_done():
            status = self.run_.status()
            stream = status and status["backends"]["cache"]["up"] and status["stream"]
            return self.run_.problems or (
                stream and stream["purges_owed"] == 0 and time.monotonic() > noticed)

        wait_until(is_done, 4 * PATIENCE, self.run_.situation)

    # the guard

    def kill_guard(self):
        """What the cache holds was filled by the one before."""
        run = self.run_
        with run.starting:
            run.histories.open_gap()
            run.end_guard()
            self.rest(0, 0.3)
            self.start_guard()
            run.histories.close_gap()

    def start_cold(self):
        """What the cache holds was filled by the guard that runs now."""
        run = self.run_
        with run.starting:
            run.end_guard()
            run.cache.kill()
            run.histories.forget_gaps()
            run.cache.start()
            self.start_guard()

    def start_guard(self):
        """As a supervisor does: it ends at once while a table is away."""
        guard = self.run_.guard
        with self.slots_held():
            while not self.is_started(guard):
                guard.wait()
                time.sleep(0.05)
        wait_until(guard.is_ready, 4 * PATIENCE, self.run_.situation)
        self.run_.lives += 1

    def is_started(self, guard):
        guard.launch()
        wait_until(lambda: guard.is_alive() or not guard.is_running(), PATIENCE, guard.log)
        return guard.is_running() or guard.process.returncode != 1

    @contextlib.contextmanager
    def slots_held(self):
        """A slot waits for transactions that were under way when it was begun."""
        connection = self.run_.database.connect()
        kind = self.chance.choice(["none", "transaction", "prepared"])
        try:
            cursor = connection.cursor()
            cursor.execute("SET synchronous_commit = local")  # no guard is there to wait for
            if kind != "none":
                cursor.execute("SELECT pg_current_xact_id()")
            if kind == "prepared":
                cursor.execute("PREPARE TRANSACTION 'orphan'")
            yield
            if kind != "none":
                self.rest(0.1, 0.5, 1)
            if kind == "prepared":
                connection.rollback()
                connection.autocommit = True
                cursor.execute("ROLLBACK PREPARED 'orphan'")
        finally:
            connection.close()
