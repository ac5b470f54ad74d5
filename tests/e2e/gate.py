"""A gate between the guard and one of its servers, which keeps back what a test wants late:

    guard ──requests──▶ Gate ──▶ server          a connection is kept from the bytes on that `having`
          ◀──answers───      ◀──                 is found in; other connections go on meanwhile

So an answer can be true when the server gave it and old when the guard gets it.
"""
import contextlib
import socket
import threading

from servers import PATIENCE
from waiting import wait_until

# How an answer of PostgreSQL ends, outside of a transaction: ReadyForQuery.
POSTGRES_READY = b"Z\0\0\0\5I"


class Gate:
    """With it: nothing is held at the end, and every connection is cut; the guard should have ended."""

    def __init__(self, port):
        self.server_port = port
        self.lock = threading.Lock()
        self.held = {}  # the socket that bytes are kept from: those bytes
        self.hold = None
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()
        self.close()

    def hold_answers(self, having=b""):
        """From now on; until release()."""
        self._hold("answers", having)

    def hold_requests(self, having=b""):
        self._hold("requests", having)

    def is_holding(self, ending=b""):
        """Whether bytes are kept back that end like this."""
        return any(kept.endswith(ending) for kept in self._kept())

    def count_held(self):
        """Connections from which bytes are kept."""
        return len(self._kept())

    def wait_held(self, ending=b""):
        wait_until(lambda: self.is_holding(ending), PATIENCE,
                   lambda: f"bytes that end with {ending!r}; held: {self._kept()}")

    def release(self):
        """What was kept back goes on, and nothing more is held."""
        self._let_go(None)

    def hold_no_more(self):
        """What is kept back stays so; other connections go on."""
        with self.lock:
            self.hold = None

    def release_held(self):
        """What was kept back goes on; what comes behind it is held as before."""
        self._let_go(self.hold)

    def release_first(self):
        """What was kept from the first connection goes on; the others are kept from theirs."""
        with self.lock:
            self._pass(next(iter(self.held)))

    def _let_go(self, hold):
        with self.lock:
            self.hold = hold
            for sink in list(self.held):
                self._pass(sink)

    def _pass(self, sink):
        kept = self.held.pop(sink)
        with contextlib.suppress(OSError):
            sink.sendall(kept)

    def close(self):
        """Cuts every connection; the guard should have ended."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.threads[0].join()
        for end in self.sockets:
            _shut(end)
        for thread in self.threads:
            thread.join()
        for end in [self.listener, *self.sockets]:
            end.close()

    def _hold(self, direction, having):
        with self.lock:
            self.hold = (direction, having)

    def _kept(self):
        with self.lock:
            return [bytes(kept) for kept in self.held.values()]

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                guard = self.listener.accept()[0]
                self.sockets.append(guard)
                try:
                    server = socket.create_connection(("127.0.0.1", self.server_port))
                except OSError:
                    _shut(guard)
                    continue
                self.sockets.append(server)
                for pump in ((guard, server, "requests"), (server, guard, "answers")):
                    self.threads.append(threading.Thread(target=self._pump, args=pump))
                    self.threads[-1].start()

    def _pump(self, source, sink, direction):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._pass_on(sink, direction, data)
        _shut(sink)

    def _pass_on(self, sink, direction, data):
        with self.lock:
            if self.hold and self.hold[0] == direction and self.hold[1] in data:
                self.held.setdefault(sink, bytearray())
            if sink in self.held:
                self.held[sink] += data
            else:
                sink.sendall(data)


class Fronted:
    """A server that tells its friends another port: that of a gate."""

    def __init__(self, server, setting):
        self.server, self.gate = server, Gate(server.port)
        server.client().config_set(setting, self.gate.port)

    def __enter__(self):
        return self.gate

    def __exit__(self, *raised):
        self.gate.__exit__(*raised)


def _shut(end):
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
