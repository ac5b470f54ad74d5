/* The cache's URL, of any text. What is accepted equals its copy, and nothing else is made of it
 * when it is read again. */
#include "config/syntax/cache_url.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

static void check_accepted(const struct cache_url *url)
{
    CHECK(url->db >= 0);
    CHECK(url->address.host || url->address.path);
    CHECK(!(url->primary && url->is_cluster));
    CHECK((url->primary || url->is_cluster) == (url->seed_count > 0));
    CHECK(!url->seeds == !url->seed_count);
    CHECK(url->seed_count <= CACHE_SEEDS);
    for (size_t i = 0; i < url->seed_count; i++)
        CHECK(url->seeds[i].host && url->seeds[i].port);
}

static void check_copy(const struct cache_url *url)
{
    struct cache_url copy = {0};
    cache_url_copy(&copy, url);
    CHECK(cache_url_equal(&copy, url));
    cache_url_finish(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct cache_url url, again;
    const char *error = NULL;
    char *text = malloc(size + 1);
    CHECK(text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    int status = cache_url_parse(&url, text, &error);
    CHECK(status == 0 || (status == -EINVAL && error && *error));
    CHECK(cache_url_parse(&again, text, &error) == status);
    if (status == 0) {
        check_accepted(&url);
        check_copy(&url);
        CHECK(cache_url_equal(&url, &again));
        cache_url_finish(&url);
        cache_url_finish(&again);
    }
    free(text);
    return 0;
}
