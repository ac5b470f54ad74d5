/* `nestguard ctl`: a client of the control port. */
#ifndef NESTGUARD_CTL_H
#define NESTGUARD_CTL_H

/* Runs one command; argv[0] is the word "ctl". Answers go to standard output, whatever is wrong to
 * standard error. Reads NESTGUARD_TOKEN, NO_COLOR and TERM of the environment. Returns the exit
 * status: 0 done, 1 the guard refused or could not, 2 wrong usage. */
int ctl_main(int argc, char **argv);

#endif
