/* A large reply that is not all there, and is gathered because its kind wants it whole: as long as
 * somebody waits for it what is there counts for him, and when nobody does any more it is let go.
 */
#include "worker/upstream/upstream_internal.h"

enum { COPIES = 2 }; /* of a gathered reply, at its delivery */

static bool gathers(const struct upstream *upstream)
{
    return upstream->reply == REPLY_GATHERED || upstream->reply == REPLY_COUNTED;
}

/* Such a frame is looked at when it is whole, whatever has become of the oldest request. */
static bool may_be_unasked(const struct upstream *upstream)
{
    return gathers(upstream) &&
           (upstream_is_own(upstream) ||
            (upstream->options.resp3 && buffer_span(&upstream->in).at[0] == '>'));
}

/* Its kind will write a reply of it while it is still there: that counts before it takes memory,
 * for then it is too late to cut anybody off. */
static void count(struct upstream *upstream, struct reply_slot *slot)
{
    size_t more = COPIES * buffer_length(&upstream->in) - upstream->counted;
    upstream->reply = REPLY_COUNTED;
    upstream->counted += more;
    reply_slot_hold(slot, more);
    serving_arrived(upstream->serving, more);
}

void upstream_uncount(struct upstream *upstream)
{
    if (!upstream->counted)
        return;
    reply_slot_let_go(upstream_next_slot(upstream), upstream->counted);
    upstream->counted = 0;
}

void upstream_gather(struct upstream *upstream, struct reply_slot *slot)
{
    if (gathers(upstream) && slot->replies)
        count(upstream, slot);
}

bool upstream_skip(struct upstream *upstream, const struct reply_slot *slot)
{
    if (slot->replies || may_be_unasked(upstream))
        return false;
    upstream_uncount(upstream);
    upstream->reply = REPLY_SKIPPED;
    buffer_take(&upstream->in, resp_frame_pass(&upstream->frame));
    return true;
}

enum reply_state upstream_end_reply(struct upstream *upstream)
{
    enum reply_state state = upstream->reply;
    upstream->reply = REPLY_GATHERED;
    upstream_uncount(upstream);
    return state;
}
