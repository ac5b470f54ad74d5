/* Streams a filter's parts to a sink and back, with a checksum; see filter_image.h.
 *
 * What is read may be damaged or forged. So nothing is allocated on the header's word alone: a
 * filter of the options that it names is made under the bound of the bytes that are there, and only
 * if its parts are as long as the content is anything written over them. Whatever the content then
 * is, the filter's functions keep within its memory (filter_kind.h).
 */
#include "filters/filter_image.h"

#include "filters/filter_kind.h"
#include "filters/siphash.h"

#include <errno.h>
#include <string.h>

/* Raised when the header or the order of the content changes; what the parts of a kind mean has a
 * version of its own. */
enum { IMAGE_VERSION = 1 };

/* What a filter takes beyond its parts, at most: structs, and the rest of their last pages. */
enum { OVERHEAD = 1 << 18 };

enum { PIECE = 1 << 16 };

static const char magic[8] = {'N', 'G', 'F', 'I', 'L', 'T', 'E', 'R'};

/* All of one size, so that no bytes lie between them. */
struct header {
    char magic[8];
    uint64_t version;
    char kind[32];
    uint64_t kind_version;
    uint64_t seed[2];
    uint64_t capacity;
    double false_positive_rate;
    uint64_t stages;
    uint64_t length;   /* of the content */
    uint64_t checksum; /* of what comes before */
};

struct parts {
    struct filter_part at[FILTER_PARTS_MAX];
    size_t count;
    uint64_t length;
};

static struct parts parts_of(struct filter *filter)
{
    struct parts parts = {.length = 0};
    parts.count = filter->ops->parts(filter, parts.at);
    for (size_t i = 0; i < parts.count; i++)
        parts.length += parts.at[i].length;
    return parts;
}

/* Of a piece, given that of all before it. No secret: it is against accidents. */
static uint64_t checksum(uint64_t before, const void *bytes, size_t length)
{
    return siphash_1_3(before, length, bytes, length);
}

static uint64_t header_checksum(const struct header *header)
{
    return checksum(0, header, offsetof(struct header, checksum));
}

/* Writing and reading go through the same pieces in the same order. */
struct stream {
    const struct filter_image_sink *sink;
    const struct filter_image_source *source;
    uint64_t checksum;
};

static int move_piece(struct stream *stream, char *at, size_t length)
{
    int code = stream->sink ? stream->sink->write(stream->sink->arg, at, length)
                            : stream->source->read(stream->source->arg, at, length);
    if (!code)
        stream->checksum = checksum(stream->checksum, at, length);
    return code;
}

static int move_parts(struct stream *stream, const struct parts *parts)
{
    int code = 0;
    for (size_t i = 0; i < parts->count; i++) {
        char *at = parts->at[i].at;
        size_t left = parts->at[i].length;
        while (left > 0 && !code) {
            size_t length = left < PIECE ? left : PIECE;
            code = move_piece(stream, at, length);
            at += length;
            left -= length;
        }
    }
    return code;
}

static struct header header_of(const struct filter *filter, const struct filter_seed *seed)
{
    struct header header = {.version = IMAGE_VERSION,
                            .kind_version = filter->ops->image_version,
                            .seed = {seed->k0, seed->k1},
                            .capacity = filter->options.capacity,
                            .false_positive_rate = filter->options.false_positive_rate,
                            .stages = filter->ops->stages ? filter->ops->stages(filter) : 1};
    memcpy(header.magic, magic, sizeof magic);
    strncpy(header.kind, filter->ops->name, sizeof header.kind - 1);
    return header;
}

int filter_image_write(struct filter *filter, const struct filter_seed *seed,
                       const struct filter_image_sink *sink)
{
    struct parts parts = parts_of(filter);
    struct header header = header_of(filter, seed);
    struct stream stream = {.sink = sink};
    header.length = parts.length;
    header.checksum = header_checksum(&header);
    int code = sink->write(sink->arg, &header, sizeof header);
    if (!code)
        code = move_parts(&stream, &parts);
    if (!code)
        code = sink->write(sink->arg, &stream.checksum, sizeof stream.checksum);
    return code;
}

/* Reading */

static int refuse(const char **error, int code, const char *why)
{
    *error = why;
    return code;
}

/* The kind of this name; false when there is none. */
static bool find_kind(const char *name, enum filter_kind *kind)
{
    for (*kind = 0; filter_kind_name(*kind); ++*kind)
        if (strcmp(filter_kind_name(*kind), name) == 0)
            return true;
    return false;
}

static int read_header(struct header *header, const struct filter_image_source *source,
                       const char **error)
{
    if (source->length < sizeof *header)
        return refuse(error, -EINVAL, "it is too short to be a filter of nestguard");
    int code = source->read(source->arg, header, sizeof *header);
    if (code)
        return refuse(error, code, "it cannot be read");
    if (memcmp(header->magic, magic, sizeof magic) != 0)
        return refuse(error, -EINVAL, "it is no filter of nestguard");
    if (header->version != IMAGE_VERSION)
        return refuse(error, -EINVAL,
                      "it is of another version, or from a machine of another byte order");
    if (header->checksum != header_checksum(header) || header->kind[sizeof header->kind - 1])
        return refuse(error, -EBADMSG, "its header is damaged");
    uint64_t around = sizeof *header + sizeof(uint64_t);
    if (source->length < around || source->length - around < header->length)
        return refuse(error, -EBADMSG, "it is cut off");
    if (source->length - around > header->length)
        return refuse(error, -EBADMSG, "there is something behind its end");
    return 0;
}

/* More stages than were saved are never made: each is looked at before the next. */
static int add_stages(struct filter *filter, const struct header *header, const char **error)
{
    uint64_t have = 1;
    while (have < header->stages && filter->ops->add_stage &&
           parts_of(filter).length < header->length) {
        if (filter->ops->add_stage(filter))
            return refuse(error, -ENOMEM, "there is not enough memory for the filter");
        have++;
    }
    if (have != header->stages || parts_of(filter).length != header->length)
        return refuse(error, -EBADMSG, "its length is not that of such a filter");
    return 0;
}

/* Its content alone may be too much, of which nothing is made then. */
static bool is_too_large(uint64_t bytes, const struct filter_image_source *source)
{
    return source->max_bytes && bytes > source->max_bytes;
}

/* An empty filter of the same form. The header's bound is for this only: afterwards it may grow to
 * that of whoever reads. */
static int make(struct filter **out, const struct header *header,
                const struct filter_image_source *source, const char **error)
{
    static const char too_large[] = "the filter would take more memory than it is allowed";
    struct filter_options options = {.capacity = (size_t)header->capacity,
                                     .false_positive_rate = header->false_positive_rate,
                                     .max_bytes = (size_t)header->length + OVERHEAD};
    if (!find_kind(header->kind, &options.kind))
        return refuse(error, -EINVAL, "it is of a kind that this version does not know");
    if (is_too_large(header->length, source))
        return refuse(error, -E2BIG, too_large);
    int code = filter_create(out, &options, error);
    if (code == -ENOMEM)
        return code;
    if (code)
        return refuse(error, -EBADMSG, "its length is not that of such a filter");
    if (header->kind_version != (*out)->ops->image_version)
        code = refuse(error, -EINVAL, "it is of another version");
    if (!code)
        code = add_stages(*out, header, error);
    if (!code && is_too_large(filter_stats(*out).bytes, source))
        code = refuse(error, -E2BIG, too_large);
    (*out)->options.max_bytes = source->max_bytes;
    return code;
}

static int read_content(struct filter *filter, const struct filter_image_source *source,
                        const char **error)
{
    uint64_t wanted;
    struct parts parts = parts_of(filter);
    struct stream stream = {.source = source};
    int code = move_parts(&stream, &parts);
    if (!code)
        code = source->read(source->arg, &wanted, sizeof wanted);
    if (code)
        return refuse(error, code, "it cannot be read");
    if (wanted != stream.checksum)
        return refuse(error, -EBADMSG, "its content is damaged");
    return 0;
}

int filter_image_read(struct filter **out, struct filter_seed *seed,
                      const struct filter_image_source *source, const char **error)
{
    struct header header;
    *out = NULL;
    int code = read_header(&header, source, error);
    if (!code)
        code = make(out, &header, source, error);
    if (!code)
        code = read_content(*out, source, error);
    if (code) {
        filter_destroy(*out);
        *out = NULL;
        return code;
    }
    *seed = (struct filter_seed){header.seed[0], header.seed[1]};
    return 0;
}
