"""The data port as a Redis server: framing, order, refusals and limits."""
import contextlib
import pathlib
import random
import resource
import select
import socket
import tempfile
import threading

import pytest
import redis

from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command


@pytest.mark.parametrize("line, reply", [
    (b"PING\r\n", b"+PONG\r\n"),
    (b"PING\n", b"+PONG\r\n"),
    (b"  ping  \r\n", b"+PONG\r\n"),
    (b"GET item:1\r\n", bulk("payload 1")),
    (b"GET item:101\r\n", bulk(None)),
    (b'ECHO "a \\x41\\r\\n\\"b"\r\n', bulk(b'a A\r\n"b')),
    (b"ECHO 'it\\'s \\n'\r\n", bulk(b"it's \\n")),
    (b"\r\n\r\nPING\r\n", b"+PONG\r\n"),
    (b"*0\r\nPING\r\n", b"+PONG\r\n"),
    (b'GET ""\r\n', bulk(None)),
])
def test_inline_commands(start_guard, items, line, reply):
    assert start_guard(items()).raw(line, replies=1) == reply


def mixed_pipeline(count, chance):
    """Commands that are answered here, by the cache and by the database; and the replies."""
    sent, wanted, written = [], [], {}
    for n in range(count):
        kind = chance.choice(["absent", "row", "set", "get", "echo", "mget", "exists", "bad"])
        row, key = chance.randint(1, 100), f"plain:{chance.randint(1, 50)}"
        if kind == "absent":
            sent.append(command("GET", f"item:{chance.randint(101, 10**12)}"))
            wanted.append(bulk(None))
        elif kind == "row":
            sent.append(command("GET", f"item:{row}"))
            wanted.append(bulk(f"payload {row}"))
        elif kind == "set":
            written[key] = f"value {n}"
            sent.append(command("SET", key, written[key]))
            wanted.append(b"+OK\r\n")
        elif kind == "get":
            sent.append(command("get", key))
            wanted.append(bulk(written.get(key)))
        elif kind == "echo":
            sent.append(command("ECHO", n))
            wanted.append(bulk(n))
        elif kind == "mget":
            sent.append(command("MGET", f"item:{row}", f"item:{row + 100}", key))
            wanted.append(b"*3\r\n" + bulk(f"payload {row}") + bulk(None) + bulk(written.get(key)))
        elif kind == "exists":
            sent.append(command("EXISTS", f"item:{row}", "item:0", key))
            wanted.append(b":%d\r\n" % (1 + (key in written)))
        else:
            sent.append(command("GET"))
            wanted.append(b"-ERR wrong number of arguments for 'get' command\r\n")
    return b"".join(sent), b"".join(wanted)


def test_a_pipeline_of_thousands_is_answered_in_order(start_guard, items):
    guard = start_guard(items(), load_budget=1000)
    sent, wanted = mixed_pipeline(20_000, random.Random(1))
    with guard.wire() as wire:
        sender = threading.Thread(target=wire.send, args=(sent,))
        sender.start()
        assert wire.read_bytes(len(wanted)) == wanted
        sender.join(PATIENCE)


def test_many_clients_do_not_get_each_others_replies(start_guard, cache, items):
    guard = start_guard(items(), load_budget=1000)
    failures = []

    def talk(seed):
        chance = random.Random(seed)
        with guard.wire() as wire:
            for n in range(300):
                text = f"{seed}.{n}." + "x" * chance.randint(0, 2000)
                row = chance.randint(1, 100)
                wire.send(command("ECHO", text) + command("GET", f"item:{row}")
                          + command("GET", f"item:{row + 100}"))
                wanted = bulk(text) + bulk(f"payload {row}") + bulk(None)
                got = wire.read_bytes(len(wanted))
                if got != wanted:
                    failures.append((got, wanted))
                    return

    threads = [threading.Thread(target=talk, args=(seed,)) for seed in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * PATIENCE)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


def test_commands_may_arrive_split_at_any_byte(start_guard, items):
    guard = start_guard(items())
    sent, wanted = mixed_pipeline(12, random.Random(4))
    wires = [guard.wire() for _ in range(len(sent) - 1)]
    for at, wire in enumerate(wires, 1):
        wire.send(sent[:at])
    for _ in range(8):  # by now both workers have read what is there
        assert guard.raw(command("PING"), replies=1) == b"+PONG\r\n"
    for at, wire in enumerate(wires, 1):
        wire.send(sent[at:])
        assert wire.read_bytes(len(wanted)) == wanted, f"split at {at}"
        wire.close()


def test_commands_may_arrive_byte_by_byte(start_guard, items):
    guard = start_guard(items())
    sent, wanted = mixed_pipeline(40, random.Random(5))
    with guard.wire() as wire:
        for at in range(len(sent)):
            wire.send(sent[at:at + 1])
        assert wire.read_bytes(len(wanted)) == wanted


@pytest.mark.parametrize("garbage", [
    b"*1\r\n$abc\r\n", b"*x\r\n", b"*1\r\n:1\r\n", b"*2000000000\r\n", b"*1\r\n$-5\r\n",
    b"*1\r\n$99999999999999999999\r\n", b"*99999999999999999999\r\n", b'GET "unbalanced\r\n',
    b"x" * 70_000, b"*1\r\n$" + b"1" * 70_000, b"*2\r\n$3\r\nGET\r\nx\r\n",
], ids=lambda garbage: str(garbage[:30]))
def test_malformed_input_closes_its_client_alone(start_guard, items, garbage):
    guard = start_guard(items())
    with guard.wire() as other:
        other.send(command("GET", "item:1")[:-5])
        got = guard.raw(command("PING") + command("GET", "item:2") + garbage)
        before = b"+PONG\r\n" + bulk("payload 2")
        assert got[:len(before)] == before, "what came before it is answered"
        assert got[len(before):].startswith(b"-ERR Protocol error")
        other.send(command("GET", "item:1")[-5:])
        assert other.read_reply() == bulk("payload 1")


def test_random_bytes_never_bring_it_down(start_guard, items):
    guard = start_guard(items())
    chance = random.Random(7)
    alphabet = b"*$:+-\r\n0123456789GET item:\"'\\\x00\xff"
    for _ in range(300):
        noise = bytes(chance.choice(alphabet) for _ in range(chance.randint(1, 200)))
        with guard.wire() as wire:
            wire.send(noise)
    assert guard.redis().get("item:1") == b"payload 1"


def test_a_password_is_asked_for(start_guard, cache, items):
    guard = start_guard(items(), password="sesame")
    with guard.wire() as wire:
        for words in (["GET", "item:1"], ["GET", "plain"], ["PING"], ["SET", "plain", "x"]):
            assert wire.ask(*words).startswith(b"-NOAUTH "), words
        assert wire.ask("AUTH", "wrong").startswith(b"-WRONGPASS ")
        assert wire.ask("GET", "item:1").startswith(b"-NOAUTH ")
        assert wire.ask("AUTH", "sesame") == b"+OK\r\n"
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        assert wire.ask("AUTH", "wrong").startswith(b"-WRONGPASS ")
    assert cache.client().dbsize() <= 1
    with guard.wire() as wire:
        assert wire.ask("AUTH", "default", "sesame") == b"+OK\r\n"
        assert wire.ask("PING") == b"+PONG\r\n"


def test_the_caches_own_password_is_the_guards_matter(start_guard, database, cache, items):
    cache.client().config_set("requirepass", "inner")
    try:
        guard = start_guard(items(), cache=cache.url.replace("//", "//:inner@"))
        assert guard.redis().get("item:1") == b"payload 1"
        assert guard.redis().set("plain", "x")
    finally:
        cache.client(password="inner").config_set("requirepass", "")


def test_auth_without_a_password_set_is_an_error_as_in_redis(start_guard, items):
    assert start_guard(items()).raw(command("AUTH", "x"), replies=1).startswith(b"-ERR ")


def test_commands_that_are_not_known_are_the_caches_to_judge(start_guard, cache, items):
    guard = start_guard(items())
    direct = cache.client()
    for words in (["NOSUCHCOMMAND", "x"], ["GET"], ["SET", "a"], ["INCR", "text"], ["EXISTS"]):
        direct.set("text", "no number")
        with pytest.raises(redis.ResponseError) as wanted:
            direct.execute_command(*words)
        with pytest.raises(redis.ResponseError) as got:
            guard.redis().execute_command(*words)
        assert str(got.value) == str(wanted.value)


def test_ordinary_commands_work_as_against_redis(start_guard, items):
    client = start_guard(items()).redis(decode_responses=True)
    assert client.set("s", "1") and client.incr("s") == 2
    assert client.hset("h", mapping={"a": "1", "b": "2"}) == 2
    assert client.hgetall("h") == {"a": "1", "b": "2"}
    assert client.rpush("l", *"abc") == 3 and client.lrange("l", 0, -1) == list("abc")
    assert client.zadd("z", {"one": 1, "two": 2}) == 2
    assert client.zrange("z", 0, -1, withscores=True) == [("one", 1.0), ("two", 2.0)]
    assert client.eval("return {KEYS[1], {1, {2, false}}, ARGV[1]}", 1, "k", "v") == [
        "k", [1, [2, None]], "v"]
    assert sorted(client.scan_iter("?")) == ["h", "l", "s", "z"]
    assert client.select(0) and client.echo("x") == "x" and client.dbsize() == 4
    assert client.delete("h", "l", "nothing") == 2
    assert client.set("s", "x", nx=True) is None
    assert client.type("z") == "zset" and client.info("server")["redis_version"]
    with client.pipeline(transaction=False) as pipe:
        assert pipe.get("s").get("item:1").get("item:101").ping().execute() == [
            "2", "payload 1", None, True]


def test_keys_and_values_may_hold_any_bytes(start_guard, cache, items):
    client = start_guard(items()).redis()
    chance = random.Random(3)
    for size in (0, 1, 100, 16_383, 16_384, 65_536, 1_000_000, 5_000_000):
        key, value = chance.randbytes(20), chance.randbytes(size)
        client.set(key, value)
        assert client.get(key) == value
        assert cache.client().get(key) == value
        assert client.mget(b"item:" + key, key) == [None, value]


def test_limits_on_what_a_client_sends(start_guard, items):
    guard = start_guard(items(), max_bulk="100kb", max_arguments=100, max_command="150kb")
    client = guard.redis()
    assert client.set("k", b"x" * 100 * 1024)
    assert client.mget([f"item:{n}" for n in range(1, 100)])[98] == b"payload 99"
    # Each is cut off behind the announcement that goes too far, so that nothing is left unread
    # when the guard closes: the kernel would throw its last words away.
    for too_much, cut in ((command("SET", "k", b"x" * (100 * 1024 + 1)), 100 * 1024 + 3),
                          (command("MGET", *["k"] * 100), 7 * 100),
                          (command("MSET", "a", b"x" * 90_000, "b", b"x" * 90_000), 90_002)):
        assert guard.raw(too_much[:-cut]).startswith(b"-ERR Protocol error")
    assert client.get("a") is None


def test_the_number_of_clients_is_bounded(start_guard, items):
    guard = start_guard(items(), max_clients=3)
    wires = [guard.wire() for _ in range(3)]
    for wire in wires:
        assert wire.ask("PING") == b"+PONG\r\n"
    assert guard.raw(b"").startswith(b"-ERR max number of clients")
    wires.pop().close()
    wait_until(lambda: is_welcome(guard), PATIENCE, "room for another client")
    for wire in wires:
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        wire.close()


@pytest.fixture
def many_files():
    """For this process and whatever it starts."""
    wanted, before = 4000, resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < wanted:
        pytest.skip(f"{before[1]} open files are allowed, {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], wanted), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_host_that_takes_all_places_leaves_some_to_others(many_files, start_guard, items):
    """The last sixteenth is for hosts that have less than a sixteenth."""
    guard = start_guard(items(), max_clients=1600, workers=1)
    with contextlib.ExitStack() as stack:
        def come(host, count):
            wires = [stack.enter_context(guard.wire(host)) for _ in range(count)]
            for wire in wires:
                wire.send(command("PING"))
            said = [wire.socket.recv(100) for wire in wires]
            assert all(each == b"+PONG\r\n" or each.startswith(b"-ERR max number of") for each in said)
            return said.count(b"+PONG\r\n")

        assert come("127.0.0.2", 1550) == 1500
        assert come("127.0.0.3", 60) == 60
        assert come("127.0.0.2", 1) == 0
        assert come("127.0.0.4", 50) == 40
    assert guard.log().count("for hosts that have fewer than 127.0.0.2") >= 1


def is_welcome(guard):
    try:
        return guard.raw(command("PING"), replies=1) == b"+PONG\r\n"
    except (AssertionError, OSError):
        return False


def test_a_reply_waits_in_its_place_behind_a_slow_one(start_guard, database, items):
    guard = start_guard(items(), load_timeout="60s")
    with guard.wire() as wire:
        with database.locked():
            wire.send(command("GET", "item:1") + command("GET", "item:101") + command("PING")
                      + command("SET", "plain", "x"))
            wait_until(lambda: guard.redis().get("plain") == b"x", PATIENCE, "the SET to be done")
            assert select.select([wire.socket], [], [], 0)[0] == [], "no reply may overtake another"
        assert wire.read_replies(4) == bulk("payload 1") + bulk(None) + b"+PONG\r\n+OK\r\n"


def test_a_client_that_leaves_while_it_waits_harms_nobody(start_guard, database, items):
    guard = start_guard(items(), load_timeout="60s")
    with database.locked():
        wires = [guard.wire() for _ in range(20)]
        for n, wire in enumerate(wires, 1):
            wire.send(command("MGET", f"item:{n}", "item:50") + command("GET", f"item:{n}"))
        wait_until(lambda: guard.counter("nestguard_cache_misses_total") >= 60, PATIENCE, "loads")
        for wire in wires:
            wire.close()
    assert guard.redis().get("item:50") == b"payload 50"


def test_quit_and_connections_that_come_and_go(start_guard, items):
    guard = start_guard(items())
    assert guard.raw(command("GET", "item:1") + command("QUIT")) == bulk("payload 1") + b"+OK\r\n"
    descriptors = pathlib.Path(f"/proc/{guard.process.pid}/fd")
    before = len(list(descriptors.iterdir()))
    for _ in range(200):
        guard.raw(command("PING"), replies=1)
    wait_until(lambda: len(list(descriptors.iterdir())) <= before, PATIENCE, "closed descriptors")


def test_a_client_that_has_said_all_gets_every_reply(start_guard, database, cache, items):
    """As `printf ... | nc` does: it closes its sending side and reads on."""
    guard = start_guard(items(), load_timeout="60s", load_budget=1000)
    with guard.wire() as wire, guard.wire() as slow, guard.wire() as torn:
        sent, wanted = mixed_pipeline(5000, random.Random(6))
        wire.send(sent)
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.read_until_closed() == wanted
        with database.locked():
            cache.client().flushall()
            misses = guard.counter("nestguard_cache_misses_total")
            slow.send(command("GET", "item:1") + command("ECHO", "x"))
            slow.socket.shutdown(socket.SHUT_WR)
            wait_until(lambda: guard.counter("nestguard_cache_misses_total") > misses, PATIENCE,
                       "the load")
        assert slow.read_until_closed() == bulk("payload 1") + bulk("x")
        torn.send(command("ECHO", "x") + command("GET", "item:1")[:-3])
        torn.socket.shutdown(socket.SHUT_WR)
        assert torn.read_until_closed() == bulk("x"), "the rest of a command will never come"
    with guard.wire() as silent:
        silent.socket.shutdown(socket.SHUT_WR)
        assert silent.read_until_closed() == b""
    wait_until(lambda: guard.status()["clients"] == 0, PATIENCE, lambda: guard.status()["clients"])


def test_unix_sockets_on_either_side(start_guard, cache, items):
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/guard.sock"
        guard = start_guard(items(), listen=[f"unix:{path}"])
        client = redis.Redis(unix_socket_path=path)
        assert client.mget("item:1", "item:101") == [b"payload 1", None]
        guard.stop()
        assert not pathlib.Path(path).exists(), "it takes its socket file away"


def test_what_the_cache_would_punish_does_not_reach_it(start_guard, items, cache):
    """Redis hangs up on an argument above its limit: on a shared connection, on everybody."""
    admin = cache.client()
    before = admin.config_get("proto-max-bulk-len")["proto-max-bulk-len"]
    admin.config_set("proto-max-bulk-len", 1024 * 1024)
    try:
        guard = start_guard(items(), cache_connections=1, workers=1)
        steady = guard.redis()
        assert steady.set("other", "x")
        failures = guard.total("nestguard_upstream_failures_total")
        said = guard.raw(b"*2\r\n$3\r\nGET\r\n$1500000\r\n" + b"k" * 1500000 + b"\r\n")
        assert said == b"-ERR Protocol error: invalid bulk length\r\n"
        assert steady.get("other") == b"x"
        assert guard.total("nestguard_upstream_failures_total") == failures
    finally:
        admin.config_set("proto-max-bulk-len", before)
