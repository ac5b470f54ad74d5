"""CLIENT LIST, KILL, INFO and their kin speak of the guard's clients, on whichever worker these are,
and of none of its connections to the cache."""
import re
import socket

import pytest

from servers import PATIENCE
from waiting import wait_until
from wire import Wire, bulk, command

WORKERS = 3


@pytest.fixture
def guard(start_guard, items):
    return start_guard(items(), workers=WORKERS)


@pytest.fixture
def crowd(guard):
    """Clients on more than one worker."""
    wires = []
    def enough():
        wires.append(guard.wire())
        return len({number_of(wire) >> 40 for wire in wires}) > 1
    wait_until(enough, PATIENCE, "clients on two workers")
    yield wires
    for wire in wires:
        wire.close()


def number_of(wire):
    return int(wire.ask("CLIENT", "ID")[1:])


def rows_of(reply):
    """The lines of a CLIENT LIST as dicts."""
    text = re.sub(rb"^[$=]\d+\r\n(txt:)?", b"", reply)[:-2].decode()
    return [dict(word.split("=", 1) for word in line.split(" ")) for line in text.splitlines()]


def list_of(wire, *words):
    return rows_of(wire.ask("CLIENT", "LIST", *words))


def is_closed(wire):
    try:
        wire.send(command("PING"))
        return wire.read_until_closed() == b""
    except ConnectionError:
        return True


# ---- LIST and INFO ----

def test_all_clients_of_all_workers_are_listed_and_no_connection_of_the_guard(crowd, cache):
    rows = list_of(crowd[0])
    assert sorted(int(row["id"]) for row in rows) == sorted(number_of(wire) for wire in crowd)
    ends = {wire.socket.getsockname() for wire in crowd}
    assert {tuple(row["addr"].split(":")) for row in rows} == {(at, str(port)) for at, port in ends}
    assert {row["laddr"] for row in rows} == {"%s:%d" % crowd[0].socket.getpeername()}


# Of Redis 8 and of valkey.
NEWER_FIELDS = {"watch", "io-thread", "tot-net-in", "tot-net-out", "tot-cmds"}


def test_a_line_has_every_field_of_redis_in_its_order(guard, cache):
    with guard.wire() as wire, Wire(cache.port, PATIENCE) as plain:
        theirs = list(list_of(plain)[0])
        ours = list(list_of(wire)[0])
        assert [name for name in ours if name in theirs] == [name for name in theirs if name in ours]
        assert set(theirs) - set(ours) <= NEWER_FIELDS
        assert ours[-2:] == ["lib-name", "lib-ver"]


def test_a_line_says_what_the_client_is_and_does(guard):
    with guard.wire() as wire, guard.wire() as other:
        wire.ask("CLIENT", "SETNAME", "me")
        wire.ask("CLIENT", "SETINFO", "LIB-NAME", "lib")
        wire.ask("CLIENT", "SETINFO", "LIB-VER", "1.2")
        mine = str(number_of(wire))
        wire.ask("GET", "item:1")
        row = list_of(other, "ID", mine)[0]
        assert (row["id"], row["name"], row["flags"], row["db"], row["multi"], row["cmd"],
                row["user"], row["redir"], row["resp"], row["lib-name"], row["lib-ver"]) == \
            (mine, "me", "N", "0", "-1", "get", "default", "-1", "2", "lib", "1.2")
        assert rows_of(wire.ask("CLIENT", "INFO"))[0]["cmd"] == "client|info"
        wire.send(command("MULTI") + command("GET", "plain") + command("GET", "plain"))
        wire.read_replies(3)
        row = list_of(other, "ID", mine)[0]
        assert (row["flags"], row["multi"]) == ("x", "2")
        wire.ask("DISCARD")
        wire.ask("SELECT", "3")
        assert list_of(other, "ID", mine)[0]["db"] == "3"
        wire.ask("SELECT", "0")
        wire.send(command("BLPOP", "list", 0))
        wait_until(lambda: list_of(other, "ID", mine)[0]["flags"] == "b", PATIENCE, "the b")
        other.ask("LPUSH", "list", "x")
        wire.read_reply()
        wire.ask("HELLO", "3")
        wire.ask("SUBSCRIBE", "a")
        row = list_of(other, "TYPE", "pubsub")[0]
        assert (row["id"], row["flags"], row["sub"], row["resp"]) == (mine, "P", "1", "3")
        assert [row["id"] for row in list_of(other, "TYPE", "normal")] == [str(number_of(other))]
        assert list_of(other, "TYPE", "replica") == list_of(other, "TYPE", "master") == []
        assert wire.ask("CLIENT", "LIST").startswith(b"=")


def test_a_unix_socket_goes_by_its_path(start_guard, items, tmp_path):
    start_guard(items(), listen=[f"unix:{tmp_path}/s"])
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(f"{tmp_path}/s")
        plain.sendall(command("CLIENT", "INFO"))
        wait_until(lambda: b"\n\r\n" in plain.recv(4096, socket.MSG_PEEK), PATIENCE, "the reply")
        row = rows_of(plain.recv(4096))[0]
        assert (row["addr"], row["laddr"], row["flags"]) == (f"{tmp_path}/s:0", f"{tmp_path}/s:0", "U")


def test_ids_that_there_are_not_are_left_out(guard):
    with guard.wire() as wire:
        mine = str(number_of(wire))
        assert [row["id"] for row in list_of(wire, "ID", "999999", mine, "0")] == [mine]
        assert list_of(wire, "ID", "999999") == []


@pytest.mark.parametrize("line", [
    "LIST FOO", "LIST TYPE", "LIST TYPE foo", "LIST ID", "LIST ID x", "KILL a b", "KILL TYPE foo",
    "KILL ID x", "KILL ID 0", "KILL SKIPME maybe", "KILL 1.2.3.4:5", "KILL ADDR 1:2 LADDR",
    "KILL ID 999999", "KILL ADDR 1.2.3.4:5", "NO-EVICT what", "GETREDIR", "UNBLOCK 999999", "KILL",
    "UNBLOCK x", "TRACKING ON REDIRECT x"])
def test_errors_are_those_of_redis(guard, cache, line):
    with guard.wire() as wire, Wire(cache.port, PATIENCE) as plain:
        words = ["CLIENT", *line.split()]
        assert wire.ask(*words) == plain.ask(*words)


# ---- KILL ----

def test_others_go_on_when_normal_clients_are_killed(guard, cache):
    """In Redis that would end the connections that many clients share."""
    with guard.wire() as admin, guard.wire() as victim, guard.wire() as watching:
        number_of(victim)
        assert watching.ask("SUBSCRIBE", "news")
        shared = guard.status()["shared_connections"]
        assert admin.ask("CLIENT", "KILL", "TYPE", "normal") == b":1\r\n"
        assert is_closed(victim)
        assert admin.ask("GET", "plain") == bulk(None)
        cache.client().publish("news", "x")
        assert b"message" in watching.read_reply()
        assert guard.status()["shared_connections"] == shared
        assert guard.total("nestguard_upstream_failures_total") == 0


def test_a_client_on_any_worker_is_killed_by_its_id(crowd):
    for wire in crowd[1:]:
        assert crowd[0].ask("CLIENT", "KILL", "ID", number_of(wire)) == b":1\r\n"
        assert is_closed(wire)
    assert len(list_of(crowd[0])) == 1


def test_each_filter_means_what_it_says(guard):
    with guard.wire() as admin, guard.wire() as victim:
        mine = number_of(victim)
        at, to = ("%s:%d" % end for end in (victim.socket.getsockname(), victim.socket.getpeername()))
        for words in (["ADDR", "1.2.3.4:5"], ["LADDR", "1.2.3.4:5"], ["USER", "nobody"],
                      ["TYPE", "pubsub"], ["MAXAGE", 3600], ["ADDR", at, "TYPE", "replica"],
                      ["ID", mine, "LADDR", "1.2.3.4:5"]):
            assert admin.ask("CLIENT", "KILL", *words) == b":0\r\n", words
        assert victim.ask("PING") == b"+PONG\r\n"
        assert admin.ask("CLIENT", "KILL", "ID", mine, "ADDR", at, "LADDR", to, "USER", "default",
                         "TYPE", "normal", "SKIPME", "yes") == b":1\r\n"
        assert is_closed(victim)


def test_the_old_form_of_kill(guard):
    with guard.wire() as admin, guard.wire() as victim:
        number_of(victim)
        assert admin.ask("CLIENT", "KILL", "%s:%d" % victim.socket.getsockname()) == b"+OK\r\n"
        assert is_closed(victim)
        assert admin.ask("CLIENT", "KILL", "%s:%d" % admin.socket.getsockname()) == b"+OK\r\n"
        assert admin.read_until_closed() == b""


def test_maxage_means_those_who_are_older(guard):
    with guard.wire() as admin, guard.wire() as victim:
        mine = str(number_of(victim))
        wait_until(lambda: int(list_of(admin, "ID", mine)[0]["age"]) >= 1, PATIENCE, "its age")
        with guard.wire() as young:
            number_of(young)
            assert admin.ask("CLIENT", "KILL", "MAXAGE", 1) == b":1\r\n"
            assert is_closed(victim) and young.ask("PING") == b"+PONG\r\n"


def test_who_kills_itself_gets_the_reply(guard):
    with guard.wire() as wire, guard.wire() as other:
        number_of(other)
        wire.send(command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no") + command("PING"))
        assert wire.read_until_closed() == b":2\r\n"
        assert is_closed(other)


@pytest.mark.parametrize("words, said", [
    ([""], b"-ERR No such client\r\n"), (["x" * 100_000], b"-ERR No such client\r\n"),
    (["ADDR", ""], b":0\r\n"), (["LADDR", ""], b":0\r\n"), (["USER", ""], b":0\r\n"),
    (["USER", "x" * 100_000], b":0\r\n")], ids=lambda words: str(words)[:20])
def test_what_is_empty_or_too_long_is_nobodys(guard, words, said):
    with guard.wire() as wire, guard.wire() as other:
        number_of(other)
        assert wire.ask("CLIENT", "KILL", *words) == said
        assert other.ask("PING") == wire.ask("PING") == b"+PONG\r\n"


def test_a_blocked_client_and_one_in_a_transaction_are_killed(guard, cache):
    with guard.wire() as admin, guard.wire() as blocked, guard.wire() as multi:
        blocked.send(command("BLPOP", "list", 0))
        multi.ask("MULTI")
        wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 1, PATIENCE, "it")
        assert admin.ask("CLIENT", "KILL", "TYPE", "normal") == b":2\r\n"
        assert blocked.read_until_closed() == b"" and is_closed(multi)
        wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 0, PATIENCE, "its end")


def test_in_a_transaction_no_client_of_the_cache_is_meant(guard, cache):
    for line in ("KILL TYPE normal", "LIST", "INFO", "ID"):
        with guard.wire() as wire:
            wire.ask("MULTI")
            assert wire.ask("CLIENT", *line.split()).startswith(b"-NESTGUARD unsupported")
            assert wire.ask("EXEC").startswith(b"-EXECABORT")


def test_a_monitor_kills_no_connection_of_the_cache(guard, cache):
    with guard.wire() as wire, guard.wire() as other:
        number_of(other)
        wire.ask("MONITOR")
        wire.send(command("CLIENT", "KILL", "TYPE", "normal"))
        wait_until(lambda: wire.read_reply() == b":1\r\n", PATIENCE, "the count")
        assert is_closed(other)
        assert guard.total("nestguard_upstream_failures_total") == 0


# ---- who may ----

def test_strangers_are_told_nothing(start_guard, items):
    guard = start_guard(items(), password="sesame")
    with guard.wire() as wire:
        for line in ("LIST", "INFO", "ID", "GETNAME", "SETNAME x", "KILL TYPE normal", "GETREDIR",
                     "UNBLOCK 1", "NO-EVICT ON"):
            assert wire.ask("CLIENT", *line.split()).startswith(b"-NOAUTH "), line


@pytest.fixture
def limited(cache):
    admin = cache.client()
    admin.acl_setuser("limited", enabled=True, passwords="+pw", keys=["*"],
                      categories=["+@all"], commands=["-client"])
    yield
    admin.acl_deluser("limited")


def test_whom_redis_denies_client_is_denied_it_here(guard, limited):
    with guard.wire() as wire, guard.wire() as other:
        number_of(other)
        assert wire.ask("AUTH", "limited", "pw") == b"+OK\r\n"
        for line in ("LIST", "INFO", "ID", "GETNAME", "SETNAME x", "KILL TYPE normal", "GETREDIR",
                     "UNBLOCK 1", "NO-EVICT ON", "TRACKING ON REDIRECT 1"):
            assert wire.ask("CLIENT", *line.split()).startswith(b"-NOPERM "), line
        assert other.ask("PING") == b"+PONG\r\n"
        row = next(row for row in list_of(other) if row["user"] == "limited")
        assert row["name"] == ""
        assert other.ask("CLIENT", "KILL", "USER", "limited") == b":1\r\n"
        assert is_closed(wire)


def test_the_guards_own_user_is_held_to_what_redis_allows_it(start_guard, items, cache, limited):
    guard = start_guard(items(), cache=cache.url.replace("redis://", "redis://limited:pw@"))
    with guard.wire() as wire, guard.wire() as other:
        number_of(other)
        assert wire.ask("CLIENT", "LIST").startswith(b"-NOPERM ")
        assert wire.ask("CLIENT", "KILL", "TYPE", "normal").startswith(b"-NOPERM ")
        assert other.ask("PING") == b"+PONG\r\n"


def test_a_user_is_known_by_the_name_that_the_cache_took(guard, cache):
    cache.client().acl_setuser("someone", enabled=True, passwords="+pw", keys=["*"],
                               categories=["+@all"])
    try:
        with guard.wire() as wire:
            wire.ask("AUTH", "someone", "wrong")
            assert list_of(wire)[0]["user"] == "default"
            wire.ask("AUTH", "someone", "pw")
            row = list_of(wire)[0]
            assert row["user"] == "someone" and int(row["id"]) == number_of(wire)
            assert wire.ask("CLIENT", "SETNAME", "me") == b"+OK\r\n"
            assert wire.ask("CLIENT", "GETNAME") == bulk("me")
            assert wire.ask("CLIENT", "SETINFO", "LIB-NAME", "l") == b"+OK\r\n"
            assert list_of(wire)[0]["lib-name"] == "l"
            wire.ask("RESET")
            assert (list_of(wire)[0]["user"], list_of(wire)[0]["name"]) == ("default", "")
            wire.ask("HELLO", "3", "AUTH", "someone", "pw")
            assert list_of(wire)[0]["user"] == "someone"
    finally:
        cache.client().acl_deluser("someone")


def test_without_the_cache_nobody_can_say_who_may_ask(guard, cache):
    with guard.wire() as wire, guard.wire() as other:
        number_of(other)
        cache.stop()
        assert wire.ask("CLIENT", "KILL", "TYPE", "normal").startswith(b"-NESTGUARD cache down")
        assert wire.ask("CLIENT", "LIST").startswith(b"-NESTGUARD cache down")
        assert wire.ask("CLIENT", "ID").startswith(b":") and other.ask("CLIENT", "ID")[:1] == b":"


# ---- others by their ids ----

def test_a_blocked_client_is_unblocked_by_its_id(guard, cache):
    with guard.wire() as admin, guard.wire() as blocked:
        mine = number_of(blocked)
        assert admin.ask("CLIENT", "UNBLOCK", mine) == b":0\r\n"
        blocked.send(command("BLPOP", "list", 0))
        wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 1, PATIENCE, "it")
        assert admin.ask("CLIENT", "UNBLOCK", mine, "ERROR") == b":1\r\n"
        assert blocked.read_reply().startswith(b"-UNBLOCKED ")


def test_tracking_redirects_to_a_client_of_the_guard(guard, cache):
    with guard.wire() as target, guard.wire() as wire:
        number = number_of(target)
        assert wire.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number).startswith(
            b"-ERR The client ID you want redirect to does not exist"), "it has not subscribed"
        target.ask("SUBSCRIBE", "__redis__:invalidate")
        assert wire.ask("CLIENT", "GETREDIR") == b":-1\r\n"
        assert wire.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number) == b"+OK\r\n"
        assert wire.ask("CLIENT", "GETREDIR") == b":%d\r\n" % number
        for refused in (["REDIRECT", "999999"], ["REDIRECT", str(number), "NONSENSE"]):
            assert wire.ask("CLIENT", "TRACKING", "ON", *refused).startswith(b"-ERR")
            assert wire.ask("CLIENT", "GETREDIR") == b":%d\r\n" % number, "as it was before"
        assert int(rows_of(wire.ask("CLIENT", "INFO"))[0]["redir"]) == number
        wire.ask("GET", "plain")
        cache.client().set("plain", "x")
        assert target.read_reply() == b"*3\r\n" + bulk("message") + bulk("__redis__:invalidate") \
            + b"*1\r\n" + bulk("plain")
        assert wire.ask("GET", "item:1").startswith(b"-NESTGUARD tracking")
        assert wire.ask("CLIENT", "TRACKING", "OFF") == b"+OK\r\n"
        assert wire.ask("CLIENT", "GETREDIR") == b":-1\r\n"


def own_connections(guard):
    return guard.status()["own_connections"]


INVALIDATED = (b"*3\r\n" + bulk("message") + bulk("__redis__:invalidate") + b"*1\r\n" + bulk("plain"),
               b">2\r\n" + bulk("invalidate") + b"*1\r\n" + bulk("plain"))


@pytest.mark.parametrize("state, end, again, heard", [
    (["SUBSCRIBE", "__redis__:invalidate"], ["UNSUBSCRIBE"], ["SUBSCRIBE", "__redis__:invalidate"],
     INVALIDATED[0]),
    (["WATCH", "k"], ["UNWATCH"], ["PING"], INVALIDATED[1])], ids=["subscribes", "watches"])
@pytest.mark.parametrize("leaves", ["ends its tracking", "resets", "goes"])
def test_the_connection_of_who_is_redirected_to_is_kept(crowd, guard, cache, state, end, again, heard,
                                                        leaves):
    with guard.wire() as target, guard.wire() as idle:
        number = number_of(target)
        first = next(wire for wire in crowd if number_of(wire) >> 40 != number >> 40)
        if state[0] == "WATCH":
            target.ask("HELLO", 3)
        target.ask(*state)
        assert first.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number) == b"+OK\r\n"
        target.ask(*end)
        idle.ask("WATCH", "k")
        idle.ask("UNWATCH")
        wait_until(lambda: own_connections(guard) < 3, PATIENCE, "an idle connection to be given back")
        assert own_connections(guard) == 2
        target.ask(*again)
        assert first.ask("GET", "plain") == bulk(None)
        cache.client().set("plain", "x")
        assert target.read_reply() == heard
        target.ask(*end)
        if leaves == "goes":
            first.close()
        else:
            first.ask(*(["CLIENT", "TRACKING", "OFF"] if leaves == "ends its tracking" else ["RESET"]))
        wait_until(lambda: own_connections(guard) == 0, PATIENCE, "nobody's being needed")
        assert target.ask("PING") == b"+PONG\r\n"


def test_who_tracks_in_resp3_hears_that_the_redirection_is_broken(guard, cache):
    with guard.wire() as target, guard.wire() as wire:
        number = number_of(target)
        wire.ask("HELLO", 3)
        target.ask("SUBSCRIBE", "__redis__:invalidate")
        assert wire.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number) == b"+OK\r\n"
        wire.ask("GET", "plain")
        assert target.ask("RESET") == b"+RESET\r\n"
        cache.client().set("plain", "x")
        assert wire.read_reply().startswith(b">2\r\n$21\r\ntracking-redir-broken\r\n:")


def test_no_evict_is_the_clients_and_needs_no_connection(guard):
    with guard.wire() as wire:
        assert wire.ask("CLIENT", "NO-EVICT", "ON") == b"+OK\r\n"
        assert rows_of(wire.ask("CLIENT", "INFO"))[0]["flags"] == "e"
        assert wire.ask("MULTI") == b"+OK\r\n" and wire.ask("DISCARD") == b"+OK\r\n"
        assert wire.ask("CLIENT", "NO-EVICT", "OFF") == b"+OK\r\n"
        assert rows_of(wire.ask("CLIENT", "INFO"))[0]["flags"] == "N"


def test_a_client_that_leaves_before_its_answer_harms_nobody(guard):
    with guard.wire() as other:
        for line in ("LIST", "KILL ID 5", "UNBLOCK 5", "KILL TYPE pubsub"):
            for _ in range(20):
                with guard.wire() as wire:
                    wire.send(command("CLIENT", *line.split()))
        wait_until(lambda: len(list_of(other)) == 1, PATIENCE, "their end")


def test_replies_stay_in_order_around_a_question_to_all(guard):
    with guard.wire() as wire:
        wire.send((command("GET", "item:1") + command("CLIENT", "LIST") + command("GET", "item:101")
                   + command("CLIENT", "KILL", "ID", 99) + command("PING")) * 20)
        for _ in range(20):
            assert wire.read_reply() == bulk("payload 1")
            assert len(rows_of(wire.read_reply())) == 1
            assert wire.read_reply() == bulk(None)
            assert wire.read_replies(2) == b":0\r\n+PONG\r\n"
