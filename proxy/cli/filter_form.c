/* build:  lines of KEYS ─▶ hashes, each once ─▶ a filter of that size ─▶ FILE
 * info:   FILE ─▶ what it is
 * query:  FILE ─▶ filter;  lines of standard input ─▶ "absent KEY" or "possible KEY"
 *
 * The hashes are kept until the last line: so KEYS may be a pipe, and the filter has the size of
 * what came through it. */
#include "cli/filter_form.h"

#include "base/standard_files.h"
#include "base/text/arguments.h"
#include "cli/terminal/forms.h"
#include "cli/terminal/progress.h"
#include "config/syntax/units.h"
#include "sources/filter_file.h"
#include "sources/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Hashes that there is room for at first, which doubles; how many keys ahead of the one that is
 * inserted the memory is asked for its lines; and how many keys lie between two looks at the clock.
 */
enum { HASHES_FIRST = 1 << 12, AHEAD = 32, PROGRESS_EVERY = 1 << 14 };

static int usage(FILE *out)
{
    forms_print("filter", out);
    fputs("\n"
          "  P     the share of absent keys that may be taken for possible ones, at most; 0.0001\n"
          "  KIND  ",
          out);
    for (enum filter_kind kind = 0; filter_kind_name(kind); kind++)
        fprintf(out, "%s%s", kind ? ", " : "", filter_kind_name(kind));
    fputs(
        "\n\nFILE holds the secret of its hashes: whoever reads it can find keys that it takes for "
        "possible.\n",
        out);
    return out == stdout ? EXIT_DONE : EXIT_USAGE;
}

static int misuse(const char *what, const char *why)
{
    fprintf(stderr, "nestguard filter: %s: %s\n\n", what, why);
    return usage(stderr);
}

/* `what` may be "": then `why` says all. */
static int fail(const char *what, const char *why)
{
    progress_end();
    fprintf(stderr, "nestguard filter: %s%s%s\n", what, *what ? ": " : "", why);
    return EXIT_FAILED;
}

/* build */

struct build {
    struct filter_seed seed;
    struct filter_options options;
    uint64_t *hashes; /* of the lines; then of the keys */
    size_t count, room;
    uint64_t bytes, size; /* read so far, and of the file; 0: not known */
    size_t lines;         /* that were read; `count` becomes less where some come twice */
    size_t returns;       /* of these end with a carriage return */
};

/* If the rest is like what was read; 0: not known. */
static uint64_t expected_lines(const struct build *build)
{
    return (uint64_t)((double)build->size / (double)build->bytes * (double)build->count);
}

/* A line's bytes are the key as they are: blanks and a carriage return count, and an empty line is
 * the empty key. */
static int keep_hash(void *arg, struct span line)
{
    struct build *build = arg;
    if (build->count == build->room) {
        size_t room = build->room ? 2 * build->room : HASHES_FIRST;
        uint64_t *hashes = reallocarray(build->hashes, room, sizeof *hashes);
        if (!hashes)
            return -ENOMEM;
        build->hashes = hashes;
        build->room = room;
    }
    build->hashes[build->count++] = filter_hash(&build->seed, line.at, line.length);
    build->returns += line.length && line.at[line.length - 1] == '\r';
    build->bytes += line.length + 1;
    if (build->count % PROGRESS_EVERY == 0)
        progress_show("reading keys", build->count, expected_lines(build));
    return 0;
}

/* 0 or a negative errno. How long a pipe is nobody knows, and its progress has no total. */
static int read_keys(struct build *build, const char *path)
{
    const struct lines_reader reader = {.on_line = keep_hash, .arg = build};
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        build->size = (uint64_t)status.st_size;
    int code = lines_read(fd, &reader);
    if (!standard)
        close(fd);
    return code;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* A line that is there twice is one key. Keys are told from each other by 64 bits: of a billion
 * distinct ones two agree in one file of 37. */
static void keep_each_once(struct build *build)
{
    size_t kept = 0;
    build->lines = build->count;
    if (!build->count)
        return;
    qsort(build->hashes, build->count, sizeof *build->hashes, compare_hashes);
    for (size_t i = 1; i < build->count; i++)
        if (build->hashes[i] != build->hashes[kept])
            build->hashes[++kept] = build->hashes[i];
    build->count = kept + 1;
}

/* A key that the filter takes for one that is in needs no entry of its own: nobody will remove
 * either. */
static int insert_all(const struct build *build, struct filter *filter)
{
    int code = 0;
    for (size_t i = 0; i < build->count && !code; i++) {
        if (build->count - i > AHEAD)
            filter_prefetch(filter, build->hashes[i + AHEAD]);
        if (!filter_contains(filter, build->hashes[i]))
            code = filter_insert(filter, build->hashes[i]);
        if (i % PROGRESS_EVERY == 0)
            progress_show("building", i, build->count);
    }
    return code;
}

static void print_filter(const struct filter *filter, size_t keys)
{
    char layout[100];
    struct filter_stats stats = filter_stats(filter);
    filter_describe(filter, layout, sizeof layout);
    printf("  %s\n  %zu bytes, %.2f bits a key\n  false positives expected: %.2g\n", layout,
           stats.bytes, keys ? 8.0 * (double)stats.bytes / (double)keys : 0,
           stats.expected_false_positive_rate);
}

static void print_built(const struct build *build, const struct filter *filter, const char *path)
{
    size_t entries = filter_stats(filter).keys;
    progress_end();
    printf("%s: %zu keys of %zu lines in a %s filter\n", path, build->count, build->lines,
           filter_kind_name(filter_kind_of(filter)));
    if (entries < build->count)
        printf("  %zu entries: %zu keys look to the filter like another one, and are found by "
               "its entry\n",
               entries, build->count - entries);
    print_filter(filter, build->count);
    if (build->returns)
        fprintf(stderr,
                "nestguard: %zu of %zu lines end with a carriage return, and so do their keys: a "
                "file of Windows' kind? sed 's/\\r$//' takes them off\n",
                build->returns, build->lines);
}

/* Returns the exit status, as do the two that call it. */
static int save(const struct build *build, struct filter *filter, const char *path)
{
    struct filter_file_error error;
    if (insert_all(build, filter))
        return fail("", "the filter is full"); /* it was made for as many */
    if (filter_file_save(path, filter, &build->seed, &error))
        return fail("", error.text);
    print_built(build, filter, path);
    return EXIT_DONE;
}

/* The filter is made when all keys were read: only then it is known for how many. Each file has a
 * seed of its own, so that what one of them takes for possible says nothing of another. */
static int build_file(struct build *build, const char *keys, const char *path)
{
    struct filter *filter;
    const char *error;
    int code = filter_seed_random(&build->seed);
    if (!code)
        code = read_keys(build, keys);
    if (code)
        return fail(keys,
                    code == -EMSGSIZE ? "it has a line of more than 64 MiB" : strerror(-code));
    keep_each_once(build);
    build->options.capacity = build->count;
    if (filter_create(&filter, &build->options, &error))
        return fail("", error);
    int status = save(build, filter, path);
    filter_destroy(filter);
    return status;
}

static bool find_kind(const char *name, enum filter_kind *kind)
{
    for (*kind = 0; filter_kind_name(*kind); ++*kind)
        if (strcmp(filter_kind_name(*kind), name) == 0)
            return true;
    return false;
}

static int build_main(int argc, char **argv)
{
    struct build build = {.count = 0};
    const char *files[2], *rate = "0.0001", *kind = "cuckoo", *why;
    const struct argument_option options[] = {
        {"fpr", &rate, NULL, 0}, {"filter", &kind, NULL, 0}, {0}};
    struct arguments arguments = {.options = options, .plain = files, .most = 2};
    int count = arguments_read(&arguments, argc, argv);
    if (count < 0)
        return misuse(arguments.wrong, arguments.why);
    if (count < 2)
        return misuse("build", "the file of keys, or the file to build, is missing");
    if (!find_kind(kind, &build.options.kind))
        return misuse(kind, "there is no such kind of filter");
    if (units_fraction(rate, &build.options.false_positive_rate, &why))
        return misuse(rate, why);
    if (!filter_rate_is_possible(build.options.false_positive_rate))
        return misuse(rate, "the rate must be from 0.0000001 to 0.03");
    int status = build_file(&build, files[0], files[1]);
    free(build.hashes);
    return status;
}

/* info, query */

/* The filter of the one file that the words name; NULL: `status` is what the program ends with. */
static struct filter *load_named(int argc, char **argv, const char **path, struct filter_seed *seed,
                                 int *status)
{
    const struct argument_option none[] = {{0}};
    struct arguments arguments = {.options = none, .plain = path, .most = 1};
    struct filter_file_error error;
    struct filter *filter = NULL;
    int count = arguments_read(&arguments, argc, argv);
    if (count < 0)
        *status = misuse(arguments.wrong, arguments.why);
    else if (count < 1)
        *status = misuse(argv[0], "the file is missing");
    else if (filter_file_load(*path, 0, &filter, seed, &error))
        *status = fail("", error.text);
    return filter;
}

static int info_main(int argc, char **argv)
{
    const char *path;
    struct filter_seed seed;
    int status;
    struct filter *filter = load_named(argc, argv, &path, &seed, &status);
    if (!filter)
        return status;
    struct filter_stats stats = filter_stats(filter);
    printf("%s: %zu entries in a %s filter", path, stats.keys,
           filter_kind_name(filter_kind_of(filter)));
    if (stats.slots)
        printf(", %.1f %% full", 100 * (double)stats.keys / (double)stats.slots);
    putchar('\n');
    print_filter(filter, stats.keys);
    filter_destroy(filter);
    return EXIT_DONE;
}

/* The seed is the file's: by another one nearly every key would be absent. */
struct query {
    const struct filter *filter;
    struct filter_seed seed;
};

static int answer(void *arg, struct span line)
{
    const struct query *query = arg;
    uint64_t hash = filter_hash(&query->seed, line.at, line.length);
    fputs(filter_contains(query->filter, hash) ? "possible " : "absent ", stdout);
    fwrite(line.at, 1, line.length, stdout);
    return putchar('\n') == EOF ? -errno : 0;
}

/* Whoever asks and waits for the answer gets it. */
static int flush(void *arg)
{
    (void)arg;
    return standard_output_flush();
}

static int query_main(int argc, char **argv)
{
    const char *path;
    struct query query;
    int status;
    struct filter *filter = load_named(argc, argv, &path, &query.seed, &status);
    if (!filter)
        return status;
    const struct lines_reader reader = {.on_line = answer, .on_pause = flush, .arg = &query};
    query.filter = filter;
    int code = lines_read(STDIN_FILENO, &reader);
    filter_destroy(filter);
    if (ferror(stdout))
        return EXIT_FAILED; /* which main() explains */
    return code ? fail("query", strerror(-code)) : EXIT_DONE;
}

int filter_form_main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return usage(stdout);
    if (!strcmp(word, "build"))
        return build_main(argc - 1, argv + 1);
    if (!strcmp(word, "info"))
        return info_main(argc - 1, argv + 1);
    if (!strcmp(word, "query"))
        return query_main(argc - 1, argv + 1);
    return misuse(*word ? word : "build, info or query",
                  *word ? "say build, info or query" : "say which");
}
