"""Caches of several servers, and what stands before them: the guard before a cluster of so many
primaries, twemproxy and the floor for a proxy before as many servers, and the guard before one."""
import rig
from clusters import Cluster, Node as ClusterNode
from lookup_systems import BACK_CORES, Forward, Nestguard, Redis, Twemproxy

SIZES = (1, 3, 6)
MOST_KEYS = 100_000  # each server has all of them, whichever it is asked for


class Node(rig.Pinned, ClusterNode):
    cores = BACK_CORES
    populate = rig.Redis.populate

    def __init__(self):
        super().__init__("--enable-debug-command", "local")


class Fleets:
    """`before`: {name: the server that is asked}."""

    def __init__(self, world, sizes):
        last = min(world.keys.cached, MOST_KEYS)
        self.hit, self.reject = rig.ids_of_one_width(1, last), world.keys.reject
        self.before = {"one": world.nestguard}
        for size in sizes:
            cluster = Cluster(primaries=size, replicas=0, kind=Node).start()
            self._populate(cluster.nodes, last)
            guard = Nestguard({**world.settings, "cache": cluster.url})
            self.before[f"cluster {size}"] = guard.start()
            servers = [Redis().start() for _ in range(size)]
            self._populate(servers, last)
            self.before[f"twemproxy {size}"] = Twemproxy(*servers).start()
            self.before[f"forward {size}"] = Forward(*servers).start()

    @staticmethod
    def _populate(servers, last):
        for server in servers:
            server.populate(last)
