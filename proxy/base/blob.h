/* A loaded value, shared by everybody who waited for it, on whatever thread. */
#ifndef NESTGUARD_BLOB_H
#define NESTGUARD_BLOB_H

#include "base/span.h"

struct blob;

/* One reference, or NULL: there is no memory for a value of that length. *bytes is where to write
 * the value, before anybody else gets the blob. */
struct blob *blob_create(size_t length, char **bytes);
/* One reference; the value's bytes are at `at`, and stay until release(owner), which may be called
 * on any thread. */
struct blob *blob_adopt(struct span value, void (*release)(void *owner), void *owner);
struct blob *blob_share(struct blob *blob); /* one reference more */
void blob_release(struct blob *blob);       /* NULL is allowed */
struct span blob_span(const struct blob *blob);

#endif
