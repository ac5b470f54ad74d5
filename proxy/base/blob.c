/* The bytes are written once, by whoever creates the blob, before anybody else has it: only the
 * count of references is ever changed by several threads.
 */
#include "base/blob.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

struct blob {
    atomic_uint references;
    struct span value;
    void (*release)(void *owner); /* NULL: the value is behind this */
    void *owner;
    char bytes[];
};

struct blob *blob_create(size_t length, char **bytes)
{
    struct blob *blob = malloc(sizeof *blob + length);
    if (!blob)
        return NULL;
    atomic_init(&blob->references, 1);
    blob->value = (struct span){blob->bytes, length};
    blob->release = NULL;
    *bytes = blob->bytes;
    return blob;
}

struct blob *blob_adopt(struct span value, void (*release)(void *owner), void *owner)
{
    struct blob *blob = xmalloc(sizeof *blob);
    atomic_init(&blob->references, 1);
    blob->value = value;
    blob->release = release;
    blob->owner = owner;
    return blob;
}

struct blob *blob_share(struct blob *blob)
{
    atomic_fetch_add_explicit(&blob->references, 1, memory_order_relaxed);
    return blob;
}

/* Release and acquire: whoever frees must come after everybody else's last look. */
void blob_release(struct blob *blob)
{
    if (!blob || atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) != 1)
        return;
    if (blob->release)
        blob->release(blob->owner);
    free(blob);
}

struct span blob_span(const struct blob *blob)
{
    return blob->value;
}
