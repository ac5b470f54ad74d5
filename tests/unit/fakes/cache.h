/* A worker's connection to the cache that a test plays. What the guard asks of every cache by
 * itself, its role once a second and at first which server it is, is answered here as by a primary
 * that does not say, whenever it comes and in its place among the replies: the test neither sees it
 * nor answers it. All other bytes pass as they are, as they come, and so do ends.
 *
 *   worker ─▶ PING ROLE GET ─▶ fake ─▶ PING GET ─▶ test
 *          ◀─ +PONG *3.. $1 ◀─      ◀─ +PONG $1 ◀─
 */
#ifndef NESTGUARD_FAKES_CACHE_H
#define NESTGUARD_FAKES_CACHE_H

#include <stddef.h>

/* Takes an end that was accepted; returns the test's, on which must_hear() and the like of
 * fakes/peer.h work. What is said, and an end, have reached the worker's socket when these return:
 * what the test says to a client behind that comes later. */
int fake_cache_join(int worker);
void fake_cache_say(int fd, const char *bytes, size_t length);
void fake_cache_close(int fd);

/* How often a role was asked for, by greetings, too. */
unsigned fake_cache_roles(void);

/* Waits for the end of all connections: each has been closed at one side. */
void fake_cache_finish(void);

#endif
