"""TLS on both sides of the guard: clients on a tls: address, and a rediss:// cache."""
import contextlib
import os
import shutil
import signal
import socket
import ssl

import pytest
import redis

import servers
from built import SANITIZED
from certificates import Certificates
from following import paused
from hostile import GREETING
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

TABLE = "CREATE TABLE items (id bigint PRIMARY KEY, payload text)"
ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    made = Certificates(tmp_path_factory.mktemp("tls"))
    for name in ("guard", "client"):
        made.make(name)
    return made


@pytest.fixture
def guard(start_guard, database, certificates):
    """guard(setting=value): clients connect by TLS only."""
    database.execute(TABLE)
    database.execute("INSERT INTO items VALUES (1, 'one')")

    def start(**settings):
        port = servers.free_port()
        made = start_guard(ITEMS, **{
            "listen": [f"tls:127.0.0.1:{port}"], **certificates.settings("guard"), **settings})
        made.port = port
        return made
    return start


def client_of(guard, certificates, **options):
    return guard.redis(ssl=True, ssl_ca_certs=certificates.file("ca.crt"), **options)


def test_clients_are_served_encrypted(guard, certificates, database):
    database.execute("INSERT INTO items VALUES (2, repeat('x', 5000000))")
    guard = guard()
    client = client_of(guard, certificates)
    assert client.get("item:1") == b"one"
    assert client.get("item:1") == b"one"
    assert client.get("item:404") is None
    assert client.get("item:2") == b"x" * 5000000
    client.set("other", b"y" * 5000000)
    assert client.get("other") == b"y" * 5000000
    pipeline = client.pipeline(transaction=False)
    for number in range(1000):
        pipeline.get(f"item:{number % 2}")
    assert pipeline.execute() == [None, b"one"] * 500
    assert guard.counter("nestguard_rejected_total") >= 501


class Records:
    """A client that decides what travels in one piece."""

    def __init__(self, guard, certificates):
        self.socket = socket.create_connection(("127.0.0.1", guard.port), servers.PATIENCE)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=certificates.file("ca.crt"))
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")
        while not self._is_shaken():
            self.flush()
            self._receive()
        self.flush()

    def _is_shaken(self):
        try:
            self.tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return False

    def _receive(self):
        some = self.socket.recv(65536)
        self.incoming.write(some) if some else self.incoming.write_eof()

    def flush(self, behind=b""):
        self.socket.sendall(self.outgoing.read() + behind)

    def end(self):
        """Says that nothing comes any more, in the piece that flush() sends."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()

    def hear(self, wanted):
        """So much of what comes as this is."""
        got = b""
        while len(got) < len(wanted):
            try:
                some = self.tls.read(len(wanted) - len(got))
            except ssl.SSLWantReadError:
                self._receive()
            else:
                assert some, f"the end after {got}"
                got += some
        assert got == wanted


SUBSCRIBED = b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
UNSUBSCRIBED = b"*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n"


def subscribed(guard, certificates):
    client = Records(guard, certificates)
    client.tls.write(command("SUBSCRIBE", "a"))
    client.flush()
    client.hear(SUBSCRIBED)
    return client


@pytest.mark.parametrize("last, replies", [
    (command("UNSUBSCRIBE", "a") + command("GET", "item:404"), UNSUBSCRIBED + bulk(None)),
    (command("QUIT"), b"+OK\r\n"),
    (command("UNSUBSCRIBE", "a") + command("SET", "x", "1") + command("PING"),
     UNSUBSCRIBED + b"+OK\r\n+PONG\r\n")])
def test_what_comes_with_the_end_is_served(guard, certificates, last, replies):
    client = subscribed(guard(), certificates)
    client.tls.write(last)
    client.end()
    client.flush()
    client.hear(replies)


def test_a_farewell_is_answered_by_a_guard_that_has_much_to_do(guard, certificates):
    """Whoever is looked after, ten times a second, may have been served a moment ago."""
    guard = guard(workers=1, max_strangers=2000)
    clients = [subscribed(guard, certificates) for _ in range(5)]
    newcomers = [guard.wire() for _ in range(100 * len(clients))]
    for client in clients:
        client.tls.write(command("QUIT"))
        client.end()
        with paused(guard.process.pid):
            client.flush()
            for _ in range(100):
                newcomers.pop().send(GREETING)
        client.hear(b"+OK\r\n")


def test_what_comes_before_a_broken_record_is_served(guard, certificates, cache):
    client = Records(guard(), certificates)
    client.tls.write(command("SET", "before", "1"))
    client.flush(behind=b"no record at all, by any means")
    cache.wait_for_key("before")


def test_what_is_no_tls_gets_nothing_and_is_counted(guard, certificates):
    guard = guard()
    with socket.create_connection(("127.0.0.1", guard.port)) as plain:
        plain.sendall(b"*1\r\n$4\r\nPING\r\n")
        plain.settimeout(servers.PATIENCE)
        answer = b""
        while True:
            some = plain.recv(1000)
            if not some:
                break
            answer += some
    assert b"PONG" not in answer
    wait_until(lambda: guard.total("nestguard_tls_failures_total") == 1, servers.PATIENCE,
               "the failure to be counted")
    assert client_of(guard, certificates).ping()


def test_clients_need_the_certificate_that_is_asked_for(guard, certificates):
    guard = guard(tls_client_ca_file=certificates.file("ca.crt"))
    with pytest.raises(redis.ConnectionError):
        client_of(guard, certificates).ping()
    known = client_of(guard, certificates, ssl_certfile=certificates.file("client.crt"),
                      ssl_keyfile=certificates.file("client.key"))
    assert known.get("item:1") == b"one"


def shown(guard, certificates):
    """The subject of the certificate that a new client is shown."""
    context = ssl.create_default_context(cafile=certificates.file("ca.crt"))
    with socket.create_connection(("127.0.0.1", guard.port)) as plain:
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
            return dict(pair[0] for pair in stream.getpeercert()["subject"])["commonName"]


def test_a_new_certificate_is_taken_by_sighup(guard, certificates):
    certificate, key = certificates.make("renewed", "before")
    guard = guard(tls_cert_file=certificate, tls_key_file=key)
    before = client_of(guard, certificates, single_connection_client=True)
    assert before.ping()
    assert shown(guard, certificates) == "before"
    certificates.make("renewed", "after")
    guard.signal(signal.SIGHUP)
    wait_until(lambda: shown(guard, certificates) == "after", servers.PATIENCE,
               lambda: f"the new certificate\n{guard.log()}")
    assert before.get("item:1") == b"one"  # on the connection that it had
    with open(certificate, "w", encoding="ascii") as file:
        file.write("no certificate\n")
    guard.signal(signal.SIGHUP)
    wait_until(lambda: "no start line" in guard.log(), servers.PATIENCE, "the complaint")
    assert shown(guard, certificates) == "after"


def test_an_address_that_begins_or_ends_to_be_encrypted_is_named_by_sighup(
        start_guard, database, cache, certificates):
    database.execute(TABLE)
    settings = {"cache": cache.url, "database": database.url, "keyspaces": [ITEMS],
                **certificates.settings("guard")}
    guard = start_guard(ITEMS, **settings)
    for count in (1, 2):  # also when nothing but this has changed since the last time
        guard.configure({**settings, "listen": [f"tls:127.0.0.1:{guard.port}"]})
        guard.signal(signal.SIGHUP)
        wait_until(lambda: guard.log().count("read again") == count, servers.PATIENCE, guard.log)
        assert guard.log().count("listen cannot change while the guard runs") == count


@pytest.fixture
def tls_cache(certificates):
    """A Redis that speaks TLS alone, and demands a certificate."""
    certificate, key = certificates.make("redis")

    class TlsRedis(servers.Redis):
        def command(self):
            return ["setpriv", "--pdeathsig", self.death_signal, servers.CACHE_SERVER, "--port", "0",
                    "--tls-port", str(self.port), "--tls-cert-file", certificate,
                    "--tls-key-file", key, "--tls-ca-cert-file", certificates.file("ca.crt"),
                    "--bind", "127.0.0.1", "--save", "", "--dir", str(self.directory)]

        def client(self, **options):
            return super().client(ssl=True, ssl_ca_certs=certificates.file("ca.crt"),
                                  ssl_certfile=certificates.file("client.crt"),
                                  ssl_keyfile=certificates.file("client.key"), **options)

    server = TlsRedis().start()
    yield server
    server.stop()
    server.remove()


def cache_settings(tls_cache, certificates):
    return {"cache": f"rediss://127.0.0.1:{tls_cache.port}",
            "cache_ca_file": certificates.file("ca.crt"),
            "cache_cert_file": certificates.file("client.crt"),
            "cache_key_file": certificates.file("client.key")}


def test_the_cache_is_used_encrypted(guard, tls_cache, certificates, database):
    guard = guard(**cache_settings(tls_cache, certificates))
    client = client_of(guard, certificates)
    assert client.get("item:1") == b"one"
    tls_cache.wait_for_key("item:1")
    database.execute("UPDATE items SET payload = 'changed'")
    assert client.get("item:1") == b"one"  # from the cache
    client.set("other", b"y" * 3000000)
    assert client.get("other") == b"y" * 3000000
    assert client.hset("map", "field", "value") == 1
    assert client.hgetall("map") == {b"field": b"value"}
    tls_cache.restart()
    wait_until(lambda: answers(client), servers.PATIENCE, "the cache to be used again")


def answers(client):
    try:
        return client.set("other", "again")
    except redis.RedisError:
        return False


def test_a_cache_that_nobody_vouches_for_is_not_used(tls_cache, certificates, database, tmp_path):
    database.execute(TABLE)
    settings = {**cache_settings(tls_cache, certificates), "database": database.url,
                "keyspaces": [ITEMS], "sync": "none"}
    guard = servers.Nestguard({**settings, "cache_ca_file": certificates.file("guard.crt")})
    status, text = servers.run_nestguard("check", "-c", guard.file)
    assert "certificate" in text and "no connection" in text, text
    assert "cache_ca_file does not hold the authority" in text, text
    assert status != 0
    for changed, remedy in [
            ({"cache": settings["cache"].replace("rediss:", "redis:")}, "write rediss:// instead"),
            ({"cache_ca_file": None}, "set cache_ca_file"),
            ({"cache_cert_file": None, "cache_key_file": None}, "set cache_cert_file")]:
        guard.configure({name: value for name, value in {**settings, **changed}.items()
                         if value is not None})
        status, text = servers.run_nestguard("check", "-c", guard.file)
        assert status != 0 and remedy in text, text
    guard.configure(settings)
    status, text = servers.run_nestguard("check", "-c", guard.file)
    assert status == 0, text
    guard.remove()


@pytest.fixture
def tls_database(certificates):
    """A PostgreSQL that takes encrypted connections alone; its key file is its own."""
    server = servers.Postgres(ssl="on", ssl_cert_file="server.crt", ssl_key_file="server.key")
    for source, name in zip(certificates.make("postgres"), ("server.crt", "server.key")):
        shutil.copy(source, server.directory / name)
    server.create()
    data = server.directory / "data"
    for name in ("server.crt", "server.key"):
        shutil.move(server.directory / name, data / name)
        shutil.chown(data / name, data.owner())
        os.chmod(data / name, 0o600)
    (data / "pg_hba.conf").write_text("hostssl all all all trust\n"
                                      "hostssl replication all all trust\n")
    server.launch()
    wait_until(server.is_ready, servers.PATIENCE, server.log)
    server.execute(server.GUARD_ROLE, "template1")
    yield server
    server.stop()
    server.remove()


def test_a_database_for_encrypted_connections_alone_is_told(cache, tls_database, tmp_path):
    file = tmp_path / "nestguard.yaml"
    file.write_text(f"listen: 127.0.0.1:{servers.free_port()}\ncache: {cache.url}\n"
                    f"database: postgresql://guard@127.0.0.1:{tls_database.port}/template1"
                    "?sslmode=disable\nkeyspaces:\n"
                    "  - {name: items, key: 'item:{id}', table: items, value: payload}\n")
    _, text = servers.run_nestguard("check", "-c", file)
    assert "no encryption" in text and "sslmode=require" in text


def test_the_database_is_followed_and_read_encrypted(cache, tls_database, certificates):
    database = servers.Database(tls_database, "encrypted")
    database.execute(TABLE)
    database.execute("INSERT INTO items VALUES (1, 'one'); CREATE PUBLICATION nestguard"
                     " FOR TABLE items WITH (publish_via_partition_root = true)")
    guard = servers.Nestguard({
        "cache": cache.url, "sync": "replication", "keyspaces": [ITEMS],
        "database": f"{database.url}?sslmode=verify-full&sslrootcert={certificates.file('ca.crt')}"})
    guard.start()
    assert guard.redis().get("item:1") == b"one"
    assert guard.redis().get("item:2") is None
    database.execute("INSERT INTO items VALUES (2, 'two')")
    wait_until(lambda: guard.redis().get("item:2") == b"two", servers.PATIENCE, "the new row")
    plain = database.query("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                           " WHERE usename = 'guard' AND NOT ssl")
    assert plain == [(0,)]
    guard.finish()
    guard.remove()


@pytest.mark.parametrize("settings, complaint", [
    ({"tls_cert_file": None, "tls_key_file": None}, "a tls: address needs tls_cert_file"),
    ({"tls_key_file": None}, "tls_cert_file needs tls_key_file"),
    ({"tls_cert_file": "/no/where"}, "the certificate /no/where: No such file"),
    ({"tls_key_file": "{client.key}"}, "mismatch"),
    ({"tls_client_ca_file": "{client.key}"}, "the authorities' certificates"),
    ({"control": "tls:127.0.0.1:1"}, "the control port has no TLS"),
])
def test_mistakes_name_line_and_remedy(certificates, database, cache, settings, complaint):
    settings = {name: certificates.file(value[1:-1]) if value and value[0] == "{" else value
                for name, value in settings.items()}
    guard = servers.Nestguard({
        "listen": ["tls:127.0.0.1:6380"], **certificates.settings("guard"), "cache": cache.url,
        "database": database.url, "keyspaces": [ITEMS], **settings})
    status, text = servers.run_nestguard("check", "-c", guard.file)
    guard.remove()
    assert status != 0
    assert complaint in text and str(guard.file) + ":" in text, text


def test_half_a_handshake_holds_a_place_for_so_long_and_no_longer(guard, certificates):
    guard = guard(authentication_timeout="200ms")
    with socket.create_connection(("127.0.0.1", guard.port), servers.PATIENCE) as half:
        half.sendall(b"\x16\x03\x01")
        assert half.recv(100) == b""


@pytest.mark.skipif(SANITIZED, reason="its memory is the sanitizer's")
def test_what_a_connection_needed_for_much_is_given_back(guard, certificates, cache):
    """Of either direction; and while it is needed it counts among the memory of clients."""
    many, large, few = 200, b"x" * 1_000_000, 64 * 1024
    cache.client().set("large", large)
    guard = guard(workers=1)

    def taken():
        return (guard.resident_bytes() - before) / many

    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(client_of(guard, certificates, single_connection_client=True))
                   for _ in range(many)]
        for client in clients:
            client.ping()
        before = guard.resident_bytes()
        for client in clients:
            assert client.get("large") == large
            assert client.set("other", large)
        wait_until(lambda: taken() < few, PATIENCE, lambda: f"{taken()} bytes a connection")
        assert guard.total("nestguard_client_memory_bytes") < many * few
