/* Where a command goes in a cluster, whose nodes have different keys: a table beside that of
 * commands (command.h), which one server has no use for. */
#ifndef NESTGUARD_COMMAND_WAY_H
#define NESTGUARD_COMMAND_WAY_H

#include "resp/command.h"

enum command_route {
    ROUTE_KEY,   /* to the node of its key; more of them are that node's to judge */
    ROUTE_ANY,   /* to any node: it has no key, and all would say the same, or nothing that lasts */
    ROUTE_ALL,   /* to all primaries; their replies become one */
    ROUTE_WAIT,  /* likewise, over connections that it alone has, for it blocks them */
    ROUTE_END,   /* likewise, however busy they are: SCRIPT KILL */
    ROUTE_KEYS,  /* key by key; the replies become one */
    ROUTE_SCAN,  /* through one node after the other */
    ROUTE_STATE, /* wherever its connection's state is: MULTI, EXEC, UNSUBSCRIBE */
    ROUTE_NO_DB, /* SELECT: a cluster has one database */
    ROUTE_REFUSED /* it means one server, which a cluster is not, or is not supported yet */
};

/* How replies of several nodes, or of several keys, become one. An error is the reply of all,
 * but with JOIN_ENDED. */
enum command_join {
    JOIN_FIRST, /* they are the same */
    JOIN_SUM,
    JOIN_LISTS, /* one behind the other */
    JOIN_ANY,   /* one that is not nil, by lot, if there is any */
    JOIN_LEAST, /* of numbers, or of lists of them at each place, the least */
    JOIN_ENDED  /* of SCRIPT KILL and FUNCTION KILL, whose errors are answers, too */
};

struct command_way {
    enum command_route route;
    enum command_join join;
    size_t key;  /* which word is the first key; 0: none */
    size_t step; /* with ROUTE_KEYS: words from a key to the next */
};

/* Of a command with these words. One that the table does not name is refused: only the cache knows
 * of its keys (command_info.h). */
struct command_way command_way(const struct command *command, const struct span *words,
                               size_t count);

#endif
