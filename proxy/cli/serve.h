/* `nestguard serve`: from the configuration file to a running guard. */
#ifndef NESTGUARD_SERVE_H
#define NESTGUARD_SERVE_H

/* Serves until it is told to end, or has handed over to a successor. Returns the exit status: 0, or
 * 1 when the file, a backend or a port is not as it must be, which has been told. */
int serve_main(const char *file);

#endif
