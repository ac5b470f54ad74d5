"""Nodes of a cluster as none should be: each has a real Redis behind it for what it answers rightly,
and says for the rest whatever a test has it say."""
import collections
import contextlib
import socket
import threading
import time

from servers import PATIENCE
from wire import Wire, bulk

# Instead of an answer.
SILENCE = object()
HANG_UP = object()


class LastWords(bytes):
    """Behind them the connection ends."""


def array(*parts):
    return b"*%d\r\n" % len(parts) + b"".join(parts)


def ranges(*those):
    """The answer to CLUSTER SLOTS that has these: first, last, port, perhaps the host, and perhaps its
    id."""
    return array(*(array(b":%d\r\n" % first, b":%d\r\n" % last,
                         array(bulk(more[0] if more else "127.0.0.1"), b":%d\r\n" % port,
                               *(bulk(name) for name in more[1:])))
                   for first, last, port, *more in those))


class Node:
    """answer(words) is asked before the server is: bytes, SILENCE, HANG_UP, or None, which leaves it
    to the server. `slots` is the answer to CLUSTER SLOTS; None: all are its own. `id` is the one to
    CLUSTER MYID; None: that is refused."""

    def __init__(self, server):
        self.server = server
        self.answer = lambda words: None
        self.slots = self.id = None
        self.asked = collections.Counter()
        self.accepted = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"redis-cluster://127.0.0.1:{self.port}"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.accepted += 1
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sockets.append(client)
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError, ValueError, AssertionError), client, \
                client.makefile("rb") as stream, Wire(self.server.port, PATIENCE) as wire:
            while words := read_command(stream):
                said = self.say(words, wire)
                if said is HANG_UP:
                    return
                if said is not SILENCE:
                    client.sendall(said)
                if isinstance(said, LastWords):
                    return
        with contextlib.suppress(ValueError):
            self.sockets.remove(client)

    def say(self, words, wire):
        name = words[0].upper().decode()
        self.asked[name] += 1
        said = self.answer(words)
        if said is not None:
            return said
        if name == "CLUSTER" and words[1].upper() == b"MYID":
            return bulk(self.id) if self.id else b"-NOPERM no\r\n"
        if name == "CLUSTER":
            return ranges((0, 16383, self.port)) if self.slots is None else self.slots
        said = wire.ask(*words)
        return said.replace(b"cluster_enabled:0", b"cluster_enabled:1")

    def hang_up(self):
        """On everybody."""
        for client in list(self.sockets):
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        self.hang_up()


def read_command(stream):
    """Its words; none at the end."""
    head = stream.readline()
    if not head.startswith(b"*"):
        return []
    return [stream.read(int(stream.readline()[1:]) + 2)[:-2] for _ in range(int(head[1:]))]


def per_second(count, seconds):
    """How often that counts up."""
    before, began = count(), time.monotonic()
    time.sleep(seconds)
    return (count() - before) / (time.monotonic() - began)
