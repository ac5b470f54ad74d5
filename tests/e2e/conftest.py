"""Fixtures: one PostgreSQL and one Redis for a file of tests, a database and an empty cache for
each test, and as many guards as it starts."""
import concurrent.futures
import itertools
import json
import os
import re
import signal
import subprocess
import sys

import pytest

import servers
from clusters import Cluster
from gate import Gate
from sentinels import Fleet

sys.path.append(str(servers.ROOT / "tests" / "e2e" / "clients"))


def pytest_configure():
    """Being told to end is like Ctrl-C: the servers are stopped and their directories removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not os.access(servers.NESTGUARD, os.X_OK):
        pytest.exit(f"there is no {servers.NESTGUARD}: build it, or name it with NESTGUARD", 2)


@pytest.fixture(scope="session")
def postgres_server():
    server = servers.Postgres().start()
    yield server
    server.stop()
    server.remove()


@pytest.fixture(scope="session")
def redis_server():
    server = servers.Redis().start()
    yield server
    server.stop()
    server.remove()


@pytest.fixture
def database(postgres_server, request, counter=itertools.count(1)):
    """A database of its own, in which `guard` may read and delete."""
    postgres_server.ensure_running()
    name = re.sub(r"\W+", "_", request.node.name)[:40]
    made = servers.Database(postgres_server, f"{name}_{next(counter)}")
    yield made
    postgres_server.ensure_running()
    made.drop()


@pytest.fixture
def gate(database):
    """Between guard and database; opened before the guard, and closed after it."""
    with Gate(database.server.port) as opened:
        yield opened


@pytest.fixture
def cache(redis_server):
    """The Redis behind the guard: empty, its counters at zero."""
    redis_server.ensure_running()
    client = redis_server.client()
    client.flushall()
    client.config_resetstat()
    yield redis_server


@pytest.fixture(scope="module")
def cluster():
    """Three primaries without replicas; files that need others have a fixture of that name."""
    started = Cluster(replicas=0).start()
    yield started
    started.remove()


@pytest.fixture
def fleet():
    """What sentinels watch: three servers, of which one is the primary."""
    started = Fleet().start()
    yield started
    started.remove()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The guard's own table of commands: {name: row}."""
    program = str(tmp_path_factory.mktemp("commands") / "print_commands")
    sources = [f"{servers.ROOT}/tests/unit/resp/print_commands.c",
               f"{servers.ROOT}/proxy/resp/command_table.c"]
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", f"-I{servers.ROOT}/proxy", "-o", program,
                    *sources], check=True)
    printed = subprocess.run([program], check=True, capture_output=True).stdout
    return {row["name"]: row for row in json.loads(printed)}


@pytest.fixture
def start_guard(database, cache):
    """start_guard(keyspace, ..., setting=value) starts a guard over `database` and `cache`. Each
    keyspace is a dict. It waits until all of them guard; with ready=False for the control port
    alone, with ready=None for nothing. `files`: how many it may open."""
    started = []

    def start(*keyspaces, ready=True, files=None, **settings):
        guard = servers.Nestguard({"cache": cache.url, "database": database.url,
                                   "keyspaces": list(keyspaces), **settings})
        guard.files = files
        started.append(guard)
        {True: guard.start, False: guard.start_unready, None: guard.launch}[ready]()
        return guard

    yield start
    finish_all(started)


def finish_all(guards):
    """Checks and removes every guard, also when the check of an earlier one fails."""
    problems = []
    for guard in guards:
        try:
            guard.finish()
        except AssertionError as problem:
            problems.append(str(problem))
        guard.remove()
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def shared_guard(postgres_server, redis_server):
    """A guard of items for the tests of a file that leave it as they found it."""
    database = servers.Database(postgres_server, "shared")
    create_items(database)
    guard = servers.Nestguard({"cache": redis_server.url, "database": database.url,
                               "keyspaces": [items_keyspace()]}).start()
    yield guard
    finish_all([guard])
    database.drop()


@pytest.fixture
def items(database):
    """The table that most tests guard."""
    create_items(database)
    return items_keyspace


def create_items(database):
    """Items 1 to 100, item N holding "payload N"."""
    database.execute("""
        CREATE TABLE items (id bigint PRIMARY KEY, payload text, deleted_at timestamptz);
        INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, 100) n""")


def items_keyspace(**settings):
    """Its filter is so fine that no key without a row is held by chance, unless a test wants that."""
    return {"name": "items", "key": "item:{id}", "table": "items", "value": "payload",
            "ttl": "10m", "false_positive_rate": 1e-7, **settings}


@pytest.fixture
def threads():
    """For what waits while the test goes on."""
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        yield pool


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """A test that fails shows what its servers said."""
    report = (yield).get_result()
    if report.failed:
        report.sections.extend((f"{server.name} {server.port}", server.log())
                               for server in servers.running)
