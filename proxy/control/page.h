/* What the control port has for people: a page that shows the guard in a browser, and the log's
 * last lines, which it shows too.
 */
#ifndef NESTGUARD_PAGE_H
#define NESTGUARD_PAGE_H

#include "http/http.h"

/* GET /: the page, the same for everybody. What it shows it asks for itself, with the token. */
void page_get(struct http_call *call, void *keeper);

/* GET /v1/log?after=NUMBER: the lines behind that number that are kept, the oldest first, each with
 * number, time, level and message; and `last`, the number to ask with next time. */
void page_get_log(struct http_call *call, void *keeper);

#endif
