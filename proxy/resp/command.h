/* What the guard must know of a Redis command: which arguments are keys, and what becomes of it.
 * One const table; commands that it does not name are forwarded, so that those which do not exist
 * yet work too, over a connection of their client's own: nobody knows how many replies they have.
 * In a cluster the cache is asked where they go (command_info.h).
 */
#ifndef NESTGUARD_COMMAND_H
#define NESTGUARD_COMMAND_H

#include "base/span.h"
#include <stdbool.h>
#include <stdint.h>

enum command_kind {
    COMMAND_FORWARD, /* as it is, on a shared connection */
    COMMAND_GET,     /* GET: verdict, read-through */
    COMMAND_MGET,    /* MGET: the same, key by key */
    COMMAND_EXISTS,  /* EXISTS: the same, counted */
    COMMAND_READ,    /* reads one key: verdict; `absent` is what Redis answers for a missing key */
    COMMAND_WRITE,   /* makes its keys exist: a hint (SET and friends) */
    COMMAND_DELETE,  /* makes its keys vanish from the cache: DEL and kin */
    /* About a filter, of which its first argument is the name: where that is a keyspace's, */
    COMMAND_MEMBER,  /* its filter is asked for items (BF.EXISTS and kin) */
    COMMAND_ADMIT,   /* they are hints (BF.ADD and kin); of another name a WRITE */
    COMMAND_FILTER,  /* it is told of, or the command refused (BF.INFO, CF.DEL) */
    COMMAND_LOCAL,   /* the guard's to answer, or at least to know of: AUTH, HELLO, SELECT, CLIENT,
                        QUIT, RESET */
    COMMAND_MODE,    /* tells of a cluster, or is for one: answered as by a plain Redis */
    COMMAND_STATEFUL /* changes the connection's state or blocks it: not on shared connections. Keys
                        that it names are made, as by a WRITE */
};

/* What a COMMAND_STATEFUL does to its connection. */
enum command_effect {
    EFFECT_NONE, /* that is known of: the command is not in the table */
    EFFECT_MULTI,
    EFFECT_EXEC, /* and DISCARD */
    EFFECT_WATCH,
    EFFECT_UNWATCH,
    EFFECT_BLOCK, /* it waits, and then all is as before */
    EFFECT_SUBSCRIBE,
    EFFECT_UNSUBSCRIBE,
    EFFECT_MONITOR,
    EFFECT_ALTER,   /* something that is not followed further */
    EFFECT_RELAY,   /* from now on no commands and replies: replication */
    EFFECT_HANG_UP, /* Redis ends the connection */
};

/* What a WRITE's reply is where it made nothing. */
enum command_proof {
    PROOF_NOT_NIL,  /* an error, or nil */
    PROOF_NOT_ZERO, /* or 0 */
    PROOF_NO_ERROR, /* an error alone: nil is what was there before */
    PROOF_SCRIPT,   /* an error from before it ran */
    PROOF_NEVER     /* nothing is there whatever it says */
};

/* In place of a last key: keys that only the arguments tell. */
enum {
    KEYS_COUNTED = -1000, /* from first_key on, as many as the argument before says */
    KEYS_STORED = -1001   /* behind STORE or STOREDIST */
};

/* Of a MEMBER or ADMIT, bits. */
enum command_items {
    ITEMS_MARKED = 1,  /* they stand behind the word ITEMS; else behind the filter's name */
    ITEMS_COUNTED = 2, /* what is said of them are integers, in RESP3 as well */
    ITEMS_REPEATED = 4 /* one that is there already is added once more */
};

/* What a READ asks of a hash: where rows are cached as hashes it is read through. */
enum command_hash {
    HASH_NOT,    /* it asks of something else */
    HASH_VALUE,  /* of a field (HGET) */
    HASH_VALUES, /* of some fields (HMGET) */
    HASH_LENGTH, /* of a field's value (HSTRLEN) */
    HASH_HAS,    /* a field (HEXISTS) */
    HASH_COUNT,  /* of its fields (HLEN) */
    HASH_ALL,    /* of it (HGETALL) */
    HASH_NAMES,  /* of its fields (HKEYS) */
    HASH_TEXTS   /* all values (HVALS) */
};

/* Whether the reply of a WRITE, a DELETE or one that is forwarded says something of the value that
 * its keys had. Of a READ and its kin it does. */
enum command_telling {
    TELLS,          /* or nobody knows */
    TELLS_WITH_GET, /* if it has that option */
    TELLS_NOT       /* at most whether they were there */
};

struct command {
    const char *name; /* upper case */
    enum command_kind kind;
    int arity; /* as COMMAND INFO gives it: negative is "at least"; 0 when the guard need not know
                */
    /* As COMMAND INFO gives them; or last_key says where else they are. */
    int first_key, last_key, key_step; /* as COMMAND INFO gives them, but of a WRITE only the keys
                                          that it makes (RENAME: the second); 0: none that matter */
    enum command_effect effect;
    enum command_proof proof; /* of what makes keys */
    enum command_telling telling;
    const char *absent[2];  /* reply of a GET or READ for a missing key, in RESP2 and in RESP3; NULL
                               with HASH_VALUES: a nil for each field */
    unsigned items;         /* command_items */
    enum command_hash hash; /* of a READ */
};

/* Before any thread that calls command_find(); any thread, any number of times. */
void commands_prepare(void);

/* The row of the command called by `name` in any case, or a row of COMMAND_STATEFUL for one that
 * the table does not name. Never NULL. */
const struct command *command_find(struct span text);

/* The row of one that the table does not name, and of which the cache says that it waits. */
extern const struct command command_unnamed_waiting;

/* It is none of the table's. */
static inline bool command_is_unnamed(const struct command *command)
{
    return !command->name[0];
}

/* Whether a command with these arguments (the name first) blocks or changes state although its row
 * says FORWARD or READ (XREAD ... BLOCK, SCRIPT DEBUG): a row's exception, decided in one place. */
bool command_is_stateful(const struct command *command, const struct span *arguments, size_t count);

/* SCRIPT KILL, FUNCTION KILL: what a server answers that a script keeps busy. Behind that script
 * itself, on a shared connection, it would wait for it. */
bool command_ends_script(const struct command *command, const struct span *arguments, size_t count);

/* Whether an error in its reply may be a client's own words: those of a script, or of a module that
 * nobody knows here. What Redis itself would mean by them is not meant then. */
bool command_words_errors(struct span name);

/* Its place in the table; command_table_rows for those that the table does not name. Less than
 * COMMAND_NUMBERS. */
enum { COMMAND_NUMBERS = 400 };
size_t command_number(const struct command *command);

/* Of one that its kind says no more of: whether the keys that it names exist when it was done. */
static inline bool command_makes_keys(const struct command *command)
{
    return command->kind == COMMAND_WRITE || command->kind == COMMAND_ADMIT ||
           (command->kind == COMMAND_STATEFUL && command->first_key);
}

/* Whether so many words, the name included, may be right; true of commands whose arity is not
 * known. */
bool command_arity_ok(const struct command *command, size_t count);

/* The rows that command_find() looks in; also for the test that holds them against a real Redis. */
extern const struct command command_table[];
extern const size_t command_table_rows;

#endif
