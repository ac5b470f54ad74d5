/* From a command's name to its row: one hash of the upper-cased name, one compare. The table of
 * slots is filled before main() begins, so that workers only ever read it.
 */
#include "command.h"

#include <assert.h>
#include <stdint.h>
#include <strings.h>

enum {
    NAME_ROOM = 24, /* the longest name has 20 bytes */
    SLOTS = 512     /* a power of two, four times the rows */
};

static const struct command forward = {.name = "", .kind = COMMAND_FORWARD};

static struct slot {
    const struct command *command; /* NULL: free */
    size_t length;                 /* of its name */
} slots[SLOTS];

/* FNV-1a (Fowler, Noll and Vo) over the upper-cased name, which is written to `upper`. */
static inline size_t upper_case_slot(struct span name, char upper[NAME_ROOM])
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < name.length; i++) {
        unsigned char letter = (unsigned char)name.at[i];
        if (letter >= 'a' && letter <= 'z') {
            letter ^= 'a' ^ 'A';
        }
        upper[i] = (char)letter;
        hash = (hash ^ letter) * 16777619U;
    }
    return (hash ^ hash >> 16) % SLOTS;
}

/* Open addressing: the next free slot, around the end. A quarter full, it hardly ever goes far. */
__attribute__((constructor)) static void fill_slots(void)
{
    for (size_t row = 0; row < command_table_rows; row++) {
        char upper[NAME_ROOM];
        struct span name = span_of(command_table[row].name);
        assert(name.length < NAME_ROOM);
        size_t slot = upper_case_slot(name, upper);
        while (slots[slot].command) {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = (struct slot){&command_table[row], name.length};
    }
}

const struct command *command_find(struct span name)
{
    char upper[NAME_ROOM];
    if (name.length >= NAME_ROOM) {
        return &forward;
    }
    size_t slot = upper_case_slot(name, upper);
    for (; slots[slot].command; slot = (slot + 1) % SLOTS) {
        if (slots[slot].length == name.length &&
            memcmp(slots[slot].command->name, upper, name.length) == 0) {
            return slots[slot].command;
        }
    }
    return &forward;
}

static bool is_word(struct span argument, const char *word)
{
    return argument.length == strlen(word) && strncasecmp(argument.at, word, argument.length) == 0;
}

/* XREAD and XREADGROUP: options, among them perhaps BLOCK, then STREAMS and names that may read
 * like options. */
static bool has_block_option(const struct span *arguments, size_t count)
{
    for (size_t i = 1; i < count && !is_word(arguments[i], "STREAMS"); i++) {
        if (is_word(arguments[i], "BLOCK")) {
            return true;
        }
        if (is_word(arguments[i], "COUNT")) {
            i += 1;
        } else if (is_word(arguments[i], "GROUP")) {
            i += 2;
        }
    }
    return false;
}

/* Only rows that depend on their arguments are FORWARD in the table: SCRIPT, XREAD, XREADGROUP. */
bool command_is_stateful(const struct command *command, const struct span *arguments, size_t count)
{
    if (command->kind != COMMAND_FORWARD || command == &forward) {
        return command->kind == COMMAND_STATEFUL;
    }
    if (strcmp(command->name, "SCRIPT") == 0) {
        return count > 1 && is_word(arguments[1], "DEBUG");
    }
    return has_block_option(arguments, count);
}

bool command_arity_ok(const struct command *command, size_t count)
{
    if (command->arity < 0) {
        return count >= (size_t)-command->arity;
    }
    return command->arity == 0 || count == (size_t)command->arity;
}
