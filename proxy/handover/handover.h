/* A guard that follows another of the same file without a gap.
 *
 *   successor                              predecessor
 *   handover_ask() ───── connects ──────▶  handover_listen()
 *                  ◀── listening sockets ─ handover_give()
 *        └─────────── a channel between them (channel.h) ───────────┘
 *
 * They meet under names in the abstract namespace of unix sockets that are made of the file's path,
 * as it was given and as it is without links: they are gone with the process, and each network
 * namespace has its own. Each makes sure that the other runs as the same user; nobody else is given
 * a socket, or listened to.
 *
 * The sockets are the same ones in both processes, with the same queues of clients who wait: none
 * is refused, whoever of the two accepts.
 */
#ifndef NESTGUARD_HANDOVER_H
#define NESTGUARD_HANDOVER_H

#include <stdbool.h>
#include <sys/types.h>

enum { HANDOVER_SOCKETS_MAX = 4096, HANDOVER_NAMES = 2 };

/* The predecessor: how many sockets by which it is asked, the caller's to close, or a negative
 * errno; -EADDRINUSE when another process serves by this file. */
int handover_listen(const char *file, int fds[HANDOVER_NAMES]);

/* Whoever has asked: a channel's descriptor, or -EAGAIN when nobody of this user has. */
int handover_accept(int listening);

/* Gives sockets, which stay open here, too. 0 or a negative errno. */
int handover_give(int channel, const int *fds, unsigned count);

/* The successor, before it has a loop: asks, and waits for some seconds. Returns the channel's
 * descriptor with the sockets, at most HANDOVER_SOCKETS_MAX of them; or a negative errno, -ENOENT
 * when nobody serves by this file. */
int handover_ask(const char *file, int *fds, unsigned *count);

/* Who is at the other end. */
pid_t handover_peer(int channel);

#endif
