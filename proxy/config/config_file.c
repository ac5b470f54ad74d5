/* The file is read whole before it is parsed, so that what cannot be read and what is not YAML are
 * told apart, and an endless file is not followed.
 */
#include "config/config_file.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char config_file_empty[] =
    "the file is empty; it must at least name cache, database and keyspaces: `nestguard --help` "
    "lists every setting";

/* Bytes of a file, and of one read; lists and mappings within each other. */
enum { LARGEST_FILE = 16 << 20, CHUNK = 64 << 10, DEEPEST = 32 };

/* Also of pipes and devices, which have no size to ask for. */
static int read_all(FILE *file, struct buffer *out)
{
    while (!feof(file)) {
        size_t got = fread(buffer_reserve(out, CHUNK), 1, CHUNK, file);
        buffer_commit(out, got);
        if (ferror(file))
            return errno ? -errno : -EIO;
        if (buffer_length(out) > LARGEST_FILE)
            return -EFBIG;
    }
    return 0;
}

static int read_bytes(const char *path, struct buffer *out)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    int status = read_all(file, out);
    fclose(file);
    return status;
}

/* Where and what of a syntax error, as libyaml tells it. */
struct complaint {
    const char *path;
    struct span bytes;
    struct problems *problems;
};

static void complain(const struct complaint *about, size_t line, const char *text)
{
    char *place = xasprintf("%s:%zu", about->path, line);
    problems_add(about->problems, PROBLEM_ERROR, place, NULL, "%s", text);
    free(place);
}

/* From 1 on, as editors count. */
static size_t line_at(struct span bytes, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < bytes.length; i++)
        line += bytes.at[i] == '\n';
    return line;
}

/* YAML has no tabs in front of a line's text, and libyaml does not say so. */
static bool is_tabbed(struct span bytes, size_t line)
{
    const char *at = bytes.at, *end = at + bytes.length;
    for (; line > 1 && at; line--)
        if ((at = memchr(at, '\n', (size_t)(end - at))))
            at++;
    while (at && at < end && *at == ' ')
        at++;
    return at && at < end && *at == '\t';
}

static void complain_of_syntax(const struct complaint *about, const yaml_parser_t *parser)
{
    const char *problem = parser->problem ? parser->problem : "out of memory";
    /* Before the text is decoded there are no marks, only an offset. */
    size_t line = parser->error == YAML_READER_ERROR ? line_at(about->bytes, parser->problem_offset)
                                                     : parser->problem_mark.line + 1;
    const char *tab = is_tabbed(about->bytes, line) ? " (a tab: indent with blanks)" : "";
    char *text = parser->context
                     ? xasprintf("this is not YAML: %s, begun in line %zu: %s%s", parser->context,
                                 parser->context_mark.line + 1, problem, tab)
                     : xasprintf("this is not YAML: %s%s", problem, tab);
    complain(about, line, text);
    free(text);
}

/* Refuses a second document, which would otherwise count for nothing and nobody would know. */
static int check_end(yaml_parser_t *parser, const struct complaint *about)
{
    yaml_document_t second;
    if (!yaml_parser_load(parser, &second)) {
        complain_of_syntax(about, parser);
        return -EINVAL;
    }
    yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root)
        complain(about, second.start_mark.line + 1,
                 "a second document begins here; the file must hold one");
    yaml_document_delete(&second);
    return root ? -EINVAL : 0;
}

/* libyaml takes time that grows with the square of the depth, and builds the tree by recursion.
 * Four levels are enough for any file of ours. */
static int check_depth(const struct complaint *about)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int depth = 0;
    bool ended = !yaml_parser_initialize(&parser);
    if (!ended)
        yaml_parser_set_input_string(&parser, (const unsigned char *)about->bytes.at,
                                     about->bytes.length);
    while (!ended && depth <= DEEPEST && yaml_parser_parse(&parser, &event)) {
        ended = event.type == YAML_STREAM_END_EVENT;
        depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
        depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        yaml_event_delete(&event);
    }
    if (depth > DEEPEST)
        complain(about, parser.mark.line + 1, "lists and mappings are nested too deep here");
    yaml_parser_delete(&parser);
    return depth > DEEPEST ? -EINVAL : 0; /* what else is wrong is told by who loads it */
}

static int load_one(yaml_document_t *out, yaml_parser_t *parser, const struct complaint *about)
{
    if (!yaml_parser_load(parser, out)) {
        complain_of_syntax(about, parser);
        return -EINVAL;
    }
    int status = -EINVAL;
    if (!yaml_document_get_root_node(out))
        complain(about, 1, config_file_empty);
    else
        status = check_end(parser, about);
    if (status)
        yaml_document_delete(out);
    return status;
}

int config_file_read(yaml_document_t *out, const char *path, struct problems *problems)
{
    struct buffer bytes = {0};
    yaml_parser_t parser;
    int status = read_bytes(path, &bytes);
    if (!status && !yaml_parser_initialize(&parser))
        status = -ENOMEM;
    if (status) {
        problems_add(problems, PROBLEM_ERROR, path, NULL, "cannot be read: %s", strerror(-status));
        buffer_finish(&bytes);
        return status;
    }
    struct complaint about = {path, buffer_span(&bytes), problems};
    yaml_parser_set_input_string(&parser, (const unsigned char *)about.bytes.at,
                                 about.bytes.length);
    status = check_depth(&about);
    if (!status)
        status = load_one(out, &parser, &about);
    yaml_parser_delete(&parser);
    buffer_finish(&bytes);
    return status;
}
