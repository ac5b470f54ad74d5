#include "keeper/naming.h"

#include "base/clock.h"
#include "base/log/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 1000 }; /* a predecessor that ends has them for a moment longer */

static void tell_of_failure(struct naming *naming, int status)
{
    uint64_t now = clock_ms();
    if (!naming->since)
        naming->since = now;
    if (naming->told || now - naming->since < PATIENCE_MS)
        return;
    naming->told = true;
    log_warning("no successor can take over from this process: the name under which one would ask "
                "for the sockets cannot be had: %s%s; it is tried again",
                strerror(-status),
                status == -EADDRINUSE ? ", maybe by another guard of this file" : "");
}

static void on_readable(uv_poll_t *poll, int status, int what)
{
    struct naming *naming = poll->data;
    (void)status;
    (void)what;
    int channel = handover_accept(naming->listening[poll - naming->polls]);
    if (channel >= 0)
        naming->asked(naming->arg, channel);
}

/* Without a name there is no successor, and nothing else is lost: it is tried again. */
void naming_try(struct naming *naming)
{
    if (naming->count)
        return;
    int count = handover_listen(naming->file, naming->listening);
    if (count < 0) {
        tell_of_failure(naming, count);
        return;
    }
    if (naming->told)
        log_info("a successor can take over from this process from here on");
    naming->since = 0;
    naming->told = false;
    for (int i = naming->count = count; i--;) {
        uv_poll_init(naming->loop, &naming->polls[i], naming->listening[i]);
        naming->polls[i].data = naming;
        uv_poll_start(&naming->polls[i], UV_READABLE, on_readable);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct naming *naming = handle->data;
    close(naming->listening[(uv_poll_t *)handle - naming->polls]);
    naming->count--;
}

void naming_withdraw(struct naming *naming)
{
    for (int i = 0; i < naming->count; i++)
        if (!uv_is_closing((uv_handle_t *)&naming->polls[i]))
            uv_close((uv_handle_t *)&naming->polls[i], on_closed);
}
