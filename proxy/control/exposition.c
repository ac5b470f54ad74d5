/* Format 0.0.4, as metrics() in admin.c announces it. A histogram is told as that format has it:
 * each bucket with all those below it, the last one (+Inf) with all, then their sum and their
 * number.
 */
#include "control/exposition.h"

void exposition_family(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_printf(out, "# HELP nestguard_%s %s\n# TYPE nestguard_%s %s\n", name, help, name, type);
}

void exposition_value(struct buffer *out, const char *text)
{
    buffer_printf(out, "\"");
    for (; *text; text++)
        if (*text == '\n')
            buffer_printf(out, "\\n");
        else
            buffer_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    buffer_printf(out, "\"");
}

/* Of the buckets each holds all those below it. */
void exposition_durations(struct buffer *out, const char *name, const char *labels,
                          const struct durations *durations)
{
    const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *end = *labels ? "}" : "";
    uint64_t below = 0;
    for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
        below += durations->buckets[i];
        buffer_printf(out, "nestguard_%s_bucket{%s%sle=\"%g\"} %llu\n", name, labels, comma,
                      histogram_bounds[i], (unsigned long long)below);
    }
    unsigned long long count = below + durations->buckets[HISTOGRAM_BOUNDS];
    buffer_printf(out, "nestguard_%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma, count);
    buffer_printf(out, "nestguard_%s_sum%s%s%s %.9f\n", name, open, labels, end,
                  durations_seconds(durations));
    buffer_printf(out, "nestguard_%s_count%s%s%s %llu\n", name, open, labels, end, count);
}
