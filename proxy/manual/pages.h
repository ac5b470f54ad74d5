/* The manual, as man(7) reads it. */
#ifndef NESTGUARD_PAGES_H
#define NESTGUARD_PAGES_H

#include <stdio.h>

/* Each writes a whole page. Whether it could be written, `out` knows when it is flushed. */
void page_nestguard(FILE *out); /* nestguard(1) */
void page_settings(FILE *out);  /* nestguard.yaml(5) */
void page_ctl(FILE *out);       /* nestguard-ctl(1) */

#endif
