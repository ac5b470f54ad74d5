"""The guard's table of commands against what a real Redis says and does."""
import pytest

from wire import Wire

# Arguments behind the key, where a row's arity filled up with "1" would be wrong.
READ_ARGUMENTS = {
    "ZLEXCOUNT": ["[a", "[b"],
    "ZRANGEBYLEX": ["[a", "[b"],
    "ZREVRANGEBYLEX": ["[b", "[a"],
    "GEORADIUS_RO": ["1", "1", "1", "km"],
    "GEORADIUSBYMEMBER_RO": ["member", "1", "km"],
    "GEOSEARCH": ["FROMMEMBER", "member", "BYRADIUS", "1", "km"],
}
# More arguments of the same commands: a constant must be one whatever they are.
READ_VARIANTS = [
    "GETEX new EX 10", "GETEX new PERSIST", "BITCOUNT new 0 -1", "BITCOUNT new 0 -1 BIT",
    "HSCAN new 17 COUNT 5", "SSCAN new 0 MATCH x*", "ZSCAN new 0 COUNT 1",
    "LRANGE new 0 -1", "LINDEX new -1", "GETRANGE new 0 -1",
    "ZRANGE new 0 -1 WITHSCORES", "ZRANGE new 1 2 BYSCORE REV LIMIT 0 1",
    "ZRANGE new [a [b BYLEX", "ZRANGEBYSCORE new -inf +inf WITHSCORES LIMIT 0 1",
    "ZREVRANGE new 0 -1 WITHSCORES", "GEODIST new a b km",
    "GEORADIUS_RO new 1 1 1 km WITHCOORD WITHDIST COUNT 1",
    "GEOSEARCH new FROMLONLAT 1 1 BYBOX 1 1 km WITHHASH", "XRANGE new - + COUNT 1",
    "XREVRANGE new + -",
]
# A command line for each row that writes, after which its keys exist. The first line prepares.
LIST, SET, SORTED = "RPUSH old a b", "SADD old a b", "ZADD old 1 a 2 b"
WRITES = {
    "SET": "SET new v", "SETEX": "SETEX new 10 v", "PSETEX": "PSETEX new 10000 v",
    "SETNX": "SETNX new v", "GETSET": "GETSET new v", "MSET": "MSET new v new2 v",
    "MSETNX": "MSETNX new v new2 v", "APPEND": "APPEND new v", "SETRANGE": "SETRANGE new 0 v",
    "SETBIT": "SETBIT new 0 1", "BITFIELD": "BITFIELD new SET u8 0 1", "INCR": "INCR new",
    "INCRBY": "INCRBY new 2", "INCRBYFLOAT": "INCRBYFLOAT new 2", "DECR": "DECR new",
    "DECRBY": "DECRBY new 2", "HSET": "HSET new f v", "HSETNX": "HSETNX new f v",
    "HMSET": "HMSET new f v", "HINCRBY": "HINCRBY new f 1",
    "HINCRBYFLOAT": "HINCRBYFLOAT new f 1", "LPUSH": "LPUSH new v", "RPUSH": "RPUSH new v",
    "SADD": "SADD new v", "ZADD": "ZADD new 1 v", "ZINCRBY": "ZINCRBY new 1 v",
    "GEOADD": "GEOADD new 1 1 v", "PFADD": "PFADD new v", "XADD": "XADD new * f v",
    "RESTORE": "RESTORE new 0 {dump}", "RESTORE-ASKING": "RESTORE-ASKING new 0 {dump}",
    "XGROUP": "XGROUP CREATE new g $ MKSTREAM", "HSETEX": "HSETEX new FIELDS 1 f v",
    "MSETEX": "MSETEX 2 new v new2 v", "VADD": "VADD new VALUES 1 1 v",
    "PFMERGE": ("PFADD old v", "PFMERGE new old"),
    "SDIFFSTORE": (SET, "SDIFFSTORE new old"), "SINTERSTORE": (SET, "SINTERSTORE new old"),
    "SUNIONSTORE": (SET, "SUNIONSTORE new old"),
    "ZDIFFSTORE": (SORTED, "ZDIFFSTORE new 1 old"),
    "ZINTERSTORE": (SORTED, "ZINTERSTORE new 1 old"),
    "ZUNIONSTORE": (SORTED, "ZUNIONSTORE new 1 old"),
    "ZRANGESTORE": (SORTED, "ZRANGESTORE new old 0 -1"),
    "GEOSEARCHSTORE": ("GEOADD old 1 1 v",
                       "GEOSEARCHSTORE new old FROMLONLAT 1 1 BYRADIUS 1 km"),
    "RENAME": (LIST, "RENAME old new"), "RENAMENX": (LIST, "RENAMENX old new"),
    "COPY": (LIST, "COPY old new"), "RPOPLPUSH": (LIST, "RPOPLPUSH old new"),
    "LMOVE": (LIST, "LMOVE old new LEFT LEFT"), "SMOVE": (SET, "SMOVE old new a"),
    "BITOP": ("SET old v", "BITOP NOT new old"),
    "EVAL": "EVAL return(redis.call('SET',KEYS[1],'v')) 1 new",
    "EVALSHA": "EVALSHA {sha} 1 new", "FCALL": "FCALL f 1 new",
    "SORT": (LIST, "SORT old ALPHA STORE new"),
    "GEORADIUS": ("GEOADD old 1 1 v", "GEORADIUS old 1 1 1 km STORE new"),
    "GEORADIUSBYMEMBER": ("GEOADD old 1 1 v", "GEORADIUSBYMEMBER old v 1 km STOREDIST new"),
}


@pytest.fixture
def wire(cache):
    with Wire(cache.port, timeout=30) as connection:
        yield connection


@pytest.fixture
def known(cache):
    """What COMMAND says of each command."""
    client = cache.client()
    client.response_callbacks.clear()
    return {row[0].decode().upper(): {"arity": row[1], "flags": row[2], "keys": row[3:6],
                                      "may_make": may_make(row)}
            for row in client.execute_command("COMMAND")}


def may_make(row):
    """Whether it may make a key exist, as its key specifications say, or those of its subcommands."""
    specs = row[8] if len(row) > 8 else []
    flags = [set(dict(zip(spec[::2], spec[1::2]))[b"flags"]) for spec in specs]
    return (any(b"OW" in each or (b"RW" in each and each & {b"insert", b"update"}) for each in flags)
            or any(may_make(inner) for inner in (row[9] if len(row) > 9 else [])))


def of_kind(table, *kinds):
    return [row for row in table.values() if row["kind"] in kinds]


def words_of(row):
    """A command line of this row, with a key that is missing."""
    arguments = READ_ARGUMENTS.get(row["name"], ["1"] * (abs(row["arity"]) - 2))
    return [row["name"], "new", *arguments]

LATER = """HEXPIRE HEXPIREAT HEXPIRETIME HGETDEL HGETEX HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL
    HSETEX HTTL MSETEX DELEX DELIFEQ DIGEST VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS
    VRANDMEMBER VRANGE VREM VSETATTR VSIM XACKDEL XCFGSET XDELEX""".split()


def test_every_row_names_a_command(table, known):
    bloom = {row["name"] for row in of_kind(table, "member", "admit", "filter")}
    unknown = {row["name"] for row in table.values()} - set(known) - bloom
    assert unknown <= {"POST", "HOST:", "WAITAOF", *LATER}


def test_every_command_is_in_the_table(table, known, cache):
    """What is not would cost each client that uses it a connection of its own."""
    if not cache.client().info("server")["redis_version"].startswith("7.0."):
        pytest.skip("the list is that of Redis 7.0")
    assert set(known) - set(table) <= {"ASKING"}


# Since 7.2 they take WITHSCORE, behind which a missing key is another kind of nil: that is forwarded.
MAY_HAVE_MORE = {"ZRANK", "ZREVRANK"}


def test_arity_is_what_redis_says(table, known):
    rows = [row for row in of_kind(table, "get", "mget", "exists", "read", "write", "local")
            if row["name"] in known]
    assert len(rows) > 90
    differing = {row["name"] for row in rows if row["arity"] != known[row["name"]]["arity"]}
    assert differing <= {*MAY_HAVE_MORE, "XGROUP", "VADD"}, "XGROUP HELP has no key, VADD is a module's"
    assert all(table[name]["arity"] == -known[name]["arity"] for name in differing & MAY_HAVE_MORE)


def test_key_positions_are_what_redis_says(table, known):
    for row in of_kind(table, "get", "mget", "exists", "read", "write"):
        if row["keys"][1] < -1 or row["name"] not in known:  # only the arguments tell
            continue
        if known[row["name"]]["keys"] == [0, 0, 0]:  # and those of its subcommands
            continue
        first, last, step = known[row["name"]]["keys"]
        if row["kind"] == "write" and row["keys"] == [2, 2, 1]:
            assert first <= 2 and last in (2, -1), row
        elif row["keys"] == [1, 1, 1]:
            assert first == 1 and step == 1, row
        else:
            assert row["keys"] == [first, last, step], row


@pytest.fixture(params=[2, 3])
def spoken(request, wire):
    """(connection, place in the table's pair of answers) for each protocol."""
    assert not wire.ask("HELLO", request.param).startswith(b"-")
    return wire, request.param - 2


def test_a_missing_key_is_answered_as_the_table_says(table, spoken):
    wire, protocol = spoken
    for row in of_kind(table, "get", "read"):
        if row["name"] != "HMGET":
            assert wire.ask(*words_of(row)) == row["absent"][protocol].encode(), words_of(row)


@pytest.mark.parametrize("line", READ_VARIANTS)
def test_a_missing_key_is_answered_the_same_whatever_is_asked_of_it(table, spoken, line):
    wire, protocol = spoken
    words = line.split()
    assert wire.ask(*words) == table[words[0]]["absent"][protocol].encode()


def test_reading_a_missing_key_changes_nothing(table, wire, cache):
    for row in of_kind(table, "get", "read"):
        wire.ask(*words_of(row))
    assert cache.client().dbsize() == 0


def test_a_command_that_reads_one_key_is_in_the_table_unless_its_reply_varies(table, known, cache):
    varying = {"BITFIELD_RO", "BITPOS", "GEOHASH", "GEOPOS", "HRANDFIELD", "LPOS",
               "SMISMEMBER", "SORT_RO", "SRANDMEMBER", "XPENDING", "ZMSCORE", "ZRANDMEMBER"}
    if not cache.client().info("server")["redis_version"].startswith("7.0."):
        pytest.skip("the list is that of Redis 7.0")
    reading = {name for name, command in known.items()
               if command["keys"] == [1, 1, 1] and b"readonly" in command["flags"]}
    answered = {name for name, row in table.items() if row["kind"] in ("get", "read", "mget", "exists")}
    assert reading - answered == varying


def prepared(line, wire):
    """The line's words; {dump} is a value as DUMP gives it, {sha} and f are scripts that set."""
    if "{sha}" in line:
        sha = wire.ask("SCRIPT", "LOAD", "return redis.call('SET', KEYS[1], 'v')")
        return line.replace("{sha}", sha.decode().split()[1]).split()
    if line.startswith("FCALL"):
        wire.ask("FUNCTION", "LOAD", "REPLACE", "#!lua name=l\nredis.register_function('f', "
                 "function(keys) return redis.call('SET', keys[1], 'v') end)")
    if "{dump}" not in line:
        return line.split()
    wire.ask("SET", "old", "v")
    dump = wire.ask("DUMP", "old").split(b"\r\n", 1)[1][:-2]
    return [dump if word == "{dump}" else word for word in line.split()]


def lines_of(row):
    lines = WRITES[row["name"]]
    return [lines] if isinstance(lines, str) else lines


def keys_of(row, words):
    if row["keys"][1] < -1:
        return ["new"]
    first, last, step = row["keys"]
    return words[first:(last if last > 0 else len(words) + last) + 1:step]


def test_after_a_write_its_keys_exist(table, wire, known):
    rows = of_kind(table, "write")
    assert {row["name"] for row in rows} == set(WRITES)
    for row in rows:
        if row["name"] not in known:
            continue
        wire.ask("FLUSHALL")
        *before, line = lines_of(row)
        for preparation in before:
            wire.ask(*preparation.split())
        words = prepared(line, wire)
        keys = keys_of(row, words)
        assert wire.ask("EXISTS", *keys) == b":0\r\n", line
        reply = wire.ask(*words)
        assert not reply.startswith(b"-"), (line, reply)
        assert wire.ask("EXISTS", *keys) == b":%d\r\n" % len(keys), line


# What may make a key by its description, and does not: of these each line is tried on a missing key.
MAKING_NOTHING = """
    EXPIRE new 10|EXPIREAT new 9999999999|PEXPIRE new 10|PEXPIREAT new 9999999999999|PERSIST new|
    GETEX new EX 10|LSET new 0 v|LINSERT new BEFORE a b|LPUSHX new v|RPUSHX new v|LTRIM new 0 1|
    XCLAIM new g c 0 1-1|XAUTOCLAIM new g c 0 0|XACK new g 1-1|XSETID new 1-1|XTRIM new MAXLEN 1|
    XDEL new 1-1|PFCOUNT new|PFDEBUG TODENSE new|HEXPIRE new 10 FIELDS 1 f|
    HEXPIREAT new 9999999999 FIELDS 1 f|HPEXPIRE new 10 FIELDS 1 f|
    HPEXPIREAT new 9999999999999 FIELDS 1 f|HPERSIST new FIELDS 1 f|HGETEX new EX 10 FIELDS 1 f|
    VSETATTR new v {}|XREADGROUP GROUP g c STREAMS new >|XCFGSET new IDMP-DURATION 1|MOVE new 1|
    MIGRATE 127.0.0.1 1 new 0 100|VCARD new|VDIM new|VEMB new v|VGETATTR new v|VINFO new|
    VISMEMBER new v|VLINKS new v|VRANDMEMBER new|VRANGE new - + 1|VREM new v|VSIM new VALUES 1 1"""
MAKING_NOTHING = {line.split()[0]: line.split() for line in MAKING_NOTHING.split("|")}


def test_what_may_make_a_key_is_a_write_unless_it_makes_none(table, known, wire):
    making = {name for name, row in known.items() if row["may_make"]}
    named = {name for name, row in table.items()
             if row["kind"] in ("write", "admit", "delete") or row["keys"][0]}
    assert making - named <= set(MAKING_NOTHING), making - named - set(MAKING_NOTHING)
    assert not named & set(MAKING_NOTHING) - {"GETEX"}
    for name in making & set(MAKING_NOTHING):
        wire.ask("FLUSHALL")
        wire.ask(*MAKING_NOTHING[name])
        assert wire.ask("EXISTS", "new") == b":0\r\n", name


@pytest.mark.parametrize("line", ["BLMOVE old new LEFT LEFT 1", "BRPOPLPUSH old new 1"])
def test_what_waits_for_a_value_makes_its_second_key(table, wire, line):
    name = line.split()[0]
    assert table[name]["kind"] == "stateful" and table[name]["keys"] == [2, 2, 1]
    wire.ask("FLUSHALL")
    wire.ask("RPUSH", "old", "v")
    wire.ask(*line.split())
    assert wire.ask("EXISTS", "new") == b":1\r\n"
