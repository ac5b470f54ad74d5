"""What the guard is still to delete at a node of a cluster that does not answer: counted at the
nodes, of which only that one may cost more than its deletions."""
import pytest

from clusters import Cluster, slot_of
from following import follow, purges_owed, wait_followed  # follow is a fixture
from servers import PATIENCE
from waiting import wait_until

ROWS, AT_ONCE = 1500, 100


@pytest.fixture
def cluster():
    started = Cluster(replicas=0, settings=["--cluster-require-full-coverage", "no"]).start()
    yield started
    started.remove()


@pytest.fixture
def keys(database, items, cluster):
    """By node; all of them are cached, and will be old."""
    database.execute(f"INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(101, {ROWS}) n")
    owners, found = cluster.owners(), {node: [] for node in cluster.primaries}
    for n in range(1, ROWS + 1):
        found[owners[slot_of(f"item:{n}")]].append(f"item:{n}")
    return found


def cache_all(keys):
    for node, names in keys.items():
        node.client().set("{%s}plain" % names[0], "stays")
        for name in names:
            node.client().set(name, "old")


def change_all(database):
    """In pieces: what a node is told at once stays within bounds."""
    for first in range(1, ROWS + 1, AT_ONCE):
        database.execute(f"UPDATE items SET payload = payload || '!' WHERE id >= {first} AND id < {first + AT_ONCE}")
        wait_followed(database)


def is_down(guard, node):
    return any(each["address"] == node.address and not each["up"]
               for each in guard.status()["backends"]["cache"]["nodes"])


@pytest.mark.parametrize("bound", [200, 10_000])
def test_too_many_for_one_node_are_a_sweep_of_that_node(follow, database, items, cluster, keys, bound):
    assert all(2 * 200 < len(names) < 10_000 for names in keys.values())
    guard = follow(items(), cache=cluster.url, max_hints=bound)
    cache_all(keys)
    silent, *others = cluster.primaries
    swept = {node: node.calls("scan") for node in cluster.primaries}
    silent.pause()
    try:
        change_all(database)
        for node in others:
            wait_until(lambda node=node: node.client().dbsize() == 1, PATIENCE, guard.log)
        wait_until(lambda: is_down(guard, silent), PATIENCE, guard.status)
    finally:
        silent.resume()
    wait_until(lambda: purges_owed(guard) == 0, 2 * PATIENCE, guard.status)
    assert [node.client().dbsize() for node in cluster.primaries] == [1] * 3
    assert [node.calls("scan") > swept[node] for node in cluster.primaries] == [bound == 200, False, False]
    for node in others:
        assert node.calls("del") == len(keys[node])
