"""What a keyspace publishes in a Redis Cluster: on one node, and again on the one that comes after it."""
import contextlib

import pytest
import redis

from clusters import Cluster, slot_of
from conftest import items_keyspace
from following import follow  # a fixture
from published import Published
from servers import PATIENCE
from waiting import wait_until

NAME = "{published}"
EXISTING, OTHERS = range(1, 101), range(100001, 100011)


@pytest.fixture
def cluster():
    """While a node is down the others serve what is theirs, so that its loss is nothing to them."""
    started = Cluster(settings=("--cluster-require-full-coverage", "no")).start()
    yield started
    started.remove()


@pytest.fixture
def guard(follow, items, cluster):
    return follow(items_keyspace(publish={"key": NAME}), cache=cluster.url)


def absent(node, *items):
    return Published(node.client(), NAME).absent(*map(str, items))


def wait_possible(node, *items):
    """It is there with a lease, and has these; never does it lack one of the rows that were first."""
    def has():
        with contextlib.suppress(redis.RedisError):
            assert not any(absent(node, *EXISTING))
            return any(absent(node, *OTHERS)) and not any(absent(node, *items))
        return False
    wait_until(has, PATIENCE, f"{items} to be in the filter")


def keys_of(node):
    return {key.decode() for key in node.client().keys(f"{NAME}*")}


def test_all_of_it_is_on_one_node_and_new_rows_come_into_it(guard, cluster, database):
    home = cluster.node_of(NAME)
    wait_possible(home, *EXISTING)
    database.execute("INSERT INTO items VALUES (1001, 'x')")
    wait_possible(home, 1001)
    assert keys_of(home) == {NAME, f"{NAME}:info", f"{NAME}:lease"}
    assert not any(keys_of(node) for node in cluster.primaries if node is not home)


def test_without_its_node_it_is_made_again_at_the_one_that_takes_over(guard, cluster, database):
    home = cluster.node_of(NAME)
    wait_possible(home, *EXISTING)
    heir = cluster.follower_of(home)
    home.kill()
    database.execute("INSERT INTO items VALUES (1001, 'x')")
    wait_until(lambda: heir.client().info("replication")["role"] == "master", PATIENCE,
               "the replica to take over")
    wait_possible(heir, 1001)
    database.execute("INSERT INTO items VALUES (1002, 'x')")
    wait_possible(heir, 1001, 1002)


def test_the_loss_of_another_node_is_nothing_to_it(guard, cluster):
    home = cluster.node_of(NAME)
    wait_possible(home, *EXISTING)
    before = home.client().hget(f"{NAME}:info", "generation")
    other = next(node for node in cluster.primaries if node is not home)
    heir = cluster.follower_of(other)
    other.kill()
    wait_until(lambda: heir.client().info("replication")["role"] == "master", PATIENCE,
               "the replica to take over")
    wait_possible(home, *EXISTING)
    assert home.client().hget(f"{NAME}:info", "generation") == before


def test_it_goes_with_its_slot(guard, cluster, database):
    home = cluster.node_of(NAME)
    wait_possible(home, *EXISTING)
    to = next(node for node in cluster.primaries if node is not home)
    cluster.move(slot_of(NAME), to)
    database.execute("INSERT INTO items VALUES (1001, 'x')")
    wait_possible(to, 1001)
    assert not keys_of(home)


def test_what_is_not_published_any_more_goes(guard, cluster, database):
    home = cluster.node_of(NAME)
    wait_possible(home, *EXISTING)
    guard.configure({"cache": cluster.url, "database": database.url, "sync": "replication",
                     "max_lag": "2s", "keyspaces": [items_keyspace()]})
    guard.control("POST", "/v1/reload")
    wait_until(lambda: not keys_of(home), PATIENCE, "its end")
