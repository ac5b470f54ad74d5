"""Commands that the guard's table does not name, over a cluster: Redis' own under other names, which
stand for those of modules and of versions to come."""
import pytest

from clusters import Cluster, slot_of
from following import follow  # a fixture
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

RENAMED = {"LRANGE": "MOD.RANGE", "RPUSH": "MOD.PUSH", "ECHO": "MOD.ECHO", "SUNION": "MOD.UNION",
           "ZUNION": "MOD.SORTED", "XINFO": "MOD.INFO", "BLPOP": "MOD.POP"}
CROSSSLOT = b"-CROSSSLOT Keys in request don't hash to the same slot\r\n"


@pytest.fixture(scope="module")
def cluster():
    settings = [word for old, new in RENAMED.items() for word in ("--rename-command", old, new)]
    started = Cluster(replicas=0, settings=settings).start()
    yield started
    started.remove()


@pytest.fixture
def guard(follow, items, cluster):
    for node in cluster.primaries:
        node.client().flushall()
        node.client().config_resetstat()
    return follow(items(), cache=cluster.url, workers=1)


def one_of_each(cluster, prefix="k"):
    """A key of each node."""
    owners = cluster.owners()
    keys = {owners[slot_of(f"{prefix}{n}")].port: f"{prefix}{n}" for n in range(100)}
    assert len(keys) == len(cluster.primaries)
    return list(keys.values())


def asked(cluster, what):
    return sum(node.calls(f"command|{what}") for node in cluster.primaries)


def test_one_with_a_key_goes_to_its_node(guard, cluster):
    wire = guard.wire()
    for key in one_of_each(cluster) * 3:
        assert wire.ask("MOD.PUSH", key, "x") == b":1\r\n"
        assert wire.ask("mod.range", key, 0, -1) == b"*1\r\n" + bulk("x")
        assert cluster.node_of(key).client().execute_command("LLEN", key) == 1
        assert wire.ask("DEL", key) == b":1\r\n"
    assert asked(cluster, "info") == 2


def test_one_without_keys_goes_to_any(guard, cluster):
    wire = guard.wire()
    for n in range(5):
        assert wire.ask("MOD.ECHO", n) == bulk(n)
    assert asked(cluster, "info") == 1


def test_one_with_keys_of_several_slots_is_refused_in_the_nodes_words(guard, cluster):
    wire = guard.wire()
    assert wire.ask("MOD.UNION", *one_of_each(cluster)) == CROSSSLOT
    assert wire.ask("MOD.UNION", "{a}1", "{a}2") == b"*0\r\n"


def test_keys_that_only_the_cache_finds_are_asked_of_it(guard, cluster):
    wire = guard.wire()
    for key in one_of_each(cluster):
        assert wire.ask("ZADD", key, 1, "x") == b":1\r\n"
        assert wire.ask("MOD.SORTED", 1, key) == b"*1\r\n" + bulk("x")
        assert wire.ask("XADD", "s" + key, "*", "a", "b").startswith(b"$")
        assert wire.ask("MOD.INFO", "GROUPS", "s" + key) == b"*0\r\n"
    assert asked(cluster, "info") == 2 and asked(cluster, "getkeys") == 6
    assert wire.ask("MOD.SORTED", 2, *one_of_each(cluster)[:2]) == CROSSSLOT
    assert wire.ask("MOD.SORTED", "x", "y").startswith(b"-ERR")
    assert wire.ask("MOD.SORTED").startswith(b"-ERR wrong number of arguments")
    assert wire.ask("MOD.INFO", "HELP").startswith(b"*")


def test_one_that_the_cache_does_not_know_either_gets_its_words(guard, cluster):
    wire = guard.wire()
    said = b"-ERR unknown command 'NO.SUCH', with args beginning with: 'a' 'b' \r\n"
    assert wire.ask("NO.SUCH", "a", "b") == said
    assert wire.ask("NO.SUCH", "a", "b") == said
    assert wire.ask("N" * 100).startswith(b"-ERR unknown command 'NNN")
    wire.send(b"NO.SUCH a b\r\nMOD.ECHO plain\r\n")
    assert wire.read_reply() == said and wire.read_reply() == bulk("plain")


def test_one_typed_with_quotes_is_sent_when_it_is_known(guard, cluster):
    wire = guard.wire()
    wire.send(b'MOD.ECHO "a b"\r\n')
    assert b"without quotes" in wire.read_reply()
    wire.send(b'MOD.ECHO a\r\nMOD.ECHO "a b"\r\n')
    assert wire.read_reply() == bulk("a") and wire.read_reply() == bulk("a b")


def test_it_speaks_resp3(guard, cluster):
    wire = guard.wire()
    assert wire.ask("HELLO", "3").startswith(b"%")
    for key in one_of_each(cluster):
        assert wire.ask("MOD.PUSH", key, "x") == b":1\r\n"
        assert wire.ask("MOD.SORTED", 1, "no" + key) == b"*0\r\n"
        assert wire.ask("MOD.UNION", "no" + key) == b"~0\r\n"


def test_replies_come_in_the_order_of_commands(guard, cluster):
    """Each sees what those before it have done, whichever connection that went over."""
    keys, wire = one_of_each(cluster), guard.wire()
    sent, wanted = [], []
    for n in range(1, 6):
        for key in keys:
            sent += [("SET", "plain" + key, n), ("MOD.PUSH", key, n), ("LLEN", key),
                     ("MOD.SORTED", 1, "no" + key), ("MULTI",), ("MOD.RANGE", key, -1, -1),
                     ("EXEC",), ("GET", "plain" + key), ("MOD.ECHO", n), ("LLEN", key)]
            wanted += [b"+OK\r\n", b":%d\r\n" % n, b":%d\r\n" % n, b"*0\r\n", b"+OK\r\n",
                       b"+QUEUED\r\n", b"*1\r\n*1\r\n" + bulk(n), bulk(n), bulk(n), b":%d\r\n" % n]
    wire.send(b"".join(command(*words) for words in sent))
    assert [wire.read_reply() for _ in sent] == wanted


def test_one_that_blocks_waits_on_its_keys_node(guard, cluster):
    for key in one_of_each(cluster):
        wire, node = guard.wire(), cluster.node_of(key)
        wire.send(command("MOD.POP", key, 0) + command("MOD.ECHO", "behind"))
        wait_until(lambda: node.client().info("clients")["blocked_clients"], PATIENCE,
                   "the client to wait")
        assert guard.wire().ask("LPUSH", key, "x") == b":1\r\n"
        assert wire.read_reply() == b"*2\r\n" + bulk(key) + bulk("x")
        assert wire.read_reply() == bulk("behind")


def test_one_that_blocks_outlasts_the_caches_timeout(follow, items, cluster):
    guard = follow(items(), cache=cluster.url, cache_timeout="100ms")
    for key in one_of_each(cluster):
        assert guard.wire().ask("MOD.POP", key, 1) == b"*-1\r\n"


def test_who_watches_or_tracks_has_it_on_that_connection(guard, cluster):
    one, other, *_ = one_of_each(cluster)
    wire, writer = guard.wire(), guard.wire()
    for key in (one, other):
        assert wire.ask("WATCH", key) == b"+OK\r\n"
        assert wire.ask("MOD.PUSH", key, "x") == b":1\r\n"
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask("MOD.PUSH", key, "x") == b"+QUEUED\r\n"
        assert wire.ask("EXEC") == b"*-1\r\n"
    assert wire.ask("HELLO", "3").startswith(b"%")
    assert wire.ask("CLIENT", "TRACKING", "ON") == b"+OK\r\n"
    for key in (one, other, one):
        assert wire.ask("MOD.RANGE", key, 0, 0) == b"*1\r\n" + bulk("x")
        assert wire.ask("MOD.ECHO", key) == bulk(key)
        assert writer.ask("MOD.PUSH", key, "x").startswith(b":")
        assert wire.read_reply() == b">2\r\n" + bulk("invalidate") + b"*1\r\n" + bulk(key)


def test_a_slot_that_has_moved_is_followed(guard, cluster):
    wire, slot = guard.wire(), slot_of("moving")
    assert wire.ask("MOD.PUSH", "moving", "x") == b":1\r\n"
    to = next(node for node in cluster.primaries if node is not cluster.owners()[slot])
    giver = cluster.move(slot, to)
    try:
        reply = wire.ask("MOD.RANGE", "moving", 0, -1)
        while reply.startswith(b"-TRYAGAIN"):
            reply = wire.ask("MOD.RANGE", "moving", 0, -1)
        assert reply == b"*1\r\n" + bulk("x")
    finally:
        cluster.move(slot, giver)


def test_a_transaction_has_it_on_the_node_of_its_key(guard, cluster):
    one, other, *_ = one_of_each(cluster)
    wire = guard.wire()
    for key in (one, other):
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask("MOD.PUSH", key, "x") == b"+QUEUED\r\n"
        assert wire.ask("EXEC") == b"*1\r\n:1\r\n"
    assert wire.ask("MULTI") == b"+OK\r\n"
    assert wire.ask("MOD.PUSH", one, "x") == b"+QUEUED\r\n"
    assert wire.ask("MOD.PUSH", other, "x") == CROSSSLOT
    assert wire.ask("EXEC").startswith(b"-EXECABORT")
    assert wire.ask("MULTI") == b"+OK\r\n"
    assert wire.ask("NO.SUCH", "x").startswith(b"-ERR unknown command")
    assert wire.ask("EXEC").startswith(b"-EXECABORT")


def test_who_may_not_ask_is_told_so(follow, items, cluster):
    for node in cluster.primaries:
        node.ask("ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-command|info",
                 "-command|getkeys")
    guard = follow(items(), cache=cluster.url.replace("//", "//mute:secret@"))
    wire = guard.wire()
    for _ in range(2):
        reply = wire.ask("MOD.ECHO", "x")
        assert reply.startswith(b"-NESTGUARD cache error") and b"NOPERM" in reply
    assert wire.ask("MULTI") == b"+OK\r\n"
    assert wire.ask("MOD.ECHO", "x").startswith(b"-NESTGUARD cache error")
    assert wire.ask("EXEC").startswith(b"-EXECABORT")
    for node in cluster.primaries:
        node.ask("ACL", "SETUSER", "mute", "+command|info")
    assert wire.ask("MOD.ECHO", "x") == bulk("x")
    assert b"NOPERM" in wire.ask("MOD.SORTED", 1, "x")
