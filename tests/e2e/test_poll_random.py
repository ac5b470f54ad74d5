"""No row that was there before the filter in force was begun is denied while tables are changed and
migrated at random, and while whatever takes part is killed, paused and restarted; and no value is
older than its time to live: of tables, and of views and queries of them. See random_run.py."""
import pytest

from histories import NEVER
from random_run import SECONDS, Run
from tables import create_tables, create_views, make_tables

TTL = 1
# A value may be on its way into the cache: load_timeout, and the longest pause of one that takes it.
MAX_AGE = TTL + 2 + 1.2 + 0.8

# What gives each table's rows and columns, whatever a migration makes of them.
QUERIES = {
    "bulk": "SELECT * FROM public.bulk -- all;",
    "docs": "WITH known AS (SELECT * FROM public.docs) SELECT * FROM known",
    "rows": "SELECT id, payload FROM public.rows WHERE id % 2 = 0 UNION ALL"
            " SELECT id, payload FROM public.rows WHERE id % 2 = 1",
    "parts": "SELECT p.* FROM public.parts p JOIN public.parts also USING (id);",
    "items": "SELECT * FROM (SELECT * FROM public.items WHERE id >= 0) i"}


def queried(keyspace):
    return {"query": QUERIES[keyspace["name"]],
            **{name: value for name, value in keyspace.items() if name != "table"}}


@pytest.fixture
def start_run(start_guard, database, cache, capsys):
    """start_run(shown, tell, setting=value): what takes part, ready to go; tell() makes of a table's
    keyspace what the guard is told of it."""
    runs = []

    def start(shown, tell=dict, **settings):
        create_tables(database)
        tables = make_tables(shown)
        create_views(database, tables)
        guard = start_guard(*({**tell(table.keyspace), "ttl": f"{TTL}s"} for table in tables),
                            cache_timeout="500ms", **settings)
        runs.append(Run(database, cache, guard, tables, NEVER, MAX_AGE))
        return runs[0]

    yield start
    with capsys.disabled():
        for run in runs:
            print(f"\n{run.summary()}")


def go(run, seconds):
    run.go(seconds)
    run.wait_guarding()
    run.guard.rebuild()
    run.check_the_end()


def test_no_row_is_denied_that_was_there_before_the_filter(start_run):
    go(start_run(shown=False, sync="poll", poll_interval="2s"), SECONDS)


@pytest.mark.parametrize("sync", ["poll", "none"])
def test_no_row_of_a_view_is_denied_that_was_there_before_the_filter(start_run, sync):
    """With `none` a filter is built when it is asked for."""
    go(start_run(shown=True, sync=sync, poll_interval="2s"), 0.6 * SECONDS)


def test_no_row_of_a_query_is_denied_that_was_there_before_the_filter(start_run):
    go(start_run(shown=False, tell=queried, sync="poll", poll_interval="2s"), 0.6 * SECONDS)
