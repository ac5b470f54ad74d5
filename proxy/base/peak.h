/* Memory that was needed for a while: malloc() keeps what was freed for the next time, which may
 * never come. To give all of it back takes milliseconds, so that is done only when it is worth
 * them.
 */
#ifndef NESTGUARD_PEAK_H
#define NESTGUARD_PEAK_H

#include <stdbool.h>
#include <stddef.h>

/* Of what one thread has of one kind. Zeroed: it had nothing. */
struct peak {
    size_t bytes; /* the most since what was freed went back */
};

/* So much there is now. */
void peak_note(struct peak *peak, size_t bytes);

/* Likewise; whether what was freed is to go back now, by malloc_trim(). It counts from here on. */
bool peak_is_over(struct peak *peak, size_t bytes);

#endif
