/* What is appended gathers in one buffer while others are libuv's until they are written. So all
 * commands of a turn of the loop leave in one write, but for large ones, which have buffers of
 * their own; at most one write is under way, and their order is that of the calls.
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

static struct wire_bytes *link_behind(struct redis_wire *wire, struct wire_bytes *bytes)
{
    bytes->next = NULL;
    *(wire->out ? &wire->last->next : &wire->out) = bytes;
    wire->last = bytes;
    return bytes;
}

/* The one that gathers: what is large stays as it came. */
static struct wire_bytes *gathering(struct redis_wire *wire)
{
    struct wire_bytes *bytes = wire->spare;
    if (wire->out && wire->last->length < KEEP_BYTES)
        return wire->last;
    wire->spare = NULL;
    return link_behind(wire, bytes ? bytes : allocate(1, sizeof *bytes));
}

void wire_append(struct redis_wire *wire, const char *bytes, size_t length)
{
    struct wire_bytes *out = gathering(wire);
    if (out->size - out->length < length) {
        out->size = 2 * (out->length + length);
        out->at = allocated(realloc(out->at, out->size));
    }
    memcpy(out->at + out->length, bytes, length);
    out->length += length;
}

void wire_give(struct redis_wire *wire, char *bytes, size_t length)
{
    if (length < KEEP_BYTES) {
        wire_append(wire, bytes, length);
        free(bytes);
        return;
    }
    struct wire_bytes *own = link_behind(wire, allocate(1, sizeof *own));
    own->at = bytes;
    own->length = own->size = length;
}

static void discard(struct wire_bytes *bytes)
{
    if (bytes)
        free(bytes->at);
    free(bytes);
}

/* What one large value needed is given back. */
static void recycle(struct redis_wire *wire)
{
    struct wire_bytes *bytes = wire->sending;
    wire->sending = NULL;
    if (wire->spare || bytes->size > KEEP_BYTES) {
        discard(bytes);
        return;
    }
    bytes->length = 0;
    wire->spare = bytes;
}

static void on_written(uv_write_t *write, int status)
{
    struct redis_wire *wire = write->data;
    recycle(wire);
    if (!wire->open)
        return;
    if (status < 0)
        tell_broken(wire, uv_strerror(status), false);
    else
        wire_flush(wire);
}

/* What libuv has been given must not move until it is written. */
void wire_flush(struct redis_wire *wire)
{
    struct wire_bytes *bytes = wire->out;
    if (!wire->open || wire->sending || !bytes)
        return;
    wire->out = bytes->next;
    wire->sending = bytes;
    wire->write.data = wire;
    int status = stream_write(&wire->stream, &wire->write, bytes->at, bytes->length, on_written);
    if (status == 0)
        return;
    recycle(wire);
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

static void drop_all(struct redis_wire *wire)
{
    struct wire_bytes *bytes;
    while ((bytes = wire->out)) {
        wire->out = bytes->next;
        discard(bytes);
    }
    discard(wire->sending);
    discard(wire->spare);
    wire->sending = wire->spare = NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_wire *wire = handle->data;
    redisReaderFree(wire->reader);
    wire->reader = NULL;
    drop_all(wire);
    wire->closed(wire->arg);
}

void wire_close(struct redis_wire *wire)
{
    wire->open = false;
    stream_close(&wire->stream, on_closed);
}
