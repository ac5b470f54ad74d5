"""A Redis that lacks what newer ones have. None of that age is in the distribution, so its commands are
taken from the one that is there: the guard asks what it needs when it connects, and goes by the
answers, not by a version."""
import pytest
import redis

from beside import Pair
from servers import PATIENCE, Redis
from waiting import wait_until

SINCE_7_0 = ["FUNCTION", "FCALL", "FCALL_RO", "SSUBSCRIBE", "SUNSUBSCRIBE", "SPUBLISH", "EXPIRETIME",
             "PEXPIRETIME", "LCS", "SINTERCARD", "ZMPOP", "BZMPOP", "LMPOP", "BLMPOP", "EVAL_RO",
             "EVALSHA_RO", "SORT_RO"]
SINCE_6_2 = ["GETEX", "GETDEL", "COPY", "LMOVE", "BLMOVE", "SMISMEMBER", "ZMSCORE", "ZRANDMEMBER",
             "HRANDFIELD", "RESET", "GEOSEARCH", "FAILOVER"]
SINCE_5_0 = ["HELLO", "CLIENT", "XADD", "ZPOPMIN", "ACL", "LOLWUT"]

LINES = ["GETEX item:7", "GETDEL item:none", "GETEX plain PERSIST", "EXPIRETIME item:7", "LCS a b",
         "EVAL_RO return(1) 0", "FCALL f 0", "COPY a b", "ZPOPMIN z", "SINTERCARD 1 a", "GET plain",
         "SET plain 2 XX", "STRLEN item:7", "SPUBLISH c m", "XADD s"]


class Older(Redis):
    """Without these commands: it knows them no more than one that never had them."""
    lacks = ()

    def command(self):
        words = super().command()
        for name in self.lacks:
            words += ["--rename-command", name, ""]
        return words


@pytest.fixture(params=[SINCE_7_0, SINCE_7_0 + SINCE_6_2, SINCE_7_0 + SINCE_6_2 + SINCE_5_0],
                ids=["6.2", "6.0", "4.0"])
def older(request):
    server = Older()
    server.lacks = request.param
    server.start()
    yield server
    server.stop()
    server.remove()


def test_it_is_used_as_far_as_it_goes(start_guard, items, older):
    guard = start_guard(items(), cache=older.url)
    assert guard.redis().get("item:7") == b"payload 7"
    older.wait_for_key("item:7")
    assert guard.redis().get("item:404") is None
    with Pair(guard, older) as pair:
        for line in LINES:
            pair.ask(line)
    node = guard.status()["backends"]["cache"]["nodes"][0]
    assert node["up"] and node["role"] == "primary" and not node["why"]


def test_what_needs_a_connection_of_its_own_works(start_guard, items, older):
    guard = start_guard(items(), cache=older.url)
    client = guard.redis()
    with client.pipeline() as transaction:
        assert transaction.set("a", 1).get("a").execute() == [True, b"1"]
    with client.pubsub() as listener:
        listener.subscribe("news")
        listener.get_message(timeout=PATIENCE)
        wait_until(lambda: client.publish("news", "x") == 1, PATIENCE, guard.log)


def test_resp3_is_refused_as_such_a_redis_refuses_it(start_guard, items, older):
    guard = start_guard(items(), cache=older.url)
    with guard.wire() as wire:
        wire.send(b"HELLO 3\r\nGET item:7\r\n")
        hello = wire.read_replies(1)
        assert hello.startswith(b"-NOPROTO") == ("HELLO" in older.lacks)
        assert wire.read_replies(1) == b"$9\r\npayload 7\r\n"


def test_it_may_be_replaced_by_a_newer_one_and_back(start_guard, items, older, cache, database):
    guard = start_guard(items(), cache=older.url)
    settings = {"database": database.url, "sync": "none", "keyspaces": [items()]}
    with guard.wire() as wire:
        for count, url in enumerate([cache.url, older.url], 1):
            guard.configure({**settings, "cache": url})
            guard.control("POST", "/v1/reload")
            wait_until(lambda count=count: guard.log().count("not used any more") == count, PATIENCE,
                       guard.log)
            wire.send(b"SET plain 1\r\nGET item:7\r\n")
            assert wire.read_replies(2) == b"+OK\r\n$9\r\npayload 7\r\n"
    with pytest.raises(redis.ResponseError):
        guard.redis().execute_command("SINTERCARD", 1, "a")
