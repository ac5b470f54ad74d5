"""GET /v1/attack and `nestguard ctl attack`: who asks, how much, and when that is an attack."""
import json
import subprocess

import pytest

import servers
from servers import PATIENCE
from waiting import wait_until
from wire import Wire, bulk, command

BATCH = 500


class Attacker(Wire):
    """Comes from an address of its own."""

    def __init__(self, guard, address, name):
        super().__init__(guard.port, PATIENCE, address)
        if name:
            self.ask("CLIENT", "SETNAME", name)

    def ask_absent(self, batches, key):
        for _ in range(batches):
            self.send(b"".join(command("GET", key(n)) for n in range(BATCH)))
            assert self.read_replies(BATCH) == bulk(None) * BATCH


def ctl(guard, *words):
    return subprocess.run([servers.NESTGUARD, "ctl", "--control", f"127.0.0.1:{guard.control_port}",
                           "attack", *words], check=True, capture_output=True, text=True).stdout


def attack(guard):
    response = guard.control("GET", "/v1/attack")
    assert response.status_code == 200
    return response.json()


def parties(found, burden, window="minute"):
    return {(row["address"], row["name"]): row["count"]
            for row in found[window]["clients"][burden]["heaviest"]}


@pytest.fixture
def guard(start_guard, items):
    return start_guard(items(), workers=2, attack_threshold=1000)


def test_the_heavier_attacker_stands_above_the_lighter_and_the_honest_client(guard):
    heavy, light = Attacker(guard, "127.0.0.2", "heavy"), Attacker(guard, "127.0.0.3", "light")
    honest = Attacker(guard, "127.0.0.4", None)
    numbers = iter(range(10**9))
    heavy.ask_absent(24, lambda n: "item:777" if n % 2 else f"item:{1000 + next(numbers)}")
    light.ask_absent(6, lambda n: f"item:{5000000 + n}")
    for n in range(1, 51):
        assert honest.ask("GET", f"item:{n}") == bulk(f"payload {n}")
    wait_until(lambda: sum(parties(attack(guard), "commands").values()) >= 30 * BATCH + 52, PATIENCE,
               lambda: attack(guard))
    found = attack(guard)
    rejects = parties(found, "rejects")
    assert list(rejects) == [("127.0.0.2", "heavy"), ("127.0.0.3", "light")]
    assert sum(rejects.values()) == guard.counter("nestguard_rejected_total"), "but false positives"
    assert parties(found, "loads")["127.0.0.4", ""] == 50
    assert list(parties(found, "bytes")) == [("127.0.0.2", "heavy"), ("127.0.0.3", "light"),
                                             ("127.0.0.4", "")]
    assert parties(found, "rejects", "hour") == parties(found, "rejects")
    assert {row["user"] for row in found["minute"]["clients"]["rejects"]["heaviest"]} == {"default"}
    assert found["minute"]["absent_keys"][0]["key"] == "item:777"
    assert found["keyspaces"][0]["name"] == "items"


def test_what_was_rejected_a_moment_ago_is_told_at_once(guard):
    """Unless more than a second goes by until it is asked for: then that has been told, and it is over."""
    attacker = Attacker(guard, "127.0.0.2", None)

    def is_found():
        before = guard.counter("nestguard_rejected_total")
        attacker.ask_absent(4, lambda n: f"item:{1000 + n}")
        found, rejects = attack(guard), guard.counter("nestguard_rejected_total") - before
        return found["fresh"]["rejects"] == rejects or found["rejects_per_second"]["now"] > 0

    def is_in_table():
        attacker.ask_absent(4, lambda n: f"item:{1000 + n}")
        table = ctl(guard)
        return ("rejects in the last " in table or "UNDER ATTACK" in table) and \
            ("Who it is that is rejected is known in a second" in table or "127.0.0.2" in table)

    wait_until(is_found, PATIENCE, lambda: attack(guard))
    wait_until(is_in_table, PATIENCE, lambda: ctl(guard))


def test_of_keys_that_are_all_different_none_is_asked_for_most(guard):
    attacker = Attacker(guard, "127.0.0.2", None)
    numbers = iter(range(10**9))
    attacker.ask_absent(24, lambda n: f"item:{5000000 + next(numbers)}")
    wait_until(lambda: sum(parties(attack(guard), "commands").values()) >= 24 * BATCH, PATIENCE,
               lambda: attack(guard))
    assert attack(guard)["minute"]["absent_keys"] == []


def test_an_address_is_found_behind_the_names_that_it_gives_itself(guard):
    """Else each of them is lighter than an honest client, and there are more than are told."""
    honest = Attacker(guard, "127.0.0.4", "honest")
    honest.ask_absent(4, lambda n: f"item:{1000 + n}")
    for number in range(100):
        with Attacker(guard, "127.0.0.2", f"n{number}") as wire:
            wire.send(b"".join(command("GET", f"item:{2000 + n}") for n in range(50)))
            wire.read_replies(50)

    def rejects_of(address):
        rows = attack(guard)["minute"]["addresses"]["rejects"]["heaviest"]
        return next((row["count"] for row in rows if row["address"] == address), 0)

    wait_until(lambda: rejects_of("127.0.0.2") >= 4500, PATIENCE, lambda: attack(guard))
    assert rejects_of("127.0.0.4") <= 4 * BATCH
    assert attack(guard)["minute"]["clients"]["rejects"]["heaviest"][0]["name"] == "honest"
    table = ctl(guard)
    addresses = table[table.index("heaviest addresses"):].splitlines()
    assert addresses[1].startswith("127.0.0.2 ") and addresses[2].startswith("127.0.0.4 ")


def test_clients_that_have_gone_are_not_forgotten(guard):
    for _ in range(5):
        with Attacker(guard, "127.0.0.2", None) as wire:
            wire.ask_absent(1, lambda n: f"item:{1000 + n}")
    wait_until(lambda: parties(attack(guard), "commands") == {("127.0.0.2", ""): 5 * BATCH},
               PATIENCE, lambda: attack(guard))


def test_every_way_of_asking_is_counted_as_what_it_is(guard):
    with guard.wire() as wire:
        wire.send(command("MGET", "item:1000", "item:1", "plain", "item:1001")
                  + command("EXISTS", "item:1002") + command("STRLEN", "item:1003")
                  + command("GET", "item:2") + command("SET", "plain", "x") + command("NOSUCH")
                  + command("CLIENT", "REPLY", "SKIP") + command("GET", "item:1004")
                  + command("MULTI") + command("GET", "item:1005") + command("EXEC"))
        wire.read_replies(9)
        wait_until(lambda: sum(parties(attack(guard), "commands").values()) == 11, PATIENCE,
                   lambda: attack(guard))
    assert parties(attack(guard), "rejects") == {("127.0.0.1", ""): 5}, attack(guard)
    assert parties(attack(guard), "loads") == {("127.0.0.1", ""): 2}


def test_an_attack_is_in_log_metrics_status_and_ctl(start_guard, items):
    guard = start_guard(items(), attack_threshold=100)
    assert attack(guard)["last_attack"] is None
    assert "No attack so far" in ctl(guard)
    with Attacker(guard, "127.0.0.2", "mallory") as wire:
        def begun():
            wire.ask_absent(2, lambda n: f"item:{1000 + n}")
            return guard.total("nestguard_attack") == 1
        wait_until(begun, PATIENCE, "the attack")
        wait_until(lambda: parties(attack(guard), "rejects"), PATIENCE, "the attacker")
    assert guard.status()["attack"] is True
    found = attack(guard)["last_attack"]
    assert found["active"] is True and found["rejects"] >= 100 and found["most_per_second"] >= 100
    table = ctl(guard)
    assert "UNDER ATTACK" in table and "127.0.0.2" in table and "mallory" in table
    assert "In the last" in ctl(guard, "--hour")
    assert json.loads(ctl(guard, "--json"))["last_attack"]["number"] == 1
    wait_until(lambda: guard.total("nestguard_attack") == 0, 2 * PATIENCE, "its end")
    assert guard.total("nestguard_attacks_total") == 1
    assert guard.log(1000).count("an attack begins: ") == 1
    assert guard.log(1000).count("the attack is over after ") == 1


def test_hostile_names_and_keys_do_no_harm(guard):
    with Attacker(guard, "127.0.0.2", None) as wire:
        wire.ask("CLIENT", "SETNAME", "\\x1b[31m\"%s" + "x" * 5000)
        long = "item:" + "9" * 300
        wire.ask_absent(10, lambda n: long)
        wire.ask_absent(10, lambda n: b"item:\x1b[2J\xff" if n % 2 else b"item:1\x00")
        wait_until(lambda: parties(attack(guard), "rejects"), PATIENCE, "them")
    found = attack(guard)
    assert {len(row["key"]) < 400 for row in found["minute"]["absent_keys"]} <= {True}
    assert "\x1b" not in ctl(guard)
