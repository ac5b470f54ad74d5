/* Where clients come from, and what those of one host have of what all share: who connects anew, or
 * often, has no more than before. A worker's; each counts its own clients.
 */
#ifndef NESTGUARD_HOSTS_H
#define NESTGUARD_HOSTS_H

#include "base/keymap.h"
#include "guard/hint_share.h"
#include "net/handshakes.h"
#include "worker/reply/serving.h"

/* Connections of clients' own; and of these, those of strangers who log in (pinned_room.h). */
enum own_kind { OWN_ANY, OWN_LOGIN, OWN_KINDS };

struct host {
    struct keymap_node node;          /* by `origin` */
    uint64_t origin;                  /* of address_network(): account_open() */
    unsigned clients, strangers;      /* strangers: of these (strangers.h) */
    unsigned own_connections, logins; /* that its clients have now (pinned_room.h) */
    bool none_idle[OWN_KINDS];        /* of these, when that was last looked at */
    struct handshake_line handshakes; /* of its clients, those that wait */
    struct hint_share hints;
    uint64_t large_bytes; /* of large replies, as of large_at; they leak away */
    uint64_t large_at;    /* clock_ms() */
    uint64_t much_until;  /* likewise; 0: they never were much */
    size_t bytes;         /* that its clients took at the last look that saw any, so far; */
    size_t largest;       /* of these, one */
    uint64_t weighed;     /* and which look that was; client_memory.c's, all three */
};

/* Zeroed: of nobody. */
struct hosts {
    struct keymap all;
};

/* One more client is there, or one less. Without any, a host is remembered for as long as hints of
 * its clients count, or writes of theirs may still come to be hints, or large replies to them. */
struct host *host_enter(struct hosts *hosts, const struct serving *serving, uint64_t origin);
void host_leave(struct hosts *hosts, const struct serving *serving, struct host *host);

/* Of the last places that clients of a host have taken for hints so many were not needed; or they
 * are needed, though they were given back. The clients may have gone, and the host with them. */
void hosts_give_back(const struct serving *serving, uint64_t origin, size_t places);
void hosts_grant(const struct serving *serving, uint64_t origin, size_t places);

/* So many bytes of a large reply have come for a client of that host, over a connection that others
 * share. The client may have gone: who only asks and leaves takes no less. */
void hosts_note_large(const struct serving *serving, uint64_t origin, size_t bytes);

/* Its clients have had megabytes a second of such replies lately. */
bool host_takes_much(const struct host *host);

/* No clients are left. */
void hosts_finish(struct hosts *hosts);

/* What room there is for hints. What writes have taken that are on their way through their pieces
 * counts as used. */
struct hint_room hosts_hint_room(const struct serving *serving);

#endif
