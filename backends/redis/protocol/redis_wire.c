/* Two buffers take turns: one gathers what is appended, the other is libuv's until it is written.
 * So all commands of a turn of the loop leave in one write, at most one is under way, and their
 * order is that of the calls.
 */
#include "redis/protocol/redis_wire.h"
#include "net/allocate.h"

#include <hiredis.h>

enum { READ_BYTES = 64 * 1024, KEEP_BYTES = 256 * 1024 };

/* The owner closes it, maybe from within. */
static void tell_broken(struct redis_wire *wire, const char *why, bool is_protocol)
{
    stream_read_stop(&wire->stream);
    wire->broken(wire->arg, why, is_protocol);
}

/* ---- replies ---- */

/* Whoever gets a reply may close the wire: then no more are read, and the reader goes with the
 * handle, so that it is still there when the call returns. */
static void read_replies(struct redis_wire *wire)
{
    void *reply = NULL;
    while (wire->open) {
        if (redisReaderGetReply(wire->reader, &reply) != REDIS_OK) {
            tell_broken(wire, wire->reader->errstr, true);
            return;
        }
        if (!reply)
            return;
        wire->gathered = 0;
        wire->reply(wire->arg, reply);
        freeReplyObject(reply);
    }
}

/* The bytes are copied by the reader at once, so all wires of a thread share the room. */
static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    static _Thread_local char scratch[READ_BYTES];
    (void)handle;
    (void)wanted;
    *room = uv_buf_init(scratch, sizeof scratch);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct redis_wire *wire = stream->data;
    if (count < 0) {
        tell_broken(wire,
                    count == UV_EOF ? "the server closed the connection" : uv_strerror((int)count),
                    false);
        return;
    }
    wire->gathered += (size_t)count;
    if (redisReaderFeed(wire->reader, room->base, (size_t)count) == REDIS_OK)
        read_replies(wire);
    else /* some of what came is lost: the rest would be taken for other commands' replies */
        tell_broken(wire, wire->reader->errstr, true);
    if (wire->open && wire->most && wire->gathered > wire->most)
        tell_broken(wire, "an answer is far too long", true);
}

/* ---- commands ---- */

void wire_append(struct redis_wire *wire, const char *bytes, size_t length)
{
    struct wire_bytes *out = &wire->out;
    if (out->size - out->length < length) {
        out->size = 2 * (out->length + length);
        out->at = allocated(realloc(out->at, out->size));
    }
    memcpy(out->at + out->length, bytes, length);
    out->length += length;
}

/* What one large value needed is given back. */
static void empty(struct wire_bytes *bytes)
{
    bytes->length = 0;
    if (bytes->size <= KEEP_BYTES)
        return;
    free(bytes->at);
    *bytes = (struct wire_bytes){0};
}

static void on_written(uv_write_t *write, int status)
{
    struct redis_wire *wire = write->data;
    wire->writing = false;
    empty(&wire->sending);
    if (!wire->open)
        return;
    if (status < 0)
        tell_broken(wire, uv_strerror(status), false);
    else
        wire_flush(wire);
}

/* What libuv has been given must not move until it is written: the two change places. */
void wire_flush(struct redis_wire *wire)
{
    struct wire_bytes free = wire->sending;
    if (!wire->open || wire->writing || !wire->out.length)
        return;
    wire->sending = wire->out;
    wire->out = free;
    wire->write.data = wire;
    wire->writing = true;
    int status = stream_write(&wire->stream, &wire->write, wire->sending.at, wire->sending.length,
                              on_written);
    if (status == 0)
        return;
    wire->writing = false;
    empty(&wire->sending);
    tell_broken(wire, uv_strerror(status), false);
}

/* ---- life ---- */

void wire_open(struct redis_wire *wire)
{
    wire->reader = allocated(redisReaderCreate());
    wire->gathered = 0;
    wire->open = true;
    wire->stream.handle.data = wire;
    stream_read_start(&wire->stream, on_room, on_read);
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_wire *wire = handle->data;
    redisReaderFree(wire->reader);
    wire->reader = NULL;
    free(wire->out.at);
    free(wire->sending.at);
    wire->out = wire->sending = (struct wire_bytes){0};
    wire->closed(wire->arg);
}

void wire_close(struct redis_wire *wire)
{
    wire->open = false;
    stream_close(&wire->stream, on_closed);
}
