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


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_a_table_in_an_earlier_schema_is_read_as_it_was_built_from(start_guard, database, cache,
                                                                   items, sync):
    database.execute("CREATE SCHEMA b; GRANT USAGE ON SCHEMA b TO guard")
    database.execute(f'ALTER ROLE guard IN DATABASE "{database.name}" SET search_path = b, public')
    keyspace = items(ttl=0)
    settings = {"max_lag": "2s"} if sync == "replication" else {"poll_interval": "500ms"}
    if sync == "replication":
        publish(database, keyspace)
    guard = start_guard({**keyspace, "table": "items"}, sync=sync, **settings)
    for n in range(1, 50):  # so that each connection has prepared its statement
        assert guard.redis().get(f"item:{n}") == b"payload %d" % n
    before = guard.generation()
    added = "ALTER PUBLICATION nestguard ADD TABLE b.items;" if sync == "replication" else ""
    database.execute(f"""BEGIN;
        CREATE TABLE b.items (LIKE public.items INCLUDING ALL);
        INSERT INTO b.items (id, payload) SELECT n, 'other ' || n FROM generate_series(1, 200) n;
        GRANT SELECT ON b.items TO guard; {added} COMMIT""")
    wait_until(lambda: guard.generation() > before and guard.is_ready() and
               guard.explain("item:160")["verdict"] != "absent", PATIENCE, guard.status)
    cache.client().flushall()
    for n in (160, 190, 10):
        wait_until(lambda n=n: answer(guard, f"item:{n}") == b"other %d" % n, PATIENCE,
                   lambda n=n: f"{answer(guard, f'item:{n}')}\n{guard.log()}")
