/* A keeper that does what the test says: what workers ask of it waits in its inbox, oldest first,
 * until the test takes it out and returns it. Its loop runs on the test's thread. */
#ifndef NESTGUARD_FAKES_KEEPER_H
#define NESTGUARD_FAKES_KEEPER_H

#include "guard/messages.h"

enum { KEEPER_MESSAGES = 4096 };

struct fake_keeper {
    uv_loop_t loop;
    uv_timer_t patience;
    struct mailbox mailbox;
    struct message *inbox[KEEPER_MESSAGES];
    size_t inbox_count;
    size_t orders; /* sent to a worker, and not come back yet */
    bool drained;  /* the order to end has come back */
};

void fake_keeper_init(struct fake_keeper *keeper);
void fake_keeper_finish(struct fake_keeper *keeper); /* nothing is left in its loop */

/* The oldest request, taken out; waits for it. Freed, or returned, by the caller. */
struct message *next_message(struct fake_keeper *keeper, enum message_kind kind);
struct load_request *next_load(struct fake_keeper *keeper, const char *key);
/* A write that has succeeded and wants a hint. */
struct write_request *next_hint(struct fake_keeper *keeper, const char *key);

void return_row(struct load_request *request, const char *value);
void return_outcome(struct load_request *request, enum load_outcome outcome);

/* What was sent has arrived, and there is nothing in the inbox. */
void must_not_ask(struct fake_keeper *keeper);

/* Sends an order, and waits until it has come back. */
void send_order(struct fake_keeper *keeper, struct mailbox *worker, struct message *message);

void must_drain(struct fake_keeper *keeper);

#endif
