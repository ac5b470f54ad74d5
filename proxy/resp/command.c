/* From a command's name to its row: a name is three words of eight letters, upper-cased, so that
 * one multiplication hashes it and a few compares tell it from others. The table of cells is filled
 * before the first thread looks anything up, and from then on only read.
 */
#include "resp/command.h"

#include "filters/short_word.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

enum {
    NAME_WORDS = 3, /* the longest name has 20 bytes */
    NAME_ROOM = NAME_WORDS * 8,
    CELL_BITS = 10 /* four times the rows */
};

/* Of every name that the table does not have; see command.h for why it is no FORWARD. */
static const struct command stranger = {.name = "", .kind = COMMAND_STATEFUL};

const struct command command_unnamed_waiting = {
    .name = "", .kind = COMMAND_STATEFUL, .effect = EFFECT_BLOCK};

/* Upper case, and zeros behind its end. */
struct name {
    uint64_t words[NAME_WORDS];
    size_t length;
};

static struct cell {
    struct name name;
    const struct command *command; /* NULL: free */
} cells[1 << CELL_BITS];

static bool prepared;

/* All eight bytes at once. To the low seven bits of each is added what carries into the eighth when
 * they are at least 'a', and when they are above 'z'; bytes that have the eighth bit set themselves
 * are no letters. */
static inline uint64_t upper_case(uint64_t word)
{
    const uint64_t each = 0x0101010101010101, eighth = 0x80 * each;
    uint64_t low = word & ~eighth;
    uint64_t from_a = low + (0x80 - 'a') * each, above_z = low + (0x7f - 'z') * each;
    uint64_t lower = from_a & ~above_z & ~word & eighth;
    return word ^ lower >> 2; /* 0x80 >> 2 is what the two cases differ by */
}

/* Of more than a word, and fewer than NAME_ROOM bytes. */
__attribute__((noinline)) static struct name long_name_of(struct span text)
{
    struct name name = {.length = text.length};
    size_t word = 0;
    for (; text.length > 8; text.at += 8, text.length -= 8)
        name.words[word++] = upper_case(word_load(text.at));
    name.words[word] = upper_case(short_word_load(text.at, text.length));
    return name;
}

static inline struct name name_of(struct span text)
{
    if (text.length > 8)
        return long_name_of(text);
    return (struct name){{upper_case(short_word_load(text.at, text.length))}, text.length};
}

/* Multiplicative hashing (Knuth, volume 3, section 6.4). */
static inline size_t cell_of(const struct name *name)
{
    uint64_t mixed = name->words[0] ^ name->words[1] * 3 ^ name->words[2] * 5;
    return (size_t)(mixed * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CELL_BITS));
}

static inline bool is_same(const struct name *a, const struct name *b)
{
    return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->words[2] == b->words[2] &&
           a->length == b->length;
}

static inline size_t next_cell(size_t cell)
{
    return (cell + 1) % (1 << CELL_BITS);
}

/* Open addressing: the next free cell, around the end. A quarter full, it hardly ever goes far. */
static void fill_cells(void)
{
    for (size_t row = 0; row < command_table_rows; row++) {
        struct span text = span_of(command_table[row].name);
        assert(text.length < NAME_ROOM);
        struct name name = name_of(text);
        size_t cell = cell_of(&name);
        while (cells[cell].command) {
            cell = next_cell(cell);
        }
        cells[cell] = (struct cell){name, &command_table[row]};
    }
    prepared = true;
}

void commands_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_cells);
}

/* Every name ends here while the table is empty, and then a GET would pass unguarded. */
static const struct command *unknown(void)
{
    if (!prepared) {
        abort();
    }
    return &stranger;
}

const struct command *command_find(struct span text)
{
    if (text.length >= NAME_ROOM) {
        return unknown();
    }
    struct name name = name_of(text);
    for (size_t cell = cell_of(&name); cells[cell].command; cell = next_cell(cell)) {
        if (is_same(&cells[cell].name, &name)) {
            return cells[cell].command;
        }
    }
    return unknown();
}

/* XREAD and XREADGROUP: options, among them perhaps BLOCK, then STREAMS and names that may read
 * like options. */
static bool has_block_option(const struct span *arguments, size_t count)
{
    for (size_t i = 1; i < count && !span_is_word(arguments[i], "STREAMS"); i++) {
        if (span_is_word(arguments[i], "BLOCK")) {
            return true;
        }
        if (span_is_word(arguments[i], "COUNT")) {
            i += 1;
        } else if (span_is_word(arguments[i], "GROUP")) {
            i += 2;
        }
    }
    return false;
}

bool command_ends_script(const struct command *command, const struct span *arguments, size_t count)
{
    return count == 2 && span_is_word(arguments[1], "KILL") &&
           (strcmp(command->name, "SCRIPT") == 0 || strcmp(command->name, "FUNCTION") == 0);
}

bool command_words_errors(struct span name)
{
    static const char *const others[] = {"EVAL_RO", "EVALSHA_RO", "FCALL_RO"};
    const struct command *command = command_find(name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(command->name, others[i]))
            return true;
    return command->proof == PROOF_SCRIPT || command_is_unnamed(command);
}

/* Only rows that depend on their arguments are FORWARD in the table: SCRIPT, FUNCTION, XREAD,
 * XREADGROUP. */
bool command_is_stateful(const struct command *command, const struct span *arguments, size_t count)
{
    if (command->kind != COMMAND_FORWARD || command->effect == EFFECT_NONE) {
        return command->kind == COMMAND_STATEFUL;
    }
    if (command->effect == EFFECT_ALTER) {
        return command_ends_script(command, arguments, count) ||
               (count > 1 && span_is_word(arguments[1], "DEBUG"));
    }
    return has_block_option(arguments, count);
}

size_t command_number(const struct command *command)
{
    size_t offset = (size_t)((uintptr_t)command - (uintptr_t)command_table);
    size_t number = offset / sizeof *command;
    return number < command_table_rows ? number : command_table_rows;
}

bool command_arity_ok(const struct command *command, size_t count)
{
    if (command->arity < 0) {
        return count >= (size_t)-command->arity;
    }
    return command->arity == 0 || count == (size_t)command->arity;
}
