"""A cluster that prefers hostnames, of nodes on several hosts that have none: it names them all "?",
and tells their addresses beside that."""
import pytest

from clusters import Cluster, Node, slot_of
from following import follow  # a fixture
from servers import PATIENCE
from waiting import wait_until
from wire import bulk

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


class Elsewhere(Node):
    def __init__(self, host):
        super().__init__("--bind", host, "--cluster-announce-ip", host,
                         "--cluster-preferred-endpoint-type", "hostname")
        self.host = host

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def client(self, **options):
        return super().client(host=self.host, **options)


@pytest.fixture
def cluster():
    hosts = iter(HOSTS)
    started = Cluster(primaries=len(HOSTS), replicas=0, kind=lambda: Elsewhere(next(hosts)))
    try:
        yield started.start()
    finally:
        started.remove()


def test_nodes_without_a_hostname_are_reached_at_their_addresses(follow, items, cluster):
    wire = follow(items(), cache=cluster.url, workers=1).wire()
    owners = cluster.owners()
    keys = {owners[slot_of(f"k{n}")].host: f"k{n}" for n in range(100)}
    assert sorted(keys) == HOSTS
    for key in keys.values():
        assert wire.ask("SET", key, "x") == b"+OK\r\n"
        assert cluster.get(key) == b"x"


def test_a_slot_that_moves_between_them_is_found_again(follow, items, cluster):
    wire = follow(items(), cache=cluster.url, workers=1).wire()
    key = "moving"
    giver = cluster.node_of(key)
    to = next(node for node in cluster.nodes if node is not giver)
    assert wire.ask("GET", key) == b"$-1\r\n"
    cluster.end_move(slot_of(key), giver, to)
    wait_until(lambda: wire.ask("SET", key, "x") == b"+OK\r\n", PATIENCE, "the slot's new node")
    assert to.client().get(key) == b"x"
    assert wire.ask("GET", key) == bulk("x")
