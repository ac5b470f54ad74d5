"""With `sync: replication`, what the log does not tell because of something that is altered, and
altered back before the guard has looked: the catalogue is what it was, the rows are not.
"""
import pytest

from following import follow, is_possible, wait_generation, wait_removed
from servers import PATIENCE
from waiting import wait_until

ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "10m"}
PLAIN = """
    CREATE TABLE items (id bigint PRIMARY KEY, nr int UNIQUE NOT NULL, payload text);
    INSERT INTO items SELECT n, n, 'payload ' || n FROM generate_series(1, 100) n;"""
BESIDE = """
    CREATE TABLE items (nr int PRIMARY KEY, id bigint UNIQUE NOT NULL, payload text);
    INSERT INTO items SELECT n, n, 'payload ' || n FROM generate_series(1, 100) n;
    ALTER TABLE items REPLICA IDENTITY """
PARTITIONED = """
    CREATE TABLE items (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (1000);
    CREATE TABLE high PARTITION OF items FOR VALUES FROM (1000) TO (2000);
    INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, 100) n;"""
PARTITION_BESIDE = """
    CREATE TABLE items (id bigint PRIMARY KEY, nr int NOT NULL, payload text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (2000);
    CREATE UNIQUE INDEX low_nr ON low (nr);
    INSERT INTO items SELECT n, n, 'payload ' || n FROM generate_series(1, 100) n;
    ALTER TABLE low REPLICA IDENTITY USING INDEX low_pkey;"""
LABELLED = """
    CREATE TYPE label AS ENUM ('1', '1500');
    CREATE TABLE items (id label PRIMARY KEY, payload text);
    INSERT INTO items VALUES ('1', 'payload 1');"""

# Each is one transaction, after which item:1500 has a row.
THERE_AND_BACK = [
    pytest.param(PARTITIONED, """
        ALTER TABLE items DETACH PARTITION high;
        INSERT INTO high VALUES (1500, 'new');
        ALTER TABLE items ATTACH PARTITION high FOR VALUES FROM (1000) TO (2000)""",
                 id="a partition that is filled by itself"),
    pytest.param(PLAIN, """
        ALTER PUBLICATION nestguard SET (publish = 'update, delete');
        INSERT INTO items VALUES (1500, 1500, 'new');
        ALTER PUBLICATION nestguard SET (publish = 'insert, update, delete, truncate')""",
                 id="a publication that tells less"),
    pytest.param(PLAIN, """
        ALTER TABLE items REPLICA IDENTITY USING INDEX items_nr_key;
        UPDATE items SET id = 1500, payload = 'new' WHERE id = 50;
        ALTER TABLE items REPLICA IDENTITY DEFAULT""",
                 id="a replica identity without the key"),
    pytest.param(BESIDE + "USING INDEX items_id_key", """
        ALTER TABLE items REPLICA IDENTITY DEFAULT;
        UPDATE items SET id = 1500, payload = 'new' WHERE nr = 50;
        ALTER TABLE items REPLICA IDENTITY USING INDEX items_id_key""",
                 id="a replica identity that is the primary key for a while"),
    pytest.param(BESIDE + "FULL", """
        ALTER TABLE items REPLICA IDENTITY DEFAULT;
        UPDATE items SET id = 1500, payload = 'new' WHERE nr = 50;
        ALTER TABLE items REPLICA IDENTITY FULL""",
                 id="a replica identity that is not full for a while"),
    pytest.param(PLAIN, """
        ALTER TABLE items DROP CONSTRAINT items_pkey;
        ALTER TABLE items ADD PRIMARY KEY (nr);
        UPDATE items SET id = 1500, payload = 'new' WHERE id = 50;
        ALTER TABLE items DROP CONSTRAINT items_pkey;
        ALTER TABLE items ADD PRIMARY KEY (id)""",
                 id="a primary key"),
    pytest.param(PARTITION_BESIDE, """
        ALTER TABLE low REPLICA IDENTITY USING INDEX low_nr;
        UPDATE items SET id = 1500, payload = 'new' WHERE id = 50;
        ALTER TABLE low REPLICA IDENTITY USING INDEX low_pkey""",
                 id="a partition's replica identity that is another index for a while"),
    pytest.param(LABELLED, """
        ALTER TYPE label RENAME VALUE '1500' TO '1501';
        INSERT INTO items VALUES ('1501', 'new');
        ALTER TYPE label RENAME VALUE '1501' TO '1500'""",
                 id="a label that is a key"),
]


@pytest.mark.parametrize("table, transaction", THERE_AND_BACK)
def test_what_is_altered_and_altered_back_is_noticed(follow, database, table, transaction):
    database.execute(table)
    guard = follow(ITEMS, max_lag="500ms")
    assert not is_possible(guard, "item:1500")
    database.execute(transaction)
    wait_until(lambda: guard.redis().get("item:1500") == b"new", PATIENCE,
               lambda: f"the row: {guard.explain('item:1500')}\n{guard.log()}")
    wait_generation(guard, 2)
    assert guard.redis().mget("item:1", "item:1500") == [b"payload 1", b"new"]
    assert not is_possible(guard, "item:1502")
    wait_removed(guard, database)


def test_partitions_have_identities_of_their_own(follow, database):
    database.execute(PARTITIONED + "ALTER TABLE low REPLICA IDENTITY FULL")
    guard = follow(ITEMS, max_lag="500ms")
    database.execute("UPDATE items SET id = id + 1500 WHERE id = 50; DELETE FROM items WHERE id = 51")
    wait_removed(guard, database)
    assert guard.redis().mget("item:1", "item:51", "item:1550") == [b"payload 1", None, b"payload 50"]
    assert guard.status()["generation"]["number"] == 1
