/* A table of options, each with what takes its value. What is wrong is said in Redis' words, which
 * people and libraries know.
 */
#include "worker/command/clients/client_words.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>

enum { IDS_MOST = 16384 };

uint64_t client_words_id(struct span text)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || number > INT64_MAX / 10 - 9)
            return 0;
        number = number * 10 + (uint64_t)(text.at[i] - '0');
    }
    return number;
}

static bool refuse(struct buffer *out, const char *error)
{
    resp_write_error(out, "ERR %s", error);
    return false;
}

static bool take_type(struct client_filter *filter, struct span name, struct buffer *out)
{
    filter->type = client_type_of(name);
    if (filter->type == TYPE_ANY)
        resp_write_error(out, "ERR Unknown client type '%.*s'",
                         name.length < 100 ? (int)name.length : 100, name.at);
    return filter->type != TYPE_ANY;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* 0 is an id that nobody has. So many are looked through in a moment, and no more. */
static bool take_ids(struct client_filter *filter, const struct request *request,
                     struct buffer *out)
{
    size_t count = request->count - 3;
    if (count > IDS_MOST) {
        resp_write_error(out, "ERR too many client IDs: %d at most", IDS_MOST);
        return false;
    }
    filter->ids = xcalloc(count, sizeof *filter->ids);
    for (; filter->id_count < count; filter->id_count++) {
        struct span word = request->arguments[3 + filter->id_count];
        uint64_t id = client_words_id(word);
        if (!id && !span_is(word, "0"))
            return refuse(out, "Invalid client ID");
        filter->ids[filter->id_count] = id;
    }
    qsort(filter->ids, count, sizeof *filter->ids, compare_ids);
    return true;
}

bool client_words_list(struct client_filter *filter, const struct request *request,
                       struct buffer *out)
{
    const struct span *words = request->arguments;
    if (request->count == 2)
        return true;
    if (request->count == 4 && span_is_word(words[2], "TYPE"))
        return take_type(filter, words[3], out);
    if (request->count > 3 && span_is_word(words[2], "ID"))
        return take_ids(filter, request, out);
    return refuse(out, "syntax error");
}

/* ---- KILL: each of these takes a value ---- */

static bool take_id(struct client_filter *filter, struct span value, struct buffer *out)
{
    if (!client_words_id(value))
        return refuse(out, "client-id should be greater than 0");
    filter->ids = xrealloc(filter->ids, sizeof *filter->ids);
    filter->ids[0] = client_words_id(value);
    filter->id_count = 1;
    return true;
}

char *client_words_text(struct span text)
{
    if (!introduction_has_room(text))
        text.length = INTRODUCED_BYTES + 1;
    return xspandup(text);
}

static bool take_text(char **text, struct span value)
{
    free(*text);
    *text = client_words_text(value);
    return true;
}

static bool take_address(struct client_filter *filter, struct span value, struct buffer *out)
{
    (void)out;
    return take_text(&filter->address, value);
}

static bool take_local_address(struct client_filter *filter, struct span value, struct buffer *out)
{
    (void)out;
    return take_text(&filter->local_address, value);
}

static bool take_user(struct client_filter *filter, struct span value, struct buffer *out)
{
    (void)out;
    return take_text(&filter->user, value);
}

static bool take_age(struct client_filter *filter, struct span value, struct buffer *out)
{
    filter->least_age = client_words_id(value);
    return filter->least_age ? true : refuse(out, "maxage should be greater than 0");
}

static bool take_skip(struct client_filter *filter, struct span value, struct buffer *out)
{
    bool yes = span_is_word(value, "yes");
    if (!yes && !span_is_word(value, "no"))
        return refuse(out, "syntax error");
    if (!yes)
        filter->but = 0;
    return true;
}

static bool take_option(struct client_filter *filter, const struct span *words, struct buffer *out)
{
    static const struct {
        const char *name;
        bool (*take)(struct client_filter *, struct span, struct buffer *);
    } rows[] = {{"ID", take_id},     {"ADDR", take_address}, {"LADDR", take_local_address},
                {"USER", take_user}, {"TYPE", take_type},    {"SKIPME", take_skip},
                {"MAXAGE", take_age}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (span_is_word(words[0], rows[i].name))
            return rows[i].take(filter, words[1], out);
    return refuse(out, "syntax error");
}

/* Pairs of a name and a value: with CLIENT and KILL an even number of words. */
bool client_words_kill(struct client_filter *filter, const struct request *request,
                       struct buffer *out)
{
    if (request->count % 2)
        return refuse(out, "syntax error");
    for (size_t i = 2; i < request->count; i += 2)
        if (!take_option(filter, &request->arguments[i], out))
            return false;
    return true;
}

/* ---- TRACKING: a PREFIX may be of any name ---- */

size_t client_words_tracking(const struct request *request, struct pinned *pinned)
{
    struct pinned_tracking_words *asked = &pinned->tracking.asked;
    size_t redirect = 0;
    pinned->asked_redirect = 0;
    asked->broadcast = asked->opts_in = asked->opts_out = false;
    for (size_t i = 3; i < request->count; i++) {
        struct span word = request->arguments[i];
        bool has_value = i + 1 < request->count;
        asked->broadcast |= span_is_word(word, "BCAST");
        asked->opts_in |= span_is_word(word, "OPTIN");
        asked->opts_out |= span_is_word(word, "OPTOUT");
        if (has_value && span_is_word(word, "PREFIX")) {
            i++;
        } else if (has_value && span_is_word(word, "REDIRECT")) {
            pinned->asked_redirect = client_words_id(request->arguments[++i]);
            redirect = pinned->asked_redirect ? i : 0;
        }
    }
    return redirect;
}
