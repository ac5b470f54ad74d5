"""More connections than there are open files for: who is here is served, and when the others leave,
all is as before."""
import contextlib
import resource
import socket

from servers import PATIENCE
from waiting import wait_until

FILES = 520


@contextlib.contextmanager
def crowd(guard, count):
    """So many connections at once that never say a word."""
    sockets = []
    try:
        for _ in range(count):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", guard.port))
            sockets.append(one)
        yield sockets
    finally:
        for one in sockets:
            one.close()


def all_is_well(guard, client, number):
    """Who is connected is served, also from the database; and the control port answers."""
    assert client.get(f"item:{number}") == f"payload {number}".encode()
    assert client.get("item:901") is None
    assert guard.control("GET", "/healthz").status_code == 200


def welcomes(guard):
    """A client that comes now is served."""
    with contextlib.suppress(Exception):
        with guard.wire() as wire:
            return wire.ask("PING") == b"+PONG\r\n"
    return False


def test_more_clients_than_open_files_harm_nobody(start_guard, items):
    guard = start_guard(items(), files=FILES)
    limits = guard.status()["limits"]
    assert limits["open_files"] == FILES
    assert 10 < limits["clients"] < FILES
    client = guard.redis()
    assert client.get("item:1") == b"payload 1"
    for turn in range(3):
        with crowd(guard, 3 * FILES):
            wait_until(lambda: guard.status()["clients"] >= limits["clients"], PATIENCE, "the crowd")
            for number in range(10):
                all_is_well(guard, client, 2 + turn * 10 + number)
        wait_until(lambda: welcomes(guard), PATIENCE, "a place for a newcomer")
    assert guard.total("nestguard_connections_refused_total") > 0
    assert guard.log_path.stat().st_size < 20_000, guard.log()


def test_at_the_systems_limit_accepting_pauses_and_goes_on(start_guard, items):
    """The reserve cannot be enough when somebody lowers the limit from outside."""
    guard = start_guard(items(), files=FILES)
    guard.http.headers["Connection"] = "keep-alive"  # there will be no descriptor for another
    guard.status()
    client = guard.redis()
    assert client.get("item:1") == b"payload 1"
    resource.prlimit(guard.process.pid, resource.RLIMIT_NOFILE, (20, FILES))
    with crowd(guard, 50):
        wait_until(lambda: guard.total("nestguard_accept_pauses_total") > 10, PATIENCE, "pauses")
        for number in range(2, 10):
            assert client.get(f"item:{number}") == f"payload {number}".encode()
        said = guard.log_path.read_text().count("accepting a client")
        assert 1 <= said < 20, guard.log()
        resource.prlimit(guard.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        wait_until(lambda: guard.status()["clients"] >= 51, PATIENCE, "those who waited")
    wait_until(lambda: welcomes(guard), PATIENCE, "a place for a newcomer")


def test_the_start_and_check_tell_how_many_clients_there_is_room_for(start_guard, items):
    guard = start_guard(items(), files=FILES)
    limits = guard.status()["limits"]
    assert f"{FILES} open files: {limits['clients']} clients" in guard.log()
    assert f"enough for {limits['clients']} clients" in guard.log()
    assert guard.total("nestguard_clients_limit") == limits["clients"]
