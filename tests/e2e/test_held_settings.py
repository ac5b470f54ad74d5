"""What the guard's first connection found of a database's settings holds for all, also for those that are
opened by another `database` in the file; and no `options` make keys that are not read back."""
import urllib.parse

import pytest

from checking import check, keyspace  # check is a fixture
from following import publish
from servers import PATIENCE, Postgres
from test_database_moves import move, other_role  # other_role is a fixture
from waiting import wait_until

SYNCS = ["replication", "poll"]
MOMENTS = {"name": "moments", "key": "moment:{at}", "table": "moments", "value": "payload"}
HERE, THERE = "moment:2026-11-20 10:00:00+00", "moment:2026-11-20 19:00:00+09"


def connections(database):
    """For questions: their processes."""
    return set((database.value("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name ="
                               " 'nestguard' AND backend_type = 'client backend'") or "").split())


def move_all(guard, database, url):
    """Until no question goes over a connection from before."""
    before = connections(database)
    move(guard, url)
    wait_until(lambda: len(connections(database)) >= 4 and not before & connections(database), PATIENCE, guard.log)


def must_hold(guard, cache):
    """Loaded, and rejected, by the spelling of the start alone."""
    cache.client().flushall()
    assert guard.redis().get(HERE) == b"there" and guard.redis().get(THERE) is None


@pytest.mark.parametrize("sync", SYNCS)
@pytest.mark.parametrize("role", ["guard", "other"])
def test_another_password_or_role_leaves_keys_as_they_are(start_guard, database, cache, other_role, sync, role):
    database.execute("CREATE TABLE moments (at timestamptz PRIMARY KEY, payload text NOT NULL);"
                     "INSERT INTO moments VALUES ('2026-11-20 10:00:00+00', 'there');"
                     f"GRANT SELECT, DELETE ON moments TO {other_role}")
    publish(database, MOMENTS)
    guard = start_guard(MOMENTS, sync=sync, poll_interval="1h", max_lag="2s")
    must_hold(guard, cache)
    database.execute(f"ALTER ROLE {role} IN DATABASE \"{database.name}\" SET timezone = 'Asia/Tokyo'")
    move_all(guard, database, database.url.replace("guard@", f"{role}:secret@"))
    guard.wait_guarding()
    must_hold(guard, cache)
    guard.rebuild()
    must_hold(guard, cache)
    if sync == "replication":
        database.execute("INSERT INTO moments VALUES ('2026-11-21 10:00:00+00', 'new')")
        wait_until(lambda: guard.redis().get("moment:2026-11-21 10:00:00+00") == b"new", PATIENCE, guard.log)
    guard.finish()


@pytest.mark.parametrize("sync", SYNCS)
def test_another_password_leaves_a_table_the_one_that_was_found(start_guard, database, cache, items, sync):
    publish(database, items())
    guard = start_guard(items(), sync=sync, poll_interval="1h", max_lag="2s")
    assert guard.redis().get("item:1") == b"payload 1"
    database.execute("CREATE SCHEMA guard; CREATE TABLE guard.items (LIKE public.items INCLUDING ALL);"
                     "GRANT USAGE ON SCHEMA guard TO guard; GRANT SELECT ON guard.items TO guard;"
                     "INSERT INTO guard.items VALUES (9000, 'other')")
    move_all(guard, database, database.url.replace("guard@", "guard:secret@"))
    for _ in range(2):
        guard.wait_guarding()
        cache.client().flushall()
        assert guard.redis().get("item:2") == b"payload 2" and guard.redis().get("item:9000") is None
        guard.rebuild()
    guard.finish()


@pytest.mark.parametrize("sync", SYNCS)
def test_another_database_has_schemas_of_its_own_and_keys_as_before(start_guard, sync):
    server = Postgres().start()
    try:
        for name, schema, payload in (("shop", "public", "here"), ("shop2", "other", "there")):
            server.execute(f"CREATE DATABASE {name}", "postgres")
            server.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}; GRANT USAGE ON SCHEMA {schema} TO guard;"
                           f"CREATE TABLE {schema}.moments (at timestamptz PRIMARY KEY, payload text);"
                           f"INSERT INTO {schema}.moments VALUES ('2026-11-20 10:00:00+00', '{payload}');"
                           f"GRANT SELECT, DELETE ON {schema}.moments TO guard;"
                           f"CREATE PUBLICATION nestguard FOR TABLE {schema}.moments"
                           " WITH (publish_via_partition_root = true)", name)
        server.execute("ALTER DATABASE shop2 SET search_path = other, public", "postgres")
        server.execute("ALTER DATABASE shop2 SET timezone = 'Asia/Tokyo'", "postgres")
        url = f"postgresql://guard@127.0.0.1:{server.port}/shop"
        guard = start_guard(MOMENTS, sync=sync, poll_interval="1h", database=url)
        assert guard.redis().get(HERE) == b"here"
        move(guard, url + "2")
        wait_until(lambda: guard.redis().get(HERE) == b"there", PATIENCE, guard.log)
        guard.wait_guarding()
        assert guard.redis().get(THERE) is None
        log = guard.log(lines=5000)
        assert "the database is another server now" in log and "did not take the settings" not in log
        guard.finish()
    finally:
        server.stop()
        server.remove()


# ---- options ----

LOSSY = [("double precision", "0.1::float8 + 0.2", "extra_float_digits=0", "0.3"),
         ("timestamptz", "'2026-11-20 10:00:00+06'", "DateStyle=SQL", "11/20/2026 04:00:00 UTC"),
         ("text[]", "'{NULL}'", "array_nulls=off", "{NULL}")]


@pytest.mark.parametrize("kind, value, option, text", LOSSY)
def test_options_by_which_a_key_is_not_read_back_are_refused(check, database, start_guard, kind, value, option, text):
    database.execute(f"CREATE TABLE items (id {kind} PRIMARY KEY, payload text NOT NULL);"
                     f"INSERT INTO items SELECT ({value})::{kind}, 'there'")
    publish(database, keyspace())
    url = database.url + "?options=" + urllib.parse.quote(f"-c {option}")
    said, _ = check(keyspace(), database=url).one("error")
    assert f"have {option}" in said and "take it out" in said, said
    guard = start_guard(keyspace(), database=url, ready=None)
    wait_until(lambda: not guard.is_running() or guard.is_alive(), PATIENCE, guard.log)
    assert not guard.is_running(), guard.redis().get(f"item:{text}")
    assert guard.wait() == 1
    assert f"have {option}" in guard.log() and "take it out" in guard.log()
