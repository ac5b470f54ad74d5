"""Whatever the cache is, client libraries see one plain Redis."""
import pytest
import redis

from beside import Pair
from ports import free_port
from servers import PATIENCE, Redis
from waiting import wait_until


class Node(Redis):
    """A cluster of one, which has all keys."""

    def command(self):
        return super().command() + ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]

    def start(self):
        super().start()
        self.client().execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(self.is_whole, PATIENCE, "the cluster")
        return self

    def is_whole(self):
        try:
            return self.client().set("x", "y")
        except redis.ResponseError:
            return False


@pytest.fixture
def guarded_node(start_guard, items):
    """`serve` refuses a node of a cluster; one that takes the place of another comes later."""
    node = Node()

    def start(**settings):
        guard = start_guard(items(), cache=node.url, ready=False, **settings)
        node.start()
        wait_until(lambda: is_up(guard), PATIENCE, guard.log)
        return guard

    yield start
    node.stop()
    node.remove()


def is_up(guard):
    try:
        return guard.redis().set("plain", "1")
    except redis.ResponseError:
        return False


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_node_of_a_cluster_looks_like_a_plain_redis(guarded_node, protocol):
    with guarded_node().wire() as wire:
        if protocol == 3:
            wire.send(b"HELLO 3\r\n")
            wire.read_replies(1)
        wire.send(b"INFO\r\nINFO cluster\r\nCLUSTER SLOTS\r\nREADONLY\r\nPING\r\n")
        replies = wire.read_replies(5)
    assert b"redis_mode:standalone\r\n" in replies and b"redis_mode:cluster" not in replies
    assert b"cluster_enabled:0\r\n" in replies and b"cluster_enabled:1" not in replies
    assert replies.count(b"-ERR This instance has cluster support disabled\r\n") == 2
    assert replies.endswith(b"+PONG\r\n")


def test_whoever_wants_to_know_is_told(guarded_node):
    guard = guarded_node(cluster_commands="pass")
    client = guard.redis()
    assert client.info("server")["redis_mode"] == "cluster"
    assert b"cluster" in guard.wire().ask("HELLO", "2")
    assert client.execute_command("CLUSTER KEYSLOT", "x") == 16287


def test_a_plain_redis_answers_the_same(start_guard, items, cache):
    with Pair(start_guard(items()), cache) as pair:
        for line in ("CLUSTER SLOTS", "CLUSTER", "CLUSTER INFO", "READONLY", "READONLY x",
                     "READWRITE", "ASKING", "INFO nothing"):
            pair.ask(line)
