/* A client's own connection that CLIENT TRACKING ... REDIRECT of others names: it is what the cache
 * tells, so it is kept while any of them does, whatever its client is at. These may be on other
 * workers: what they share is a count.
 */
#ifndef NESTGUARD_REDIRECTION_H
#define NESTGUARD_REDIRECTION_H

#include <stdbool.h>

struct redirection;

/* One more redirects to the connection whose redirection this is, on its client's worker; NULL: it
 * is the first. Returns what that one has to end. */
struct redirection *redirection_begin(struct redirection **own);

/* Whether anybody but the connection itself has it. Of NULL: no. */
bool redirection_is_used(const struct redirection *own);

/* Any thread: who has it has it no more. It is NULL then; and may be. */
void redirection_end(struct redirection **redirection);

/* `to` has what `from` had, in place of its own, and that nothing. */
void redirection_move(struct redirection **to, struct redirection **from);

#endif
