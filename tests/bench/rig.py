"""What the benchmarks share: the build they measure, servers on cores of their own, and figures.

Takes nestguard from the build folder that BUILD_DIR names (build, unless it is set).
"""
import http.client
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")).resolve()
os.environ["NESTGUARD"] = str(BUILD / "nestguard")
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import servers  # noqa: E402  (needs NESTGUARD)
from waiting import wait_until  # noqa: E402

PATIENCE = 600
DEATH = ["setpriv", "--pdeathsig", "KILL"]


def fail(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def run(main):
    """Runs a benchmark so that its servers and their directories go with it on every exit."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        main()
    except AssertionError as error:  # of a server that did not start, with its log
        fail(error)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def need_built(*names):
    """Says what of the build is missing before anything starts."""
    for path in (BUILD / "nestguard", *(BUILD / "tests" / name for name in names)):
        if not os.access(path, os.X_OK):
            fail(f"{path} is not there: build it, or set BUILD_DIR to the folder where it was"
                 " built")


def need(name, group):
    """The path of a program that a group of deploy/install-packages brings."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    return found or fail(f"{name} is not installed: deploy/install-packages {group}")


def program(name):
    """A program of PostgreSQL's, without the distribution's wrapper, which costs time itself."""
    newest = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"),
                    key=lambda path: float(path.parent.name))
    path = os.pathsep.join([*(str(newest[-1]) for _ in newest[-1:]), os.environ["PATH"]])
    return shutil.which(name, path=path) or fail(
        f"{name} is not installed: deploy/install-packages servers")


def warn_unless_release():
    cache = BUILD / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    if "CMAKE_BUILD_TYPE:STRING=Release" not in lines:
        print(f"{pathlib.Path(sys.argv[0]).name}: {BUILD} is no release build: these are not the"
              " figures of one", file=sys.stderr)


# ---- cores ----

def all_cores():
    return sorted(os.sched_getaffinity(0))


def halves():
    """Two sets of cores, which are the same one where there is nothing to share out."""
    cores = all_cores()
    if len(cores) < 2 or not shutil.which("taskset"):
        return cores, cores
    return cores[:len(cores) // 2], cores[len(cores) // 2:]


def pinned(cores, command):
    if not cores or not shutil.which("taskset"):
        return command
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


# ---- servers ----

class Pinned:
    """Goes before a class of servers: they start on `cores`."""

    cores = None

    def command(self):
        return pinned(self.cores, super().command())

    def move(self, cores):
        """All threads of the process, while it runs."""
        self.cores = cores
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores)


class Postgres(Pinned, servers.Postgres):
    SETTINGS = {**servers.Postgres.SETTINGS, "shared_buffers": "256MB", "max_wal_size": "64GB",
                "checkpoint_timeout": "1h", "wal_sender_timeout": "0"}


class Redis(Pinned, servers.Redis):
    def command(self):
        return [*super().command(), "--enable-debug-command", "local"]

    def populate(self, last):
        """item:0 to item:LAST, as if an application had put them there, and nothing else."""
        self.client().flushall()
        self.client().execute_command("DEBUG", "POPULATE", last + 1, "item")


class Nestguard(Pinned, servers.Nestguard):
    def is_guarding(self):
        """Asked often, on the guard's own cores: so it must cost little."""
        assert self.process.poll() is None, f"nestguard has ended\n{self.log()}"
        return self.answers("/guardz") == 200 or self.is_older() and self.answers("/readyz") == 200

    def is_older(self):
        """Builds before 0.2.0, that a newer one may be held against, were ready when guarding."""
        return self.answers("/guardz") == 404

    def answers(self, path):
        """The status, or None while nobody answers."""
        asked = http.client.HTTPConnection("127.0.0.1", self.control_port)
        try:
            asked.request("GET", path)
            return asked.getresponse().status
        except ConnectionRefusedError:
            return None
        finally:
            asked.close()

    def start(self):
        self.launch()
        wait_until(self.is_guarding, PATIENCE, lambda: f"guarding\n{self.log()}")
        return self


ITEMS = """
    CREATE TABLE items (id bigint NOT NULL, payload text);
    INSERT INTO items SELECT i, 'payload of ' || i FROM generate_series(1, %s) i;
    ALTER TABLE items ADD PRIMARY KEY (id);
    CREATE PUBLICATION nestguard FOR TABLE items WITH (publish_via_partition_root = true);
"""


def create_items(postgres, rows):
    """A database with items 1 to `rows`, ready to be followed."""
    database = servers.Database(postgres, "bench")
    for statement in (ITEMS % rows, "VACUUM (FREEZE, ANALYZE) items"):
        database.execute(statement)
    return database


def ids_of_one_width(first, last):
    """The larger part of first..last whose ids all have the same number of digits, as the clients
    in C want them."""
    found = [(max(first, 10 ** (digits - 1)), min(last, 10 ** digits - 1))
             for digits in range(len(str(first)), len(str(last)) + 1)]
    return max(found, key=lambda ids: ids[1] - ids[0])


def run_for_json(cores, command):
    """Runs a program of ours to its end and returns the object that it prints."""
    done = subprocess.run(pinned(cores, [*DEATH, *map(str, command)]), stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, check=False, timeout=PATIENCE)
    return parse_json(command, done.returncode, done.stdout)


def parse_json(command, status, text):
    if status:
        fail(f"{pathlib.Path(command[0]).name} ended with {status}")
    return json.loads(text)


# ---- figures ----

# What was not measured is None: `null` in JSON, nothing in a table. A figure is never made up of it.

def ratio(value, beside):
    return None if value is None or not beside else value / beside


def median(values):
    """Of those that were measured."""
    measured = [value for value in values if value is not None]
    return statistics.median(measured) if measured else None


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else None


def figure(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
