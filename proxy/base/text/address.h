/* Where a port is: `HOST:PORT`, `[IPV6]:PORT`, `tls:` before either, or `unix:/path`. */
#ifndef NESTGUARD_ADDRESS_H
#define NESTGUARD_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct address {
    char *text; /* as written, for messages */
    char *host; /* without brackets; NULL for a unix socket */
    char *path; /* NULL for TCP */
    uint16_t port;
    bool tls; /* connections there are encrypted */
};

/* 0, or -EINVAL and *error (static text: what is wrong and what is allowed). */
int address_parse(struct address *out, const char *text, const char **error);
void address_finish(struct address *address);

/* In every member but `text`: what is written differently may mean the same. */
bool address_equal(const struct address *a, const struct address *b);
void address_copy(struct address *to, const struct address *from); /* ended by address_finish() */

/* One port or socket, whatever is spoken there. */
bool address_same_place(const struct address *a, const struct address *b);

enum { ADDRESS_NETWORK_SIZE = 48 };

/* Where somebody is, by an address without a port: hosts of one network of IPv6, whose first half
 * they have in common, may be one host, which may have as many addresses as it likes. That of
 * "[2001:db8::1]" is "[2001:db8::]/64"; an address that stands for one of IPv4 is that; any other
 * text is itself, as far as there is room. */
void address_network(const char *address, char network[ADDRESS_NETWORK_SIZE]);

/* True for 127.0.0.0/8, ::1, localhost and unix sockets. */
bool address_is_local(const struct address *address);

/* Opens a listening socket (bound, not yet listening), close-on-exec, non-blocking. With `shared`,
 * SO_REUSEPORT lets each worker have one; the first call for an address must not be
 * shared-with-strangers: when another process already listens there the answer is -EADDRINUSE
 * although SO_REUSEPORT would allow it. An abandoned unix socket file (nobody accepts on it) is
 * replaced; one that answers is -EADDRINUSE; any other file is -EEXIST. Puts `count` descriptors
 * into fds (for a unix socket: duplicates of one). Returns 0 or a negative errno, then none is
 * open. */
int address_listen(const struct address *address, int *fds, unsigned count);

/* Whether this socket is bound there: one that somebody else has opened. */
bool address_is_bound(const struct address *address, int fd);

/* Whether who connects to `to` comes to who listens at `at` on this machine: by name, by another
 * spelling, or because `at` is all of the machine's addresses. Names are looked up, which may take
 * its time. */
bool address_leads_to(const struct address *to, const struct address *at);

/* Whether address_listen() would find the place free, without taking it: 0 or its error. */
int address_try(const struct address *address);

#endif
