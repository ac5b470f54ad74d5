/* Clients without a socket: the test types what they send and looks at what they would get. */
#ifndef NESTGUARD_FAKES_CLIENT_H
#define NESTGUARD_FAKES_CLIENT_H

#include "fakes/serving.h"
#include "worker/client/client.h"

struct fake_clients {
    struct fake_serving serving;
    struct clients clients;
    _Atomic unsigned total;
    /* Serves what is to be served of a client's input; NULL: nobody does. */
    void (*serve)(struct client *client, struct span input);
};

void fake_clients_init(struct fake_clients *fake, const char *settings, mailbox_deliver deliver,
                       void *arg);
/* Ends those that are left. No reply may wait to be looked at. */
void fake_clients_finish(struct fake_clients *fake);

/* An open one, on a shared connection to the cache. */
struct client *client_add(struct fake_clients *fake);

/* It closes, and is gone at once. Nothing of it is in line. */
void client_remove(struct client *client);

/* The client sends this, and the turn goes on to its end. */
void type_bytes(struct client *client, const char *bytes, size_t length);
void type(struct client *client, const char *text);

/* Exactly these replies may leave, and the turn is at its end. */
void must_reply(struct client *client, const char *wanted);

#endif
