"""PgBouncer between the guard and its database: what works through it, and what is said of the rest."""
import shutil
import signal
import socket
import urllib.parse

import pytest
import redis

import servers
from checking import GOOD, assert_in_order, check, keyspace  # check is a fixture
from conftest import items_keyspace
from waiting import wait_until


PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="PgBouncer is not installed")


class PgBouncer(servers.Server):
    name = "pgbouncer"
    stop_signal = signal.SIGINT

    def __init__(self, database, **settings):
        super().__init__()
        self.database = database
        users, file = self.directory / "users", self.directory / "pgbouncer.ini"
        users.write_text('"guard" ""\n"postgres" ""\n')
        settings = {"listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "",
                    "auth_type": "trust", "auth_file": users, **settings}
        lines = "\n".join(f"{name} = {text}" for name, text in settings.items())
        file.write_text(f"[databases]\n* = host=127.0.0.1 port={database.server.port}\n"
                        f"[pgbouncer]\n{lines}\n")

    def command(self):
        return [servers.AS_POSTGRES, PROGRAM, "pgbouncer.ini"]

    def is_ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    @property
    def url(self):
        return f"postgresql://guard@127.0.0.1:{self.port}/{self.database.name}"


@pytest.fixture
def pooler(database):
    """pooler(setting=value) starts a PgBouncer before the test's database."""
    started = []

    def start(**settings):
        started.append(PgBouncer(database, **settings).start())
        return started[-1]

    yield start
    for each in started:
        each.remove()


# As it comes from the package; and as other programs need it, which drops without a word.
@pytest.mark.parametrize("settings", [{}, {"ignore_startup_parameters": "options"}])
def test_a_guard_reads_and_loads_through_sessions_with_all_its_settings(
        settings, pooler, database, items, start_guard):
    """Also where the server's own say something else: a key is text in PostgreSQL's own form."""
    database.execute("CREATE TABLE days (id date PRIMARY KEY, payload text);"
                     "INSERT INTO days VALUES ('2026-02-01', 'first')")
    database.execute(f'ALTER DATABASE "{database.name}" SET DateStyle = \'German\'')
    days = items_keyspace(name="days", key="day:{id}", table="days")
    guard = start_guard(items(), days, sync="poll", database=pooler(**settings).url)
    assert guard.redis().mget("item:3", "item:1000", "day:2026-02-01", "day:01.02.2026") == \
        [b"payload 3", None, b"first", None]
    assert guard.keyspace()["rejected"] == 1


@pytest.mark.parametrize("own", ["-csearch_path=public", "-cIntervalStyle=postgres -cwork_mem=4MB"])
def test_options_that_a_pooler_drops_leave_no_setting_to_the_server(pooler, database, cache, start_guard, own):
    """What a person has not chosen is as ever, what he has is as he says."""
    database.execute("CREATE TABLE days (id interval PRIMARY KEY, payload text);"
                     "INSERT INTO days VALUES ('1 day 02:03:04', 'first')")
    database.execute(f'ALTER DATABASE "{database.name}" SET IntervalStyle = \'iso_8601\'')
    days = items_keyspace(name="days", key="day:{id}", table="days")
    url = pooler(ignore_startup_parameters="options").url + "?options=" + urllib.parse.quote(own)
    guard = start_guard(days, sync="poll", database=url)
    assert guard.redis().mget("day:1 day 02:03:04", "day:P1DT2H3M4S") == [b"first", None]


def test_check_is_content_with_sessions(check, pooler, database):
    database.execute(GOOD)
    assert_in_order(check(keyspace(), database=pooler().url, sync="poll"))


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("ignored", ["", "options"])
def test_shared_sessions_are_refused_by_check(check, pooler, database, mode, ignored):
    database.execute(GOOD)
    url = pooler(pool_mode=mode, ignore_startup_parameters=ignored).url
    text, _ = check(keyspace(), database=url, sync="poll").one("error")
    assert "gives one session of the server to several connections" in text
    assert "pool_mode = session" in text and "`database` must name the server itself" in text


def test_shared_sessions_are_never_asked_whether_a_row_exists(database, items, start_guard):
    """Also when they come after the start: what they show may be another's, so no lookup is nil."""
    pooler = PgBouncer(database, pool_mode="transaction")
    guard = start_guard(items(), sync="poll", ready=False, database=pooler.url)
    pooler.start()
    try:
        wait_until(lambda: "pool_mode = session" in (guard.status()["last_build_error"] or ""),
                   servers.PATIENCE, guard.log)
        assert guard.status()["backends"]["database"]["connections"] == 0
        for key in ("item:3", "item:1000"):
            with pytest.raises(redis.ResponseError, match="database down"):
                guard.redis().get(key)
    finally:
        pooler.remove()


def test_the_log_is_read_from_the_server_itself_only(check, pooler, database):
    database.execute(GOOD + "CREATE PUBLICATION nestguard FOR TABLE items")
    text, _ = check(keyspace(), database=pooler().url, sync="replication").one("error")
    assert "no replication connection, though others are accepted" in text
    assert "`database` must name the server itself, no connection pooler" in text


def test_options_of_ones_own_are_not_lost_without_a_word(check, pooler, database):
    database.execute(GOOD)
    url = pooler().url + "?options=-csearch_path%3Dpublic"
    text, _ = check(keyspace(), database=url, sync="poll").one("error")
    assert "unsupported startup parameter" in text and "without those `options`" in text
