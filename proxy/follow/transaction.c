/* The changes lie in a spool one behind the other, as they came: a header of fixed size and the
 * key's bytes. They are read twice at most, from the beginning, and never looked up, so that
 * nothing but their bytes is kept of a transaction of any size.
 *
 * A part that is rolled back (a savepoint) is not cut out of the spool: its id is remembered, and
 * what bears it is passed over, or taken back, at the end.
 */
#include "follow/transaction.h"

#include "base/memory.h"
#include "follow/spool.h"

#include <errno.h>
#include <stdlib.h>

enum { ROLLED_BACK_MAX = 16 * 1024 * 1024, ROLLED_BACK_FIRST = 64 };

/* In the spool; the key's bytes follow. */
struct record {
    uint32_t kind, keyspace, subxid, length;
};

struct transaction {
    uint32_t xid;
    bool committed, has_due;
    /* By keyspaces: 1 + the subtransaction of its last CHANGE_DEPENDED; 0: there was none. */
    uint64_t *depended;
    size_t tables;
    struct spool spool;
    /* Subtransactions; sorted when all are known. They are only looked up at the end: what they did
     * lies between what stays. */
    uint32_t *rolled_back;
    size_t rolled_back_count, rolled_back_size;
    struct row_shape shapes[];
};

struct transaction *transaction_create(uint32_t xid, size_t tables)
{
    struct transaction *transaction =
        xcalloc(1, sizeof *transaction + tables * sizeof *transaction->shapes);
    transaction->xid = xid;
    transaction->tables = tables;
    transaction->depended = xcalloc(tables, sizeof *transaction->depended);
    return transaction;
}

void transaction_destroy(struct transaction *transaction)
{
    if (!transaction)
        return;
    spool_finish(&transaction->spool);
    free(transaction->rolled_back);
    free(transaction->depended);
    free(transaction);
}

void transaction_renew(struct transaction *transaction, uint32_t xid)
{
    transaction->xid = xid;
    transaction->committed = transaction->has_due = false;
    memset(transaction->depended, 0, transaction->tables * sizeof *transaction->depended);
    transaction->rolled_back_count = 0;
    spool_clear(&transaction->spool);
}

uint32_t transaction_xid(const struct transaction *transaction)
{
    return transaction->xid;
}

struct row_shape *transaction_shapes(struct transaction *transaction)
{
    return transaction->shapes;
}

/* A million rows of another table make the same values old as one does. */
static bool is_repeated(struct transaction *transaction, uint32_t subxid,
                        const struct change *change)
{
    if (change->kind != CHANGE_DEPENDED)
        return false;
    uint64_t *last = &transaction->depended[change->keyspace];
    bool repeated = *last == (uint64_t)subxid + 1;
    *last = (uint64_t)subxid + 1;
    return repeated;
}

int transaction_add(struct transaction *transaction, uint32_t subxid, const struct change *change)
{
    struct record record = {.kind = change->kind,
                            .keyspace = (uint32_t)change->keyspace,
                            .subxid = subxid,
                            .length = (uint32_t)change->key.length};
    if (change->key.length > UINT32_MAX)
        return -EFBIG;
    if (is_repeated(transaction, subxid, change))
        return 0;
    transaction->has_due |= change->kind == CHANGE_DUE;
    int status = spool_append(&transaction->spool, &record, sizeof record);
    return status ? status : spool_append(&transaction->spool, change->key.at, change->key.length);
}

int transaction_roll_back(struct transaction *transaction, uint32_t subxid)
{
    size_t size = transaction->rolled_back_size;
    if (transaction->rolled_back_count == ROLLED_BACK_MAX)
        return -E2BIG;
    if (transaction->rolled_back_count == size) {
        size = size ? 2 * size : ROLLED_BACK_FIRST;
        transaction->rolled_back =
            xrealloc(transaction->rolled_back, size * sizeof *transaction->rolled_back);
        transaction->rolled_back_size = size;
    }
    transaction->rolled_back[transaction->rolled_back_count++] = subxid;
    return 0;
}

static int compare_xids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

void transaction_end(struct transaction *transaction, bool committed)
{
    transaction->committed = committed;
    if (transaction->rolled_back_count)
        qsort(transaction->rolled_back, transaction->rolled_back_count,
              sizeof *transaction->rolled_back, compare_xids);
}

bool transaction_has_due(const struct transaction *transaction)
{
    return transaction->has_due;
}

int transaction_rewind(struct transaction *transaction)
{
    return spool_rewind(&transaction->spool);
}

static bool is_rolled_back(const struct transaction *transaction, uint32_t subxid)
{
    return transaction->rolled_back_count &&
           bsearch(&subxid, transaction->rolled_back, transaction->rolled_back_count,
                   sizeof *transaction->rolled_back, compare_xids);
}

static enum change_kind kind_of(const struct transaction *transaction, const struct record *record)
{
    bool in_part = record->subxid && record->subxid != transaction->xid;
    return in_part && record->kind == CHANGE_DELETED ? CHANGE_LEFT : (enum change_kind)record->kind;
}

/* A header without its key behind it was cut off: that is no end. */
int transaction_next(struct transaction *transaction, struct change *change, bool *stays)
{
    struct record record;
    struct span bytes;
    int status = spool_take(&transaction->spool, sizeof record, &bytes);
    if (status)
        return status == -ENODATA ? 0 : status;
    memcpy(&record, bytes.at, sizeof record);
    status = spool_take(&transaction->spool, record.length, &bytes);
    if (status)
        return status == -ENODATA ? -EIO : status;
    *change = (struct change){kind_of(transaction, &record), (int)record.keyspace, bytes};
    *stays = transaction->committed && !is_rolled_back(transaction, record.subxid);
    return 1;
}
