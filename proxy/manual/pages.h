/* The manual, as man(7) reads it. */
#ifndef NESTGUARD_PAGES_H
#define NESTGUARD_PAGES_H

#include <stdio.h>

void page_nestguard(FILE *out); /* nestguard(1) */
void page_settings(FILE *out);  /* nestguard.yaml(5) */
void page_ctl(FILE *out);       /* nestguard-ctl(1) */

#endif
