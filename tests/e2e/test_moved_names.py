"""Tables whose name comes to lead elsewhere while the guard runs."""
import pytest
import redis

from following import publish
from servers import PATIENCE
from waiting import wait_until


def answer(guard, key):
    """What GET says; an error as the text of it."""
    try:
        return guard.redis().get(key)
    except redis.ResponseError as error:
        return str(error)


@pytest.fixture
def begun(start_guard, database, items):
    """A guard of a table without its schema, before which another comes in the search path; each of
    its connections has prepared its statement."""
    database.execute("CREATE SCHEMA b; GRANT USAGE ON SCHEMA b TO guard")
    database.execute(f'ALTER ROLE guard IN DATABASE "{database.name}" SET search_path = b, public')

    def start(sync):
        keyspace = items(ttl=0)
        settings = {"max_lag": "2s"} if sync == "replication" else {"poll_interval": "500ms"}
        if sync == "replication":
            publish(database, keyspace)
        guard = start_guard({**keyspace, "table": "items"}, sync=sync, **settings)
        for n in range(1, 50):
            assert guard.redis().get(f"item:{n}") == b"payload %d" % n
        return guard

    return start


def create_earlier(database, also=""):
    database.execute(f"""BEGIN;
        CREATE TABLE b.items (LIKE public.items INCLUDING ALL);
        INSERT INTO b.items (id, payload) SELECT n, 'other ' || n FROM generate_series(1, 200) n;
        GRANT SELECT ON b.items TO guard; {also} COMMIT""")


def assert_reads_earlier(guard, cache):
    cache.client().flushall()
    for n in (160, 190, 10):
        wait_until(lambda n=n: answer(guard, f"item:{n}") == b"other %d" % n, PATIENCE,
                   lambda n=n: f"{answer(guard, f'item:{n}')}\n{guard.log()}")


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_a_table_in_an_earlier_schema_is_read_as_it_was_built_from(begun, database, cache, sync):
    guard = begun(sync)
    before = guard.generation()
    create_earlier(database, sync == "replication" and
                   "ALTER PUBLICATION nestguard ADD TABLE b.items;" or "")
    wait_until(lambda: guard.generation() > before and guard.is_ready() and
               guard.explain("item:160")["verdict"] != "absent", PATIENCE, guard.status)
    assert_reads_earlier(guard, cache)


def test_one_that_no_generation_can_be_built_from_is_read_all_the_same(begun, database, cache):
    """It is what the name says, and nobody may publish it."""
    guard = begun("replication")
    create_earlier(database)
    wait_until(lambda: not guard.status()["guarding"], PATIENCE, guard.log)
    assert_reads_earlier(guard, cache)
    assert guard.redis().get("item:201") is None
    status = guard.status()
    assert not status["guarding"] and status["last_build_error"]
