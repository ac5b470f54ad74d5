"""What a client begins on a connection of its own begins where its keys are, also while their slot is
on its way from node to node, and when it has just arrived."""
import contextlib

import pytest

from clusters import slot_of
from following import follow  # a fixture
from servers import PATIENCE
from test_cluster import cluster, guard, number_of
from test_cluster_tracking import moved
from waiting import wait_until
from wire import bulk, command

OK, QUEUED, NIL = b"+OK\r\n", b"+QUEUED\r\n", b"*-1\r\n"
KEY = "footing:1"
BESIDE = "beside:{footing:1}"


@contextlib.contextmanager
def on_its_way(cluster, name):
    """The keys that are there have gone already: of the others one node does not know any more, and
    the other one not yet, but for who says ASKING."""
    slot = slot_of(name)
    giver = cluster.node_of(name)
    to = next(node for node in cluster.primaries if node is not giver)
    cluster.begin_move(slot, to)
    cluster.move_keys(slot, giver, to)
    try:
        yield to
    finally:
        cluster.move_keys(slot, giver, to)
        cluster.end_move(slot, giver, to)


@pytest.fixture(params=[on_its_way, moved])
def there(request, guard, cluster):
    if request.param is moved and cluster.node_of(KEY) is not cluster.primaries[0]:
        cluster.move(slot_of(KEY), cluster.primaries[0])
    guard.redis().delete(KEY)
    with request.param(cluster, KEY) as node:
        yield node
        for key in (KEY, BESIDE):  # both at once are asked for in vain on their way
            guard.redis().delete(key)


def blocked(node):
    return int(node.client().info("clients")["blocked_clients"])


class TestTransaction:
    SENT = [("MULTI",), ("PING",), ("INCR", KEY), ("INCRBY", KEY, 4), ("PING",), ("EXEC",)]
    QUEUES = [OK] + [QUEUED] * 4

    def test_is_run_where_its_keys_are(self, guard, there):
        with guard.wire() as wire:
            assert [wire.ask(*words) for words in self.SENT[:-1]] == self.QUEUES
            assert wire.ask("EXEC") == b"*4\r\n+PONG\r\n:1\r\n:5\r\n+PONG\r\n"
            assert wire.ask("GET", KEY) == bulk("5")

    def test_that_comes_in_one_piece(self, guard, there):
        """And another one behind it, on the same connection."""
        with guard.wire() as wire:
            wire.send(b"".join(command(*words) for words in self.SENT * 2 + [("GET", KEY)]))
            assert [wire.read_reply() for _ in range(13)] == [
                *self.QUEUES, b"*4\r\n+PONG\r\n:1\r\n:5\r\n+PONG\r\n",
                *self.QUEUES, b"*4\r\n+PONG\r\n:6\r\n:10\r\n+PONG\r\n", bulk("10")]

    def test_begins_with_a_command_that_waits_outside_of_one(self, guard, there):
        with guard.wire() as wire:
            assert wire.ask("MULTI") == OK
            assert wire.ask("BLPOP", KEY, 0) == QUEUED
            assert wire.ask("SET", KEY, "1") == QUEUED
            assert wire.ask("EXEC") == b"*2\r\n" + NIL + OK

    def test_of_a_guarded_key_makes_it_known(self, guard, cluster):
        with on_its_way(cluster, "item:7777"), guard.wire() as wire:
            assert wire.ask("GET", "item:7777") == b"$-1\r\n"
            assert wire.ask("MULTI") == OK
            assert wire.ask("SET", "item:7777", "v") == QUEUED
            assert wire.ask("EXEC") == b"*1\r\n+OK\r\n"
            assert wire.ask("GET", "item:7777") == bulk("v")

    def test_of_a_value_that_takes_a_while_to_arrive(self, guard, there):
        text = b"x" * 20_000_000
        with guard.wire() as wire:
            wire.send(command("MULTI") + command("PING") + command("SET", KEY, text) +
                      command("STRLEN", KEY) + command("EXEC"))
            assert wire.read_replies(5) == OK + QUEUED * 3 + b"*3\r\n+PONG\r\n+OK\r\n:20000000\r\n"

    def test_that_is_given_up_leaves_nothing(self, guard, there):
        with guard.wire() as wire:
            assert wire.ask("MULTI") == OK
            assert wire.ask("INCR", KEY) == QUEUED
            assert wire.ask("DISCARD") == OK
            assert wire.ask("GET", KEY) == b"$-1\r\n"

    def test_of_another_nodes_key_is_refused(self, guard, there, cluster):
        other = next(f"other:{n}" for n in range(10000)
                     if cluster.owners()[slot_of(f"other:{n}")] not in (there, cluster.node_of(KEY)))
        with guard.wire() as wire:
            assert wire.ask("MULTI") == OK
            assert wire.ask("INCR", KEY) == QUEUED
            assert wire.ask("INCR", other).startswith(b"-CROSSSLOT")
            assert wire.ask("EXEC").startswith(b"-EXECABORT")


class TestWatch:
    @pytest.mark.parametrize("by_other", [False, True])
    def test_holds_where_the_key_is(self, guard, there, by_other):
        with guard.wire() as wire:
            assert wire.ask("WATCH", KEY) == OK
            assert wire.ask("GET", KEY) == b"$-1\r\n"
            if by_other:
                guard.redis().set(KEY, "other's")
            assert wire.ask("MULTI") == OK
            assert wire.ask("SET", KEY, "mine") == QUEUED
            assert wire.ask("GET", KEY) == QUEUED
            assert wire.ask("EXEC") == (NIL if by_other else b"*2\r\n+OK\r\n" + bulk("mine"))
            assert wire.ask("GET", KEY) == bulk("other's" if by_other else "mine")

    @pytest.mark.parametrize("read", ["GET", "EXISTS", "MGET"])
    def test_nothing_overtakes_a_lookup_of_a_guarded_key_behind_it(self, guard, cluster, read):
        """It goes by the map, which another node has, and a write behind it by the own connection."""
        key = "item:8888"
        guard.redis().set(key, "old")
        with on_its_way(cluster, key), guard.wire() as wire:
            for _ in range(10):
                assert wire.ask("WATCH", key) == OK
                sent = [(read, key), ("SET", key, "new"), (read, key), ("MULTI",), ("DEL", key), ("EXEC",)]
                wire.send(b"".join(command(*words) for words in sent))
                before, written, after = [wire.read_reply() for _ in range(3)]
                assert written == OK
                assert wire.read_replies(3) == OK + QUEUED + NIL, "the client's own write touched it"
                values = {"GET": bulk, "EXISTS": lambda _: b":1\r\n",
                          "MGET": lambda value: b"*1\r\n" + bulk(value)}
                assert (before, after) == (values[read]("old"), values[read]("new"))
                assert guard.redis().set(key, "old")

    @pytest.mark.parametrize("there", [moved], indirect=True)
    def test_of_a_second_key(self, guard, there):
        with guard.wire() as wire:
            assert wire.ask("WATCH", KEY) == OK
            assert wire.ask("WATCH", BESIDE) == OK
            guard.redis().set(BESIDE, "other's")
            assert wire.ask("MULTI") == OK
            assert wire.ask("SET", KEY, "mine") == QUEUED
            assert wire.ask("EXEC") == NIL

    def test_in_one_piece_with_what_is_behind_it(self, guard, there):
        with guard.wire() as wire:
            sent = [("WATCH", KEY), ("GET", KEY), ("MULTI",), ("INCR", KEY), ("EXEC",), ("GET", KEY)]
            wire.send(b"".join(command(*words) for words in sent))
            assert wire.read_replies(6) == (OK + b"$-1\r\n" + OK + QUEUED + b"*1\r\n:1\r\n" +
                                            bulk("1"))


class TestBehind:
    """What is asked of a key that the giver may still have, where the state is with the taker: that
    one would answer as if nobody had it."""

    @pytest.fixture
    def behind(self, guard, cluster):
        """BESIDE has not gone yet, KEY is nowhere, and so to be asked for at the taker."""
        slot, giver = slot_of(KEY), cluster.node_of(KEY)
        to = next(node for node in cluster.primaries if node is not giver)
        guard.redis().delete(KEY)
        guard.redis().rpush(BESIDE, "there")
        cluster.begin_move(slot, to)
        yield
        cluster.move_keys(slot, giver, to)
        cluster.end_move(slot, giver, to)
        guard.redis().delete(BESIDE)

    @pytest.mark.parametrize("words", [("LRANGE", BESIDE, 0, -1), ("SET", BESIDE, "lost"),
                                       ("LPOP", BESIDE), ("DEL", BESIDE)])
    @pytest.mark.parametrize("begin", ["WATCH", "MULTI"])
    def test_is_refused_in_a_transaction(self, guard, behind, begin, words):
        with guard.wire() as wire:
            if begin == "WATCH":
                assert wire.ask("WATCH", KEY) == OK
            assert wire.ask("MULTI") == OK
            if begin == "MULTI":
                assert wire.ask("SET", KEY, "v") == QUEUED
            assert wire.ask(*words).startswith(b"-TRYAGAIN")
            assert wire.ask("EXEC").startswith(b"-EXECABORT")
            assert wire.ask("LRANGE", BESIDE, 0, -1) == b"*1\r\n" + bulk("there")

    @pytest.mark.parametrize("words", [("WATCH", BESIDE), ("BLPOP", BESIDE, 0)])
    def test_is_refused_under_watch(self, guard, behind, words):
        with guard.wire() as wire:
            assert wire.ask("WATCH", KEY) == OK
            assert wire.ask(*words).startswith(b"-TRYAGAIN")
            assert wire.ask("LRANGE", BESIDE, 0, -1) == b"*1\r\n" + bulk("there")
            assert wire.ask("UNWATCH") == OK
            assert wire.ask(*words) == (OK if words[0] == "WATCH" else
                                        b"*2\r\n" + bulk(BESIDE) + bulk("there"))

    def test_is_served_once_the_slot_has_arrived(self, guard, cluster):
        slot, giver = slot_of(KEY), cluster.node_of(KEY)
        to = next(node for node in cluster.primaries if node is not giver)
        guard.redis().rpush(BESIDE, "there")
        cluster.begin_move(slot, to)
        with guard.wire() as wire:
            assert wire.ask("WATCH", KEY) == OK
            cluster.move_keys(slot, giver, to)
            cluster.end_move(slot, giver, to)
            assert wire.ask("LRANGE", BESIDE, 0, -1) == b"*1\r\n" + bulk("there"), "the map is told"
            assert wire.ask("MULTI") == OK
            assert wire.ask("LPOP", BESIDE) == QUEUED
            assert wire.ask("EXEC") == b"*1\r\n" + bulk("there")


class TestWaiting:
    def test_on_a_connection_that_was_tracked_by(self, guard, there):
        """It is the client's own by then, and among those that it tracked by until they are given back."""
        for _ in range(6):  # clients without a key are at one node after the other
            with guard.wire() as wire:
                wire.ask("HELLO", 3)
                assert wire.ask("CLIENT", "TRACKING", "ON") == OK
                assert wire.ask("CLIENT", "TRACKING", "OFF") == OK
                assert wire.ask("WATCH", KEY) == OK
                assert wire.ask("UNWATCH") == OK
        wait_until(lambda: guard.status()["own_connections"] == 0, PATIENCE, guard.status)

    def test_for_a_key_where_that_is(self, guard, there):
        with guard.wire() as wire:
            wire.send(command("GET", BESIDE) + command("BLPOP", KEY, 0) + command("GET", BESIDE))
            wait_until(lambda: blocked(there), PATIENCE, "the client to wait")
            guard.redis().rpush(KEY, "x")
            assert wire.read_reply() == b"$-1\r\n"
            assert wire.read_reply() == b"*2\r\n" + bulk(KEY) + bulk("x")
            assert wire.read_reply() == b"$-1\r\n"

    def test_longer_than_the_cache_may_take_and_then_unblocked(self, guard, there):
        with guard.wire() as wire:
            number = number_of(wire)
            wire.send(command("BLPOP", KEY, 0))
            wait_until(lambda: blocked(there), PATIENCE, "the client to wait")
            assert guard.wire().ask("CLIENT", "UNBLOCK", number) == b":1\r\n"
            assert wire.read_reply() == NIL

    def test_goes_on_at_the_node_that_the_slot_goes_to(self, guard, cluster):
        """A node sends whoever waits away with a slot that it gives away."""
        slot = slot_of(KEY)
        for _ in range(3):
            giver = cluster.node_of(KEY)
            to = next(node for node in cluster.primaries if node is not giver)
            with guard.wire() as wire:
                wire.send(command("BLPOP", KEY, 0))
                wait_until(lambda: blocked(giver), PATIENCE, "the client to wait")
                cluster.move(slot, to)
                wait_until(lambda: blocked(to), PATIENCE, "the client to wait there")
                guard.redis().rpush(KEY, "x")
                assert wire.read_reply() == b"*2\r\n" + bulk(KEY) + bulk("x")
