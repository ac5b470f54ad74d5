#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/ctl.h"
#include "fakes/control_port.h"

#include <fcntl.h>

/* What a run printed. */
static char output[64 * 1024], errors[64 * 1024];
static struct stub *stub;
static char address[128];

static int begin(int family, const char *token)
{
    unsetenv("NESTGUARD_TOKEN");
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    stub = stub_start(family, token);
    if (stub->path[0])
        snprintf(address, sizeof(address), "unix:%s", stub->path);
    else
        snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)stub->port);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return begin(AF_INET, NULL);
}

static int start_with_token(void **state)
{
    (void)state;
    return begin(AF_INET, "s3cret");
}

static int start_unix(void **state)
{
    (void)state;
    return begin(AF_UNIX, NULL);
}

static int finish(void **state)
{
    (void)state;
    stub_finish(stub);
    return 0;
}

/* Points a standard stream at an unnamed file. Returns where it pointed. */
static int capture(FILE *stream)
{
    FILE *file = tmpfile();
    int old = dup(fileno(stream));

    must(file && old >= 0 && fflush(stream) == 0);
    must(dup2(fileno(file), fileno(stream)) >= 0);
    fclose(file);
    return old;
}

static void restore(FILE *stream, int old, char *text, size_t size)
{
    ssize_t got;

    fflush(stream);
    got = pread(fileno(stream), text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    dup2(old, fileno(stream));
    close(old);
}

/* Runs the words as a command line, up to NULL. Returns the exit status. */
static int run_words(char *const *words)
{
    char *copy[32] = {(char *)"ctl"};
    int count = 1, out, err, status;

    while (words[count - 1])
        count++;
    memcpy(copy + 1, words, (size_t)count * sizeof(copy[0]));
    out = capture(stdout);
    err = capture(stderr);
    status = ctl_main(count, copy);
    restore(stdout, out, output, sizeof(output));
    restore(stderr, err, errors, sizeof(errors));
    return status;
}

#define run(...) run_words((char *[]){__VA_ARGS__, NULL})
#define call(...) run((char *)"--control", address, __VA_ARGS__)

static void assert_errors_have(const char *text)
{
    if (!strstr(errors, text))
        fail_msg("\"%s\" is not in: %s", text, errors);
}

static void an_answer_is_printed_for_people(void **state)
{
    (void)state;
    assert_int_equal(call("health"), 0);
    assert_string_equal(output, "now\n");
    assert_int_equal(call("explain", "item:1"), 0);
    assert_string_equal(output, "{\n  \"key\": \"6974656d3a31\",\n  \"q\": null,\n"
                                "  \"rate\": 0.1\n}\n");
    assert_int_equal(call("rebuild"), 0);
    assert_string_equal(output, "{\n  \"when\": \"later\"\n}\n");
    assert_int_equal(call("delete", "item:1", "--row"), 0);
    assert_string_equal(output, "done\n");
    assert_string_equal(errors, "");
}

static void a_key_of_any_bytes_arrives_whole(void **state)
{
    static char *const keys[][2] = {
        {"a/b?c=d&e#f%25 g+h", "612f623f633d6426652366253235"
                               "20672b68"},
        {"..", "2e2e"},
        {"../../metrics", "2e2e2f2e2e2f6d657472696373"},
        {"\xff\xc3\xa9\x01\n", "ffc3a9010a"},
        {"-", "2d"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_int_equal(call("explain", keys[i][0]), 0);
        if (!strstr(output, keys[i][1]))
            fail_msg("%s is not in %s", keys[i][1], output);
    }
    assert_int_equal(call("explain", "--", "--row"), 0);
    assert_non_null(strstr(output, "\"2d2d726f77\""));
}

static void options_become_the_query(void **state)
{
    (void)state;
    assert_int_equal(call("admit", "k", "--for", "5m&x"), 0);
    assert_non_null(strstr(output, "\"for\": \"5m&x\""));
    assert_int_equal(call("admit", "--for=7m", "k"), 0);
    assert_non_null(strstr(output, "\"for\": \"7m\""));
    assert_int_equal(call("admit", "k"), 0);
    assert_non_null(strstr(output, "\"for\": null"));
    assert_int_equal(call("delete", "--block", "10m", "--", "k"), 0);
    assert_int_equal(call("delete", "k", "--block", "11m"), 1);
}

static void a_refusal_says_what_the_guard_said(void **state)
{
    (void)state;
    assert_int_equal(call("delete", "item:1"), 1);
    assert_string_equal(output, "");
    assert_string_equal(errors,
                        "nestguard ctl: the row is there: \\xff\n"
                        "If the row is there: --row deletes it, too; --block DURATION refuses the "
                        "key for that time although the row is there.\n");
    assert_int_equal(call("ready"), 1);
    assert_string_equal(output, "");
    assert_string_equal(errors, "nestguard ctl: the guard answered with status 503\n"
                                "{\n  \"items\": \"loading\"\n}\n");
    assert_int_equal(call("status"), 1);
    assert_errors_have("nestguard ctl: there is no such call");
    assert_errors_have("\"/v1/rebuild\"");
}

static void the_guard_learns_who_calls(void **state)
{
    char host[200] = "";

    (void)state;
    gethostname(host, sizeof(host) - 1);
    assert_int_equal(call("admit", "k"), 0);
    assert_int_equal(stub->logged, 1);
    assert_non_null(strstr(stub->log[0], host));
    assert_non_null(strstr(stub->log[0], ") | PUT /v1/keys/k 201"));
    assert_memory_equal(stub->log[0], stub->path[0] ? "uid" : "127", 3);
}

static void the_token_comes_from_the_words_or_the_environment(void **state)
{
    (void)state;
    assert_int_equal(call("rebuild"), 1);
    assert_errors_have("nestguard ctl: this call needs");
    assert_errors_have("NESTGUARD_TOKEN");
    assert_int_equal(call("--token", "wrong", "rebuild"), 1);
    assert_int_equal(call("--token", "s3cret", "rebuild"), 0);
    assert_int_equal(call("--token=s3cret", "rebuild"), 0);
    setenv("NESTGUARD_TOKEN", "s3cret", 1);
    assert_int_equal(call("rebuild"), 0);
    assert_int_equal(call("--token", "wrong", "rebuild"), 1);
    assert_int_equal(call("--token", "a\r\nX: y", "rebuild"), 2);
    assert_int_equal(call("health"), 0);
}

static void where_nothing_listens_it_says_what_to_check(void **state)
{
    (void)state;
    assert_int_equal(run("--control", "127.0.0.1:1", "health"), 1);
    assert_string_equal(errors, "nestguard ctl: nothing answers at 127.0.0.1:1 (Connection "
                                "refused): is nestguard running, and is its `control` setting "
                                "this address?\n");
    assert_int_equal(run("--control", "[::1]:1", "health"), 1);
    assert_errors_have("nothing answers at [::1]:1");
    assert_int_equal(run("--control", "unix:/nonexistent/socket", "health"), 1);
    assert_errors_have("nothing answers at unix:/nonexistent/socket");
    assert_errors_have("No such file or directory");
}

static void wrong_usage_is_told_what_is_allowed(void **state)
{
    static const struct {
        char *words[6];
        const char *error;
    } wrong[] = {
        {{NULL}, "usage: nestguard ctl"},
        {{"--control", NULL}, "--control needs a value"},
        {{"--token=", NULL}, "--token needs a value"},
        {{"-x", "status", NULL}, "unknown option -x; before the command"},
        {{"--conf", "file", "status", NULL}, "unknown option --conf"},
        {{"stat", NULL},
         "unknown command stat; there are status, top, attack, metrics, health, ready, "
         "guarding"},
        {{"", NULL}, "unknown command ; there are"},
        {{"-c", "a", "--control", "b", "status", NULL}, "exclude each other"},
        {{"--control", "nonsense", "status", NULL}, "--control nonsense: "},
        {{"status", "now", NULL}, "extra word \"now\"; usage: nestguard ctl status"},
        {{"status", "--row", NULL}, "unknown option --row; usage: nestguard ctl status"},
        {{"status", "--watch", NULL}, "--watch needs a number of SECONDS"},
        {{"status", "--watch", "x", NULL}, "--watch needs seconds, 0.1 to 86400; \"x\" is not"},
        {{"status", "--watch=0", NULL}, "--watch needs seconds"},
        {{"status", "--json", "--table", NULL}, "usage: nestguard ctl status [--json | --table]"},
        {{"rebuild", "--watch", "1", NULL}, "unknown option --watch"},
        {{"top", "--watch", "1", NULL}, "unknown option --watch"},
        {{"explain", NULL}, "KEY is missing; usage: nestguard ctl explain KEY"},
        {{"explain", "", NULL}, "KEY is empty; usage: nestguard ctl explain KEY"},
        {{"push", NULL}, "KEYSPACE is missing; usage: nestguard ctl push KEYSPACE [FILE | -]"},
        {{"push", "", NULL}, "KEYSPACE is empty"},
        {{"push", "a", "b", "c", NULL}, "extra word \"c\""},
        {{"explain", "a", "b", NULL}, "extra word \"b\""},
        {{"explain", "--", "a", "--", NULL}, "extra word \"--\""},
        {{"admit", "k", "--for", NULL}, "--for needs a DURATION"},
        {{"admit", "k", "--for", "", NULL}, "--for needs a DURATION"},
        {{"admit", "k", "--for=", NULL}, "--for needs a DURATION"},
        {{"admit", "k", "--row", NULL}, "unknown option --row; usage: nestguard ctl admit KEY"},
        {{"delete", "k", "--ro", NULL}, "unknown option --ro"},
        {{"delete", "k", "--row=yes", NULL}, "--row takes no value"},
        {{"delete", "k", "--row", "--row", NULL}, "usage: nestguard ctl delete KEY [--row |"},
        {{"delete", "k", "--row", "--block=1m", NULL}, "usage: nestguard ctl delete KEY [--row |"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(run_words(wrong[i].words), 2);
        assert_string_equal(output, "");
        assert_errors_have(wrong[i].error);
    }
}

static void help_shows_every_command(void **state)
{
    static const char *const names[] = {"status [--json | --table]",
                                        "top",
                                        "metrics",
                                        "health",
                                        "ready",
                                        "guarding",
                                        "explain KEY",
                                        "admit KEY [--for DURATION]",
                                        "delete KEY [--row | --block DURATION]",
                                        "push KEYSPACE [FILE | -]",
                                        "rebuild"};

    (void)state;
    assert_int_equal(run("--help"), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_non_null(strstr(output, names[i]));
    assert_string_equal(errors, "");
    assert_int_equal(run("delete", "--help"), 0);
    assert_non_null(strstr(output, "usage:"));
}

/* A configuration file for the stub; its name is a new string. */
static char *write_configuration(const char *lines)
{
    char *name = NULL;
    FILE *file;

    must(asprintf(&name, "/tmp/nestguard-ctl-%d.yaml", (int)getpid()) > 0);
    file = fopen(name, "w");
    must(file != NULL);
    fprintf(file,
            "listen: [127.0.0.1:6380]\ncache: redis://127.0.0.1:6379/0\n"
            "database: postgresql://127.0.0.1:5432/shop\nsync: none\n%s"
            "keyspaces:\n  - name: items\n    key: \"item:{id}\"\n    table: public.items\n"
            "    value: payload\n",
            lines);
    fclose(file);
    return name;
}

static int run_configured(const char *lines, char *token)
{
    char *name = write_configuration(lines);
    int status = token ? run("-c", name, "--token", token, "rebuild") : run("-c", name, "rebuild");

    unlink(name);
    free(name);
    return status;
}

static void the_configuration_knows_address_and_token(void **state)
{
    char lines[256];

    (void)state;
    snprintf(lines, sizeof(lines), "control: %s\ncontrol_token: s3cret\n", address);
    assert_int_equal(run_configured(lines, NULL), 0);
    assert_int_equal(run_configured(lines, (char *)"wrong"), 1);
    assert_int_equal(run_configured("", NULL), 1);
    assert_errors_have("the control port is off");
    assert_errors_have("`nestguard ctl --control ADDRESS rebuild` asks");
    assert_int_equal(run_configured("control: 1\nmistake: 2\n", NULL), 1);
    assert_errors_have("mistake");
    assert_errors_have("`nestguard ctl --control ADDRESS rebuild` asks");
    assert_int_equal(run("-c", "/nonexistent.yaml", "rebuild"), 1);
    assert_errors_have("/nonexistent.yaml");
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, start, finish)
#define TOKEN(test) cmocka_unit_test_setup_teardown(test, start_with_token, finish)
#define UNIX(test) cmocka_unit_test_setup_teardown(test, start_unix, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(an_answer_is_printed_for_people),
        UNIX(an_answer_is_printed_for_people),
        PLAIN(a_key_of_any_bytes_arrives_whole),
        PLAIN(options_become_the_query),
        PLAIN(a_refusal_says_what_the_guard_said),
        PLAIN(the_guard_learns_who_calls),
        UNIX(the_guard_learns_who_calls),
        TOKEN(the_token_comes_from_the_words_or_the_environment),
        cmocka_unit_test(where_nothing_listens_it_says_what_to_check),
        cmocka_unit_test(wrong_usage_is_told_what_is_allowed),
        cmocka_unit_test(help_shows_every_command),
        TOKEN(the_configuration_knows_address_and_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
