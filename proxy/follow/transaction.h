/* What one transaction of the database does, kept until it is known whether it stays:
 *
 *   transaction_add(), transaction_roll_back() ─▶ transaction_end() ─▶ transaction_rewind()
 *                                                ─▶ transaction_next(), transaction_next(), ...
 *
 * So it does not matter whether the log tells of a transaction after its commit or while it is
 * under way, nor how large it is: past a few megabytes its changes go to a temporary file.
 */
#ifndef NESTGUARD_TRANSACTION_H
#define NESTGUARD_TRANSACTION_H

#include "database/row_key.h"

struct transaction;

enum change_kind {
    CHANGE_INSERTED,  /* a row with this key came to be, and the filter has the key already */
    CHANGE_DUE,       /* the same, but the filter does not have it yet */
    CHANGE_UPDATED,   /* a row was updated and kept this key */
    CHANGE_DELETED,   /* a row with this key is gone */
    CHANGE_LEFT,      /* the same, unless its subtransaction was rolled back: transaction_next() */
    CHANGE_UNTOLD,    /* a row was updated and kept its key, which is not told */
    CHANGE_TRUNCATED, /* all rows are gone */
    CHANGE_DEPENDED   /* of another table that values are made of: any of them may be old */
};

struct change {
    enum change_kind kind;
    int keyspace;
    struct span key; /* of the first five */
};

/* It keeps a shape of the rows of each table that is followed. */
struct transaction *transaction_create(uint32_t xid, size_t tables);
void transaction_destroy(struct transaction *transaction); /* NULL is allowed */

/* Makes it another one without any changes. The shapes and the memory stay. */
void transaction_renew(struct transaction *transaction, uint32_t xid);

uint32_t transaction_xid(const struct transaction *transaction);
/* In the tables' order: as the log has described them to this transaction, which may have
 * altered them itself. */
struct row_shape *transaction_shapes(struct transaction *transaction);

/* Adds a change that the subtransaction made, or the transaction itself (its own xid, or 0). Of
 * several CHANGE_DEPENDED of a keyspace and one of these in a row one is kept. 0, or a negative
 * errno of the temporary file.
 */
int transaction_add(struct transaction *transaction, uint32_t subxid, const struct change *change);

/* What the subtransaction did, if anything, does not stay. 0, or -E2BIG after too many of them. */
int transaction_roll_back(struct transaction *transaction, uint32_t subxid);

/* Nothing more is added. */
void transaction_end(struct transaction *transaction, bool committed);

/* Whether any of its changes is CHANGE_DUE. */
bool transaction_has_due(const struct transaction *transaction);

/* Back to the first change. 0, or as transaction_add(). */
int transaction_rewind(struct transaction *transaction);

/* The next change, in order, which lives until the next call, and whether it stays. 1; 0 at the
 * end; or a negative errno.
 *
 * What a subtransaction has deleted is CHANGE_LEFT: PostgreSQL (15.18 at least) says nothing of the
 * rollback of one that it had to write to disk before it could stream it, as it does when more than
 * 4096 changes come between the parts of one large value. */
int transaction_next(struct transaction *transaction, struct change *change, bool *stays);

#endif
