"""CLIENT TRACKING with a cluster behind the guard: whoever tracks hears of what it has read, whichever
node that is on, and of everything when a node cannot have told."""
import contextlib

import pytest

from clusters import Cluster, slot_of
from following import follow  # a fixture
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

OK = b"+OK\r\n"
EVERYTHING = b">2\r\n" + bulk("invalidate") + b"_\r\n"


def told(name):
    return b">2\r\n" + bulk("invalidate") + b"*1\r\n" + bulk(name)


@pytest.fixture(scope="module")
def shared_cluster():
    started = Cluster(replicas=0).start()
    yield started
    started.remove()


@pytest.fixture
def cluster(shared_cluster):
    shared_cluster.settle()
    for node in shared_cluster.primaries:
        node.client().flushall()
    yield shared_cluster


@pytest.fixture
def guard(follow, items, cluster):
    return follow(items(), cache=cluster.url)


def name_on(cluster, node, prefix="plain"):
    owners = cluster.owners()
    return next(f"{prefix}:{n}" for n in range(10000)
                if owners[slot_of(f"{prefix}:{n}")] is node)


def one_on_each(cluster, prefix="plain"):
    return [name_on(cluster, node, prefix) for node in cluster.primaries]


def write(cluster, name, value):
    """Past the guard."""
    cluster.node_of(name).client().set(name, value)


@contextlib.contextmanager
def tracker(guard, *options, version=3):
    with guard.wire() as wire:
        if version == 3:
            wire.ask("HELLO", 3)
        assert wire.ask("CLIENT", "TRACKING", "ON", *options) == OK
        yield wire


def is_quiet(wire):
    """Everything that was to be told came before this."""
    return wire.ask("ECHO", "quiet") == bulk("quiet")


def tracked_at(cluster):
    return [node.client().info("clients")["tracking_clients"] for node in cluster.primaries]


def read_up_to(wire, last):
    got = []
    while not got or got[-1] != last:
        got.append(wire.read_reply())
    return got


class TestWhatWasRead:
    def test_is_told_of_by_each_node(self, guard, cluster):
        with tracker(guard) as wire:
            for name in one_on_each(cluster):
                assert wire.ask("GET", name) == b"_\r\n"
                write(cluster, name, "x")
                assert wire.read_reply() == told(name)
                assert wire.ask("GET", name) == bulk("x")
                assert guard.redis().set(name, "y"), "another client of the guard"
                assert wire.read_reply() == told(name)
            assert is_quiet(wire)

    def test_has_connections_only_where_it_was_read(self, guard, cluster):
        with tracker(guard) as wire:
            number = int(wire.ask("CLIENT", "ID")[1:])
            assert sum(tracked_at(cluster)) == 1, number
            for name in one_on_each(cluster):
                wire.ask("GET", name)
            assert tracked_at(cluster) == [1, 1, 1]
            assert wire.ask("CLIENT", "TRACKING", "OFF") == OK
            wait_until(lambda: tracked_at(cluster) == [0, 0, 0], PATIENCE, "no tracking")
        wait_until(lambda: guard.status()["own_connections"] == 0, PATIENCE, "none of its own")

    def test_by_one_command_of_several_nodes_is_told_of(self, guard, cluster):
        names = one_on_each(cluster)
        with tracker(guard) as wire:
            for words in (["MGET"], ["EXISTS"], ["TOUCH"]):
                wire.ask(*words, *names)
                for name in names:
                    write(cluster, name, "x")
                    assert wire.read_reply() == told(name), words
            assert is_quiet(wire)

    def test_of_one_node_does_not_keep_another_from_answering(self, guard, cluster):
        first, second, _ = one_on_each(cluster)
        value = b"x" * 20_000
        write(cluster, first, value)
        write(cluster, second, value)
        with tracker(guard) as wire:
            wire.send(command("GET", first) * 100 + command("GET", second) * 100)
            for _ in range(200):
                assert wire.read_reply() == bulk(value)

    def test_in_a_transaction_is_told_of(self, guard, cluster):
        with tracker(guard) as wire:
            for name in one_on_each(cluster):
                wire.send(command("MULTI") + command("GET", name) + command("EXEC"))
                assert wire.read_replies(3) == OK + b"+QUEUED\r\n*1\r\n_\r\n"
                write(cluster, name, "x")
                assert wire.read_reply() == told(name)

    def test_is_told_of_to_one_who_waits_elsewhere(self, guard, cluster):
        read, awaited = one_on_each(cluster)[:2]
        with tracker(guard) as wire:
            wire.ask("GET", read)
            wire.send(command("BLPOP", awaited, 0))
            wait_until(lambda: cluster.node_of(awaited).client().info("clients")["blocked_clients"],
                       PATIENCE, "a client that waits")
            write(cluster, read, "x")
            assert wire.read_reply() == told(read)
            cluster.node_of(awaited).client().rpush(awaited, "v")
            assert wire.read_reply() == b"*2\r\n" + bulk(awaited) + bulk("v")
            assert is_quiet(wire)

    def test_stays_before_the_word_that_it_has_changed(self, guard, cluster):
        names = one_on_each(cluster)
        for name in names:
            write(cluster, name, "old")
        with tracker(guard) as wire:
            for n in range(100):
                wire.send(b"".join(command("GET", name) for name in names) +
                          b"".join(command("SET", name, n) for name in names))
                got = [wire.read_reply() for _ in range(9)]
                for name in names:
                    value = bulk(n - 1 if n else "old")
                    assert got.count(told(name)) == 1
                    place = [at for at, reply in enumerate(got) if reply == value][names.index(name)]
                    assert place < got.index(told(name))

    def test_of_guarded_keys_is_refused(self, guard, cluster):
        names = one_on_each(cluster)
        with tracker(guard) as wire:
            for words in (["GET", "item:1"], ["GET", "item:101"], ["MGET", names[0], "item:1"],
                          ["EXISTS", "item:101", *names], ["STRLEN", "item:1"]):
                assert wire.ask(*words).startswith(b"-NESTGUARD tracking"), words
                assert wire.ask("MULTI") == OK
                assert wire.ask(*words).startswith(b"-NESTGUARD tracking"), words
                assert wire.ask("EXEC").startswith(b"-EXECABORT"), words
            assert wire.ask("CLIENT", "TRACKING", "OFF") == OK
            assert wire.ask("GET", "item:1") == bulk("payload 1")

    def test_is_not_told_of_in_the_old_protocol_as_with_one_redis(self, guard, cluster):
        name = one_on_each(cluster)[0]
        with tracker(guard, version=2) as wire:
            assert wire.ask("GET", name) == bulk(None)
            write(cluster, name, "x")
            assert is_quiet(wire)
            assert wire.ask("HELLO", 3).startswith(b"%")
            assert wire.read_reply() == EVERYTHING
            assert wire.ask("GET", name) == bulk("x")
            write(cluster, name, "y")
            assert wire.read_reply() == told(name)
            assert wire.ask("HELLO", 2).startswith(b"*")
            assert wire.ask("GET", name) == bulk("y")
            write(cluster, name, "z")
            assert is_quiet(wire)

    def test_is_forgotten_by_a_reset(self, guard, cluster):
        names = one_on_each(cluster)
        with tracker(guard) as wire:
            for name in names:
                wire.ask("GET", name)
            assert wire.ask("RESET") == b"+RESET\r\n"
            for name in names:
                write(cluster, name, "x")
            assert is_quiet(wire)
            wait_until(lambda: tracked_at(cluster) == [0, 0, 0], PATIENCE, "no tracking")


class TestOptions:
    def test_with_a_prefix_every_node_tells(self, guard, cluster):
        with tracker(guard, "BCAST", "PREFIX", "a:", "PREFIX", "b:") as wire:
            assert tracked_at(cluster) == [1, 1, 1], "before it is said to be on"
            for prefix in "ab":
                for name in one_on_each(cluster, prefix):
                    write(cluster, name, "x")
                    assert wire.read_reply() == told(name)
            for name in one_on_each(cluster, "c"):
                write(cluster, name, "x")
            assert is_quiet(wire)

    def test_prefixes_add_up(self, guard, cluster):
        with tracker(guard, "BCAST", "PREFIX", "a:") as wire:
            assert wire.ask("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a:x").startswith(
                b"-ERR Prefix")
            wire.send(command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "b:"))
            read_up_to(wire, OK)
            for prefix in "ab":
                for name in one_on_each(cluster, prefix):
                    write(cluster, name, "x")
                    read_up_to(wire, told(name))

    def test_only_what_was_asked_for(self, guard, cluster):
        names = one_on_each(cluster)
        with tracker(guard, "OPTIN") as wire:
            for name in names:
                wire.ask("GET", name)
                write(cluster, name, "x")
                assert is_quiet(wire)
                wire.send(command("CLIENT", "CACHING", "YES") + command("GET", name))
                assert wire.read_replies(2) == OK + bulk("x")
                write(cluster, name, "y")
                assert wire.read_reply() == told(name)
            wire.send(command("CLIENT", "CACHING", "YES") + command("MGET", *names) +
                      command("GET", "other"))
            wire.read_replies(3)
            for name in names:
                write(cluster, name, "z")
                assert wire.read_reply() == told(name)
            write(cluster, "other", "z")
            assert is_quiet(wire)
            assert wire.ask("CLIENT", "CACHING", "NO").startswith(b"-ERR CLIENT CACHING NO is only")

    def test_a_transaction_that_was_asked_for(self, guard, cluster):
        names = one_on_each(cluster)
        with tracker(guard, "OPTIN") as wire:
            for name in names:
                wire.send(command("CLIENT", "CACHING", "YES") + command("MULTI") +
                          command("GET", name) + command("EXEC"))
                assert wire.read_replies(4) == OK + OK + b"+QUEUED\r\n*1\r\n_\r\n"
                write(cluster, name, "x")
                assert wire.read_reply() == told(name)

    def test_all_but_what_was_not_asked_for(self, guard, cluster):
        with tracker(guard, "OPTOUT") as wire:
            for name in one_on_each(cluster):
                wire.send(command("CLIENT", "CACHING", "NO") + command("GET", name))
                assert wire.read_replies(2) == OK + b"_\r\n"
                write(cluster, name, "x")
                assert is_quiet(wire)
                wire.ask("GET", name)
                write(cluster, name, "y")
                assert wire.read_reply() == told(name)

    def test_not_of_its_own_writes(self, guard, cluster):
        with tracker(guard, "NOLOOP") as wire:
            for name in one_on_each(cluster):
                wire.ask("GET", name)
                assert wire.ask("SET", name, "x") == OK
                assert is_quiet(wire)
                wire.ask("GET", name)
                write(cluster, name, "y")
                assert wire.read_reply() == told(name)

    def test_what_it_is_told_of_itself(self, guard, cluster):
        with tracker(guard, "OPTIN") as wire:
            info = wire.ask("CLIENT", "TRACKINGINFO")
            assert bulk("on") in info and bulk("optin") in info
            assert wire.ask("CLIENT", "GETREDIR") == b":0\r\n"
            assert wire.ask("CLIENT", "TRACKING", "OFF") == OK
            assert bulk("off") in wire.ask("CLIENT", "TRACKINGINFO")
            assert wire.ask("CLIENT", "GETREDIR") == b":-1\r\n"

    def test_what_is_refused(self, guard, cluster):
        with guard.wire() as wire:
            number = int(wire.ask("CLIENT", "ID")[1:])
            assert wire.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number).startswith(
                b"-NESTGUARD unsupported: in a cluster CLIENT TRACKING has no REDIRECT")
            assert wire.ask("CLIENT", "TRACKING", "ON", "OPTIN", "OPTOUT").startswith(b"-ERR")
            assert wire.ask("CLIENT", "TRACKING", "PERHAPS").startswith(b"-ERR")
            assert bulk("off") in wire.ask("CLIENT", "TRACKINGINFO")
            assert wire.ask("CLIENT", "CACHING", "YES").startswith(b"-ERR CLIENT CACHING")
            wire.ask("HELLO", 3)
            wire.ask("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a:")
            assert wire.ask("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "b" * 70000).startswith(
                b"-NESTGUARD unsupported: in a cluster CLIENT TRACKING has 64 kB")

    def test_own_connections_are_limited(self, follow, items, cluster):
        guard = follow(items(), cache=cluster.url, workers=1, own_connections=2)
        names = one_on_each(cluster)
        with tracker(guard) as wire:
            got = [wire.ask("GET", name) for name in names]
            assert sum(reply.startswith(b"-NESTGUARD busy: own_connections") for reply in got) == 1
            assert wire.ask("MGET", *names).startswith(b"-NESTGUARD busy: own_connections")
            with guard.wire() as other:
                assert other.ask("CLIENT", "TRACKING", "ON", "BCAST").startswith(
                    b"-NESTGUARD busy: own_connections")
                assert other.ask("GET", names[0]) == bulk(None)


class TestNodesThatChange:
    def test_a_lost_connection_may_have_told_anything(self, guard, cluster):
        names = one_on_each(cluster)
        with tracker(guard) as wire:
            for name in names:
                wire.ask("GET", name)
            node = cluster.node_of(names[1]).client()
            for each in node.client_list():
                if "t" in each["flags"]:
                    node.client_kill_filter(_id=each["id"])
            assert wire.read_reply() == EVERYTHING
            for name in names:
                assert wire.ask("GET", name) == b"_\r\n"
                write(cluster, name, "x")
                assert wire.read_reply() == told(name)

    def test_with_bcast_it_is_made_anew_and_anything_may_have_changed(self, guard, cluster):
        names = one_on_each(cluster)
        with tracker(guard, "BCAST") as wire:
            node = cluster.node_of(names[1]).client()
            for each in node.client_list():
                if "t" in each["flags"]:
                    node.client_kill_filter(_id=each["id"])
            assert wire.read_reply() == EVERYTHING, "it is lost"
            assert wire.read_reply() == EVERYTHING, "it is there again"
            for name in names:
                write(cluster, name, "x")
                assert wire.read_reply() == told(name)

    @pytest.mark.parametrize("options", [(), ("OPTIN",), ("BCAST",)])
    def test_a_slot_that_moves_may_have_changed(self, guard, cluster, options):
        name = name_on(cluster, cluster.primaries[0], "moving")
        slot, giver = slot_of(name), cluster.primaries[0]

        def read():
            if "OPTIN" in options:
                assert wire.ask("CLIENT", "CACHING", "YES") == OK
            return wire.ask("GET", name)

        with tracker(guard, *options) as wire:
            try:
                assert read() == b"_\r\n"
                cluster.move(slot, cluster.primaries[1])
                assert wire.read_reply() == EVERYTHING, "it was nil, and nobody tells of that there"
                assert read() == b"_\r\n"
                write(cluster, name, "x")
                read_up_to(wire, told(name))
                assert b"x" in read()
            finally:
                cluster.move(slot, giver)

    def test_a_key_on_its_way_is_tracked_where_it_comes_to(self, guard, cluster):
        name = name_on(cluster, cluster.primaries[0], "asked")
        slot, to = slot_of(name), cluster.primaries[1]
        with tracker(guard) as wire:
            giver = cluster.begin_move(slot, to)
            try:
                assert wire.ask("GET", name) == b"_\r\n", "the giver asks to ask"
                there = to.client()
                pipe = there.pipeline(transaction=False)
                pipe.execute_command("ASKING")
                pipe.set(name, "x")
                pipe.execute()
                read_up_to(wire, told(name))
            finally:
                cluster.move_keys(slot, giver, to)
                cluster.end_move(slot, giver, to)
                cluster.move(slot, giver)


@contextlib.contextmanager
def moved(cluster, name):
    """The nodes know that the slot is elsewhere now, the guard does not."""
    slot, to = slot_of(name), cluster.primaries[1]
    giver = cluster.owners()[slot]
    to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", giver.id())
    giver.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id())
    for node in (to, giver):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", to.id())
    try:
        yield to
    finally:
        to.client().delete(name)
        cluster.end_move(slot, giver, to)
        cluster.move(slot, giver)


class TestWhatIsBoundToAConnection:
    @pytest.mark.parametrize("end", ["EXEC", "DISCARD"])
    def test_a_transaction_is_run_nowhere_when_its_keys_have_moved(self, guard, cluster, end):
        name = name_on(cluster, cluster.primaries[0], "moving")
        with tracker(guard) as wire:
            wire.ask("GET", name)
            with moved(cluster, name) as there:
                wire.send(command("MULTI") + command("INCR", name) * 2 + command(end))
                got = [wire.read_reply()]
                while len(got) < 4:
                    reply = wire.read_reply()
                    got += [] if reply == EVERYTHING else [reply]
                assert got[0] == OK and all(each.startswith(b"-TRYAGAIN") for each in got[1:3]), got
                assert not there.client().exists(name)

    def test_a_subscription_begins_where_its_slot_is(self, guard, cluster):
        name = name_on(cluster, cluster.primaries[0], "moving")
        with tracker(guard) as wire:
            wire.ask("GET", name)
            with moved(cluster, name):
                wire.send(command("SSUBSCRIBE", name) + command("PING"))
                got = [each for each in read_up_to(wire, b"+PONG\r\n") if each != EVERYTHING]
                assert got[:-1] == [b">3\r\n" + bulk("ssubscribe") + bulk(name) + b":1\r\n"], got


@pytest.fixture
def replicated():
    started = Cluster(replicas=1).start()
    yield started
    started.remove()


@pytest.mark.parametrize("options", [(), ("BCAST",)])
def test_a_failover_may_have_changed_anything(follow, items, replicated, options):
    guard = follow(items(), cache=replicated.url)
    names = one_on_each(replicated)
    with tracker(guard, *options) as wire:
        for name in names:
            write(replicated, name, "old")
            if options:
                assert wire.read_reply() == told(name)
            assert wire.ask("GET", name) == bulk("old")
        lost = replicated.node_of(names[0])
        heir = replicated.follower_of(lost)
        lost.kill()
        assert wire.read_reply() == EVERYTHING
        wait_until(lambda: heir.client().info("replication")["role"] == "master", 2 * PATIENCE,
                   "another primary")
        def is_read():
            wire.send(command("GET", names[0]) + command("PING"))
            return bulk("old") in read_up_to(wire, b"+PONG\r\n")
        wait_until(is_read, 2 * PATIENCE, "the value at the other node")
        def is_tracked():
            return heir.client().info("clients")["tracking_clients"]
        wait_until(is_tracked, PATIENCE, "a connection there")
        heir.client().set(names[0], "new")
        read_up_to(wire, told(names[0]))
