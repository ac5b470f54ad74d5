/* The other end of a connection: a client, or the cache on its port. What a test says and hears is
 * bytes; it waits for them as long as a loaded machine may need. */
#ifndef NESTGUARD_FAKES_PEER_H
#define NESTGUARD_FAKES_PEER_H

#include <stddef.h>
#include <stdint.h>

enum { PATIENCE_MS = 10000 };

/* A bound socket on a port of 127.0.0.1 that nobody had. */
int listen_somewhere(uint16_t *port, int flags);
int connect_to(uint16_t port);

void must_be_readable(int fd, const char *for_what);

void say_bytes(int fd, const char *bytes, size_t length);
void say(int fd, const char *text);

/* Exactly these bytes must come next. */
void must_hear_bytes(int fd, const char *wanted, size_t length);
void must_hear(int fd, const char *wanted);

/* Nothing may come: for a moment, since no event tells that. */
void must_be_silent(int fd);

/* The other side must close, after these last bytes. */
void must_end(int fd, const char *last);

/* Resets the connection, so that the other side hears of it at once. */
void vanish(int fd);

#endif
