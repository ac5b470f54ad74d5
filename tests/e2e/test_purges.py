"""More deletions than the cache takes: the old value goes, and the database waits for nobody."""
import concurrent.futures

import pytest

from following import follow, query_alone, synchronous, wait_followed
from servers import PATIENCE
from waiting import wait_until

MANY = 20_000


def purges_owed(guard):
    return guard.status()["stream"]["purges_owed"]


@pytest.fixture
def many(database, items):
    """Rows enough that not all of their keys' deletions may be on their way at once."""
    database.execute("INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(101, %s) n",
                     (MANY,))
    return items()


def cache_many(server):
    server.client().mset({f"item:{n}": f"payload {n}" for n in range(1, MANY + 1)})


def change_many(database):
    query_alone(database, "UPDATE items SET payload = 'changed' RETURNING 1")


class TestMoreThanTheCacheTakes:
    def test_holds_up_no_commit_while_it_hangs(self, follow, postgres_server, database, cache,
                                               many):
        guard = follow(many, cache_timeout="10m", max_lag="60s")
        cache_many(cache)
        with synchronous(postgres_server), concurrent.futures.ThreadPoolExecutor(1) as pool:
            cache.pause()
            try:
                for _ in range(3):
                    pool.submit(change_many, database).result(PATIENCE)
                assert purges_owed(guard) >= MANY
            finally:
                cache.resume()  # else nothing ends where commits wait for it
            wait_until(lambda: purges_owed(guard) == 0, PATIENCE, guard.status)
            assert cache.client().dbsize() == 0

    def test_is_left_to_a_sweep_after_the_flood(self, follow, database, cache, many):
        guard = follow(many, cache_timeout="10m", max_lag="60s", max_hints=1000)
        cache_many(cache)
        cache.client().set("plain", "stays")
        cache.pause()
        for _ in range(3):
            change_many(database)
        wait_followed(database)
        cache.resume()
        wait_until(lambda: purges_owed(guard) == 0, PATIENCE, guard.status)
        assert cache.client().keys() == [b"plain"]
        assert guard.log(lines=1000).count("went through the cache") == 1
