#include "base/text/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct address parsed(const char *text)
{
    struct address address;
    const char *error = NULL;
    if (address_parse(&address, text, &error) != 0)
        fail_msg("\"%s\" was refused: %s", text, error);
    assert_string_equal(address.text, text);
    return address;
}

static void check_tcp(const char *text, const char *host, unsigned port)
{
    struct address address = parsed(text);
    assert_string_equal(address.host, host);
    assert_int_equal(address.port, port);
    assert_null(address.path);
    address_finish(&address);
}

static void a_tcp_address_is_host_and_port(void **state)
{
    (void)state;
    check_tcp("127.0.0.1:6380", "127.0.0.1", 6380);
    check_tcp("0.0.0.0:1", "0.0.0.0", 1);
    check_tcp("localhost:65535", "localhost", 65535);
    check_tcp("cache-1.example_x.org:6379", "cache-1.example_x.org", 6379);
    check_tcp("[::1]:6380", "::1", 6380);
    check_tcp("[fe80::1%eth0]:6380", "fe80::1%eth0", 6380);
    check_tcp("[::]:06380", "::", 6380);
}

static void a_unix_address_is_an_absolute_path(void **state)
{
    (void)state;
    struct address address = parsed("unix:/run/nestguard.sock");
    assert_string_equal(address.path, "/run/nestguard.sock");
    assert_null(address.host);
    address_finish(&address);
    address_finish(&address);
}

static void mistakes_in_addresses_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } rows[] = {{"", "HOST:PORT"},
                {"localhost", "HOST:PORT"},
                {"6380", "HOST:PORT"},
                {":6380", "host is missing"},
                {"127.0.0.1:", "1 to 65535"},
                {"127.0.0.1:0", "1 to 65535"},
                {"127.0.0.1:65536", "1 to 65535"},
                {"127.0.0.1:99999999999999999999", "1 to 65535"},
                {"127.0.0.1:-1", "1 to 65535"},
                {"127.0.0.1: 80", "1 to 65535"},
                {"127.0.0.1:redis", "1 to 65535"},
                {"127.0.0.300:80", "not an IPv4"},
                {"127.0.0:80", "not an IPv4"},
                {"::1:6380", "brackets"},
                {"[::1]6380", "HOST:PORT"},
                {"[::1:6380", "HOST:PORT"},
                {"[]:6380", "not an IPv6"},
                {"[127.0.0.1]:6380", "not an IPv6"},
                {"[::g]:6380", "not an IPv6"},
                {"http://127.0.0.1:6390", "brackets"},
                {"user@host:6390", "name or an address"},
                {"a b:6390", "name or an address"},
                {"unix:nestguard.sock", "absolute"},
                {"unix:", "absolute"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct address address;
        const char *error = "";
        if (address_parse(&address, rows[i].text, &error) != -EINVAL)
            fail_msg("\"%s\" was accepted", rows[i].text);
        if (!strstr(error, rows[i].reason))
            fail_msg("\"%s\": %s", rows[i].text, error);
        assert_null(address.text);
    }
}

static void overlong_paths_and_names_are_refused(void **state)
{
    (void)state;
    char text[400] = "unix:/";
    const char *error = "";
    struct address address;
    memset(text + 6, 'x', 106); /* a path of 107 bytes */
    assert_int_equal(address_parse(&address, text, &error), 0);
    address_finish(&address);
    text[112] = 'x';
    assert_int_equal(address_parse(&address, text, &error), -EINVAL);
    assert_non_null(strstr(error, "107"));
    memset(text, 'x', 300);
    strcpy(text + 300, ":80");
    assert_int_equal(address_parse(&address, text, &error), -EINVAL);
}

static void check_local(const char *text, bool wanted)
{
    struct address address = parsed(text);
    if (address_is_local(&address) != wanted)
        fail_msg("%s", text);
    address_finish(&address);
}

static void only_loopback_and_unix_sockets_are_local(void **state)
{
    (void)state;
    check_local("127.0.0.1:1", true);
    check_local("127.255.3.4:1", true);
    check_local("[::1]:1", true);
    check_local("[::ffff:127.0.0.1]:1", true);
    check_local("LocalHost:1", true);
    check_local("unix:/tmp/x", true);
    check_local("0.0.0.0:1", false);
    check_local("[::]:1", false);
    check_local("10.0.0.1:1", false);
    check_local("128.0.0.1:1", false);
    check_local("[::ffff:10.0.0.1]:1", false);
    check_local("localhost.example.org:1", false);
    check_local("127.example.org:1", false);
}

static bool equal(const char *a_text, const char *b_text)
{
    struct address a = parsed(a_text), b = parsed(b_text);
    bool answer = address_equal(&a, &b);
    assert_int_equal(address_equal(&b, &a), answer);
    address_finish(&a);
    address_finish(&b);
    return answer;
}

static void addresses_are_equal_by_meaning(void **state)
{
    (void)state;
    assert_true(equal("127.0.0.1:1", "127.0.0.1:01"));
    assert_true(equal("Host:1", "hOST:1"));
    assert_true(equal("unix:/a", "unix:/a"));
    assert_false(equal("unix:/a", "unix:/A"));
    assert_false(equal("unix:/a", "a:1"));
    assert_false(equal("127.0.0.1:1", "127.0.0.1:2"));
    assert_false(equal("127.0.0.1:1", "127.0.0.2:1"));
    assert_false(equal("127.0.0.1:1", "tls:127.0.0.1:1"));
    assert_true(equal("tls:127.0.0.1:1", "tls:127.0.0.1:1"));
    assert_true(address_equal(&(struct address){0}, &(struct address){0}));
}

static void what_is_spoken_there_makes_no_other_place(void **state)
{
    struct address plain = parsed("127.0.0.1:1"), encrypted = parsed("tls:127.0.0.1:1");
    struct address elsewhere = parsed("tls:127.0.0.1:2");
    (void)state;
    assert_true(address_same_place(&plain, &encrypted));
    assert_false(address_same_place(&elsewhere, &encrypted));
    address_finish(&plain);
    address_finish(&encrypted);
    address_finish(&elsewhere);
}

/* Listening, on ports that the system chooses (port 0). */

static uint16_t port_of(int fd)
{
    struct sockaddr_in6 at;
    socklen_t length = sizeof at;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    return ntohs(at.sin6_port); /* at the same place in both families */
}

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static struct address loopback(uint16_t port)
{
    return (struct address){.host = (char *)"127.0.0.1", .port = port};
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    int status = connect(fd, (struct sockaddr *)&to, sizeof to) ? -errno : 0;
    close(fd);
    return status;
}

static void workers_share_a_port(void **state)
{
    (void)state;
    struct address any = loopback(0);
    int fds[3];
    assert_int_equal(address_listen(&any, fds, 3), 0);
    uint16_t port = port_of(fds[0]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(port_of(fds[i]), port);
        assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(connect_to(port), -ECONNREFUSED); /* bound, not yet listening */
    for (int i = 0; i < 3; i++)
        assert_int_equal(listen(fds[i], 1), 0);
    assert_int_equal(connect_to(port), 0);
    close_all(fds, 3);
}

/* Whoever else is at work on the machine may have a port that was free a moment ago. */
enum { TRIES = 20 };

/* What comes of the port when the strangers are gone. */
static int meet_strangers(void)
{
    struct address any = loopback(0);
    int first[2], second[2];
    assert_int_equal(address_listen(&any, first, 2), 0);
    struct address same = loopback(port_of(first[0]));
    assert_int_equal(listen(first[0], 1), 0);
    assert_int_equal(listen(first[1], 1), 0);
    assert_int_equal(address_listen(&same, second, 2), -EADDRINUSE);
    assert_int_equal(address_listen(&same, second, 1), -EADDRINUSE);
    close_all(first, 2);
    int status = address_listen(&same, second, 2);
    if (!status)
        close_all(second, 2);
    return status;
}

static void a_stranger_on_the_port_is_found_although_it_would_share(void **state)
{
    (void)state;
    int status = meet_strangers();
    for (int i = 1; i < TRIES && status == -EADDRINUSE; i++)
        status = meet_strangers();
    assert_int_equal(status, 0);
}

static void names_are_resolved_and_unknown_ones_refused(void **state)
{
    (void)state;
    struct address local = {.host = (char *)"localhost"};
    struct address unknown = {.host = (char *)"no-such-host.invalid"};
    int fd;
    assert_int_equal(address_listen(&local, &fd, 1), 0);
    close(fd);
    assert_int_equal(address_listen(&unknown, &fd, 1), -EADDRNOTAVAIL);
}

static int listen_beside_ipv6(int fd)
{
    int fd4, only = 0;
    socklen_t length = sizeof only;
    assert_int_equal(getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length), 0);
    assert_int_equal(only, 1);
    struct address four = {.host = (char *)"0.0.0.0", .port = port_of(fd)};
    assert_int_equal(listen(fd, 1), 0);
    int status = address_listen(&four, &fd4, 1);
    if (!status)
        close(fd4);
    return status;
}

static void ipv6_leaves_ipv4_alone(void **state)
{
    (void)state;
    struct address six = {.host = (char *)"::"};
    int fd, beside = -EADDRINUSE;
    for (int i = 0; i < TRIES && beside == -EADDRINUSE; i++) {
        int status = address_listen(&six, &fd, 1);
        if (status == -EAFNOSUPPORT || status == -EADDRNOTAVAIL)
            skip(); /* a machine without IPv6 */
        assert_int_equal(status, 0);
        beside = listen_beside_ipv6(fd);
        close(fd);
    }
    assert_int_equal(beside, 0);
}

/* A directory for sockets; *state is its name. */
static int make_directory(void **state)
{
    char name[] = "/tmp/nestguard-test-XXXXXX";
    *state = mkdtemp(name) ? strdup(name) : NULL;
    return *state ? 0 : -1;
}

static int remove_directory(void **state)
{
    char path[100];
    snprintf(path, sizeof path, "%s/s", (char *)*state);
    unlink(path);
    int status = rmdir(*state);
    free(*state);
    return status;
}

static struct address in_directory(void **state, char path[100])
{
    snprintf(path, 100, "%s/s", (char *)*state);
    return (struct address){.path = path};
}

static void workers_share_a_unix_socket(void **state)
{
    char path[100];
    struct address address = in_directory(state, path);
    int fds[2], other;
    assert_int_equal(address_listen(&address, fds, 2), 0);
    assert_int_equal(listen(fds[0], 1), 0);
    struct stat a, b;
    fstat(fds[0], &a);
    fstat(fds[1], &b);
    assert_int_equal(a.st_ino, b.st_ino);
    assert_true(fcntl(fds[1], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fds[1], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(address_listen(&address, &other, 1), -EADDRINUSE);
    close_all(fds, 2);
}

static void an_abandoned_unix_socket_is_replaced(void **state)
{
    char path[100];
    struct address address = in_directory(state, path);
    int fd;
    assert_int_equal(address_listen(&address, &fd, 1), 0);
    close(fd);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(address_listen(&address, &fd, 1), 0);
    close(fd);
}

static void a_full_queue_still_counts_as_in_use(void **state)
{
    char path[100];
    struct address address = in_directory(state, path);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd, other, clients[8];
    strcpy(to.sun_path, path);
    assert_int_equal(address_listen(&address, &fd, 1), 0);
    assert_int_equal(listen(fd, 0), 0);
    for (int i = 0; i < 8; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(clients[i], (struct sockaddr *)&to, sizeof to))
            assert_int_equal(errno, EAGAIN);
    }
    assert_int_equal(address_listen(&address, &other, 1), -EADDRINUSE);
    close_all(clients, 8);
    close(fd);
}

static void other_files_are_never_replaced(void **state)
{
    char path[100];
    struct address address = in_directory(state, path);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(address_listen(&address, &fd, 1), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/nowhere", path), 0);
    assert_int_equal(address_listen(&address, &fd, 1), -EEXIST);
    assert_int_equal(unlink(path), 0);

    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strcpy(at.sun_path, path);
    int datagram = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(datagram, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(address_listen(&address, &fd, 1), -EEXIST);
    close(datagram);
}

static void a_missing_directory_is_an_error(void **state)
{
    (void)state;
    struct address address = {.path = (char *)"/nonexistent-directory/s"};
    int fd;
    assert_int_equal(address_listen(&address, &fd, 1), -ENOENT);
}

static bool leads(const char *to, const char *at)
{
    struct address from = parsed(to), listener = parsed(at);
    bool does = address_leads_to(&from, &listener);
    address_finish(&from);
    address_finish(&listener);
    return does;
}

static void other_spellings_of_a_place_lead_there(void **state)
{
    (void)state;
    assert_true(leads("localhost:1", "127.0.0.1:1"));
    assert_true(leads("127.0.0.1:1", "tls:localhost:1"));
    assert_true(leads("[0:0::1]:1", "[::1]:1"));
    assert_true(leads("localhost:1", "0.0.0.0:1"));
    assert_true(leads("127.0.0.9:1", "0.0.0.0:1"));
    assert_true(leads("0.0.0.0:1", "127.0.0.1:1"));
    assert_true(leads("[::1]:1", "[::]:1"));
}

static void other_places_do_not_lead_there(void **state)
{
    (void)state;
    assert_false(leads("localhost:2", "127.0.0.1:1"));
    assert_false(leads("127.0.0.2:1", "127.0.0.1:1"));
    assert_false(leads("192.0.2.7:1", "0.0.0.0:1"));
    assert_false(leads("[2001:db8::7]:1", "[::]:1"));
    assert_false(leads("127.0.0.1:1", "[::]:1"));
    assert_false(leads("0.0.0.0:1", "192.0.2.7:1"));
    assert_false(leads("no-such-name.invalid:1", "0.0.0.0:1"));
    assert_false(leads("unix:/run/a", "127.0.0.1:1"));
    assert_false(leads("unix:/run/a", "unix:/run/b"));
}

static void a_socket_is_the_same_by_each_of_its_names(void **state)
{
    char path[200], link[210], to[220], at[220];
    snprintf(path, sizeof path, "%s/socket", (const char *)*state);
    snprintf(link, sizeof link, "%s/link", (const char *)*state);
    snprintf(to, sizeof to, "unix:%s", link);
    snprintf(at, sizeof at, "unix:%s", path);
    assert_false(leads(to, at));
    close(creat(path, 0600));
    assert_int_equal(symlink(path, link), 0);
    assert_true(leads(to, at));
    unlink(link);
    unlink(path);
}

#define unix_test(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

/* ---- where somebody is ---- */

static void check_network(const char *address, const char *wanted)
{
    char network[ADDRESS_NETWORK_SIZE];
    address_network(address, network);
    assert_string_equal(network, wanted);
}

static void a_network_of_ipv6_is_one_place(void **state)
{
    (void)state;
    check_network("[2001:db8:0:1::1]", "[2001:db8:0:1::]/64");
    check_network("[2001:db8:0:1:8000::2]", "[2001:db8:0:1::]/64");
    check_network("[2001:db8:0:2::1]", "[2001:db8:0:2::]/64");
    check_network("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]", "[ffff:ffff:ffff:ffff::]/64");
    check_network("[fe80::1%eth0]", "[fe80::]/64");
}

static void any_other_address_is_one_place(void **state)
{
    char name[1000], first[ADDRESS_NETWORK_SIZE] = {0};
    (void)state;
    check_network("192.0.2.1", "192.0.2.1");
    check_network("[::ffff:192.0.2.1]", "192.0.2.1");
    check_network("[::1]", "[::1]");
    check_network("unix", "unix");
    check_network("", "");
    check_network("[", "[");
    check_network("[]", "[]");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memset(first, 'x', sizeof first - 1);
    check_network(name, first);
    name[0] = first[0] = '[';
    check_network(name, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tcp_address_is_host_and_port),
        cmocka_unit_test(a_unix_address_is_an_absolute_path),
        cmocka_unit_test(mistakes_in_addresses_are_explained),
        cmocka_unit_test(overlong_paths_and_names_are_refused),
        cmocka_unit_test(only_loopback_and_unix_sockets_are_local),
        cmocka_unit_test(addresses_are_equal_by_meaning),
        cmocka_unit_test(what_is_spoken_there_makes_no_other_place),
        cmocka_unit_test(other_spellings_of_a_place_lead_there),
        cmocka_unit_test(other_places_do_not_lead_there),
        unix_test(a_socket_is_the_same_by_each_of_its_names),
        cmocka_unit_test(workers_share_a_port),
        cmocka_unit_test(a_stranger_on_the_port_is_found_although_it_would_share),
        cmocka_unit_test(names_are_resolved_and_unknown_ones_refused),
        cmocka_unit_test(ipv6_leaves_ipv4_alone),
        unix_test(workers_share_a_unix_socket),
        unix_test(an_abandoned_unix_socket_is_replaced),
        unix_test(a_full_queue_still_counts_as_in_use),
        unix_test(other_files_are_never_replaced),
        cmocka_unit_test(a_missing_directory_is_an_error),
        cmocka_unit_test(a_network_of_ipv6_is_one_place),
        cmocka_unit_test(any_other_address_is_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
