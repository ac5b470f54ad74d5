/* Prints the table of commands as one JSON array, for tests/e2e/test_command_table.py. */
#include "resp/command.h"

#include <stdio.h>

static const char *const kinds[] = {
    [COMMAND_FORWARD] = "forward", [COMMAND_GET] = "get",       [COMMAND_MGET] = "mget",
    [COMMAND_EXISTS] = "exists",   [COMMAND_READ] = "read",     [COMMAND_WRITE] = "write",
    [COMMAND_DELETE] = "delete",   [COMMAND_LOCAL] = "local",   [COMMAND_STATEFUL] = "stateful",
    [COMMAND_MODE] = "mode",       [COMMAND_MEMBER] = "member", [COMMAND_ADMIT] = "admit",
    [COMMAND_FILTER] = "filter"};

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        printf("\\u%04x", (unsigned char)*text);
    }
    putchar('"');
}

static void print_row(const struct command *row)
{
    printf("{\"name\": \"%s\", \"kind\": \"%s\", \"arity\": %d, \"keys\": [%d, %d, %d], "
           "\"absent\": [",
           row->name, kinds[row->kind], row->arity, row->first_key, row->last_key, row->key_step);
    print_text(row->absent[0] ? row->absent[0] : "");
    putchar(',');
    print_text(row->absent[1] ? row->absent[1] : "");
    printf("], \"hash\": %d}", (int)row->hash);
}

int main(void)
{
    for (size_t row = 0; row < command_table_rows; row++) {
        fputs(row ? ",\n" : "[", stdout);
        print_row(&command_table[row]);
    }
    puts("]");
    return 0;
}
