"""Large commands to a cluster, which are in nobody's way there, either."""
import contextlib

import pytest

from clusters import slot_of
from following import follow  # a fixture
from servers import PATIENCE
from test_cluster import cluster
from test_cluster_footing import on_its_way
from test_cluster_tracking import moved
from waiting import wait_until
from wire import bulk, command

MEGABYTE = 1024 * 1024
KEY = "large:1"


@pytest.fixture
def guard(follow, items, cluster):
    return follow(items(), cache=cluster.url, workers=1, cache_connections=1, max_client_memory="48mb",
                  own_connections=20, cache_timeout="60s")


class TestCommand:
    VALUE = b"x" * 5 * MEGABYTE

    @pytest.mark.parametrize("words, reply", [
        (("SET", KEY, VALUE), b"+OK\r\n"),
        (("MSET", *(word for n in range(1000) for word in ("{t}%d" % n, b"x" * 5000))), b"+OK\r\n"),
        (("ECHO", VALUE), bulk(VALUE)),
        (("PUBLISH", "nobody", VALUE), b":0\r\n")], ids=["one key", "pieces", "echo", "publish"])
    def test_is_held_by_nobody_but_its_client(self, guard, cluster, words, reply):
        """Over a connection of its own, which counts as its memory; and then all is as before."""
        with contextlib.ExitStack() as paused, guard.wire() as wire:
            assert wire.ask("SET", KEY, "small") == b"+OK\r\n"
            for node in cluster.primaries:
                node.pause()
                paused.callback(node.resume)
            wire.send(command(*words))
            wait_until(lambda: guard.status()["commands"] == 2 and
                       guard.status()["client_memory_bytes"] > 4 * MEGABYTE, PATIENCE, guard.status)
            wire.send(command("SET", KEY, "small again") + command("GET", KEY))
            paused.close()
            assert wire.read_replies(3) == reply + b"+OK\r\n" + bulk("small again")
        wait_until(lambda: guard.status()["own_connections"] == 0, PATIENCE, guard.status)

    @pytest.mark.parametrize("begin", [on_its_way, moved])
    def test_finds_a_slot_that_moves(self, guard, cluster, begin):
        if cluster.node_of(KEY) is not cluster.primaries[0]:
            cluster.move(slot_of(KEY), cluster.primaries[0])
        guard.redis().delete(KEY)
        with begin(cluster, KEY), guard.wire() as wire:
            wire.send(command("SET", KEY, self.VALUE) + command("APPEND", KEY, self.VALUE) +
                      command("STRLEN", KEY))
            assert wire.read_replies(3) == b"+OK\r\n" + b":%d\r\n" % (2 * len(self.VALUE)) * 2
            guard.redis().delete(KEY)

    def test_of_a_guarded_key_makes_it_known(self, guard):
        with guard.wire() as wire:
            assert wire.ask("GET", "item:7777") == bulk(None)
            assert wire.ask("SET", "item:7777", self.VALUE) == b"+OK\r\n"
            assert wire.ask("STRLEN", "item:7777") == b":%d\r\n" % len(self.VALUE)

    def test_that_is_not_taken_counts_as_its_clients_memory(self, guard, cluster):
        node = cluster.node_of(KEY)
        with contextlib.ExitStack() as open_wires:
            node.pause()
            open_wires.callback(node.resume)
            for _ in range(5):
                wire = open_wires.enter_context(guard.wire())
                with contextlib.suppress(ConnectionError):  # it is cut off
                    wire.send(command("SET", KEY, self.VALUE * 3))
            wait_until(lambda: guard.metric("nestguard_clients_cut_total"), PATIENCE, guard.status)

    def test_for_every_node_counts_until_they_have_answered(self, guard, cluster):
        """As much as is copied for them; what there is no room for is refused, and nothing of it sent."""
        script = "return 1 --" + "x" * (MEGABYTE * 5 // 2 // len(cluster.primaries))
        with contextlib.ExitStack() as paused, guard.wire() as wire:
            assert wire.ask("SCRIPT", "LOAD", "return 1").startswith(b"$40\r\n")  # it is connected to each
            for node in cluster.primaries:
                node.pause()
                paused.callback(node.resume)
            wire.send(command("SCRIPT", "LOAD", script))
            wait_until(lambda: guard.status()["client_memory_bytes"] > 5 * MEGABYTE, PATIENCE, guard.status)
            paused.close()
            assert wire.read_reply().startswith(b"$40\r\n")
            wait_until(lambda: guard.status()["client_memory_bytes"] < MEGABYTE, PATIENCE, guard.status)
            for _ in range(3):
                assert wire.ask("SCRIPT", "LOAD", script).startswith(b"$40\r\n")
            assert wire.ask("SCRIPT", "LOAD", "--" + "x" * 2 * MEGABYTE).startswith(b"-NESTGUARD busy: too large")
            assert wire.ask("SCRIPT", "LOAD", "return 2").startswith(b"$40\r\n")

    def test_is_sent_as_ever_where_no_connection_is_left(self, guard):
        with contextlib.ExitStack() as open_wires:
            for host in range(2, 22):
                wire = open_wires.enter_context(guard.wire(f"127.0.0.{host}"))
                wire.send(command("BLPOP", "waited for", 0))
            wait_until(lambda: guard.status()["own_connections"] == 20, PATIENCE, guard.status)
            with guard.wire() as wire:
                assert wire.ask("SET", KEY, self.VALUE) == b"+OK\r\n"
                assert wire.ask("STRLEN", KEY) == b":%d\r\n" % len(self.VALUE)
