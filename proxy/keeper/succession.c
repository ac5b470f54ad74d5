/* What goes over the channel between two processes of one file (succession.h has the course):
 *
 *   predecessor                                   successor
 *      ENTRY  ─────────── each override, all that there are first ──────────▶
 *      ◀────── POSITION, up to where its log is followed; READY, it guards ───
 *      CACHE  ─────────── which one it has; at first, and before YOURS ──────▶
 *      LACKING ────────── of each keyspace whose file is not all that was told ▶
 *      YOURS  ─────────── no client is let in here any more ─────────────────▶
 *      ALIVE  ─────────── again and again, for as long as clients are left ──▶
 *      ◀────── HEARD, as each ALIVE was sent ──────────────────────────────────
 *      QUIET  ─────────── and not any more: it ends ─────────────────────────▶
 *      PURGED ─────────── it owes nothing to the cache, which it names ──────▶
 *      ◀────────────── ENTRY and APPLIED, both ways, while both guard ────────▶
 *      DISMISSED ─────── instead of YOURS, to one that does not read ────────▶
 *
 * The end of the channel is the other's end, whatever the cause.
 */
#include "keeper/succession.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/service.h"
#include "base/memory.h"
#include "handover/handover.h"
#include "keeper/told_entry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Frames; `applied` answers entries in their order, once both guard. Alive, quiet, cache and purged
 * are the predecessor's: an older one says none of them, or not when, and a frame that is not known
 * is left alone; so is 'g', purged without a word of which cache. */
enum {
    ENTRY = 'e',
    APPLIED = 'a',
    POSITION = 'p',
    READY = 'r',
    YOURS = 'y',
    ALIVE = 'l', /* and when it was said, by the predecessor's clock */
    HEARD = 'h',
    QUIET = 'q',
    CACHE = 'c', /* empty: its own word of it counts for nothing */
    PURGED = 'u',
    LACKING = 'k',
    DISMISSED = 'd' /* an older one waits on, for what does not come */
};

enum {
    PATIENCE_MS = 1000, /* with another process that owes an answer */
    BEAT_MS = 250,      /* from one alive to the next */
    LEASE_MS = 2000,    /* a predecessor rejects for so long after what was answered */
    SILENCE_MS = 3000,  /* without any, whoever has given way hangs */
    STALL_MS = 500      /* between two looks: it was this process that stood still */
};

/* Bytes that a successor does not read, beyond what there was for it at first. */
static const size_t UNREAD_MAX = 64 << 20;

/* ---- entries, as they are told ---- */

static void send_entry(void *arg, struct key key, struct override entry)
{
    struct succession *succession = arg;
    struct buffer bytes = {0};
    told_entry_write(&bytes, key, entry);
    channel_send(succession->channel, ENTRY, buffer_span(&bytes));
    buffer_finish(&bytes);
}

/* A frame that is only its kind. */
static void say(struct succession *succession, int frame)
{
    channel_send(succession->channel, frame, (struct span){"", 0});
}

/* From "yours" on, on either side. */
static bool both_guard(const struct succession *succession)
{
    return succession->yours || succession->phase == SUCCESSION_YIELDED;
}

static void say_applied(void *arg)
{
    struct succession *succession = arg;
    if (succession->channel)
        say(succession, APPLIED);
}

/* Entries from here on go to the other process, too; `is_awaited`: it must have them before whoever
 * set one is answered. */
static void send_to_other(struct succession *succession, bool is_awaited)
{
    succession->options.entries->remote =
        (struct entries_remote){send_entry, succession, is_awaited};
}

/* ---- the successor ---- */

static void let_in(struct succession *succession, const char *why)
{
    log_info("process %d %s: this one serves from here on", (int)succession->other, why);
    succession->phase = SUCCESSION_BESIDE;
    succession->options.let_in(succession->options.arg);
}

static void offer(struct succession *succession)
{
    if (!succession->options.is_last)
        naming_try(&succession->naming);
}

static void serve_alone(struct succession *succession)
{
    succession->phase = SUCCESSION_SERVING;
    succession->yours = 0;
    offer(succession);
}

static void go_on_waiting(struct succession *succession)
{
    const struct succession_options *options = &succession->options;
    if (succession->channel && !succession->told_ready && options->is_ready(options->arg)) {
        succession->told_ready = true;
        say(succession, READY);
    }
    if (!succession->yours || !options->knows(options->arg, succession->yours))
        return;
    let_in(succession, succession->channel ? "has given way" : "has ended");
    if (!succession->channel)
        serve_alone(succession);
}

/* The other has ended: nobody else confirms commits or answers clients. What it confirmed until now
 * must be known here all the same before anybody is let in, as after "yours": a log that is behind
 * lacks rows whose commits have returned, and the lease says no more than max_lag. */
static void stand_alone(struct succession *succession)
{
    bool waits = succession->phase == SUCCESSION_WAITING;
    succession->options.stand_alone(succession->options.arg, succession->has_purged);
    if (!waits) {
        serve_alone(succession);
        return;
    }
    if (!succession->yours)
        succession->yours = clock_ms();
    go_on_waiting(succession);
}

/* Clients may come only when this process knows all that the other confirmed by now. */
static void take_yours(struct succession *succession)
{
    succession->yours = succession->answered = clock_ms();
    send_to_other(succession, true);
    succession->options.share(succession->options.arg);
    succession_go_on(succession);
}

/* Since when the other has not said that it has an entry, if that is for long; 0: it does not owe
 * that. */
static bool owes_for_long(const struct succession *succession, uint64_t now)
{
    uint64_t since = entries_remote_owes(succession->options.entries);
    return since && now - since > PATIENCE_MS;
}

/* One whose workers hang though its keeper does not is let reject no longer. */
static void take_alive(struct succession *succession, struct span bytes)
{
    uint64_t now = clock_ms();
    if (!succession->yours || bytes.length != sizeof(uint64_t) || owes_for_long(succession, now))
        return;
    succession->answered = now;
    channel_send(succession->channel, HEARD, bytes);
}

/* It lacks what the predecessor is told from here on. The channel's end would be that one's end. */
static void take_dismissal(struct succession *succession)
{
    log_error("process %d has given this one up, which has not read what it was told for a while; "
              "this one ends, and may be started again",
              (int)succession->other);
    channel_close(succession->channel);
    succession->channel = NULL;
    succession->options.leave(succession->options.arg);
}

void succession_reached(struct succession *succession, uint64_t position)
{
    if (succession->channel)
        channel_send(succession->channel, POSITION,
                     (struct span){(const char *)&position, sizeof position});
}

static void take_cache(struct succession *succession, struct span cache)
{
    if (succession->is_warned || succession->options.has_cache(succession->options.arg, cache))
        return;
    succession->is_warned = true;
    succession->options.doubt_cache(succession->options.arg);
}

/* ---- the predecessor ---- */

void succession_tell_cache(struct succession *succession, const char *cache, bool is_purged)
{
    if (succession->channel)
        channel_send(succession->channel, is_purged ? PURGED : CACHE, span_of(cache));
}

void succession_tell_lacking(struct succession *succession, const char *keyspace)
{
    if (succession->channel)
        channel_send(succession->channel, LACKING, span_of(keyspace));
}

static void say_alive(struct succession *succession)
{
    uint64_t now = clock_ms();
    if (succession->phase != SUCCESSION_YIELDED || !succession->channel ||
        now - succession->told < BEAT_MS)
        return;
    succession->told = now;
    channel_send(succession->channel, ALIVE, (struct span){(const char *)&now, sizeof now});
}

static void stand(struct succession *succession, uint64_t until)
{
    succession->options.stand(succession->options.arg, until);
}

/* The other's answers come in the order of what they answer. */
static void take_heard(struct succession *succession, struct span bytes)
{
    uint64_t said;
    if (bytes.length != sizeof said || !succession->stands)
        return;
    memcpy(&said, bytes.at, sizeof said);
    stand(succession, said + LEASE_MS);
}

/* From here on nothing is rejected here: the other goes on alone, or may. */
static void fall(struct succession *succession)
{
    succession->stands = false;
    stand(succession, 0);
}

/* What the successor knows is asked before it lets anybody in: what was confirmed without it is
 * known by then, since it waits for the log's end as of "yours". */
static void yield(struct succession *succession, bool stands)
{
    const struct succession_options *options = &succession->options;
    log_info("process %d takes over", (int)succession->other);
    succession->phase = SUCCESSION_YIELDED;
    succession->stands = stands;
    stand(succession, stands ? clock_ms() + LEASE_MS : 0);
    naming_withdraw(&succession->naming);
    options->limit(options->arg, succession->position);
    options->yield(options->arg);
    send_to_other(succession, true);
    service_hand_over(succession->other);
    say_alive(succession); /* first: else one that hangs from here on would not be missed */
    say(succession, YOURS);
}

/* There is no time to have given way before. */
void succession_end(struct succession *succession)
{
    if (succession->phase == SUCCESSION_SERVING && succession->channel && !succession->dismissed)
        yield(succession, false);
}

/* The channel stays open: nobody else may follow while it could, by its end, take itself for the
 * only one. */
static void dismiss(struct succession *succession)
{
    log_warning("process %d, which was to take over, does not read what it is told: it is not told "
                "any more, and nobody takes over before it has ended",
                (int)succession->other);
    succession->dismissed = true;
    if (succession->is_ready)
        succession->options.stay(succession->options.arg);
    succession->is_ready = false;
    entries_remote_lost(succession->options.entries);
    say(succession, DISMISSED);
}

static void go_on_serving(struct succession *succession)
{
    offer(succession);
    if (succession->channel && !succession->dismissed &&
        channel_unsent(succession->channel) > succession->unread_max)
        dismiss(succession);
    if (succession->is_ready && succession->options.give_way(succession->options.arg))
        yield(succession, true);
}

/* Before "yours" it is only remembered: until then the predecessor alone answers clients. */
static void take_position(struct succession *succession, struct span bytes)
{
    if (bytes.length != sizeof succession->position)
        return;
    memcpy(&succession->position, bytes.at, sizeof succession->position);
    if (succession->phase == SUCCESSION_YIELDED)
        succession->options.limit(succession->options.arg, succession->position);
}

/* ---- both ---- */

/* What makes no sense in this phase is left alone. */
static void on_frame(void *arg, int kind, struct span bytes)
{
    struct succession *succession = arg;
    if (kind == ALIVE || succession->heard)
        succession->heard = kind == QUIET ? 0 : clock_ms();
    if (kind == ENTRY)
        /* Whoever sent it before both guard waits for no answer. */
        taking_take(&succession->taking, bytes, both_guard(succession));
    else if (kind == APPLIED)
        entries_remote_has(succession->options.entries);
    else if (kind == POSITION)
        take_position(succession, bytes);
    else if (kind == YOURS && succession->phase == SUCCESSION_WAITING && !succession->yours)
        take_yours(succession);
    else if (kind == LACKING && succession->phase == SUCCESSION_WAITING)
        succession->options.lacks(succession->options.arg, bytes);
    else if (kind == DISMISSED && succession->phase == SUCCESSION_WAITING && !succession->yours)
        take_dismissal(succession);
    else if (kind == CACHE && succession->phase == SUCCESSION_WAITING)
        take_cache(succession, bytes);
    else if (kind == PURGED)
        succession->has_purged = succession->options.has_cache(succession->options.arg, bytes);
    else if (kind == ALIVE)
        take_alive(succession, bytes);
    else if (kind == HEARD)
        take_heard(succession, bytes);
    else if (kind == READY && succession->phase == SUCCESSION_SERVING && !succession->dismissed) {
        succession->is_ready = true;
        go_on_serving(succession);
    }
}

/* A successor that has taken over may go on, for all its predecessor knows: that it does not
 * answer, or is not there any more, may be because this process stood still for so long that it was
 * given up. Then the successor lets clients in without what is written or admitted here:
 *
 *   predecessor                          successor
 *      stands still                         hears nothing for SILENCE_MS, closes the channel
 *      goes on: SET, its entry ──────▶ ╳    has no such key: rejects it
 *      OK?                                  and whoever was told OK is told nil
 *      reads the channel's end
 *
 * So nothing that the successor has not acknowledged is confirmed here, neither what was sent
 * before the end was read nor what is given from then on: it is answered with an error. What it has
 * acknowledged stands before the end, and is read first. */
static void lose_other(struct succession *succession)
{
    if (succession->phase == SUCCESSION_YIELDED) {
        fall(succession);
        entries_strand(succession->options.entries);
    } else
        entries_remote_lost(succession->options.entries);
}

/* What waits for it is sent here again. */
static void lose_next(struct succession *succession)
{
    log_warning("process %d, which was to take over, has ended", (int)succession->other);
    if (succession->is_ready)
        succession->options.stay(succession->options.arg);
    succession->is_ready = false;
}

/* What it means depends on who has ended: a successor that has taken over, one that has not, or the
 * predecessor. */
static void on_ended(void *arg)
{
    struct succession *succession = arg;
    succession->channel = NULL;
    lose_other(succession);
    if (succession->phase == SUCCESSION_YIELDED)
        succession->options.leave(succession->options.arg);
    else if (succession->phase == SUCCESSION_SERVING)
        lose_next(succession);
    else
        stand_alone(succession);
}

/* A predecessor that has given way confirms no commits when it hangs, owing nothing. While this
 * process stood still itself it heard nothing either. */
static bool is_silent(struct succession *succession, uint64_t now)
{
    if (now - succession->looked > STALL_MS && succession->heard)
        succession->heard = now;
    succession->looked = now;
    return succession->heard && now - succession->heard > SILENCE_MS;
}

/* A predecessor that hangs may reject when it goes on, until its time is over. */
static bool may_reject(const struct succession *succession, uint64_t now)
{
    return succession->yours && now - succession->answered <= LEASE_MS;
}

/* Nobody's write waits for a process that hangs. */
static void watch_other(struct succession *succession)
{
    uint64_t now = clock_ms();
    bool silent = is_silent(succession, now), owes = owes_for_long(succession, now);
    if (!succession->channel || (!silent && !owes) || may_reject(succession, now))
        return;
    log_warning("process %d does not answer: it is not waited for", (int)succession->other);
    channel_close(succession->channel);
    on_ended(succession);
}

void succession_fall_silent(struct succession *succession)
{
    if (succession->phase == SUCCESSION_YIELDED && succession->channel)
        say(succession, QUIET);
}

void succession_go_on(struct succession *succession)
{
    watch_other(succession);
    say_alive(succession);
    if (succession->phase == SUCCESSION_SERVING)
        go_on_serving(succession);
    if (succession->phase == SUCCESSION_WAITING)
        go_on_waiting(succession);
}

static const struct channel_events events = {.frame = on_frame, .ended = on_ended};

/* One at a time: who comes second finds the end of a channel, and takes the address for taken. */
static void on_asked(void *arg, int fd)
{
    struct succession *succession = arg;
    if (succession->channel ||
        handover_give(fd, succession->sockets, succession->options.socket_count) < 0) {
        close(fd);
        return;
    }
    succession->other = handover_peer(fd);
    if (channel_open(&succession->channel, succession->options.loop, fd, &events, succession) < 0)
        return;
    log_info("process %d was given the sockets, and takes over when it guards",
             (int)succession->other);
    succession->position = 0;
    succession->dismissed = false;
    succession->options.meet(succession->options.arg);
    send_to_other(succession, false);
    overrides_each(&succession->options.entries->table, clock_ms(), send_entry, succession);
    succession->unread_max = channel_unsent(succession->channel) + UNREAD_MAX;
}

void succession_open(struct succession *succession, const struct succession_options *options)
{
    size_t size = options->socket_count * sizeof *options->sockets;
    *succession = (struct succession){
        .options = *options,
        .phase = SUCCESSION_SERVING,
        .taking = {.entries = options->entries, .answer = say_applied, .arg = succession},
        .naming = {
            .loop = options->loop, .file = options->file, .asked = on_asked, .arg = succession}};
    succession->sockets = xmalloc(size + 1);
    memcpy(succession->sockets, options->sockets, size);
    if (options->predecessor < 0) {
        offer(succession);
        return;
    }
    succession->phase = SUCCESSION_WAITING;
    succession->other = handover_peer(options->predecessor);
    if (channel_open(&succession->channel, options->loop, options->predecessor, &events,
                     succession) < 0)
        on_ended(succession);
    else
        log_info("process %d serves by this file: taking over from it when this one guards",
                 (int)succession->other);
}

bool succession_waits(const struct succession *succession)
{
    return succession->phase == SUCCESSION_WAITING;
}

void succession_close(struct succession *succession)
{
    if (succession->phase == SUCCESSION_NONE)
        return;
    lose_other(succession);
    succession->phase = SUCCESSION_NONE;
    naming_withdraw(&succession->naming);
    channel_close(succession->channel);
    succession->channel = NULL;
    free(succession->sockets);
}
