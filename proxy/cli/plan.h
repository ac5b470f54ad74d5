/* `nestguard plan`: what each kind of filter would take and do, measured on this machine. */
#ifndef NESTGUARD_PLAN_H
#define NESTGUARD_PLAN_H

/* The word `plan` and those behind it. Returns the exit status: 0, 1 when it failed, 2 for wrong
 * usage. */
int plan_main(int argc, char **argv);

/* The textbook's table for Bloom filters: false-positive rates by bits a key (m/n) and hashes (k),
 * by the formula and measured. 0 or -ENOMEM. */
int plan_print_table(void);

#endif
