/* Commands that are not all there, and those of so many arguments that reading them takes several
 * turns:
 *
 *   RESP_MORE ─▶ measured as it comes, some thousand arguments a turn ─▶ whole
 *                    ├─ of few arguments: read like any other
 *                    └─ of many: read some thousand a turn ─▶ served with a list of its own
 *
 * While it is in line for that its client is not read from, so its input stays where it is.
 */
#ifndef NESTGUARD_INCOMPLETE_H
#define NESTGUARD_INCOMPLETE_H

#include "worker/client/client.h"

enum { UPLOAD_BYTES = 1024 * 1024 }; /* a command that takes more may be passed on unfinished */

/* What the client may send. */
struct resp_limits incomplete_limits(const struct client *client);

/* A command that was not all there still is not, or it is not known yet: then nothing is parsed,
 * but where it has turned out to be so large that it may be passed on unfinished, or where by now
 * its name and a key may have come, without which that is not decided. */
bool incomplete_stays(struct client *client, const char *input, size_t length);

enum reading {
    READING_AT_ONCE, /* few arguments, no memory for them beside others', or over a limit by now */
    READING_ON,      /* the client is in line */
    READING_WHOLE    /* `command` says what was read to `arguments`, which are the caller's now */
};

/* Behind incomplete_stays(). */
enum reading incomplete_read(struct client *client, const char *input,
                             struct resp_arguments *arguments, struct resp_command *command);

/* What was read is for nobody. */
void incomplete_drop(struct client *client);

/* Bytes of memory for it. */
size_t incomplete_bytes(const struct client *client);

#endif
