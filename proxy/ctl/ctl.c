/* `nestguard ctl`: what is asked, and how the answer is printed.
 *
 *   words ─▶ where the guard listens, and the token ─▶ call ─▶ 2xx: a table or JSON, to stdout
 *                                                        └─▶ else its error and advice, to stderr
 *
 * What is printed to stdout is the guard's answer and nothing else, so that programs can read it.
 */
#include "ctl/ctl.h"

#include "base/memory.h"
#include "base/standard_files.h"
#include "config/config.h"
#include "ctl/ctl_call.h"
#include "ctl/ctl_top.h"
#include "ctl/ctl_words.h"
#include "http/http_target.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2 };

/* A token is part of a header line. */
static bool is_token(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* A new string: path and query of the call. */
static char *target_of(const struct ctl_words *words)
{
    const struct ctl_option *option = words->option;
    const struct ctl_form *form = words->form;
    char *subject = http_target_escape(span_of(words->subject ? words->subject : ""));
    char *value = http_target_escape(span_of(option && option->value ? words->value : ""));
    bool queries = option && option->query;
    char *target =
        xasprintf("%s%s%s%s%s%s", form->path, subject, form->path_end ? form->path_end : "",
                  queries ? "?" : "", queries ? option->query : "", value);

    free(value);
    free(subject);
    return target;
}

/* Tables for people, JSON for programs: what programs have read all along they read on, whoever
 * asks from a terminal sees a table. */
static bool is_for_people(const struct ctl_words *words)
{
    const char *option = words->option ? words->option->name : "";
    if (!words->form->print || !strcmp(option, "json"))
        return false;
    return !words->form->table_on_terminal || !strcmp(option, "table") || ctl_is_terminal();
}

/* False: as JSON. */
static bool print_for_people(const struct ctl_words *words, const struct ctl_answer *answer,
                             FILE *out)
{
    const struct ctl_paper plain = {.out = out};
    const struct ctl_paper paper = out == stdout ? ctl_paper_of_stdout() : plain;
    json_t *body;

    if (!is_for_people(words))
        return false;
    body = json_loadb(answer->body, answer->length, JSON_ALLOW_NUL, NULL);
    if (body)
        words->form->print(body, words->option ? words->option->name : NULL, &paper);
    json_decref(body);
    return body;
}

/* JSON for people, an object a line where one follows the other; other text as it is. */
static void print_body(const struct ctl_answer *answer, bool in_a_line, FILE *out)
{
    json_t *body = json_loadb(answer->body, answer->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    size_t form = in_a_line ? JSON_COMPACT : JSON_INDENT(2);

    if (body) {
        json_dumpf(body, out, form | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        json_decref(body);
    } else {
        fwrite(answer->body, 1, answer->length, out);
    }
    if (body || (answer->length > 0 && answer->body[answer->length - 1] != '\n'))
        fputc('\n', out);
}

/* The guard's words are those of its HTTP calls; what helps is said in those of the command line.
 */
static void print_advice(const struct ctl_words *words, long status)
{
    if (status == 401)
        fputs("The token is taken from --token, from the configuration that -c names, or from "
              "NESTGUARD_TOKEN.\n",
              stderr);
    if (status == 409 && !strcmp(words->form->name, "delete") && !words->option)
        fputs("If the row is there: --row deletes it, too; --block DURATION refuses the key for "
              "that time although the row is there.\n",
              stderr);
}

/* The guard's own words, and what else it has to say. */
static int print_refusal(const struct ctl_words *words, const struct ctl_answer *answer)
{
    json_t *body = json_loadb(answer->body, answer->length, JSON_ALLOW_NUL, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));

    if (error)
        ctl_complain(EXIT_REFUSED, "%s", error);
    else
        ctl_complain(EXIT_REFUSED, "the guard answered with status %ld", answer->status);
    print_advice(words, answer->status);
    bool says_more = !error || json_object_size(body) > 1;
    if (says_more && !print_for_people(words, answer, stderr))
        print_body(answer, false, stderr);
    json_decref(body);
    return EXIT_REFUSED;
}

/* Of what was printed. Returns the exit status. */
static int print_shortfall(const struct ctl_words *words, const struct ctl_answer *answer)
{
    if (!words->form->shortfall)
        return EXIT_DONE;
    json_t *body = json_loadb(answer->body, answer->length, JSON_ALLOW_NUL, NULL);
    char *shortfall = words->form->shortfall(body);
    int status = shortfall ? ctl_complain(EXIT_REFUSED, "%s", shortfall) : EXIT_DONE;
    free(shortfall);
    json_decref(body);
    return status;
}

/* Returns the exit status. A status that is no success may be an answer, too: that /readyz says no
 * is no failure of whoever asked. */
static int print_answer(const struct ctl_words *words, const struct ctl_answer *answer)
{
    if (!ctl_answer_is_success(answer) && answer->status != words->form->answers)
        return print_refusal(words, answer);
    if (answer->length == 0)
        puts("done");
    else if (!print_for_people(words, answer, stdout))
        print_body(answer, words->watch > 0 && !ctl_is_terminal(), stdout);
    if (standard_output_flush() < 0)
        return EXIT_REFUSED; /* which main() explains */
    return print_shortfall(words, answer);
}

/* Returns the exit status. */
static int call_once(const struct ctl_words *words, const struct ctl_call *request)
{
    struct ctl_answer answer;
    char *error = NULL;
    int status;

    if (ctl_call(&answer, request, &error) < 0) {
        status = ctl_complain(EXIT_REFUSED, "%s", error);
        free(error);
    } else {
        status = print_answer(words, &answer);
        ctl_answer_finish(&answer);
    }
    return status;
}

/* Until somebody ends it, or nobody reads it any more; a guard that is away may come back. */
static int call_again_and_again(const struct ctl_words *words, const struct ctl_call *request)
{
    struct timespec pause = {.tv_sec = (time_t)words->watch};
    pause.tv_nsec = (long)((words->watch - (double)pause.tv_sec) * 1e9);
    while (!ferror(stdout)) {
        if (ctl_is_terminal())
            fputs("\033[H\033[J", stdout);
        call_once(words, request);
        nanosleep(&pause, NULL);
    }
    return EXIT_REFUSED;
}

static int call_with_body(const struct ctl_words *words, struct ctl_call *request)
{
    struct ctl_body body;
    int status = ctl_body_open(&body, words->body);

    if (status < 0)
        return ctl_complain(EXIT_REFUSED, "%s: %s", words->body ? words->body : "standard input",
                            strerror(-status));
    request->body = &body;
    status = call_once(words, request);
    ctl_body_close(&body);
    return status;
}

/* With the token that goes with the address, or NULL. Returns the exit status. */
static int call(const struct ctl_words *words, const struct address *address, const char *token)
{
    struct ctl_call request = {.address = address, .token = token, .method = words->form->method};
    char *target;
    int status;

    if (token && !is_token(token))
        return ctl_complain(EXIT_USAGE, "a token has no blanks, control or non-ASCII characters");
    if (words->form->is_live)
        return ctl_top_run(&request);
    target = target_of(words);
    request.target = target;
    if (words->form->sends)
        status = call_with_body(words, &request);
    else if (words->watch > 0)
        status = call_again_and_again(words, &request);
    else
        status = call_once(words, &request);
    free(target);
    return status;
}

/* What was said on the command line comes first, then the file, then the environment. */
static const char *token_from(const char *first, const char *second)
{
    const char *token = first ? first : second ? second : getenv("NESTGUARD_TOKEN");

    return token && *token ? token : NULL;
}

/* With -c: where the guard of this configuration listens. */
static int call_configured(const struct ctl_words *words)
{
    struct problems problems = {0};
    struct config *config = NULL;
    int status;

    if (config_load(&config, words->file, &problems) < 0) {
        problems_print(&problems, stderr);
        status = ctl_complain(EXIT_REFUSED,
                              "the configuration cannot be used; `nestguard ctl --control ADDRESS "
                              "%s` asks a guard that is running without it (the token: --token, or "
                              "NESTGUARD_TOKEN)",
                              words->form->name);
    } else if (!config->has_control) {
        status =
            ctl_complain(EXIT_REFUSED,
                         "%s has no `control`: the control port is off, and `nestguard ctl "
                         "--control ADDRESS %s` asks a guard that was started with another file",
                         words->file, words->form->name);
    } else {
        status = call(words, &config->control, token_from(words->token, config->control_token));
    }
    config_destroy(config);
    problems_finish(&problems);
    return status;
}

/* Without -c and --control: the address of the sample configuration. */
static int call_address(const struct ctl_words *words)
{
    const char *text = words->control ? words->control : ctl_default_address;
    struct address address;
    const char *error;
    int status;

    if (address_parse(&address, text, &error) < 0)
        return ctl_complain(EXIT_USAGE, "--control %s: %s", text, error);
    status = call(words, &address, token_from(words->token, NULL));
    address_finish(&address);
    return status;
}

int ctl_main(int argc, char **argv)
{
    struct ctl_words words = {0};

    if (ctl_words_read(&words, argc, argv) < 0)
        return EXIT_USAGE;
    if (words.help) {
        ctl_print_usage(stdout);
        return EXIT_DONE;
    }
    return words.file ? call_configured(&words) : call_address(&words);
}
