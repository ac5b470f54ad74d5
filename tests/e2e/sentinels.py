"""A cache that Sentinel watches: real redis-sentinels, a primary and its replicas, each on a free
port of its own."""
import contextlib

import redis

from servers import CACHE_SERVER, PATIENCE, Redis, Server
from waiting import wait_until

NAME = "mymaster"
# As short as a loaded machine lets them be: a sentinel that does not get its turn must not take
# everybody for dead.
DOWN_AFTER_MS = 1000
FAILOVER_TIMEOUT_MS = 3000


class Guarded(Redis):
    """A server that speaks TLS alone, demands a certificate and a password."""

    def __init__(self, certificates, password):
        super().__init__()
        self.certificates, self.password = certificates, password

    def command(self):
        words = " ".join(tls_words(self.port, self.certificates)).split()
        return [*super().command(), *("--" + word if word.startswith(("tls-", "port")) else word
                                      for word in words),
                "--requirepass", self.password, "--masterauth", self.password]

    def client(self, **options):
        return super().client(password=self.password, **tls_options(self.certificates), **options)


def tls_words(port, certificates):
    """Lines of a server's file."""
    return ["port 0", f"tls-port {port}", f"tls-cert-file {certificates.file('guard.crt')}",
            f"tls-key-file {certificates.file('guard.key')}",
            f"tls-ca-cert-file {certificates.file('ca.crt')}", "tls-replication yes"]


def tls_options(certificates):
    return {"ssl": True, "ssl_ca_certs": certificates.file("ca.crt"),
            "ssl_certfile": certificates.file("client.crt"),
            "ssl_keyfile": certificates.file("client.key")}


class Sentinel(Server):
    name = "sentinel"
    certificates = None

    def __init__(self, primary, quorum=1, settings=()):
        super().__init__()
        self.file = self.directory / "sentinel.conf"
        self.password = None
        self.file.write_text("\n".join([
            f"port {self.port}", "bind 127.0.0.1", f"dir {self.directory}",
            f"sentinel monitor {NAME} 127.0.0.1 {primary.port} {quorum}",
            f"sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {NAME} {FAILOVER_TIMEOUT_MS}",
            f"sentinel parallel-syncs {NAME} 2", *settings, ""]))

    def command(self):
        return ["setpriv", "--pdeathsig", self.death_signal, CACHE_SERVER, str(self.file),
                "--sentinel"]

    @property
    def url(self):
        """As a careless hand would write it into `cache`."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def client(self, **options):
        if self.certificates:
            options.update(tls_options(self.certificates))
        return redis.Redis(port=self.port, password=self.password, **options)

    def is_ready(self):
        try:
            return self.client().ping()
        except redis.ConnectionError:
            return False

    def primary(self):
        """The port of the one that it names, or None."""
        try:
            named = self.client(socket_timeout=5).sentinel_get_master_addr_by_name(NAME)
        except redis.RedisError:
            return None
        return named[1] if named else None


class Fleet:
    """Three servers, the first of them the primary, and three sentinels that agree on it."""

    def __init__(self, sentinels=3, replicas=2):
        self.servers = [Redis() for _ in range(1 + replicas)]
        for server in self.servers:
            server.start()
        self.first = self.servers[0]
        self.sentinels = [Sentinel(self.first, quorum=sentinels // 2 + 1) for _ in range(sentinels)]

    def start(self):
        for replica in self.servers[1:]:
            replica.client().replicaof("127.0.0.1", self.first.port)
        for sentinel in self.sentinels:
            sentinel.start()
        wait_until(self.is_whole, PATIENCE, "sentinels that know each other and all replicas")
        return self

    def is_whole(self):
        """Only then will a failover go well."""
        for sentinel in self.sentinels:
            state = sentinel.client().sentinel_masters()[NAME]
            if (state["num-other-sentinels"] < len(self.sentinels) - 1 or
                    state["num-slaves"] < len(self.servers) - 1 or state["flags"] != "master"):
                return False
        for server in self.servers:
            info = server.client().info("replication")
            if info["role"] == "slave" and info["master_link_status"] != "up":
                return False
        return True

    def settle(self):
        wait_until(self.is_whole, 2 * PATIENCE, "the fleet to be whole again")

    @property
    def url(self):
        return f"redis-sentinel://{','.join(each.address for each in self.sentinels)}/{NAME}/0"

    def primary(self):
        """The server that answers as the primary and that most sentinels name."""
        named = [sentinel.primary() for sentinel in self.sentinels if sentinel.is_running()]
        for server in self.servers:
            if named.count(server.port) * 2 > len(named) and self.role(server) == "master":
                return server
        return None

    @staticmethod
    def role(server):
        with contextlib.suppress(redis.RedisError):
            return server.client(socket_timeout=1).info("replication")["role"]
        return None

    def wait_primary(self, other_than=None):
        return wait_until(lambda: (found := self.primary()) is not other_than and found,
                          2 * PATIENCE, "another primary")

    def secure(self, certificates, password, sentinel_password):
        """Before it starts: TLS everywhere, and passwords."""
        for server in self.servers:
            server.remove()
        self.servers = [Guarded(certificates, password).start() for _ in self.servers]
        self.first = self.servers[0]
        count = len(self.sentinels)
        for sentinel in self.sentinels:
            sentinel.remove()
        self.sentinels = [Sentinel(self.first, count // 2 + 1, (
            f"sentinel auth-pass {NAME} {password}", f"requirepass {sentinel_password}",
            f"sentinel sentinel-pass {sentinel_password}")) for _ in self.sentinels]
        for sentinel in self.sentinels:
            sentinel.certificates, sentinel.password = certificates, sentinel_password
            text = sentinel.file.read_text().replace(f"port {sentinel.port}\n", "", 1)
            sentinel.file.write_text(
                "\n".join(tls_words(sentinel.port, certificates)) + "\n" + text)
        return self

    def remove(self):
        for each in self.sentinels + self.servers:
            each.remove()
