/* In doubt a key goes: it costs a load that is not kept, and at most a value that is loaded again.
 * So a time that is over within a second is taken for one that is over, for the cache's clock is
 * another; and no option is looked at that may keep EXPIRE from having an effect.
 */
#include "worker/command/keys/vanishing.h"

#include <string.h>
#include <time.h>

enum { CLOCKS_MS = 1000, DAY_MS = 24 * 60 * 60 * 1000 };

static bool is_named(const struct request *request, const char *name)
{
    return strcmp(request->command->name, name) == 0;
}

/* What is no number, or too great, the cache refuses. */
static bool read_time(struct span text, int64_t *time)
{
    int64_t sign = text.length && text.at[0] == '-' ? -1 : 1, value = 0;
    size_t i = sign < 0;
    if (text.length == i || text.length > 18)
        return false;
    for (; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        value = value * 10 + (text.at[i] - '0');
    }
    *time = sign * value;
    return true;
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Of a point in time, in units of so many ms. */
static bool is_over(struct span text, int64_t unit)
{
    int64_t at;
    return read_time(text, &at) && at <= (wall_ms() + CLOCKS_MS) / unit;
}

bool vanishing_is_long_over(struct span text, int64_t unit)
{
    int64_t at;
    return read_time(text, &at) && at > 0 && at <= (wall_ms() - DAY_MS) / unit;
}

static bool is_no_span(struct span text)
{
    int64_t span;
    return read_time(text, &span) && span <= 0;
}

static bool expires_now(const struct request *request)
{
    if (request->count < 3)
        return false;
    struct span time = request->arguments[2];
    return ((is_named(request, "EXPIRE") || is_named(request, "PEXPIRE")) && is_no_span(time)) ||
           (is_named(request, "EXPIREAT") && is_over(time, 1000)) ||
           (is_named(request, "PEXPIREAT") && is_over(time, 1));
}

static bool getex_expires(const struct request *request)
{
    if (request->count != 4 || !is_named(request, "GETEX"))
        return false;
    struct span option = request->arguments[2], time = request->arguments[3];
    return (span_is_word(option, "EXAT") && is_over(time, 1000)) ||
           (span_is_word(option, "PXAT") && is_over(time, 1));
}

/* MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password] [AUTH2 user password]
 * [KEYS key ...] */
static struct write_keys migrated_keys(const struct request *request)
{
    struct write_keys keys = {3, 4};
    if (request->count < 6)
        return (struct write_keys){0, 0};
    for (size_t i = 6; i < request->count; i++) {
        struct span word = request->arguments[i];
        if (span_is_word(word, "COPY"))
            return (struct write_keys){0, 0};
        if (span_is_word(word, "KEYS"))
            return (struct write_keys){i + 1, request->count};
        i += span_is_word(word, "AUTH") ? 1 : span_is_word(word, "AUTH2") ? 2 : 0;
    }
    return keys;
}

/* By the first letter, for most commands are none of these. */
struct write_keys vanishing_keys(const struct request *request)
{
    char letter = request->command->name[0];
    struct write_keys first = {1, 2}, none = {0, 0};
    if (letter == 'E' || letter == 'P')
        return expires_now(request) ? first : none;
    if (letter == 'G')
        return getex_expires(request) ? first : none;
    if (letter == 'M' && is_named(request, "MOVE"))
        return request->count == 3 ? first : none;
    if (letter == 'M' && is_named(request, "MIGRATE"))
        return migrated_keys(request);
    return none;
}

static bool is_same(struct span key, struct span name)
{
    return key.length == name.length && memcmp(key.at, name.at, key.length) == 0;
}

size_t vanishing_source(const struct request *request)
{
    bool renames = is_named(request, "RENAME") || is_named(request, "RENAMENX");
    return renames && request->count == 3 && !is_same(request->arguments[1], request->arguments[2]);
}

bool vanishing_has_all(const struct request *request)
{
    char letter = request->command->name[0];
    return (letter == 'F' && (is_named(request, "FLUSHALL") || is_named(request, "FLUSHDB"))) ||
           (letter == 'S' && is_named(request, "SWAPDB"));
}
