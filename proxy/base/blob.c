/* The bytes are written once, by whoever creates the blob, before anybody else has it: only the
 * count of references is ever changed by several threads.
 */
#include "base/blob.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

struct blob {
    atomic_uint references;
    size_t length;
    char bytes[];
};

struct blob *blob_create(size_t length, char **bytes)
{
    struct blob *blob = malloc(sizeof *blob + length);
    if (!blob)
        return NULL;
    atomic_init(&blob->references, 1);
    blob->length = length;
    *bytes = blob->bytes;
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
    if (blob && atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) == 1)
        free(blob);
}

struct span blob_span(const struct blob *blob)
{
    return (struct span){blob->bytes, blob->length};
}
