"""The tables of the random histories: each a keyspace of another kind, with a few rows that change.

    bulk    many rows that come and go together; a condition, so that it is counted before `items`
    docs    the whole row as JSON, with an enum and a time in it
    rows    cached as hashes, of which one column is a value; asked by each command of hashes
    parts   partitioned; its value is an expression with a function that is defined anew
    made    its value is of other tables' rows, too: of `seals` each writer has one, which all of its
            keys show, and `pieces` go from key to key
    items   a condition that few of its rows meet; a name without its schema; the last to be read

What is in them is never reckoned: whoever changes a row, or a table, asks the database in the same
transaction what each key's value is now. So they may be shown by views, which are what the guard is
told of then, in place of the tables: of a materialized one a row changes when it is refreshed.
"""
WRITERS = 3
OTHERS = 5_000  # rows that do not meet the condition of `items`, on the pages before those that do
PARTITIONS, PARTITION = 3, 20  # ids of each

# What a table says of its rows when the guard's role has another search path.
DECOYS = "CREATE SCHEMA decoys; CREATE TABLE decoys.items (LIKE public.items INCLUDING ALL)"

# What shows each table, and how; %s is what a migration makes of the values. No column's type is the
# table's, so that a view can be replaced whatever became of that.
VIEWS = {
    "bulk": ("MATERIALIZED VIEW", "SELECT id, payload::text || %s AS payload FROM public.bulk"),
    "docs": ("VIEW", "SELECT id, payload::text || %s AS payload, mood, at FROM public.docs"),
    "rows": ("VIEW", "SELECT id, payload::text || %s AS payload FROM public.rows WHERE id % 2 = 0 UNION ALL"
                     " SELECT id, payload::text FROM public.rows WHERE id % 2 = 1"),
    "parts": ("VIEW", "SELECT id, payload::text || %s AS payload FROM public.parts"),
    "items": ("VIEW", "SELECT id, payload::text || %s AS payload, deleted_at FROM"
                      " (SELECT id, payload, deleted_at FROM public.items WHERE id >= 0) i")}


class Table:
    reads_through = True  # for any command that does

    def __init__(self, keyspace, ids, value, condition="true", shown=False):
        self.name = keyspace["name"]
        self.full = f"{'shown' if shown else 'public'}.{self.name}"
        self.keyspace = {"ttl": "1h", **keyspace, **({"table": self.full} if shown else {})}
        self.view, self.query = VIEWS[self.name] if shown else (None, None)
        self.publish = {"key": f"published {self.name}", "false_positive_rate": 0.001,
                        "grow": self.name in ("bulk", "items")}
        self.prefix = keyspace["key"].split(":")[0]
        self.sql = f"SELECT id, {value} FROM {self.full} WHERE {condition}"
        self.ids = ids

    def first(self, _):
        """The row's value in the beginning."""

    def is_materialized(self):
        return self.view == "MATERIALIZED VIEW"

    def create_view(self, suffix="", way="CREATE"):
        return [f"{way} {self.view} {self.full} AS " + self.query.replace("%s", f"'{suffix}'")
                ] if self.view else []

    def without_view(self, *statements):
        """What a view is in the way of; it is made anew afterwards."""
        return [*([f"DROP {self.view} {self.full}"] if self.view else []), *statements,
                *self.create_view()]

    def is_whole(self):
        """Whether names of columns are part of the values."""
        return self.keyspace["value"] == "json"

    def is_string(self):
        """As a row of it is cached; else it is a hash."""
        return self.keyspace.get("fill") != "hash"

    def published(self):
        """As a publication names it."""
        where = self.keyspace.get("where")
        return f"public.{self.name}" + (f" WHERE ({where})" if where else "")

    def key(self, number):
        return f"{self.prefix}:{number}"

    def keys(self):
        return [self.key(number) for number in self.ids]

    def read(self, cursor, ids=None):
        """{key: value, or None where there is no row} of these or all ids."""
        ids = list(self.ids if ids is None else ids)
        cursor.execute(self.sql + " AND id = ANY (%s)", (ids,))
        found = dict(cursor.fetchall())
        return {self.key(number): found.get(number) for number in ids}

    def ask(self, client, chance, keys):
        """Each key's value, or an error in its place, by whichever command."""
        if len(keys) == 1 and chance.random() < 0.9:
            return [client.get(keys[0])]
        return client.mget(keys)

    def insert(self, cursor, number, payload):
        cursor.execute(f"INSERT INTO public.{self.name} (id, payload) VALUES (%s, %s)"
                       " ON CONFLICT (id) DO UPDATE SET payload = excluded.payload",
                       (number, payload))
        return cursor.rowcount

    def update(self, cursor, number, payload):
        cursor.execute(f"UPDATE public.{self.name} SET payload = %s WHERE id = %s",
                       (payload, number))
        return cursor.rowcount

    def delete(self, cursor, number):
        cursor.execute(f"DELETE FROM public.{self.name} WHERE id = %s", (number,))
        return cursor.rowcount

    def move(self, cursor, number, other):
        """Gives the row another id."""
        cursor.execute(f"UPDATE public.{self.name} SET id = %s WHERE id = %s", (other, number))
        return cursor.rowcount


class Items(Table):
    def insert(self, cursor, number, payload):
        cursor.execute(
            "INSERT INTO public.items (id, payload) VALUES (%s, %s) ON CONFLICT (id)"
            " DO UPDATE SET payload = excluded.payload, deleted_at = NULL", (number, payload))
        return cursor.rowcount

    def hide(self, cursor, number):
        cursor.execute("UPDATE public.items SET deleted_at = now() WHERE id = %s", (number,))
        return cursor.rowcount


class Docs(Table):
    def update(self, cursor, number, payload):
        cursor.execute("UPDATE public.docs SET payload = %s, mood = (enum_range(NULL::mood))[%s]"
                       " WHERE id = %s", (payload, number % 3 + 1, number))
        return cursor.rowcount


class Made(Table):
    VALUE = ("payload || '/' || coalesce((SELECT s.word FROM public.seals s WHERE s.id = made.id / 1000),"
             " '') || '/' || coalesce((SELECT string_agg(p.word, '+' ORDER BY p.id) FROM public.pieces p"
             " WHERE p.made_id = made.id), '')")
    DEPENDS = ["public.seals", "public.pieces on made_id = id"]
    CHANGES = {
        "seal": "INSERT INTO public.seals VALUES (%(number)s / 1000, %(word)s)"
                " ON CONFLICT (id) DO UPDATE SET word = excluded.word",
        "unseal": "DELETE FROM public.seals WHERE id = %(number)s / 1000",
        "put": "INSERT INTO public.pieces VALUES (%(number)s, %(number)s, %(word)s)"
               " ON CONFLICT (id) DO UPDATE SET word = excluded.word",
        "move": "UPDATE public.pieces SET made_id = %(other)s WHERE id = %(number)s",
        "lose": "UPDATE public.pieces SET made_id = NULL WHERE id = %(number)s",
        "drop": "DELETE FROM public.pieces WHERE id = %(number)s"}

    def published(self):
        return ", ".join([super().published(), *(name.split(" on ")[0] for name in self.DEPENDS)])

    def depend(self, cursor, chance, number, other, word):
        """Changes what the value is made of; the keys of which it may be. The lock keeps off who
        alters the table, and asks for all values: that transaction is in order with this one."""
        kind = chance.choice(["seal", "seal", *self.CHANGES, "put", "put", "move", "move"])
        if number // 1000 != other // 1000:
            other = number
        cursor.execute("LOCK TABLE public.made IN ROW SHARE MODE;" + self.CHANGES[kind],
                       {"number": number, "other": other, "word": word})
        return [n for n in self.ids if n // 1000 == number // 1000]


class Rows(Table):
    COMMANDS = {
        "HGETALL": ([], lambda found: found), "HVALS": ([], lambda found: dict(zip(
            [b"id", b"payload"], found, strict=bool(found)))),
        "HMGET": (["id", "payload", "none"], lambda found: {
            name: value for name, value in zip([b"id", b"payload", b"none"], found) if value}),
        "HGET": (["payload"], lambda found: {b"id": None, b"payload": found} if found else {})}

    def ask(self, client, chance, keys):
        """One of them may be asked for what no row has, and behind that for what it has: a second
        look may not overtake it, nor the other way round."""
        names = [chance.choice(list(self.COMMANDS)) for _ in keys]
        with client.pipeline(transaction=False) as pipeline:
            for name, key in zip(names, keys):
                pipeline.hexists(key, "none")
                pipeline.execute_command(name, key, *self.COMMANDS[name][0])
            replies = pipeline.execute(raise_on_error=False)
        assert not any(found for found in replies[::2] if not isinstance(found, Exception)), replies
        return [found if isinstance(found, Exception) else self.value_of(key, name, found)
                for key, name, found in zip(keys, names, replies[1::2])]

    def value_of(self, key, name, reply):
        fields = self.COMMANDS[name][1](reply)
        assert not fields or set(fields) == {b"id", b"payload"}, f"{key}: {name} gave {reply}"
        assert fields.get(b"id") in (None, key.split(":")[1].encode()), f"{key}: {reply}"
        return fields.get(b"payload")


def made_table():
    return Made({"name": "made", "key": "made:{id}", "table": "public.made", "value": Made.VALUE,
                 "depends": Made.DEPENDS},
                [writer * 1000 + n for writer in range(WRITERS) for n in range(30)], Made.VALUE)


def make_tables(shown=False, depends=False):
    writers = range(WRITERS)
    return [
        Table({"name": "bulk", "key": "bulk:{id}", "table": "bulk", "value": "payload",
               "where": "id >= 0"},
              list(range(300)), "payload", shown=shown),
        Docs({"name": "docs", "key": "doc:{id}", "table": "public.docs", "value": "json"},
             [writer * 1000 + n for writer in writers for n in range(20)],
             "row_to_json(docs.*)::text", shown=shown),
        Rows({"name": "rows", "key": "row:{id}", "table": "public.rows", "fill": "hash",
              "value": ["id", "payload"]},
             [writer * 1000 + n for writer in writers for n in range(30)], "payload",
             shown=shown),
        Table({"name": "parts", "key": "part:{id}", "table": "public.parts",
               "value": "label(payload) || ' of ' || id"},
              list(range(PARTITIONS * PARTITION)), "public.label(payload) || ' of ' || id",
              shown=shown),
        *([made_table()] if depends else []),
        Items({"name": "items", "key": "item:{id}", "table": "items", "value": "payload",
               "where": "deleted_at IS NULL", "false_positive_rate": 0.02},
              [writer * 1000 + n for writer in writers for n in range(60)], "payload",
              "deleted_at IS NULL", shown)]


def ids_of_writer(table, number):
    """Each key has one writer; each writer has some in every partition, and one has all bulk."""
    if table.name == "bulk":
        return table.ids if number == 0 else []
    if table.name == "parts":
        return table.ids[number::WRITERS]
    return [n for n in table.ids if n // 1000 == number]


def partition_ids(place):
    return range(place * PARTITION, (place + 1) * PARTITION)


def create_tables(database):
    database.execute(f"""
        CREATE TABLE items (id bigint PRIMARY KEY, payload text NOT NULL, deleted_at timestamptz,
                            note text);
        ALTER TABLE items REPLICA IDENTITY FULL;
        INSERT INTO items SELECT n, repeat('of no use ', 150), now(), NULL
            FROM generate_series(-{OTHERS}, -1) n;
        CREATE TABLE bulk (id bigint PRIMARY KEY, payload text NOT NULL, note text);
        CREATE TABLE rows (id bigint PRIMARY KEY, payload text NOT NULL, note text);
        CREATE TYPE mood AS ENUM ('calm', 'glad', 'grim');
        CREATE TABLE docs (id bigint PRIMARY KEY, payload text NOT NULL, mood mood DEFAULT 'calm',
                           at timestamptz DEFAULT now(), note text);
        CREATE TABLE parts (id bigint PRIMARY KEY, payload text NOT NULL, note text)
            PARTITION BY RANGE (id);
        CREATE FUNCTION label(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT $1 $$;
        CREATE TABLE made (id bigint PRIMARY KEY, payload text NOT NULL, note text);
        CREATE TABLE seals (id bigint PRIMARY KEY, word text NOT NULL);
        CREATE TABLE pieces (id bigint PRIMARY KEY, made_id bigint, word text NOT NULL);
        CREATE INDEX ON pieces (made_id);
        ALTER TABLE pieces REPLICA IDENTITY FULL;
        CREATE TABLE journal (number bigint PRIMARY KEY);
        {DECOYS};
        INSERT INTO decoys.items SELECT n, 'a decoy', NULL, NULL FROM generate_series(0, 9) n;
        ANALYZE""")
    for place in range(PARTITIONS):
        ids = partition_ids(place)
        database.execute(f"CREATE TABLE parts_{place} PARTITION OF parts"
                         f" FOR VALUES FROM ({ids.start}) TO ({ids.stop})")


def create_views(database, tables):
    database.execute("; ".join(["CREATE SCHEMA shown", *(
        statement for table in tables for statement in table.create_view())]))
