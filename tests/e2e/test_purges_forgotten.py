"""A server of the cache that has forgotten deletions, and that workers reach before the keeper does: not
once does a lookup of a row get the old value."""
import pytest
import redis

from beside import redis_beside
from clusters import Cluster
from following import fill, follow, wait_followed, wait_purged
from gate import Fronted
from sentinels import Fleet
from gated import gate, other  # fixtures
from servers import PATIENCE
from waiting import wait_until
from wire import command

# In the keeper's greeting, and in no worker's that reads from no replica.
KEEPERS = b"\r\nreplication\r\n"
PLAIN = "plain"


@pytest.fixture
def guard(follow, items, gate):
    return follow(items(), cache=f"redis://127.0.0.1:{gate.port}/0", cache_timeout="60s")


def serves(guard):
    """Each connection to the cache that clients share."""
    try:
        return all(guard.redis().get(PLAIN) == b"stays" for _ in range(16))
    except redis.RedisError:
        return False


def change(guard, database, cache):
    database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
    wait_purged(cache, "item:7")
    wait_followed(database)
    wait_until(lambda: guard.status()["stream"]["purges_owed"] == 0, PATIENCE, guard.status)


def restart_with_older_snapshot(guard, database, other, gate):
    fill(guard, other, "item:7")
    restart_as_it_is(guard, database, other, gate)
    assert other.client().get("item:7") == b"payload 7"


def restart_as_it_is(guard, database, other, gate):
    """Workers are connected to it again, and the keeper is not; it has forgotten a deletion."""
    other.client().set(PLAIN, "stays")
    other.client().save()
    change(guard, database, other)
    gate.hold_requests(KEEPERS)
    other.kill()
    other.start()
    gate.wait_held()
    wait_until(lambda: serves(guard), PATIENCE, guard.log)


TELLING = [("GET", "item:7"), ("MGET", PLAIN, "item:7"), ("STRLEN", "item:7"), ("GETDEL", "item:7"),
           ("SET", "item:7", "x", "GET"), ("APPEND", "item:7", "x"), ("COPY", "item:7", "copy"),
           ("EVAL", "return redis.call('GET', KEYS[1])", 1, "item:7")]

OTHERS = [words.split() for words in (
    "INCRBYFLOAT item:7 1", "BITFIELD item:7 GET u8 0", "BITFIELD_RO item:7 GET u8 0",
    "HGETDEL item:7 FIELDS 1 payload", "HGETEX item:7 FIELDS 1 payload", "RENAME item:7 copy",
    "LCS item:7 plain", "OBJECT ENCODING item:7", "EVAL_RO return{KEYS[2]} 2 plain item:7",
    "NOSUCHCOMMAND x item:7")]


def must_be_given_up(wire, queued=True):
    """Until the PING behind it."""
    if queued:
        assert wire.read_replies(3) == b"+OK\r\n" + b"+QUEUED\r\n" * 2
    reply = wire.read_reply()
    assert reply.startswith(b"-NESTGUARD cache started anew") and b"nothing of it was done" in reply
    assert wire.read_reply() == b"+PONG\r\n"


def hits(guard):
    return guard.counter("nestguard_cache_hits_total")


def wait_believed(guard):
    """Found in the cache again, over any connection."""
    def is_believed():
        before = hits(guard)
        assert all(guard.redis().get("item:7") == b"changed" for _ in range(16))
        return hits(guard) == before + 16

    wait_until(is_believed, PATIENCE, guard.log)


class TestOneServer:
    def test_it_is_not_asked_for_rows_before_it_is_swept(self, guard, database, other, gate):
        restart_with_older_snapshot(guard, database, other, gate)
        before = hits(guard)
        for _ in range(16):
            client = guard.redis()
            assert client.get("item:7") == b"changed"
            assert client.mget("item:7", "item:8") == [b"changed", b"payload 8"]
            assert client.exists("item:7", PLAIN) == 2
            with pytest.raises(redis.ResponseError, match="NESTGUARD cache started anew"):
                client.strlen("item:7")
            for words in (["GETDEL"], ["GETSET", "x"], ["SET", "x", "GET"], ["SET", "x", "EX", 9, "get"]):
                with pytest.raises(redis.ResponseError, match="NESTGUARD cache started anew"):
                    client.execute_command(words[0], "item:7", *words[1:])
            assert client.get(PLAIN) == b"stays" and client.getset(PLAIN, "stays") == b"stays"
            assert client.set("item:9", "x")
        assert hits(guard) == before
        assert other.client().mget("item:7", "item:9") == [b"payload 7", b"x"], "nothing of it is sent"
        gate.release()
        wait_purged(other, "item:7")
        wait_believed(guard)
        assert guard.redis().strlen("item:7") == len("changed")

    def test_nor_is_it_by_any_other_command_that_tells_of_them(self, guard, database, other, gate):
        restart_with_older_snapshot(guard, database, other, gate)
        for words in TELLING[3:] + OTHERS:
            for _ in range(4):
                with pytest.raises(redis.ResponseError, match="NESTGUARD cache started anew"):
                    guard.redis().execute_command(*words)
                    pytest.fail(f"{words} was answered")
        assert other.client().get("item:7") == b"payload 7", "nothing of it is sent"
        assert not other.client().exists("copy")
        client = guard.redis()
        assert client.eval("return redis.call('GET', KEYS[1])", 1, PLAIN) == b"stays"
        assert client.expire("item:7", 100) and client.publish("item:7", "item:7") == 0
        assert client.object("encoding", PLAIN) == b"embstr"

    def test_a_transaction_that_reads_them_is_given_up(self, guard, database, other, gate):
        restart_with_older_snapshot(guard, database, other, gate)
        for words in TELLING:
            sent = [("MULTI",), ("SET", PLAIN, "done"), words, ("EXEC",), ("PING",)]
            with guard.wire() as wire:
                wire.send(b"".join(command(*each) for each in sent))
                must_be_given_up(wire)
                for each in sent[:3]:
                    assert not wire.ask(*each).startswith(b"-")
                wire.send(command("EXEC") + command("PING"))
                must_be_given_up(wire, queued=False)
                assert wire.ask("MULTI") == b"+OK\r\n", "and what reads none of them is not"
                for each in (("SET", PLAIN, "stays"), ("SET", "item:9", "x"), ("GET", PLAIN)):
                    assert wire.ask(*each) == b"+QUEUED\r\n"
                assert wire.ask("EXEC") == b"*3\r\n+OK\r\n+OK\r\n$5\r\nstays\r\n"
        gate.release()
        wait_purged(other, "item:7")
        wait_believed(guard)
        pipeline = guard.redis().pipeline(transaction=True)
        assert pipeline.set("item:7", "x").get("item:7").execute() == [True, b"x"]

    def test_nor_is_one_behind_what_is_under_way(self, guard, database, other, gate):
        """It is written when that is answered, and doubted only by then."""
        restart_with_older_snapshot(guard, database, other, gate)
        with guard.wire() as wire:
            with database.locked():
                wire.send(command("GET", "item:8") + b"".join(
                    command(*each) for each in [("MULTI",), ("SET", PLAIN, "done"), TELLING[0], ("EXEC",),
                                                ("PING",)]))
                wait_until(lambda: guard.total("nestguard_loads_in_flight"), PATIENCE, guard.metrics)
            assert wire.read_reply() == b"$9\r\npayload 8\r\n"
            must_be_given_up(wire)
        assert other.client().get(PLAIN) == b"stays"

    def test_nor_is_it_for_rows_that_are_hashes(self, follow, items, database, other, gate):
        guard = follow(items(value="json", fill="hash"),
                       cache=f"redis://127.0.0.1:{gate.port}/0", cache_timeout="60s")
        guard.redis().hgetall("item:7")
        wait_until(lambda: other.client().exists("item:7"), PATIENCE, "the hash")
        restart_as_it_is(guard, database, other, gate)
        assert other.client().hget("item:7", "payload") == b"payload 7"
        before = hits(guard)
        for _ in range(16):
            client = guard.redis()
            assert client.hget("item:7", "payload") == b"changed"
            assert client.hmget("item:7", "payload", "none") == [b"changed", None]
            assert client.hgetall("item:7") == {b"id": b"7", b"payload": b"changed"}
            assert client.hstrlen("item:7", "payload") == len("changed")
        assert hits(guard) == before
        gate.release()
        wait_purged(other, "item:7")

    def test_what_waited_for_the_connection_is_not_asked_either(self, guard, database, other, gate):
        """Closed while it was idle, a connection is opened again, and meanwhile requests wait."""
        fill(guard, other, "item:7")
        with redis_beside() as older:
            older.client().mset({"item:7": "payload 7", PLAIN: "stays"})
            change(guard, database, other)
            gate.server_port = older.port
            gate.hold_answers(b"\nrun_id:")
            other.client().client_kill_filter(_type="normal", skipme=True)
            gate.wait_held()
            looked_up = guard.counter("nestguard_lookups_total")
            clients = [guard.wire() for _ in range(8)]
            for client in clients:
                client.send(command("GET", "item:7") + command("STRLEN", "item:7"))
            wait_until(lambda: guard.counter("nestguard_lookups_total") == looked_up + 16, PATIENCE,
                       guard.metrics)
            gate.release()
            for client in clients:
                assert client.read_replies(1) == b"$7\r\nchanged\r\n"
                assert client.read_replies(1).startswith(b"-NESTGUARD cache ")
                client.close()
            wait_until(lambda: serves(guard), PATIENCE, guard.log)

    def test_a_server_that_was_only_out_of_reach_is_believed_at_once(
            self, guard, other, gate):
        fill(guard, other, "item:7")
        other.client().set(PLAIN, "stays")
        gate.hold_requests(KEEPERS)
        other.client().client_kill_filter(_type="normal", skipme=True)
        gate.wait_held()
        wait_until(lambda: serves(guard), PATIENCE, guard.log)
        before = hits(guard)
        for _ in range(16):
            assert guard.redis().get("item:7") == b"payload 7"
        assert hits(guard) == before + 16


def test_a_replica_that_missed_a_deletion_is_not_asked_when_it_is_promoted(follow, items, database):
    fleet = Fleet(replicas=1)
    [replica] = fleet.servers[1:]
    with Fronted(replica, "replica-announce-port") as gate:
        fleet.start()
        guard = follow(items(), cache=fleet.url, cache_timeout="60s")
        fill(guard, fleet.first, "item:7")
        guard.redis().set(PLAIN, "stays")
        change(guard, database, fleet.first)
        wait_until(lambda: replica.client().exists(PLAIN), PATIENCE, "the replica")
        replica.client().config_set("replica-read-only", "no")
        replica.client().set("item:7", "payload 7")
        gate.hold_requests(KEEPERS)
        fleet.first.kill()
        gate.wait_held()
        wait_until(lambda: serves(guard), 2 * PATIENCE, guard.log)
        assert replica.client().get("item:7") == b"payload 7"
        for _ in range(16):
            assert guard.redis().get("item:7") == b"changed"
        gate.release()
        wait_purged(replica, "item:7")
        wait_believed(guard)
        assert guard.stop() == 0
    fleet.remove()


def test_a_node_of_a_cluster_that_starts_from_an_older_snapshot_is_not_asked(
        follow, items, database):
    cluster = Cluster(primaries=1, replicas=0)
    [node] = cluster.nodes
    cluster.start()
    with Fronted(node, "cluster-announce-port") as gate:
        node.settings = ("--cluster-announce-port", str(gate.port))
        guard = follow(items(), cache=cluster.url, cache_timeout="60s")
        restart_with_older_snapshot(guard, database, node, gate)
        for _ in range(16):
            assert guard.redis().get("item:7") == b"changed"
            assert guard.redis().mget("item:7", "item:8") == [b"changed", b"payload 8"]
            assert guard.redis().mget("item:7", PLAIN) == [b"changed", b"stays"]
        gate.release()
        wait_purged(node, "item:7")
        wait_believed(guard)
        assert guard.stop() == 0
    cluster.remove()
