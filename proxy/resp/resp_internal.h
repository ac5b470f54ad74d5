/* What the parts of the protocol's implementation share: resp_command.c, resp_inline.c (their
 * quoted form), resp_frame.c (replies), resp_write.c. */
#ifndef NESTGUARD_RESP_INTERNAL_H
#define NESTGUARD_RESP_INTERNAL_H

#include "resp/resp.h"

/* Appends one argument. The list grows by what was really read: a header that announces a million
 * arguments costs its sender as many before it costs us the memory. */
bool resp_arguments_push(struct resp_arguments *arguments, const char *at, size_t length);

/* Splits an inline command into arguments as Redis does and unquotes them in place. Returns NULL,
 * or what is wrong with the line. */
const char *resp_split_inline(char *line, size_t length, const struct resp_limits *limits,
                              struct resp_arguments *arguments);

#endif
