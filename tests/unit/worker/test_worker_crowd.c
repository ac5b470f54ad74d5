/* More clients than are met at once on a tour: what is done for all of them reaches each. */
#include "worker/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "traffic/ledger.h"
#include "worker_bench.h"

enum { CROWD = 300 };

static struct bench bench;
static int crowd[CROWD];

static void gather(const char *settings)
{
    bench_start(&bench, settings);
    serve_cache(&bench);
    for (int i = 0; i < CROWD; i++)
        crowd[i] = connect_client(&bench);
}

/* Answered once, each is surely there. */
static void have_all_served(void)
{
    for (int i = 0; i < CROWD; i++)
        say(crowd[i], GET_ABSENT);
    for (int i = 0; i < CROWD; i++)
        must_hear(crowd[i], NIL);
}

static void disperse(void)
{
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
}

static void send_ledger(void)
{
    struct ledger_message *message = xcalloc(1, sizeof *message);
    message->message = (struct message){.kind = MESSAGE_LEDGER, .sender = &bench.keeper.mailbox};
    message->ledger = ledger_create();
    mailbox_post(&bench.worker->serving.mailbox, &message->message);
}

static void must_tell_of_all(struct ledger_message *message)
{
    assert_int_equal(heavy_total(ledger_parties(message->ledger, BURDEN_rejects)), CROWD);
    ledger_destroy(message->ledger);
    free(message);
}

static struct ledger_message *next_ledger(void)
{
    return (struct ledger_message *)(void *)next_message(&bench.keeper, MESSAGE_LEDGER);
}

static void a_ledger_tells_of_all(void **state)
{
    (void)state;
    gather("");
    have_all_served();
    send_ledger();
    must_tell_of_all(next_ledger());
    disperse();
    bench_finish(&bench);
}

static void a_ledger_comes_back_from_a_worker_that_ends(void **state)
{
    (void)state;
    gather("");
    have_all_served();
    send_ledger();
    send_drain(&bench);
    must_tell_of_all(next_ledger());
    for (int i = 0; i < CROWD; i++)
        must_end(crowd[i], "");
    bench_free(&bench);
}

static void all_who_are_idle_are_closed(void **state)
{
    (void)state;
    gather("client_idle_timeout: 1s\n");
    have_all_served();
    must_lose_clients(&bench, 0);
    assert_int_equal(counter_read(&bench.worker->serving.counters.clients_idle), CROWD);
    disperse();
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ledger_tells_of_all),
        cmocka_unit_test(a_ledger_comes_back_from_a_worker_that_ends),
        cmocka_unit_test(all_who_are_idle_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
