"""The Redis protocol by hand: what goes out and comes in as bytes, for tests that redis-py is too
well-behaved for."""
import socket

BIND_ADDRESS_NO_PORT = 24  # IP_BIND_ADDRESS_NO_PORT of <linux/in.h>, which this module has no name for


def command(*words):
    """One command as clients send it."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    head = b"*%d\r\n" % len(parts)
    return head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def bulk(value):
    """A reply that holds this value; None is nil."""
    if value is None:
        return b"$-1\r\n"
    value = value if isinstance(value, bytes) else str(value).encode()
    return b"$%d\r\n%s\r\n" % (len(value), value)


def socket_from(source):
    """A socket whose connection will come from this address. Its port is chosen when it connects: one
    that bind() chooses is kept from all other clients of the machine, for a minute after its end, too."""
    one = socket.socket()
    one.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
    one.bind((source, 0))
    return one


class Wire:
    def __init__(self, port, timeout, source="127.0.0.1"):
        """From another address of this machine it is another host's."""
        self.socket = socket_from(source)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, *words):
        """Sends one command and returns the bytes of its reply."""
        self.send(command(*words))
        return self.read_reply()

    def read_replies(self, count):
        return b"".join(self.read_reply() for _ in range(count))

    def read_reply(self):
        """The bytes of one whole reply of RESP2 or RESP3."""
        line = self._line()
        kind, rest = line[:1], line[1:-2]
        if kind in b"+-:_#,(":
            return line
        assert kind in b"$*=!%~>|", f"not a reply: {line!r}"
        count = int(rest)
        if count < 0:
            return line
        if kind in b"$=!":
            return line + self.read_bytes(count + 2)
        if kind in b"%|":
            return line + self.read_replies(2 * count + (kind == b"|"))
        return line + self.read_replies(count)

    def read_bytes(self, count):
        parts, missing = [self.buffer[:count]], count - len(self.buffer)
        self.buffer = self.buffer[count:]
        while missing > 0:
            part = self.socket.recv(min(missing, 1 << 20))
            assert part, "the guard closed the connection in the middle of a reply"
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def read_until_closed(self):
        """All bytes until the guard closes the connection."""
        parts = [self.buffer]
        self.buffer = b""
        try:
            while part := self.socket.recv(1 << 16):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)

    def _line(self):
        while b"\r\n" not in self.buffer:
            part = self.socket.recv(1 << 16)
            assert part, f"the guard closed the connection; so far: {self.buffer!r}"
            self.buffer += part
        end = self.buffer.index(b"\r\n") + 2
        line, self.buffer = self.buffer[:end], self.buffer[end:]
        return line
