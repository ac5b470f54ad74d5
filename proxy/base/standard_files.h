/* Standard input, output and error: that they are there, and that what was printed has arrived. */
#ifndef NESTGUARD_STANDARD_FILES_H
#define NESTGUARD_STANDARD_FILES_H

/* The first call of every main(): whichever of the three was closed by the caller is there
 * afterwards, and fails when it is read from or written to. Else the first files that the program
 * opens would have their numbers: what is printed would go into them, and libuv aborts when it
 * closes one. */
void standard_files_open(void);

/* Whoever reads standard output has what was printed. 0 or a negative errno, which the next
 * function explains. */
int standard_output_flush(void);

/* The last call of every main(). Returns the exit status: `status`, or 1 after a complaint in the
 * name of `program` when standard output could not be written. */
int standard_files_end(const char *program, int status);

#endif
