/* What TLS connections have in common: certificate, key, and whom to trust. OpenSSL counts the
 * references to a context itself, so connections that are open outlive its replacement.
 */
#ifndef NESTGUARD_TLS_H
#define NESTGUARD_TLS_H

#include <stdbool.h>

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

struct tls_options {
    bool is_server;
    /* PEM files. Of a server both are needed; of a client they are its own, for servers that ask
     * for a certificate; NULL: none. */
    const char *certificate; /* with the chain behind it */
    const char *key;
    /* PEM file of the authorities that must have signed the peer's certificate. NULL: of a server,
     * clients are not asked for one; of a client, those that the system trusts. */
    const char *authorities;
};

enum { TLS_ERROR_SIZE = 256 };

/* TLS 1.2 or newer. 0, or a negative errno with `error`: which file, and what is wrong with it. */
int tls_context_create(struct ssl_ctx_st **out, const struct tls_options *options,
                       char error[TLS_ERROR_SIZE]);
/* Made of the same certificates, and of the same file of authorities, whatever either has been used
 * for since: what the system trusts is not compared. Or both NULL. */
bool tls_context_equal(const struct ssl_ctx_st *a, const struct ssl_ctx_st *b);
void tls_context_hold(struct ssl_ctx_st *context);    /* until released once more */
void tls_context_release(struct ssl_ctx_st *context); /* NULL is allowed */

#endif
