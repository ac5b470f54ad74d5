"""Every command that the installed Redis documents, through the guard to a cluster and to one Redis
asked directly: the same bytes must come back, and the same data must be there afterwards. All keys
have one hash tag: what becomes of several slots is test_cluster.py's."""
import pytest

import test_every_command as single
from following import follow  # a fixture
from servers import PATIENCE
from test_every_command import twin  # a fixture
from wire import Wire

# What a cluster answers otherwise than one server, each with its reason.
OTHERWISE = {
    "SELECT": "a cluster has one database", "MOVE": "likewise",
    "SCAN": "a cursor tells the node, too",
    "PUBSUB": "each node knows of its own clients alone",
    "WAITAOF": "counts each node's own log",
    "FUNCTION STATS": "of one node",
}
TAG = "{t}"


def tagged(words):
    """Those of DATA: the key is the second word, or behind a subcommand the third."""
    at = 2 if words[0] == "XGROUP" else 1
    return words[:at] + [TAG + words[at]] + words[at + 1:]


@pytest.fixture
def one_tag(monkeypatch):
    monkeypatch.setattr(single, "KEYS", [TAG + key for key in single.KEYS])
    monkeypatch.setattr(single, "GUARDED", [TAG + key for key in single.GUARDED])
    monkeypatch.setattr(single, "DATA", [tagged(words) for words in single.DATA])


# What a cluster refuses and one server does not, in its own words or the guard's.
REFUSED = {
    "SORT": "BY and GET may name keys of any slot", "SORT_RO": "likewise",
    "COPY": "a cluster has one database",
}
MOST_CROSSED = 5  # words that count as keys, and have no tag


def refusal(reply):
    return reply.startswith((b"-ERR BY option", b"-ERR GET option",
                             b"-ERR Copying to another database",
                             b"-ERR DB index is out of range")) or b"in cluster mode" in reply


@pytest.mark.parametrize("version", [2, 3])
def test_every_command_answers_as_one_redis_does(follow, cluster, twin, items, table, one_tag,
                                                 version):
    guard = follow(items(key="{{t}}item:{id}"), cache=cluster.url, hint_ttl="1h")
    home = cluster.node_of(TAG)
    maker = single.Maker(single.SEED * 10 + version)
    wrong, asked, crossed = [], 0, 0
    for name, arguments, tips in single.documented(twin):
        left_out = {**single.LEFT_OUT, **OTHERWISE}
        if name[0] in left_out or " ".join(name) in left_out:
            continue
        for _ in range(2):
            for node in cluster.primaries:
                with node.client() as client:
                    client.pipeline(transaction=False).flushall().execute_command("FUNCTION", "FLUSH").execute()
            single.refill(home, twin)
            first = maker.words(name, arguments)
            pipelined = maker.random.random() < 0.5
            with guard.wire() as ours, Wire(twin.port, PATIENCE) as theirs:
                if version == 3:
                    ours.ask("HELLO", "3")
                    theirs.ask("HELLO", "3")
                asked += 1
                got, wanted = single.both(pipelined, ours, theirs, first)
            if refusal(got[0]) and name[0] in REFUSED:
                continue
            if got[0].startswith(b"-CROSSSLOT"):
                crossed += 1
                continue
            if [single.comparable(part, tips) for part in got] != [
                    single.comparable(part, tips) for part in wanted] and \
                    not single.is_a_word_of_clusters(first) and \
                    not single.is_refused_by_redis_alone(table, version, first, got, wanted):
                wrong.append(f"{first}: {got!r} instead of {wanted!r}")
            if "nondeterministic_output" not in tips and single.content(home) != single.content(twin):
                wrong.append(f"{first}: other data")
    assert not wrong, f"{len(wrong)} of {asked}\n" + "\n".join(wrong[:400])
    assert crossed <= MOST_CROSSED
    assert asked > 400
