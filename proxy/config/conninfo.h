/* Whether libpq can use a connection string, and splits it where whoever wrote it meant. */
#ifndef NESTGUARD_CONNINFO_H
#define NESTGUARD_CONNINFO_H

#include <stddef.h>

/* 0, or -EINVAL and the reason in `error`, cut at its size; it quotes nothing that may be part of a
 * password. */
int conninfo_check(const char *text, char *error, size_t size);

#endif
