#include "control/admin.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "control/attack.h"
#include "control/configuration.h"
#include "control/key_calls.h"
#include "control/page.h"
#include "control/push.h"
#include "control/status.h"
#include "http/json_bytes.h"
#include "keeper/keeper.h"

static void healthz(struct http_call *call, void *arg)
{
    (void)arg;
    http_answer_json(call, 200, json_pack("{s:s}", "status", "alive"));
}

/* What a load balancer asks. A guard that may not reject serves all the same: to take it out of
 * rotation would make an outage of the cache out of one of the database. */
static void readyz(struct http_call *call, void *arg)
{
    struct report report;
    keeper_report(arg, &report);
    bool ready = status_is_serving(&report);
    http_answer_json(call, ready ? 200 : 503, json_pack("{s:b}", "ready", ready));
    report_finish(&report);
}

/* What an alert asks. */
static void guardz(struct http_call *call, void *arg)
{
    struct report report;
    keeper_report(arg, &report);
    bool guarding = status_is_guarding(&report);
    http_answer_json(
        call, guarding ? 200 : 503,
        json_pack("{s:b, s:o}", "guarding", guarding, "keyspaces", status_states(&report)));
    report_finish(&report);
}

static void metrics(struct http_call *call, void *arg)
{
    struct report report;
    struct buffer text = {0};
    keeper_report(arg, &report);
    status_metrics(&report, &text);
    http_answer_text(call, 200, "text/plain; version=0.0.4; charset=utf-8", buffer_span(&text));
    buffer_finish(&text);
    report_finish(&report);
}

static void status(struct http_call *call, void *arg)
{
    struct report report;
    keeper_report(arg, &report);
    http_answer_json(call, 200, status_json(&report));
    report_finish(&report);
}

static void attack(struct http_call *call, void *arg)
{
    http_answer_json(call, 200, attack_json(arg));
}

/* Answered when it begins: a build may take hours, and the status tells of it. What is no rows' has
 * no generation, and is read again. */
static void rebuild(struct http_call *call, void *arg)
{
    bool has_rows = config_has_rows(keeper_config(arg));
    uint64_t number = keeper_rebuild(arg);
    if (!has_rows)
        http_answer_json(call, 202, json_pack("{s:n}", "generation"));
    else if (number)
        http_answer_json(call, 202, json_pack("{s:I}", "generation", (json_int_t)number));
    else
        http_answer_error(call, 503, "the guard is ending");
}

const struct http_route admin_routes[] = {
    {"GET", "/", page_get, true, "the page for a browser", NULL, NULL},
    {"GET", "/healthz", healthz, true, "alive", NULL, NULL},
    {"GET", "/readyz", readyz, true, "200 while clients are served, else 503", NULL, NULL},
    {"GET", "/guardz", guardz, true, "200 when every keyspace is guarding, else 503", NULL, NULL},
    {"GET", "/metrics", metrics, false, "Prometheus text", NULL, NULL},
    {"GET", "/v1/status", status, false, "keyspaces, generation, filters, clients, rates", NULL,
     NULL},
    {"GET", "/v1/attack", attack, false,
     "who asks: rates of rejects, heaviest clients, absent keys", NULL, NULL},
    {"GET", "/v1/log", page_get_log, false, "the log's last lines; ?after=NUMBER", "after", NULL},
    {"GET", "/v1/keys/*", key_calls_get, false, "explains what happens to a key, and why", NULL,
     NULL},
    {"PUT", "/v1/keys/*", key_calls_put, false, "admits a key ahead of the filter; ?for=10m", "for",
     NULL},
    {"DELETE", "/v1/keys/*", key_calls_delete, false,
     "rejects a key whose row is gone, and purges it from the cache; ?row=delete, ?block=10m",
     "row&block", NULL},
    {"PUT", "/v1/keyspaces/*/keys", push_keys, false,
     "all keys of a keyspace with source: push, a line each", NULL, &push_upload},
    {"POST", "/v1/rebuild", rebuild, false, "builds a new generation", NULL, NULL},
    {"POST", "/v1/reload", configuration_reload, false,
     "reads the file again, and says what is taken and what is not", NULL, NULL},
    {"GET", "/v1/config", configuration_get, false,
     "the configuration in force, as a file without its secrets", NULL, NULL},
    {0}};

static void log_refused(const struct http_finished *call)
{
    static struct log_pace strangers, others;
    bool is_stranger = call->status == 401;
    uint64_t left_out = 0;
    char said[LOG_PACE_SAID];
    if (!log_pace_may(is_stranger ? &strangers : &others, clock_ms(), &left_out))
        return;
    if (is_stranger)
        log_warning("control: %s: %s %.200s: no valid token%s", call->who, call->method, call->url,
                    log_pace_said(left_out, said));
    else
        log_info("control: %s: %s %.200s: refused, %u%s", call->who, call->method, call->url,
                 call->status, log_pace_said(left_out, said));
}

void admin_log(void *arg, const struct http_finished *call)
{
    (void)arg;
    if (call->was_refused)
        log_refused(call);
    else
        log_info("control: %s: %u %s %.500s", call->who, call->status, call->method, call->url);
}
