"""Real servers for the tests: each on a free port, in a directory of its own, gone afterwards.

    Server ── Postgres    started through deploy/as-postgres, since it refuses to run as root
           ├─ Redis       the program that NESTGUARD_CACHE_SERVER names: redis-server, or its kin
           └─ Nestguard   the executable that NESTGUARD names

A server dies with the test program in every case: stop() in the ordinary one, atexit when a test
is interrupted, and the kernel's parent-death signal (setpriv) when pytest itself is killed.
"""
import atexit
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import urllib.parse

import psycopg2
import redis
import requests

from ports import free_port
from waiting import wait_until
from wire import Wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
AS_POSTGRES = str(ROOT / "deploy" / "as-postgres")
NESTGUARD = str(pathlib.Path(os.environ.get("NESTGUARD", ROOT / "build" / "nestguard")).resolve())
CACHE_SERVER = os.environ.get("NESTGUARD_CACHE_SERVER", "redis-server")
# Without a small quarantine, memory that ASan keeps for its reports looks like a leak of the guard.
SANITIZERS = {
    "ASAN_OPTIONS": "abort_on_error=0:exitcode=99:quarantine_size_mb=8:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "exitcode=66",
}
REPORTS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer",
           "runtime error:", "UndefinedBehaviorSanitizer")
# Sanitizers and a busy machine of two cores: waiting is cheap, a false alarm is not.
PATIENCE = 30

running = []


def _postgres_can_enter(directory):
    return subprocess.run([AS_POSTGRES, "env", "-C", directory, "true"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def make_directory(name):
    """A fresh directory in the build tree, or in /tmp where PostgreSQL's user may not enter it."""
    base = pathlib.Path(NESTGUARD).parent / "e2e"
    base.mkdir(parents=True, exist_ok=True)
    made = tempfile.mkdtemp(prefix=name + "-", dir=base)
    os.chmod(made, 0o755)
    if name == "postgres" and not _postgres_can_enter(made):
        os.rmdir(made)
        made = tempfile.mkdtemp(prefix="nestguard-postgres-", dir="/tmp")
        os.chmod(made, 0o755)
    return pathlib.Path(made)


def signal_each(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "XZ"


class Server:
    """A process with a log. Subclasses say how it starts and when it is ready."""

    name = "server"
    death_signal = "KILL"
    stop_signal = signal.SIGTERM

    def __init__(self):
        self.port = free_port()
        self.directory = make_directory(self.name)
        self.log_path = self.directory / "log"
        self.process = None
        self.environment = dict(os.environ)

    def command(self):
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    def launch(self):
        """Starts the process without waiting for it to be ready."""
        assert self.process is None, f"{self.name} runs already"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory, env=self.environment, start_new_session=True)
        if self not in running:
            running.append(self)

    def start(self):
        self.launch()
        wait_until(self._is_ready_or_dead, PATIENCE,
                   lambda: f"{self.name} to be ready\n{self.log()}")
        return self

    def _is_ready_or_dead(self):
        status = self.process.poll()
        assert status is None, f"{self.name} ended with {status} at its start\n{self.log()}"
        return self.is_ready()

    def signal(self, number):
        """To the process alone: a server's own children hear of it from the server."""
        self.process.send_signal(number)

    def children(self):
        """Each has a session of its own in PostgreSQL, and is paused or killed by itself."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        try:
            return [int(child) for child in pathlib.Path(path).read_text().split()]
        except OSError:
            return []

    def pause(self):
        """Nothing of the server answers until resume()."""
        self.signal(signal.SIGSTOP)  # first, and it gets no new children
        signal_each(self.children(), signal.SIGSTOP)

    def resume(self):
        signal_each(self.children(), signal.SIGCONT)
        self.signal(signal.SIGCONT)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def wait(self, timeout=PATIENCE):
        """Waits for the end of the process and returns its status."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.name} did not end within {timeout} s\n{self.log()}") from None
        self.process = None
        return status

    def stop(self):
        """Ends it in order; returns its exit status, or None when it did not run."""
        if self.process is None:
            return None
        if self.is_running():
            self.resume()
            self.signal(self.stop_signal)
        return self.wait()

    def kill(self):
        """Ends it as a crash would."""
        if self.process is None:
            return
        self.signal(signal.SIGSTOP)
        children = self.children()
        self.signal(signal.SIGKILL)
        signal_each(children, signal.SIGKILL)
        self.process.wait()
        self.process = None
        # PostgreSQL does not start while a child of the one before holds its memory.
        wait_until(lambda: not any(map(is_alive, children)), PATIENCE,
                   f"the end of all processes of {self.name}")

    def restart(self):
        self.stop()
        return self.start()

    def ensure_running(self):
        """For a server that several tests share: whatever the last one did to it, it runs now."""
        if self.is_running():
            self.resume()
        else:
            self.kill()
            self.start()

    def remove(self):
        self.kill()
        if self in running:
            running.remove(self)
        shutil.rmtree(self.directory, ignore_errors=True)

    def log(self, lines=60):
        if not self.log_path.exists():
            return ""
        text = self.log_path.read_text(errors="replace")
        return f"--- log of {self.name}, port {self.port}\n" + "\n".join(text.splitlines()[-lines:])


@atexit.register
def remove_all():
    for server in list(running):
        server.remove()


class Postgres(Server):
    name = "postgres"
    stop_signal = signal.SIGINT
    # `guard` is the role that nestguard uses: it may do no more than it needs to, and its queries
    # can be told from the tests' own.
    GUARD_RIGHTS = """
        CREATE EXTENSION pg_stat_statements;
        ALTER DEFAULT PRIVILEGES GRANT SELECT, DELETE ON TABLES TO guard;
        ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO guard;
    """
    GUARD_ROLE = "CREATE ROLE guard LOGIN REPLICATION;" + GUARD_RIGHTS
    SETTINGS = {
        "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
        "wal_level": "logical", "shared_preload_libraries": "pg_stat_statements",
        "shared_buffers": "32MB", "max_connections": "60", "timezone": "UTC",
        "log_min_messages": "warning", "log_checkpoints": "off",
        "autovacuum": "off", "max_prepared_transactions": "4",
    }

    def __init__(self, **settings):
        """One that is None is left to the server's default, and to ALTER SYSTEM."""
        super().__init__()
        self.settings = {**self.SETTINGS, **settings}

    def command(self):
        settings = [word for name, value in self.settings.items() if value is not None
                    for word in ("-c", f"{name}={value}")]
        return [AS_POSTGRES, "postgres", "-D", "data", "-p", str(self.port), *settings]

    def start(self):
        if not (self.directory / "data").exists():
            self.create()
            super().start()
            self.execute(self.GUARD_ROLE, "template1")
            return self
        return super().start()

    def create(self):
        if os.geteuid() == 0:
            shutil.chown(self.directory, "postgres")
        # In English and UTF-8 whatever the machine speaks: tests compare what PostgreSQL says.
        made = subprocess.run(
            [AS_POSTGRES, "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8",
             "--locale=C", "--no-sync"],
            cwd=self.directory, capture_output=True, text=True, check=False)
        assert made.returncode == 0, f"initdb failed: {made.stdout}{made.stderr}"

    def is_ready(self):
        try:
            self.connect("template1").close()
            return True
        except psycopg2.OperationalError:
            return False

    def connect(self, database, user="postgres"):
        connection = psycopg2.connect(host="127.0.0.1", port=self.port, dbname=database, user=user,
                                      connect_timeout=PATIENCE)
        connection.autocommit = True
        return connection

    def execute(self, sql, database="postgres"):
        connection = self.connect(database)
        try:
            connection.cursor().execute(sql)
        finally:
            connection.close()


class Database:
    """One database of a Postgres, made for one test."""

    def __init__(self, server, name, encoding=None):
        self.server = server
        self.name = name
        server.execute(f'CREATE DATABASE "{name}" STRATEGY file_copy TEMPLATE ' +  # the cheap one
                       (f"template0 ENCODING '{encoding}'" if encoding else "template1"))
        if encoding:
            server.execute(server.GUARD_RIGHTS, name)
        self.connection = None

    @property
    def url(self):
        return f"postgresql://guard@127.0.0.1:{self.server.port}/{self.name}"

    def connect(self, user="postgres"):
        """A connection of its own, for a transaction that stays open; commit by hand."""
        connection = self.server.connect(self.name, user)
        connection.autocommit = False
        return connection

    @contextlib.contextmanager
    def locked(self, table="items"):
        """While it lasts, whoever reads the table waits."""
        connection = self.connect()
        try:
            connection.cursor().execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            # The lock is in the log, and without a commit a server that has nothing else to do may
            # take seconds to write it out: until then who follows the log is behind.
            self.execute("SELECT pg_logical_emit_message(true, 'locked', '')")
            yield
        finally:
            with contextlib.suppress(psycopg2.OperationalError):  # the server was killed meanwhile
                connection.rollback()
            connection.close()

    def _cursor(self):
        if self.connection is None or self.connection.closed:
            self.connection = self.server.connect(self.name)
        return self.connection.cursor()

    def execute(self, sql, values=None):
        try:
            cursor = self._cursor()
            cursor.execute(sql, values)
        except psycopg2.OperationalError:
            if not self.connection or not self.connection.closed:
                raise
            cursor = self._cursor()  # the server was restarted since the last statement
            cursor.execute(sql, values)
        return cursor

    def query(self, sql, values=None):
        return self.execute(sql, values).fetchall()

    def value(self, sql, values=None):
        return self.query(sql, values)[0][0]

    def drop(self):
        """Whatever followed it has ended: its replication slots go with it, or else stay for ever.
        """
        wait_until(lambda: not self.value("SELECT count(*) FROM pg_replication_slots"
                                          " WHERE database = current_database()"),
                   PATIENCE, "the end of the database's replication slots")
        self.connection.close()
        self.server.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')

    def count_loads(self, table=""):
        """Row loads that PostgreSQL itself counted: the guard's SELECTs from tables, with
        parameters."""
        return int(self.value("""
            SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
            WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND userid = 'guard'::regrole AND query ILIKE 'select%%' AND query LIKE '%%$1%%'
              AND (query NOT LIKE '%%pg\\_%%' OR query LIKE '%%pg\\_column\\_size%%') AND query NOT LIKE '%%count(*)%%'
              AND query NOT LIKE '%%LIMIT $1' AND query LIKE '%% FROM %%'
              AND query LIKE %s""", (f"%{table}%",)))


class Redis(Server):
    """It keeps nothing on disk: nor, as a replica, what its primary had when it began. As a primary it
    does not wait some seconds for further replicas before it serves the first."""
    name = "redis"

    def command(self):
        return ["setpriv", "--pdeathsig", self.death_signal, CACHE_SERVER, "--port",
                str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                "--rdb-del-sync-files", "yes", "--repl-diskless-sync-delay", "0",
                "--dir", str(self.directory), "--loglevel", "warning"]

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def is_ready(self):
        try:
            return self.client().ping()
        except redis.ConnectionError:
            return False

    def client(self, **options):
        return redis.Redis(port=self.port, **options)

    def wait_for_key(self, key):
        """A load is answered before its value has reached the cache."""
        wait_until(lambda: self.client().exists(key), PATIENCE, f"{key} in the cache")

    def deafen(self, *replicas):
        """They hang, and what happens here from now on will not reach them when they go on: not even
        what their sockets would have kept."""
        for replica in replicas:
            replica.pause()
        self.client().execute_command("CLIENT", "KILL", "TYPE", "replica")

    def calls(self, command):
        """How often the command reached this server, as it counted itself."""
        stats = self.client().info("commandstats")
        return stats.get("cmdstat_" + command, {}).get("calls", 0)


def run_nestguard(*arguments, **environment):
    """Runs the program to its end: (exit status, what it said on both channels)."""
    done = subprocess.run([NESTGUARD, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          timeout=4 * PATIENCE, check=False,
                          env={**os.environ, **SANITIZERS, **environment})
    found = [mark for mark in REPORTS if mark in done.stdout]
    assert not found, done.stdout
    return done.returncode, done.stdout


class Nestguard(Server):
    name = "nestguard"

    def __init__(self, config):
        """`config` is a dict of settings, or the text of the file."""
        super().__init__()
        self.control_port = free_port()
        self.file = self.directory / "nestguard.yaml"
        self.http = requests.Session()
        # One that is kept may be closed by the guard, as idle, just when it is used again.
        self.http.headers["Connection"] = "close"
        self.environment.update(SANITIZERS)
        self.token = config.get("control_token") if isinstance(config, dict) else None
        self.password = config.get("password") if isinstance(config, dict) else None
        self.files = None  # that it may open, where that is a test's matter
        self.configure(config)

    def configure(self, config):
        """Writes the file; a guard that runs takes it at its next SIGHUP or start. A setting that
        is None is left out."""
        if isinstance(config, dict):
            # JSON is YAML, and quotes what needs quoting.
            settings = {
                "listen": [f"127.0.0.1:{self.port}"], "control": f"127.0.0.1:{self.control_port}",
                "workers": 2, "sync": "none", **config}
            settings = {name: value for name, value in settings.items() if value is not None}
            config = json.dumps(settings, indent=2, ensure_ascii=False)
        self.file.write_text(config)

    def command(self):
        limit = [] if self.files is None else ["prlimit", f"--nofile={self.files}"]
        return ["setpriv", "--pdeathsig", self.death_signal, *limit, NESTGUARD, "serve", "-c",
                str(self.file)]

    def is_ready(self):
        """Ready for a test: every keyspace is guarding."""
        return self.control("GET", "/guardz").status_code == 200

    def is_serving(self):
        return self.control("GET", "/readyz").status_code == 200

    def is_alive(self):
        return self.control("GET", "/healthz").status_code == 200

    def start_unready(self):
        """Starts it where it cannot guard yet: waits for its control port only."""
        self.launch()
        wait_until(self.is_alive, PATIENCE, lambda: f"the control port\n{self.log()}")
        return self

    def wait_guarding(self):
        wait_until(self._is_ready_or_dead, PATIENCE, lambda: f"{self.status()}\n{self.log()}")

    def control(self, method, path, **options):
        """A call of the control port. The path goes out as it is: quote it first."""
        headers = dict(options.pop("headers", {}))
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        try:
            return self.http.request(method, f"http://127.0.0.1:{self.control_port}{path}",
                                     headers=headers, timeout=PATIENCE, **options)
        except requests.ConnectionError:
            if method == "GET" and path in ("/healthz", "/readyz", "/guardz"):
                response = requests.Response()
                response.status_code = 0  # not there yet: whoever waits for it asks again
                return response
            raise

    def key_path(self, key):
        return "/v1/keys/" + urllib.parse.quote(key, safe="")

    def explain(self, key):
        """What the guard thinks of a key."""
        return self.control("GET", self.key_path(key)).json()

    def rebuild(self):
        """A new generation; waits until it serves."""
        number = self.control("POST", "/v1/rebuild").json()["generation"]
        wait_until(lambda: self.generation() >= number, PATIENCE, f"generation {number}")

    def generation(self):
        """The number of the generation that serves, 0 while there is none."""
        return (self.status()["generation"] or {"number": 0})["number"]

    def status(self):
        return self.control("GET", "/v1/status").json()

    def keyspace(self, name="items"):
        return next(entry for entry in self.status()["keyspaces"] if entry["name"] == name)

    def metrics(self):
        """{'name{labels}': value}, as the text has them."""
        lines = self.control("GET", "/metrics").text.splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def metric(self, name, **labels):
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        for line, value in self.metrics().items():
            metric, _, rest = line.partition("{")
            if metric == name and wanted <= set(rest.rstrip("}").split(",")):
                return value
        raise KeyError(f"{name} {wanted}")

    def counter(self, name, keyspace="items", **labels):
        return self.metric(name, keyspace=keyspace, **labels)

    def redis(self, **options):
        options.setdefault("password", self.password)
        options.setdefault("socket_timeout", PATIENCE)
        return redis.Redis(port=self.port, **options)

    def wire(self, source="127.0.0.1"):
        """A connection on which a test says every byte itself."""
        return Wire(self.port, PATIENCE, source)

    def raw(self, data, replies=None):
        """Sends bytes; returns those of so many replies, or all until the guard closes."""
        with self.wire() as wire:
            wire.send(data)
            return wire.read_until_closed() if replies is None else wire.read_replies(replies)

    def _bytes_of(self, name):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")

    def resident_bytes(self):
        return self._bytes_of("VmRSS")

    def peak_bytes(self):
        return self._bytes_of("VmHWM")

    def total(self, name):
        """A metric summed over its labels."""
        return sum(value for line, value in self.metrics().items() if line.split("{")[0] == name)

    def fail_on_reports(self):
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        found = [mark for mark in REPORTS if mark in text]
        assert not found, f"a sanitizer reported {found}\n{self.log(lines=200)}"

    def finish(self):
        """The end of every test: it must end by itself, with 0, and without a report."""
        if self.process is not None:
            early = self.process.poll()
            assert early is None, f"nestguard had ended with {early}\n{self.log(lines=200)}"
        status = self.stop()
        self.fail_on_reports()
        assert status in (None, 0), f"nestguard ended with {status}\n{self.log(lines=200)}"
