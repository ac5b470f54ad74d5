"""A cache that Sentinel watches: the guard asks the sentinels who the primary is, and follows it
through failovers, planned and not."""
import contextlib
import itertools
import threading
import time

import pytest
import redis

from certificates import Certificates
from checking import GOOD, check, keyspace  # check is a fixture
from following import follow, wait_followed
from sentinels import NAME, Fleet
from servers import PATIENCE
from waiting import wait_until
from wire import Wire


def nodes(guard):
    return guard.status()["backends"]["cache"]["nodes"]


def leads_to(guard, server):
    first = nodes(guard)[0]
    return first["up"] and first["role"] == "primary" and \
        first["address"] == f"127.0.0.1:{server.port}"


def wait_leads_to(guard, server):
    wait_until(lambda: leads_to(guard, server) and can_write(guard), 2 * PATIENCE,
               lambda: f"{nodes(guard)}\n{guard.log()}")


def can_write(guard):
    """Each of the connections that clients share must be there."""
    try:
        return all(guard.redis().set(f"plain:{n}", "1") for n in range(8))
    except redis.RedisError:
        return False


def test_it_serves_from_the_primary_that_sentinels_name(start_guard, items, fleet):
    guard = start_guard(items(), cache=fleet.url)
    wait_leads_to(guard, fleet.first)
    assert guard.redis().get("item:7") == b"payload 7"
    fleet.first.wait_for_key("item:7")
    guard.redis().set("plain", "x")
    assert fleet.first.client().get("plain") == b"x"
    assert [node["role"] for node in nodes(guard)] == ["primary"] + ["sentinel"] * 3
    assert all(node["up"] for node in nodes(guard))


def test_the_database_of_the_url_is_the_one_that_is_used(start_guard, items, fleet):
    guard = start_guard(items(), cache=fleet.url[:-1] + "4")
    wait_leads_to(guard, fleet.first)
    assert fleet.first.client(db=4).get("plain:0") == b"1"


class TestCheck:
    def test_it_looks_at_the_primary(self, check, database, fleet):
        database.execute(GOOD)
        report = check(keyspace(), cache=fleet.url)
        assert report.findings == [] and report.status == 0, report.text

    def test_a_name_that_sentinels_do_not_know_is_an_error(self, check, database, fleet):
        database.execute(GOOD)
        report = check(keyspace(), cache=fleet.url.replace(NAME, "nobody"))
        assert report.levels() == ["warning"] * 3 + ["error"], report.text
        assert "nobody" in report.text

    def test_a_sentinel_that_is_down_is_a_warning(self, check, database, fleet):
        database.execute(GOOD)
        fleet.sentinels[1].stop()
        assert "cannot connect" in check(keyspace(), cache=fleet.url).one("warning")[0]


class Load:
    """Clients that look up existing rows, and one that writes: what they got, and when."""

    def __init__(self, guard, clients=4):
        self.guard = guard
        self.ended = threading.Event()
        self.wrong, self.errors, self.lookups = [], [], itertools.count()
        self.count = 0
        self.written = []
        self.threads = [threading.Thread(target=self.look_up, args=(n,)) for n in range(clients)]
        self.threads.append(threading.Thread(target=self.write))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def look_up(self, start):
        client = self.guard.redis()
        for n in itertools.count(start, 4):
            if self.ended.is_set():
                return
            row = n % 100 + 1
            try:
                value = client.get(f"item:{row}")
            except redis.RedisError as error:
                self.errors.append((time.monotonic(), str(error)))
                continue
            next(self.lookups)
            if value != f"payload {row}".encode():
                self.wrong.append((row, value))

    def write(self):
        client = self.guard.redis()
        for n in itertools.count():
            if self.ended.is_set():
                return
            try:
                client.set("plain", n)
                self.written.append(time.monotonic())
            except redis.RedisError as error:
                assert str(error).startswith(("NESTGUARD", "READONLY", "You can't write"))
            time.sleep(0.005)

    def total(self):
        return int(repr(self.lookups)[6:-1])


def test_a_planned_failover_costs_no_lookup(start_guard, items, fleet):
    guard = start_guard(items(), cache=fleet.url)
    wait_leads_to(guard, fleet.first)
    with Load(guard) as load:
        wait_until(lambda: load.total() > 200, PATIENCE, guard.log)
        fleet.sentinels[0].client().execute_command("SENTINEL", "FAILOVER", NAME)
        primary = fleet.wait_primary(other_than=fleet.first)
        wait_leads_to(guard, primary)
        before = load.total()
        wait_until(lambda: load.total() > before + 200, PATIENCE, guard.log)
    assert not load.wrong and not load.errors


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_an_unplanned_failover_costs_no_lookup(start_guard, items, fleet, how):
    guard = start_guard(items(), cache=fleet.url, cache_timeout="500ms")
    wait_leads_to(guard, fleet.first)
    with Load(guard) as load:
        wait_until(lambda: load.total() > 200, PATIENCE, guard.log)
        getattr(fleet.first, how)()
        primary = fleet.wait_primary(other_than=fleet.first)
        began = time.monotonic()
        wait_until(lambda: load.written and load.written[-1] > began, PATIENCE, guard.log)
        resumed = next(at for at in load.written if at > began)
        wait_leads_to(guard, primary)
    assert not load.wrong and not load.errors
    assert resumed - began < 5, "a second, and what a loaded machine adds to it"


def test_deletions_that_the_new_primary_missed_are_made_up_for(follow, database, items, fleet):
    """The replica that is promoted was cut off while the row changed."""
    guard = follow(items(), cache=fleet.url)
    wait_leads_to(guard, fleet.first)
    assert guard.redis().get("item:7") == b"payload 7"
    for server in fleet.servers:
        wait_until(lambda server=server: server.client().get("item:7") == b"payload 7", PATIENCE,
                   "the replicas")
    fleet.first.deafen(*fleet.servers[1:])
    database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
    wait_until(lambda: fleet.first.client().get("item:7") is None, PATIENCE, guard.log)
    fleet.first.kill()
    for server in fleet.servers[1:]:
        server.resume()
    primary = fleet.wait_primary(other_than=fleet.first)
    wait_leads_to(guard, primary)
    wait_until(lambda: primary.client().get("item:7") != b"payload 7", PATIENCE, guard.log)
    assert guard.redis().get("item:7") == b"changed"


def test_deletions_owed_while_there_is_no_primary_reach_the_next(follow, database, items, fleet):
    guard = follow(items(), cache=fleet.url)
    wait_leads_to(guard, fleet.first)
    assert guard.redis().get("item:7") == b"payload 7"
    for server in fleet.servers:
        wait_until(lambda server=server: server.client().get("item:7") == b"payload 7", PATIENCE,
                   "the replicas")
    fleet.first.kill()
    database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
    wait_followed(database)
    assert guard.redis().get("item:7") == b"changed"
    primary = fleet.wait_primary(other_than=fleet.first)
    wait_leads_to(guard, primary)
    wait_until(lambda: primary.client().get("item:7") != b"payload 7", PATIENCE, guard.log)
    wait_until(lambda: guard.redis().get("item:7") == b"changed", PATIENCE, guard.log)


class Announcements:
    """When each sentinel tells that there is another primary."""

    def __init__(self, fleet):
        self.at = []
        self.listeners = []
        for sentinel in fleet.sentinels:
            listener = sentinel.client().pubsub(ignore_subscribe_messages=True)
            listener.subscribe("+switch-master")
            self.listeners.append(listener)
            threading.Thread(target=self.listen, args=(listener,), daemon=True).start()

    def listen(self, listener):
        with contextlib.suppress(Exception):  # it ends when the sentinel does
            for message in listener.listen():
                if message["type"] == "message":
                    self.at.append(time.monotonic())

    def majority(self):
        """When most of them had told; a single one may be wrong."""
        most = len(self.listeners) // 2 + 1
        return sorted(self.at)[most - 1] if len(self.at) >= most else None


@pytest.mark.parametrize("how", ["planned", "killed", "paused"])
def test_within_a_second_of_the_new_primary_all_is_as_before(start_guard, items, fleet, how):
    """Prints how long it took; what is asserted is generous, for the machine may be loaded. On one that
    is not, in ten runs with the primary killed, writes and lookups of the cache succeeded 0.82 to 0.97 s
    after the replica's first word that it is a primary, one lookup 1.15 s after it; most sentinels told
    of it 0.81 to 0.97 s after that word. Lookups of rows went on all the while."""
    guard = start_guard(items(), cache=fleet.url)
    wait_leads_to(guard, fleet.first)
    told = Announcements(fleet)
    with Load(guard) as load:
        wait_until(lambda: load.total() > 200, PATIENCE, guard.log)
        if how == "planned":
            fleet.sentinels[0].client().execute_command("SENTINEL", "FAILOVER", NAME)
        else:
            getattr(fleet.first, {"killed": "kill", "paused": "pause"}[how])()
        announced = wait_until(told.majority, 2 * PATIENCE, guard.log)
        wait_until(lambda: any(at > announced for at in load.written), PATIENCE, guard.log)
        primary = fleet.wait_primary(other_than=fleet.first)
        wait_leads_to(guard, primary)
    resumed = next(at for at in load.written if at > announced)
    gaps = [later - earlier for earlier, later in zip(load.written, load.written[1:])]
    print(f"\n{how}: writes {resumed - announced:.3f} s after most sentinels had told; "
          f"none for {max(gaps):.3f} s in all")
    assert not load.wrong and not load.errors
    assert resumed - announced < 5


@pytest.fixture
def secured(tmp_path):
    certificates = Certificates(tmp_path)
    for name in ("guard", "client"):
        certificates.make(name)
    started = Fleet().secure(certificates, "sesame", "ursula").start()
    started.settings = {
        "cache": started.url.replace("redis-sentinel://", "rediss-sentinel://:sesame@"),
        "cache_ca_file": certificates.file("ca.crt"),
        "cache_cert_file": certificates.file("client.crt"),
        "cache_key_file": certificates.file("client.key"), "sentinel_password": "ursula"}
    yield started
    started.remove()


def test_passwords_and_tls_everywhere_and_one_sentinel_down_and_one_lying(
        start_guard, items, secured, cache):
    liar = Liar(cache.port)  # it does not even speak TLS
    try:
        settings = dict(secured.settings)
        settings["cache"] = settings["cache"].replace("@", f"@127.0.0.1:{liar.port},")
        guard = start_guard(items(), **settings)
        wait_leads_to(guard, secured.first)
        assert guard.redis().get("item:7") == b"payload 7"
        secured.first.wait_for_key("item:7")
        assert sorted(node["up"] for node in nodes(guard)) == [False, True, True, True, True]
        with Load(guard) as load:
            wait_until(lambda: load.total() > 100, PATIENCE, guard.log)
            secured.sentinels[1].client().execute_command("SENTINEL", "FAILOVER", NAME)
            primary = secured.wait_primary(other_than=secured.first)
            wait_leads_to(guard, primary)
            secured.sentinels[0].kill()
            before = load.total()
            wait_until(lambda: load.total() > before + 100, PATIENCE, guard.log)
        assert not load.wrong and not load.errors
        assert can_write(guard) and not cache.client().exists("plain:0")
    finally:
        liar.close()


@pytest.mark.parametrize("wrong, why", [
    ({"sentinel_password": "wrong"}, "WRONGPASS"), ({"sentinel_password": None}, "NOAUTH"),
    ({"cache_cert_file": None, "cache_key_file": None}, "")])
def test_sentinels_that_refuse_are_told_with_their_reason(start_guard, items, secured, wrong, why):
    guard = start_guard(items(), ready=False, **{**secured.settings, **wrong})
    wait_until(lambda: nodes(guard)[0]["why"] and all(node["why"] and why in node["why"]
                                                      for node in nodes(guard)[1:]), PATIENCE,
               lambda: nodes(guard))
    assert guard.redis().get("item:7") == b"payload 7"


def test_another_password_of_the_sentinels_is_taken_by_a_reload(start_guard, database, items, secured):
    guard = start_guard(items(), **secured.settings)
    wait_leads_to(guard, secured.first)
    for sentinel in secured.sentinels:
        sentinel.client().execute_command("ACL", "SETUSER", "default", ">another")
    settings = {"database": database.url, "sync": "none", "keyspaces": [items()],
                **secured.settings}
    guard.configure({**settings, "sentinel_password": "another"})
    assert guard.control("POST", "/v1/reload").json()["changes"][0]["taken"]
    wait_until(lambda: "is not used any more" in guard.log(), PATIENCE, guard.log)
    for sentinel in secured.sentinels:
        sentinel.client().execute_command("ACL", "SETUSER", "default", "<ursula")
        sentinel.password = "another"
    secured.sentinels[0].client().execute_command("SENTINEL", "FAILOVER", NAME)
    wait_leads_to(guard, secured.wait_primary(other_than=secured.first))


class TestSentinels:
    def test_one_is_enough(self, start_guard, items, fleet):
        for sentinel in fleet.sentinels[:2]:
            sentinel.stop()
        guard = start_guard(items(), cache=fleet.url)
        wait_leads_to(guard, fleet.first)
        assert [node["up"] for node in nodes(guard)[1:]] == [False, False, True]

    def test_one_that_hangs_holds_nobody_up(self, start_guard, items, fleet):
        fleet.sentinels[0].pause()
        guard = start_guard(items(), cache=fleet.url)
        wait_leads_to(guard, fleet.first)
        fleet.sentinels[0].resume()

    def test_without_any_the_connections_that_are_up_stay(self, start_guard, items, fleet):
        guard = start_guard(items(), cache=fleet.url)
        wait_leads_to(guard, fleet.first)
        for sentinel in fleet.sentinels:
            sentinel.stop()
        wait_until(lambda: not any(node["up"] for node in nodes(guard)[1:]), PATIENCE,
                   lambda: nodes(guard))
        assert can_write(guard) and leads_to(guard, fleet.first)

    def test_without_any_at_the_start_rows_are_read_until_there_is_one(self, start_guard, items,
                                                                      fleet):
        for sentinel in fleet.sentinels:
            sentinel.stop()
        guard = start_guard(items(), cache=fleet.url, ready=False)
        wait_until(lambda: "no sentinel names a primary" in (nodes(guard)[0]["why"] or ""), PATIENCE,
                   lambda: nodes(guard))
        assert guard.redis().get("item:7") == b"payload 7"
        fleet.sentinels[2].start()
        wait_leads_to(guard, fleet.first)

    def test_passwords_of_their_own(self, start_guard, items, fleet):
        for sentinel in fleet.sentinels:
            sentinel.client().config_set  # noqa: B018
            sentinel.client().execute_command("SENTINEL", "CONFIG", "SET", "sentinel-pass", "secret")
            sentinel.client().execute_command("ACL", "SETUSER", "default", ">secret", "resetpass",
                                              ">secret")
            sentinel.password = "secret"
        guard = start_guard(items(), cache=fleet.url, sentinel_password="secret")
        wait_leads_to(guard, fleet.first)
        other = start_guard(items(), cache=fleet.url, ready=False)
        wait_until(lambda: "NOAUTH" in str(nodes(other)), PATIENCE, lambda: nodes(other))

    def test_those_that_let_nobody_unsubscribe_are_asked_all_the_same(self, start_guard, items, fleet):
        for sentinel in fleet.sentinels:
            sentinel.client().execute_command("ACL", "SETUSER", "default", "-unsubscribe")
        guard = start_guard(items(), cache=fleet.url)
        wait_leads_to(guard, fleet.first)
        fleet.sentinels[0].client().execute_command("SENTINEL", "FAILOVER", NAME)
        wait_leads_to(guard, fleet.wait_primary(other_than=fleet.first))

    def test_one_that_names_a_replica_is_not_believed(self, start_guard, items, fleet):
        """Alone it is heard, for there is no other; but ROLE tells."""
        liar = Liar(fleet.servers[1].port)
        try:
            url = f"redis-sentinel://127.0.0.1:{liar.port}/{NAME}"
            guard = start_guard(items(), cache=url, ready=False)
            wait_until(lambda: "replica" in (nodes(guard)[0]["why"] or ""), PATIENCE,
                       lambda: nodes(guard))
            assert not can_write(guard)
            assert guard.redis().get("item:7") == b"payload 7"
        finally:
            liar.close()

    def test_most_of_them_count(self, start_guard, items, fleet, cache):
        """The liar's is a primary, of somebody else."""
        liar = Liar(cache.port)
        try:
            url = fleet.url.replace("redis-sentinel://", f"redis-sentinel://127.0.0.1:{liar.port},")
            guard = start_guard(items(), cache=url)
            wait_leads_to(guard, fleet.first)
            fleet.sentinels[0].client().execute_command("SENTINEL", "FAILOVER", NAME)
            wait_leads_to(guard, fleet.wait_primary(other_than=fleet.first))
            assert not cache.client().exists("plain:0")
        finally:
            liar.close()


class Liar:
    """Says of every name that its primary is on a port, and answers anything else as a sentinel."""

    def __init__(self, primary):
        import socketserver

        answer = b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%d\r\n" % (len(str(primary)), primary)

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError, ValueError):
                    while line := self.rfile.readline():
                        words = [self.word() for _ in range(int(line[1:]))]
                        self.wfile.write({
                            b"SENTINEL": answer,
                            b"SUBSCRIBE": b"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n",
                            b"UNSUBSCRIBE": b"*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n",
                        }.get(words[0], b"+OK\r\n"))

            def word(self):
                length = int(self.rfile.readline()[1:])
                return self.rfile.read(length + 2)[:-2]

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
