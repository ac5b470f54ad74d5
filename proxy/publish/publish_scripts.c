/* Each script looks first and writes then, so that none leaves a thing half done: whose name it is,
 * which generation, whether all bitmaps have their length. Readers, who ask in one
 * transaction, see all that a script does or nothing of it.
 */
#include "publish/publish_scripts.h"

/* What is random (the clock) may come before a write since effects are replicated, and not the
 * script: in Redis 4 that has to be asked for. */
#define BEGIN                                                                                      \
    "if redis.replicate_commands then redis.replicate_commands() end "                             \
    "local t = redis.call('TIME') "                                                                \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000) "                                           \
    "local held = redis.call('GET', KEYS[1]) "                                                     \
    "local owner = redis.call('HGET', KEYS[2], 'owner') "                                          \
    "local function say(word) return string.format('%.0f ', now) .. word end "

/* An absolute time: also when this comes late, it stands no longer than was meant. */
#define LEASE                                                                                      \
    "local function lease(value, deadline) "                                                       \
    "  if tonumber(deadline) > now then "                                                          \
    "    redis.call('SET', KEYS[1], value) redis.call('PEXPIREAT', KEYS[1], deadline) "            \
    "  elseif held then redis.call('DEL', KEYS[1]) end "                                           \
    "end "

const char publish_script_ask[] =
    BEGIN "local kind = redis.call('TYPE', KEYS[3]).ok "
          "if kind ~= 'none' and kind ~= 'string' then return say('taken') end "
          "if owner == ARGV[1] then "
          "  if held and ARGV[2] == 'drop' then redis.call('DEL', KEYS[1]) end "
          "  return say('free') "
          "end "
          "if held then return say('other') end "
          "return say(owner and 'lapsed' or 'free')";

const char publish_script_commit[] = BEGIN LEASE
    "local count, names = tonumber(ARGV[5]), tonumber(ARGV[6]) "
    "local word = 'kept' "
    "if held and owner ~= ARGV[1] then word = 'other' end "
    "for i = 1, count do "
    "  if redis.call('STRLEN', KEYS[3 + names + i]) ~= tonumber(ARGV[4]) then word = 'lost' end "
    "end "
    "if word ~= 'kept' then "
    "  for i = 1, names do redis.call('DEL', KEYS[3 + names + i]) end "
    "  return say(word) "
    "end "
    "for i = 1, names do "
    "  if i <= count then "
    "    redis.call('RENAME', KEYS[3 + names + i], KEYS[3 + i]) "
    "    redis.call('PERSIST', KEYS[3 + i]) "
    "  else redis.call('DEL', KEYS[3 + i]) end "
    "end "
    "if names > 1 then redis.call('SET', KEYS[3], count - 1) end "
    "redis.call('DEL', KEYS[2]) "
    "redis.call('HSET', KEYS[2], 'owner', ARGV[1]) "
    "redis.call('HSET', KEYS[2], 'generation', ARGV[2]) "
    "for i = 7, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end "
    "lease(ARGV[2], ARGV[3]) "
    "return say('kept')";

const char publish_script_renew[] =
    BEGIN LEASE "if owner ~= ARGV[1] then return say(held and 'other' or 'lost') end "
                "local whole = redis.call('HGET', KEYS[2], 'generation') == ARGV[2] "
                "for i = 3, #KEYS do "
                "  whole = whole and redis.call('STRLEN', KEYS[i]) >= tonumber(ARGV[4]) and "
                "    redis.call('GETBIT', KEYS[i], ARGV[5]) == 1 "
                "end "
                "if not whole then "
                "  if held then redis.call('DEL', KEYS[1]) end "
                "  return say('lost') "
                "end "
                "redis.call('HSET', KEYS[2], 'keys', ARGV[6]) "
                "lease(ARGV[2], ARGV[3]) "
                "return say('kept')";

const char publish_script_drop[] =
    BEGIN "if held and owner == ARGV[1] then redis.call('DEL', KEYS[1]) end "
          "return say('free')";

const char publish_script_remove[] = BEGIN "if owner == ARGV[1] then "
                                           "  for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end "
                                           "end "
                                           "return say('free')";

const char publish_script_grow[] =
    BEGIN "if owner ~= ARGV[1] or redis.call('HGET', KEYS[2], 'generation') ~= ARGV[2] then "
          "  return say('lost') "
          "end "
          "redis.call('DEL', KEYS[4]) "
          "redis.call('SETBIT', KEYS[4], ARGV[4], 1) "
          "redis.call('SET', KEYS[3], ARGV[5]) "
          "redis.call('HSET', KEYS[2], 'generation', ARGV[3]) "
          "if held then "
          "  local left = redis.call('PTTL', KEYS[1]) "
          "  if left > 0 then redis.call('SET', KEYS[1], ARGV[3], 'PX', left) "
          "  else redis.call('DEL', KEYS[1]) end "
          "end "
          "return say('kept')";
