/* What `nestguard ctl` prints for people is written on: where to, and whether in colours; and how
 * numbers, times and other people's texts look there.
 */
#ifndef NESTGUARD_CTL_PAPER_H
#define NESTGUARD_CTL_PAPER_H

#include <stdbool.h>
#include <stdio.h>

struct ctl_paper {
    FILE *out;    /* whoever made it closes it */
    bool colours; /* ANSI sequences around coloured texts */
};

enum ctl_colour { CTL_PLAIN, CTL_BOLD, CTL_RED, CTL_GREEN, CTL_YELLOW };

/* Standard output: in colours on a terminal, unless NO_COLOR says otherwise (no-color.org). */
struct ctl_paper ctl_paper_of_stdout(void);
bool ctl_is_terminal(void); /* standard output is one */

/* The text in a field of at least `width`; what is not printable ASCII is a '?', so that it does
 * nothing to a terminal. NULL and "" are a '-'. */
void ctl_print_text(const struct ctl_paper *paper, enum ctl_colour colour, const char *text,
                    int width);

/* "s", or "" behind a 1: for the plural. */
const char *ctl_s(double count);

/* Texts of at most eleven characters, of what is not negative. Each is written to `text`, which is
 * returned, so that the call can stand among printf()'s arguments. */
enum { CTL_NUMBER_SIZE = 24 };
const char *ctl_count(double count, char text[CTL_NUMBER_SIZE]);     /* "812", "12.3 k", "1.2 M" */
const char *ctl_bytes(double bytes, char text[CTL_NUMBER_SIZE]);     /* "812 B", "1.2 MB" */
const char *ctl_seconds(double seconds, char text[CTL_NUMBER_SIZE]); /* "12 ms", "3 h 12 m" */

#endif
