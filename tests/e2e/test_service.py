"""What the guard tells the service manager that has started it: `Type=notify` and its watchdog."""
import os
import signal
import socket
import sys

import pytest

import servers
from servers import PATIENCE
from waiting import wait_until


class Manager:
    """The receiving end of sd_notify(3)."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(PATIENCE)

    def next(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def forget(self):
        self.socket.setblocking(False)
        try:
            while self.socket.recv(4096):
                pass
        except BlockingIOError:
            self.socket.settimeout(PATIENCE)


@pytest.fixture
def manager(tmp_path, monkeypatch):
    path = tmp_path / "notify"
    manager = Manager(path)
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    yield manager
    manager.socket.close()


def test_it_is_ready_when_clients_are_served(start_guard, database, items, manager):
    with database.locked():  # also while nothing is guarded
        guard = start_guard(items(), ready=None)
        assert manager.next()["READY"] == "1"
        with socket.create_connection(("127.0.0.1", guard.port), PATIENCE) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(7) == b"+PONG\r\n"


def test_a_reload_begins_and_ends_also_when_the_file_is_wrong(start_guard, items, manager):
    guard = start_guard(items())
    manager.forget()
    for text in (guard.file.read_text(), "nonsense: true\n"):
        guard.configure(text)
        guard.signal(signal.SIGHUP)
        said = manager.next()
        assert said["RELOADING"] == "1" and int(said["MONOTONIC_USEC"]) > 0
        assert manager.next()["READY"] == "1"


def test_the_end_is_told_and_no_watchdog_cuts_it_short(start_guard, items, manager):
    guard = start_guard(items())
    manager.forget()
    guard.signal(signal.SIGTERM)
    said = manager.next()
    assert said["STOPPING"] == "1" and said["WATCHDOG_USEC"] == "0"
    assert guard.wait() == 0


def test_the_watchdog_hears_of_it_while_all_threads_go_on(start_guard, items, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "500000")
    start_guard(items())
    manager.forget()
    for _ in range(3):
        assert manager.next()["WATCHDOG"] == "1"


BECOME_A_SERVICE = """
import os, sys
os.environ.update(WATCHDOG_PID=str(os.getpid()), WATCHDOG_USEC="500000")
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_the_successor_keeps_the_watchdog(start_guard, items, manager, monkeypatch):
    """Which systemd has meant for the process that it started, and goes on to wait for."""
    command = servers.Nestguard.command
    monkeypatch.setattr(servers.Nestguard, "command",
                        lambda self: [sys.executable, "-c", BECOME_A_SERVICE, *command(self)])
    guard = start_guard(items())
    guard.signal(signal.SIGUSR2)
    said = {}
    while "MAINPID" not in said:
        said = manager.next()
    assert guard.process.wait(PATIENCE) == 0
    try:
        manager.forget()
        while "WATCHDOG" not in manager.next():
            pass
    finally:
        os.kill(int(said["MAINPID"]), signal.SIGTERM)
        wait_until(lambda: not os.path.exists(f"/proc/{said['MAINPID']}"), PATIENCE, "its end")
        guard.process = None
    guard.fail_on_reports()
