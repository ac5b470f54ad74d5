/* The terminal has two screens (xterm's private mode 1049): ours lies over the shell's, which comes
 * back as it was. Keys come one by one and are not echoed; ISIG is off, so that ^C is a key, too,
 * and the way back is the same for all. A signal only notes that it came: it ends the poll(), and
 * ctl_terminal_wait() looks.
 */
#include "ctl/ctl_terminal.h"

#include "ctl/ctl_paper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* A size that the terminal does not tell is taken for the usual one. */
enum { CONTROL_C = 3, SOME_ROWS = 24, SOME_COLUMNS = 80 };

static struct termios before; /* how standard input was set */
static volatile sig_atomic_t ends;

/* Another size is no end, only something to wake up for. */
static void on_signal(int number)
{
    ends = ends || number != SIGWINCH;
}

/* poll() returns on each of them. */
static void listen_to_signals(void)
{
    static const int numbers[] = {SIGWINCH, SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

int ctl_terminal_open(void)
{
    if (!ctl_is_terminal() || tcgetattr(STDIN_FILENO, &before) != 0)
        return -ENOTTY;
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    ends = 0;
    listen_to_signals();
    fputs("\033[?1049h\033[?25l", stdout); /* a screen beside the one with the shell; no cursor */
    fflush(stdout);
    return 0;
}

void ctl_terminal_close(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* Sequences take no room. Returns where the line ends. */
static const char *show_line(const char *text, int columns)
{
    int column = 0;
    bool in_sequence = false;
    for (; *text && *text != '\n'; text++) {
        if (*text == '\033')
            in_sequence = true;
        if (in_sequence || column < columns)
            putchar(*text);
        column += !in_sequence;
        if (*text == 'm')
            in_sequence = false;
    }
    fputs("\033[K\r\n", stdout);
    return *text ? text + 1 : text;
}

void ctl_terminal_show(const char *text, const char *hint)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
    int rows = known ? size.ws_row : SOME_ROWS, columns = known ? size.ws_col : SOME_COLUMNS;
    fputs("\033[H", stdout);
    for (int row = 0; *text && row < rows - 1; row++)
        text = show_line(text, columns);
    printf("\033[J\033[%d;1H%.*s", rows, columns - 1, hint);
    fflush(stdout);
}

int ctl_terminal_wait(int ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = 0;
    int ready = ends ? 0 : poll(&input, 1, ms);
    if (ends || (ready > 0 && read(STDIN_FILENO, &key, 1) != 1))
        return CTL_TERMINAL_END;
    return key == CONTROL_C ? CTL_TERMINAL_END : key;
}
