"""The attack: a million random keys. Next to none of them reaches PostgreSQL, none of them leaves
anything in Redis, and ordinary lookups meanwhile are right."""
import multiprocessing
import random

from servers import PATIENCE
from wire import Wire, bulk, command

ROWS, FLOOD, RATE = 20_000, 1_000_000, 0.0001
PROCESSES, BATCH = 2, 2_000
ORDINARY = [f"item:{n}" for n in range(1, ROWS + 1, 40)]


def flood(port, seed, count, problems):
    """Looks up `count` random keys without a row; every reply must be nil."""
    chance = random.Random(seed)
    wanted = bulk(None) * BATCH
    with Wire(port, 4 * PATIENCE) as wire:
        for _ in range(count // BATCH):
            wire.send(b"".join(command("GET", f"item:{chance.randrange(ROWS + 1, 10**15)}")
                               for _ in range(BATCH)))
            got = wire.read_bytes(len(wanted))
            if got != wanted:
                problems.put(f"a random key was answered otherwise than with nil: {got[:300]!r}")
                return


def test_a_flood_of_random_keys_is_turned_away(start_guard, database, cache):
    database.execute(f"""
        CREATE TABLE items (id bigint PRIMARY KEY, payload text);
        INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, {ROWS}) n""")
    guard = start_guard({"name": "items", "key": "item:{id}", "table": "items", "value": "payload",
                         "ttl": "1h", "false_positive_rate": RATE})
    client = guard.redis()
    values = [f"payload {key.removeprefix('item:')}".encode() for key in ORDINARY]
    assert [client.get(key) for key in ORDINARY] == values
    loads = database.count_loads()
    assert loads == len(ORDINARY)

    problems = multiprocessing.Queue()
    attackers = [multiprocessing.Process(target=flood, daemon=True, args=(
        guard.port, seed, FLOOD // PROCESSES, problems)) for seed in range(PROCESSES)]
    for attacker in attackers:
        attacker.start()
    lookups = 0
    while any(attacker.is_alive() for attacker in attackers):
        at = lookups % len(ORDINARY)
        assert client.get(ORDINARY[at]) == values[at]
        lookups += 1
    for attacker in attackers:
        attacker.join()
        assert attacker.exitcode == 0
    assert problems.empty(), problems.get()

    reached = database.count_loads() - loads
    rejected = guard.counter("nestguard_rejected_total")
    print(f"{FLOOD} random keys: {rejected:.0f} rejected, {reached} queries in PostgreSQL, "
          f"{lookups} ordinary lookups meanwhile")
    assert reached <= 3 * RATE * FLOOD
    assert rejected >= FLOOD - 3 * RATE * FLOOD
    assert cache.client().dbsize() == len(ORDINARY), "Redis must not gain a key"
    assert lookups > 100
    assert client.mget(ORDINARY) == values
