"""A Redis Cluster that changes under the guard: slots move under load, primaries die and are
followed by their replicas, and come back."""
import contextlib
import random
import threading
import time

import pytest
import redis

from clusters import slot_of
from following import follow  # a fixture
from heirs import cluster, guard  # fixtures
from servers import PATIENCE
from waiting import wait_until


def nodes(guard):
    return guard.status()["backends"]["cache"]["nodes"]


def knows(guard, node):
    return any(each["up"] and each["role"] == "primary" and each["address"] == node.address
               for each in nodes(guard))


class Writer(threading.Thread):
    """One client with keys of its own, of which it knows what each must hold."""

    def __init__(self, guard, number, seed):
        super().__init__()
        self.client = guard.redis(socket_timeout=PATIENCE)
        self.random = random.Random(f"{seed} {number}")
        # Some share a slot, and most do not.
        self.names = [f"w{number}:{n}" for n in range(20)] + [f"{{w{number}}}{n}" for n in range(5)]
        self.model = {}
        self.ended = threading.Event()
        self.rounds = 0
        self.problem = None

    def run(self):
        try:
            while not self.ended.is_set():
                self.one_round()
                self.rounds += 1
        except Exception as problem:  # told by the test, whatever it is
            self.problem = repr(problem)

    def one_round(self):
        pipe = self.client.pipeline(transaction=False)
        expected = []
        for _ in range(self.random.randrange(1, 30)):
            getattr(self, self.random.choice(
                ["set", "get", "append", "delete", "mset", "mget", "exists"]))(
                    pipe, expected)
        got = pipe.execute()
        assert got == expected, f"{got} is not {expected}, seed of {self.names[0]}"

    def some(self):
        """Not of one slot alone: while that moves, a node asks to try again (TRYAGAIN)."""
        return self.random.sample(self.names[:20], self.random.randrange(1, 8)) + \
            self.random.sample(self.names[20:], self.random.randrange(2))

    def set(self, pipe, expected):
        name, value = self.random.choice(self.names), b"%d" % self.random.randrange(1000)
        pipe.set(name, value)
        self.model[name] = value
        expected.append(True)

    def get(self, pipe, expected):
        name = self.random.choice(self.names)
        pipe.get(name)
        expected.append(self.model.get(name))

    def append(self, pipe, expected):
        name = self.random.choice(self.names)
        pipe.append(name, "x")
        self.model[name] = self.model.get(name, b"") + b"x"
        expected.append(len(self.model[name]))

    def delete(self, pipe, expected):
        names = self.some()
        pipe.delete(*names)
        expected.append(sum(self.model.pop(name, None) is not None for name in names))

    def mset(self, pipe, expected):
        values = {name: b"%d" % self.random.randrange(1000) for name in self.some()}
        pipe.mset(values)
        self.model.update(values)
        expected.append(True)

    def mget(self, pipe, expected):
        names = self.some()
        pipe.mget(names)
        expected.append([self.model.get(name) for name in names])

    def exists(self, pipe, expected):
        names = self.some()
        pipe.exists(*names)
        expected.append(sum(name in self.model for name in names))


class Reader(threading.Thread):
    """Looks up rows that exist all the time: nil, or a value older than allowed, is wrong."""

    def __init__(self, guard):
        super().__init__()
        self.guard = guard
        self.ended = threading.Event()
        self.lookups, self.errors, self.wrong = 0, [], []

    def run(self):
        client = self.guard.redis(socket_timeout=PATIENCE)
        while not self.ended.is_set():
            number = random.randrange(1, 101)
            try:
                value = client.get(f"item:{number}")
                self.lookups += 1
                if value is None:
                    self.wrong.append((time.time(), number, value))
            except redis.RedisError as error:
                self.errors.append(str(error))


def run_all(threads):
    for thread in threads:
        thread.start()


def end_all(threads):
    for thread in threads:
        thread.ended.set()
    for thread in threads:
        thread.join(2 * PATIENCE)
        assert not thread.is_alive()


def test_nothing_is_lost_or_out_of_order_while_slots_move(guard, cluster):
    seed = random.randrange(10 ** 9)
    writers = [Writer(guard, number, seed) for number in range(3)]
    reader = Reader(guard)
    run_all(writers + [reader])
    moved = random.Random(seed)
    names = [name for writer in writers for name in writer.names]
    primaries = cluster.primaries
    try:
        deadline = time.monotonic() + 12
        while time.monotonic() < deadline and not any(writer.problem for writer in writers):
            slot = slot_of(moved.choice(names))
            giver = cluster.owners()[slot]
            cluster.move(slot, moved.choice([node for node in primaries if node is not giver]))
    finally:
        end_all(writers + [reader])
    assert [writer.problem for writer in writers] == [None] * 3, f"seed {seed}\n{guard.log()}"
    assert all(writer.rounds for writer in writers) and reader.lookups
    assert not reader.wrong and not reader.errors
    assert guard.total("nestguard_redirected_total") > 0


def wait_promoted(cluster, node):
    wait_until(lambda: node.client().info("replication")["role"] == "master" and
               cluster.is_whole(), 3 * PATIENCE, "the replica to be made a primary")


def cut_off(cluster, node):
    """It hears nobody on the cluster's bus any more, and answers clients all the same. Its replica has
    its slots, as all others know."""
    heir = cluster.follower_of(node)
    others = [each for each in cluster.nodes if each is not node]
    for each in others:
        node.ask("CLUSTER", "FORGET", each.id())
    wait_until(lambda: node.info()["cluster_state"] == "fail", PATIENCE, "it to be alone")
    heir.ask("CLUSTER", "FAILOVER", "TAKEOVER")
    wait_until(lambda: all(each.info()["cluster_state"] == "ok" and
                           heir.port in [row[2][1] for row in each.ask("CLUSTER", "SLOTS")]
                           for each in others), PATIENCE, "all others to know the heir")
    return heir


def test_a_node_that_is_cut_off_is_not_believed(guard, cluster, database):
    """The first seed: by what it says of the slots the guard went until then."""
    node = cluster.nodes[0]
    owners = cluster.owners()
    number = next(n for n in range(1, 100) if owners[slot_of(f"item:{n}")] is node)
    client, name = guard.redis(), f"item:{number}"
    assert client.get(name) == b"payload %d" % number
    cluster.wait_for_key(name)
    heir = cut_off(cluster, node)
    database.execute(f"UPDATE items SET payload = 'new' WHERE id = {number}")

    def is_written():
        with contextlib.suppress(redis.RedisError):
            return client.set(f"{{{name}}}plain", "x")

    wait_until(is_written, PATIENCE, "the heir to be written to")
    wait_until(lambda: guard.status()["stream"]["purges_owed"] == 0, PATIENCE, guard.status)
    assert client.get(name) == b"new"
    assert heir.client().get(f"{{{name}}}plain") == b"x"


def test_a_replica_that_takes_over_is_followed_without_a_wrong_nil(guard, cluster):
    first = cluster.node_of("item:7")
    heir = cluster.follower_of(first)
    readers = [Reader(guard) for _ in range(3)]
    run_all(readers)
    try:
        first.kill()
        wait_promoted(cluster, heir)
        wait_until(lambda: knows(guard, heir), PATIENCE, lambda: f"{nodes(guard)}")
    finally:
        end_all(readers)
    assert all(reader.lookups for reader in readers)
    assert not any(reader.wrong for reader in readers)
    assert not any(reader.errors for reader in readers)
    client = guard.redis()
    names = [name for name in (f"plain:{n}" for n in range(200))
             if cluster.node_of(name) is heir][:5]
    for name in names:
        assert client.set(name, "x") and client.get(name) == b"x"
    assert all(client.set(f"other:{n}", n) for n in range(50))


def test_deletions_that_a_replica_has_missed_are_made_up_for(guard, cluster, database):
    client = guard.redis()
    assert client.get("item:7") == b"payload 7"
    cluster.wait_for_key("item:7")
    first = cluster.node_of("item:7")
    heir = cluster.follower_of(first)
    wait_until(lambda: heir.ask("READONLY") and heir.client().dbsize(), PATIENCE, "the replica's copy")
    first.deafen(heir)
    database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
    wait_until(lambda: not first.client().exists("item:7"), PATIENCE, "the purge")
    first.kill()
    heir.resume()
    wait_promoted(cluster, heir)
    wait_until(lambda: guard.redis().get("item:7") == b"new", PATIENCE,
               lambda: f"the new value\n{guard.log()}")


def test_what_a_late_replica_has_kept_is_deleted_wherever_its_slot_goes(guard, cluster, database):
    """The guard learns of both at once: who took over, and to whom it has given the key since."""
    assert guard.redis().get("item:7") == b"payload 7"
    cluster.wait_for_key("item:7")
    first = cluster.node_of("item:7")
    heir = cluster.follower_of(first)
    other = next(node for node in cluster.primaries if node is not first)
    wait_until(lambda: heir.ask("READONLY") and heir.client().dbsize(), PATIENCE, "the replica's copy")
    first.deafen(heir)
    database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
    wait_until(lambda: not first.client().exists("item:7"), PATIENCE, "the purge")
    wait_until(lambda: guard.status()["stream"]["purges_owed"] == 0, PATIENCE, guard.status)
    guard.pause()
    first.kill()
    heir.resume()
    wait_promoted(cluster, heir)
    cluster.move(slot_of("item:7"), other)
    assert other.client().get("item:7") == b"payload 7"
    guard.resume()
    wait_until(lambda: other.client().get("item:7") != b"payload 7", PATIENCE,
               lambda: f"the old value to go\n{guard.log()}")
    assert guard.redis().get("item:7") == b"new"


def test_a_purge_outlives_the_node_that_sent_it_on(follow, items, cluster, database):
    """The key's slot is on its way, and the node that it goes to hangs; the one that it comes from is
    no primary any more before that has answered."""
    guard = follow(items(), cache=cluster.url, cache_timeout="20s")
    assert guard.redis().get("item:7") == b"payload 7"
    cluster.wait_for_key("item:7")
    slot = slot_of("item:7")
    first = cluster.owners()[slot]
    heir = cluster.follower_of(first)
    other = next(node for node in cluster.primaries if node is not first)
    cluster.begin_move(slot, other)
    cluster.move_keys(slot, first, other)
    other.pause()
    database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
    wait_until(lambda: "errorstat_ASK" in first.client().info("errorstats"), PATIENCE,
               "the purge to come to the node before")
    heir.ask("CLUSTER", "FAILOVER", "TAKEOVER")
    wait_until(lambda: not any(each["address"] == first.address for each in nodes(guard)), PATIENCE,
               lambda: f"the node to go\n{nodes(guard)}")
    assert guard.status()["stream"]["purges_owed"]
    other.resume()
    wait_until(lambda: guard.status()["stream"]["purges_owed"] == 0, PATIENCE, guard.status)
    assert guard.redis().get("item:7") == b"new"


def test_a_primary_that_stands_still_holds_up_its_own_keys_alone(guard, cluster, database):
    first = cluster.node_of("item:7")
    other = next(n for n in range(1, 100) if cluster.node_of(f"item:{n}") is not first)
    first.pause()
    try:
        client = guard.redis(socket_timeout=PATIENCE)
        assert client.get(f"item:{other}") == b"payload %d" % other
        assert client.get("item:7") == b"payload 7"  # from the database
        database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
    finally:
        first.resume()
    cluster.settle()
    wait_until(lambda: guard.redis().get("item:7") == b"new", PATIENCE, "the new value")


def sets_all(guard):
    with contextlib.suppress(redis.RedisError):
        return guard.redis().mset({f"plain:{n}": n for n in range(100)})
    return False


def test_a_planned_failover_costs_nothing_but_an_error_to_writers(guard, cluster):
    first = cluster.node_of("item:7")
    heir = cluster.follower_of(first)
    reader = Reader(guard)
    run_all([reader])
    try:
        cluster.hand_over(heir)
        wait_promoted(cluster, heir)
        wait_until(lambda: knows(guard, heir) and not knows(guard, first), PATIENCE,
                   lambda: f"{nodes(guard)}")
    finally:
        end_all([reader])
    assert reader.lookups and not reader.wrong and not reader.errors
    wait_until(lambda: sets_all(guard), PATIENCE, guard.log)  # each worker has a map of its own


class Setter(threading.Thread):
    """Sets one key again and again."""

    def __init__(self, guard, name):
        super().__init__()
        self.client, self.name = guard.redis(socket_timeout=PATIENCE), name
        self.ended = threading.Event()
        self.done = []

    def run(self):
        while not self.ended.is_set():
            with contextlib.suppress(redis.RedisError):
                self.client.set(self.name, "x")
                self.done.append(time.monotonic())
            self.ended.wait(0.005)


@pytest.mark.parametrize("how", ["planned", "killed", "paused"])
def test_within_a_second_of_the_new_primary_its_keys_are_as_before(follow, items, cluster, how):
    """Prints how long it took; what is asserted is generous, for the machine may be loaded."""
    guard = follow(items(), cache=cluster.url, cache_timeout="500ms")
    first = cluster.node_of("plain")
    heir = cluster.follower_of(first)
    names = [name for name in (f"plain:{n}" for n in range(100)) if cluster.node_of(name) is first]
    setters = [Setter(guard, name) for name in names[:4]]
    run_all(setters)
    try:
        wait_until(lambda: all(setter.done for setter in setters), PATIENCE, guard.log)
        if how == "planned":
            cluster.hand_over(heir)
        else:
            getattr(first, {"killed": "kill", "paused": "pause"}[how])()
        wait_until(lambda: heir.client().info("replication")["role"] == "master", 3 * PATIENCE,
                   guard.log)
        took = time.monotonic()
        wait_until(lambda: all(setter.done[-1] > took for setter in setters), PATIENCE, guard.log)
        wait_until(lambda: knows(guard, heir), PATIENCE, lambda: f"{nodes(guard)}")
        known = time.monotonic()
    finally:
        end_all(setters)
    resumed = max(min(at for at in setter.done if at > took) for setter in setters)
    print(f"\n{how}: writes {resumed - took:.3f} s after the replica was a primary; "
          f"the keeper's connection within {known - took:.3f} s")
    assert resumed - took < 5


def test_a_failover_is_no_news_once_it_is_over(guard, cluster):
    """Its clients' transactions come and go over connections of their own meanwhile."""
    client = guard.redis()
    keys = [f"{{{n}}}" for n in range(30)]
    for key in keys:
        client.set(key, "1")
    node = cluster.node_of(keys[0])
    cluster.hand_over(cluster.follower_of(node))
    wait_until(lambda: cluster.node_of(keys[0]) is not node, 2 * PATIENCE, "another primary")
    cluster.settle()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with contextlib.suppress(redis.RedisError):  # the guard may not know of it yet
            for key in keys:
                guard.redis().pipeline(transaction=True).set(key, "2").get(key).execute()

    def told():
        """By each worker, in order."""
        lines = [line for line in guard.log().splitlines() if ": cache connection" in line]
        return [[line for line in lines if f"worker {n}:" in line] for n in range(2)]

    wait_until(lambda: all(lines[-1].endswith("is back") for lines in told() if lines), PATIENCE,
               guard.log)
    assert all(len(lines) <= 2 for lines in told()), told()


def test_who_waits_at_a_primary_that_hangs_hears_that_another_has_the_key(guard, cluster):
    said = []
    first = cluster.node_of("queue")

    def wait():
        try:
            said.append(guard.redis().blpop("queue", 0))
        except redis.RedisError as error:
            said.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    wait_until(lambda: first.client().info("clients")["blocked_clients"], PATIENCE, guard.log)
    heir = cluster.follower_of(first)
    first.pause()
    try:
        heir.ask("CLUSTER", "FAILOVER", "TAKEOVER")
        thread.join(PATIENCE)
        assert said and isinstance(said[0], redis.ResponseError), said
    finally:
        first.resume()
    wait_promoted(cluster, heir)
