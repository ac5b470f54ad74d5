/* A terminal that shows one screen after another, and keys as they are pressed. One a process. */
#ifndef NESTGUARD_CTL_TERMINAL_H
#define NESTGUARD_CTL_TERMINAL_H

/* Takes standard input and output, and SIGTERM, SIGINT, SIGHUP and SIGWINCH. 0, or -ENOTTY when
 * either of the two is no terminal, or a dumb one: then nothing was taken. */
int ctl_terminal_open(void);

/* Gives them back as they were. */
void ctl_terminal_close(void);

/* As many lines of the text as fit, each cut to the width, and the hint in the last one. The text
 * is ASCII, with sequences that colour it. */
void ctl_terminal_show(const char *text, const char *hint);

/* Waits for a key, the time given in milliseconds at most. The key, CTL_TERMINAL_END when the
 * program is to end, or 0: it was nothing of this, or the size has changed. */
enum { CTL_TERMINAL_END = -1 };
int ctl_terminal_wait(int ms);

#endif
