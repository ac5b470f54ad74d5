/* PUT /v1/keyspaces/{name}/keys: all keys of a keyspace with `source: push`, a line each. */
#ifndef NESTGUARD_CONTROL_PUSH_H
#define NESTGUARD_CONTROL_PUSH_H

#include "http/http.h"

/* Answered when the keys are in force, or are not; the argument is the keeper.
 *
 *   keyspace     its name
 *   lines, keys  how many; keys: those that the filter can tell apart
 *   duplicates   the rest of the lines
 *   generation   the keyspace's source_generation in the status from now on
 *
 * 400: it is no list of such keys, and which line is not; 404: there is no such keyspace; 409: it
 * has another source, or a list of its is being sent, or so many keys are missing that it may be a
 * part of one; 413: max_filter_memory; 503: no place for the list, or the guard is ending. Then
 * nothing was changed. What is known before the list has come is answered before it. */
void push_keys(struct http_call *call, void *arg);
extern const struct http_upload push_upload;

#endif
