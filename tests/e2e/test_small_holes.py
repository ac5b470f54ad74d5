"""What an attacker could learn, fill or stop by the way."""
import contextlib
import json
import os
import socket
import stat
import subprocess
import time
import urllib.parse

import pytest

import servers
from servers import PATIENCE, run_nestguard
from waiting import wait_until
from wire import Wire, command


@pytest.fixture
def reader(cache):
    """A user of the cache who may read some keys, none of them guarded."""
    admin = cache.client()
    admin.acl_setuser("reader", enabled=True, nopass=True, commands=["+@read", "+ping"],
                      keys=["free:*"])
    yield "reader"
    admin.acl_deluser("reader")


@pytest.mark.parametrize("words", [["GET"], ["MGET"], ["EXISTS"], ["TTL"], ["STRLEN"], ["TYPE"]])
def test_who_may_not_read_a_key_does_not_learn_whether_it_exists(start_guard, items, reader, words):
    guard = start_guard(items())
    with guard.wire() as wire:
        assert wire.ask("AUTH", reader, "x") == b"+OK\r\n"
        present, absent = wire.ask(*words, "item:1"), wire.ask(*words, "item:901")
    assert present.startswith(b"-NOPERM") and absent == present
    assert guard.keyspace()["loads"] == 0


@pytest.mark.parametrize("rights", [["+@all", "~item:1*", "~plain"], ["+@all", "-mget", "~*"]],
                         ids=["the key", "MGET"])
def test_what_the_cache_denies_the_guards_own_user_the_database_does_not_tell(
        start_guard, items, cache, rights):
    admin = cache.client()
    admin.execute_command("ACL", "SETUSER", "limited", "on", ">pw", *rights)
    try:
        guard = start_guard(items(), cache=cache.url.replace("redis://", "redis://limited:pw@"))
        with guard.wire() as wire:
            assert wire.ask("MGET", "item:1", "item:2").startswith(b"-NOPERM")
            assert wire.ask("MGET", "item:900", "item:2", "plain").startswith(b"-NOPERM")
            assert wire.ask("MGET", "item:900") == b"*1\r\n$-1\r\n"
            assert guard.keyspace()["loads"] == 0
            assert wire.ask("GET", "item:1") == b"$9\r\npayload 1\r\n"
    finally:
        admin.acl_deluser("limited")


def test_who_may_read_learns_of_absence_without_a_load(start_guard, items, cache):
    admin = cache.client()
    admin.acl_setuser("all", enabled=True, nopass=True, commands=["+@all"], keys=["*"])
    guard = start_guard(items())
    with guard.wire() as wire:
        assert wire.ask("AUTH", "all", "x") == b"+OK\r\n"
        assert wire.ask("GET", "item:901") == b"$-1\r\n"
        assert wire.ask("MGET", "item:902", "item:903") == b"*2\r\n$-1\r\n$-1\r\n"
        assert wire.ask("EXISTS", "item:901") == b":0\r\n"
        assert guard.keyspace()["loads"] == 0
        assert wire.ask("GET", "item:1") == b"$9\r\npayload 1\r\n"
    admin.acl_deluser("all")


@pytest.mark.parametrize("path", ["/v1/status", "/metrics", "/v1/keys/item%3A1", "/"])
def test_a_page_of_another_name_reads_nothing(start_guard, items, path):
    """Its name may have been made to point here; that of its host it cannot change."""
    guard = start_guard(items())
    assert guard.control("GET", path, headers={"Host": "evil.example"}).status_code == 403
    assert guard.control("GET", path, headers={"Host": "localhost:1"}).status_code == 200


def test_calls_without_a_token_leave_few_lines(start_guard, items):
    guard = start_guard(items(), control_token="sesame")
    for number in range(200):
        method = ("GET", "PUT", "DELETE")[number % 3]
        wrong = {"Authorization": f"Bearer {number}"}
        assert guard.control(method, "/v1/keys/item%3A1", headers=wrong).status_code == 401
    said = guard.log_path.read_text().count("no valid token")
    assert 1 <= said < 20, guard.log()
    assert guard.log_path.read_text().count(": 401") == 0


def ask_raw(guard, request):
    """The status of the reply, of a request that says every byte itself."""
    with socket.create_connection(("127.0.0.1", guard.control_port), PATIENCE) as connection:
        connection.sendall(request)
        return connection.recv(100).split()[1]


TWICE = b"Content-Length: 0\r\nContent-Length: 0"
REFUSALS = [("sesame", b"/", b"Host: x\r\n" + TWICE, b"400"),
            ("sesame", b"/", b"Host: x\r\nHost: y", b"400"),
            ("sesame", b"/%zz", b"Host: x", b"400"),
            ("sesame", b"/", b"Host: x\r\nContent-Length: 99999999", b"413"),
            ("sesame", b"/" + b"a" * 33000, b"Host: x", b"414"),
            (None, b"/v1/rebuild", b"Host: localhost\r\nOrigin: http://evil", b"403"),
            (None, b"/v1/rebuild", b"Host: evil.example", b"403")]


@pytest.mark.parametrize("token, path, headers, status", REFUSALS, ids=[
    "two lengths", "two hosts", "escape", "body", "target", "page", "foreign host"])
def test_calls_that_anybody_can_have_refused_leave_few_short_lines(start_guard, items, token, path,
                                                                   headers, status):
    guard = start_guard(items(), **({"control_token": token} if token else {}))
    before = guard.log_path.stat().st_size
    for _ in range(100):
        assert ask_raw(guard, b"POST %s HTTP/1.1\r\n%s\r\n\r\n" % (path, headers)) == status
    said = guard.log_path.read_text().count("refused, " + status.decode())
    assert 1 <= said < 20, guard.log()
    assert guard.log_path.stat().st_size - before < 10_000


def test_each_call_that_changed_something_has_its_line(start_guard, items):
    guard = start_guard(items(), control_token="sesame")
    for number in range(20):
        assert guard.control("PUT", f"/v1/keys/item%3A{9000 + number}").status_code == 201
    wait_until(lambda: guard.log_path.read_text().count(": 201") == 20, PATIENCE, guard.log)


def test_off_behind_skip_is_off(start_guard, items):
    guard = start_guard(items())
    with guard.wire() as wire:
        wire.send(command("CLIENT", "REPLY", "SKIP") + command("CLIENT", "REPLY", "OFF") +
                  command("PING") + command("GET", "item:1") + command("CLIENT", "REPLY", "ON") +
                  command("CLIENT", "REPLY", "SKIP") + command("CLIENT", "REPLY", "SKIP") +
                  command("PING") + command("ECHO", "heard"))
        assert wire.read_replies(2) == b"+OK\r\n$5\r\nheard\r\n"


@pytest.mark.parametrize("empty", [b"\r\n", b"*0\r\n", b"*0\r\n*0\r\n"])
def test_an_empty_command_behind_skip_is_what_is_not_heard(start_guard, items, cache, empty):
    """As of Redis, whether they come at once or not."""
    guard = start_guard(items())
    skip, get = command("CLIENT", "REPLY", "SKIP"), command("GET", "item:101")
    ping, end = command("PING"), command("ECHO", "end")
    for pieces in [[ping + skip + empty + get + ping, end], [skip + empty, get + ping, end],
                   [skip, empty + get, end], [empty + skip + get + get, empty + skip, get + end]]:
        heard = []
        for port in [cache.port, guard.port]:
            with Wire(port, PATIENCE) as wire:
                for piece in pieces:
                    wire.send(piece)
                wire.send(command("QUIT"))
                heard.append(wire.read_until_closed())
        assert heard[0] == heard[1], pieces


def test_reset_behind_skip_is_not_heard(start_guard, items, cache):
    """As of Redis, with a connection of its own or without."""
    guard = start_guard(items())
    for state in [command("PING"), command("WATCH", "a")]:
        for port in [cache.port, guard.port]:
            with Wire(port, PATIENCE) as wire:
                wire.send(state + command("CLIENT", "REPLY", "SKIP") + command("RESET") +
                          command("ECHO", "heard"))
                assert wire.read_replies(2).endswith(b"\r\n$5\r\nheard\r\n")


def test_a_file_of_brackets_is_refused_at_once(tmp_path):
    file = tmp_path / "deep.yaml"
    file.write_text("keyspaces: " + "[" * 200_000)
    status, said = run_nestguard("check", "-c", file)
    assert status == 1 and "nested too deep" in said


@contextlib.contextmanager
def logging_to_a_pipe(**settings):
    """A guard that is ready, and what its log comes out of."""
    guard = servers.Nestguard(settings)
    reading, writing = os.pipe()
    try:
        guard.process = subprocess.Popen(guard.command(), stdin=subprocess.DEVNULL, stderr=writing,
                                         stdout=writing, env=guard.environment)
        os.close(writing)
        wait_until(guard.is_ready, PATIENCE, "the guard")
        yield guard, reading
    finally:
        os.close(reading)
        guard.finish()
        guard.remove()


def test_a_log_that_nobody_reads_stops_nothing(database, cache, items):
    with logging_to_a_pipe(cache=cache.url, database=database.url, keyspaces=[items()]) as (guard, reading):
        for number in range(600):
            key = urllib.parse.quote(f"item:{number}" + "0" * 200, safe="")
            assert guard.control("PUT", f"/v1/keys/{key}").status_code in (201, 404)
        assert guard.redis().get("item:1") == b"payload 1"
        os.set_blocking(reading, False)
        assert len(os.read(reading, 1 << 20)) > 10_000
        guard.control("PUT", "/v1/keys/item%3A2")
        assert b"lines of log were lost" in os.read(reading, 1 << 20)


def test_no_caller_keeps_what_he_did_out_of_the_log(database, cache, items):
    """A long target of what JSON escapes; the log is a pipe, which takes so much at once."""
    with logging_to_a_pipe(cache=cache.url, database=database.url, keyspaces=[items()],
                           log_format="json") as (guard, reading):
        quotes = b'"' * 1900
        for target in (b"http://%s/v1/keys/item:8?block=1h" % quotes, b"/v1/keys/item:8%s?block=1h" % quotes):
            status = ask_raw(guard, b"DELETE %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
            assert status == b"204"
        said = [json.loads(line) for line in os.read(reading, 1 << 20).splitlines()
                if line.startswith(b"{") or b"lost" in line]
        done = [entry["message"] for entry in said if "DELETE" in entry["message"]]
        assert len(done) == 2 and all(": 204 DELETE /v1/keys/item:8" in message for message in done)


def times_in_log(guard, words):
    return sum(words in line for line in guard.log_path.read_text().splitlines())


def test_connections_that_flap_leave_few_lines_and_the_last_is_true(start_guard, items, cache,
                                                                      database):
    """Lost and there again, many times a second: a line a second, whoever's connection it is."""
    guard = start_guard(items())
    began, turns = time.monotonic(), 0
    before = len(guard.log_path.read_text().splitlines())
    while time.monotonic() - began < 4 or turns < 40:
        cache.client().client_kill_filter(_type="normal", skipme=True)
        database.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                       " WHERE application_name = 'nestguard' AND datname = current_database()")
        turns += 1
    seconds = time.monotonic() - began
    kinds = ["connection for fills and purges", "connections for loads are up",
             "worker 0: cache connection", "worker 1: cache connection"]
    for kind in kinds:
        assert times_in_log(guard, kind) <= seconds + 4, guard.log()
    assert len(guard.log_path.read_text().splitlines()) - before < 5 * seconds + 20, guard.log()
    # What is told last is how it is.
    wait_until(lambda: "fills and purges is up" in last_with(guard, kinds[0]), PATIENCE, guard.log)
    wait_until(lambda: "database: 4 connections" in last_with(guard, kinds[1]), PATIENCE, guard.log)


def last_with(guard, words):
    return next(line for line in reversed(guard.log_path.read_text().splitlines()) if words in line)


@pytest.mark.parametrize("mode, wanted", [(None, 0o660), ("600", 0o600)])
def test_a_unix_sockets_mode_is_not_the_umasks(start_guard, items, tmp_path, mode, wanted):
    path = tmp_path / "guard.sock"
    before = os.umask(0)
    try:
        guard = start_guard(items(), listen=[f"unix:{path}"], unix_socket_mode=mode)
        assert stat.S_IMODE(path.stat().st_mode) == wanted
        assert guard.is_alive()
    finally:
        os.umask(before)
