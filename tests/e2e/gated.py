"""Fixtures: another Redis, and a gate before it."""
import pytest

from beside import redis_beside
from gate import Gate


@pytest.fixture
def other():
    with redis_beside() as server:
        yield server


@pytest.fixture
def gate(other):
    with Gate(other.port) as opened:
        yield opened
