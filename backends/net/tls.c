/* OpenSSL keeps its complaints in a queue, one for each thread, from which whoever asks next takes
 * the oldest: so the queue is emptied before anything whose failure is to be explained, and after
 * the explanation.
 */
#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

/* The first reason is the root of the trouble: "no start line", "No such file or directory". */
static int fail(char *error, const char *what, const char *file)
{
    unsigned long code = ERR_peek_error();
    const char *reason =
        ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    snprintf(error, TLS_ERROR_SIZE, "%s%s%s: %s", what, file ? " " : "", file ? file : "",
             reason ? reason : "refused");
    ERR_clear_error();
    return -EINVAL;
}

/* In this order: OpenSSL holds the key against the certificate that is there, so that a pair that
 * does not belong together is refused here, and not at the first handshake. */
static int set_identity(SSL_CTX *context, const struct tls_options *options, char *error)
{
    if (!options->certificate)
        return 0;
    if (SSL_CTX_use_certificate_chain_file(context, options->certificate) != 1)
        return fail(error, "the certificate", options->certificate);
    if (SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1)
        return fail(error, "the key", options->key);
    return 0;
}

/* A server that trusts named authorities lets nobody in without their word; a client always wants
 * it. */
static int set_trust(SSL_CTX *context, const struct tls_options *options, char *error)
{
    if (options->authorities && SSL_CTX_load_verify_file(context, options->authorities) != 1)
        return fail(error, "the authorities' certificates", options->authorities);
    if (!options->authorities && !options->is_server &&
        SSL_CTX_set_default_verify_paths(context) != 1)
        return fail(error, "the authorities that the system trusts", NULL);
    if (options->authorities && options->is_server)
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(options->authorities));
    if (options->authorities || !options->is_server)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}

/* Idle connections give their buffers back; there may be thousands. Without a context's id sessions
 * of clients with certificates could not be resumed. */
static SSL_CTX *create(bool is_server)
{
    SSL_CTX *context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (!context)
        return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"nestguard", 9);
    return context;
}

int tls_context_create(struct ssl_ctx_st **out, const struct tls_options *options,
                       char error[TLS_ERROR_SIZE])
{
    ERR_clear_error();
    SSL_CTX *context = create(options->is_server);
    if (!context)
        return fail(error, "TLS", NULL);
    int status = set_identity(context, options, error);
    if (!status)
        status = set_trust(context, options, error);
    if (status)
        SSL_CTX_free(context);
    else
        *out = context;
    return status;
}

/* In the order of their files. */
static bool has_same_authorities(const SSL_CTX *a, const SSL_CTX *b)
{
    const STACK_OF(X509_OBJECT) *one = X509_STORE_get0_objects(SSL_CTX_get_cert_store(a));
    const STACK_OF(X509_OBJECT) *other = X509_STORE_get0_objects(SSL_CTX_get_cert_store(b));
    if (sk_X509_OBJECT_num(one) != sk_X509_OBJECT_num(other))
        return false;
    for (int i = 0; i < sk_X509_OBJECT_num(one); i++) {
        const X509 *mine = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(one, i));
        const X509 *its = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(other, i));
        if (!mine != !its || (mine && X509_cmp(mine, its)))
            return false;
    }
    return true;
}

bool tls_context_equal(const struct ssl_ctx_st *a, const struct ssl_ctx_st *b)
{
    if (!a || !b)
        return a == b;
    const X509 *mine = SSL_CTX_get0_certificate(a), *its = SSL_CTX_get0_certificate(b);
    if (!mine != !its || (mine && X509_cmp(mine, its)))
        return false;
    return has_same_authorities(a, b);
}

void tls_context_hold(struct ssl_ctx_st *context)
{
    SSL_CTX_up_ref(context);
}

void tls_context_release(struct ssl_ctx_st *context)
{
    SSL_CTX_free(context);
}
