"""A guard that follows another of the same file: nobody is refused, nothing is denied, and what is absent is
rejected all the while."""
import functools
import os
import re
import signal
import socket
import sys
import threading
import time

import pytest
import redis

from beside import redis_beside
from following import follow, paused, publish, synchronous  # noqa: F401, a fixture
import servers
from servers import PATIENCE
from waiting import wait_until
from wire import command

ROUNDS = int(os.environ.get("NESTGUARD_HANDOVERS", "5"))


def succeed(guard):
    """Starts a successor beside the guard, and waits until the guard has ended by itself."""
    before, guard.process = guard.process, None
    guard.launch()
    assert before.wait(PATIENCE) == 0, guard.log(lines=2000)
    guard.wait_guarding()


def succeed_beside(guard, act, stop):
    """Again and again, while a thread acts until it is told to stop."""
    thread = threading.Thread(target=act)
    thread.start()
    try:
        for _ in range(ROUNDS):
            succeed(guard)
    finally:
        stop.set()
        thread.join()


class Client(threading.Thread):
    """Connects, asks some questions, leaves; again and again. What is not as it must be is kept."""

    def __init__(self, guard, stop, ask):
        super().__init__(daemon=True)
        self.guard, self.stop, self.ask = guard, stop, ask
        self.wrong, self.rounds, self.longest = [], 0, 0

    def run(self):
        while not self.stop.is_set():
            begun = time.monotonic()
            try:
                with self.guard.wire() as wire:
                    wrong = self.ask(wire)
            except (OSError, AssertionError) as error:
                wrong = repr(error)
            self.longest = max(self.longest, time.monotonic() - begun)
            self.rounds += 1
            if wrong:
                self.wrong.append(wrong)


class Clients:
    def __init__(self, guard, ask, count=3):
        self.stop = threading.Event()
        self.all = [Client(guard, self.stop, ask) for _ in range(count)]

    def __enter__(self):
        for client in self.all:
            client.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for client in self.all:
            client.join()

    def check(self):
        wrong = [word for client in self.all for word in client.wrong]
        assert not wrong, (len(wrong), wrong[:5])
        assert all(client.rounds for client in self.all)


def ask_both(wire):
    """One that exists, and one that does not: in one connection."""
    for number in range(1, 4):
        if (said := wire.ask("GET", f"item:{number}")) != b"$9\r\npayload %d\r\n" % number:
            return said
        if (said := wire.ask("GET", f"item:{number + 10**6}")) != b"$-1\r\n":
            return said
    return None


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
def test_nobody_is_refused_and_what_is_absent_is_rejected(start_guard, database, items, sync):
    keyspace = items()
    if sync == "replication":
        publish(database, keyspace)
    guard = start_guard(keyspace, sync=sync)
    with Clients(guard, ask_both) as clients:
        for _ in range(ROUNDS):
            succeed(guard)
            assert guard.counter("nestguard_loads_total", result="absent") == 0, guard.metrics()
    clients.check()


def test_a_row_is_known_when_its_commit_has_returned(follow, database, items):
    """With synchronous commit: also by the successor, whoever of the two has confirmed it."""
    guard = follow(items())
    with synchronous(database.server):
        ids, failed = iter(range(1000, 10**6)), []
        stop = threading.Event()

        def write():
            connection = database.server.connect(database.name)
            connection.autocommit = True
            while not stop.is_set():
                number = next(ids)
                connection.cursor().execute(f"INSERT INTO items VALUES ({number}, 'new')")
                try:
                    with guard.wire() as wire:
                        said = wire.ask("GET", f"item:{number}")
                except (OSError, AssertionError) as error:
                    said = error
                if said != b"$3\r\nnew\r\n":
                    failed.append((number, said))
            connection.close()

        succeed_beside(guard, write, stop)
    assert not failed, failed[:5]
    assert next(ids) > 1000


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_hint_goes_to_the_successor(start_guard, database, items, when):
    """Without a log nobody else would tell it."""
    guard = start_guard(items())
    if when == "before":
        guard.control("PUT", guard.key_path("item:5000"))
    with database.locked():  # the successor cannot build yet
        before, guard.process = guard.process, None
        guard.launch()
        wait_until(lambda: "was given the sockets" in guard.log(lines=2000), PATIENCE, "a successor")
        if when == "meanwhile":
            assert guard.redis().set("item:5000", "written")
            guard.redis().delete("item:5000")
    database.execute("INSERT INTO items VALUES (5000, 'late')")
    assert before.wait(PATIENCE) == 0
    guard.wait_guarding()
    assert guard.redis().get("item:5000") == b"late"


def test_a_block_goes_to_the_successor(start_guard, items):
    guard = start_guard(items())
    assert guard.control("DELETE", guard.key_path("item:7") + "?block=10m").status_code == 204
    succeed(guard)
    assert guard.redis().get("item:7") is None
    assert guard.redis().get("item:8") == b"payload 8"


def test_commands_under_way_are_finished(start_guard, cache, items):
    guard = start_guard(items())
    with guard.wire() as wire:
        wire.send(b"*3\r\n$5\r\nBLPOP\r\n$4\r\nlist\r\n$1\r\n0\r\n")
        wait_until(lambda: b"cmd=blpop" in cache.client().execute_command("CLIENT", "LIST"), PATIENCE,
                   "the command")
        before, guard.process = guard.process, None
        guard.launch()
        guard.wait_guarding()
        wait_until(lambda: "serves from here on" in guard.log(lines=2000), PATIENCE, "the successor")
        cache.client().rpush("list", "late")
        assert wire.read_reply() == b"*2\r\n$4\r\nlist\r\n$4\r\nlate\r\n"
    assert before.wait(PATIENCE) == 0


def test_one_that_dies_leaves_its_clients_to_the_successor(start_guard, database, items):
    guard = start_guard(items())
    with database.locked():
        before, guard.process = guard.process, None
        guard.launch()
        wait_until(lambda: "was given the sockets" in guard.log(lines=2000), PATIENCE, "a successor")
        before.kill()
        before.wait()
        assert guard.redis().ping()  # though nothing is guarded yet
    guard.wait_guarding()


def test_one_that_hangs_after_giving_way_is_not_waited_for(follow, database, items):
    """It confirms no commits any more, and owes nothing by which that would be seen."""
    guard = follow(items(), drain_timeout="1m")
    with guard.wire() as wire, synchronous(database.server, "ANY 1 (nestguard)"):
        assert wire.ask("PING") == b"+PONG\r\n"  # whose client stays with it
        before, guard.process = guard.process, None
        guard.launch()
        wait_until(lambda: "serves from here on" in guard.log(lines=2000), PATIENCE, "the successor")
        database.execute("INSERT INTO items VALUES (5000, 'both')")
        with paused(before.pid):
            writer = threading.Thread(target=database.execute,
                                      args=("INSERT INTO items VALUES (5001, 'one')",))
            writer.start()
            writer.join(PATIENCE)
            assert not writer.is_alive(), guard.log(lines=2000)
            assert "is not waited for" in guard.log(lines=2000)
            assert guard.redis().get("item:5001") == b"one"
    assert before.wait(PATIENCE) == 0


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
def test_what_the_successor_does_not_know_is_not_confirmed(start_guard, database, items, sync):
    """It was given up while it stood still, with a write under way."""
    keyspace = items()
    publish(database, keyspace)
    guard = start_guard(keyspace, sync=sync, drain_timeout="1m")
    wires = [guard.wire() for _ in range(20)]
    for wire in wires:
        assert wire.ask("PING") == b"+PONG\r\n"  # they stay where they are
    before, guard.process = guard.process, None
    guard.launch()
    wait_until(lambda: "serves from here on" in guard.log(lines=2000), PATIENCE, "the successor")
    with paused(before.pid):
        for number, wire in enumerate(wires):
            wire.send(b"".join(command("SET", f"item:{5000 + 100 * number + i}", "x") for i in range(100)))
        wait_until(lambda: "is not waited for" in guard.log(lines=2000), PATIENCE, "its being given up")
    confirmed = []
    for number, wire in enumerate(wires):
        for i in range(100):
            try:
                if wire.read_reply() == b"+OK\r\n":
                    confirmed.append(f"item:{5000 + 100 * number + i}")
            except (OSError, AssertionError):
                break
        wire.close()
    assert before.wait(PATIENCE) == 0
    denied = [key for key in confirmed if guard.explain(key)["verdict"] == "absent"]
    assert not denied, (len(denied), len(confirmed), denied[:5])


def test_one_that_goes_on_is_waited_for(follow, items):
    """Also when it takes longer than the time after which its silence would be believed."""
    guard = follow(items(), drain_timeout="1m")
    with guard.wire() as wire:
        assert wire.ask("PING") == b"+PONG\r\n"
        before, guard.process = guard.process, None
        guard.launch()
        wait_until(lambda: "serves from here on" in guard.log(lines=2000), PATIENCE, "the successor")
        begun = time.monotonic()
        while time.monotonic() < begun + 5:
            assert wire.ask("GET", "item:1") == b"$9\r\npayload 1\r\n"
    assert before.wait(PATIENCE) == 0
    assert "is not waited for" not in guard.log(lines=2000)


def test_a_successor_that_dies_is_no_matter(start_guard, database, items):
    guard = start_guard(items())
    before, guard.process = guard.process, None
    with database.locked():
        guard.launch()
        wait_until(lambda: "was given the sockets" in guard.log(lines=2000), PATIENCE, "a successor")
        guard.process.kill()
        guard.process.wait()
        guard.process = before
        wait_until(lambda: "which was to take over, has ended" in guard.log(lines=2000), PATIENCE, "the news")
    assert guard.redis().get("item:5") == b"payload 5"
    succeed(guard)


def test_the_end_before_the_successor_guards(start_guard, database, items):
    guard = start_guard(items())
    with database.locked():
        before, guard.process = guard.process, None
        guard.launch()
        wait_until(lambda: "was given the sockets" in guard.log(lines=2000), PATIENCE, "a successor")
        before.send_signal(signal.SIGTERM)
        assert before.wait(PATIENCE) == 0
        assert guard.redis().ping()
    guard.wait_guarding()


def test_a_third_waits_for_nobody(start_guard, database, items):
    guard = start_guard(items())
    before, guard.process = guard.process, None
    with database.locked():
        guard.launch()
        wait_until(lambda: "was given the sockets" in guard.log(lines=2000), PATIENCE, "a successor")
        second, guard.process = guard.process, None
        guard.launch()
        assert guard.process.wait(PATIENCE) == 1
        assert "another process has this address" in guard.log(lines=2000)
        guard.process = second
    assert before.wait(PATIENCE) == 0
    guard.wait_guarding()


def test_another_file_does_not_take_over(start_guard, items):
    guard = start_guard(items())
    other = start_guard(items(), ready=None, listen=[f"127.0.0.1:{guard.port}"])
    assert other.process.wait(PATIENCE) == 1
    assert "another process has this address" in other.log()
    other.process = None


def test_more_workers_and_another_address(start_guard, items):
    guard = start_guard(items(), workers=3)
    for workers in (1, 4):
        text = re.sub(r'"workers": \d+', f'"workers": {workers}', guard.file.read_text())
        guard.configure(text)
        with Clients(guard, ask_both) as clients:
            succeed(guard)
        clients.check()


def test_a_unix_socket_stays(start_guard, tmp_path, items):
    path = tmp_path / "guard.sock"
    guard = start_guard(items(), listen=[f"unix:{path}"], ready=False)
    guard.wait_guarding()
    succeed(guard)
    assert redis.Redis(unix_socket_path=str(path)).get("item:3") == b"payload 3"
    guard.signal(signal.SIGTERM)
    assert guard.wait() == 0
    assert not path.exists()
    guard.process = None


def name_of(file):
    """Under which a successor asks: of the file's path, by FNV-1a."""
    number = 14695981039346656037
    for byte in os.fsencode(os.path.realpath(file)):
        number = (number ^ byte) * 1099511628211 % 2 ** 64
    return f"\0nestguard-1-{os.getuid()}-{number:016x}"


def test_it_is_told_that_nobody_can_take_over(start_guard, items):
    guard = start_guard(items())
    assert guard.stop() == 0
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(name_of(guard.file))
        guard.start()
        wait_until(lambda: "no successor can take over" in guard.log(lines=2000), PATIENCE, guard.log)
        assert "Address already in use" in guard.log(lines=2000)
    wait_until(lambda: "a successor can take over" in guard.log(lines=2000), PATIENCE, guard.log)
    succeed(guard)


def test_a_file_behind_a_link_that_moved_is_the_same_file(start_guard, items, tmp_path):
    """As releases are put in place, and the files of a ConfigMap."""
    guard = start_guard(items())
    assert guard.stop() == 0
    for release in ("r1", "r2"):
        (tmp_path / release).mkdir()
        (tmp_path / release / "n.yaml").write_text(guard.file.read_text())
    (tmp_path / "cur").symlink_to("r1")
    guard.file = tmp_path / "cur" / "n.yaml"
    guard.start()
    for release in ("r2", "r1"):
        (tmp_path / "next").symlink_to(release)
        (tmp_path / "next").rename(tmp_path / "cur")
        with Clients(guard, ask_both) as clients:
            succeed(guard)
        clients.check()


def test_what_the_predecessor_could_not_delete_the_successor_deletes(follow, database, items):
    """It was to be deleted from a cache that was away, and comes back with what it had."""
    with redis_beside() as cache:
        guard = follow(items(), cache=cache.url, drain_timeout="1s")
        assert guard.redis().get("item:7") == b"payload 7"
        cache.wait_for_key("item:7")
        cache.client().save()
        cache.kill()
        database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
        wait_until(lambda: guard.status()["stream"]["purges_owed"], PATIENCE, guard.status)
        succeed(guard)
        cache.start()
        wait_until(lambda: cache.client().get("item:7") in (None, b"new"), PATIENCE, guard.log)
        assert guard.redis().get("item:7") == b"new"


def test_where_it_has_deleted_all_that_is_cached_stays(follow, database, items, cache):
    guard = follow(items())
    for number in range(1, 51):
        assert guard.redis().get(f"item:{number}") == b"payload %d" % number
        cache.wait_for_key(f"item:{number}")
    stop = threading.Event()

    def change():
        while not stop.is_set():
            database.execute("UPDATE items SET payload = 'new' WHERE id > 90")

    succeed_beside(guard, change, stop)
    assert cache.client().exists(*(f"item:{number}" for number in range(1, 51))) == 50
    assert "the predecessor has not deleted" not in guard.log(5000)


def test_a_signal_starts_the_successor(start_guard, items):
    guard = start_guard(items())
    with Clients(guard, ask_both) as clients:
        guard.signal(signal.SIGUSR2)
        assert guard.process.wait(PATIENCE) == 0
        number = int(re.findall(r"process (\d+) is started to take over", guard.log(lines=2000))[-1])
    clients.check()
    assert guard.redis().get("item:3") == b"payload 3"
    os.kill(number, signal.SIGTERM)
    wait_until(lambda: not os.path.exists(f"/proc/{number}"), PATIENCE, "its end")
    guard.process = None
    guard.fail_on_reports()


def test_the_service_manager_gives_the_sockets(start_guard, items, monkeypatch):
    """sd_listen_fds(3): clients wait in the queue until there is a guard."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port), PATIENCE)
        client.sendall(b"PING\r\n")
        guard = start_guard_with_fd(start_guard, items(), server, f"127.0.0.1:{port}", monkeypatch)
        assert client.recv(7) == b"+PONG\r\n"
        client.close()
        guard.port = port
        guard.wait_guarding()


def test_more_sockets_of_the_service_manager_than_are_wanted_are_closed(start_guard, items, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        guard = start_guard_with_fd(start_guard, items(), server, f"127.0.0.1:{port}", monkeypatch,
                                    count=5000)
        assert "gives 5000 sockets: no more than 4096 are taken" in guard.log(lines=2000)
        guard.port = port
        assert guard.redis().ping()
        assert len(os.listdir(f"/proc/{guard.process.pid}/fd")) < 5000
        guard.wait_guarding()


def test_a_unix_socket_of_the_service_manager_keeps_its_file(start_guard, tmp_path, items, monkeypatch):
    """The manager goes on listening, and starts the next guard when somebody comes."""
    path = tmp_path / "managed.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        guard = start_guard_with_fd(start_guard, items(), server, f"unix:{path}", monkeypatch)
        guard.wait_guarding()
        for follows in (False, True):
            if follows:
                guard.start_unready()
                guard.wait_guarding()
                succeed(guard)  # who has the socket from a predecessor leaves the file, too
            assert redis.Redis(unix_socket_path=str(path)).get("item:3") == b"payload 3"
            assert guard.stop() == 0
            assert path.exists()


BECOME_A_SERVICE = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
for fd in range(3, 3 + int(sys.argv[2])):
    os.dup2(int(sys.argv[1]), fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=sys.argv[2])
os.execvp(sys.argv[3], sys.argv[3:])
"""


def start_guard_with_fd(start_guard, keyspace, server, address, monkeypatch, count=1):
    """As so many descriptors from 3 on, with the number of the process that is to take them."""
    command = servers.Nestguard.command

    def wrapped(self):
        return [sys.executable, "-c", BECOME_A_SERVICE, str(server.fileno()), str(count), *command(self)]

    server.set_inheritable(True)
    monkeypatch.setattr(servers.Nestguard, "command", wrapped)
    monkeypatch.setattr(servers.subprocess, "Popen",
                        functools.partial(servers.subprocess.Popen, close_fds=False))
    return start_guard(keyspace, listen=[address], ready=False)


def test_a_successor_takes_over_without_a_keyspace_that_it_cannot_have(follow, database, items):
    """Else one table's trouble would keep every new program and every new file away for good."""
    database.execute("CREATE TABLE others (id int PRIMARY KEY); INSERT INTO others VALUES (1)")
    others = {"name": "others", "key": "other:{id}", "table": "others", "value": "id"}
    guard = follow(items(), others)
    database.execute("REVOKE ALL ON others FROM guard")
    with Clients(guard, ask_both) as clients:
        before, guard.process = guard.process, None
        guard.launch()
        assert before.wait(PATIENCE) == 0, guard.log(lines=2000)
        assert guard.keyspace("items")["state"] == "guarding"
        assert "permission denied" in guard.keyspace("others")["reason"]
    clients.check()
    assert "taking over without a keyspace" in guard.log()
    database.execute("GRANT SELECT ON others TO guard")
    guard.wait_guarding()
