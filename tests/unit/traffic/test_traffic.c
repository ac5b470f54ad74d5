/* When an attack begins and is over, how fast rejects come, and whose doing the last minute and
 * hour were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "traffic/traffic.h"

#include <stdio.h>
#include <string.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND, BEGINNING = 5000000 };

static struct traffic *traffic;
static uint64_t now, rejects[2];

static int set_up(void **state)
{
    (void)state;
    now = BEGINNING;
    memset(rejects, 0, sizeof rejects);
    traffic = traffic_create(2, now);
    traffic_mark(traffic, rejects, 0, now);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    traffic_destroy(traffic);
    return 0;
}

static enum attack_news pass_second(uint64_t first, uint64_t second, unsigned threshold)
{
    now += SECOND;
    rejects[0] += first;
    rejects[1] += second;
    return traffic_mark(traffic, rejects, threshold, now);
}

static void give(const char *address, uint64_t count)
{
    struct ledger *ledger = ledger_create();
    struct party party = {0};
    party_set(&party, address, NULL, "default");
    ledger_add_party(ledger, &party, (const uint64_t[BURDENS]){[BURDEN_rejects] = count});
    ledger_add_key(ledger, 1, span_of("item:1"), count);
    traffic_take(traffic, ledger, now);
    ledger_destroy(ledger);
}

/* 0: it is not among them. */
static uint64_t count_of(const char *address, enum traffic_window window)
{
    uint64_t ms, found = 0;
    struct heavy_entry entries[10];
    struct ledger *ledger = traffic_ledger(traffic, window, now, &ms);
    size_t count = heavy_top(ledger_parties(ledger, BURDEN_rejects), entries, 10);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(((const struct party *)entries[i].item)->address, address))
            found = entries[i].count;
    ledger_destroy(ledger);
    return found;
}

static void an_attack_has_one_beginning_and_one_end(void **state)
{
    (void)state;
    assert_int_equal(pass_second(400, 500, 1000), ATTACK_NO_NEWS);
    assert_int_equal(pass_second(400, 600, 1000), ATTACK_BEGINS);
    assert_int_equal(pass_second(9000, 0, 1000), ATTACK_NO_NEWS);
    for (int i = 0; i < 30; i++)
        assert_int_equal(pass_second(500, 0, 1000), ATTACK_NO_NEWS);
    for (int i = 0; i < 9; i++)
        assert_int_equal(pass_second(499, 0, 1000), ATTACK_NO_NEWS);
    assert_int_equal(pass_second(0, 499, 1000), ATTACK_IS_OVER);
    const struct attack *attack = traffic_attack(traffic);
    assert_false(attack->is_on);
    assert_int_equal(attack->number, 1);
    assert_int_equal(attack->until - attack->since, 41 * SECOND);
    assert_int_equal(attack->rejects, 1000 + 9000 + 30 * 500 + 10 * 499);
    assert_int_equal((int)attack->peak, 9000);
    assert_int_equal(pass_second(400, 600, 1000), ATTACK_BEGINS);
    assert_int_equal(attack->number, 2);
}

static void without_a_threshold_nothing_is_an_attack(void **state)
{
    (void)state;
    assert_int_equal(pass_second(1000000, 0, 0), ATTACK_NO_NEWS);
    assert_int_equal(pass_second(1000000, 0, 1000), ATTACK_BEGINS);
    assert_int_equal(pass_second(1000000, 0, 0), ATTACK_IS_OVER);
}

static void rates_are_those_of_the_last_second_minute_and_hour(void **state)
{
    (void)state;
    for (int i = 0; i < 3600; i++)
        pass_second(i < 3540 ? 10 : 70, 1, 0);
    pass_second(100, 0, 0);
    struct rate rate = traffic_rate(traffic, 0);
    assert_int_equal((int)rate.now, 100);
    assert_int_equal((int)rate.minute, (59 * 70 + 100) / 60);
    assert_true(rate.hour > 10.5 && rate.hour < 11.6);
    assert_int_equal((int)traffic_rate(traffic, 1).now, 0);
    assert_int_equal((int)traffic_rate_of_all(traffic).now, 100);
}

static void the_last_minute_forgets_and_the_last_hour_does_not(void **state)
{
    (void)state;
    give("early", 5);
    assert_int_equal(count_of("early", TRAFFIC_MINUTE), 5);
    assert_int_equal(count_of("early", TRAFFIC_HOUR), 5);
    for (int i = 0; i < 31; i++)
        pass_second(0, 0, 0);
    give("late", 7);
    assert_int_equal(count_of("early", TRAFFIC_MINUTE), 5);
    for (int i = 0; i < 31; i++)
        pass_second(0, 0, 0);
    assert_int_equal(count_of("early", TRAFFIC_MINUTE), 0);
    assert_int_equal(count_of("late", TRAFFIC_MINUTE), 7);
    assert_int_equal(count_of("early", TRAFFIC_HOUR), 5);
    for (int i = 0; i < 61 * 60; i++)
        pass_second(0, 0, 0);
    assert_int_equal(count_of("early", TRAFFIC_HOUR), 0);
    assert_int_equal(count_of("late", TRAFFIC_HOUR), 0);
}

static void names_that_are_too_long_are_cut(void **state)
{
    struct party party;
    char name[1000];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    party_set(&party, name, name, name);
    assert_int_equal(strlen(party.address), sizeof party.address - 1);
    assert_int_equal(strlen(party.name), sizeof party.name - 1);
}

#define TRAFFIC_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* More than there are places for, in two ledgers, as two workers have them. */
static void an_address_is_suspected_whatever_its_clients_call_themselves(void **state)
{
    enum { NAMES = 1000, EACH = 10, HONEST = 1500 };
    struct ledger *ledgers[] = {ledger_create(), ledger_create()};
    struct ledger_suspect suspect;
    struct party party = {0};
    char name[16];
    (void)state;
    assert_false(ledger_suspect(ledgers[0], BURDEN_rejects, &suspect));
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "n%d", i);
        party_set(&party, "attacker", name, "default");
        ledger_add_party(ledgers[i % 2], &party,
                         (const uint64_t[BURDENS]){[BURDEN_rejects] = EACH});
    }
    party_set(&party, "honest", "app", "default");
    ledger_add_party(ledgers[0], &party, (const uint64_t[BURDENS]){[BURDEN_rejects] = HONEST});
    ledger_merge(ledgers[0], ledgers[1]);
    assert_true(ledger_suspect(ledgers[0], BURDEN_rejects, &suspect));
    assert_string_equal(suspect.party.address, "attacker");
    assert_false(suspect.is_most);
    assert_true(suspect.part > 0.7 && suspect.part <= 1);
    party_set(&party, "attacker", "one", "default");
    ledger_add_party(ledgers[0], &party, (const uint64_t[BURDENS]){[BURDEN_rejects] = 100000});
    assert_true(ledger_suspect(ledgers[0], BURDEN_rejects, &suspect));
    assert_true(suspect.is_most);
    assert_string_equal(suspect.party.name, "one");
    ledger_destroy(ledgers[0]);
    ledger_destroy(ledgers[1]);
}

/* Each of which is lighter than an honest client. */
static void a_network_of_ipv6_is_suspected_whichever_of_its_addresses_asks(void **state)
{
    enum { ADDRESSES = 1000, EACH = 10, HONEST = 1500 };
    struct ledger *ledger = ledger_create();
    struct ledger_suspect suspect;
    struct party party = {0};
    char address[32];
    (void)state;
    party_set(&party, "[2001:db8:0:2::1]", "app", "default");
    ledger_add_party(ledger, &party, (const uint64_t[BURDENS]){[BURDEN_rejects] = HONEST});
    for (int i = 0; i < ADDRESSES; i++) {
        snprintf(address, sizeof address, "[2001:db8:0:1:%x::1]", i + 1);
        party_set(&party, address, "", "default");
        ledger_add_party(ledger, &party, (const uint64_t[BURDENS]){[BURDEN_rejects] = EACH});
    }
    assert_true(ledger_suspect(ledger, BURDEN_rejects, &suspect));
    assert_string_equal(suspect.party.address, "[2001:db8:0:1::]/64");
    assert_false(suspect.is_most);
    party_set(&party, "[2001:db8:0:1:8000::1]", "one", "default");
    ledger_add_party(ledger, &party, (const uint64_t[BURDENS]){[BURDEN_rejects] = 100000});
    assert_true(ledger_suspect(ledger, BURDEN_rejects, &suspect));
    assert_string_equal(suspect.party.address, "[2001:db8:0:1:8000::1]");
    assert_true(suspect.is_most);
    ledger_destroy(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRAFFIC_TEST(an_attack_has_one_beginning_and_one_end),
        TRAFFIC_TEST(without_a_threshold_nothing_is_an_attack),
        TRAFFIC_TEST(an_address_is_suspected_whatever_its_clients_call_themselves),
        TRAFFIC_TEST(a_network_of_ipv6_is_suspected_whichever_of_its_addresses_asks),
        TRAFFIC_TEST(rates_are_those_of_the_last_second_minute_and_hour),
        TRAFFIC_TEST(the_last_minute_forgets_and_the_last_hour_does_not),
        TRAFFIC_TEST(names_that_are_too_long_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
