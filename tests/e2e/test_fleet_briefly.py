"""A cluster, and what sentinels watch, in a few words: for whichever server NESTGUARD_CACHE_SERVER
names. All that there is to say of them is in the files of their own."""
from clusters import slot_of
from heirs import cluster  # a fixture
from servers import PATIENCE
from waiting import wait_until


def wait_served(guard, name):
    """A lookup of a row does not need the cache; this does."""
    wait_until(lambda: guard.wire().ask("SET", name, "again") == b"+OK\r\n"
               and guard.wire().ask("GET", name) == b"$5\r\nagain\r\n", 2 * PATIENCE, guard.log)


def assert_looks_up(guard):
    for n in range(1, 21):
        assert guard.redis().get(f"item:{n}") == f"payload {n}".encode()
        assert guard.redis().get(f"item:{1000 + n}") is None


def assert_serves(guard):
    client = guard.redis()
    for n in range(20):
        assert client.set(f"plain:{n}", n) and client.get(f"plain:{n}") == str(n).encode()
        assert client.get(f"none:{n}") is None
    assert client.mget([f"plain:{n}" for n in range(20)]) == [str(n).encode() for n in range(20)]
    assert_looks_up(guard)


def test_a_cluster_is_asked_each_key_where_it_is(start_guard, items, cluster):
    guard = start_guard(items(), cache=cluster.url)
    assert_serves(guard)
    assert all(node.client().dbsize() for node in cluster.primaries)


def test_a_slot_that_moves_is_followed(start_guard, items, cluster):
    guard = start_guard(items(), cache=cluster.url)
    assert guard.redis().set("moving", "x")
    giver = cluster.node_of("moving")
    to = next(node for node in cluster.primaries if node is not giver)
    cluster.move(slot_of("moving"), to)
    assert guard.redis().get("moving") == b"x"
    assert guard.redis().set("moving", "y") and to.client().get("moving") == b"y"
    assert_serves(guard)


def test_a_clusters_failover_is_followed(start_guard, items, cluster):
    guard = start_guard(items(), cache=cluster.url, cache_timeout="500ms")
    assert_serves(guard)
    cluster.node_of("plain:1").kill()
    assert_looks_up(guard)
    wait_served(guard, "plain:1")
    assert_looks_up(guard)


def test_a_failover_of_sentinels_is_followed(start_guard, items, fleet):
    guard = start_guard(items(), cache=fleet.url, cache_timeout="500ms")
    assert_serves(guard)
    fleet.first.kill()
    assert_looks_up(guard)
    fleet.wait_primary(other_than=fleet.first)
    wait_served(guard, "plain:1")
    assert_serves(guard)
