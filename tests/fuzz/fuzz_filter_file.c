/* Images of filters, of any bytes. So that the fuzzer gets behind the checksums, they are mended
 * first: for that, the reader is compiled in here. What is accepted is asked, changed, and written
 * again. Build with -DFUZZ=ON and clang. */
#include "../../filters/filter_image.c"

#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

struct reading {
    const uint8_t *bytes;
    size_t at, size;
};

static int read_bytes(void *arg, void *into, size_t length)
{
    struct reading *reading = arg;
    CHECK(length <= reading->size - reading->at); /* it knows the length */
    memcpy(into, reading->bytes + reading->at, length);
    reading->at += length;
    return 0;
}

static int count_bytes(void *arg, const void *bytes, size_t length)
{
    (void)bytes;
    *(size_t *)arg += length;
    return 0;
}

static void use(struct filter *filter)
{
    bool found[40];
    uint64_t hashes[40];
    for (uint64_t i = 0; i < 40; i++)
        hashes[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    filter_contains_batch(filter, hashes, 40, found);
    for (size_t i = 0; i < 40; i++)
        CHECK(found[i] == filter_contains(filter, hashes[i]));
    for (size_t i = 0; i < 40; i++) {
        (void)filter_insert(filter, hashes[i]);
        (void)filter_remove(filter, hashes[39 - i]);
    }
    (void)filter_stats(filter);
}

/* The version and the header's checksum, and the length if the first byte says so. */
static void mend(uint8_t *bytes, size_t size)
{
    struct header header;
    size_t around = sizeof header + sizeof(uint64_t);
    if (size < around)
        return;
    memcpy(&header, bytes, sizeof header);
    if (header.magic[0] & 1)
        header.length = size - around;
    memcpy(header.magic, magic, sizeof magic);
    header.version = IMAGE_VERSION;
    header.kind[sizeof header.kind - 1] = '\0';
    enum filter_kind kind;
    if (!find_kind(header.kind, &kind))
        strncpy(header.kind, filter_kind_name((enum filter_kind)((uint8_t)header.kind[0] % 5)),
                sizeof header.kind - 1);
    header.checksum = header_checksum(&header);
    memcpy(bytes, &header, sizeof header);
}

/* The reader refuses a wrong checksum only when all has been read: so the content is mended by
 * reading it again. */
static void read_image(uint8_t *bytes, size_t size)
{
    struct filter *filter;
    struct filter_seed seed;
    const char *error = NULL;
    size_t written = 0;
    struct reading reading = {bytes, 0, size};
    const struct filter_image_source source = {read_bytes, &reading, size, 0};
    const struct filter_image_sink sink = {count_bytes, &written};
    int code = filter_image_read(&filter, &seed, &source, &error);
    CHECK((code == 0) == (filter != NULL) && (code == 0) == (error == NULL));
    if (code)
        return;
    use(filter);
    CHECK(filter_image_write(filter, &seed, &sink) == 0 && written >= size);
    filter_destroy(filter);
}

static void mend_content(uint8_t *bytes, size_t size)
{
    struct header header;
    struct filter *filter = NULL;
    const char *error;
    struct reading reading = {bytes, sizeof header, size};
    const struct filter_image_source source = {read_bytes, &reading, size, 0};
    if (size < sizeof header + sizeof(uint64_t))
        return;
    memcpy(&header, bytes, sizeof header);
    if (header.length == size - sizeof header - sizeof(uint64_t) &&
        make(&filter, &header, &source, &error) == 0) {
        struct parts parts = parts_of(filter);
        struct stream stream = {.source = &source};
        CHECK(move_parts(&stream, &parts) == 0);
        memcpy(bytes + size - sizeof stream.checksum, &stream.checksum, sizeof stream.checksum);
    }
    filter_destroy(filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    CHECK(copy);
    memcpy(copy, bytes, size);
    read_image(copy, size);
    mend(copy, size);
    read_image(copy, size);
    mend_content(copy, size);
    read_image(copy, size);
    free(copy);
    return 0;
}
