/* What a transaction did comes out in order, with what was rolled back marked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follow/transaction.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void add(struct transaction *transaction, uint32_t subxid, enum change_kind kind,
                const char *key)
{
    struct change change = {.kind = kind, .keyspace = 3, .key = span_of(key)};
    assert_int_equal(transaction_add(transaction, subxid, &change), 0);
}

/* "a" stays, "-b" does not, "c?" was left. */
static void must_give(struct transaction *transaction, const char *wanted)
{
    char found[200] = "";
    struct change change;
    bool stays;
    int status;
    assert_int_equal(transaction_rewind(transaction), 0);
    while ((status = transaction_next(transaction, &change, &stays)) == 1) {
        size_t used = strlen(found);
        assert_int_equal(change.keyspace, 3);
        snprintf(found + used, sizeof found - used, "%s%.*s%s ", stays ? "" : "-",
                 (int)change.key.length, change.key.at, change.kind == CHANGE_LEFT ? "?" : "");
    }
    assert_int_equal(status, 0);
    assert_string_equal(found, wanted);
}

static void changes_come_in_order_as_often_as_asked_for(void **state)
{
    struct transaction *transaction = transaction_create(7, 1);
    struct change change;
    bool stays;
    (void)state;
    add(transaction, 0, CHANGE_INSERTED, "a");
    add(transaction, 7, CHANGE_TRUNCATED, "");
    add(transaction, 8, CHANGE_DELETED, "b");
    transaction_end(transaction, true);
    must_give(transaction, "a  b? ");
    must_give(transaction, "a  b? ");
    assert_int_equal(transaction_rewind(transaction), 0);
    assert_int_equal(transaction_next(transaction, &change, &stays), 1);
    assert_int_equal(change.kind, CHANGE_INSERTED);
    assert_int_equal(transaction_next(transaction, &change, &stays), 1);
    assert_int_equal(change.kind, CHANGE_TRUNCATED);
    transaction_destroy(transaction);
}

/* Its rollback may not have been told. */
static void what_a_subtransaction_deletes_is_left(void **state)
{
    struct transaction *transaction = transaction_create(7, 1);
    (void)state;
    add(transaction, 0, CHANGE_DELETED, "a");
    add(transaction, 7, CHANGE_DELETED, "b");
    add(transaction, 8, CHANGE_DELETED, "c");
    add(transaction, 8, CHANGE_UPDATED, "d");
    add(transaction, 9, CHANGE_DELETED, "e");
    assert_int_equal(transaction_roll_back(transaction, 9), 0);
    transaction_end(transaction, true);
    must_give(transaction, "a b c? d -e? ");
    transaction_destroy(transaction);
}

static void what_is_rolled_back_does_not_stay(void **state)
{
    struct transaction *transaction = transaction_create(7, 1);
    (void)state;
    add(transaction, 7, CHANGE_INSERTED, "a");
    add(transaction, 9, CHANGE_INSERTED, "b");
    add(transaction, 8, CHANGE_INSERTED, "c");
    add(transaction, UINT32_MAX, CHANGE_INSERTED, "d");
    add(transaction, 10, CHANGE_INSERTED, "e");
    assert_int_equal(transaction_roll_back(transaction, UINT32_MAX), 0);
    assert_int_equal(transaction_roll_back(transaction, 12), 0);
    assert_int_equal(transaction_roll_back(transaction, 8), 0);
    transaction_end(transaction, true);
    must_give(transaction, "a b -c -d e ");
    transaction_end(transaction, false);
    must_give(transaction, "-a -b -c -d -e ");
    transaction_destroy(transaction);
}

static void many_parts_may_be_rolled_back(void **state)
{
    enum { PARTS = 3000 };
    struct transaction *transaction = transaction_create(7, 1);
    struct change change;
    bool stays;
    (void)state;
    for (uint32_t i = 1; i <= PARTS; i++) {
        add(transaction, 100 + i, CHANGE_INSERTED, "key");
        if (i % 3 == 0)
            assert_int_equal(transaction_roll_back(transaction, 100 + i), 0);
    }
    transaction_end(transaction, true);
    assert_int_equal(transaction_rewind(transaction), 0);
    for (uint32_t i = 1; i <= PARTS; i++) {
        assert_int_equal(transaction_next(transaction, &change, &stays), 1);
        assert_int_equal(stays, i % 3 != 0);
    }
    assert_int_equal(transaction_next(transaction, &change, &stays), 0);
    transaction_destroy(transaction);
}

static void the_next_one_has_nothing_of_the_last_but_its_shapes(void **state)
{
    struct transaction *transaction = transaction_create(7, 2);
    (void)state;
    transaction_shapes(transaction)[1].columns = 5;
    add(transaction, 7, CHANGE_DUE, "a");
    add(transaction, 8, CHANGE_INSERTED, "b");
    assert_true(transaction_has_due(transaction));
    assert_int_equal(transaction_roll_back(transaction, 8), 0);
    transaction_end(transaction, true);
    transaction_renew(transaction, 9);
    assert_int_equal(transaction_xid(transaction), 9);
    assert_int_equal(transaction_shapes(transaction)[1].columns, 5);
    assert_false(transaction_has_due(transaction));
    add(transaction, 8, CHANGE_INSERTED, "c");
    transaction_end(transaction, true);
    must_give(transaction, "c ");
    transaction_destroy(transaction);
    transaction_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_come_in_order_as_often_as_asked_for),
        cmocka_unit_test(what_is_rolled_back_does_not_stay),
        cmocka_unit_test(what_a_subtransaction_deletes_is_left),
        cmocka_unit_test(many_parts_may_be_rolled_back),
        cmocka_unit_test(the_next_one_has_nothing_of_the_last_but_its_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
