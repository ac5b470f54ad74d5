/* OpenSSL keeps its complaints in a queue, one for each thread, from which whoever asks next takes
 * the oldest: so the queue is emptied before anything whose failure is to be explained, and after
 * the explanation.
 */
#include "net/tls.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

/* The first reason is the root of the trouble: "no start line", "No such file or directory". */
static int fail(char *error, const char *what, const char *file)
{
    unsigned long code = ERR_peek_error();
    const char *reason =
        ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    bool is_none = reason && strcmp(reason, "no start line") == 0;
    snprintf(error, TLS_ERROR_SIZE, "%s%s%s: %s%s", what, file ? " " : "", file ? file : "",
             is_none ? "there is nothing in it as PEM has it, -----BEGIN ...: " : "",
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

/* ---- what a context was made of ---- */

enum { DIGEST_SIZE = 32 }; /* SHA-256 */

static int digest_slot; /* in a context */
static CRYPTO_ONCE digest_slot_once = CRYPTO_ONCE_STATIC_INIT;

static void forget_digest(void *context, void *digest, CRYPTO_EX_DATA *of, int slot, long number,
                          void *arg)
{
    (void)context;
    (void)of;
    (void)slot;
    (void)number;
    (void)arg;
    OPENSSL_free(digest);
}

static void find_digest_slot(void)
{
    digest_slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, forget_digest);
}

/* Each behind the letter of its part, so that none is taken for one of another part. */
static bool add_certificate(EVP_MD_CTX *digest, char part, const X509 *certificate)
{
    unsigned char its[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    return X509_digest(certificate, EVP_sha256(), its, &length) == 1 &&
           EVP_DigestUpdate(digest, &part, 1) == 1 && EVP_DigestUpdate(digest, its, length) == 1;
}

/* The key is that of the certificate, or the context would not have come about. */
static bool add_identity(EVP_MD_CTX *digest, SSL_CTX *context)
{
    const X509 *own = SSL_CTX_get0_certificate(context);
    STACK_OF(X509) *chain = NULL;
    bool good = !own || add_certificate(digest, 'o', own);
    SSL_CTX_get0_chain_certs(context, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++)
        good &= add_certificate(digest, 'c', sk_X509_value(chain, i));
    return good;
}

static bool add_authorities(EVP_MD_CTX *digest, const SSL_CTX *context)
{
    bool good = true;
    const STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        const X509 *authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        good &= !authority || add_certificate(digest, 'a', authority);
    }
    return good;
}

/* Taken while nobody else has the context: who looks an authority up sorts them all, in whichever
 * thread. Those that the system trusts are left out: they are nobody's file here, and found one by
 * one as they are needed. */
static int note_digest(SSL_CTX *context, const struct tls_options *options, char *error)
{
    unsigned char *out = OPENSSL_zalloc(DIGEST_SIZE);
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool good = out && digest && CRYPTO_THREAD_run_once(&digest_slot_once, find_digest_slot) &&
                EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
                add_identity(digest, context) &&
                (!options->authorities || add_authorities(digest, context)) &&
                EVP_DigestFinal_ex(digest, out, NULL) == 1 &&
                SSL_CTX_set_ex_data(context, digest_slot, out) == 1;
    EVP_MD_CTX_free(digest);
    if (good)
        return 0;
    OPENSSL_free(out);
    return fail(error, "TLS", NULL);
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
    if (!status)
        status = note_digest(context, options, error);
    if (status)
        SSL_CTX_free(context);
    else
        *out = context;
    return status;
}

bool tls_context_equal(const struct ssl_ctx_st *a, const struct ssl_ctx_st *b)
{
    return a == b || (a && b &&
                      memcmp(SSL_CTX_get_ex_data(a, digest_slot),
                             SSL_CTX_get_ex_data(b, digest_slot), DIGEST_SIZE) == 0);
}

void tls_context_hold(struct ssl_ctx_st *context)
{
    SSL_CTX_up_ref(context);
}

void tls_context_release(struct ssl_ctx_st *context)
{
    SSL_CTX_free(context);
}
