"""Waiting for a condition, never for a length of time."""
import time

INTERVAL = 0.02


def wait_until(condition, timeout, message):
    """Asks until `condition()` is true and returns what it gave. `message` says what was awaited:
    text, or a function that makes it when it is needed."""
    end = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            text = message() if callable(message) else message
            raise AssertionError(f"waited {timeout} s in vain for {text}")
        time.sleep(INTERVAL)
