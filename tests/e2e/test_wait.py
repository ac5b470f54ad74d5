"""WAIT: for what this client has written, whichever connection that went over, and in nobody's way."""
import pytest
import redis

from clusters import Cluster
from following import paused
from servers import PATIENCE, Redis
from waiting import wait_until
from wire import command

KEYS = [f"plain:{n}" for n in range(20)]


class Replica(Redis):
    def __init__(self, primary):
        super().__init__()
        self.primary = primary

    def command(self):
        return super().command() + ["--replicaof", "127.0.0.1", str(self.primary.port)]


class Server:
    """One primary, as a fleet of one."""

    def __init__(self):
        self.nodes = self.primaries = [Redis().start()]
        self.nodes.append(Replica(self.primaries[0]).start())
        self.primaries = self.nodes[:1]
        self.url = self.primaries[0].url
        wait_until(lambda: self.primaries[0].client().info("replication").get("slave0", {}).get(
            "state") == "online", PATIENCE, "the replica")

    def follower_of(self, _node):
        return self.nodes[1]

    def remove(self):
        for node in self.nodes:
            node.remove()


@pytest.fixture(scope="module", params=["one server", "cluster"])
def fleet(request):
    made = Cluster(primaries=2, replicas=1).start() \
        if request.param == "cluster" else Server()
    yield made
    made.remove()


@pytest.fixture
def guard(start_guard, items, fleet):
    return start_guard(items(), cache=fleet.url)


def write(client):
    for key in KEYS:
        client.set(key, "x")


def own_connections(guard):
    return guard.metric("nestguard_own_connections")


@pytest.mark.parametrize("word, reply", [("TIMEOUT", b":1\r\n"), ("ERROR", b"-UNBLOCKED ")])
def test_who_waits_is_unblocked_by_its_id(guard, word, reply):
    with guard.wire() as admin, guard.wire() as waiting:
        number = int(waiting.ask("CLIENT", "ID")[1:])
        assert admin.ask("CLIENT", "UNBLOCK", number, word) == b":0\r\n"
        waiting.send(command("WAIT", 7, 0))
        wait_until(lambda: admin.ask("CLIENT", "UNBLOCK", number, word) == b":1\r\n", PATIENCE, "it")
        assert waiting.read_reply().startswith(reply)
        assert waiting.ask("SET", "plain", "x") == b"+OK\r\n"
    wait_until(lambda: own_connections(guard) == 0, PATIENCE, guard.log)


def test_it_waits_for_the_replicas_of_all_primaries(guard):
    client = guard.redis()
    write(client)
    assert client.wait(1, 10000) == 1
    assert client.wait(2, 500) == 1
    wait_until(lambda: own_connections(guard) == 0, PATIENCE, guard.log)


def test_what_a_replica_lacks_is_not_said_to_be_there(guard, fleet):
    """Of any of them. What was written went over connections that others share."""
    client, other = guard.redis(), guard.redis()
    for primary in fleet.primaries:
        with paused(fleet.follower_of(primary).process.pid):
            write(client)
            assert client.wait(1, 200) == 0
            assert client.wait(0, 0) == 0
            wire = guard.wire()
            wire.send(b"".join(command("SET", key, "y") for key in KEYS) + command("WAIT", 1, 0))
            assert wire.read_replies(len(KEYS)) == b"+OK\r\n" * len(KEYS)
            for key in KEYS:  # nobody else waits
                assert other.get(key) == b"y"
        assert wire.read_reply() == b":1\r\n"
        wire.close()


def test_one_that_has_begun_something_waits_for_what_it_wrote_before(guard, fleet):
    client = guard.redis()
    with paused(fleet.follower_of(fleet.primaries[0]).process.pid):
        write(client)
        with client.pipeline() as own:
            own.watch(KEYS[0])
            assert own.immediate_execute_command("WAIT", 1, 200) == 0
    assert client.wait(1, 10000) == 1


def test_a_primary_that_hangs_ends_it_with_an_error(start_guard, items, fleet):
    guard = start_guard(items(), cache=fleet.url, cache_timeout="1s")
    primary = fleet.primaries[-1]
    with paused(fleet.follower_of(primary).process.pid):
        wire = guard.wire()
        wire.send(command("WAIT", 5, 0))
        wait_until(lambda: int(primary.client().info("clients")["blocked_clients"]), PATIENCE,
                   guard.log)
        with paused(primary.process.pid):
            assert wire.read_reply().startswith(b"-NESTGUARD ")
    wait_until(lambda: own_connections(guard) == 0, PATIENCE, guard.log)
    wait_until(lambda: waits_for_one(guard), PATIENCE, guard.log)


def waits_for_one(guard):
    try:
        return guard.redis().wait(1, 1000) == 1
    except redis.ResponseError:
        return False


def test_a_client_that_leaves_waits_for_no_element_either(guard, fleet):
    wire = guard.wire()
    wire.send(command("SET", KEYS[0], "x") + command("BLPOP", "list", 0))
    wait_until(lambda: own_connections(guard) == 1, PATIENCE, guard.log)
    wire.close()
    wait_until(lambda: own_connections(guard) == 0, PATIENCE, guard.log)


def test_what_is_sent_behind_it_is_served_behind_it(guard, fleet):
    with paused(fleet.follower_of(fleet.primaries[0]).process.pid):
        wire = guard.wire()
        behind = b"".join(command("SET", KEYS[n % 20], "x" * 1000) for n in range(500))
        wire.send(command("SET", KEYS[0], "x") + command("WAIT", 5, 1500))
        wait_until(lambda: own_connections(guard) == len(fleet.primaries), PATIENCE, guard.log)
        wire.send(behind)
        assert wire.read_reply() == b"+OK\r\n"
        assert wire.read_reply() in (b":0\r\n", b":1\r\n")
        assert wire.read_replies(500) == b"+OK\r\n" * 500


def test_a_client_that_leaves_waits_no_more(guard, fleet):
    with paused(fleet.follower_of(fleet.primaries[0]).process.pid):
        wire = guard.wire()
        wire.send(command("SET", KEYS[0], "x") * 50 + command("SET", KEYS[1], "x") +
                  command("WAIT", 5, 0))
        wire.read_replies(51)
        wait_until(lambda: own_connections(guard) == len(fleet.primaries), PATIENCE, guard.log)
        wire.close()
        wait_until(lambda: own_connections(guard) == 0, PATIENCE, guard.log)


def test_what_is_wrong_with_it_the_cache_says(guard, fleet):
    client = guard.redis()
    for words in (["WAIT", "x", "0"], ["WAIT", "0", "x"], ["WAIT", "0", "-1"], ["WAIT"], ["WAIT", "1"],
                  ["WAIT", "1", "2", "3"], ["WAITAOF", "0", "0", "0"]):
        direct = answer(fleet.primaries[0].client(), words)
        assert answer(client, words) == direct, words
    assert client.wait(1, 10000) == 1


def test_a_user_who_may_not_ask_info_is_told_so(start_guard, items, fleet):
    """That is how the guard learns how far a primary is. (It does not start without.)"""
    def allow(*rights):
        for primary in fleet.primaries:
            primary.client().execute_command("ACL", "SETUSER", "blind", *rights)

    allow(*"on >pass ~* &* +@all".split())
    guard = start_guard(items(), cache=fleet.url.replace("://", "://blind:pass@"))
    allow("-info")
    client = guard.redis(single_connection_client=True)
    client.set(KEYS[0], "x")
    for _ in range(2):
        with pytest.raises(redis.ResponseError, match="info"):
            client.wait(1, 10000)
        assert client.get(KEYS[0]) == b"x"
    wait_until(lambda: own_connections(guard) == 0, PATIENCE, guard.log)


def answer(client, words):
    try:
        return client.execute_command(*words)
    except redis.ResponseError as error:
        return str(error)


def test_a_primary_that_goes_ends_it_with_an_error(guard, fleet):
    primary = fleet.primaries[-1]
    follower = fleet.follower_of(primary)
    with paused(follower.process.pid):
        wire = guard.wire()
        wire.send(command("WAIT", 5, 0))
        wait_until(lambda: int(primary.client().info("clients")["blocked_clients"]), PATIENCE, guard.log)
        primary.client().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert wire.read_reply().startswith(b"-NESTGUARD ")
    wait_until(lambda: own_connections(guard) == 0, PATIENCE, guard.log)
    assert guard.redis().wait(1, 10000) == 1
