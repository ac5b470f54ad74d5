"""The guard beside a Redis asked directly: what both answer, byte for byte."""
import contextlib
import re

from servers import PATIENCE, Redis
from wire import Wire, command


@contextlib.contextmanager
def redis_beside():
    """Another Redis, to be asked what the guard's own is asked."""
    server = Redis().start()
    try:
        yield server
    finally:
        server.stop()
        server.remove()


class Pair:
    """Two connections that are told the same and must answer alike."""

    def __init__(self, guard, server):
        self.guard, self.direct = guard.wire(), Wire(server.port, PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.guard.close()
        self.direct.close()

    def ask(self, line, replies=1):
        """Sends one command line (words between blanks) and returns the reply that both gave."""
        words = line.split() if isinstance(line, str) else line
        for wire in (self.guard, self.direct):
            wire.send(command(*words))
        return self.read(replies, line)

    def send(self, *lines):
        """A pipeline."""
        for wire in (self.guard, self.direct):
            wire.send(b"".join(command(*line.split()) for line in lines))

    def read(self, replies, line=""):
        got, wanted = self.guard.read_replies(replies), self.direct.read_replies(replies)
        assert without_ids(got) == without_ids(wanted), f"{line}: {got} is not {wanted}"
        return got

    def pipeline(self, *lines):
        self.send(*lines)
        return [self.read(1, line) for line in lines]


def without_ids(reply):
    return re.sub(rb"(\$2\r\nid\r\n):\d+\r\n", rb"\1", reply)
