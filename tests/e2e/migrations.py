"""Migrations at random moments: what people do to tables that are guarded.

    once, or twice ("there" and, always, "back")
      └─ a transaction: [rows] ─▶ statements ─▶ [rows] ─▶ a rest ─▶ what are the values now? ─▶ COMMIT

Each kind is a method of Migrator that bears its name. Two of them take part, each with tables of its
own, so that one table is rewritten while a build waits for another. Mostly a build is asked for
just before, or just after.
"""
import contextlib
import io
import signal
import threading
import time

import psycopg2

from following import PUBLICATION, query_alone
from parts import Changes, Committer
from servers import PATIENCE
from tables import PARTITIONS, partition_ids

KINDS = ["add column", *["rewrite"] * 3, "rename column", "rename value", *["retype"] * 2, "index",
         "truncate", "vacuum full", "cluster", "detach", *["publication"] * 8, "row security", "role",
         "rename table", "enum", "function", "swap", "restore", *["refresh view"] * 3,
         *["replace view"] * 2, "depended"]
REWRITES = ["rewrite", "retype", "truncate", "refresh view"]  # which a snapshot from before does not see
COLUMNS_MAX = 800  # of 1600 that a table may ever have had

EVENTS = f"ALTER PUBLICATION {PUBLICATION} SET (publish = '%s')"

# What a role may have been given that the guard's connections must not take over.
ROLE = ["search_path = decoys, public", "default_transaction_isolation = 'serializable'",
        "default_transaction_isolation = 'repeatable read'", "default_transaction_deferrable = on",
        "default_transaction_read_only = on", "row_security = on", "TimeZone = 'Asia/Tokyo'",
        "DateStyle = 'German'", "IntervalStyle = 'iso_8601'", "bytea_output = 'escape'",
        "extra_float_digits = -5", "standard_conforming_strings = off",
        "statement_timeout = '20ms'", "lock_timeout = '10ms'",
        "idle_in_transaction_session_timeout = '20ms'", "quote_all_identifiers = on"]


# Those of a build, of which one has a snapshot; and how the guard calls what it does then.
SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE confirmed_flush_lsn IS NOT NULL"
BEGUN_SLOTS = "SELECT slot_name FROM pg_replication_slots"
NEWEST_WAITS = """SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE usename = 'guard'
                  AND backend_type = 'client backend' ORDER BY backend_start DESC LIMIT 1"""
SURVEY = "looking"
PHASES = ["connecting", SURVEY, SURVEY, "waiting", "locking", "counting", "copying"]


class Busy(Exception):
    """A guard is being started."""


class Migrator(Committer):
    """`tables` are its own to alter."""

    def __init__(self, run, number, tables, kinds):
        super().__init__(run, f"migrator {number}", 1000 + number)
        self.tables, self.count, self.refusal = tables, 0, None
        self.sides = {}  # other connections
        self.alarm = None  # that wakes the guard
        self.kinds = [kind for kind in kinds if self.tables_for(kind)]

    def close(self):
        super().close()
        for connection in self.sides.values():
            connection.close()

    def tables_for(self, kind):
        wanted = {"depended": ["made"], "detach": ["parts"], "enum": ["docs"], "function": ["parts"], "role": ["items"],
                  "publication": ["items"], "swap": ["items", "bulk", "docs"],
                  "restore": ["items", "bulk", "docs"], "cluster": ["items", "bulk", "docs"]}
        shown = {"refresh view": lambda table: table.is_materialized(),
                 "replace view": lambda table: table.view and not table.is_materialized()}
        return [table for table in self.tables
                if (kind not in wanted or table.name in wanted[kind])
                and (kind not in shown or shown[kind](table))]

    def step(self):
        kinds = self.run_.in_season(self.name, self.kinds)
        pause = self.chance.choice([0, 0.1, 0.5, 1, 2]) * self.chance.random() if kinds else 0.2
        if self.run_.stop.wait(pause) or not kinds:
            return
        kind = self.chance.choice(kinds)
        table = self.chance.choice(self.tables_for(kind))
        self.run_.counts[kind] += 1
        self.count += 1
        try:
            with self.build_under_way(kind):
                getattr(self, kind.replace(" ", "_"))(table)
        except Busy:
            self.run_.counts[kind] -= 1
        except psycopg2.Error as error:
            self.run_.note(self.name, error)
        if self.chance.random() < 0.5:
            time.sleep(self.chance.choice([0, 0.02, 0.3]) * self.chance.random())
            self.run_.rebuild()
        if self.chance.random() < 0.5:
            self.run_.let_it_guard(self.chance.uniform(0, 4))

    @contextlib.contextmanager
    def build_under_way(self, kind):
        """Mostly. Some wait for a lock that somebody else has on another table, or stand still."""
        ways = [self.locked, self.guard_still, contextlib.nullcontext]
        with contextlib.ExitStack() as stack:
            if kind == "publication":
                pass  # which awaits one by itself
            elif kind in REWRITES and self.chance.random() < 0.5:
                self.await_snapshot()
                stack.enter_context(self.guard_still(longest=2))
            elif self.chance.random() < 0.6:
                self.await_build()
                stack.enter_context(self.chance.choice(ways)())
            yield

    def await_snapshot(self):
        """What a build will read is settled, and it has not been read."""
        if self.run_.publishes:
            self.await_slot_unread()
        else:
            self.await_phase("locking", longest=0.02)

    def await_slot_unread(self):
        """The server makes the slot by itself once it has been asked to, and everybody's
        transactions are over: the guard stands still meanwhile."""
        with contextlib.suppress(psycopg2.Error):
            cursor, holder = self.side("watcher"), self.side("holder")
            begun, made = self.slots(cursor, BEGUN_SLOTS), self.slots(cursor, SLOTS)
            holder.execute("BEGIN; SELECT pg_current_xact_id()")
            try:
                self.run_.rebuild()
                self.await_another(cursor, BEGUN_SLOTS, begun)
                self.signal_guard(signal.SIGSTOP)
            finally:
                holder.execute("ROLLBACK")
            self.await_another(cursor, SLOTS, made)

    def slots(self, cursor, which):
        cursor.execute(which)
        return set(cursor.fetchall())

    def await_another(self, cursor, which, before):
        """Not long."""
        end = time.monotonic() + 1
        while not self.slots(cursor, which) - before and time.monotonic() < end:
            time.sleep(0.002)

    @contextlib.contextmanager
    def guard_still(self, longest=0.5):
        """For a moment it gets no processor: what comes between two of its questions is not up to
        who is quicker. It may hold locks that are waited for here, and commits may wait for it.
        What `longest` is for: on a loaded machine a rewrite takes its time."""
        self.signal_guard(signal.SIGSTOP)
        self.alarm = threading.Timer(self.chance.uniform(0.1, longest), self.signal_guard,
                                     (signal.SIGCONT,))
        self.alarm.start()
        try:
            yield
        finally:
            self.wake_guard()

    def wake_guard(self):
        if self.alarm:
            self.alarm.cancel()
            self.signal_guard(signal.SIGCONT)
        self.alarm = None

    def signal_guard(self, number):
        process = self.run_.guard.process
        if process:  # else the nemesis has killed it, and starts another
            process.send_signal(number)

    def commit(self, cursor, values, unlogged=False):
        if self.run_.histories.slack == 0:
            self.wake_guard()
        return super().commit(cursor, values, unlogged)

    def await_build(self):
        """One begins, and comes to somewhere."""
        if self.run_.publishes and self.chance.random() < 0.5:
            self.await_slot()
        else:
            self.await_phase(self.chance.choice(PHASES))

    def await_slot(self):
        """A build begins; waits, not long, until it has its snapshot."""
        with contextlib.suppress(psycopg2.Error):  # the database is away
            cursor = self.side("watcher")
            before = self.slots(cursor, SLOTS)
            self.run_.rebuild()
            self.await_another(cursor, SLOTS, before)

    def await_phase(self, phase, longest=0.15):
        """A build begins; waits, not long, until it is somewhere in the phase."""
        wanted, end = self.run_.rebuild(), time.monotonic() + 1
        while wanted and time.monotonic() < end:
            status = self.run_.status()
            building = status and status["building"]
            if not building or building["number"] > wanted:
                break
            if building["number"] == wanted and building["phase"].startswith(phase):
                time.sleep(self.chance.choice([0, longest]) * self.chance.random())
                break
            time.sleep(0.002)

    def side(self, name):
        """Over another connection, which is in no transaction unless it is begun."""
        connection = self.sides.get(name)
        if not connection or connection.closed:
            connection = self.sides[name] = self.run_.database.connect()
            connection.autocommit = True
            connection.cursor().execute("SET lock_timeout = '200ms'")
        return connection.cursor()

    @contextlib.contextmanager
    def locked(self):
        """One migrator at a time, or each would wait for the other."""
        other = next(table for table in self.run_.tables if table not in self.tables)
        if not self.run_.locking.acquire(blocking=False):
            yield
            return
        try:
            self.side("locker").execute(
                f"BEGIN; LOCK TABLE public.{other.name} IN ACCESS EXCLUSIVE MODE")
            yield
        finally:
            self.run_.locking.release()
            with contextlib.suppress(psycopg2.Error):
                self.side("locker").execute("ROLLBACK")

    def rest(self, longest=0.3):
        time.sleep(self.chance.choice([0, 0, 0.1, 1]) * self.chance.random() * longest)

    # transactions

    def do(self, table, *statements, ids=None, rows=True, must=False):
        """One transaction; `ids` are those whose rows its locks cover (all of the table without
        it). True when it was committed; one that must be is tried until it is."""
        end = time.monotonic() + 2 * PATIENCE
        while not self.try_to(table, statements, ids, rows):
            if not must:
                return False
            assert time.monotonic() < end, f"refused for too long: {statements}: {self.refusal}"
            time.sleep(0.02)
        return True

    def try_to(self, table, statements, ids, rows):
        try:
            cursor = self.cursor()
            if rows and self.chance.random() < 0.5:
                cursor.execute(f"LOCK TABLE public.{table.name} IN ACCESS EXCLUSIVE MODE")
                self.change_rows(cursor, table)
            for statement in statements:
                if callable(statement):
                    statement(cursor)
                else:
                    cursor.execute(statement)
            if rows and ids is None and self.chance.random() < 0.3:
                cursor.execute(f"LOCK TABLE public.{table.name} IN ACCESS EXCLUSIVE MODE")
                self.change_rows(cursor, table)
            if not self.alarm and self.chance.random() < 0.3:
                self.await_build()
            self.rest()
            values = table.read(cursor, ids) if ids is None or ids else {}
            return self.commit(cursor, values, unlogged=True)
        except psycopg2.Error as error:
            self.refusal = error
            self.run_.note(self.name, error)
            self.give_up()
            return False

    def change_rows(self, cursor, table):
        changes = Changes(cursor, self.fresh)
        for _ in range(self.chance.choice([1, 3])):
            changes.random(self.chance, table, table.ids)

    def alone(self, statement):
        """What cannot be done in a transaction, and changes no value."""
        try:
            self.cursor()
            self.connection.autocommit = True
            self.connection.cursor().execute(statement)
        except psycopg2.Error as error:
            self.run_.note(self.name, error)
        finally:
            self.forget_connection()

    @contextlib.contextmanager
    def away(self, tables, keeps_guard=False):
        """Between there and back the log may not tell of these tables' rows. And no guard would
        start: where commits wait for it, those that hold the table would keep it away for ever."""
        kinds = [table.prefix for table in tables]
        waits = self.run_.histories.slack == 0
        with self.no_start() if waits or keeps_guard else contextlib.nullcontext():
            self.run_.histories.begin_unlogged(kinds)
            try:
                yield
            finally:
                self.run_.histories.end_unlogged(kinds)

    @contextlib.contextmanager
    def no_start(self):
        """No guard is started meanwhile. One that is may wait for locks that are held here."""
        if not self.run_.starting.acquire(timeout=0.1):
            raise Busy
        try:
            yield
        finally:
            self.run_.starting.release()

    def there_and_back(self, table, there, back, affected=None, changed=(), rests=(0, 0.1, 2)):
        """In one transaction or in two, which change the values of no ids but these."""
        if self.chance.random() < 0.3:
            self.do(table, there, lambda _: self.rest(), back, ids=[], rows=False)
            return
        with self.away(affected or [table]):
            if self.do(table, there, ids=changed, rows=False):
                time.sleep(self.chance.choice(rests) * self.chance.random())
                self.do(table, back, ids=changed, rows=False, must=True)

    # columns

    def columns(self, table, prefix):
        try:
            return [name for name, in query_alone(
                self.run_.database, "SELECT attname FROM pg_attribute WHERE attrelid ="
                " to_regclass(%s) AND attnum > 0 AND NOT attisdropped AND attname LIKE %s",
                ("public." + table.name, prefix + "%"))]
        except psycopg2.Error:
            return []

    def drop_some(self, table):
        return [f"ALTER TABLE public.{table.name} DROP COLUMN IF EXISTS {name}"
                for name in self.columns(table, "more_") if self.chance.random() < 0.7]

    def add_column(self, table):
        self.do(table, *self.drop_some(table), f"ALTER TABLE public.{table.name}"
                f" ADD more_{self.count} int DEFAULT {self.count}")
        self.refresh(table)

    def rewrite(self, table):
        self.do(table, *self.drop_some(table), f"ALTER TABLE public.{table.name} ADD"
                f" more_{self.count} uuid NOT NULL DEFAULT gen_random_uuid()")

    def refresh(self, table):
        """A table that has had too many columns is made anew."""
        with contextlib.suppress(psycopg2.Error):
            [(most,)] = query_alone(self.run_.database, "SELECT max(relnatts) FROM pg_class"
                                    " WHERE oid = to_regclass(%s)", ("public." + table.name,))
            if most and most > COLUMNS_MAX and table.name not in ("parts", "made"):
                self.swap(table)
            elif most and most > COLUMNS_MAX:
                self.kinds = [kind for kind in self.kinds if kind not in ("add column", "rewrite")]

    def rename_column(self, table):
        old = (self.columns(table, "note") or ["note"])[0]
        self.do(table, f"ALTER TABLE public.{table.name} RENAME {old} TO note_{self.count}")

    def rename_value(self, table):
        name = f"ALTER TABLE public.{table.name} RENAME %s TO %s"
        self.there_and_back(table, name % ("payload", "payload_away"),
                            name % ("payload_away", "payload"),
                            changed=table.ids if table.is_whole() else [])

    def retype(self, table):
        kind = self.chance.choice(["text", "varchar(200)"])
        self.do(table, *table.without_view(
            f"ALTER TABLE public.{table.name} ALTER payload TYPE {kind}"
            f" USING split_part(payload, '#', 1) || '#{self.count}'"))

    def enum(self, table):
        """No lock on the table keeps its writers away; so one is taken."""
        labels = query_alone(self.run_.database, "SELECT enumlabel FROM pg_enum"
                             " WHERE enumtypid = 'public.mood'::regtype")
        old = self.chance.choice(labels)[0]
        new = f"{old.split('#')[0]}#{self.count}"
        self.do(table, "LOCK TABLE public.docs IN EXCLUSIVE MODE",
                f"ALTER TYPE public.mood RENAME VALUE '{old}' TO '{new}'", rows=False)

    def function(self, table):
        """Of an expression. Which language it is in decides what is remembered of it, and where."""
        body = self.chance.choice(["sql AS $$ SELECT $1 || ' by #%d' $$",
                                   "plpgsql AS $$ BEGIN RETURN $1 || ' by #%d'; END $$"])
        self.do(table, "LOCK TABLE public.parts IN EXCLUSIVE MODE",
                "CREATE OR REPLACE FUNCTION public.label(text) RETURNS text IMMUTABLE LANGUAGE "
                + body % self.count, rows=False)

    # the same rows elsewhere

    def index(self, table):
        name = f"{table.name}_index_{self.count}"
        if table.name != "parts" and self.chance.random() < 0.4:
            self.alone(f"CREATE INDEX CONCURRENTLY {name} ON public.{table.name} (payload)")
        else:
            self.do(table, f"CREATE INDEX {name} ON public.{table.name} (payload)", ids=[],
                    rows=False)
        self.rest()
        self.do(table, f"DROP INDEX IF EXISTS public.{name}", ids=[], rows=False)

    def depended(self, table):
        """What is done to tables that values are made of, while nobody changes these values."""
        other = self.chance.choice(["seals", "pieces"])
        full, new = f"public.{other}", f"public.{other}_{self.count}"
        identity = [f"ALTER TABLE {new} REPLICA IDENTITY FULL"] * (other == "pieces")
        add = [f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {full}"] * self.run_.publishes
        change = self.chance.choice([
            [f"ALTER TABLE {full} ALTER word TYPE text USING split_part(word, '#', 1) || '#{self.count}'"],
            [f"TRUNCATE {full}"],
            [f"CREATE TABLE {new} (LIKE {full} INCLUDING ALL)", *identity,
             f"INSERT INTO {new} SELECT id, {'made_id, ' * (other == 'pieces')} split_part(word, '#', 1)"
             f" || '#{self.count}' FROM {full}", f"DROP TABLE {full}",
             f"ALTER TABLE {new} RENAME TO {other}", *add]])
        with self.away([table]):
            self.do(table, "LOCK TABLE public.made IN ACCESS EXCLUSIVE MODE", *change, rows=False)

    def vacuum_full(self, table):
        self.alone(f"VACUUM FULL public.{table.name}")

    def cluster(self, table):
        self.do(table, lambda cursor: cursor.execute(
            f"CLUSTER public.{table.name} USING {self.primary_key(cursor, table)}"), ids=[],
            rows=False)

    def primary_key(self, cursor, table):
        cursor.execute("SELECT indexrelid::regclass::text FROM pg_index WHERE indisprimary"
                       " AND indrelid = %s::regclass", ("public." + table.name,))
        return cursor.fetchone()[0]

    def truncate(self, table):
        """And reload, with other values mostly."""
        self.do(table, *self.copied(table), f"TRUNCATE public.{table.name}",
                lambda _: self.rest(), f"INSERT INTO public.{table.name} SELECT * FROM copied")

    def copied(self, table):
        lock = [f"LOCK TABLE public.{table.name} IN ACCESS EXCLUSIVE MODE"]
        copy = [f"CREATE TEMP TABLE copied ON COMMIT DROP AS SELECT * FROM public.{table.name}"]
        change = [f"UPDATE copied SET payload = split_part(payload, '#', 1) || '#{self.count}'"]
        return (lock * self.chance.choice([0, 1]) + copy
                + change * self.chance.choice([0, 1]))

    def swap(self, table):
        """A copy takes the table's place, as restores and online migrations do."""
        new, full = f"{table.name}_{self.count}", f"public.{table.name}"
        change = [f"UPDATE public.{new} SET payload = split_part(payload, '#', 1)"
                  f" || '#{self.count}'"]
        self.replace(table, [
            f"LOCK TABLE {full} IN ACCESS EXCLUSIVE MODE",
            f"CREATE TABLE public.{new} (LIKE {full} INCLUDING ALL)",
            f"INSERT INTO public.{new} SELECT * FROM {full}",
            *change * self.chance.choice([0, 1]),
            *table.without_view(f"DROP TABLE {full}",
                                f"ALTER TABLE public.{new} RENAME TO {table.name}")])

    def restore(self, table):
        """A dump, read back in one transaction."""
        dump, made = io.StringIO(), []

        def read(cursor):
            cursor.execute(f"LOCK TABLE public.{table.name} IN ACCESS EXCLUSIVE MODE")
            dump.seek(0)
            dump.truncate()
            cursor.copy_expert(f"COPY public.{table.name} TO STDOUT", dump)
            cursor.execute(
                "SELECT string_agg(format('%%I %%s', attname, format_type(atttypid, atttypmod)),"
                " ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = %s::regclass"
                " AND attnum > 0 AND NOT attisdropped", ("public." + table.name,))
            made[:] = cursor.fetchone()

        def write(cursor):
            cursor.execute(f"DROP TABLE public.{table.name}")
            cursor.execute(f"CREATE TABLE public.{table.name} ({made[0]})")
            self.rest()
            dump.seek(0)
            cursor.copy_expert(f"COPY public.{table.name} FROM STDIN", dump)
            cursor.execute(f"ALTER TABLE public.{table.name} ADD PRIMARY KEY (id)")
            if table.name == "docs":
                cursor.execute("ALTER TABLE public.docs ALTER mood SET DEFAULT"
                               " (enum_range(NULL::mood))[1], ALTER at SET DEFAULT now()")

        self.replace(table, table.without_view(read, write))

    def replace(self, table, statements):
        """The new table is published with its birth, or a little later."""
        full = [f"ALTER TABLE public.{table.name} REPLICA IDENTITY FULL"] * (table.name == "items")
        add = [f"DO $$ BEGIN ALTER PUBLICATION {PUBLICATION} ADD TABLE {table.published()};"
               " EXCEPTION WHEN duplicate_object THEN END $$"]  # the other migrator was quicker
        add *= self.run_.publishes
        with self.away([table]):
            if self.chance.random() < 0.7:
                self.do(table, *statements, *full, *add)
            elif self.do(table, *statements, *full):
                self.rest(1)
                for statement in add:
                    self.do(table, statement, ids=[], rows=False, must=True)

    # what is there, and who may see it

    def detach(self, table):
        place = self.chance.randrange(PARTITIONS)
        ids, part = partition_ids(place), f"public.parts_{place}"
        detach = f"ALTER TABLE public.parts DETACH PARTITION {part}"
        attach = (f"ALTER TABLE public.parts ATTACH PARTITION {part}"
                  f" FOR VALUES FROM ({ids.start}) TO ({ids.stop})")
        change = self.chance.choice([
            [], [f"UPDATE {part} SET payload = split_part(payload, '#', 1) || '#{self.count}'"],
            [f"TRUNCATE {part}"],
            [f"INSERT INTO {part} (id, payload) SELECT n, 'part:' || n || ' #{self.count}'"
             f" FROM generate_series({ids.start}, {ids.stop - 1}) n ON CONFLICT DO NOTHING"]])
        with self.away([table]):
            if self.chance.random() < 0.3:
                self.do(table, detach, *change, attach, ids=ids, rows=False)
            elif self.do(table, detach, ids=ids, rows=False):
                self.rest()
                self.do(table, *change, attach, ids=ids, rows=False, must=True)

    def publication(self, table):
        if not self.run_.publishes:
            return
        whole = (f"ALTER PUBLICATION {PUBLICATION} SET TABLE "
                 + ", ".join(table.published() for table in self.run_.tables))
        narrow = [(EVENTS % "insert", EVENTS % "insert, update, delete, truncate"),
                  (EVENTS % "update, delete", EVENTS % "insert, update, delete, truncate"),
                  (whole.replace("IS NULL", "IS NULL AND id < 500"), whole),
                  (whole.replace("public.docs", "public.docs WHERE (id < 5)"), whole)]
        away = [(whole.replace(", public.parts", ""), whole),
                (f"ALTER PUBLICATION {PUBLICATION} RENAME TO elsewhere",
                 f"ALTER PUBLICATION elsewhere RENAME TO {PUBLICATION}")]
        if self.chance.random() < 0.2:
            there, back = self.chance.choice(narrow + away)
            self.there_and_back(table, there, back, self.run_.tables, rests=(0, 4))
            return
        there, back = self.chance.choice(narrow)
        with self.away(self.run_.tables, keeps_guard=True):
            if self.while_surveyed(table, there):
                self.run_.stop.wait(self.chance.uniform(1, 2.5))  # it shows what it is not told of
                self.do(table, back, ids=[], rows=False, must=True)

    def while_surveyed(self, table, statement):
        """After some of the survey's questions, and before others; until that build is in force.
        Writers rest meanwhile: of what they inserted a self-check might know."""
        self.await_builds_end(2)  # it would wait for the lock, and the next one for its end
        with self.run_.quiet():
            if self.chance.random() < 0.2:
                self.await_phase(SURVEY, longest=0.1)
                with self.guard_still():
                    done = self.do(table, statement, ids=[], rows=False)
            else:
                done = self.do(table, self.lock_of_last(), lambda _: self.await_build_waiting(),
                               statement, ids=[], rows=False)
            if done:
                self.await_builds_end(2)
        return done

    def lock_of_last(self):
        """For which a survey waits when it has asked about everything else."""
        return f"LOCK TABLE public.{self.run_.tables[-1].name} IN ACCESS EXCLUSIVE MODE"

    def await_build_waiting(self):
        """A build begins, and comes to a question that waits for a lock; not long."""
        with contextlib.suppress(psycopg2.Error):
            cursor, end = self.side("watcher"), time.monotonic() + 1
            self.run_.rebuild()
            while time.monotonic() < end:
                cursor.execute(NEWEST_WAITS)
                if cursor.fetchall() == [(True,)]:
                    break
                time.sleep(0.002)

    def await_builds_end(self, longest):
        """Of the one under way: another generation is in force, or none is being built."""
        first, end = self.number_in_force(), time.monotonic() + longest
        while time.monotonic() < end and not self.run_.stop.is_set():
            status = self.run_.status()
            if not status or not status["building"] and status["guarding"] or (
                    self.number_in_force(status) != first):
                break
            time.sleep(0.02)

    def number_in_force(self, status=None):
        status = status or self.run_.status()
        return status and status["generation"] and status["generation"]["number"]

    def row_security(self, table):
        row = f"ALTER TABLE public.{table.name} %s ROW LEVEL SECURITY"
        some = self.chance.choice([[], [f"CREATE POLICY few ON public.{table.name}"
                                        " USING (id < 5)"]])
        self.there_and_back(table, ";".join([row % "ENABLE", *some]), ";".join(
            [f"DROP POLICY IF EXISTS few ON public.{table.name}", row % "DISABLE"]))

    def rename_table(self, table):
        self.there_and_back(table, f"ALTER TABLE {table.full} RENAME TO {table.name}_away",
                            f"ALTER TABLE {table.full}_away RENAME TO {table.name}")

    # views

    def refresh_view(self, table):
        """Whoever reads it meanwhile waits: what is refreshed beside its readers would be told to the
        model in another order."""
        self.do(table, f"REFRESH MATERIALIZED VIEW {table.full}", rows=False)

    def replace_view(self, table):
        """All of its values change, and no table's."""
        self.do(table, *table.create_view(f" #{self.count}", "CREATE OR REPLACE"))

    def role(self, _):
        """For whoever connects from now on. A guard may be started with other settings, and then
        has them: not meanwhile, therefore."""
        role = f"ALTER ROLE guard IN DATABASE {self.run_.database.name}"
        with self.no_start():
            self.tell(*(f"{role} SET {setting}" for setting in
                        self.chance.sample(ROLE, self.chance.choice([1, 1, 3]))))
            self.tell("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                      " 'guard' AND datname = current_database() AND random() < 0.9")
            self.rest(2)
            while not self.tell(f"{role} RESET ALL"):
                time.sleep(0.05)
            self.tell("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                      " 'guard' AND datname = current_database()")

    def tell(self, *statements):
        try:
            for statement in statements:
                query_alone(self.run_.database, statement + ("" if statement.startswith("SELECT")
                                                             else "; SELECT 1"))
            return True
        except psycopg2.Error as error:
            self.run_.note(self.name, error)
            return False
