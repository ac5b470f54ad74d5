/*   open ─ channel_close(), or the other's end ─▶ closing ─┬─ all is written ─▶ closed ─▶ freed
 *                                                          └─ none in CLOSING_MS ─▲
 *
 * Once it is closing no frame is told of, and none is taken to be sent; the memory stays until
 * libuv has let go of the pipe, so an event may close the channel that it came by.
 */
#include "handover/channel.h"

#include "base/buffer.h"
#include "base/container_of.h"
#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    HEAD = 5,            /* bytes: kind and length */
    READ = 64 * 1024,    /* bytes, that there is room for at least */
    FRAME_MAX = 1 << 30, /* nobody sends as much */
    CLOSING_MS = 5000    /* who reads no frame for so long keeps nobody from ending any more */
};

struct channel {
    uv_pipe_t pipe;
    uv_timer_t timer; /* for the end of closing */
    struct channel_events events;
    void *arg;
    struct buffer in; /* bytes of a frame that is not complete yet */
    unsigned writes;  /* under way */
    unsigned handles; /* that libuv has */
    bool closing, closed;
};

static void on_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;
    if (--channel->handles)
        return;
    buffer_finish(&channel->in);
    free(channel);
}

/* What was not written is lost. */
static void close_handles(struct channel *channel)
{
    if (channel->closed)
        return;
    channel->closed = true;
    uv_close((uv_handle_t *)&channel->pipe, on_closed);
    uv_close((uv_handle_t *)&channel->timer, on_closed);
}

/* The handles go when nothing is under way any more. */
static void close_when_sent(struct channel *channel)
{
    if (channel->closing && !channel->writes)
        close_handles(channel);
}

static void on_time(uv_timer_t *timer)
{
    close_handles(timer->data);
}

static void limit_closing(struct channel *channel)
{
    uv_timer_start(&channel->timer, on_time, CLOSING_MS, 0);
}

void channel_close(struct channel *channel)
{
    if (!channel || channel->closing)
        return;
    channel->closing = true;
    uv_read_stop((uv_stream_t *)&channel->pipe);
    limit_closing(channel);
    close_when_sent(channel);
}

/* The last event: the channel is closing already, and its owner may forget it. */
static void end(struct channel *channel)
{
    if (channel->closing)
        return;
    channel_close(channel);
    channel->events.ended(channel->arg);
}

/* ---- what comes ---- */

/* Takes the first frame, if it is complete. */
static bool take_frame(struct channel *channel)
{
    struct span all = buffer_span(&channel->in);
    uint32_t length;
    if (all.length < HEAD)
        return false;
    memcpy(&length, all.at + 1, sizeof length);
    if (length > FRAME_MAX) {
        end(channel);
        return false;
    }
    if (all.length < HEAD + (size_t)length)
        return false;
    channel->events.frame(channel->arg, (unsigned char)all.at[0],
                          (struct span){all.at + HEAD, length});
    buffer_take(&channel->in, HEAD + (size_t)length);
    return true;
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct channel *channel = handle->data;
    (void)suggested;
    *out = uv_buf_init(buffer_reserve(&channel->in, READ), READ);
}

/* An event may close the channel: its memory stays for as long as we are here. */
static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
    struct channel *channel = stream->data;
    (void)room;
    if (got < 0) {
        end(channel);
        return;
    }
    buffer_commit(&channel->in, (size_t)got);
    while (!channel->closing && take_frame(channel))
        ;
}

/* ---- what is sent ---- */

struct outgoing {
    uv_write_t write;
    char bytes[];
};

static void on_written(uv_write_t *write, int status)
{
    struct channel *channel = write->handle->data;
    (void)status; /* the reading end hears of it, too */
    free(container_of(write, struct outgoing, write));
    channel->writes--;
    if (channel->closing && !channel->closed)
        limit_closing(channel);
    close_when_sent(channel);
}

/* A frame has memory of its own, which libuv needs until all of it is written. */
void channel_send(struct channel *channel, int kind, struct span bytes)
{
    uint32_t length = (uint32_t)bytes.length;
    struct outgoing *out = xmalloc(sizeof *out + HEAD + bytes.length);
    out->bytes[0] = (char)kind;
    memcpy(out->bytes + 1, &length, sizeof length);
    if (length)
        memcpy(out->bytes + HEAD, bytes.at, bytes.length);
    uv_buf_t whole = uv_buf_init(out->bytes, (unsigned)(HEAD + bytes.length));
    if (channel->closing ||
        uv_write(&out->write, (uv_stream_t *)&channel->pipe, &whole, 1, on_written) < 0) {
        free(out);
        return;
    }
    channel->writes++;
}

size_t channel_unsent(const struct channel *channel)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&channel->pipe) +
           channel->writes * sizeof(struct outgoing);
}

/* Once the loop has the handle, what has failed is closed like any other, and freed by the loop. */
int channel_open(struct channel **out, uv_loop_t *loop, int fd, const struct channel_events *events,
                 void *arg)
{
    struct channel *channel = xcalloc(1, sizeof *channel);
    channel->events = *events;
    channel->arg = arg;
    channel->handles = 2;
    uv_pipe_init(loop, &channel->pipe, 0);
    uv_timer_init(loop, &channel->timer);
    channel->pipe.data = channel->timer.data = channel;
    int status = uv_pipe_open(&channel->pipe, fd);
    if (status < 0)
        close(fd);
    else
        status = uv_read_start((uv_stream_t *)&channel->pipe, give_room, on_read);
    if (status < 0)
        channel_close(channel);
    else
        *out = channel;
    return status;
}
