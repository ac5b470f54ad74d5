/* Whether a test has thought of every member of a struct: each byte that is not padding lies in one
 * that it names. So whoever adds a member is asked whether it is compared and copied, too. */
#ifndef NESTGUARD_TEST_MEMBERS_H
#define NESTGUARD_TEST_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct member {
    size_t offset, size;
};

/* An initializer. */
#define MEMBER(type, name)                                                                         \
    {                                                                                              \
        offsetof(type, name), sizeof(((type *)0)->name)                                            \
    }

/* Its bytes become 0xff but for the padding, which becomes 0. A compiler that cannot tell them
 * apart marks none. */
#if defined __has_builtin
#if __has_builtin(__builtin_clear_padding)
#define CLEAR_PADDING(object) __builtin_clear_padding(object)
#endif
#endif
#ifndef CLEAR_PADDING
#define CLEAR_PADDING(object) memset(object, 0, sizeof *(object))
#endif
#define MARK_MEMBERS(object)                                                                       \
    do {                                                                                           \
        memset(object, 0xff, sizeof *(object));                                                    \
        CLEAR_PADDING(object);                                                                     \
    } while (0)

/* The members' bytes are no longer marked. */
static inline void unmark(void *marked, const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memset((char *)marked + members[i].offset, 0, members[i].size);
}

/* The first byte that is marked; `size` when none is. */
static inline size_t first_marked(const void *marked, size_t size)
{
    const char *bytes = marked;
    size_t at = 0;
    while (at < size && !bytes[at])
        at++;
    return at;
}

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

#endif
