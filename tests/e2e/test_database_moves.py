"""Another `database` in the file: another role or password, or another server altogether."""
import contextlib
import json
import signal

import pytest

from following import follow, publish  # noqa: F401, a fixture
from gate import Gate
from servers import PATIENCE, Postgres
from test_handover import Clients, ask_both
from waiting import wait_until


def move(guard, url):
    count = guard.log(lines=5000).count("configuration read again")
    guard.configure({**json.loads(guard.file.read_text()), "database": url})
    guard.signal(signal.SIGHUP)
    wait_until(lambda: guard.log(lines=5000).count("configuration read again") > count, PATIENCE, guard.log)


def connections(database, role):
    """Those for questions; the log's stream stays where it is."""
    return database.value(f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{role}'"
                          " AND backend_type = 'client backend' AND application_name = 'nestguard'")


@pytest.fixture
def other_role(database):
    database.execute("DROP ROLE IF EXISTS other; CREATE ROLE other LOGIN REPLICATION")
    yield "other"
    wait_until(lambda: not connections(database, "other"), PATIENCE, "the guard's end")
    database.execute("DROP OWNED BY other; DROP ROLE other")


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_another_role_takes_over_while_clients_go_on(start_guard, database, items, other_role, sync):
    keyspace = items()
    publish(database, keyspace)
    database.execute(f"GRANT SELECT, DELETE ON items TO {other_role}")
    guard = start_guard(keyspace, sync=sync)
    with Clients(guard, ask_both) as clients:
        move(guard, database.url.replace("guard@", f"{other_role}@"))
        wait_until(lambda: not connections(database, "guard"), PATIENCE, guard.log)
        wait_until(lambda: connections(database, other_role) >= 4, PATIENCE, guard.log)
        guard.wait_guarding()
    clients.check()
    database.execute("INSERT INTO items VALUES (5000, 'new')")
    guard.rebuild()
    assert guard.redis().get("item:5000") == b"new"
    guard.finish()


def test_one_that_is_refused_leaves_those_before_in_place(follow, database, cache, items):
    guard = follow(items())
    settings = json.loads(guard.file.read_text())
    guard.configure({**settings, "database": database.url.replace("guard@", "nobody@")})
    answer = guard.control("POST", "/v1/reload")
    assert answer.status_code == 409 and 'role \\"nobody\\" does not exist' in answer.text
    assert 'role "nobody" does not exist' in guard.status()["reload_refused"]
    cache.client().flushall()
    assert guard.redis().get("item:1") == b"payload 1"  # loaded
    assert guard.keyspace("items")["state"] == "guarding"
    assert connections(database, "guard") >= 4
    move(guard, database.url)
    assert guard.redis().get("item:2") == b"payload 2"


@pytest.mark.parametrize("sync", ["replication", "none"])
def test_another_database_of_the_same_server_is_read_before_its_keys_are_rejected(start_guard, items, sync):
    server = Postgres().start()
    try:
        for name, rows in (("shop", "(1, 'here'), (2, 'only here')"), ("shop2", "(1, 'elsewhere'), (5000, 'there')")):
            server.execute(f"CREATE DATABASE {name}", "postgres")
            server.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)", name)
            server.execute(f"INSERT INTO items VALUES {rows}", name)
            server.execute("GRANT SELECT, DELETE ON items TO guard; CREATE PUBLICATION nestguard FOR TABLE items"
                           " WITH (publish_via_partition_root = true)", name)
        url = f"postgresql://guard@127.0.0.1:{server.port}/shop"
        guard = start_guard(items(), sync=sync, database=url)
        assert guard.redis().get("item:1") == b"here" and guard.redis().get("item:2") == b"only here"
        assert guard.redis().get("item:5000") is None
        move(guard, url + "2")
        wait_until(lambda: guard.redis().get("item:5000") == b"there", PATIENCE, guard.log)
        wait_until(lambda: guard.redis().get("item:1") == b"elsewhere", PATIENCE, guard.log)
        guard.wait_guarding()
        wait_until(lambda: guard.redis().get("item:2") is None, PATIENCE, guard.log)
        guard.finish()
    finally:
        server.stop()
        server.remove()


@pytest.mark.parametrize("sync", ["replication", "none"])
def test_another_server_is_read_before_the_one_before_is_left(start_guard, database, cache, items, sync):
    keyspace = items()
    publish(database, keyspace)
    guard = start_guard(keyspace, sync=sync)
    assert guard.redis().get("item:1") == b"payload 1" and guard.redis().get("item:2") == b"payload 2"
    other = Postgres().start()
    try:
        other.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)", "postgres")
        other.execute("INSERT INTO items VALUES (1, 'elsewhere'), (5000, 'there')", "postgres")
        other.execute("GRANT SELECT, DELETE ON items TO guard; CREATE PUBLICATION nestguard FOR TABLE items"
                      " WITH (publish_via_partition_root = true)", "postgres")
        move(guard, f"postgresql://guard@127.0.0.1:{other.port}/postgres")
        wait_until(lambda: guard.redis().get("item:5000") == b"there", PATIENCE, guard.log)
        wait_until(lambda: guard.redis().get("item:1") == b"elsewhere", PATIENCE, guard.log)
        guard.wait_guarding()
        assert guard.redis().get("item:2") is None
        log = guard.log(lines=5000)
        assert log.index("is built from it before") < log.index("generation 2: built") \
            < log.index("the database is another server now")
        wait_until(lambda: not connections(database, "guard"), PATIENCE, guard.log)
        if sync == "replication":
            other.execute("INSERT INTO items VALUES (5001, 'later')", "postgres")
            wait_until(lambda: guard.redis().get("item:5001") == b"later", PATIENCE, guard.log)
        guard.finish()
    finally:
        other.stop()
        other.remove()


@contextlib.contextmanager
def another_server(rows):
    """With a table of the same name, and even of the same number as in any other that is made so."""
    server = Postgres().start()
    try:
        server.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)", "postgres")
        server.execute("GRANT SELECT, DELETE ON items TO guard", "postgres")
        server.execute(f"INSERT INTO items VALUES {rows}", "postgres")
        yield server
    finally:
        server.stop()
        server.remove()


@pytest.fixture
def elsewhere():
    with another_server("(1, 'elsewhere'), (5000, 'there')") as server:
        yield server


def test_what_is_built_from_one_that_is_not_named_any_more_is_not_taken(start_guard, database, elsewhere, items):
    guard = start_guard(items(), sync="none")
    with contextlib.closing(elsewhere.connect("postgres")) as held:
        held.autocommit = False
        held.cursor().execute("LOCK TABLE items IN ACCESS EXCLUSIVE MODE")
        move(guard, f"postgresql://guard@127.0.0.1:{elsewhere.port}/postgres")
        wait_until(lambda: "generation 2: building" in guard.log(lines=5000), PATIENCE, guard.log)
        move(guard, database.url)
    wait_until(lambda: guard.generation() >= 2, PATIENCE, guard.log)
    assert guard.redis().get("item:1") == b"payload 1" and guard.redis().get("item:2") == b"payload 2"
    assert guard.redis().get("item:5000") is None
    assert guard.generation() >= 3
    assert "the database is another server now" not in guard.log(lines=5000)
    guard.finish()


def move_held(guard, gate):
    """Whoever is asked whether the file can be taken gets through: it is the first that comes, and what the
    others send first tells nobody anything."""
    guard.configure({**json.loads(guard.file.read_text()),
                     "database": f"postgresql://guard@127.0.0.1:{gate.port}/postgres"})
    guard.signal(signal.SIGHUP)

    def is_taken():
        taken = "configuration read again" in guard.log(lines=5000)
        if not taken and gate.count_held():
            gate.release_first()
        return taken

    wait_until(is_taken, PATIENCE, guard.log)


def test_what_was_cached_goes_also_when_a_build_is_the_first_to_come_there(start_guard, cache, elsewhere, items):
    """No connection for questions has said by then that it leads elsewhere."""
    with another_server("(1, 'here'), (2, 'only here')") as here:
        gate = Gate(elsewhere.port)
        guard = start_guard(items(), sync="none", database=f"postgresql://guard@127.0.0.1:{here.port}/postgres")
        assert guard.redis().get("item:1") == b"here" and guard.redis().get("item:2") == b"only here"
        wait_until(lambda: cache.client().exists("item:1", "item:2") == 2, PATIENCE, "both in the cache")
        gate.hold_requests()
        move_held(guard, gate)
        wait_until(lambda: gate.count_held() >= 4, PATIENCE, guard.log)
        gate.hold_no_more()
        guard.rebuild()
        wait_until(lambda: not cache.client().exists("item:1", "item:2"), PATIENCE, guard.log)
        gate.release()
        assert guard.redis().get("item:1") == b"elsewhere"
        guard.finish()
        gate.close()
