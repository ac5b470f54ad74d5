/* What may flap is noted each time and told at a pace: between two lines any number of changes may
 * pass, and only how it is by then is worth one. So `text` is what is so now, and `is_news` says
 * that the log has not been told of it.
 */
#include "base/log/log_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void log_state_set(struct log_state *state, bool is_bad, const char *format, ...)
{
    char text[sizeof state->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (state->is_bad == is_bad && strcmp(state->text, text) == 0)
        return;
    memcpy(state->text, text, sizeof text);
    state->is_bad = is_bad;
    state->is_news = true;
}

/* True once for each piece of news: whoever asks writes the line. What the pace holds back stays
 * news, and is asked for again. */
bool log_state_may_tell(struct log_state *state, uint64_t now)
{
    if (!state->is_news || !log_pace_may(&state->pace, now, NULL))
        return false;
    state->is_news = false;
    return true;
}
