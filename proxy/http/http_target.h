/* The target of an HTTP request (RFC 9112 §3.2), split at the '?' and percent-decoded by lengths,
 * so that a path or a value may hold any byte.
 */
#ifndef NESTGUARD_HTTP_TARGET_H
#define NESTGUARD_HTTP_TARGET_H

#include "base/span.h"

struct http_target {
    struct span path;  /* decoded, begins with '/'; a '+' stays a '+' */
    struct span query; /* decoded pairs: name NUL value NUL name NUL value NUL */
    char *own;         /* the bytes of both */
};

/* Reads "/path?query" or "http://authority/path?query". 0, or -EINVAL and a static *error: not a
 * path, a bad percent escape, a byte that must be escaped (controls and blanks), or %00 in the
 * query, whose values are C strings; or -ENOMEM. On failure nothing is to be freed. */
int http_target_parse(struct http_target *out, const char *text, const char **error);
void http_target_finish(struct http_target *target);

/* A target as it was sent, from its path on: without the authority that an absolute one has. */
const char *http_target_local(const char *text);

/* The value of the first pair called `name` ("" when it has no '='), or NULL; lives as long as the
 * target. */
const char *http_target_query(const struct http_target *target, const char *name);

/* A new string: `key` as one path segment, every byte escaped but letters, digits and "-_.~". */
char *http_target_escape(struct span key);

#endif
