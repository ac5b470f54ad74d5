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

bool log_state_may_tell(struct log_state *state, uint64_t now)
{
    if (!state->is_news || !log_pace_may(&state->pace, now, NULL))
        return false;
    state->is_news = false;
    return true;
}
