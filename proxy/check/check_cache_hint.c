/* Servers and OpenSSL say what happened to them, not what was written wrong. The first row that
 * fits tells. */
#include "check/check_cache_hint.h"

#include <string.h>

enum over { OVER_ANY, OVER_TLS, OVER_PLAIN };

static const struct hint {
    const char *error; /* what is in it */
    enum over over;
    const char *text;
} hints[] = {
    {"NOAUTH", OVER_ANY,
     "it wants a password: write it into `cache`, redis://:${REDIS_PASSWORD}@host:6379/0, or "
     "redis://user:${REDIS_PASSWORD}@... for a user of its ACLs"},
    {"WRONGPASS", OVER_ANY,
     "user or password in `cache` are not those of the server (`ACL LIST` there shows its users); "
     "in a URL, @ : / and % of a password are written %40 %3A %2F %25"},
    {"invalid password", OVER_ANY,
     "the password in `cache` is not the server's (its `requirepass`); in a URL, @ : / and % of a "
     "password are written %40 %3A %2F %25"},
    {"without any password configured", OVER_ANY,
     "the server has no password, but `cache` has one: leave it out there, or set `requirepass` "
     "at the server"},
    {"no password is set", OVER_ANY,
     "the server has no password, but `cache` has one: leave it out there, or set `requirepass` "
     "at the server"},
    {"wrong number of arguments for 'auth'", OVER_ANY,
     "a Redis before 6.0 has no users: leave the name out of `cache`, redis://:password@host"},
    {"wrong version number", OVER_TLS,
     "what listens there does not speak TLS: write redis:// instead of rediss://, or name the "
     "server's `tls-port`"},
    {"packet length too long", OVER_TLS,
     "what listens there does not speak TLS: write redis:// instead of rediss://, or name the "
     "server's `tls-port`"},
    {"closed during the handshake", OVER_TLS,
     "does it speak TLS on this port (`tls-port`)? If not, write redis:// instead of rediss://"},
    {"cannot connect: timed out", OVER_TLS,
     "if it is reachable, it does not speak TLS on this port: write redis:// instead of rediss://, "
     "or name the server's `tls-port`"},
    {"certificate required", OVER_TLS,
     "the server wants a certificate of its clients: set cache_cert_file and cache_key_file"},
    {"handshake failure", OVER_TLS,
     "the server may want a certificate of its clients: set cache_cert_file and cache_key_file"},
    {": protocol error", OVER_TLS,
     "TLS was agreed on and then ended: if the server wants a certificate of its clients, set "
     "cache_cert_file and cache_key_file"},
    {": connection reset", OVER_TLS,
     "TLS was agreed on and then ended: if the server wants a certificate of its clients, set "
     "cache_cert_file and cache_key_file"},
    {"the server closed the connection", OVER_TLS,
     "TLS was agreed on and then ended: if the server wants a certificate of its clients, set "
     "cache_cert_file and cache_key_file"},
    {"mismatch", OVER_TLS,
     "the certificate is for another name: write into `cache` the host that it was made for"},
    {"expired", OVER_TLS, "the server's certificate, or one that vouches for it, must be renewed"},
    {"Protocol error", OVER_PLAIN,
     "if this port speaks TLS (`tls-port`), write rediss:// instead of redis://"},
    {"closed", OVER_PLAIN,
     "if this port speaks TLS (`tls-port`), write rediss:// instead of redis://"},
    {"reset", OVER_PLAIN,
     "if this port speaks TLS (`tls-port`), write rediss:// instead of redis://"},
};

const char *check_cache_hint(const struct config *config, bool tls, const char *error)
{
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (hints[i].over != (tls ? OVER_PLAIN : OVER_TLS) && strstr(error, hints[i].error))
            return hints[i].text;
    if (tls && strstr(error, "peer's certificate"))
        return config->cache_ca_file
                   ? "cache_ca_file does not hold the authority that made the server's certificate"
                   : "the system trusts nobody who made the server's certificate: for an authority "
                     "of one's own set cache_ca_file: /path/to/ca.crt";
    return NULL;
}
