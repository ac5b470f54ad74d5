"""A keyspace of which a row gets another key while it stays as it was, so that nothing tells of it:
`named`, whose keys are the names of tables. Types whose text is looked up in the catalogue are
refused for a key; this one declares that its text is its value's alone, which is not so. NAMING_TABLES
begins the SQL of whoever makes a table of it."""
import pytest

NAMING_TABLES = """
    SET client_min_messages = error;
    CREATE TYPE table_name;
    CREATE FUNCTION table_name_in(cstring) RETURNS table_name
        LANGUAGE internal IMMUTABLE STRICT AS 'regclassin';
    CREATE FUNCTION table_name_out(table_name) RETURNS cstring
        LANGUAGE internal IMMUTABLE STRICT AS 'regclassout';
    CREATE TYPE table_name (INPUT = table_name_in, OUTPUT = table_name_out, LIKE = oid);
    CREATE CAST (table_name AS oid) WITHOUT FUNCTION AS IMPLICIT;
    CREATE TABLE thing_1 (); CREATE TABLE thing_2 (); CREATE TABLE thing_4 ();
"""
NAMED = {"name": "named", "key": "named:{what}", "table": "public.named", "value": "payload",
         "ttl": "10m"}
RENAMED, NO_ROW = "named:{thing_3}", "named:{thing_4}"


@pytest.fixture
def named(database):
    database.execute(NAMING_TABLES + """
        CREATE TABLE named (what table_name[] PRIMARY KEY, payload text);
        INSERT INTO named VALUES ('{thing_1}', 'first'), ('{thing_2}', 'second')""")
    return NAMED


def rename_first(database):
    """What was named:{thing_1} is RENAMED."""
    database.execute("ALTER TABLE thing_1 RENAME TO thing_3")
