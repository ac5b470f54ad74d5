/* The socket of a client: what it sends, what it gets, and its end.
 *
 *   socket ─▶ input ─▶ dispatch_input() ─▶ replies ─▶ one write a loop turn ─▶ socket
 */
#ifndef NESTGUARD_CONNECTION_H
#define NESTGUARD_CONNECTION_H

#include "worker/client/client.h"

/* A client with an initialised stream, to be accepted or opened; connection_start() begins to read
 * from it, with `tls` when both sides have shaken hands. client_close() ends it. */
struct client *connection_create(struct clients *clients, bool is_unix);
void connection_start(struct client *client, bool tls);

/* Once in a while: drops a client that has taken none of its replies for output_timeout. */
void connection_check_progress(struct client *client, uint64_t now);

#endif
