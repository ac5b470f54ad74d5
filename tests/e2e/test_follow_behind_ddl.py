"""DDL is not in the log, but what is written behind it is told with its table's description: where
that says that a row's old key would not be told, no key is rejected any more, by the time the commit
returns."""
import pytest

from following import follow, synchronous  # follow is a fixture
from test_follow_there_and_back import ITEMS, PARTITION_BESIDE, PLAIN

MOVED_KEY = "UPDATE items SET id = 1500, payload = 'new' WHERE nr = 50"

# After both item:1500 has a row, which had another key before.
BEHIND_DDL = [
    pytest.param(PLAIN, "ALTER TABLE items DROP CONSTRAINT items_pkey;"
                 " ALTER TABLE items ADD PRIMARY KEY (nr)",
                 id="a primary key that is moved to another column"),
    pytest.param(PARTITION_BESIDE, "ALTER TABLE low REPLICA IDENTITY USING INDEX low_nr",
                 id="a partition's replica identity that is another index"),
]


@pytest.mark.parametrize("transactions", ["{}; {}", "{}\n{}"], ids=["in it", "behind it"])
@pytest.mark.parametrize("table, ddl", BEHIND_DDL)
def test_a_row_is_known_when_its_commit_returns(follow, database, postgres_server, table, ddl,
                                                transactions):
    database.execute(table)
    guard = follow(ITEMS)
    client = guard.redis()
    with synchronous(postgres_server):
        assert client.get("item:1500") is None and guard.keyspace()["state"] == "guarding"
        for transaction in transactions.format(ddl, MOVED_KEY).splitlines():
            database.execute(transaction)
        assert client.get("item:1500") == b"new", guard.log()
        assert client.mget("item:1", "item:1500") == [b"payload 1", b"new"]
    # The probe, four times a second, may have come between the DDL and the row.
    assert ("a change of keyspace items does not tell the row's key" in guard.log()
            or "its publication or its partitions were altered" in guard.log())
