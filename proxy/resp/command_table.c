/* Every command of Redis 7.0, and some that came later. Those that are only bytes to forward are
 * here, too (PLAIN): they have one reply, and leave their connection as it is. Of a command that is
 * not here, a module's or one that was renamed, nobody knows that.
 *
 * A READ has exactly one key, changes nothing about a key that is missing, and then answers the
 * same constant whatever its other arguments are. (Wrong arguments would be an error; for an absent
 * key the guard does not look at them.) HMGET answers a nil for each field. Other commands whose
 * answer has a shape that depends on arguments, as LPOS, SMISMEMBER or SRANDMEMBER, are not here:
 * they are forwarded.
 *
 * A WRITE names the keys that exist after it, if its reply does not say otherwise (command_proof):
 * those that make their key only mostly (SET XX, a STORE of nothing; a script, which may only read
 * its keys) are rows as well. Of commands with a source and a destination the keys are the
 * destination alone.
 *
 * A command is QUIET only when its reply says nothing of a value that was there (command_telling):
 * one that comes new tells until somebody has looked.
 */
#include "resp/command.h"

#define ROW(name, kind, arity, first, last, step)                                                  \
    name, kind, arity, first, last, step, EFFECT_NONE, PROOF_NOT_NIL
#define READ_BOTH(name, arity, absent2, absent3)                                                   \
    ROW(name, COMMAND_READ, arity, 1, 1, 1), TELLS, {absent2, absent3}, 0, HASH_NOT
#define READ_HASH(name, arity, question, absent2, absent3)                                         \
    ROW(name, COMMAND_READ, arity, 1, 1, 1), TELLS, {absent2, absent3}, 0, HASH_##question
#define READ(name, arity, absent) READ_BOTH(name, arity, absent, absent)
#define READ_NIL(name, arity) READ_BOTH(name, arity, NIL, NULL3)
#define NO_ANSWER TELLS, {NULL, NULL}, 0, HASH_NOT
#define QUIET_ANSWER TELLS_NOT, {NULL, NULL}, 0, HASH_NOT
#define WRITE_KEYS(name, arity, first, last, step)                                                 \
    ROW(name, COMMAND_WRITE, arity, first, last, step), NO_ANSWER
#define WRITE_PROVED(name, arity, first, last, step, proof)                                        \
    name, COMMAND_WRITE, arity, first, last, step, EFFECT_NONE, proof, NO_ANSWER
#define QUIET_KEYS(name, arity, first, last, step, proof)                                          \
    name, COMMAND_WRITE, arity, first, last, step, EFFECT_NONE, proof, QUIET_ANSWER
#define QUIET_WRITE(name, arity) QUIET_KEYS(name, arity, 1, 1, 1, PROOF_NOT_NIL)
#define QUIET_DELETE(name, arity, last)                                                            \
    name, COMMAND_DELETE, arity, 1, last, 1, EFFECT_NONE, PROOF_NO_ERROR, QUIET_ANSWER
#define WRITE(name, arity) WRITE_KEYS(name, arity, 1, 1, 1)
#define WRITE_SECOND(name, arity) WRITE_KEYS(name, arity, 2, 2, 1)
#define DELETE_PROVED(name, arity, last, proof)                                                    \
    name, COMMAND_DELETE, arity, 1, last, 1, EFFECT_NONE, proof, NO_ANSWER
#define DELETE(name, arity, last) DELETE_PROVED(name, arity, last, PROOF_NO_ERROR)
#define LOCAL(name, arity) ROW(name, COMMAND_LOCAL, arity, 0, 0, 0), NO_ANSWER
/* It waits, and makes its second key exist when it does not wait in vain. */
#define WAITING_WRITE_SECOND(name, arity)                                                          \
    name, COMMAND_STATEFUL, arity, 2, 2, 1, EFFECT_BLOCK, PROOF_NOT_NIL, NO_ANSWER
#define STATEFUL(name, effect)                                                                     \
    name, COMMAND_STATEFUL, 0, 0, 0, 0, EFFECT_##effect, PROOF_NOT_NIL, NO_ANSWER
/* Forwarded, unless command_is_stateful() finds among their arguments what has this effect. */
#define DEPENDS(name, effect)                                                                      \
    name, COMMAND_FORWARD, 0, 0, 0, 0, EFFECT_##effect, PROOF_NOT_NIL, NO_ANSWER

#define ABOUT_FILTER(name, kind, arity, items)                                                     \
    ROW(name, COMMAND_##kind, arity, 1, 1, 1), TELLS, {NULL, NULL}, items, HASH_NOT

#define MODE(name, arity, effect)                                                                  \
    name, COMMAND_MODE, arity, 0, 0, 0, EFFECT_##effect, PROOF_NOT_NIL, NO_ANSWER

#define PLAIN(name) PLAIN_OF(name, 0)

/* Where so many words must be, which is to be known before a cluster's node can say so. */
#define PLAIN_OF(name, arity)                                                                      \
    name, COMMAND_FORWARD, arity, 0, 0, 0, EFFECT_NONE, PROOF_NOT_NIL, NO_ANSWER

#define PLAIN_QUIET(name)                                                                          \
    name, COMMAND_FORWARD, 0, 0, 0, 0, EFFECT_NONE, PROOF_NOT_NIL, QUIET_ANSWER

#define ZERO ":0\r\n"
#define NIL "$-1\r\n"
#define NULL3 "_\r\n"
#define EMPTY_TEXT "$0\r\n\r\n"
#define EMPTY_LIST "*0\r\n"
#define END_OF_SCAN "*2\r\n$1\r\n0\r\n*0\r\n"
#define NO_SUCH_KEY ":-2\r\n"

const struct command command_table[] = {
    {"GET", COMMAND_GET, 2, 1, 1, 1, EFFECT_NONE, PROOF_NOT_NIL, TELLS, {NIL, NULL3}, 0, HASH_NOT},
    {"MGET", COMMAND_MGET, -2, 1, -1, 1, EFFECT_NONE, PROOF_NOT_NIL, NO_ANSWER},
    {"EXISTS", COMMAND_EXISTS, -2, 1, -1, 1, EFFECT_NONE, PROOF_NOT_NIL, NO_ANSWER},

    /* GETDEL deletes a key of the cache, whatever it reads before. What is not there may be on its
     * way; those of newer versions that compare it first must not delete what was not the same. */
    {QUIET_DELETE("DEL", -2, -1)},
    {QUIET_DELETE("UNLINK", -2, -1)},
    {DELETE("GETDEL", 2, 1)},
    {DELETE_PROVED("DELEX", -2, 1, PROOF_NOT_ZERO)},  /* of Redis 8.4 */
    {DELETE_PROVED("DELIFEQ", 3, 1, PROOF_NOT_ZERO)}, /* of Valkey 9 */

    /* What each answers for a missing key, which Redis itself is asked for by the tests. */
    {READ_NIL("GETEX", -2)},
    {READ("STRLEN", 2, ZERO)},
    {READ("GETRANGE", 4, EMPTY_TEXT)},
    {READ("SUBSTR", 4, EMPTY_TEXT)},
    {READ("GETBIT", 3, ZERO)},
    {READ("BITCOUNT", -2, ZERO)},
    {READ("TTL", 2, NO_SUCH_KEY)},
    {READ("PTTL", 2, NO_SUCH_KEY)},
    {READ("EXPIRETIME", 2, NO_SUCH_KEY)},
    {READ("PEXPIRETIME", 2, NO_SUCH_KEY)},
    {READ("TYPE", 2, "+none\r\n")},
    {READ_NIL("DUMP", 2)},
    {READ_HASH("HGET", 3, VALUE, NIL, NULL3)},
    {READ_HASH("HMGET", -3, VALUES, NULL, NULL)},
    {READ_HASH("HGETALL", 2, ALL, EMPTY_LIST, "%0\r\n")},
    {READ_HASH("HKEYS", 2, NAMES, EMPTY_LIST, EMPTY_LIST)},
    {READ_HASH("HVALS", 2, TEXTS, EMPTY_LIST, EMPTY_LIST)},
    {READ_HASH("HLEN", 2, COUNT, ZERO, ZERO)},
    {READ_HASH("HEXISTS", 3, HAS, ZERO, ZERO)},
    {READ_HASH("HSTRLEN", 3, LENGTH, ZERO, ZERO)},
    {READ("HSCAN", -3, END_OF_SCAN)},
    {READ("LLEN", 2, ZERO)},
    {READ_NIL("LINDEX", 3)},
    {READ("LRANGE", 4, EMPTY_LIST)},
    {READ("SCARD", 2, ZERO)},
    {READ("SISMEMBER", 3, ZERO)},
    {READ_BOTH("SMEMBERS", 2, EMPTY_LIST, "~0\r\n")},
    {READ("SSCAN", -3, END_OF_SCAN)},
    {READ("ZCARD", 2, ZERO)},
    {READ("ZCOUNT", 4, ZERO)},
    {READ("ZLEXCOUNT", 4, ZERO)},
    {READ_NIL("ZSCORE", 3)},
    {READ_NIL("ZRANK", 3)},
    {READ_NIL("ZREVRANK", 3)},
    {READ("ZRANGE", -4, EMPTY_LIST)},
    {READ("ZRANGEBYLEX", -4, EMPTY_LIST)},
    {READ("ZRANGEBYSCORE", -4, EMPTY_LIST)},
    {READ("ZREVRANGE", -4, EMPTY_LIST)},
    {READ("ZREVRANGEBYLEX", -4, EMPTY_LIST)},
    {READ("ZREVRANGEBYSCORE", -4, EMPTY_LIST)},
    {READ("ZSCAN", -3, END_OF_SCAN)},
    {READ_NIL("GEODIST", -4)},
    {READ("GEORADIUS_RO", -6, EMPTY_LIST)},
    {READ("GEORADIUSBYMEMBER_RO", -5, EMPTY_LIST)},
    {READ("GEOSEARCH", -7, EMPTY_LIST)},
    {READ("XLEN", 2, ZERO)},
    {READ("XRANGE", -4, EMPTY_LIST)},
    {READ("XREVRANGE", -4, EMPTY_LIST)},

    /* Rows without a proof of their own answer nil or an error where nothing was made, and 0 where
     * the key is there all the same. */
    {ROW("SET", COMMAND_WRITE, -3, 1, 1, 1), TELLS_WITH_GET, {NULL, NULL}, 0, HASH_NOT},
    {QUIET_WRITE("SETEX", 4)},
    {QUIET_WRITE("PSETEX", 4)},
    {QUIET_WRITE("SETNX", 3)},
    {WRITE_PROVED("GETSET", 3, 1, 1, 1, PROOF_NO_ERROR)},
    {QUIET_KEYS("MSET", -3, 1, -1, 2, PROOF_NOT_NIL)},
    {QUIET_KEYS("MSETNX", -3, 1, -1, 2, PROOF_NOT_ZERO)},
    {WRITE("APPEND", 3)},
    {WRITE_PROVED("SETRANGE", 4, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE("SETBIT", 4)},
    {WRITE("BITFIELD", -2)},
    {WRITE("INCR", 2)},
    {WRITE("INCRBY", 3)},
    {WRITE("INCRBYFLOAT", 3)},
    {WRITE("DECR", 2)},
    {WRITE("DECRBY", 3)},
    {QUIET_WRITE("HSET", -4)},
    {QUIET_WRITE("HSETNX", 4)},
    {QUIET_WRITE("HMSET", -4)},
    {WRITE("HINCRBY", 4)},
    {WRITE("HINCRBYFLOAT", 4)},
    {WRITE("LPUSH", -3)},
    {WRITE("RPUSH", -3)},
    {WRITE("SADD", -3)},
    {WRITE("ZADD", -4)},
    {WRITE("ZINCRBY", 4)},
    {WRITE("GEOADD", -5)},
    {WRITE("PFADD", -2)},
    {WRITE("XADD", -5)},
    {WRITE_KEYS("XGROUP", -3, 2, 2, 1)}, /* but for XGROUP HELP, which has no key */
    /* of Redis 8 */
    {QUIET_KEYS("HSETEX", -6, 1, 1, 1, PROOF_NOT_ZERO)},
    {QUIET_KEYS("MSETEX", -4, 2, KEYS_COUNTED, 2, PROOF_NOT_ZERO)},
    {WRITE("VADD", -5)},
    {QUIET_WRITE("RESTORE", -4)},
    {QUIET_WRITE("RESTORE-ASKING", -4)},
    {WRITE("PFMERGE", -2)},
    {WRITE_PROVED("SDIFFSTORE", -3, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("SINTERSTORE", -3, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("SUNIONSTORE", -3, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("ZDIFFSTORE", -4, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("ZINTERSTORE", -4, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("ZUNIONSTORE", -4, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("ZRANGESTORE", -5, 1, 1, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("GEOSEARCHSTORE", -8, 1, 1, 1, PROOF_NOT_ZERO)},
    /* Of scripts the keys that they declare, though they may only read them. */
    {WRITE_PROVED("EVAL", -3, 3, KEYS_COUNTED, 1, PROOF_SCRIPT)},
    {WRITE_PROVED("EVALSHA", -3, 3, KEYS_COUNTED, 1, PROOF_SCRIPT)},
    {WRITE_PROVED("FCALL", -3, 3, KEYS_COUNTED, 1, PROOF_SCRIPT)},
    {WRITE_PROVED("SORT", -2, 2, KEYS_STORED, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("GEORADIUS", -6, 6, KEYS_STORED, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("GEORADIUSBYMEMBER", -5, 5, KEYS_STORED, 1, PROOF_NOT_ZERO)},
    /* The second argument is the key that exists afterwards. */
    {WRITE_SECOND("RENAME", 3)},
    {WRITE_PROVED("RENAMENX", 3, 2, 2, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("COPY", -3, 2, 2, 1, PROOF_NOT_ZERO)},
    {WRITE_SECOND("RPOPLPUSH", 3)},
    {WRITE_SECOND("LMOVE", 5)},
    {WRITE_PROVED("SMOVE", 4, 2, 2, 1, PROOF_NOT_ZERO)},
    {WRITE_PROVED("BITOP", -4, 2, 2, 1, PROOF_NOT_ZERO)},

    /* of RedisBloom */
    {ABOUT_FILTER("BF.EXISTS", MEMBER, 3, 0)},
    {ABOUT_FILTER("BF.MEXISTS", MEMBER, -3, 0)},
    {ABOUT_FILTER("CF.EXISTS", MEMBER, 3, 0)},
    {ABOUT_FILTER("CF.MEXISTS", MEMBER, -3, 0)},
    {ABOUT_FILTER("CF.COUNT", MEMBER, 3, ITEMS_COUNTED)},
    {ABOUT_FILTER("BF.ADD", ADMIT, 3, 0)},
    {ABOUT_FILTER("BF.MADD", ADMIT, -3, 0)},
    {ABOUT_FILTER("BF.INSERT", ADMIT, -4, ITEMS_MARKED)},
    {ABOUT_FILTER("CF.ADD", ADMIT, 3, ITEMS_REPEATED)},
    {ABOUT_FILTER("CF.ADDNX", ADMIT, 3, 0)},
    {ABOUT_FILTER("CF.INSERT", ADMIT, -4, ITEMS_MARKED | ITEMS_REPEATED)},
    {ABOUT_FILTER("CF.INSERTNX", ADMIT, -4, ITEMS_MARKED | ITEMS_COUNTED)},
    {ABOUT_FILTER("BF.INFO", FILTER, -2, 0)},
    {ABOUT_FILTER("BF.CARD", FILTER, 2, 0)},
    {ABOUT_FILTER("CF.INFO", FILTER, 2, 0)},
    {ABOUT_FILTER("BF.RESERVE", FILTER, -4, 0)},
    {ABOUT_FILTER("CF.RESERVE", FILTER, -3, 0)},
    {ABOUT_FILTER("CF.DEL", FILTER, 3, 0)},
    {ABOUT_FILTER("CF.COMPACT", FILTER, 2, 0)},
    {ABOUT_FILTER("BF.DEBUG", FILTER, 2, 0)},
    {ABOUT_FILTER("CF.DEBUG", FILTER, 2, 0)},
    {ABOUT_FILTER("BF.SCANDUMP", FILTER, 3, 0)},
    {ABOUT_FILTER("CF.SCANDUMP", FILTER, 3, 0)},
    {ABOUT_FILTER("BF.LOADCHUNK", FILTER, 4, 0)},
    {ABOUT_FILTER("CF.LOADCHUNK", FILTER, 4, 0)},

    /* About the connection, which the guard has with the client, and not the cache. */
    {LOCAL("AUTH", -2)},
    {LOCAL("HELLO", -1)},
    {LOCAL("SELECT", 2)},
    {LOCAL("CLIENT", -2)},
    {LOCAL("QUIT", -1)},
    {LOCAL("RESET", 1)},

    /* They leave something behind on their connection, or keep it waiting. */
    {STATEFUL("MULTI", MULTI)},
    {STATEFUL("EXEC", EXEC)},
    {STATEFUL("DISCARD", EXEC)},
    {STATEFUL("WATCH", WATCH)},
    {STATEFUL("UNWATCH", UNWATCH)},
    {STATEFUL("SUBSCRIBE", SUBSCRIBE)},
    {STATEFUL("PSUBSCRIBE", SUBSCRIBE)},
    {STATEFUL("SSUBSCRIBE", SUBSCRIBE)},
    {STATEFUL("UNSUBSCRIBE", UNSUBSCRIBE)},
    {STATEFUL("PUNSUBSCRIBE", UNSUBSCRIBE)},
    {STATEFUL("SUNSUBSCRIBE", UNSUBSCRIBE)},
    {STATEFUL("BLPOP", BLOCK)},
    {STATEFUL("BRPOP", BLOCK)},
    {WAITING_WRITE_SECOND("BLMOVE", 6)},
    {WAITING_WRITE_SECOND("BRPOPLPUSH", 4)},
    {STATEFUL("BLMPOP", BLOCK)},
    {STATEFUL("BZPOPMIN", BLOCK)},
    {STATEFUL("BZPOPMAX", BLOCK)},
    {STATEFUL("BZMPOP", BLOCK)},
    {STATEFUL("WAIT", BLOCK)},
    {STATEFUL("WAITAOF", BLOCK)}, /* of Redis 7.2 */
    {STATEFUL("MONITOR", MONITOR)},
    {STATEFUL("SYNC", RELAY)},
    {STATEFUL("PSYNC", RELAY)},
    {STATEFUL("REPLCONF", ALTER)},
    /* Redis hangs up on these, which begin an HTTP request: not on a connection that others use. */
    {STATEFUL("POST", HANG_UP)},
    {STATEFUL("HOST:", HANG_UP)},

    /* What only takes away from a value (HDEL), or changes what is there (LPUSHX), makes no key
     * exist. */
    {PLAIN("ACL")},
    {PLAIN("BGREWRITEAOF")},
    {PLAIN("BGSAVE")},
    {PLAIN("BITFIELD_RO")},
    {PLAIN("BITPOS")},
    {PLAIN("COMMAND")},
    {PLAIN("CONFIG")},
    {PLAIN("DBSIZE")},
    {PLAIN("DEBUG")},
    {PLAIN_OF("ECHO", 2)},
    {PLAIN("EVALSHA_RO")},
    {PLAIN("EVAL_RO")},
    {PLAIN_QUIET("EXPIRE")},
    {PLAIN_QUIET("EXPIREAT")},
    {PLAIN("FAILOVER")},
    {PLAIN("FCALL_RO")},
    {PLAIN("FLUSHALL")},
    {PLAIN("FLUSHDB")},
    {PLAIN("GEOHASH")},
    {PLAIN("GEOPOS")},
    {PLAIN_QUIET("HDEL")},
    {PLAIN("HRANDFIELD")},
    {PLAIN("KEYS")},
    {PLAIN_OF("LASTSAVE", 1)},
    {PLAIN("LATENCY")},
    {PLAIN("LCS")},
    {PLAIN("LINSERT")},
    {PLAIN("LMPOP")},
    {PLAIN("LOLWUT")},
    {PLAIN("LPOP")},
    {PLAIN("LPOS")},
    {PLAIN("LPUSHX")},
    {PLAIN("LREM")},
    {PLAIN("LSET")},
    {PLAIN("LTRIM")},
    {PLAIN("MEMORY")},
    {PLAIN_QUIET("MIGRATE")},
    {PLAIN("MODULE")},
    {PLAIN_QUIET("MOVE")},
    {PLAIN("OBJECT")},
    {PLAIN_QUIET("PERSIST")},
    {PLAIN_QUIET("PEXPIRE")},
    {PLAIN_QUIET("PEXPIREAT")},
    {PLAIN("PFCOUNT")},
    {PLAIN("PFDEBUG")},
    {PLAIN("PFSELFTEST")},
    {PLAIN("PING")},
    {PLAIN_OF("PUBLISH", 3)},
    {PLAIN("PUBSUB")},
    {PLAIN("RANDOMKEY")},
    {PLAIN("REPLICAOF")},
    {PLAIN_OF("ROLE", 1)},
    {PLAIN("RPOP")},
    {PLAIN("RPUSHX")},
    {PLAIN("SAVE")},
    {PLAIN("SCAN")},
    {PLAIN("SDIFF")},
    {PLAIN("SHUTDOWN")},
    {PLAIN("SINTER")},
    {PLAIN("SINTERCARD")},
    {PLAIN("SLAVEOF")},
    {PLAIN("SLOWLOG")},
    {PLAIN("SMISMEMBER")},
    {PLAIN("SORT_RO")},
    {PLAIN("SPOP")},
    {PLAIN_QUIET("SPUBLISH")},
    {PLAIN("SRANDMEMBER")},
    {PLAIN("SREM")},
    {PLAIN("SUNION")},
    {PLAIN_OF("SWAPDB", 3)},
    {PLAIN_OF("TIME", 1)},
    {PLAIN_QUIET("TOUCH")},
    {PLAIN("XACK")},
    {PLAIN("XAUTOCLAIM")},
    {PLAIN("XCLAIM")},
    {PLAIN("XDEL")},
    {PLAIN("XINFO")},
    {PLAIN("XPENDING")},
    {PLAIN("XSETID")},
    {PLAIN("XTRIM")},
    {PLAIN("ZDIFF")},
    {PLAIN("ZINTER")},
    {PLAIN("ZINTERCARD")},
    {PLAIN("ZMPOP")},
    {PLAIN("ZMSCORE")},
    {PLAIN("ZPOPMAX")},
    {PLAIN("ZPOPMIN")},
    {PLAIN("ZRANDMEMBER")},
    {PLAIN("ZREM")},
    {PLAIN("ZREMRANGEBYLEX")},
    {PLAIN("ZREMRANGEBYRANK")},
    {PLAIN("ZREMRANGEBYSCORE")},
    {PLAIN("ZUNION")},
    /* of Redis 7.4 and 8 */
    {PLAIN("DIGEST")},
    {PLAIN("HEXPIRE")},
    {PLAIN("HEXPIREAT")},
    {PLAIN("HEXPIRETIME")},
    {PLAIN("HGETDEL")},
    {PLAIN("HGETEX")},
    {PLAIN("HPERSIST")},
    {PLAIN("HPEXPIRE")},
    {PLAIN("HPEXPIREAT")},
    {PLAIN("HPEXPIRETIME")},
    {PLAIN("HPTTL")},
    {PLAIN("HTTL")},
    {PLAIN("VCARD")},
    {PLAIN("VDIM")},
    {PLAIN("VEMB")},
    {PLAIN("VGETATTR")},
    {PLAIN("VINFO")},
    {PLAIN("VISMEMBER")},
    {PLAIN("VLINKS")},
    {PLAIN("VRANDMEMBER")},
    {PLAIN("VRANGE")},
    {PLAIN("VREM")},
    {PLAIN("VSETATTR")},
    {PLAIN("VSIM")},
    {PLAIN("XACKDEL")},
    {PLAIN("XCFGSET")},
    {PLAIN("XDELEX")},

    /* The effect is what they have where they are passed on (cluster_commands). */
    {MODE("INFO", -1, NONE)},
    {MODE("CLUSTER", -2, NONE)},
    {MODE("ASKING", 1, ALTER)},
    {MODE("READONLY", 1, ALTER)},
    {MODE("READWRITE", 1, ALTER)},

    /* See command_is_stateful(). */
    {DEPENDS("FUNCTION", ALTER)},
    {DEPENDS("SCRIPT", ALTER)},
    {DEPENDS("XREAD", BLOCK)},
    {DEPENDS("XREADGROUP", BLOCK)},
};

const size_t command_table_rows = sizeof command_table / sizeof *command_table;
_Static_assert(sizeof command_table / sizeof *command_table < COMMAND_NUMBERS,
               "a place for each, and one for the others");
