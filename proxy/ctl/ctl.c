/* `nestguard ctl`: the command line, and what is printed. */
#include "ctl/ctl.h"

#include "base/memory.h"
#include "base/text/arguments.h"
#include "config/config.h"
#include "ctl/ctl_call.h"
#include "ctl/ctl_commands.h"
#include "http/http_target.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2 };

/* The command line, taken apart. */
struct words {
    const char *file, *control, *token;
    unsigned help;
    const struct ctl_command *command;
    const char *key;
    const struct ctl_option *option;
    const char *value;
};

static int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says what is wrong and returns `status`, so that it can stand behind a return. */
static int complain(int status, const char *format, ...)
{
    va_list arguments;

    fputs("nestguard ctl: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return status;
}

static void print_usage(FILE *out)
{
    fputs("usage: nestguard ctl [-c FILE | --control ADDRESS] [--token TOKEN] COMMAND [ARGS]\n\n",
          out);
    for (size_t i = 0; i < ctl_command_count; i++) {
        const char *help = ctl_commands[i].help;
        size_t line = strcspn(help, "\n");

        fprintf(out, "  %-38s %.*s\n", ctl_commands[i].usage, (int)line, help);
        if (help[line])
            fprintf(out, "  %-38s %s\n", "", help + line + 1);
    }
    fprintf(
        out,
        "\nADDRESS is HOST:PORT, [IPV6]:PORT or unix:/path (default: %s). With -c, address and\n"
        "token come from the guard's configuration. The token may also stand in the\n"
        "environment as NESTGUARD_TOKEN, where other users cannot see it. DURATION is a number\n"
        "with a unit: 30s, 10m, 2h. A key that begins with '-' goes after '--'.\n"
        "Exit status: 0 done, 1 the guard refused or could not, 2 wrong usage.\n",
        ctl_default_address);
}

/* What stands before the command. Returns where that is, or -EINVAL after a complaint. */
static int read_globals(struct words *out, int count, char **words)
{
    const struct argument_option options[] = {{"config", &out->file, NULL, 'c'},
                                              {"control", &out->control, NULL, 0},
                                              {"token", &out->token, NULL, 0},
                                              {"help", NULL, &out->help, 'h'},
                                              {0}};
    struct arguments arguments = {.options = options, .command_follows = true};
    int at = arguments_read(&arguments, count, words);

    if (out->help)
        return count;
    if (at < 0 && arguments.fault == ARGUMENT_UNKNOWN)
        return complain(-EINVAL,
                        "unknown option %s; before the command there may be -c FILE, "
                        "--control ADDRESS and --token TOKEN",
                        arguments.wrong);
    if (at < 0)
        return complain(-EINVAL, "%s needs a value", arguments.wrong);
    for (const struct argument_option *option = options; option->name; option++)
        if (option->value && *option->value && !**option->value)
            return complain(-EINVAL, "--%s needs a value", option->name);
    if (out->file && out->control)
        return complain(-EINVAL, "-c and --control exclude each other");
    return at;
}

static int complain_of(const struct arguments *arguments, const struct ctl_command *command)
{
    const char *wrong = arguments->wrong;

    switch (arguments->fault) {
    case ARGUMENT_BARE:
        return complain(-EINVAL, "%s needs a %s", wrong,
                        command->options[arguments->option - arguments->options].value);
    case ARGUMENT_WITH_VALUE:
        return complain(-EINVAL, "--%s takes no value", arguments->option->name);
    case ARGUMENT_ONE_TOO_MANY:
        return complain(-EINVAL, "extra word \"%s\"; usage: nestguard ctl %s", wrong,
                        command->usage);
    case ARGUMENT_UNKNOWN:
        break;
    }
    return complain(-EINVAL, "unknown option %s; usage: nestguard ctl %s", wrong, command->usage);
}

/* What was said of the command's options: one of them, once, at the most. */
static int take_option(struct words *out, const unsigned *given, const char *const *values)
{
    const struct ctl_command *command = out->command;

    for (size_t i = 0; i < CTL_OPTIONS; i++) {
        if (!given[i])
            continue;
        if (given[i] > 1 || out->option)
            return complain(-EINVAL, "usage: nestguard ctl %s", command->usage);
        out->option = &command->options[i];
        out->value = values[i];
        if (out->option->value && !*out->value)
            return complain(-EINVAL, "--%s needs a %s", out->option->name, out->option->value);
    }
    return 0;
}

/* An empty key is a shell variable that was never set, more likely than a key. */
static int check_key(const struct words *words)
{
    if (!words->command->takes_key || (words->key && *words->key))
        return 0;
    return complain(-EINVAL, "%s; usage: nestguard ctl %s",
                    words->key ? "the key is empty" : "KEY is missing", words->command->usage);
}

/* Reads words[0], the command, and what follows it. 0, or -EINVAL after a complaint. */
static int read_arguments(struct words *out, int count, char **words)
{
    const struct ctl_command *command = out->command;
    const char *values[CTL_OPTIONS] = {0};
    unsigned given[CTL_OPTIONS] = {0};
    struct argument_option options[CTL_OPTIONS + 2] = {0};
    struct arguments arguments = {
        .options = options, .plain = &out->key, .most = command->takes_key ? 1 : 0};
    size_t own = 0;

    for (; own < CTL_OPTIONS && command->options[own].name; own++)
        options[own] = (struct argument_option){command->options[own].name,
                                                command->options[own].value ? &values[own] : NULL,
                                                &given[own], 0};
    options[own] = (struct argument_option){"help", NULL, &out->help, 'h'};
    int code = arguments_read(&arguments, count, words);
    if (out->help)
        return 0;
    if (code < 0)
        return complain_of(&arguments, command);
    code = take_option(out, given, values);
    return code ? code : check_key(out);
}

static int read_command(struct words *out, const char *name)
{
    for (size_t i = 0; i < ctl_command_count; i++) {
        if (strcmp(ctl_commands[i].name, name) == 0) {
            out->command = &ctl_commands[i];
            return 0;
        }
    }
    fprintf(stderr, "nestguard ctl: unknown command %s; there are", name);
    for (size_t i = 0; i < ctl_command_count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", ctl_commands[i].name);
    fputc('\n', stderr);
    return -EINVAL;
}

/* Reads words[0], "ctl", and what follows it. 0 with out->help or out->command set, or -EINVAL
 * after a complaint. */
static int read_words(struct words *out, int count, char **words)
{
    int at = read_globals(out, count, words);

    if (at < 0 || out->help)
        return at < 0 ? at : 0;
    if (at == count) {
        print_usage(stderr);
        return -EINVAL;
    }
    if (read_command(out, words[at]) < 0)
        return -EINVAL;
    return read_arguments(out, count - at, words + at);
}

/* A token is part of a header line. */
static bool is_token(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* A new string: path and query of the call. */
static char *target_of(const struct words *words)
{
    const struct ctl_option *option = words->option;
    char *key = http_target_escape(span_of(words->key ? words->key : ""));
    char *value = http_target_escape(span_of(option && option->value ? words->value : ""));
    bool queries = option && option->query;
    char *target = xasprintf("%s%s%s%s%s", words->command->path, key, queries ? "?" : "",
                             queries ? option->query : "", value);

    free(value);
    free(key);
    return target;
}

/* False: as JSON. */
static bool print_for_people(const struct words *words, const struct ctl_answer *answer)
{
    const char *option = words->option ? words->option->name : NULL;
    json_t *body;

    if (!words->command->print || (option && !strcmp(option, "json")))
        return false;
    body = json_loadb(answer->body, answer->length, JSON_ALLOW_NUL, NULL);
    if (body)
        words->command->print(body, option, stdout);
    json_decref(body);
    return body;
}

/* JSON for people; other text as it is. */
static void print_body(const struct ctl_answer *answer, FILE *out)
{
    json_t *body = json_loadb(answer->body, answer->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    if (body) {
        json_dumpf(body, out, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        json_decref(body);
    } else {
        fwrite(answer->body, 1, answer->length, out);
    }
    if (body || (answer->length > 0 && answer->body[answer->length - 1] != '\n'))
        fputc('\n', out);
}

/* The guard's words are those of its HTTP calls; what helps is said in those of the command line.
 */
static void print_advice(const struct words *words, long status)
{
    if (status == 401)
        fputs("The token is taken from --token, from the configuration that -c names, or from "
              "NESTGUARD_TOKEN.\n",
              stderr);
    if (status == 409 && !strcmp(words->command->name, "delete") && !words->option)
        fputs("If the row is there: --row deletes it, too; --block DURATION refuses the key for "
              "that time although the row is there.\n",
              stderr);
}

/* The guard's own words, and what else it has to say. */
static int print_refusal(const struct words *words, const struct ctl_answer *answer)
{
    json_t *body = json_loadb(answer->body, answer->length, JSON_ALLOW_NUL, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));

    if (error)
        complain(EXIT_REFUSED, "%s", error);
    else
        complain(EXIT_REFUSED, "the guard answered with status %ld", answer->status);
    print_advice(words, answer->status);
    if (!error || json_object_size(body) > 1)
        print_body(answer, stderr);
    json_decref(body);
    return EXIT_REFUSED;
}

static int print_answer(const struct words *words, const struct ctl_answer *answer)
{
    if (answer->status < 200 || answer->status > 299)
        return print_refusal(words, answer);
    if (answer->length == 0)
        puts("done");
    else if (!print_for_people(words, answer))
        print_body(answer, stdout);
    if (fflush(stdout) != 0)
        return complain(EXIT_REFUSED, "the answer could not be written: %s", strerror(errno));
    return EXIT_DONE;
}

static int call(const struct words *words, const struct address *address, const char *token)
{
    struct ctl_call request = {address, token, words->command->method, NULL};
    struct ctl_answer answer;
    char *target, *error = NULL;
    int status;

    if (token && !is_token(token))
        return complain(EXIT_USAGE, "a token has no blanks, control or non-ASCII characters");
    target = target_of(words);
    request.target = target;
    if (ctl_call(&answer, &request, &error) < 0) {
        status = complain(EXIT_REFUSED, "%s", error);
        free(error);
    } else {
        status = print_answer(words, &answer);
        ctl_answer_finish(&answer);
    }
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
static int call_configured(const struct words *words)
{
    struct problems problems = {0};
    struct config *config = NULL;
    int status;

    if (config_load(&config, words->file, &problems) < 0) {
        problems_print(&problems, stderr);
        status = complain(EXIT_REFUSED, "the configuration cannot be used");
    } else if (!config->has_control) {
        status =
            complain(EXIT_REFUSED, "%s has no `control`: the control port is off", words->file);
    } else {
        status = call(words, &config->control, token_from(words->token, config->control_token));
    }
    config_destroy(config);
    problems_finish(&problems);
    return status;
}

/* Without -c and --control: the address of the sample configuration. */
static int call_address(const struct words *words)
{
    const char *text = words->control ? words->control : ctl_default_address;
    struct address address;
    const char *error;
    int status;

    if (address_parse(&address, text, &error) < 0)
        return complain(EXIT_USAGE, "--control %s: %s", text, error);
    status = call(words, &address, token_from(words->token, NULL));
    address_finish(&address);
    return status;
}

int ctl_main(int argc, char **argv)
{
    struct words words = {0};

    if (read_words(&words, argc, argv) < 0)
        return EXIT_USAGE;
    if (words.help) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    return words.file ? call_configured(&words) : call_address(&words);
}
