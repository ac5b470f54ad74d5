"""A program on a terminal of its own: what it writes there, keys that are pressed, its size."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from servers import NESTGUARD, PATIENCE, SANITIZERS

SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    def __init__(self, *words, program=NESTGUARD, rows=50, columns=200, **environment):
        self.master, slave = pty.openpty()
        self.size(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.text = ""
        self.process = subprocess.Popen(
            [program, *map(str, words)], stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, **SANITIZERS, "TERM": "xterm", **environment})

    def size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.size(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self, until):
        """All that was written since the last call, up to where `until(text)` holds."""
        end = time.monotonic() + PATIENCE
        self.text = ""
        while not until(self.text):
            assert time.monotonic() < end, f"waited in vain; there is:\n{self.text}"
            if not select.select([self.master], [], [], 0.1)[0]:
                if self.process.poll() is not None:
                    assert until(self.text), self.text
                continue
            with contextlib.suppress(OSError):
                self.text += os.read(self.master, 65536).decode()
        return self.text

    def rest(self):
        """What it writes to its end."""
        return self.read(lambda _: self.process.poll() is not None
                         and not select.select([self.master], [], [], 0)[0])

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


def plain(text):
    """Without colours; where the cursor was put elsewhere a line begins."""
    return SEQUENCE.sub("", re.sub(r"\x1b\[[0-9;]*H", "\n", text))
