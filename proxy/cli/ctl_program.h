/* `nestguard ctl` is a program of its own, nestguard-ctl: it needs an HTTP client, which brings
 * twenty libraries that the server shall not have in its address space.
 */
#ifndef NESTGUARD_CTL_PROGRAM_H
#define NESTGUARD_CTL_PROGRAM_H

/* Becomes nestguard-ctl: the one beside this program, else the one on PATH. argv[0] is the word
 * "ctl", and argv ends with NULL. Returns only when there is none: the exit status, after a
 * message. */
int ctl_program_run(int argc, char **argv);

#endif
