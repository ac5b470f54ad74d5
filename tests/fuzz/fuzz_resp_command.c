/* Commands of any bytes, read in one go and in pieces. The first byte of the input chooses the
 * limits, the rest is what a client sends. Build with -DFUZZ=ON and clang. */
#include "base/memory.h"
#include "resp/resp.h"

#include <stdint.h>
#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

static const struct resp_limits limits_of[] = {
    {1 << 20, 512 << 20, (size_t)1 << 30, 64 << 10, 0}, {4, 16, 64, 32, 0}, {100, 10, 1000, 8, 20}};

/* A copy that ends where AddressSanitizer watches. */
static char *copy_of(const char *bytes, size_t length)
{
    char *copy = malloc(length ? length : 1);
    CHECK(copy);
    memcpy(copy, bytes, length);
    return copy;
}

static void check_inside(const char *input, size_t length, const struct resp_arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++) {
        struct span argument = arguments->at[i];
        CHECK(argument.at >= input && argument.at + argument.length <= input + length);
    }
}

static void check_same_arguments(const struct resp_arguments *some,
                                 const struct resp_arguments *others)
{
    CHECK(some->count == others->count);
    for (size_t i = 0; i < some->count; i++) {
        CHECK(some->at[i].length == others->at[i].length);
        CHECK(memcmp(some->at[i].at, others->at[i].at, some->at[i].length) == 0);
    }
}

static void check_written_reads_back(const struct resp_arguments *arguments)
{
    struct resp_arguments read = {0};
    struct resp_command command;
    struct buffer out = {0};
    resp_write_command(&out, arguments->at, arguments->count);
    size_t length = buffer_length(&out);
    CHECK(resp_read_command(out.bytes, length, &limits_of[0], &read, &command) == RESP_DONE);
    CHECK(command.length == length);
    check_same_arguments(arguments, &read);
    resp_arguments_finish(&read);
    buffer_finish(&out);
}

/* Gives the reader one byte more at a time: it must say MORE until it says what it says of the
 * whole, and never ask for more than completes the command. What is measured meanwhile asks for as
 * much, or has no opinion. */
static void check_in_pieces(const char *input, size_t length, const struct resp_limits *limits,
                            const struct resp_arguments *arguments, enum resp_status wanted,
                            size_t command_length)
{
    struct resp_arguments read = {0};
    struct resp_command command = {0};
    struct resp_measure measure = {0};
    enum resp_status status = RESP_MORE;
    for (size_t have = 0; have <= length && status == RESP_MORE; have++) {
        char *piece = copy_of(input, have);
        size_t measured = resp_measure(&measure, piece, have, limits, SIZE_MAX);
        status = resp_read_command(piece, have, limits, &read, &command);
        if (status == RESP_MORE) {
            CHECK(memcmp(piece, input, have) == 0);
            CHECK(command.need > have && read.count == 0);
            CHECK(!measured || measured == command.need);
            CHECK(wanted != RESP_DONE || command.need <= command_length);
        } else if (status == RESP_DONE) {
            CHECK(have == command_length && !measured);
            check_same_arguments(arguments, &read);
        } else {
            CHECK(!measured);
        }
        free(piece);
    }
    CHECK(status == wanted);
    resp_arguments_finish(&read);
}

/* Of a whole command that is no line: measured some arguments at a time, it has the same ones. */
static void check_measured(const char *input, size_t length, const struct resp_limits *limits,
                           const struct resp_arguments *arguments)
{
    struct resp_measure measure = {0};
    struct span *read = xcalloc(arguments->count + 1, sizeof *read);
    char *copy = copy_of(input, length);
    while (resp_measure(&measure, copy, length, limits, 2) == length)
        CHECK(measure.left);
    CHECK(measure.left == 0 && measure.passed == arguments->count && measure.scanned == length);
    const char *at = resp_measured_open(copy);
    resp_measured_next(&at, read, arguments->count);
    CHECK(at == copy + length);
    for (size_t i = 0; i < arguments->count; i++) {
        CHECK(read[i].length == arguments->at[i].length);
        CHECK(memcmp(read[i].at, arguments->at[i].at, read[i].length) == 0);
    }
    free(copy);
    free(read);
}

/* What stands before a command must not count: read behind others, whose heads are known, it is the
 * same. Those with the same head have the same name. */
static void check_behind_others(const char *input, size_t length, const struct resp_limits *limits,
                                struct resp_arguments *known, const struct resp_command *alone,
                                const struct resp_arguments *arguments, enum resp_status wanted)
{
    struct resp_command command;
    char *copy = copy_of(input, length);
    known->count = 0;
    CHECK(resp_read_command(copy, length, limits, known, &command) == wanted);
    CHECK(command.length == alone->length && command.need == alone->need);
    CHECK(command.is_inline == alone->is_inline && command.count == alone->count);
    check_inside(copy, length, known);
    check_same_arguments(arguments, known);
    if (command.head) {
        CHECK(command.head == known->head.number && command.count == known->head.count);
        CHECK(memcmp(input, &known->head.first, sizeof known->head.first) == 0);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 1) {
        return 0;
    }
    const struct resp_limits *limits = &limits_of[bytes[0] % 3];
    const char *input = (const char *)bytes + 1;
    size_t length = size - 1;
    struct resp_arguments known = {0};
    for (int commands = 0; commands < 4; commands++) {
        struct resp_arguments arguments = {0};
        struct resp_command command;
        char *copy = copy_of(input, length);
        enum resp_status status = resp_read_command(copy, length, limits, &arguments, &command);
        CHECK((command.error != NULL) == (status == RESP_BAD));
        CHECK(status == RESP_DONE ? command.length <= length : arguments.count == 0);
        CHECK(command.count == arguments.count);
        check_inside(copy, length, &arguments);
        check_written_reads_back(&arguments);
        check_in_pieces(input, length, limits, &arguments, status, command.length);
        check_behind_others(input, length, limits, &known, &command, &arguments, status);
        if (status == RESP_DONE && command.count && !command.is_inline)
            check_measured(input, command.length, limits, &arguments);
        resp_arguments_finish(&arguments);
        free(copy);
        if (status != RESP_DONE) {
            break;
        }
        input += command.length;
        length -= command.length;
    }
    resp_arguments_finish(&known);
    return 0;
}
