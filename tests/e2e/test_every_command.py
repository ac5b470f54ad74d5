"""Every command that the installed Redis documents, through the guard and directly: the same bytes
must come back, and the same data must be there afterwards.

Arguments are made at random from what COMMAND DOCS says of each command, for unguarded keys of every
type and for guarded keys that have no row, which a client must not be able to tell from keys that
Redis does not have; but where arguments are wrong, the guard does not look at them. What Redis itself answers differently each time (its own tips say so) is compared
by kind, and unordered answers without their order.
"""
import os
import random

import pytest

import servers
from servers import PATIENCE
from wire import Wire, command

SEED = int(os.environ.get("NESTGUARD_SEED", "1"))
ROUNDS = int(os.environ.get("NESTGUARD_ROUNDS", "5"))

# What cannot be asked twice and compared, each with its reason.
LEFT_OUT = {
    "SHUTDOWN": "ends the server",
    "FAILOVER": "needs replicas", "REPLICAOF": "changes the server's role",
    "SLAVEOF": "changes the server's role",
    "SYNC": "turns the connection into a replica's", "PSYNC": "likewise", "REPLCONF": "likewise",
    "MONITOR": "answers without end",
    "SUBSCRIBE": "answers once for each channel", "PSUBSCRIBE": "likewise",
    "SSUBSCRIBE": "likewise", "UNSUBSCRIBE": "likewise", "PUNSUBSCRIBE": "likewise",
    "SUNSUBSCRIBE": "likewise",
    "DEBUG": "crashes, sleeps and reloads", "PFDEBUG": "internal", "PFSELFTEST": "slow",
    "MIGRATE": "talks to other servers", "MODULE": "loads code",
    "SAVE": "forks or writes a file", "BGSAVE": "likewise", "BGREWRITEAOF": "likewise",
    "CONFIG": "changes the server for the tests that follow", "ACL": "likewise",
    "CLIENT KILL": "ends connections that are not its own", "CLIENT PAUSE": "stops the server",
    "CLIENT REPLY": "no answer is its answer",
    "CLIENT TRACKING": "refused with guarded keys", "CLIENT CACHING": "likewise",
    "CLIENT LIST": "other clients", "CLIENT INFO": "other connections",
    "CLIENT ID": "the guard's own numbers", "CLIENT TRACKINGINFO": "see CLIENT TRACKING",
    "CLIENT GETREDIR": "see CLIENT TRACKING", "CLIENT UNBLOCK": "the guard's own numbers",
    "CLUSTER": "not a cluster", "SCRIPT DEBUG": "turns the connection into a debugger's",
    "WAIT": "needs replicas", "INFO": "counts", "SLOWLOG": "times", "LATENCY": "times", "ROLE": "counts",
    "MEMORY": "depends on the allocator", "HELLO": "has tests of its own",
    "AUTH": "has tests of its own", "SWAPDB": "exchanges data that the guard has seen",
    "LOLWUT": "a drawing at random", "QUIT": "has tests of its own",
    "RESET": "has tests of its own",
}
KEYS = ["string", "number", "list", "set", "zset", "hash", "stream", "log", "geo", "none"]
GUARDED = ["item:901", "item:902"]
DATA = [
    ["SET", "string", "some text"], ["SET", "number", "41"], ["RPUSH", "list", "a", "b", "c"],
    ["SADD", "set", "1", "2", "3"], ["ZADD", "zset", "1", "a", "2", "b", "3", "c"],
    ["HSET", "hash", "a", "1", "b", "text"], ["XADD", "stream", "1-1", "a", "1"],
    ["XADD", "stream", "2-1", "b", "2"], ["XGROUP", "CREATE", "stream", "a", "0"],
    ["PFADD", "log", "a", "b"], ["GEOADD", "geo", "13.36", "38.11", "a", "15.08", "37.5", "b"],
]


def as_dict(flat):
    return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}


def ask(server, *words):
    connection = server.client(socket_timeout=PATIENCE).connection_pool.get_connection("_")
    try:
        connection.send_command(*words)
        return connection.read_response()
    finally:
        connection.disconnect()


def documented(server):
    """[(words, arguments, tips)] of every command and subcommand."""
    tips = {}

    def take_tips(row, prefix=()):
        name = row[0].decode().upper().split("|")
        tips[tuple(name)] = {tip.decode() for tip in row[7]}
        for sub in row[9]:
            take_tips(sub, prefix)
    for row in ask(server, "COMMAND"):
        take_tips(row)

    found = []

    def take(words, docs):
        docs = as_dict(docs)
        if "subcommands" in docs:
            for name, sub in zip(docs["subcommands"][::2], docs["subcommands"][1::2]):
                take(tuple(name.decode().upper().split("|")), sub)
        else:
            found.append((words, docs.get("arguments", []), tips.get(words, set())))
    flat = ask(server, "COMMAND", "DOCS")
    for name, docs in zip(flat[::2], flat[1::2]):
        take((name.decode().upper(),), docs)
    return sorted(found, key=lambda entry: entry[0])


class Maker:
    """Makes up arguments. Most make sense together; an error that both give is an answer, too."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, argument):
        kind, name = argument["type"].decode(), argument["name"].decode()
        pick = self.random.choice
        if kind == "key":
            return [pick(KEYS + 4 * GUARDED)]
        if kind == "string":
            return [pick(["a", "b", "c", "1", "some text", "0-1", "2-1", ""])]
        if kind == "integer":
            if name == "timeout" or argument.get("token") == b"BLOCK":
                return ["1"]
            if name in ("seconds", "milliseconds"):
                return ["100000"]  # what expires must not do so in between
            return [pick(["0", "1", "2", "-1", "7", "x"])]
        if kind == "double":
            return [pick(["0.01"] if name == "timeout" else ["1.5", "-2", "0", "+inf", "x"])]
        if kind == "pattern":
            return [pick(["*", "item:*", "s?t"])]
        if kind == "unix-time":
            return ["32503680000"]
        if kind == "pure-token":
            return []
        parts = [as_dict(part) for part in argument["arguments"]]
        if kind == "oneof":
            return self.argument(pick(parts), required=True)
        assert kind == "block", kind
        return [word for part in parts for word in self.argument(part)]

    def argument(self, argument, required=False):
        flags = {flag.decode() for flag in argument.get("flags", [])}
        if "optional" in flags and not required and self.random.random() < 0.6:
            return []
        token = [argument["token"].decode()] if "token" in argument else []
        words = []
        for turn in range(self.random.randint(1, 2) if "multiple" in flags else 1):
            if turn == 0 or "multiple_token" in flags:
                words += [word or '""' for word in token]
            words += self.value(argument)
        return words

    def words(self, name, arguments):
        made = [word for argument in arguments for word in self.argument(as_dict(argument))]
        return [*name, *made]


@pytest.fixture
def twin():
    """A Redis like the one behind the guard, to be asked directly."""
    server = servers.Redis().start()
    yield server
    server.stop()
    server.remove()


def comparable(reply, tips):
    if "nondeterministic_output" in tips:
        return reply[:1]
    if "nondeterministic_output_order" in tips:
        return sorted(reply.split(b"\r\n"))
    return reply


def is_a_word_of_clusters(words):
    """Valkey takes these without a cluster, too; the guard refuses them in Redis' words."""
    return words[0].upper() in ("READONLY", "READWRITE")


def is_refused_by_redis_alone(table, version, words, got, wanted):
    """Wrong arguments behind an absent key, where Redis looks at them first: of some commands it
    has done so since 7.2."""
    row = table.get(words[0], {"kind": None})
    return (row["kind"] == "read" and words[1:2] and words[1] in GUARDED
            and wanted[0].startswith(b"-ERR ") and got[1:] == wanted[1:]
            and got[0] == row["absent"][version - 2].encode())


def content(server):
    """Every database's keys with their serialised values, and whether they expire."""
    with server.client() as client:
        keys = client.keys("*")
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.type(key)
        kinds = pipe.execute()
        for key, kind in zip(keys, kinds):
            (pipe.smembers if kind == b"set" else pipe.dump)(key)
            pipe.ttl(key)
        found = pipe.execute()
    return {key: (value, ttl >= 0) for key, value, ttl in zip(keys, found[::2], found[1::2])}


def refill(*sides):
    for server in sides:
        with server.client() as client:
            pipe = client.pipeline(transaction=False)
            pipe.flushall()
            pipe.execute_command("FUNCTION", "FLUSH")
            for words in DATA:
                pipe.execute_command(*words)
            pipe.execute()


def both(pipelined, ours, theirs, words):
    """Asks both; a command must be the same with another behind it."""
    replies = []
    for side in (ours, theirs):
        side.send(command(*words) + (command("PING") if pipelined else b""))
        replies.append([side.read_reply() for _ in range(1 + pipelined)])
    return replies


@pytest.mark.parametrize("version", [2, 3])
def test_every_command_answers_as_redis_does(start_guard, cache, twin, items, table, version):
    guard = start_guard(items(), hint_ttl="1h")
    maker = Maker(SEED * 10 + version)
    wrong, asked = [], 0
    for name, arguments, tips in documented(twin):
        if name[0] in LEFT_OUT or " ".join(name) in LEFT_OUT:
            continue
        for _ in range(ROUNDS):
            refill(cache, twin)
            with guard.wire() as ours, Wire(twin.port, PATIENCE) as theirs:
                if version == 3:
                    ours.ask("HELLO", "3")
                    theirs.ask("HELLO", "3")
                first = maker.words(name, arguments)
                for words in [first, ["GET", "item:901"]]:
                    asked += 1
                    got, wanted = both(maker.random.random() < 0.5, ours, theirs, words)
                    if [comparable(part, tips) for part in got] != [
                            comparable(part, tips) for part in wanted
                    ] and not is_a_word_of_clusters(words) and not is_refused_by_redis_alone(table, version, words, got, wanted):
                        wrong.append(f"{first} {words[0]}: {got!r} instead of {wanted!r}")
            if "nondeterministic_output" not in tips and content(cache) != content(twin):
                wrong.append(f"{first}: other data")
    assert not wrong, f"seed {SEED}: {len(wrong)} of {asked}\n" + "\n".join(wrong[:400])
    assert asked > 1500
