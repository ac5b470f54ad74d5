/* In whose name commits return, and up to where (sync: replication, for commits that wait for the
 * guard by synchronous_standby_names).
 *
 *   while a generation serves: its tracker confirms what it knows
 *   while none does:           the confirmer confirms everything
 *
 *   VOICE_OWN ─ another process serves under that name ─▶ VOICE_SILENT ─▶ VOICE_SHARED ─▶ VOICE_OWN
 *
 * What is kept true: who may reject keys knows every commit that has returned because it was
 * confirmed in the guard's name. So what was confirmed by whoever is no more is remembered here,
 * and asked before a generation takes over (confirming_is_known()). On the keeper's thread.
 */
#ifndef NESTGUARD_CONFIRMING_H
#define NESTGUARD_CONFIRMING_H

#include "follow/confirmer.h"
#include "follow/lag.h"

enum voice {
    VOICE_OWN,
    VOICE_SILENT, /* another process confirms in the guard's name; what serves here is held */
    VOICE_SHARED  /* the same, and only what is known here, too */
};

struct confirming {
    struct confirmer *confirmer; /* at work only while none serves; NULL: no log is followed */
    enum voice voice;
    uint64_t limit; /* nothing behind this position of the log is confirmed; UINT64_MAX: none */
    /* Commits up to this position of the log may have returned because they were confirmed, until
     * this time (clock_ms()), by what is no more: a lost stream, the confirmer, another process. */
    uint64_t confirmed, until;
};

/* Without a log (`follows` false) nothing is ever confirmed. `config` outlives it. */
void confirming_open(struct confirming *confirming, uv_loop_t *loop, const struct config *config,
                     bool follows);
void confirming_close(struct confirming *confirming);
/* In the place of that `config`. */
void confirming_use_config(struct confirming *confirming, const struct config *config);

/* None serves, and no worker can reject a key any more: every commit is let go, if that is this
 * process's to say, and there is no limit. */
void confirming_everything(struct confirming *confirming);

/* Not any more. True: something was confirmed so, up to which a generation has to catch up. Commits
 * wait from here on. */
bool confirming_ends_everything(struct confirming *confirming);

/* Up to this position was confirmed by who ends now; 0: up to where is not known here. */
void confirming_remember(struct confirming *confirming, uint64_t position);

/* Whether who is so far knows all that was remembered: by that position or, of what a server does
 * not have any more (a standby that was promoted without it), by a question for the log's end that
 * was asked afterwards. */
bool confirming_is_known(const struct confirming *confirming, const struct lag *lag);

/* From here on this process confirms, and another does not any more; what that one confirmed is to
 * be known. False: it did before. */
bool confirming_speak(struct confirming *confirming);

#endif
