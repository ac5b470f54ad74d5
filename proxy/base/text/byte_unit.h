/* Amounts of memory for people: 12.3 MiB. */
#ifndef NESTGUARD_BYTE_UNIT_H
#define NESTGUARD_BYTE_UNIT_H

/* So many bytes in the largest unit of which they are one or more, which is *unit: "B" to "PiB". */
double byte_unit(double bytes, const char **unit);

#endif
