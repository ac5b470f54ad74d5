"""The commands of RedisBloom about keyspaces: answered from the guard's filters."""
import pytest
import redis

from following import follow  # pylint: disable=unused-import
from servers import PATIENCE
from test_clients import node_modules, run  # pylint: disable=unused-import
from waiting import wait_until
from wire import command


def are_there(guard, *items, keyspace="items"):
    return guard.redis().bf().mexists(keyspace, *items)


# ---- clients ----

def test_redis_py(start_guard, items):
    client = start_guard(items()).redis()
    bloom, cuckoo = client.bf(), client.cf()
    assert bloom.exists("items", 1) == 1
    assert bloom.exists("items", "item:1") == 1
    assert bloom.exists("items", 901) == 0
    assert bloom.mexists("items", 1, 901, 100) == [1, 0, 1]
    assert bloom.add("items", 902) == 1
    assert bloom.add("items", 902) == 0
    assert bloom.madd("items", 903, 1, 903) == [1, 0, 0]
    assert bloom.insert("items", [904, 2], capacity=100, error=0.01, noScale=True) == [1, 0]
    assert bloom.mexists("items", 902, 903, 904, 905) == [1, 1, 1, 0]
    info = bloom.info("items")
    assert (info.insertedNum, info.filterNum, info.expansionRate) == (100, 1, None)
    assert info.capacity >= 100 and info.size > 100
    assert cuckoo.exists("items", 1) == 1
    assert cuckoo.mexists("items", 1, 906) == [1, 0]
    assert (cuckoo.count("items", 1), cuckoo.count("items", 906)) == (1, 0)
    assert (cuckoo.add("items", 1), cuckoo.addnx("items", 1), cuckoo.addnx("items", 907)) == (1, 0, 1)
    assert cuckoo.insert("items", [1, 908]) == [1, 1]
    assert cuckoo.insertnx("items", [1, 909], capacity=7) == [0, 1]
    assert cuckoo.info("items").insertedNum == 100
    for refused, words in ((lambda: cuckoo.delete("items", 1), "only the database's word"),
                           (lambda: bloom.create("items", 0.01, 1000), "item exists"),
                           (lambda: cuckoo.create("items", 1000), "item exists"),
                           (lambda: cuckoo.scandump("items", 0), "is a keyspace"),
                           (lambda: bloom.loadchunk("items", 1, b"x"), "is a keyspace")):
        with pytest.raises(redis.ResponseError, match=words):
            refused()
    assert cuckoo.exists("items", 1) == 1


# A word for each call that redis-py's classes have, and how it may be called.
BLOOM = {"create": (0.01, 1000), "reserve": (0.01, 1000), "add": (1,), "madd": (1, 2),
         "insert": ([1, 2],), "exists": (1,), "mexists": (1, 2), "scandump": (0,),
         "loadchunk": (1, b"x"), "info": (), "card": ()}
CUCKOO = {"create": (1000,), "reserve": (1000,), "add": (1,), "addnx": (1,), "insert": ([1, 2],),
          "insertnx": ([1, 2],), "exists": (1,), "mexists": (1, 2), "delete": (1,), "count": (1,),
          "scandump": (0,), "loadchunk": (1, b"x"), "info": ()}
REFUSED = {"create", "reserve", "scandump", "loadchunk", "delete"}


@pytest.mark.parametrize("commands, calls", [("BFCommands", BLOOM), ("CFCommands", CUCKOO)])
def test_each_call_of_redis_py_is_answered_or_refused_with_words(start_guard, items, commands, calls):
    client = start_guard(items()).redis()
    filters = client.bf() if commands == "BFCommands" else client.cf()
    offered = {name for name in vars(getattr(redis.commands.bf.commands, commands))
               if not name.startswith("_")}
    assert offered <= calls.keys()
    for name in offered:
        try:
            assert getattr(filters, name)("items", *calls[name]) is not None and name not in REFUSED
        except redis.ResponseError as refused:
            assert name in REFUSED and "unknown command" not in str(refused)
            assert len(str(refused).split()) > 1


@pytest.mark.parametrize("resp", ["2", "3"])
def test_node_redis(start_guard, items, node_modules, resp):  # pylint: disable=redefined-outer-name
    guard = start_guard(items())
    told = run("node_bloom.mjs", node_modules, guard.port, resp)
    one, zero = "true", "false"
    unless_there = {"2": "[false,true]", "3": "[0,1]"}  # as RedisBloom's, which the library hands on
    assert told == [f'["{step}",{value}]' for step, value in (
        ("bf exists", one), ("bf exists, whole key", one), ("bf exists, absent", zero),
        ("bf mExists", "[true,false,true]"), ("bf add", one), ("bf add again", zero),
        ("bf mAdd", "[true,false]"), ("bf insert", "[true,false]"),
        ("bf exists, added", "[true,true,true,false]"), ("bf card", "100"), ("bf info", "100"),
        ("bf reserve", '"ERR"'), ("cf exists", one), ("cf exists, absent", zero),
        ("cf count", "1"), ("cf count, absent", "0"), ("cf add", one), ("cf addNX", zero),
        ("cf addNX, new", one), ("cf insert", "[true,true]"), ("cf insertNX", unless_there[resp]),
        ("cf info", "100"), ("cf del", '"NESTGUARD"'), ("cf exists, still", one),
        ("at once", "[true,false,true]"), ("another name", '"ERR"'),
        ("bf scanDump", '"NESTGUARD"'), ("bf loadChunk", '"NESTGUARD"'),
        ("cf reserve", '"ERR"'), ("cf scanDump", '"NESTGUARD"'), ("cf loadChunk", '"NESTGUARD"'),
        ("not called", "[]"))]


# ---- what an answer says ----

def test_nothing_is_asked_of_cache_or_database(start_guard, items, cache, database):
    guard = start_guard(items())
    loads, asked = database.count_loads(), cache.client().info("stats")["total_commands_processed"]
    assert are_there(guard, *range(51, 151)) == [1] * 50 + [0] * 50
    assert database.count_loads() == loads
    assert cache.client().info("stats")["total_commands_processed"] - asked < 20
    assert guard.counter("nestguard_members_total") == 100
    assert guard.counter("nestguard_lookups_total") == 100
    assert guard.counter("nestguard_rejected_total") == 50
    assert guard.keyspace()["members"] == 100


def test_rows_come_and_go(follow, items, database):  # pylint: disable=redefined-outer-name
    guard = follow(items())
    assert are_there(guard, 1000, 1) == [0, 1]
    database.execute("INSERT INTO items VALUES (1000, 'new'); DELETE FROM items WHERE id = 1")
    wait_until(lambda: are_there(guard, 1000, 1) == [1, 0], PATIENCE, guard.status)


# pylint: disable-next=redefined-outer-name
def test_while_it_may_not_reject_everything_may_exist(follow, items, database):
    guard = follow(items())
    assert are_there(guard, 1000) == [0]
    database.server.stop()
    wait_until(lambda: are_there(guard, 1000) == [1], PATIENCE, guard.status)
    database.server.start()
    wait_until(lambda: are_there(guard, 1000) == [0], PATIENCE, guard.status)


def test_before_there_is_a_filter_everything_may_exist(start_guard, items, database):
    with database.locked():
        guard = start_guard(items(), ready=False)
        assert are_there(guard, 1, 1000) == [1, 1]
        for ask in (guard.redis().bf().info, guard.redis().cf().info):
            with pytest.raises(redis.ResponseError, match="no filter yet"):
                ask("items")
    guard.wait_guarding()


def test_in_shadow_mode_everything_may_exist(start_guard, items):
    guard = start_guard(items(enforce=False))
    assert are_there(guard, 1, 1000) == [1, 1]
    assert guard.counter("nestguard_would_reject_total") == 1


def test_several_columns_are_joined_by_colons(start_guard, database):
    database.execute("""CREATE TABLE orders (customer text, number int, v text,
                        PRIMARY KEY (customer, number));
                        INSERT INTO orders VALUES ('ann', 1, 'x'), ('a:b', 2, 'y')""")
    orders = {"table": "orders", "value": "v"}
    guard = start_guard({"name": "plain", "key": "order:{customer}:{number}", **orders},
                        {"name": "slash", "key": "o/{customer}/{number}", **orders})
    for name in ("plain", "slash"):
        assert are_there(guard, "ann:1", "a:b:2", "ann:2", "ann", keyspace=name) == [1, 1, 0, 0]
    assert are_there(guard, "order:ann:1", "order:ann:2", keyspace="plain") == [1, 0]
    assert guard.redis().bf().add("slash", "x:y:3") == 1
    assert guard.explain("o/x:y/3")["verdict"] == guard.explain("o/x/y:3")["verdict"] == "possible"
    with pytest.raises(redis.ResponseError, match="nothing was added: no key of keyspace plain"):
        guard.redis().bf().madd("plain", "bob:1", "bob")
    assert are_there(guard, "bob:1", keyspace="plain") == [0]


def test_items_are_any_bytes_of_any_length(start_guard, database):
    database.execute("CREATE TABLE items (id text PRIMARY KEY, payload text)")
    strange = ["", "*", "item:1", "ä" * 700, "a b\r\nc", "x" * 2000, "\"'\\"]
    for text in strange:
        database.execute("INSERT INTO items VALUES (%s, 'x')", (text,))
    guard = start_guard({"name": "items", "key": "item:{id}", "table": "items", "value": "payload"})
    assert are_there(guard, *strange, b"\0\xff", "x" * 2001, "item:2") == [1] * 7 + [0] * 3
    assert guard.redis().bf().exists("items", b"\xff" * 3_000_000) == 0
    assert are_there(guard, "x" * 3_000_000, "") == [0, 1]


def test_many_items_in_one_command_and_many_commands_at_once(start_guard, items):
    guard = start_guard(items())
    wanted = [int(1 <= n <= 100) for n in range(20_000)]
    assert are_there(guard, *range(20_000)) == wanted
    with guard.wire() as wire:
        wire.send(b"".join(command("BF.EXISTS", "items", n) for n in range(5_000)))
        replies = wire.read_replies(5_000)
    assert replies == b"".join(b":%d\r\n" % bit for bit in wanted[:5_000])


# ---- what is added ----

# pylint: disable-next=redefined-outer-name
def test_what_is_added_is_known_to_every_worker_and_ends_with_its_time(follow, items):
    guard = follow(items(), workers=4, hint_ttl="1s")
    guard.redis().bf().add("items", 1000)
    for _ in range(20):
        assert guard.redis().bf().exists("items", 1000) == 1
        assert guard.redis().get("item:1000") is None
    assert guard.counter("nestguard_hints_total") == 1
    assert guard.counter("nestguard_cache_misses_total") == 20, "GETs were passed on"
    wait_until(lambda: are_there(guard, 1000) == [0], PATIENCE, guard.status)


def test_nobody_adds_more_than_hints_have_room_for(start_guard, items):
    guard = start_guard(items(), max_hints=1000)
    bloom = guard.redis(single_connection_client=True).bf()
    with pytest.raises(redis.ResponseError, match="NESTGUARD busy: too many keys"):
        bloom.madd("items", *range(1000, 1600))
    assert are_there(guard, 1000, 1599) == [0, 0]
    assert bloom.madd("items", *range(1000, 1100)) == [1] * 100


def test_a_write_behind_an_addition_is_read(start_guard, items, cache):
    guard = start_guard(items())
    with guard.wire() as wire:
        wire.send(command("BF.ADD", "items", 1000) + command("GET", "item:1000") +
                  command("BF.EXISTS", "items", 1000))
        assert wire.read_replies(3) == b":1\r\n$-1\r\n:1\r\n"
    assert cache.calls("get") == 1


# ---- who asks, and where ----

def test_other_names_are_the_caches(start_guard, items, cache):
    guard = start_guard(items())
    with guard.wire() as wire:
        for words in (("BF.EXISTS", "mine", "1"), ("BF.ADD", "item", "1"), ("CF.DEL", "Items", "1"),
                      ("BF.INFO", "items2"), ("BF.EXISTS",), ("CF.COUNT", "item:1", "x")):
            assert wire.ask(*words).startswith(b"-ERR unknown command"), words
        assert wire.ask("SELECT", "3") == b"+OK\r\n"
        assert wire.ask("BF.EXISTS", "items", "1").startswith(b"-ERR unknown command")
    assert cache.client().info("clients")["connected_clients"] < 12


def test_strangers_are_told_nothing(start_guard, items):
    guard = start_guard(items(), password="secret")
    with guard.wire() as wire:
        for words in (("BF.EXISTS", "items", "1"), ("BF.MEXISTS", "items", "1", "2"),
                      ("BF.ADD", "items", "1"), ("BF.INFO", "items"), ("CF.DEL", "items", "1"),
                      ("BF.EXISTS", "other", "1")):
            assert wire.ask(*words) == b"-NOAUTH Authentication required.\r\n", words


@pytest.fixture
def as_user(start_guard, items, cache):
    """A connection of a user of the cache's own, who may read some keys."""
    admin = cache.client()
    admin.acl_setuser("reader", enabled=True, passwords="+secret", keys=["item:1*"],
                      commands=["+exists", "+ping"])
    guard = start_guard(items())
    with guard.wire() as wire:
        assert wire.ask("AUTH", "reader", "secret") == b"+OK\r\n"
        yield wire
    admin.acl_deluser("reader")


def test_a_user_learns_nothing_of_what_redis_denies(as_user):
    assert as_user.ask("BF.MEXISTS", "items", "1", "1000", "10") == b"*3\r\n:1\r\n:0\r\n:1\r\n"
    refusals = {as_user.ask("BF.EXISTS", "items", item) for item in ("2", "2000", "item:2")}
    assert len(refusals) == 1 and refusals.pop().startswith(b"-NOPERM")
    assert as_user.ask("BF.EXISTS", "items", "item:10").startswith(b"-NOPERM"), "or item:item:10"
    assert as_user.ask("CF.MEXISTS", "items", "1", "2").startswith(b"-NOPERM")
    assert as_user.ask("CF.COUNT", "items", "100") == b":1\r\n"
    for words in (("BF.ADD", "items", "1"), ("BF.CARD", "items"), ("BF.INFO", "items")):
        assert as_user.ask(*words).startswith(b"-NOPERM"), words


def test_in_a_transaction_they_are_refused_and_nothing_is_executed(start_guard, items):
    guard = start_guard(items())
    with guard.wire() as wire:
        for words in (("BF.EXISTS", "items", "1"), ("BF.ADD", "items", "1000"),
                      ("BF.CARD", "items")):
            assert wire.ask("MULTI") == b"+OK\r\n"
            assert wire.ask("SET", "done", "1") == b"+QUEUED\r\n"
            assert wire.ask(*words).startswith(b"-NESTGUARD unsupported: inside MULTI"), words
            assert wire.ask("EXEC").startswith(b"-EXECABORT")
        assert wire.ask("EXISTS", "done") == b":0\r\n"
        assert wire.ask("BF.EXISTS", "items", "1") == b":1\r\n"


def test_a_client_that_tracks_may_not_ask(start_guard, items):
    with start_guard(items()).wire() as wire:
        assert wire.ask("HELLO", "3").startswith(b"%")
        assert wire.ask("CLIENT", "TRACKING", "ON") == b"+OK\r\n"
        assert wire.ask("BF.EXISTS", "items", "1000").startswith(b"-NESTGUARD tracking")


def test_replies_that_are_not_wanted_are_not_sent(start_guard, items):
    with start_guard(items()).wire() as wire:
        wire.send(command("CLIENT", "REPLY", "SKIP") + command("BF.MEXISTS", "items", 1, 2) +
                  command("CLIENT", "REPLY", "SKIP") + command("BF.ADD", "items", 1000) +
                  command("BF.EXISTS", "items", 1000))
        assert wire.read_reply() == b":1\r\n"


def test_when_the_cache_is_down_they_are_answered(start_guard, items, cache):
    guard = start_guard(items())
    cache.stop()
    assert are_there(guard, 1, 1000) == [1, 0]
    assert guard.redis().bf().add("items", 1000) == 1
    assert are_there(guard, 1, 1000) == [1, 1]
