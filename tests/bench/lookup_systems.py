"""The systems that tests/bench/serve and tests/bench/instructions compare, their keys, and the load
that they are given."""
import signal
import socket

import rig
import servers
from waiting import wait_until

CONNECTIONS = 50
DEPTHS = (1, 16, 64)
SYSTEMS = ("limit", "redis", "twemproxy", "nestguard")
CORES = rig.all_cores()
SERVER_CORES, LOAD_CORES = CORES[:1], CORES[-1:]
BACK_CORES = CORES[1:-1] or LOAD_CORES

ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "1d"}
PUBLISH = {"key": "published", "false_positive_rate": 0.0001}


# ---- servers ----

class Postgres(rig.Postgres):
    cores = BACK_CORES


class Redis(rig.Redis):
    cores = BACK_CORES


class Foreign(servers.Server):
    """One that knows no more than its command line, and is ready when it accepts connections."""

    arguments = ()

    def command(self):
        return [*rig.DEATH, *map(str, self.arguments)]

    def is_ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except ConnectionRefusedError:
            return False


class Limit(rig.Pinned, Foreign):
    name = "limit"
    cores = SERVER_CORES

    def __init__(self, under=()):
        super().__init__()
        self.arguments = (*under, rig.BUILD / "tests" / "bench_limit", self.port)


class Forward(rig.Pinned, Foreign):
    """The floor for a proxy before these caches."""
    name = "limit_forward"
    cores = SERVER_CORES

    def __init__(self, *caches):
        super().__init__()
        self.arguments = (rig.BUILD / "tests" / "bench_limit_forward", self.port,
                          *(cache.port for cache in caches))


class Twemproxy(rig.Pinned, Foreign):
    name = "twemproxy"
    cores = SERVER_CORES

    def __init__(self, *caches):
        super().__init__()
        settings = self.directory / "nutcracker.yml"
        settings.write_text(f"bench:\n  listen: 127.0.0.1:{self.port}\n  redis: true\n"
                            "  preconnect: true\n  servers:\n" +
                            "".join(f"   - 127.0.0.1:{cache.port}:1\n" for cache in caches))
        self.arguments = (rig.need("nutcracker", "bench"), "-c", settings, "-a", "127.0.0.1", "-s",
                          servers.free_port(), "-p", self.directory / "pid")


class Nestguard(rig.Nestguard):
    cores = SERVER_CORES
    under = ()

    def command(self):
        words = super().command()
        at = words.index(servers.NESTGUARD)
        return [*words[:at], *self.under, *words[at:]]


# ---- keys ----

class Keys:
    """Which ids have no row, which are in the cache, and which are only in the database."""

    def __init__(self, rows):
        self.cached = rows - rows // 10
        digits = len(str(rows))
        enough = rows + 4 * rows < 10 ** digits
        self.reject = rig.ids_of_one_width(rows + 1, 10 ** (digits if enough else digits + 1) - 1)
        self.hit = rig.ids_of_one_width(1, self.cached)
        self.load = rig.ids_of_one_width(self.cached + 1, rows)
        self.loaded = 0

    def to_load(self, count):
        """So many that nobody has loaded yet, or all that are left."""
        first = self.load[0] + self.loaded
        self.loaded += count
        return first, min(first + count - 1, self.load[1])


# ---- the world ----

class World:
    """All of them. `under` goes before the commands of limit and nestguard: a program that watches
    them."""

    def __init__(self, rows, under=()):
        self.keys = Keys(rows)
        self.limit = Limit(under).start()
        self.redis = Redis().start()
        self.twemproxy = Twemproxy(self.redis).start()
        self.postgres = Postgres().start()
        self.database = rig.create_items(self.postgres, rows)
        self.redis.populate(self.keys.cached)
        self.settings = {
            "database": self.database.url, "cache": self.redis.url, "sync": "replication",
            "workers": 1, "load_budget": CONNECTIONS * max(DEPTHS), "max_lag": "1m",
            "load_timeout": "1m",  # under valgrind and beside others nothing is quick
            "keyspaces": [ITEMS]}
        self.nestguard = Nestguard(self.settings)
        self.nestguard.under = under
        self.nestguard.start()

    def publish(self):
        """Has the guard publish a bitmap as wrong as its filter, and tells the load of it."""
        self.nestguard.configure({**self.settings, "keyspaces": [{**ITEMS, "publish": PUBLISH}]})
        self.nestguard.signal(signal.SIGHUP)
        client, name = self.redis.client(), PUBLISH["key"]
        wait_until(lambda: client.exists(f"{name}:lease"), rig.PATIENCE, self.nestguard.log)
        m, k, generation = (field.decode() for field in
                            client.hmget(f"{name}:info", "m", "k", "generation"))
        sha = client.script_load((rig.ROOT / "deploy" / "published.lua").read_text())
        return f"{name},{m},{k}", f"{name},{m},{k},{sha},{generation}"

    def publish_nothing(self):
        self.nestguard.configure(self.settings)
        self.nestguard.signal(signal.SIGHUP)
        wait_until(lambda: not self.redis.client().exists(PUBLISH["key"]), rig.PATIENCE,
                   self.nestguard.log)

    def ask(self, system, depth, ids, *more):
        """What the load saw of a system, which has its core to itself meanwhile."""
        self.redis.move(SERVER_CORES if system == "redis" else BACK_CORES)
        return ask(getattr(self, system), depth, ids, *more)


def ask(server, depth, ids, *more):
    return rig.run_for_json(LOAD_CORES, [
        rig.BUILD / "tests" / "bench_load", "--port", server.port, "--pid", server.process.pid,
        "--connections", CONNECTIONS, "--depth", depth, "--ids", "%d:%d" % ids, *more])


def words_of(part):
    """What the load is told to make items of one BF.MEXISTS of a batch."""
    return ("--members", ITEMS["name"]) if part == "bf" else ()


def check(system, part, seen):
    """A figure of wrong answers is none. Of a filter some false positives are right."""
    wanted = "nil" if part in ("reject", "bf") or system == "limit" else "values"
    others = seen["requests"] - seen[wanted]
    if seen["errors"] or others > (part == "bf") * seen["requests"] / 1000 or not seen["requests"]:
        rig.fail(f"{system}, {part}: wrong answers: {seen}")
