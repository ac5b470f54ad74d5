/* How two guards of one file meet, played by two threads, and what the channel between them keeps.
 */
#include "handover/handover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "handover/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKETS = 300 }; /* more than go into one message */

static char *make_file(void)
{
    char *path = strdup("/tmp/nestguard-handover-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

struct asking {
    const char *file;
    int fds[HANDOVER_SOCKETS_MAX];
    unsigned count;
    int channel;
};

static void *ask(void *arg)
{
    struct asking *asking = arg;
    asking->channel = handover_ask(asking->file, asking->fds, &asking->count);
    return NULL;
}

static ino_t file_of(int fd)
{
    struct stat stat;
    assert_int_equal(fstat(fd, &stat), 0);
    return stat.st_ino;
}

/* Of a path without links: there is one name. */
static int listen_at(const char *file)
{
    int fds[HANDOVER_NAMES], names = handover_listen(file, fds);
    assert_true(names <= 1);
    return names == 1 ? fds[0] : names;
}

static void every_socket_is_given(void **state)
{
    (void)state;
    char *file = make_file();
    int given[SOCKETS], listening = listen_at(file), channel;
    struct asking *asking = calloc(1, sizeof *asking);
    pthread_t thread;
    assert_true(listening >= 0);
    for (int i = 0; i < SOCKETS; i++)
        given[i] = socket(AF_INET, SOCK_STREAM, 0);
    asking->file = file;
    pthread_create(&thread, NULL, ask, asking);
    while ((channel = handover_accept(listening)) == -EAGAIN)
        usleep(1000);
    assert_int_equal(handover_peer(channel), getpid());
    assert_int_equal(handover_give(channel, given, SOCKETS), 0);
    pthread_join(thread, NULL);
    assert_true(asking->channel >= 0);
    assert_int_equal(asking->count, SOCKETS);
    for (int i = 0; i < SOCKETS; i++) {
        assert_int_equal(file_of(asking->fds[i]), file_of(given[i]));
        assert_true(fcntl(asking->fds[i], F_GETFD) & FD_CLOEXEC);
        close(asking->fds[i]);
        close(given[i]);
    }
    close(asking->channel);
    close(channel);
    close(listening);
    free(asking);
    unlink(file);
    free(file);
}

/* How many descriptors came. */
static pid_t ask_in_a_process(const char *file)
{
    pid_t process = fork();
    assert_true(process >= 0);
    if (process)
        return process;
    unsigned count = 0;
    int fds[HANDOVER_SOCKETS_MAX];
    _exit(handover_ask(file, fds, &count) >= 0 ? (int)count : 99);
}

static char state_of(pid_t process)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    return strrchr(line, ')')[2];
}

static void wait_state(pid_t process, char wanted)
{
    for (char now; (now = state_of(process)) != wanted; usleep(1000))
        assert_int_not_equal(now, 'Z');
}

/* The system breaks the call off that it was in. */
static void stop_for_a_moment(pid_t process)
{
    wait_state(process, 'S');
    kill(process, SIGSTOP);
    wait_state(process, 'T');
    kill(process, SIGCONT);
}

static void who_asks_may_be_stopped_meanwhile(void **state)
{
    (void)state;
    char *file = make_file();
    int listening = listen_at(file), channel, ended;
    pid_t process = ask_in_a_process(file);
    while ((channel = handover_accept(listening)) == -EAGAIN)
        usleep(1000);
    for (int i = 0; i < 3; i++)
        stop_for_a_moment(process);
    assert_int_equal(handover_give(channel, &listening, 1), 0);
    assert_int_equal(waitpid(process, &ended, 0), process);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 1);
    close(channel);
    close(listening);
    unlink(file);
    free(file);
}

static void nobody_is_there(void **state)
{
    unsigned count;
    int fds[HANDOVER_SOCKETS_MAX];
    (void)state;
    char *file = make_file();
    assert_int_equal(handover_ask(file, fds, &count), -ENOENT);
    unlink(file);
    assert_int_equal(handover_ask(file, fds, &count), -ENOENT);
    assert_int_equal(listen_at(file), -ENOENT);
    free(file);
}

static void one_serves_by_a_file(void **state)
{
    (void)state;
    char *file = make_file(), *other = make_file();
    int first = listen_at(file), second = listen_at(other);
    assert_true(first >= 0 && second >= 0);
    assert_int_equal(listen_at(file), -EADDRINUSE);
    close(first);
    first = listen_at(file);
    assert_true(first >= 0);
    close(first);
    close(second);
    unlink(file);
    unlink(other);
    free(file);
    free(other);
}

/* A directory of releases: r1, r2, and cur, a link to the first. Each has the file. */
struct releases {
    char *root;
    char path[4][80]; /* of the file: in cur, r1, r2, and in cur by another spelling */
};

static void run(const char *what, const char *root)
{
    char command[300];
    snprintf(command, sizeof command, "cd %s && %s", root, what);
    assert_int_equal(system(command), 0);
}

static struct releases make_releases(void)
{
    static const char *const files[] = {"cur/n.yaml", "r1/n.yaml", "r2/n.yaml", ".//cur/./n.yaml"};
    struct releases made = {.root = strdup("/tmp/nestguard-releases-XXXXXX")};
    assert_non_null(mkdtemp(made.root));
    for (int i = 0; i < 4; i++)
        snprintf(made.path[i], sizeof made.path[i], "%s/%s", made.root, files[i]);
    run("mkdir r1 r2 && touch r1/n.yaml r2/n.yaml && ln -s r1 cur", made.root);
    return made;
}

static void remove_releases(struct releases *releases)
{
    run("rm -r cur r1 r2", releases->root);
    rmdir(releases->root);
    free(releases->root);
}

/* Whom a successor by `file` finds: the index of one of these sockets, or -1. */
static int asked_by(const char *file, const int *fds, int count)
{
    pid_t process = ask_in_a_process(file);
    int ended, found = -1, channel = -EAGAIN;
    while (channel < 0 && waitpid(process, &ended, WNOHANG) == 0)
        for (int i = 0; i < count && channel < 0; i++)
            if ((channel = handover_accept(fds[i])) >= 0)
                found = i;
    if (channel < 0)
        return -1;
    close(channel);
    assert_int_equal(waitpid(process, &ended, 0), process);
    return found;
}

static void a_link_that_leads_elsewhere_is_the_same_file(void **state)
{
    (void)state;
    struct releases releases = make_releases();
    int fds[HANDOVER_NAMES];
    assert_int_equal(handover_listen(releases.path[0], fds), 2);
    assert_int_equal(asked_by(releases.path[1], fds, 2), 1);
    assert_int_equal(asked_by(releases.path[2], fds, 2), -1);
    run("ln -sfn r2 cur", releases.root);
    assert_int_equal(asked_by(releases.path[0], fds, 2), 0);
    assert_int_equal(asked_by(releases.path[3], fds, 2), 0);
    close(fds[0]);
    close(fds[1]);
    remove_releases(&releases);
}

/* One that listens by what the file really is, as all once did. */
static void a_guard_that_knows_no_links_is_found(void **state)
{
    (void)state;
    struct releases releases = make_releases();
    int fd = listen_at(releases.path[1]), fds[HANDOVER_NAMES];
    assert_true(fd >= 0);
    assert_int_equal(asked_by(releases.path[0], &fd, 1), 0);
    assert_int_equal(handover_listen(releases.path[0], fds), -EADDRINUSE);
    close(fd);
    assert_int_equal(handover_listen(releases.path[0], fds), 2);
    close(fds[0]);
    close(fds[1]);
    remove_releases(&releases);
}

static void a_path_is_taken_from_where_one_is(void **state)
{
    (void)state;
    struct releases releases = make_releases();
    char before[200];
    assert_non_null(getcwd(before, sizeof before));
    int fds[HANDOVER_NAMES];
    assert_int_equal(handover_listen(releases.path[0], fds), 2);
    assert_int_equal(chdir(releases.root), 0);
    assert_int_equal(asked_by("cur/n.yaml", fds, 2), 0);
    assert_int_equal(asked_by("./r2/../cur/n.yaml", fds, 2), 1);
    assert_int_equal(chdir(before), 0);
    close(fds[0]);
    close(fds[1]);
    remove_releases(&releases);
}

static void who_hangs_up_gives_nothing(void **state)
{
    (void)state;
    char *file = make_file();
    int listening = listen_at(file), channel;
    struct asking *asking = calloc(1, sizeof *asking);
    pthread_t thread;
    asking->file = file;
    pthread_create(&thread, NULL, ask, asking);
    while ((channel = handover_accept(listening)) == -EAGAIN)
        usleep(1000);
    close(channel);
    pthread_join(thread, NULL);
    assert_int_equal(asking->channel, -ECONNRESET);
    assert_int_equal(asking->count, 0);
    close(listening);
    free(asking);
    unlink(file);
    free(file);
}

/* ---- the channel ---- */

struct end {
    uv_loop_t loop;
    struct channel *channel;
    char heard[200];
    size_t bytes;
    bool ended, closes;
};

static void on_frame(void *arg, int kind, struct span bytes)
{
    struct end *end = arg;
    size_t length = strlen(end->heard);
    end->bytes += bytes.length;
    if (length < 100)
        snprintf(end->heard + length, sizeof end->heard - length, "%c%.*s ", kind,
                 (int)(bytes.length < 20 ? bytes.length : 0), bytes.at);
    if (end->closes)
        channel_close(end->channel);
}

static void on_ended(void *arg)
{
    ((struct end *)arg)->ended = true;
}

static const struct channel_events events = {on_frame, on_ended};

static void open_end(struct end *end, int fd)
{
    *end = (struct end){.bytes = 0};
    uv_loop_init(&end->loop);
    assert_int_equal(channel_open(&end->channel, &end->loop, fd, &events, end), 0);
}

static void finish(struct end *end)
{
    uv_run(&end->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&end->loop), 0);
}

static void open_pair(struct end *one, struct end *other)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    open_end(one, fds[0]);
    open_end(other, fds[1]);
}

static void frames_come_whole_and_in_order(void **state)
{
    struct end one, other;
    static char large[1 << 20];
    (void)state;
    open_pair(&one, &other);
    memset(large, 'x', sizeof large);
    channel_send(one.channel, 'a', (struct span){"first", 5});
    channel_send(one.channel, 'b', (struct span){"", 0});
    channel_send(one.channel, 'c', (struct span){large, sizeof large});
    channel_send(one.channel, 'd', (struct span){"last", 4});
    channel_close(one.channel); /* what was sent still leaves */
    while (!other.ended) {
        uv_run(&one.loop, UV_RUN_NOWAIT);
        uv_run(&other.loop, UV_RUN_NOWAIT);
    }
    assert_string_equal(other.heard, "afirst b c dlast ");
    assert_int_equal(other.bytes, 9 + sizeof large);
    assert_false(one.ended);
    finish(&one);
    finish(&other);
}

static void who_does_not_read_keeps_nobody_from_ending(void **state)
{
    static char large[1 << 20];
    int fds[2];
    struct end end;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    open_end(&end, fds[0]);
    channel_send(end.channel, 'a', (struct span){large, sizeof large});
    size_t unsent = channel_unsent(end.channel);
    channel_send(end.channel, 'b', (struct span){"", 0});
    assert_true(channel_unsent(end.channel) > unsent + 50); /* not its five bytes alone */
    channel_close(end.channel);
    finish(&end);
    close(fds[1]);
}

static void an_event_may_close_it(void **state)
{
    struct end one, other;
    (void)state;
    open_pair(&one, &other);
    other.closes = true;
    channel_send(one.channel, 'a', (struct span){"", 0});
    channel_send(one.channel, 'b', (struct span){"", 0});
    while (!one.ended) {
        uv_run(&one.loop, UV_RUN_NOWAIT);
        uv_run(&other.loop, UV_RUN_NOWAIT);
    }
    assert_string_equal(other.heard, "a ");
    assert_false(other.ended);
    finish(&one);
    finish(&other);
}

static void nonsense_ends_it(void **state)
{
    int fds[2];
    struct end end;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    open_end(&end, fds[0]);
    assert_int_equal(write(fds[1], "a\xff\xff\xff\xffmore", 9), 9);
    while (!end.ended)
        uv_run(&end.loop, UV_RUN_ONCE);
    assert_string_equal(end.heard, "");
    finish(&end);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_socket_is_given),
        cmocka_unit_test(who_asks_may_be_stopped_meanwhile),
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(one_serves_by_a_file),
        cmocka_unit_test(a_link_that_leads_elsewhere_is_the_same_file),
        cmocka_unit_test(a_guard_that_knows_no_links_is_found),
        cmocka_unit_test(a_path_is_taken_from_where_one_is),
        cmocka_unit_test(who_hangs_up_gives_nothing),
        cmocka_unit_test(frames_come_whole_and_in_order),
        cmocka_unit_test(who_does_not_read_keeps_nobody_from_ending),
        cmocka_unit_test(an_event_may_close_it),
        cmocka_unit_test(nonsense_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
