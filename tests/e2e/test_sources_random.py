"""No key is denied that was in a file which was taken, while files are replaced, cut short, emptied,
deleted, damaged and restored at random beside changing rows, lookups and a guard that is killed and
paused; and the log says what was refused. See random_run.py and exports.py."""
import pytest

from exports import Exporter, make_exported
from histories import NEVER
from random_run import SECONDS, Run
from tables import create_tables
from test_poll_random import MAX_AGE, TTL


@pytest.fixture
def run(start_guard, database, cache, capsys, tmp_path):
    create_tables(database)
    tables = make_exported(database, tmp_path, TTL)
    guard = start_guard(*(table.keyspace for table in tables), database=None, cache_timeout="500ms",
                        hint_ttl="1s")
    made = Run(database, cache, guard, tables, NEVER, MAX_AGE, exported=True)
    yield made
    with capsys.disabled():
        print(f"\n{made.summary()}")


def test_no_key_of_a_file_that_was_taken_is_denied(run):
    run.go(0.8 * SECONDS)
    exporter = Exporter(run)
    run.stop.clear()
    exporter.export()
    exporter.close()
    run.wait_guarding()
    run.check_the_end()
    said = run.guard.log_path.read_text(errors="replace").count("is refused")
    assert run.counts["confirmations"] and said >= run.counts["refused files"]
