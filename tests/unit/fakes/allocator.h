/* Memory that runs out: of the large allocations, whose size a peer has chosen, the one that the
 * test names fails. Small ones are the system's: without memory for those the guard aborts on
 * purpose.
 *
 * The linker leads what the program's objects ask of malloc(), mmap() and their kin here (--wrap),
 * not what libraries ask for themselves.
 */
#ifndef NESTGUARD_FAKES_ALLOCATOR_H
#define NESTGUARD_FAKES_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

/* From now on the nth allocation of at least so many bytes fails, counted from 1, and no other. 0:
 * none does any more. */
void allocator_fail(size_t bytes, unsigned nth);

/* Whether it came to that, since an nth was named. */
bool allocator_failed(void);

#endif
