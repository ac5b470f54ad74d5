"""`nestguard check` says of each key column whether its values have several spellings, of which one
alone is a key; so that nobody learns it from an application that has lost its rows."""
import pytest

from checking import GOOD, assert_in_order, check, keyspace  # check is a fixture
from following import publish

TYPES = """
    CREATE EXTENSION citext;
    CREATE EXTENSION hstore;
    CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    CREATE DOMAIN ci_text AS text COLLATE ci;
    CREATE DOMAIN shorter AS char(3);
    CREATE DOMAIN short AS shorter;
    CREATE DOMAIN price AS numeric(9,2) CHECK (VALUE > 0);
    CREATE DOMAIN dear AS numeric(9,2) CHECK (VALUE > 1000);
    CREATE DOMAIN word AS varchar(20) CHECK (VALUE <> '');
    CREATE DOMAIN number AS bigint;
"""


@pytest.fixture
def check_type(check, database):
    """Checks a keyspace whose key column is of this type."""

    def run(kind):
        database.execute(TYPES)
        database.execute(f"CREATE TABLE items (id {kind} PRIMARY KEY, payload text NOT NULL)")
        return check(keyspace())

    return run


# What of the message tells the canonical text; quoted is what the server itself printed.
SEVERAL = {
    "uuid": ["lower case, with hyphens",
             "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', not '{A0EEBC99-"],
    "numeric(9,2)": ["decimals", "'1.50', not '01.50'"],
    "numeric(9)": ["decimals", "'2', not '01.50'"],
    "numeric": ["decimals", "'1.50', not '01.50'"],
    "double precision": ["floating-point", "'1.5', not '1.50'"],
    "real": ["floating-point"],
    "boolean": ["'t', not 'true'"],
    "timestamptz": ["time zone", "'2026-01-02 03:04:00"],
    "timestamptz(3)": ["time zone"],
    "timestamp": ["'2026-01-02 03:04:00', not '2026-01-02T03:04'"],
    "date": ["'2026-01-02', not"],
    "time": ["'03:04:00'"],
    "timetz": ["'03:04:00+00'"],
    "interval": ["24 hours", "'1 day', not '1 day 0 hours'"],
    "char(8)": ["blanks", "'a       '"],
    "citext": ["case"],
    "ci_text": ["not deterministic"],
    "text COLLATE ci": ["not deterministic"],
    "short": ["blanks", "'a  '"],
    "price": ["decimals", "'1.50', not '01.50'"],
    "dear": ["decimals"],
    "bytea": [r"'\xab', not '\xAB'"],
    "inet": ["'10.0.0.1', not '10.0.0.1/32'"],
    "cidr": ["'10.0.0.0/32', not '10.0.0.0'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "macaddr8": ["colons"],
    "bit(8)": ["binary digits"],
    "money": ["lc_monetary"],
    "pg_lsn": ["'0/AB', not '0/0ab'"],
    "jsonb": ["""'{"a": 1}'"""],
    "name": ["63 bytes"],
    '"char"': ["'a', not 'ab'"],
    "bigint[]": ["'{}', not '{ }'"],
    "text[]": ["quotes"],
    "int4range": ["canonical form"],
    "datemultirange": ["canonical form"],
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_type_whose_values_have_several_spellings_is_a_warning(check_type, kind):
    report = check_type(kind)
    text, _ = report.one("warning")
    assert "column id is of type" in text and "have several spellings" in text
    for part in SEVERAL[kind]:
        assert part in text, report.text
    assert report.status == 0 and report.last == "0 errors, 1 warning"


@pytest.mark.parametrize("kind", ["hstore", "tsvector"])
def test_type_of_which_nothing_is_known_is_a_cautious_warning(check_type, kind):
    text, _ = check_type(kind).one("warning")
    assert "may have several spellings" in text


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
@pytest.mark.parametrize("kind, within", [("regclass", ""), ("regtype[]", " (of regtype)"),
                                          ("class_range", " (of regclass)")])
def test_type_that_is_printed_with_names_is_refused(check, database, kind, within, sync):
    database.execute(f"""
        CREATE TYPE class_range AS RANGE (subtype = regclass, subtype_opclass = oid_ops);
        CREATE TABLE items (id {kind} PRIMARY KEY, payload text NOT NULL)""")
    publish(database, keyspace())
    text, _ = check(keyspace(), sync=sync).one("error")
    assert f"column id is of type {kind}{within}, whose text is not the row's alone" in text
    assert "such as oid or text" in text


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
@pytest.mark.parametrize("kind", ["pair", "checked_pair"])
def test_composite_type_is_refused(check, database, kind, sync):
    database.execute(f"""
        CREATE TYPE pair AS (a int, b text);
        CREATE DOMAIN checked_pair AS pair;
        CREATE TABLE items (id {kind} PRIMARY KEY, payload text NOT NULL)""")
    publish(database, keyspace())
    text, _ = check(keyspace(), sync=sync).one("error")
    assert f"column id is of type {kind}, a composite, and" in text
    assert "its rows could not be loaded" in text


@pytest.mark.parametrize("kind", ["text", "varchar", "varchar(9)", "mood", "word",
                                  'text COLLATE "C"'])
def test_type_whose_values_have_one_spelling_is_not_mentioned(check_type, kind):
    report = check_type(kind)
    assert_in_order(report)
    assert report.notes == []


@pytest.mark.parametrize("kind", ["smallint", "int", "bigint", "number", "oid"])
def test_integer_is_worth_a_note_only(check_type, kind):
    report = check_type(kind)
    assert_in_order(report)
    (note,) = report.notes
    assert "column id" in note and "without leading zeros" in note


def test_each_key_column_is_judged_by_itself(check, database):
    database.execute(GOOD + """
        CREATE TABLE orders (customer uuid, number int, day date, v text NOT NULL,
                             PRIMARY KEY (customer, number, day))""")
    report = check(keyspace(key="order:{customer}:{number}:{day}", table="orders", value="v"))
    assert report.levels() == ["warning"] * 2 and len(report.notes) == 1
    assert "column customer" in report.text and "column day" in report.text
