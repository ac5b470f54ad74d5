/* `nestguard plan`: what filters take and do, by the formulas and measured on this machine. */
#ifndef NESTGUARD_PLAN_H
#define NESTGUARD_PLAN_H

/* The word `plan` and those behind it. Returns the exit status: 0, 1 when it failed, 2 for wrong
 * usage. */
int plan_main(int argc, char **argv);

#endif
