/* Servers that are not there, in words for the log: as many as there is room for, by address, role
 * and reason, and how many more.
 */
#ifndef NESTGUARD_OUTAGE_H
#define NESTGUARD_OUTAGE_H

#include <stddef.h>

/* Zeroed: there is none. */
struct outage {
    char text[480];
    size_t length; /* of what is written */
    size_t named, count;
};

/* `role` may be NULL: it goes without saying, or is not known. */
void outage_add(struct outage *outage, const char *address, const char *role, const char *why);

/* "10.0.0.1:6379 (primary): connection refused; 10.0.0.2:6379 (primary): timed out; and 3 more".
 * Lives as long as the outage, to which nothing is added any more. */
const char *outage_text(struct outage *outage);

#endif
