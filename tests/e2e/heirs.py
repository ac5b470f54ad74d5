"""Fixtures for whoever imports them: a cluster whose primaries have replicas, and a guard before it."""
import pytest

from clusters import Cluster


@pytest.fixture
def cluster():
    started = Cluster(replicas=1).start()
    yield started
    started.remove()


@pytest.fixture
def guard(follow, items, cluster):
    return follow(items(), cache=cluster.url)
