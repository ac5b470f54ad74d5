/* Inline commands, as people type them into telnet: arguments between blanks, "quoted \x41\n" or
 * 'quoted'. The rules are those of Redis (sds.c, sdssplitargs), oddities included. An argument is
 * never longer than its quoted form, so it is written over it.
 */
#include "resp/resp_internal.h"

#include "base/hex.h"

#include <ctype.h>

struct splitter {
    const char *at, *end; /* what is still to be read */
    char *out;            /* where the argument's next byte goes; never past `at` */
};

static bool is_space(char byte)
{
    return isspace((unsigned char)byte);
}

/* Fewer bytes end an unquoted argument than may stand between two. */
static bool ends_argument(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* The byte that a letter behind a backslash stands for: itself, if none of these. */
static char escaped(char letter)
{
    switch (letter) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return letter;
    }
}

static bool at_hex_escape(const struct splitter *splitter)
{
    const char *at = splitter->at;
    return splitter->end - at >= 4 && at[1] == 'x' && hex_byte(at + 2) >= 0;
}

/* At a backslash between double quotes, and a byte follows it. */
static void unescape(struct splitter *splitter)
{
    if (at_hex_escape(splitter)) {
        *splitter->out++ = (char)hex_byte(splitter->at + 2);
        splitter->at += 4;
    } else {
        *splitter->out++ = escaped(splitter->at[1]);
        splitter->at += 2;
    }
}

/* At an opening quote. False: it is not closed, or something other than a blank follows. */
static bool unquote(struct splitter *splitter)
{
    char quote = *splitter->at++;
    while (splitter->at < splitter->end) {
        char byte = *splitter->at;
        bool pair = byte == '\\' && splitter->end - splitter->at > 1;
        if (pair && quote == '"') {
            unescape(splitter);
        } else if (pair && splitter->at[1] == '\'') {
            *splitter->out++ = '\'';
            splitter->at += 2;
        } else if (byte == quote) {
            splitter->at++;
            return splitter->at == splitter->end || is_space(*splitter->at);
        } else {
            *splitter->out++ = byte;
            splitter->at++;
        }
    }
    return false;
}

/* A quote may open in the middle of an argument; where it closes, the argument ends. */
static bool split_argument(struct splitter *splitter)
{
    while (splitter->at < splitter->end && !ends_argument(*splitter->at)) {
        if (*splitter->at == '"' || *splitter->at == '\'') {
            return unquote(splitter);
        }
        *splitter->out++ = *splitter->at++;
    }
    return true;
}

const char *resp_split_inline(char *line, size_t length, const struct resp_limits *limits,
                              struct resp_arguments *arguments)
{
    size_t first = arguments->count;
    struct splitter splitter = {line, line + length, line};
    for (;;) {
        while (splitter.at < splitter.end && is_space(*splitter.at)) {
            splitter.at++;
        }
        if (splitter.at == splitter.end) {
            return NULL;
        }
        char *start = line + (splitter.at - line);
        splitter.out = start;
        if (!split_argument(&splitter)) {
            return "unbalanced quotes in request";
        }
        size_t taken = (size_t)(splitter.out - start);
        if (taken > limits->max_bulk) {
            return "invalid bulk length";
        }
        /* As at Redis, who has not authenticated has a line full of them, which bounds them. */
        if (arguments->count - first == limits->max_arguments && !limits->later_bulk) {
            return "more arguments than max_arguments";
        }
        if (!resp_arguments_push(arguments, start, taken)) {
            return "out of memory";
        }
    }
}
