/* Numbers with units, as people write them in settings. Each reader returns 0 and *out, or -EINVAL
 * and *error (static text that says what is allowed). */
#ifndef NESTGUARD_UNITS_H
#define NESTGUARD_UNITS_H

#include <stdint.h>

/* A whole number: "4". */
int units_count(const char *text, uint64_t *out, const char **error);

/* A time in milliseconds: a whole number and ms, s, m, h or d, as in "250ms"; "0" needs no unit. */
int units_duration(const char *text, uint64_t *out, const char **error);

/* A number of bytes: a whole number and b, kb, mb, gb or tb (each 1024 times the one before it, in
 * either case), as in "64kb". Without a unit it is bytes. */
int units_size(const char *text, uint64_t *out, const char **error);

/* A share: "10%", "0.1" or "1e-1". Not negative; there is no upper bound. */
int units_fraction(const char *text, double *out, const char **error);

#endif
