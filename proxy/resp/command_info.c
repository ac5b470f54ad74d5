/* COMMAND INFO:  *1  *10  name arity [flags] first last step [categories] [tips] [specs] [subs]
 *                                          └── before 7.0 it ends behind one of these ──┘
 *
 * Where there are subcommands, each has positions of its own.
 */
#include "resp/command_info.h"

#include "resp/resp.h"
#include "resp/resp_number.h"

enum { FLAGS = 2, FIRST_KEY = 3, SUBCOMMANDS = 9, MOST_WORDS = 1 << 20 };

static bool has_flag(struct span flags, const char *name)
{
    const char *at, *end = flags.at + flags.length;
    int64_t count = resp_array_open(flags, &at);
    for (int64_t i = 0; i < count; i++) {
        struct span flag = resp_array_next(&at, end);
        if (flag.length > 3 && span_is((struct span){flag.at + 1, flag.length - 3}, name))
            return true;
    }
    return false;
}

/* False: it is no number, or none that a word can have. */
static bool read_first_key(struct span element, unsigned *key)
{
    int64_t number;
    const char *at = element.at + 1, *end = element.at + element.length;
    if (!element.length || element.at[0] != ':' ||
        resp_read_number(&at, end, &number) != RESP_DONE || number > MOST_WORDS)
        return false;
    *key = number > 0 ? (unsigned)number : 0;
    return true;
}

static bool read_known(struct span row, struct command_info *info)
{
    const char *at, *end = row.at + row.length;
    int64_t count = resp_array_open(row, &at), none;
    struct span flags = {"", 0}, first = flags, subcommands = flags;
    for (int64_t i = 0; i < count; i++) {
        struct span element = resp_array_next(&at, end);
        if (i == FLAGS)
            flags = element;
        else if (i == FIRST_KEY)
            first = element;
        else if (i == SUBCOMMANDS)
            subcommands = element;
    }
    none = subcommands.length ? resp_array_open(subcommands, &at) : 0;
    *info = (struct command_info){.is_known = true,
                                  .blocks = has_flag(flags, "blocking"),
                                  .hides_keys = has_flag(flags, "movablekeys") || none > 0};
    return flags.length && resp_array_open(flags, &at) >= 0 &&
           read_first_key(first, &info->first_key);
}

bool command_info_read(struct span reply, struct command_info *info)
{
    const char *at, *end = reply.at + reply.length;
    if (resp_array_open(reply, &at) != 1)
        return false;
    struct span row = resp_array_next(&at, end);
    if (span_is(row, "*-1\r\n") || span_is(row, "$-1\r\n") || span_is(row, "_\r\n")) {
        *info = (struct command_info){.is_known = false};
        return true;
    }
    return row.length && read_known(row, info);
}

/* In the words of all versions. Of an argument too few, or one that it cannot make sense of, the
 * cache says so by itself when it gets the command. */
static bool says_none(struct span reply)
{
    return span_starts(reply, "-ERR The command has no key arguments") ||
           span_starts(reply, "-ERR Invalid ");
}

bool command_first_key_read(struct span reply, struct span *key)
{
    const char *at;
    *key = (struct span){"", 0};
    if (says_none(reply))
        return true;
    int64_t count = resp_array_open(reply, &at);
    if (count > 0)
        *key = resp_bulk_text(resp_array_next(&at, reply.at + reply.length));
    return count >= 0;
}
