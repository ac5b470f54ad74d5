#include "fakes/servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 40, TRIES = 600, PAUSE_US = 50000 };

static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

struct command {
    const char *at[ARGUMENTS_MAX + 1];
    int count;
};

static void add(struct command *command, const char *first, ...)
{
    va_list more;
    va_start(more, first);
    for (const char *word = first; word; word = va_arg(more, const char *)) {
        if (command->count == ARGUMENTS_MAX)
            die("too many arguments");
        command->at[command->count++] = word;
    }
    va_end(more);
}

static pid_t launch(const struct command *command, const char *log)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execvp(command->at[0], (char *const *)command->at);
    _exit(127);
}

static void run(const struct command *command, const char *log)
{
    int status = 0;
    if (waitpid(launch(command, log), &status, 0) < 0 || status != 0)
        die("%s failed, see %s", command->at[0], log);
}

/* Waits for a start-up; false when the server ended instead. */
static int still_runs(struct server *server)
{
    usleep(PAUSE_US);
    if (waitpid(server->pid, NULL, WNOHANG) == 0)
        return 1;
    server->pid = 0;
    return 0;
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int silent_listener(int *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        die("no port: %s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

int free_port(void)
{
    int port;
    close(silent_listener(&port));
    return port;
}

static void make_directory(struct server *server)
{
    const char *base = getenv("TMPDIR");
    memset(server, 0, sizeof *server);
    if (!base || strlen(base) > 40)
        base = "/tmp"; /* the path of a unix socket must be short */
    snprintf(server->dir, sizeof server->dir, "%s/ng-test-XXXXXX", base);
    if (!mkdtemp(server->dir))
        die("mkdtemp %s: %s", server->dir, strerror(errno));
    snprintf(server->log, sizeof server->log, "%s/log", server->dir);
    server->port = free_port();
}

/* PostgreSQL refuses to run as root. */
static void add_user(struct command *command)
{
    if (geteuid() == 0)
        add(command, "setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
            "--pdeathsig=QUIT", NULL);
}

/* The newest version's programs. */
static const char *postgres_bin(const char *program)
{
    static char path[4][256];
    static int turn;
    char *out = path[turn++ % 4];
    glob_t found;
    int best = -1;
    snprintf(out, sizeof path[0], "%s", program);
    if (glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            int version = atoi(found.gl_pathv[i] + strlen("/usr/lib/postgresql/"));
            if (version <= best)
                continue;
            best = version;
            snprintf(out, sizeof path[0], "/usr/lib/postgresql/%d/bin/%s", version, program);
        }
    globfree(&found);
    return out;
}

static void write_file(const struct server *server, const char *name, const char *mode,
                       const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/data/%s", server->dir, name);
    FILE *file = fopen(path, mode);
    if (!file)
        die("%s: %s", path, strerror(errno));
    fputs(text, file);
    fclose(file);
}

/* In the file, and not on the command line, a setting can be changed with ALTER SYSTEM. */
static void write_configuration(const struct server *server)
{
    write_file(server, "pg_hba.conf", "w",
               "host all locked 127.0.0.1/32 scram-sha-256\n"
               "host all all 127.0.0.1/32 trust\n");
    write_file(server, "postgresql.conf", "a", "wal_level = logical\n");
}

static void create_locked_role(const struct server *server)
{
    char conninfo[128];
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server->port);
    PGconn *pq = PQconnectdb(conninfo);
    PGresult *result = PQexec(pq, "CREATE ROLE locked LOGIN PASSWORD 'secret'");
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die("cannot create a role: %s", PQerrorMessage(pq));
    PQclear(result);
    PQfinish(pq);
}

void postgres_create(struct server *server)
{
    char data[96];
    struct command command = {.count = 0};
    make_directory(server);
    if (geteuid() == 0) {
        const struct passwd *user = getpwnam("postgres");
        if (!user || chown(server->dir, user->pw_uid, user->pw_gid) < 0)
            die("PostgreSQL cannot run as root, and there is no user postgres to run it");
    }
    snprintf(data, sizeof data, "%s/data", server->dir);
    add_user(&command);
    add(&command, postgres_bin("initdb"), "-D", data, "-U", "postgres", "-E", "UTF8", "--locale=C",
        "-A", "trust", "--no-sync", "--no-instructions", NULL);
    run(&command, server->log);
    write_configuration(server);
    postgres_start(server);
    create_locked_role(server);
}

void postgres_start(struct server *server)
{
    char data[96], port[16], conninfo[128];
    struct command command = {.count = 0};
    snprintf(data, sizeof data, "%s/data", server->dir);
    snprintf(port, sizeof port, "%d", server->port);
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server->port);
    add_user(&command);
    add(&command, postgres_bin("postgres"), "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "",
        "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_wal_size=64MB", NULL);
    /* After kill -9 its shared memory is in use until the last of its children has gone. */
    for (int i = 0; i < TRIES; i++) {
        if (server->pid == 0)
            server->pid = launch(&command, server->log);
        if (still_runs(server) && PQping(conninfo) == PQPING_OK)
            return;
    }
    die("PostgreSQL does not start, see %s", server->log);
}

void redis_server_create(struct server *server)
{
    make_directory(server);
    redis_server_start(server);
}

static int accepts(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = connect(fd, (struct sockaddr *)&address, sizeof address);
    close(fd);
    return rc == 0;
}

void redis_server_start(struct server *server)
{
    char port[16], path[96];
    struct command command = {.count = 0};
    snprintf(port, sizeof port, "%d", server->port);
    snprintf(path, sizeof path, "%s/redis.sock", server->dir);
    add(&command, "redis-server", "--port", port, "--bind", "127.0.0.1", "--unixsocket", path,
        "--dir", server->dir, "--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
        NULL);
    server->pid = launch(&command, server->log);
    for (int i = 0; i < TRIES && still_runs(server); i++)
        if (accepts(server->port))
            return;
    die("redis-server does not start, see %s", server->log);
}

void server_kill(struct server *server, int signal)
{
    if (server->pid == 0)
        return;
    kill(server->pid, signal);
    kill(server->pid, SIGCONT);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void server_destroy(struct server *server)
{
    struct command command = {.count = 0};
    server_kill(server, SIGINT); /* PostgreSQL: fast shutdown */
    add(&command, "rm", "-rf", "--", server->dir, NULL);
    run(&command, "/dev/null");
}
