/* Whatever the guard tells of its clients, a key, a name, goes through ctl_print_text(): strangers
 * chose it, and a terminal does what it is shown.
 */
#include "ctl/ctl_paper.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One that calls itself dumb has neither colours nor a cursor that moves: it is written to as a
 * file.
 */
bool ctl_is_terminal(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(kind && !strcmp(kind, "dumb"));
}

struct ctl_paper ctl_paper_of_stdout(void)
{
    const char *no_colour = getenv("NO_COLOR");
    return (struct ctl_paper){stdout, ctl_is_terminal() && !(no_colour && *no_colour)};
}

void ctl_print_text(const struct ctl_paper *paper, enum ctl_colour colour, const char *text,
                    int width)
{
    static const char *const begin[] = {[CTL_BOLD] = "\033[1m",
                                        [CTL_RED] = "\033[31m",
                                        [CTL_GREEN] = "\033[32m",
                                        [CTL_YELLOW] = "\033[33m"};
    bool paints = paper->colours && colour != CTL_PLAIN;
    int printed = 0;
    if (!text || !*text)
        text = "-";
    if (paints)
        fputs(begin[colour], paper->out);
    for (; *text; text++, printed++)
        fputc(isprint((unsigned char)*text) ? *text : '?', paper->out);
    if (paints)
        fputs("\033[0m", paper->out);
    fprintf(paper->out, "%*s", width > printed ? width - printed : 0, "");
}

/* Three figures, with a unit a thousand times the one before. Bounds are those of what is printed:
 * 999.6 would be a "1000", and 99.96 k a "100.0 k". */
static const char *scale(double number, const char *const units[5], char text[CTL_NUMBER_SIZE])
{
    size_t unit = 0;
    for (; number >= 999.5 && unit < 4; unit++)
        number /= 1000;
    int places = unit && number < 99.95 ? 1 : 0;
    snprintf(text, CTL_NUMBER_SIZE, "%.*f%s%s", places, number, *units[unit] ? " " : "",
             units[unit]);
    return text;
}

const char *ctl_s(double count)
{
    return count == 1 ? "" : "s";
}

const char *ctl_count(double count, char text[CTL_NUMBER_SIZE])
{
    static const char *const units[5] = {"", "k", "M", "G", "T"};
    return scale(count, units, text);
}

const char *ctl_bytes(double bytes, char text[CTL_NUMBER_SIZE])
{
    static const char *const units[5] = {"B", "kB", "MB", "GB", "TB"};
    return scale(bytes, units, text);
}

const char *ctl_seconds(double seconds, char text[CTL_NUMBER_SIZE])
{
    enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
    long whole = (long)seconds;
    if (seconds < 1)
        snprintf(text, CTL_NUMBER_SIZE, "%.0f ms", seconds * 1000);
    else if (whole < MINUTE)
        snprintf(text, CTL_NUMBER_SIZE, "%ld s", whole);
    else if (whole < HOUR)
        snprintf(text, CTL_NUMBER_SIZE, "%ld m %ld s", whole / MINUTE, whole % MINUTE);
    else if (whole < DAY)
        snprintf(text, CTL_NUMBER_SIZE, "%ld h %ld m", whole / HOUR, whole % HOUR / MINUTE);
    else
        snprintf(text, CTL_NUMBER_SIZE, "%ld d %ld h", whole / DAY, whole % DAY / HOUR);
    return text;
}
