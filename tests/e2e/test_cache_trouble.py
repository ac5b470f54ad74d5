"""A cache that is there and yet no use: a replica, a sentinel, one that a script keeps busy, a full
one. It is told from a healthy one, and nothing that it holds or confirms is relied on."""
import contextlib
import threading

import pytest
import redis

from beside import redis_beside
from checking import GOOD, check, keyspace  # check is a fixture
from sentinels import Sentinel
from servers import PATIENCE
from waiting import wait_until


@pytest.fixture
def other():
    with redis_beside() as server:
        yield server


@pytest.fixture
def sentinel(other):
    started = Sentinel(other).start()
    yield started
    started.remove()


def node(guard):
    return guard.status()["backends"]["cache"]["nodes"][0]


def cache_up(guard):
    return guard.metrics()["nestguard_cache_up"]


def wait_down(guard, why):
    wait_until(lambda: not node(guard)["up"] and why in (node(guard)["why"] or ""), PATIENCE,
               lambda: f"{node(guard)}\n{guard.log()}")


def wait_up(guard):
    wait_until(lambda: node(guard)["up"] and set_works(guard), PATIENCE,
               lambda: f"{node(guard)}\n{guard.log()}")


def set_works(guard):
    try:
        return guard.redis().set("plain", "1")
    except redis.ResponseError:
        return False


def refusal(call):
    with pytest.raises(redis.ResponseError) as caught:
        call()
    return str(caught.value)


def end_script(guard):
    """By a client that comes anew each time, until the guard's connection is there."""
    def is_ended():
        try:
            return guard.redis().script_kill()
        except redis.ResponseError as error:
            assert "NESTGUARD cache" in str(error)
            return False

    wait_until(is_ended, PATIENCE, guard.log)


class TestWhatTheCacheIs:
    def test_check_refuses_a_sentinel(self, check, database, sentinel):
        database.execute(GOOD)
        assert "sentinel" in check(keyspace(), cache=sentinel.url).one("error")[0]

    def test_a_sentinel_is_never_up(self, start_guard, items, sentinel):
        guard = start_guard(items(), cache=sentinel.url, ready=False)
        wait_down(guard, "sentinel")
        assert node(guard)["role"] == "sentinel"
        assert cache_up(guard) == 0
        assert "sentinel" in guard.log()
        assert guard.redis().get("item:7") == b"payload 7"
        assert refusal(lambda: guard.redis().set("plain", "x")) == "NESTGUARD cache down"

    def test_a_replica_is_never_up(self, start_guard, items, cache, other):
        other.client().replicaof("127.0.0.1", cache.port)
        wait_until(lambda: other.client().info("replication")["master_link_status"] == "up",
                   PATIENCE, "the replica")
        guard = start_guard(items(), cache=other.url, ready=False)
        wait_down(guard, "replica")
        assert node(guard)["role"] == "replica"
        assert cache_up(guard) == 0
        assert guard.redis().get("item:7") == b"payload 7"
        assert refusal(lambda: guard.redis().set("plain", "x")) == "NESTGUARD cache down"


class TestDemoted:
    """A primary that is made a replica, without a connection being lost."""

    @pytest.fixture
    def guard(self, start_guard, items, other):
        guard = start_guard(items(), cache=other.url, workers=2)
        assert guard.redis().get("item:7") == b"payload 7"
        other.wait_for_key("item:7")
        return guard

    @pytest.fixture
    def demoted(self, guard, other, cache):
        self.demote(other, cache)

    def demote(self, other, cache):
        """The new primary has values of its own, which nobody has purged."""
        cache.client().set("item:7", "old")
        other.client().replicaof("127.0.0.1", cache.port)
        wait_until(lambda: other.client().get("item:7") == b"old", PATIENCE, "the old value")

    def test_it_is_noticed_when_nobody_writes(self, guard, demoted):
        wait_down(guard, "replica")
        assert cache_up(guard) == 0
        wait_until(lambda: all(f"worker {n}: cache connection: it is a replica" in guard.log()
                               for n in range(2)), PATIENCE, guard.log)
        for _ in range(4):
            assert guard.redis().get("item:7") == b"payload 7"

    def test_it_is_noticed_by_the_first_write(self, guard, demoted):
        assert refusal(lambda: guard.redis().set("plain", "x")).split()[0] in ("READONLY",
                                                                              "You", "NESTGUARD")
        wait_down(guard, "replica")

    def test_who_only_listens_is_told(self, guard, other, cache):
        with guard.redis().pubsub() as listener:
            listener.subscribe("news")
            listener.get_message(timeout=PATIENCE)
            self.demote(other, cache)
            with pytest.raises(redis.RedisError):
                wait_until(lambda: listener.get_message(timeout=0.1) == "never", PATIENCE, guard.log)

    def test_what_it_holds_is_swept_when_it_is_a_primary_again(self, guard, demoted, other):
        wait_down(guard, "replica")
        other.client().replicaof("NO", "ONE")
        wait_up(guard)
        wait_until(lambda: other.client().get("item:7") != b"old", PATIENCE, guard.log)
        assert node(guard)["role"] == "primary"
        assert guard.redis().get("item:7") == b"payload 7"


class TestBusy:
    @pytest.fixture
    def guard(self, start_guard, items, other):
        other.client().config_set("lua-time-limit", 50)
        return start_guard(items(), cache=other.url, cache_timeout="1s")

    @pytest.fixture
    def script(self, guard, other):
        """Runs until it is killed, over a connection that others share."""
        def run():
            with contextlib.suppress(redis.RedisError):
                guard.redis().eval("while true do end", 0)

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: is_busy(other), PATIENCE, "the script")
        yield thread
        with contextlib.suppress(redis.ResponseError):
            other.client().script_kill()
        thread.join()

    def test_the_cache_itself_says_so_on_old_connections_and_on_new_ones(self, guard, script):
        """The one that ran the script is given up after cache_timeout, and opened anew."""
        script.join(PATIENCE)
        for _ in range(8):
            wait_until(lambda: "BUSY" in refusal(lambda: guard.redis().set("plain", "x")).upper(),
                       PATIENCE, guard.log)
        assert guard.redis().get("item:7") == b"payload 7"
        wait_until(lambda: "BUSY" in (node(guard)["why"] or "") and cache_up(guard) == 1, PATIENCE,
                   lambda: node(guard))

    @pytest.mark.parametrize("is_given_up", [False, True])
    def test_a_new_client_ends_the_script(self, guard, script, is_given_up):
        if is_given_up:
            script.join(PATIENCE)
        end_script(guard)
        wait_until(lambda: set_works(guard), PATIENCE, guard.log)
        wait_until(lambda: not node(guard)["why"], PATIENCE, lambda: node(guard))

    def test_a_client_that_ended_a_script_is_in_the_right_database(self, start_guard, items, other):
        other.client().config_set("lua-time-limit", 50)
        guard = start_guard(items(), cache=f"redis://127.0.0.1:{other.port}/3")
        thread = threading.Thread(target=lambda: pytest.raises(
            redis.RedisError, other.client().eval, "while true do end", 0))
        thread.start()
        wait_until(lambda: is_busy(other), PATIENCE, "the script")
        client = guard.redis(single_connection_client=True)
        client.script_kill()
        thread.join()
        wait_until(lambda: set_works(guard), PATIENCE, guard.log)
        client.set("mine", "1")
        assert other.client(db=3).get("mine") == b"1"


def is_busy(server):
    try:
        server.client().get("x")
        return False
    except redis.ResponseError as error:
        return "busy" in str(error).lower()


def test_a_full_cache_is_told_and_what_it_did_not_take_counted(start_guard, items, other):
    guard = start_guard(items(), cache=other.url, cache_timeout="30s")
    other.client().config_set("maxmemory", 1)
    for n in range(1, 6):
        assert guard.redis().get(f"item:{n}") == f"payload {n}".encode()
    wait_until(lambda: guard.counter("nestguard_fills_failed_total", reason="full") == 5, PATIENCE,
               guard.metrics)
    assert "OOM" in node(guard)["why"]
    assert guard.log().count("did not take a value") == 1
    assert cache_up(guard) == 1
    other.client().config_set("maxmemory", 0)
    guard.redis().get("item:6")
    wait_until(lambda: not node(guard)["why"], PATIENCE, lambda: node(guard))


@pytest.fixture
def full_disk(other):
    """Redis answers no write then, and no PING either."""
    client, target = other.client(), other.directory / "dump.rdb"
    target.mkdir()
    client.set("item:1", "cached")
    client.config_set("save", "100000 100000")
    try:
        client.bgsave()
        wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", PATIENCE,
                   "the disk to be full")
        assert refusal(client.ping).startswith("MISCONF")
        yield other
    finally:
        client.config_set("save", "")


def test_one_whose_disk_is_full_is_up_for_who_connects_then(start_guard, items, full_disk):
    guard = start_guard(items(), cache=full_disk.url)
    wait_until(lambda: node(guard)["up"] and cache_up(guard) == 1, PATIENCE,
               lambda: f"{node(guard)}\n{guard.log()}")
    assert guard.redis().get("item:1") == b"cached"
    assert guard.redis().get("item:2") == b"payload 2"
    assert guard.redis().get("item:101") is None
    assert refusal(lambda: guard.redis().set("plain", "1")).startswith("MISCONF")
