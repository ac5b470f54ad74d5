"""A row is updated while its old value is on the way to the cache, and where no log tells of that the
application says so: by whatever takes the key out of the cache.
"""
import pytest

from changes import CLIENTS, update
from gate import POSTGRES_READY
from servers import PATIENCE
from test_races import gated_guard, gates, wait_settled
from waiting import wait_until
from wire import command

KEY = "item:20"
ONE_KEY = [f"EXPIRE {KEY} 0", f"PEXPIRE {KEY} -1", f"EXPIREAT {KEY} 1", f"PEXPIREAT {KEY} 1",
           f"GETEX {KEY} EXAT 1", f"GETEX {KEY} PXAT 1", f"MOVE {KEY} 1"]
ALL_KEYS = ["FLUSHALL", "FLUSHDB ASYNC", "SWAPDB 0 1"]


def say(guard, line):
    with guard.wire() as wire:
        return wire.ask(*line.split())


@pytest.fixture
def begin_loading(database, threads):
    """The lookup whose old value is held between database and guard."""
    def begin(guard, gate):
        gate.hold_answers(b"payload 20")
        lookup = threads.submit(guard.redis().get, KEY)
        gate.wait_held(POSTGRES_READY)
        update(database, 20, "new")
        return lookup
    return begin


@pytest.fixture
def loading(gated_guard, begin_loading):
    """(guard, gate, lookup)"""
    guard, gate = gated_guard(sync="poll", workers=4)
    return guard, gate, begin_loading(guard, gate)


@pytest.fixture
def filling(gates, start_guard, database, cache, items):
    """(guard, gate): the old value is held between guard and cache."""
    gate = gates(cache.port)
    guard = start_guard(items(), cache=f"redis://127.0.0.1:{gate.port}/0", cache_timeout="60s",
                        sync="poll")
    gate.hold_requests(b"payload 20")
    assert guard.redis().get(KEY) == b"payload 20"
    gate.wait_held()
    update(database, 20, "new")
    return guard, gate


def must_give_the_new_row(guard, gate, lookup):
    gate.release()
    assert lookup.result(PATIENCE) in (b"payload 20", b"new")
    wait_settled(guard, KEY)
    assert [guard.redis().get(KEY) for _ in range(CLIENTS)] == [b"new"] * CLIENTS


@pytest.mark.parametrize("line", ONE_KEY + ALL_KEYS)
def test_what_is_being_loaded_is_not_filled_behind(loading, line):
    say(loading[0], line)
    must_give_the_new_row(*loading)


@pytest.mark.parametrize("name", ["RENAME", "RENAMENX"])
def test_nor_behind_a_key_that_was_renamed(loading, cache, name):
    cache.client().set(KEY, "mine")
    assert not say(loading[0], f"{name} {KEY} other").startswith(b"-")
    must_give_the_new_row(*loading)


@pytest.mark.parametrize("line", ["MIGRATE 127.0.0.1 {} " + KEY + " 1 5000",
                                  "MIGRATE 127.0.0.1 {} \"\" 1 5000 REPLACE KEYS item:2 " + KEY])
def test_nor_behind_a_key_that_was_moved_away(loading, cache, line):
    with loading[0].wire() as wire:
        words = [word.replace('""', "") for word in line.format(cache.port).split()]
        assert wire.ask(*words) == b"+NOKEY\r\n"
    must_give_the_new_row(*loading)


@pytest.mark.parametrize("line", ALL_KEYS)
def test_nor_behind_a_transaction_that_clears_the_cache(loading, line):
    with loading[0].wire() as wire:
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask(*line.split()) == b"+QUEUED\r\n"
        assert wire.ask("EXEC").startswith(b"*1\r\n")
    must_give_the_new_row(*loading)


def test_nor_behind_a_flush_from_another_database(loading):
    with loading[0].wire() as wire:
        assert wire.ask("SELECT", "1") == b"+OK\r\n"
        assert wire.ask("FLUSHALL") == b"+OK\r\n"
    must_give_the_new_row(*loading)


@pytest.mark.parametrize("line", [f"SET {KEY} new XX", f"SET {KEY} new EXAT 1", f"SUNIONSTORE {KEY} none",
                                  f"BITOP AND {KEY} none"])
def test_nor_behind_a_write_that_made_nothing(loading, line):
    """Who refreshes what is cached has changed the row, also where nothing was cached yet."""
    say(loading[0], line)
    must_give_the_new_row(*loading)


@pytest.mark.parametrize("line", [f"EXPIRE {KEY} 60", f"GETEX {KEY} EX 60", f"PEXPIREAT {KEY} 9999999999999",
                                  f"MIGRATE 127.0.0.1 1 {KEY} 1 50 COPY"])
def test_what_leaves_the_key_alone_lets_it_be_filled(loading, cache, line):
    guard, gate, lookup = loading
    say(guard, line)
    gate.release()
    assert lookup.result(PATIENCE) == b"payload 20"
    wait_settled(guard, KEY)
    assert cache.client().get(KEY) == b"payload 20"


@pytest.mark.parametrize("line", ONE_KEY + ALL_KEYS)
def test_nothing_overtakes_a_fill_on_its_way(filling, cache, threads, line):
    """What clears all is held back in the guard for that."""
    guard, gate = filling
    said = threads.submit(say, guard, line)
    name = line.split()[0].lower()
    wait_until(lambda: cache.calls(name) > 0 or line in ALL_KEYS
               and any(client["cmd"] == name for client in guard.redis().client_list()), PATIENCE, line)
    assert line not in ALL_KEYS or not cache.calls(name)
    gate.release()
    said.result(PATIENCE)
    assert [guard.redis().get(KEY) for _ in range(CLIENTS)] == [b"new"] * CLIENTS


def test_what_is_sent_behind_a_flush_stays(loading, cache):
    guard, gate, _ = loading
    with guard.wire() as wire:
        wire.send(command("FLUSHALL") + command("SET", KEY, "mine") + command("PING"))
        assert wire.read_replies(3) == b"+OK\r\n+OK\r\n+PONG\r\n"
    gate.release()
    wait_settled(guard, KEY)
    assert cache.client().get(KEY) == b"mine"


DELETIONS = ["DEL item:1 " + KEY, f"UNLINK {KEY}", f"GETDEL {KEY}", f"EXPIRE {KEY} 0"]


def in_transaction(wire, line):
    assert wire.ask("MULTI") == b"+OK\r\n"
    assert wire.ask(*line.split()) == b"+QUEUED\r\n"


@pytest.mark.parametrize("line", DELETIONS)
def test_nor_behind_a_transaction_that_deletes_the_key(loading, line):
    with loading[0].wire() as wire:
        in_transaction(wire, line)
        assert wire.ask("EXEC").startswith(b"*1\r\n")
    must_give_the_new_row(*loading)


@pytest.mark.parametrize("line", DELETIONS)
def test_nor_if_it_was_loaded_since_the_deletion_was_queued(gated_guard, begin_loading, line):
    guard, gate = gated_guard(sync="poll", workers=4)
    with guard.wire() as wire:
        in_transaction(wire, line)
        lookup = begin_loading(guard, gate)
        assert wire.ask("EXEC").startswith(b"*1\r\n")
    must_give_the_new_row(guard, gate, lookup)


@pytest.mark.parametrize("line", DELETIONS)
def test_no_transaction_overtakes_a_fill_on_its_way(filling, cache, threads, line):
    guard, gate = filling
    with guard.wire() as wire:
        in_transaction(wire, line)
        executed = threads.submit(wire.ask, "EXEC")
        wait_until(lambda: cache.calls("exec") > 0, PATIENCE, "EXEC")
        gate.release()
        assert executed.result(PATIENCE).startswith(b"*1\r\n")
    assert [guard.redis().get(KEY) for _ in range(CLIENTS)] == [b"new"] * CLIENTS


def test_more_deletions_than_are_remembered_are_of_all_keys(gated_guard, begin_loading):
    guard, gate = gated_guard(sync="poll", workers=4)
    with guard.wire() as wire:
        in_transaction(wire, "DEL " + " ".join(f"item:{n}" for n in range(100000, 106000)))
        assert wire.ask("DEL", KEY) == b"+QUEUED\r\n"
        lookup = begin_loading(guard, gate)
        assert wire.ask("EXEC").startswith(b"*2\r\n")
    must_give_the_new_row(guard, gate, lookup)


def test_a_transaction_that_is_not_executed_deletes_nothing(loading, cache):
    guard, gate, _ = loading
    with guard.wire() as wire:
        assert wire.ask("WATCH", "other") == b"+OK\r\n"
        in_transaction(wire, f"DEL {KEY}")
        cache.client().mset({"other": "changed", KEY: "mine"})
        assert wire.ask("EXEC") == b"*-1\r\n"
    gate.release()
    wait_settled(guard, KEY)
    assert cache.client().get(KEY) == b"mine"


@pytest.mark.parametrize("made, read, value", [(f"SET {KEY} mine", f"GET {KEY}", b"$4\r\nmine\r\n"),
                                               (f"HSET {KEY} field mine", f"HGET {KEY} field",
                                                b"$4\r\nmine\r\n")])
def test_what_a_transaction_makes_again_stays(loading, cache, made, read, value):
    """Of a key that is being loaded a deletion is repeated behind fills, but not behind this."""
    guard, gate, _ = loading
    with guard.wire() as wire:
        for line in ("MULTI", f"DEL {KEY}", made, "EXEC"):
            reply = wire.ask(*line.split())
        assert reply.startswith(b"*2\r\n")
        gate.release()
        wait_settled(guard, KEY)
        assert wire.ask(*read.split()) == value


def test_a_key_that_is_renamed_to_itself_stays(loading, cache):
    guard, gate, _ = loading
    cache.client().set(KEY, "mine")
    assert say(guard, f"RENAME {KEY} {KEY}") == b"+OK\r\n"
    gate.release()
    wait_settled(guard, KEY)
    assert cache.client().get(KEY) == b"mine"
