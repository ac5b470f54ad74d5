"""Rows that are cached as hashes (fill: hash): what each command says of a row, loaded and from the
cache, is what Redis says of a hash of its columns; and nothing is said of half a hash."""
import signal
import threading

import pytest
import redis

from following import publish
from gate import Gate
from servers import PATIENCE, run_nestguard
from waiting import wait_until
from wire import bulk, command

NIL = {2: b"$-1\r\n", 3: b"_\r\n"}
FIELDS = [("id", "7"), ("name", 'a "b" \\ é\n'), ("price", "12.50"), ("active", "true"),
          ("tags", '["x", {"y": null}]')]
# What is asked of item:{key}, and whether it is about fields.
QUESTIONS = [
    ["HGET", "name"], ["HGET", "gone"], ["HGET", "nothing"], ["HMGET", "name", "gone", "id", "name"],
    ["HMGET", "nothing"], ["HEXISTS", "name"], ["HEXISTS", "gone"], ["HSTRLEN", "name"],
    ["HSTRLEN", "gone"], ["HLEN"], ["HGETALL"], ["HKEYS"], ["HVALS"], ["EXISTS"]]


@pytest.fixture
def rows(database):
    """Items 1 to 20, all of them like item 7."""
    database.execute("""
        CREATE TABLE items (id bigint PRIMARY KEY, name text, price numeric(8,2), active boolean,
                            gone text, tags jsonb);
        INSERT INTO items SELECT n, E'a "b" \\\\ \\u00e9\\n', 12.5, true, NULL, '["x", {"y": null}]'
          FROM generate_series(1, 20) n""")
    return {"name": "items", "key": "item:{id}", "table": "items", "value": "json", "fill": "hash",
            "ttl": "10m", "ttl_jitter": 0}


def ask(wire, question, key):
    return wire.ask(question[0], key, *question[1:])


@pytest.fixture
def guard_of(start_guard, database):
    """With sync: replication the table is published."""
    def start(keyspace, sync, **settings):
        if sync == "replication":
            publish(database, keyspace)
        return start_guard(keyspace, sync=sync, **settings)

    return start


@pytest.fixture(params=[2, 3])
def spoken(request):
    return request.param


def speak(wire, protocol):
    assert not wire.ask("HELLO", protocol).startswith(b"-")
    return wire


def hash_of(cache, key):
    return {name.decode(): value.decode() for name, value in cache.client().hgetall(key).items()}


def wait_filled(guard, cache, key):
    wait_until(lambda: cache.client().exists(key) and not guard.explain(key)["in_flight"], PATIENCE,
               lambda: f"{key} in the cache\n{guard.log()}")


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
def test_a_row_is_a_hash_of_its_columns(guard_of, cache, rows, sync):
    guard = guard_of(rows, sync)
    assert guard.redis(decode_responses=True).hgetall("item:7") == dict(FIELDS)
    wait_filled(guard, cache, "item:7")
    assert hash_of(cache, "item:7") == dict(FIELDS)
    assert 0 < cache.client().pttl("item:7") <= 600_000
    assert guard.counter("nestguard_loads_total", result="row") == 1


def test_each_command_says_of_a_row_what_redis_says_of_the_hash(start_guard, cache, rows, spoken):
    guard = start_guard(rows, sync="none")
    plain = cache.client()
    plain.hset("plain", mapping=dict(FIELDS))
    with guard.wire() as wire:
        speak(wire, spoken)
        for number, question in enumerate(QUESTIONS, 1):
            key = f"item:{number}"
            wanted = ask(wire, question, "plain").replace(b"$1\r\n7\r\n", bulk(number))
            assert ask(wire, question, key) == wanted, question
            wait_filled(guard, cache, key)
            assert ask(wire, question, key) == wanted, question
            assert guard.counter("nestguard_loads_total", result="row") == number, question


def test_a_key_without_a_row_asks_nobody(start_guard, database, cache, rows, spoken):
    guard = start_guard(rows, sync="none")
    with guard.wire() as wire:
        speak(wire, spoken)
        wanted = [ask(wire, question, "missing") for question in QUESTIONS]
        before, loads = cache.calls("hget"), database.count_loads()
        assert [ask(wire, question, "item:99") for question in QUESTIONS] == wanted
    assert cache.calls("hget") == before and database.count_loads() == loads
    assert guard.counter("nestguard_rejected_total") == len(QUESTIONS)


def test_a_row_that_went_is_none(start_guard, database, rows, spoken):
    """The filter takes it for possible; the database says no."""
    guard = start_guard(rows, sync="none")
    database.execute("DELETE FROM items WHERE id < 20")
    with guard.wire() as wire:
        speak(wire, spoken)
        for number, question in enumerate(QUESTIONS, 1):
            assert (ask(wire, question, f"item:{number}") ==
                    ask(wire, question, "missing")), question


def test_a_field_that_is_not_there_asks_the_cache_and_not_the_database(start_guard, cache, rows):
    guard = start_guard(rows, sync="none")
    client = guard.redis()
    client.hgetall("item:7")
    wait_filled(guard, cache, "item:7")
    for _ in range(10):
        assert client.hget("item:7", "gone") is None
        assert client.hmget("item:7", "gone", "nothing") == [None, None]
        assert client.hexists("item:7", "nothing") is False
        assert client.hstrlen("item:7", "nothing") == 0
    assert guard.counter("nestguard_loads_total", result="row") == 1
    assert cache.calls("hgetall") == 1 + 40
    calls = cache.calls("hgetall")
    assert client.hget("item:7", "id") == b"7" and cache.calls("hgetall") == calls


def test_what_reads_strings_hears_that_it_is_none_and_leaves_none(start_guard, cache, rows):
    guard = start_guard(rows, sync="none")
    client = guard.redis()
    for key in ("item:7", "item:7"):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            client.get(key)
        wait_filled(guard, cache, key)
    assert cache.client().type("item:7") == b"hash"
    assert client.get("item:99") is None
    assert client.mget("item:7", "item:8", "item:99") == [None, None, None]
    assert guard.counter("nestguard_loads_total", result="row") == 1


def test_exists_reads_through(start_guard, cache, rows):
    guard = start_guard(rows, sync="none")
    assert guard.redis().exists("item:1", "item:2", "item:99") == 2
    wait_filled(guard, cache, "item:1")
    assert hash_of(cache, "item:1")["price"] == "12.50"


def test_a_list_of_columns_is_a_hash_of_these(guard_of, database, cache, rows):
    guard = guard_of({**rows, "value": ["price", "gone", "tags"]}, "replication")
    client = guard.redis(decode_responses=True)
    assert client.hgetall("item:7") == {"price": "12.50", "tags": '["x", {"y": null}]'}
    assert client.hmget("item:8", "name", "price") == [None, "12.50"]
    wait_filled(guard, cache, "item:8")
    assert hash_of(cache, "item:8") == {"price": "12.50", "tags": '["x", {"y": null}]'}
    database.execute("UPDATE items SET gone = 'back' WHERE id = 8")
    wait_until(lambda: client.hget("item:8", "gone") == "back", PATIENCE, guard.log)
    database.execute("ALTER TABLE items ALTER gone TYPE text USING 'altered'")
    wait_until(lambda: client.hget("item:8", "gone") == "altered", PATIENCE, guard.log)


def test_an_expression_gives_the_fields_of_its_object(start_guard, cache, rows):
    guard = start_guard({**rows, "value": "jsonb_build_object('n', name, 'double', price * 2)"},
                        sync="none")
    client = guard.redis(decode_responses=True)
    assert client.hgetall("item:7") == {"n": dict(FIELDS)["name"], "double": "25.00"}
    wait_filled(guard, cache, "item:7")
    assert hash_of(cache, "item:7") == {"n": dict(FIELDS)["name"], "double": "25.00"}


@pytest.mark.parametrize("value", ["(id)", "jsonb_build_array(id)",
                                   "json_build_object('a', 1, 'a', id)"])
def test_an_expression_that_makes_no_hash_is_an_error(start_guard, cache, rows, value):
    guard = start_guard({**rows, "value": value}, sync="none")
    for question in QUESTIONS:
        with pytest.raises(redis.ResponseError, match="database error"):
            guard.redis().execute_command(question[0], "item:7", *question[1:])
    assert not cache.client().exists("item:7")


def test_a_row_of_nulls_is_there_and_has_no_fields(start_guard, cache, rows):
    guard = start_guard({**rows, "value": ["gone"]}, sync="none")
    client = guard.redis()
    assert client.hgetall("item:7") == {} and client.hget("item:7", "gone") is None
    assert client.exists("item:7") == 1 and client.hlen("item:7") == 0
    assert not cache.client().exists("item:7")
    assert guard.counter("nestguard_loads_total", result="row") == 4


def test_check_names_a_listed_column_that_is_not_there(start_guard, database, cache, rows):
    guard = start_guard(rows, sync="none")
    guard.configure({"cache": cache.url, "database": database.url, "sync": "none",
                     "keyspaces": [{**rows, "value": ["price", "prise"]}]})
    status, said = run_nestguard("check", "-c", guard.file)
    assert status == 1 and "no column prise" in said and "value: price" in said


def test_a_write_meanwhile_stays_as_it_is(start_guard, database, cache, rows):
    """The row is on its way when the application writes a hash of its own."""
    guard = start_guard(rows, sync="none", load_timeout="60s")
    with guard.wire() as wire:
        with database.locked():
            wire.send(command("HGET", "item:7", "price"))
            wait_until(lambda: guard.explain("item:7")["in_flight"], PATIENCE, "the load")
            assert cache.client().hset("item:7", "own", "1") == 1
        assert wire.read_reply() == bulk("12.50")
    wait_until(lambda: not guard.explain("item:7")["in_flight"], PATIENCE, "the load's end")
    assert hash_of(cache, "item:7") == {"own": "1"}


def test_a_changed_row_leaves_nothing_old(guard_of, database, rows):
    guard = guard_of(rows, "replication")
    client = guard.redis(decode_responses=True)
    for turn in range(20):
        database.execute("UPDATE items SET name = %s WHERE id = 7", (f"turn {turn}",))
        wait_until(lambda t=turn: client.hget("item:7", "name") == f"turn {t}", PATIENCE,
                   lambda t=turn: f"turn {t}: {client.hgetall('item:7')}")
        assert client.hget("item:7", "price") == "12.50"


def test_a_load_that_the_purge_overtakes_leaves_no_hash(guard_of, database, cache, rows):
    gate = Gate(database.server.port)
    try:
        guard = guard_of(rows, "replication", load_timeout="60s", max_lag="2s",
                         database=database.url.replace(f":{database.server.port}/",
                                                       f":{gate.port}/"))
        gate.hold_answers(b"12.50")
        with guard.wire() as wire:
            wire.send(command("HGET", "item:7", "price"))
            gate.wait_held()
            database.execute("UPDATE items SET price = 1 WHERE id = 7")
            wait_until(lambda: guard.counter("nestguard_purges_total") >= 1, PATIENCE, "the purge")
            gate.release()
            assert wire.read_reply() == bulk("12.50")
        wait_until(lambda: not guard.explain("item:7")["in_flight"], PATIENCE, "the load's end")
        assert not cache.client().exists("item:7")
        assert guard.redis().hget("item:7", "price") == b"1.00"
    finally:
        gate.release()
        gate.close()


def test_no_reader_sees_half_a_hash_or_one_that_stays(start_guard, cache, rows):
    """Whoever looks into the cache itself, again and again, while the guard fills and others delete."""
    guard = start_guard(rows, sync="none")
    stop, wrong = threading.Event(), []

    def look():
        client = cache.client()
        while not stop.is_set():
            with client.pipeline(transaction=True) as pipeline:
                length, left = pipeline.hlen("item:7").pttl("item:7").execute()
            if (length, left > 0) not in {(0, False), (len(FIELDS), True)}:
                wrong.append((length, left))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        client = guard.redis()
        for _ in range(300):
            assert client.hget("item:7", "price") == b"12.50"
            cache.client().delete("item:7")
    finally:
        stop.set()
        looking.join()
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("written", ["name", "other"])
def test_what_is_written_behind_a_question_is_not_its_answer(start_guard, cache, rows, written):
    """Of a hash that is not cached, over one connection: the row's field is, as it was before."""
    guard = start_guard(rows, sync="none")
    with guard.wire() as wire:
        for number in range(1, 21):
            key = f"item:{number}"
            wire.send(command("HGET", key, "price") + command("HSET", key, written, "mine"))
            assert wire.read_reply() == bulk("12.50"), key
            assert wire.read_reply() == b":1\r\n"
            assert cache.client().hget(key, written) == b"mine"
            wire.send(command("HGET", key, "name") + command("HSET", key, "name", "own"))
            said = wire.read_reply()
            assert said != bulk("own"), key
            wire.read_reply()


def test_a_hash_that_comes_between_two_looks_makes_no_nil(start_guard, cache, rows):
    """The key goes and comes back all the time: each reply is the row's."""
    guard = start_guard(rows, sync="none")
    stop = threading.Event()

    def delete():
        client = cache.client()
        while not stop.is_set():
            client.delete("item:7")

    deleting = threading.Thread(target=delete)
    deleting.start()
    try:
        clients = [guard.redis() for _ in range(3)]
        for _ in range(300):
            for client in clients:
                assert client.hget("item:7", "price") == b"12.50"
                assert client.hmget("item:7", "gone", "id") == [None, b"7"]
                assert client.hexists("item:7", "name")
                assert client.hstrlen("item:7", "active") == 4
                assert client.hget("item:7", "gone") is None
    finally:
        stop.set()
        deleting.join()


@pytest.mark.parametrize("behind", [
    ["MULTI", "HGET item:8 price", "EXEC"], ["SELECT 1", "SELECT 0"], ["WATCH item:9", "UNWATCH"]])
def test_what_is_pipelined_behind_a_lookup_is_not_disturbed(start_guard, cache, rows, behind):
    """The second look of an HGET goes out when the client's connection is in another state."""
    guard = start_guard(rows, sync="none")
    guard.redis().hgetall("item:7")
    wait_filled(guard, cache, "item:7")
    other = redis.Redis(port=cache.port, db=1)
    other.hset("item:7", "else", "1")
    with guard.wire() as wire:
        for _ in range(20):
            lines = ["HGET item:7 gone", *behind, "HGET item:7 price"]
            wire.send(b"".join(command(*line.split()) for line in lines))
            assert wire.read_reply() == NIL[2]
            for line in behind:
                wanted = {"MULTI": b"+OK\r\n", "EXEC": b"*1\r\n$-1\r\n"}.get(line.split()[0])
                reply = wire.read_reply()
                assert reply == (wanted or reply) and not reply.startswith(b"-"), line
            assert wire.read_reply() == bulk("12.50")


def test_a_cache_that_is_down_is_answered_from_the_row(start_guard, cache, rows, spoken):
    guard = start_guard(rows, sync="none")
    with guard.wire() as wire:
        speak(wire, spoken)
        cache.kill()
        wait_until(lambda: guard.metric("nestguard_cache_up") == 0, PATIENCE, "the cache's end")
        assert ask(wire, ["HGET", "price"], "item:7") == bulk("12.50")
        assert ask(wire, ["HGET", "gone"], "item:7") == NIL[spoken]
        assert ask(wire, ["HLEN"], "item:7") == b":5\r\n"
        assert ask(wire, ["HLEN"], "item:99") == b":0\r\n"
    cache.start()


def test_a_database_that_is_down_is_an_error_and_no_nil(start_guard, database, cache, rows):
    guard = start_guard(rows, sync="none")
    guard.redis().hgetall("item:7")
    wait_filled(guard, cache, "item:7")
    database.server.stop()
    client = guard.redis()
    assert client.hget("item:7", "price") == b"12.50" and client.hget("item:7", "gone") is None
    for question in QUESTIONS:
        with pytest.raises(redis.ResponseError, match="database down"):
            client.execute_command(question[0], "item:8", *question[1:])
    database.server.start()


def test_a_large_row_goes_through(start_guard, database, cache, rows, spoken):
    """Larger than what is passed on in parts."""
    database.execute("UPDATE items SET name = repeat('x', 3000000) WHERE id = 7")
    guard = start_guard(rows, sync="none")
    with guard.wire() as wire:
        speak(wire, spoken)
        for _ in range(2):
            assert len(ask(wire, ["HGET", "name"], "item:7")) > 3_000_000
            assert ask(wire, ["HGET", "gone"], "item:7") == NIL[spoken]
            assert len(ask(wire, ["HGETALL"], "item:7")) > 3_000_000
            wait_filled(guard, cache, "item:7")


def test_on_absent_error_is_one_for_each_command(start_guard, rows):
    guard = start_guard({**rows, "on_absent": "error"}, sync="none")
    for question in QUESTIONS[:-1]:
        with pytest.raises(redis.ResponseError, match="absent"):
            guard.redis().execute_command(question[0], "item:99", *question[1:])


def test_an_application_that_loads_by_itself_gets_the_caches_word(start_guard, database, cache, rows):
    guard = start_guard({**rows, "on_miss": "pass"}, sync="none")
    before = database.count_loads()
    assert guard.redis().hget("item:7", "price") is None
    assert guard.redis().hmget("item:99", "a", "b") == [None, None]
    assert cache.calls("hmget") == 0 and database.count_loads() == before


def test_a_user_of_the_cache_reads_what_he_may(start_guard, cache, rows):
    client = cache.client()
    client.execute_command("ACL", "SETUSER", "alice", "on", ">secret", "~item:*", "+@all")
    client.execute_command("ACL", "SETUSER", "bob", "on", ">secret", "~other:*", "+@all")
    try:
        guard = start_guard(rows, sync="none")
        alice = guard.redis(username="alice", password="secret")
        assert alice.hget("item:7", "price") == b"12.50"
        wait_filled(guard, cache, "item:7")
        assert alice.hget("item:7", "gone") is None and alice.hget("item:7", "price") == b"12.50"
        with alice.pipeline(transaction=False) as pipeline:
            for _ in range(5):
                pipeline.hget("item:7", "gone")
            assert pipeline.execute() == [None] * 5
        with pytest.raises(redis.exceptions.NoPermissionError):
            guard.redis(username="bob", password="secret").hget("item:7", "price")
    finally:
        client.execute_command("ACL", "DELUSER", "alice", "bob")


def test_another_fill_makes_another_keyspace(start_guard, database, cache, rows):
    """What was cached as a string is gone, and nobody is told of the one as of the other."""
    guard = start_guard({**rows, "fill": "string"}, sync="none")
    assert b'"price":12.50' in guard.redis().get("item:7")
    wait_filled(guard, cache, "item:7")
    guard.configure({"cache": cache.url, "database": database.url, "sync": "none",
                     "keyspaces": [rows]})
    guard.signal(signal.SIGHUP)
    client = guard.redis()

    def reads_hash():
        try:
            return client.hget("item:7", "price") == b"12.50"
        except redis.ResponseError as error:
            assert "WRONGTYPE" in str(error)
            return False

    wait_until(reads_hash, PATIENCE, lambda: guard.log())


def test_what_is_not_to_be_heard_leaves_no_memory_behind(guard_of, rows):
    """A nil for each of many fields is written, though nobody gets it."""
    guard = guard_of(rows, "replication")
    with guard.wire() as wire:
        wire.send(command("CLIENT", "REPLY", "OFF") + command("HMGET", "item:99", *["f"] * 200_000) +
                  command("CLIENT", "REPLY", "ON"))
        assert wire.read_replies(1) == b"+OK\r\n"
        assert guard.keyspace()["rejected"] == 1
        told = dict(pair.split("=", 1) for pair in wire.ask("CLIENT", "INFO").decode().split()[1:])
        assert int(told["tot-mem"]) < 200_000
