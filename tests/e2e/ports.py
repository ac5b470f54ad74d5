"""Ports for servers of the tests."""
import contextlib
import random
import socket

FIRST, END = 20000, 32000  # below the range that outgoing connections take theirs from

claims = []


def free_port():
    """A port that nobody has, and that no test program on this machine gives to another server
    before this one has ended: whoever got it may not listen yet, or not again yet."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(FIRST, END)
        if _claim(port) and _is_free(port):
            return port
    raise RuntimeError(f"no free port from {FIRST} to {END}")


def _claim(port):
    """A name without a file, which goes with the process."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0nestguard test port {port}")
    except OSError:
        claim.close()
        return False
    claims.append(claim)
    return True


def _is_free(port):
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        return True
    return False
