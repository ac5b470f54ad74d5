/* What belongs to one name shares its beginning, so that a rule of the cache's ACL (~NAME*) covers
 * it. Names under which a bitmap is built hold the owner and the number of the attempt: no two
 * guards, and no two attempts of one, write to the same.
 */
#include "publish/publish_names.h"

#include "base/memory.h"

#include <stdlib.h>

void publish_names_init(struct publish_names *names, const struct publish *publish)
{
    const char *key = publish->key;
    *names = (struct publish_names){.count = publish->grow ? PUBLISH_LAYERS_MAX : 1};
    for (unsigned i = 0; i < names->count; i++)
        names->bitmap[i] = publish->grow ? xasprintf("%s-%u", key, i) : xstrdup(key);
    names->info = xasprintf("%s:info", key);
    names->lease = xasprintf("%s:lease", key);
    names->cursor = xasprintf("%s-cursor", key);
}

void publish_names_build(struct publish_names *names, const char *owner, uint64_t attempt)
{
    for (unsigned i = 0; i < names->count; i++) {
        free(names->building[i]);
        names->building[i] =
            xasprintf("%s:building:%s-%llu", names->bitmap[i], owner, (unsigned long long)attempt);
    }
}

void publish_names_finish(struct publish_names *names)
{
    for (unsigned i = 0; i < names->count; i++) {
        free(names->bitmap[i]);
        free(names->building[i]);
    }
    free(names->info);
    free(names->lease);
    free(names->cursor);
}
