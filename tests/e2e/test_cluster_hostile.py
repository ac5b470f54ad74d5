"""Nodes of a cluster that lie, contradict each other, or fall silent. Whatever they do, clients get
values or errors, never nil; time, memory and log stay bounded; and when the nodes are right again so
is everything."""
import random
import time

import pytest
import redis

from clusters import SLOTS, slot_of
from played import SILENCE, LastWords, Node, array, per_second, ranges
from ports import free_port
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

WORKERS = 1
ASKERS = WORKERS + 1  # of the slot map: the keeper, too
MOST_LINES = 60
MOST_MEMORY = 700 << 20  # the sanitizers' share is most of it
NAMES = [f"plain:{n}" for n in range(50)]


@pytest.fixture
def nodes(cache):
    """Three of them; all slots are the first one's until a test has it otherwise."""
    made = [Node(cache) for _ in range(3)]
    made[0].map = ranges((0, 16383, made[0].port))
    for node in made:
        node.slots = made[0].map
    yield made
    for node in made:
        node.close()


@pytest.fixture
def guard(start_guard, items, nodes):
    started = start_guard(items(ttl=0), cache=nodes[0].url, workers=WORKERS, cache_timeout="500ms")
    wait_right(started)
    started.lines_before = lines(started)
    yield started
    assert lines(started) - started.lines_before < MOST_LINES, started.log(10**6)
    assert memory(started) < MOST_MEMORY


def lines(guard):
    return guard.log(10**6).count("\n")


def memory(guard):
    with open(f"/proc/{guard.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10


def answer(guard, *words):
    """A value, or an error's text; never nil, for all that is asked for is there."""
    client = guard.redis()
    try:
        said = client.execute_command(*words)
    except redis.RedisError as error:
        return error
    finally:
        client.close()
    assert said is not None, words
    return said


def is_right(guard):
    if not answer(guard, "SET", "plain", "x") is True and answer(guard, "SET", "plain", "x") != b"OK":
        return False
    return answer(guard, "GET", "plain") == b"x" and answer(guard, "GET", "item:7") == b"payload 7"


def wait_right(guard):
    wait_until(lambda: is_right(guard), PATIENCE, lambda: guard.log(60))


def questions(nodes):
    return sum(node.asked["CLUSTER"] for node in nodes)


def fill(client):
    for name in NAMES:
        client.set(name, name)


def set_all(nodes, slots):
    for node in nodes:
        node.slots = slots


NONSENSE = {
    "a status": b"+OK\r\n",
    "a number": b":1\r\n",
    "nil": b"*-1\r\n",
    "an empty list": b"*0\r\n",
    "an error": b"-ERR no\r\n",
    "no protocol": b"what do you want?\r\n",
    "words for ranges": array(bulk("abc"), bulk("def")),
    "slots that there are not": ranges((0, 70000, 1)),
    "a range that ends before it begins": ranges((9, 3, 6379)),
    "a port that there is not": ranges((0, 16383, 123456)),
    "a host that is none": ranges((0, 16383, 6379, "no such\r\nhost")),
    "a host without an end": ranges((0, 16383, 6379, "h" * 100000)),
    "a list without an end": b"*4000000000\r\n*3\r\n",
    "lists in lists": b"*1\r\n" * 5000,
    "more ranges than slots": ranges(*[(5, 5, 6379)] * 20000),
    "two answers": ranges((0, 16383, 6379, "127.0.0.1")) * 2 + b"+OK\r\n",
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_for_a_slot_map_changes_nothing_for_long(guard, nodes, said):
    fill(guard.redis())
    set_all(nodes, said)
    nodes[0].hang_up()
    for name in NAMES:
        got = answer(guard, "GET", name)
        assert got == name.encode() or isinstance(got, redis.RedisError), got
    assert per_second(lambda: questions(nodes), 1) < 15 * ASKERS
    set_all(nodes, nodes[0].map)
    wait_right(guard)


def test_a_slot_map_without_an_end_is_not_taken_into_memory(guard, nodes):
    before = memory(guard)
    endless = b"$500000000\r\n" + b"x" * (300 << 20)

    def answer_endlessly(words):
        return endless if words[0] == b"CLUSTER" else None

    for node in nodes:
        node.answer = answer_endlessly
    asked = questions(nodes)
    nodes[0].hang_up()
    wait_until(lambda: questions(nodes) > asked + 5, PATIENCE, guard.log)
    assert memory(guard) - before < 150 << 20
    for node in nodes:
        node.answer = lambda words: None
    wait_right(guard)


def test_without_any_map_clients_get_an_error_that_says_so(start_guard, items, nodes):
    set_all(nodes, b"+OK\r\n")
    guard = start_guard(items(ttl=0), cache=nodes[0].url, workers=WORKERS, ready=False)
    assert "slot" in str(answer(guard, "GET", "plain")), answer(guard, "GET", "plain")
    assert isinstance(answer(guard, "SET", "plain", "x"), redis.RedisError)
    set_all(nodes, nodes[0].map)
    wait_right(guard)


@pytest.mark.parametrize("word", ["MOVED", "ASK"])
def test_a_node_that_sends_keys_to_itself_is_not_asked_again(guard, nodes, word):
    """However large a command is whose bytes are kept to be sent on."""
    asked = []

    def to_itself(node):
        told = b"-%s 1 127.0.0.1:%d\r\n" % (word.encode(), node.port)

        def say(words):
            if words[0] != b"SET" or words[1].decode() not in NAMES:  # the guard writes, too
                return None
            asked.append(words[1].decode())
            return told
        return say

    for node in nodes:
        node.answer = to_itself(node)
    for size in (100, 400_000):
        for name in NAMES:
            said = str(answer(guard, "SET", name, b"x" * size))
            assert "send each other's keys around" in said, said
    assert asked == NAMES + NAMES


def test_nodes_that_send_a_key_around_are_not_followed_for_ever(guard, nodes):
    def elsewhere(port):
        return lambda words: None if words[0] != b"GET" else b"-MOVED 1 127.0.0.1:%d\r\n" % port
    nodes[0].answer, nodes[1].answer = elsewhere(nodes[1].port), elsewhere(nodes[0].port)
    for word in (b"MOVED", b"ASK"):
        for one, other in ((0, 1), (1, 0)):
            port = nodes[other].port
            nodes[one].answer = lambda words, port=port, word=word: None if words[0] != b"GET" else \
                b"-%s 1 127.0.0.1:%d\r\n" % (word, port)
        before = sum(node.asked["GET"] for node in nodes)
        for name in NAMES:
            assert "send each other's keys around" in str(answer(guard, "GET", name))
        assert sum(node.asked["GET"] for node in nodes) - before <= 9 * len(NAMES)
        assert answer(guard, "GET", "item:7") == b"payload 7"
    for node in nodes:
        node.answer = lambda words: None
    wait_right(guard)


@pytest.fixture
def beside(guard, nodes):
    """A client of a cluster whose first node has been lost since it was asked: the map has all keys there
    for good, but for those of one slot, and who has that one knows where they are now."""
    last = SLOTS - 1
    set_all(nodes, ranges((0, last - 1, nodes[0].port), (last, last, nodes[1].port)))
    kept = next(name for name in (f"k{n}" for n in range(10**6)) if slot_of(name) == last)
    fill(guard.redis())
    with guard.wire() as wire:
        def meets_both():
            wire.ask("GET", kept)
            wire.ask("GET", NAMES[0])
            return nodes[1].asked["GET"] > 0
        wait_until(meets_both, PATIENCE, "the map")
        nodes[1].answer = lambda words: (
            b"-MOVED %d 127.0.0.1:%d\r\n" % (slot_of(words[1]), nodes[2].port)
            if words[0].upper() in {b"GET", b"SET", b"MGET"} else None)
        yield wire


def test_what_is_for_a_node_that_is_lost_is_asked_of_another(beside, guard, nodes):
    nodes[0].close()
    wait_until(lambda: "worker 0: cache connection: " in guard.log(), PATIENCE, "the loss")
    said = [beside.ask("GET", name) for name in NAMES]
    assert said == [bulk(name) for name in NAMES]
    assert beside.ask("SET", "other", "x") == b"+OK\r\n"
    assert beside.ask("MGET", *NAMES[:9]) == array(*map(bulk, NAMES[:9]))


def ours(nodes):
    """The third stays what it is: were nobody left, the first's word would be that the cluster was made
    anew."""
    nodes[0].id, nodes[2].id = "a" * 40, "d" * 40
    nodes[0].answer = lambda words: None
    set_all(nodes, ranges((0, 16382, nodes[0].port, "127.0.0.1", nodes[0].id),
                          (16383, 16383, nodes[2].port, "127.0.0.1", nodes[2].id)))


def another_clusters(nodes, loading):
    """What was the first's address is a node's of another cluster, where the second has all keys."""
    moved = b"-MOVED 1 127.0.0.1:%d\r\n" % nodes[1].port

    def answer_as_another(words):
        if loading and words[0].upper() == b"CLUSTER":
            return b"-LOADING Redis is loading the dataset in memory\r\n"
        return moved if words[0].upper() in {b"GET", b"SET", b"DEL"} else None
    nodes[0].id = "b" * 40
    nodes[0].answer = answer_as_another
    set_all(nodes[:2], ranges((0, 16383, nodes[1].port, "127.0.0.1", "c" * 40)))


@pytest.mark.parametrize("loading", [False, True])
def test_a_node_whose_address_another_cluster_has_by_now_is_neither_asked_nor_followed(
        guard, nodes, loading):
    """The map is known again by the pulse alone: nothing has been lost until then."""
    guard.redis().set("plain", "x")
    ours(nodes)
    known = questions(nodes)
    wait_until(lambda: questions(nodes) >= known + 2 * ASKERS, PATIENCE, "the ids' being known")
    another_clusters(nodes, loading)
    asked = nodes[0].asked["GET"], nodes[0].asked["DEL"]
    nodes[0].hang_up()
    for _ in range(20):
        assert isinstance(answer(guard, "GET", "plain"), redis.RedisError)
        said = answer(guard, "GET", "item:7")
        assert said == b"payload 7" or isinstance(said, redis.RedisError), said
    why = "LOADING" if loading else "of another cluster"
    wait_until(lambda: why in guard.log(), PATIENCE, lambda: guard.log(60))
    wait_until(lambda: answer(guard, "GET", "item:8") == b"payload 8", PATIENCE, "the database's word")
    assert nodes[1].accepted == 0
    assert (nodes[0].asked["GET"], nodes[0].asked["DEL"]) == asked
    ours(nodes)
    wait_right(guard)


def test_a_flood_of_redirections_asks_for_the_map_ten_times_a_second_at_most(guard, nodes):
    """Each names another node than the last, so that it would be worth a question."""
    fill(guard.redis())
    turns = random.Random(1)

    def moved(words):
        if words[0] != b"GET":
            return None
        return b"-MOVED %d 127.0.0.1:%d\r\n" % (turns.randrange(16384), turns.choice(nodes).port)

    nodes[0].answer = moved
    before, began = questions(nodes), time.monotonic()
    while time.monotonic() - began < 3:
        pipe = guard.redis().pipeline(transaction=False)
        for name in NAMES * 4:
            pipe.get(name)
        got = pipe.execute(raise_on_error=False)
        for name, each in zip(NAMES * 4, got):
            assert each == name.encode() or isinstance(each, redis.RedisError), each
    asked = (questions(nodes) - before) / (time.monotonic() - began)
    assert asked < 15 * ASKERS, f"{asked} a second"
    nodes[0].answer = lambda words: None
    wait_right(guard)


NOWHERE = [b"1 nowhere", b"1 :", b"1 127.0.0.1:", b"1 127.0.0.1:99999999", b"x 127.0.0.1:1",
           b"99999 127.0.0.1:6379", b"1 ../../etc:80", b"", b"1 " + b"h" * 3000 + b":1"]


@pytest.mark.parametrize("where", NOWHERE, ids=[each.decode()[:20] for each in NOWHERE])
@pytest.mark.parametrize("word", [b"MOVED", b"ASK"])
def test_a_redirection_that_leads_nowhere_is_an_error_in_the_guards_words(guard, nodes, word, where):
    nodes[0].answer = lambda words: b"-%s %s\r\n" % (word, where) \
        if words[0] in (b"GET", b"SET") else None
    for words in (["GET", "plain"], ["SET", "plain", "x"]):
        with guard.wire() as wire:
            assert wire.ask(*words).startswith(b"-CLUSTERDOWN "), words
    assert answer(guard, "GET", "item:7") == b"payload 7"
    nodes[0].answer = lambda words: None
    wait_right(guard)


@pytest.mark.parametrize("word", [b"MOVED", b"ASK"])
@pytest.mark.parametrize("asked", ["GET", "DEL"], ids=["worker", "keeper"])
def test_a_redirection_without_an_address_has_the_map_asked(guard, nodes, word, asked):
    """At once, and four times a second for a minute after it, by whom it was told."""
    assert per_second(lambda: questions(nodes), 3) < 1.5 * ASKERS
    told = b"-%s 1 ?:%d\r\n" % (word, nodes[1].port)
    nodes[0].answer = lambda words: told if words[0] == asked.encode() else None
    if asked == "GET":
        assert isinstance(answer(guard, "GET", "plain"), redis.RedisError)
    else:
        guard.control("DELETE", guard.key_path("item:8") + "?block=1m")
    wait_until(lambda: per_second(lambda: questions(nodes), 1) > 2 * ASKERS, PATIENCE, guard.log)
    nodes[0].answer = lambda words: None
    wait_right(guard)


def test_a_redirection_to_nobody_is_an_error_until_the_map_is_asked(guard, nodes):
    port = free_port()
    for word in (b"MOVED", b"ASK"):
        nodes[0].answer = lambda words, word=word: None if words[0] not in (b"GET", b"SET") else \
            b"-%s 1 127.0.0.1:%d\r\n" % (word, port)
        for words in (["GET", "plain"], ["SET", "plain", "x"]):
            assert isinstance(answer(guard, *words), redis.RedisError)
        assert answer(guard, "GET", "item:7") == b"payload 7"
    nodes[0].answer = lambda words: None
    wait_right(guard)


def test_a_node_that_swallows_a_reply_costs_its_clients_no_more_than_its_connection(guard, nodes):
    """The protocol numbers no replies: the next one, to the guard's own question, may be taken for it,
    but nothing behind that."""
    fill(guard.redis())
    for name in NAMES[:3]:
        nodes[0].answer = lambda words, name=name: \
            SILENCE if words == [b"GET", name.encode()] else None
        got = answer(guard, "GET", name)
        assert isinstance(got, redis.RedisError) or got[0] == b"master", got
        nodes[0].answer = lambda words: None
        wait_right(guard)
        assert answer(guard, "GET", name) == name.encode()


def test_replies_that_nobody_asked_for_end_the_connection(guard, nodes):
    fill(guard.redis())
    nodes[0].answer = lambda words: b"$3\r\nfoe\r\n$3\r\nfoe\r\n" if words == [b"GET", b"bait"] else None
    for name in NAMES[:5]:
        before = nodes[0].accepted
        assert answer(guard, "GET", "bait") == b"foe"
        wait_until(lambda before=before: nodes[0].accepted > before, PATIENCE, guard.log)
        wait_right(guard)
        assert answer(guard, "GET", name) == name.encode()


def test_a_node_whose_replies_are_out_of_step_is_noticed(guard, nodes):
    """The guard knows what its own question may be answered with."""
    nodes[0].answer = lambda words: b"$3\r\nfoe\r\n" if words == [b"ROLE"] else None
    before = nodes[0].accepted
    wait_until(lambda: nodes[0].accepted > before + 1 and "out of step" in guard.log(), PATIENCE,
               guard.log)
    nodes[0].answer = lambda words: None
    wait_right(guard)


@pytest.mark.parametrize("part", [b"$100\r\nhalf", b"*3\r\n$1\r\nx\r\n", b":12",
                                  b"$2000000\r\n" + b"x" * 1000000],
                         ids=["text", "list", "number", "large text"])
def test_a_reply_that_breaks_off_is_no_value(guard, nodes, part):
    nodes[0].answer = lambda words: LastWords(part) if words[0] == b"GET" else None
    with guard.wire() as wire:
        wire.send(command("GET", "plain"))
        if len(part) > 1000:
            said = wire.read_until_closed()
            assert said and part.startswith(said)
        else:
            assert wire.read_reply().startswith(b"-NESTGUARD ")
    nodes[0].answer = lambda words: None
    wait_right(guard)


def test_a_node_that_accepts_and_says_nothing_holds_nobody_up_for_longer_than_cache_timeout(
        guard, nodes):
    nodes[1].slots = nodes[0].slots = ranges((0, 8000, nodes[0].port), (8001, 16383, nodes[1].port))
    nodes[1].answer = lambda words: SILENCE
    wait_until(lambda: nodes[1].accepted > 0, PATIENCE, guard.log)
    began = time.monotonic()
    for name in NAMES[:10]:
        got = answer(guard, "SET", name, "x")
        assert got in (True, b"OK") or isinstance(got, redis.RedisError)
    assert answer(guard, "GET", "item:7") == b"payload 7"
    assert time.monotonic() - began < 12 * 2
    nodes[1].answer = lambda words: None
    wait_right(guard)


def test_replies_keep_their_order_though_one_node_is_slow(guard, nodes):
    nodes[0].slots = ranges((0, 5000, nodes[2].port), (5001, 11000, nodes[1].port),
                            (11001, 16383, nodes[0].port))

    def slow(words):
        if words[0] in (b"GET", b"MGET"):
            time.sleep(0.01)

    wait_until(lambda: answer(guard, "SET", "plain", "x") and nodes[1].accepted and nodes[2].accepted,
               PATIENCE, guard.log)
    fill(guard.redis())
    nodes[1].answer = slow
    pipe = guard.redis().pipeline(transaction=False)
    for name in NAMES:
        pipe.get(name)
        pipe.mget(NAMES[:3])
    got = pipe.execute()
    assert got[::2] == [name.encode() for name in NAMES]
    assert all(each == [name.encode() for name in NAMES[:3]] for each in got[1::2])


def test_overlapping_and_missing_slots_are_errors_at_worst(guard, nodes):
    fill(guard.redis())
    maps = [ranges((0, 16383, nodes[0].port), (100, 9000, nodes[1].port), (50, 200, nodes[2].port)),
            ranges((0, 10, nodes[0].port)),
            ranges((0, 8000, nodes[1].port), (0, 8000, nodes[2].port))]
    for slots in maps:
        set_all(nodes, slots)
        nodes[0].hang_up()
        before = questions(nodes)
        wait_until(lambda before=before: questions(nodes) > before + 4, PATIENCE, guard.log)
        for name in NAMES:
            got = answer(guard, "GET", name)
            assert got == name.encode() or isinstance(got, redis.RedisError), got
    set_all(nodes, nodes[0].map)
    wait_right(guard)


@pytest.mark.parametrize("count", [500, 16384])
def test_a_map_of_thousands_of_nodes_is_forgotten_when_it_is_right_again(guard, nodes, cache, count):
    """Where nobody listens. So many as one answer may name; and far too many."""
    share = 16384 // count
    set_all(nodes, ranges(*((n * share, n * share + share - 1, 20, f"127.7.{n // 250}.{n % 250}")
                            for n in range(count))))
    before = questions(nodes)
    wait_until(lambda: questions(nodes) > before + 20, PATIENCE, guard.log)
    assert answer(guard, "GET", "item:7") == b"payload 7"
    began = time.monotonic()
    answer(guard, "SET", "plain", "x")
    assert time.monotonic() - began < 5
    late = Node(cache)
    try:
        set_all([*nodes, late], ranges((0, 16383, late.port)))
        wait_until(lambda: is_right(guard) and late.asked["SET"], 2 * PATIENCE, lambda: guard.log(60))
        # Again and again: who purges may come later than who writes, and sweeps the new node then.
        wait_until(lambda: guard.redis().set("item:8", "x")
                   and guard.explain("item:8")["cached"] is True and late.asked["EXISTS"], PATIENCE, lambda: guard.log(60))
        set_all([*nodes, late], nodes[0].map)
        wait_right(guard)
    finally:
        late.close()


def test_the_map_is_asked_of_one_node_a_second_while_nothing_happens(guard, nodes):
    assert per_second(lambda: questions(nodes), 3) < 2 * ASKERS


def test_wait_fails_where_no_node_is_known(start_guard, items):
    """Behind what is still to be answered, and again."""
    guard = start_guard(items(), cache=f"redis-cluster://127.0.0.1:{free_port()}")
    with guard.wire() as wire:
        wire.send(command("GET", "item:1") + command("WAIT", "1", "0") * 2 + command("GET", "item:2"))
        assert wire.read_reply() == b"$9\r\npayload 1\r\n"
        assert [wire.read_reply()[:12] for _ in range(2)] == [b"-CLUSTERDOWN"] * 2
        assert wire.read_reply() == b"$9\r\npayload 2\r\n"
