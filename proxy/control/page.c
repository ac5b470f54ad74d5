/* The page is page.html, which the build puts into the program (embed.cmake). Only the script and
 * the style that stand in it may run: they bear a word that nobody can know beforehand, so that
 * what the guard tells of strangers' names and keys could do nothing even if it became markup.
 */
#include "control/page.h"

#include "base/buffer.h"
#include "base/hex.h"
#include "base/log/log_kept.h"
#include "base/memory.h"
#include "http/json_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

extern const unsigned char page_html[]; /* made by the build; ends with a zero */

#define MARK "{nonce}"
enum { NONCE = 32 }; /* digits of it: 128 bits */

/* False: the system has no random bytes, and then no page is safe to send. */
static bool make_nonce(char nonce[NONCE + 1])
{
    unsigned char bytes[NONCE / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < NONCE; i++)
        nonce[i] = hex_digit_lower((unsigned)bytes[i / 2] >> (i % 2 ? 0 : 4));
    nonce[NONCE] = '\0';
    return true;
}

/* The page, with the word in the place of each mark. */
static struct buffer write_page(const char *nonce)
{
    struct buffer out = {0};
    const char *at = (const char *)page_html, *mark;
    while ((mark = strstr(at, MARK))) {
        buffer_append(&out, at, (size_t)(mark - at));
        buffer_append(&out, nonce, strlen(nonce));
        at = mark + strlen(MARK);
    }
    buffer_append(&out, at, strlen(at));
    return out;
}

void page_get(struct http_call *call, void *keeper)
{
    char nonce[NONCE + 1], policy[300];
    (void)keeper;
    if (!make_nonce(nonce)) {
        http_answer_error(call, 503, "there are no random bytes yet");
        return;
    }
    snprintf(policy, sizeof policy,
             "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; "
             "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             nonce, nonce);
    struct buffer page = write_page(nonce);
    http_answer_page(call, buffer_span(&page), policy);
    buffer_finish(&page);
}

/* ---- the log ---- */

/* The number after which lines are wanted; false: it is none, and the call is answered. */
static bool query_after(struct http_call *call, uint64_t *after)
{
    const char *text = http_call_query(call, "after");
    char *end;
    *after = 0;
    if (!text)
        return true;
    errno = 0;
    *after = strtoull(text, &end, 10);
    bool good = text[0] >= '0' && text[0] <= '9' && !*end && !errno;
    if (!good)
        http_answer_error(call, 400, "after=%.100s: not the number of a line", text);
    return good;
}

static json_t *line_json(const struct log_entry *line)
{
    return json_pack("{s:I, s:s, s:s, s:o}", "number", (json_int_t)line->number, "time", line->time,
                     "level", log_level_name(line->level), "message", json_text(line->text));
}

void page_get_log(struct http_call *call, void *keeper)
{
    uint64_t after, last;
    (void)keeper;
    if (!query_after(call, &after))
        return;
    struct log_entry *lines = xcalloc(LOG_KEPT, sizeof *lines);
    size_t count = log_kept(after, lines, &last);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, line_json(&lines[i]));
    free(lines);
    http_answer_json(call, 200, json_pack("{s:o, s:I}", "lines", list, "last", (json_int_t)last));
}
