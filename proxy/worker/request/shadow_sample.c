/* Each sample costs the database a query: of a worker ten a second at most, however many keys are
 * asked for. Which they are is left to chance, as the first after each pause.
 */
#include "worker/request/shadow_sample.h"

#include "base/clock.h"
#include "base/memory.h"
#include "guard/messages.h"

enum { SAMPLE_MS = 100 };

__attribute__((noinline)) void shadow_sample(struct serving *serving, int keyspace, struct span key)
{
    uint64_t now = clock_ms();
    if (now - serving->sampled < SAMPLE_MS)
        return;
    serving->sampled = now;
    struct fn_check_message *fn_check = xmalloc(sizeof *fn_check + key.length);
    *fn_check = (struct fn_check_message){.message = {.kind = MESSAGE_FN_CHECK},
                                          .key = key_copy(key_make(keyspace, key), fn_check->text)};
    serving_ask_keeper(serving, &fn_check->message);
}
