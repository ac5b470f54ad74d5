/* Temporary files that nobody else sees. */
#ifndef NESTGUARD_UNNAMED_FILE_H
#define NESTGUARD_UNNAMED_FILE_H

/* A new, empty file in $TMPDIR or /tmp, open for reading and writing. It has no name: whatever
 * becomes of the process, nothing stays behind. A descriptor, or a negative errno. */
int unnamed_file_create(void);

#endif
