"""Values that are made of other tables' rows, too: these tables are followed, and whatever a change
of them makes old leaves the cache. With a TTL of 0 nothing else would ever renew it."""
import json

import pytest

from checking import check, keyspace  # noqa: F401
from following import fill, follow, publish, wait_followed, wait_generation, wait_purged, wait_state  # noqa: F401
from gate import POSTGRES_READY
from servers import PATIENCE
from test_follow_unseen import unseen  # noqa: F401
from test_handover import succeed
from test_reload import reload
from waiting import wait_until

TABLES = """
    CREATE TABLE authors (id int PRIMARY KEY, name text);
    INSERT INTO authors SELECT n, 'author ' || n FROM generate_series(1, 20) n;
    CREATE TABLE words (id int PRIMARY KEY, article_id int, word text);
    ALTER TABLE words REPLICA IDENTITY FULL;
    INSERT INTO words SELECT n, (n + 1) / 2, 'word ' || n FROM generate_series(1, 200) n;
    CREATE TABLE articles (id bigint PRIMARY KEY, author_id int, title text);
    INSERT INTO articles SELECT n, n % 20 + 1, 'title ' || n FROM generate_series(1, 100) n;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO public;"""
AUTHOR = "(SELECT a.name FROM authors a WHERE a.id = articles.author_id)"
WORDS = "(SELECT string_agg(w.word, '+' ORDER BY w.id) FROM words w WHERE w.article_id = articles.id)"
VALUE = f"jsonb_build_object('title', title, 'author', {AUTHOR}, 'words', {WORDS})::text"
DEPENDS = ["authors", "words on article_id = id"]


def articles(**settings):
    return {"name": "articles", "key": "article:{id}", "table": "articles", "value": VALUE,
            "depends": DEPENDS, "ttl": 0, **settings}


def without(keyspace):
    return {name: setting for name, setting in keyspace.items() if name != "depends"}


@pytest.fixture
def tables(database):
    database.execute(TABLES)
    return database


def value(guard, n):
    return json.loads(guard.redis().get(f"article:{n}"))


def wait_value(guard, n, **wanted):
    wait_until(lambda: wanted.items() <= value(guard, n).items(), PATIENCE,
               lambda: f"{wanted} in {value(guard, n)}\n{guard.log()}")


class TestAChange:
    @pytest.mark.parametrize("change, wanted", [
        ("UPDATE authors SET name = 'new' WHERE id = 8", {"author": "new"}),
        ("DELETE FROM authors WHERE id = 8", {"author": None}),
        ("UPDATE authors SET id = 80 WHERE id = 8", {"author": None}),
        ("UPDATE articles SET author_id = 9 WHERE id = 7", {"author": "author 9"}),
        ("TRUNCATE authors", {"author": None}),
        ("UPDATE words SET word = 'new' WHERE id = 14", {"words": "word 13+new"}),
        ("INSERT INTO words VALUES (1000, 7, 'more')", {"words": "word 13+word 14+more"}),
        ("DELETE FROM words WHERE id = 13", {"words": "word 14"}),
        ("UPDATE words SET article_id = 8 WHERE id = 13", {"words": "word 14"}),
        ("UPDATE words SET article_id = NULL WHERE id = 13", {"words": "word 14"}),
        ("UPDATE words SET article_id = 7 WHERE id = 1", {"words": "word 1+word 13+word 14"}),
        ("TRUNCATE words", {"words": None}),
        ("ALTER TABLE authors ALTER name TYPE text USING upper(name)", {"author": "AUTHOR 8"}),
        ("ALTER TABLE words ALTER word TYPE text USING 'x'", {"words": "x+x"}),
        ("ALTER TABLE authors RENAME TO old_ones; CREATE TABLE authors (id int PRIMARY KEY, name text);"
         "INSERT INTO authors VALUES (8, 'of another table'); GRANT SELECT ON authors TO public;"
         "ALTER PUBLICATION nestguard ADD TABLE authors", {"author": "of another table"})])
    def test_of_a_table_that_the_value_is_made_of_is_seen(self, follow, cache, tables, change, wanted):
        guard = follow(articles())
        fill(guard, cache, "article:7", "article:8")
        tables.execute(change)
        wait_value(guard, 7, **wanted)
        wait_value(guard, 8, title="title 8")

    def test_that_moves_a_row_is_seen_of_both_values(self, follow, cache, tables):
        guard = follow(articles())
        fill(guard, cache, "article:7", "article:8")
        tables.execute("UPDATE words SET article_id = 8 WHERE id = 13")
        wait_value(guard, 7, words="word 14")
        wait_value(guard, 8, words="word 13+word 15+word 16")

    def test_of_a_row_that_tells_its_key_leaves_all_others_in_the_cache(self, follow, cache, tables):
        guard = follow(articles())
        fill(guard, cache, *(f"article:{n}" for n in range(1, 21)))
        tables.execute("UPDATE words SET word = 'new' WHERE article_id = 7")
        wait_followed(tables)
        wait_purged(cache, "article:7")
        assert cache.client().exists(*(f"article:{n}" for n in range(1, 21))) == 19
        assert cache.calls("scan") == 0

    def test_of_many_rows_is_one_sweep(self, follow, cache, tables):
        guard = follow(articles())
        fill(guard, cache, *(f"article:{n}" for n in range(1, 21)))
        tables.execute("""
            INSERT INTO authors SELECT n, 'x' FROM generate_series(1000, 30000) n;
            UPDATE authors SET name = 'y' WHERE id >= 1000""")
        wait_purged(cache, *(f"article:{n}" for n in range(1, 21)))
        wait_followed(tables)
        assert cache.calls("scan") <= 4

    def test_that_is_rolled_back_changes_nothing(self, follow, cache, tables):
        guard = follow(articles())
        fill(guard, cache, "article:7", "article:8")
        connection = tables.connect()
        cursor = connection.cursor()
        cursor.execute("SAVEPOINT one; UPDATE authors SET name = 'no';"
                       "UPDATE words SET word = 'no' WHERE article_id = 8; ROLLBACK TO one;"
                       "UPDATE words SET word = 'yes' WHERE article_id = 7")
        connection.commit()
        connection.close()
        wait_purged(cache, "article:7")
        assert cache.client().exists("article:8") and cache.calls("scan") == 0

    def test_leaves_other_keyspaces_in_the_cache(self, follow, cache, tables):
        other = without(articles(name="titles", key="title:{id}", value="title"))
        guard = follow(articles(), other)
        fill(guard, cache, "article:7", "title:7")
        tables.execute("UPDATE authors SET name = 'new'")
        wait_purged(cache, "article:7")
        assert cache.client().exists("title:7")

    def test_is_seen_where_the_application_loads_by_itself(self, follow, cache, tables):
        guard = follow(articles(on_miss="pass", value="title"))
        guard.redis().mset({"article:7": "mine", "article:8": "mine"})
        tables.execute("UPDATE words SET word = 'new' WHERE article_id = 7")
        wait_purged(cache, "article:7")
        assert guard.redis().get("article:8") == b"mine"
        tables.execute("UPDATE authors SET name = 'new'")
        wait_purged(cache, "article:8")

    def test_of_a_partition_is_seen_under_the_tables_name(self, follow, cache, tables):
        tables.execute("""
            DROP TABLE authors; CREATE TABLE authors (id int PRIMARY KEY, name text) PARTITION BY RANGE (id);
            CREATE TABLE authors_1 PARTITION OF authors FOR VALUES FROM (1) TO (10);
            CREATE TABLE authors_2 PARTITION OF authors FOR VALUES FROM (10) TO (99);
            INSERT INTO authors VALUES (8, 'eight'), (18, 'eighteen');
            GRANT SELECT ON authors TO public""")
        guard = follow(articles())
        fill(guard, cache, "article:7", "article:17")
        tables.execute("UPDATE authors SET name = 'new' WHERE id = 18")
        wait_value(guard, 17, author="new")
        tables.execute("ALTER TABLE authors DETACH PARTITION authors_1")
        wait_value(guard, 7, author=None)

    def test_of_other_rows_of_the_same_table_is_seen(self, follow, cache, tables):
        guard = follow(articles(value="(SELECT max(o.title) FROM articles o WHERE o.id = articles.id + 1)",
                                depends=["articles"]))
        fill(guard, cache, "article:7")
        tables.execute("UPDATE articles SET title = 'zzz' WHERE id = 8")
        wait_until(lambda: guard.redis().get("article:7") == b"zzz", PATIENCE, guard.log)

    @pytest.mark.parametrize("change", ["UPDATE authors SET name = 'new'",
                                        "UPDATE words SET word = 'new' WHERE article_id = 7"])
    def test_makes_a_load_old_that_read_before_it(self, follow, gate, cache, tables, threads, change):
        through = tables.url.replace(f":{tables.server.port}/", f":{gate.port}/")
        guard = follow(articles(), database=through, load_timeout="60s")
        gate.hold_answers(b'"title 7"')
        asking = threads.submit(guard.redis().get, "article:7")
        gate.wait_held(POSTGRES_READY)
        tables.execute(change)
        wait_followed(tables)
        gate.release()
        assert b"title 7" in asking.result(PATIENCE)
        wait_until(lambda: not guard.explain("article:7")["in_flight"], PATIENCE, guard.log)
        assert b"new" in guard.redis().get("article:7")


class TestWhatCannotBeFollowed:
    def refused(self, check, words, remedy=None, **settings):
        keyspace = articles(**settings)
        report = check(keyspace if keyspace["depends"] else without(keyspace), sync="replication")
        errors = [finding for finding in report.findings if finding[1] == "error"]
        assert any(words in text for _, _, text, _ in errors), report.text
        if remedy:
            assert any(remedy in (mend or "") for _, _, _, mend in errors), report.text

    def test_is_refused_by_its_name(self, check, tables):
        tables.execute("""
            CREATE VIEW names AS SELECT a.id, a.name FROM authors a;
            CREATE MATERIALIZED VIEW kept AS SELECT * FROM authors;
            CREATE TABLE bare (id int, name text);
            GRANT SELECT ON ALL TABLES IN SCHEMA public TO public""")
        self.refused(check, "value reads table public.words", "depends: [authors, public.words]",
                     depends=["authors"])
        self.refused(check, "value reads table public.authors", "depends: [public.authors]",
                     value=AUTHOR.replace("authors", "names"), depends=[])
        self.refused(check, "public.kept, a materialized view", depends=DEPENDS,
                     value=AUTHOR.replace("authors", "kept"))
        self.refused(check, "table public.bare has no replica identity",
                     "ALTER TABLE public.bare REPLICA IDENTITY FULL;",
                     value=AUTHOR.replace("authors", "bare"), depends=["bare"])
        self.refused(check, "public.names is a view", depends=[*DEPENDS, "names"])
        self.refused(check, "table missing does not exist", depends=[*DEPENDS, "missing"])
        self.refused(check, "value reads table public.articles",
                     value="(SELECT max(o.title) FROM articles o)", depends=[])

    def test_of_the_columns_that_tell_the_key(self, check, tables):
        self.refused(check, "has no column nr", depends=["authors", "words on nr = id"])
        self.refused(check, "column word of table public.words is of type text",
                     depends=["authors", "words on word = id"])
        tables.execute("ALTER TABLE words REPLICA IDENTITY DEFAULT")
        self.refused(check, "the replica identity of table public.words lacks article_id",
                     "ALTER TABLE public.words REPLICA IDENTITY FULL;")

    @pytest.mark.parametrize("settings, words", [
        ({"depends": ["words on article_id"]}, "behind `on` stands a column"),
        ({"depends": ["words on article_id = title"]}, "each column of the key"),
        ({"depends": ["words", "words"]}, "is listed twice"),
        ({"depends": []}, "must name at least one table"),
        ({"depends": ["a.b.c"]}, "table or schema.table")])
    def test_is_told_of_the_file(self, check, tables, settings, words):
        report = check(articles(**{**settings, "depends": settings["depends"] or []}), sync="replication")
        assert words in report.text and report.status == 1

    @pytest.mark.parametrize("sync", ["poll", "none"])
    def test_without_a_log_nothing_can(self, check, tables, sync):
        report = check(articles(), sync=sync)
        assert "depends needs sync: replication" in report.text and report.status == 1

    def test_rows_that_a_condition_leaves_out(self, check, tables):
        other = without(articles(name="authors", key="author:{id}", table="authors", value="name",
                                 where="id > 3"))
        report = check(articles(), other, sync="replication")
        assert "changes of other rows would not be told" in report.text, report.text

    def test_a_table_that_is_not_read_is_a_warning(self, check, tables):
        publish(tables, articles())
        report = check(articles(value=WORDS), sync="replication")
        assert any(level == "warning" and "does not read table public.authors" in text
                   for _, level, text, _ in report.findings), report.text

    def test_keeps_a_guard_that_reads_it_again_from_guarding(self, follow, cache, tables):
        guard = follow(articles())
        with tables.locked("articles"):  # else it would be refused
            reload(guard, tables, cache, "replication", articles(depends=["authors"]))
        wait_until(lambda: "value reads table public.words" in str(guard.keyspace("articles")),
                   PATIENCE, lambda: f"{guard.status()}{guard.log()}")
        assert guard.redis().get("article:7") and guard.redis().get("article:700") is None
        assert guard.keyspace("articles")["state"] != "guarding"

    def test_is_in_order_with_all_that_it_reads(self, check, tables):
        publish(tables, articles())
        report = check(articles(), sync="replication")
        assert "error" not in report.levels(), report.text
        assert "a subquery" not in report.text


def test_a_reload_that_names_a_table_follows_it(follow, cache, tables):
    plain = without(articles(value="title"))
    guard = follow(plain)
    publish(tables, articles())
    fill(guard, cache, "article:7")
    reload(guard, tables, cache, "replication", articles())
    wait_state(guard, "guarding", "articles")
    fill(guard, cache, "article:7")
    tables.execute("UPDATE authors SET name = 'new'")
    wait_value(guard, 7, author="new")
    tables.execute("UPDATE words SET word = 'new' WHERE article_id = 7")
    wait_value(guard, 7, words="new+new")


@pytest.mark.parametrize("change", ["UPDATE authors SET name = 'new'",
                                    "UPDATE words SET word = 'new' WHERE article_id = 7"])
def test_what_was_loaded_before_the_commit_was_seen_does_not_stay(follow, cache, tables, unseen, change):
    titles = without(articles(name="titles", key="title:{id}", value="title"))
    guard = follow(articles(), titles)
    fill(guard, cache, "article:7")
    unseen(change)
    wait_purged(cache, "article:7")
    assert b"new" not in guard.redis().get("article:7")
    fill(guard, cache, "title:8")  # which goes on, and whatever was to be filled before has been
    assert not cache.client().exists("article:7")
    unseen.seen()
    wait_followed(tables)
    assert b"new" in guard.redis().get("article:7")


def test_a_successor_follows_them(follow, cache, tables):
    guard = follow(articles())
    fill(guard, cache, "article:7")
    succeed(guard)
    tables.execute("UPDATE authors SET name = 'new'")
    wait_value(guard, 7, author="new")
    fill(guard, cache, "article:7")
    tables.execute("UPDATE words SET word = 'new' WHERE article_id = 7")
    wait_value(guard, 7, words="new+new")


def test_the_configuration_that_is_shown_has_them(follow, tables):
    shown = follow(articles()).control("GET", "/v1/config").text
    assert "authors" in shown and "words on article_id = id" in shown
