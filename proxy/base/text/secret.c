#include "base/text/secret.h"

#include <openssl/crypto.h>

bool secret_equal(struct span given, struct span secret)
{
    /* Of another length, it is compared all the same: with itself. */
    bool as_long = given.length == secret.length;
    const char *with = as_long ? secret.at : given.at;
    return (CRYPTO_memcmp(given.at, with, given.length) == 0) & as_long;
}
