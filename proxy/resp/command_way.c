/* What is not named here has its key behind its name, like most commands. Of keys at other places,
 * whether they stand behind their number, behind a word, or behind a subcommand, only the first
 * counts: that all are in one slot the node makes sure of, and says it best.
 */
#include "resp/command_way.h"

#include <pthread.h>

/* How a row finds the key; `at` is the word. */
enum place {
    AT,      /* the key itself */
    COUNTED, /* the number of keys, which follow */
    STREAMS  /* behind this word */
};

struct row {
    const char *name, *subcommand; /* NULL: any; "": none of those before */
    enum command_route route;
    enum command_join join;
    enum place place;
    unsigned at, step;
};

#define KEY(name, place, at)                                                                       \
    {                                                                                              \
        name, NULL, ROUTE_KEY, JOIN_FIRST, place, at, 0                                            \
    }
#define ONE(name, route)                                                                           \
    {                                                                                              \
        name, NULL, ROUTE_##route, JOIN_FIRST, AT, 0, 0                                            \
    }
#define ALL(name, join)                                                                            \
    {                                                                                              \
        name, NULL, ROUTE_ALL, JOIN_##join, AT, 0, 0                                               \
    }
#define KEYS(name, join, step)                                                                     \
    {                                                                                              \
        name, NULL, ROUTE_KEYS, JOIN_##join, AT, 1, step                                           \
    }
#define SUB(name, subcommand, route, join, at)                                                     \
    {                                                                                              \
        name, subcommand, ROUTE_##route, JOIN_##join, AT, at, 0                                    \
    }

static const struct row rows[] = {
    KEYS("DEL", SUM, 1),
    KEYS("UNLINK", SUM, 1),
    KEYS("TOUCH", SUM, 1),
    KEYS("EXISTS", SUM, 1),
    KEYS("MGET", LISTS, 1),
    KEYS("MSET", FIRST, 2),

    KEY("BITOP", AT, 2),
    KEY("MSETEX", COUNTED, 1),
    KEY("EVAL", COUNTED, 2),
    KEY("EVALSHA", COUNTED, 2),
    KEY("EVAL_RO", COUNTED, 2),
    KEY("EVALSHA_RO", COUNTED, 2),
    KEY("FCALL", COUNTED, 2),
    KEY("FCALL_RO", COUNTED, 2),
    KEY("LMPOP", COUNTED, 1),
    KEY("BLMPOP", COUNTED, 2),
    KEY("ZMPOP", COUNTED, 1),
    KEY("BZMPOP", COUNTED, 2),
    KEY("SINTERCARD", COUNTED, 1),
    KEY("ZINTERCARD", COUNTED, 1),
    KEY("ZDIFF", COUNTED, 1),
    KEY("ZINTER", COUNTED, 1),
    KEY("ZUNION", COUNTED, 1),
    KEY("XREAD", STREAMS, 1),
    KEY("XREADGROUP", STREAMS, 1),
    KEY("PFDEBUG", AT, 2),
    KEY("XGROUP", AT, 2),
    KEY("XINFO", AT, 2),
    KEY("OBJECT", AT, 2),
    SUB("MEMORY", "USAGE", KEY, FIRST, 2),

    ALL("DBSIZE", SUM),
    ALL("FLUSHALL", FIRST),
    ALL("FLUSHDB", FIRST),
    ALL("KEYS", LISTS),
    ALL("RANDOMKEY", ANY),
    SUB("CONFIG", "SET", ALL, FIRST, 0),
    SUB("CONFIG", "RESETSTAT", ALL, FIRST, 0),
    SUB("CONFIG", "REWRITE", ALL, FIRST, 0),
    SUB("CONFIG", NULL, ANY, FIRST, 0),
    SUB("SCRIPT", "LOAD", ALL, FIRST, 0),
    SUB("SCRIPT", "FLUSH", ALL, FIRST, 0),
    SUB("SCRIPT", "EXISTS", ALL, LEAST, 0),
    SUB("SCRIPT", "KILL", END, ENDED, 0),
    SUB("SCRIPT", "HELP", ANY, FIRST, 0),
    SUB("FUNCTION", "LOAD", ALL, FIRST, 0),
    SUB("FUNCTION", "DELETE", ALL, FIRST, 0),
    SUB("FUNCTION", "FLUSH", ALL, FIRST, 0),
    SUB("FUNCTION", "RESTORE", ALL, FIRST, 0),
    SUB("FUNCTION", "KILL", END, ENDED, 0),
    SUB("FUNCTION", "LIST", ANY, FIRST, 0),
    SUB("FUNCTION", "DUMP", ANY, FIRST, 0),
    SUB("FUNCTION", "HELP", ANY, FIRST, 0),
    ONE("SCAN", SCAN),
    ONE("WAIT", WAIT),
    ONE("WAITAOF", WAIT),

    SUB("ACL", "WHOAMI", ANY, FIRST, 0),
    SUB("ACL", "CAT", ANY, FIRST, 0),
    SUB("ACL", "GENPASS", ANY, FIRST, 0),
    ONE("COMMAND", ANY),
    ONE("ECHO", ANY),
    ONE("INFO", ANY),
    ONE("CLUSTER", ANY),
    ONE("ASKING", ANY),
    ONE("READONLY", ANY),
    ONE("READWRITE", ANY),
    ONE("LASTSAVE", ANY),
    ONE("LOLWUT", ANY),
    ONE("PFSELFTEST", ANY),
    ONE("PING", ANY),
    ONE("PUBLISH", ANY),
    ONE("ROLE", ANY),
    ONE("SUBSCRIBE", ANY),
    ONE("PSUBSCRIBE", ANY),
    ONE("SWAPDB", ANY), /* a node refuses it in its own words */
    ONE("TIME", ANY),

    ONE("MULTI", STATE),
    ONE("EXEC", STATE),
    ONE("DISCARD", STATE),
    ONE("UNWATCH", STATE),
    ONE("UNSUBSCRIBE", STATE),
    ONE("PUNSUBSCRIBE", STATE),
    ONE("SUNSUBSCRIBE", STATE),
    ONE("AUTH", STATE),
    ONE("HELLO", STATE),
    ONE("QUIT", STATE),
    ONE("RESET", STATE),
    ONE("POST", STATE),
    ONE("HOST:", STATE),
    ONE("SELECT", NO_DB),
    SUB("CLIENT", "PAUSE", ALL, FIRST, 0),
    SUB("CLIENT", "UNPAUSE", ALL, FIRST, 0),
    ONE("CLIENT", STATE),

    ONE("ACL", REFUSED),

    ONE("BGREWRITEAOF", REFUSED),
    ONE("BGSAVE", REFUSED),
    ONE("DEBUG", REFUSED),
    ONE("FAILOVER", REFUSED),
    ONE("FUNCTION", REFUSED),
    ONE("LATENCY", REFUSED),
    ONE("MEMORY", REFUSED),
    ONE("MIGRATE", REFUSED),
    ONE("MODULE", REFUSED),
    ONE("MONITOR", REFUSED),
    ONE("PSYNC", REFUSED),
    ONE("PUBSUB", REFUSED),

    ONE("REPLCONF", REFUSED),
    ONE("REPLICAOF", REFUSED),
    ONE("SAVE", REFUSED),
    ONE("SCRIPT", REFUSED),
    ONE("SHUTDOWN", REFUSED),
    ONE("SLAVEOF", REFUSED),
    ONE("SLOWLOG", REFUSED),
    ONE("SYNC", REFUSED),
};

static bool is_meant(const struct row *row, const struct command *command, const struct span *words,
                     size_t count)
{
    if (strcmp(row->name, command->name) != 0)
        return false;
    return !row->subcommand || (count > 1 && span_is_word(words[1], row->subcommand));
}

/* A number that is none, or 0, is the node's to refuse, whichever that is. */
static size_t counted_key(const struct span *words, size_t count, size_t at)
{
    if (at + 1 >= count || !words[at].length)
        return 0;
    for (size_t i = 0; i < words[at].length; i++)
        if (words[at].at[i] < '0' || words[at].at[i] > '9')
            return 0;
    return span_is(words[at], "0") ? 0 : at + 1;
}

/* The options before it may have a value that reads like it: a group, or who reads. */
static size_t stream_key(const struct span *words, size_t count)
{
    for (size_t i = 1; i + 1 < count; i++) {
        if (span_is_word(words[i], "STREAMS"))
            return i + 1;
        if (span_is_word(words[i], "GROUP"))
            i += 2;
        else if (span_is_word(words[i], "COUNT") || span_is_word(words[i], "BLOCK"))
            i += 1;
    }
    return 0;
}

static size_t key_of(const struct row *row, const struct span *words, size_t count)
{
    switch (row->place) {
    case COUNTED:
        return counted_key(words, count, row->at);
    case STREAMS:
        return stream_key(words, count);
    case AT:
        break;
    }
    return row->at < count ? row->at : 0;
}

/* A row and one of each command's number; 0: it has none. */
static unsigned char first_rows[COMMAND_NUMBERS];

static void find_first_rows(void)
{
    _Static_assert(sizeof rows / sizeof *rows < 255, "a row's number fits");
    for (size_t i = sizeof rows / sizeof *rows; i > 0; i--)
        first_rows[command_number(command_find(span_of(rows[i - 1].name)))] = (unsigned char)i;
}

struct command_way command_way(const struct command *command, const struct span *words,
                               size_t count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_first_rows);
    if (command_is_unnamed(command))
        return (struct command_way){.route = ROUTE_REFUSED};
    size_t first = first_rows[command_number(command)];
    for (size_t i = first - 1; first && i < sizeof rows / sizeof *rows; i++)
        if (is_meant(&rows[i], command, words, count))
            return (struct command_way){rows[i].route, rows[i].join, key_of(&rows[i], words, count),
                                        rows[i].step};
    return (struct command_way){.route = ROUTE_KEY, .key = count > 1};
}
