/* Addresses as text, taken apart. Only what could never work is refused here; whether a name
 * resolves is found out when somebody listens (listen.c) or connects.
 */
#include "base/text/address.h"

#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

static int refuse(const char **error, const char *text)
{
    *error = text;
    return -EINVAL;
}

static int parse_port(const char *text, uint16_t *port, const char **error)
{
    size_t length = strlen(text);
    unsigned long number = strtoul(text, NULL, 10);
    if (length == 0 || length > 5 || strspn(text, "0123456789") != length || number == 0 ||
        number > UINT16_MAX)
        return refuse(error, "a port is a number from 1 to 65535");
    *port = (uint16_t)number;
    return 0;
}

static int check_ipv6(const char *host, const char **error)
{
    struct in6_addr ip;
    char plain[INET6_ADDRSTRLEN + 1];
    size_t length = strcspn(host, "%"); /* fe80::1%eth0: the zone is the resolver's business */
    if (length >= sizeof plain)
        return refuse(error, "this is not an IPv6 address");
    memcpy(plain, host, length);
    plain[length] = '\0';
    if (inet_pton(AF_INET6, plain, &ip) != 1)
        return refuse(error, "this is not an IPv6 address");
    return 0;
}

/* A name of digits and dots alone is meant as an address, so that 127.0.0.300 is a mistake and not
 * a question to the name server. */
static int check_host(const char *host, const char **error)
{
    struct in_addr ip;
    size_t length = strlen(host);
    if (length == 0)
        return refuse(error, "the host is missing; all addresses are 0.0.0.0 or [::]");
    if (strchr(host, ':'))
        return refuse(error, "must be HOST:PORT; an IPv6 address stands in brackets, [::1]:6380");
    if (strspn(host, "0123456789.") == length && inet_pton(AF_INET, host, &ip) != 1)
        return refuse(error, "this is not an IPv4 address");
    if (length > 253 || strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789.-_") != length)
        return refuse(error, "a host is a name or an address; must be HOST:PORT, [IPV6]:PORT or "
                             "unix:/path");
    return 0;
}

/* sun_path has 108 bytes, the last of which is zero. */
static int parse_unix(struct address *out, const char *path, const char **error)
{
    if (path[0] != '/')
        return refuse(error, "a unix socket's path is absolute, as in unix:/run/nestguard.sock");
    if (strlen(path) >= sizeof((struct sockaddr_un){0}).sun_path)
        return refuse(error, "a unix socket's path has at most 107 bytes");
    out->path = xstrdup(path);
    return 0;
}

/* The last colon is the one before the port; behind brackets, for an IPv6 address has its own. */
static int parse_tcp(struct address *out, const char *text, const char **error)
{
    bool bracket = text[0] == '[';
    const char *colon = bracket ? strstr(text, "]:") : strrchr(text, ':');
    if (!colon)
        return refuse(error, "must be HOST:PORT, [IPV6]:PORT or unix:/path");
    const char *begin = text + bracket;
    out->host = xstrndup(begin, (size_t)(colon - begin));
    int status = bracket ? check_ipv6(out->host, error) : check_host(out->host, error);
    return status ? status : parse_port(colon + 1 + bracket, &out->port, error);
}

int address_parse(struct address *out, const char *text, const char **error)
{
    *out = (struct address){.text = xstrdup(text)};
    bool is_unix = strncmp(text, "unix:", 5) == 0;
    out->tls = strncmp(text, "tls:", 4) == 0;
    int status = is_unix ? parse_unix(out, text + 5, error)
                         : parse_tcp(out, out->tls ? text + 4 : text, error);
    if (status)
        address_finish(out);
    return status;
}

void address_finish(struct address *address)
{
    free(address->text);
    free(address->host);
    free(address->path);
    *address = (struct address){0};
}

/* Everything is copied, and then the texts are made its own: so no member can be forgotten. */
void address_copy(struct address *to, const struct address *from)
{
    *to = *from;
    to->text = from->text ? xstrdup(from->text) : NULL;
    to->host = from->host ? xstrdup(from->host) : NULL;
    to->path = from->path ? xstrdup(from->path) : NULL;
}

static bool same_path(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Host names are compared in any case; that two of them are the same machine is not found out. */
static bool same_host(const char *a, const char *b)
{
    return a && b ? strcasecmp(a, b) == 0 : a == b;
}

bool address_same_place(const struct address *a, const struct address *b)
{
    return same_path(a->path, b->path) && same_host(a->host, b->host) && a->port == b->port;
}

bool address_equal(const struct address *a, const struct address *b)
{
    return address_same_place(a, b) && a->tls == b->tls;
}

/* Zones (fe80::1%eth0) are no networks of their own. */
static bool parse_in_brackets(const char *address, struct in6_addr *ip)
{
    char plain[INET6_ADDRSTRLEN];
    size_t length = *address == '[' ? strcspn(address + 1, "%]") : sizeof plain;
    if (length >= sizeof plain)
        return false;
    memcpy(plain, address + 1, length);
    plain[length] = '\0';
    return inet_pton(AF_INET6, plain, ip) == 1;
}

void address_network(const char *address, char network[ADDRESS_NETWORK_SIZE])
{
    struct in6_addr ip;
    char text[INET6_ADDRSTRLEN];
    if (!parse_in_brackets(address, &ip) || IN6_IS_ADDR_LOOPBACK(&ip)) {
        snprintf(network, ADDRESS_NETWORK_SIZE, "%s", address);
    } else if (IN6_IS_ADDR_V4MAPPED(&ip)) {
        inet_ntop(AF_INET, &ip.s6_addr[12], network, ADDRESS_NETWORK_SIZE);
    } else {
        memset(&ip.s6_addr[8], 0, 8);
        snprintf(network, ADDRESS_NETWORK_SIZE, "[%s]/64",
                 inet_ntop(AF_INET6, &ip, text, sizeof text));
    }
}

/* Other spellings of loopback that a resolver may know (127.1) do not count: to take a local
 * address for a public one only asks for a token too many. */
bool address_is_local(const struct address *address)
{
    struct in_addr ip;
    struct in6_addr ip6;
    if (address->path)
        return true;
    if (strcasecmp(address->host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, address->host, &ip) == 1)
        return ntohl(ip.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, address->host, &ip6) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&ip6) || (IN6_IS_ADDR_V4MAPPED(&ip6) && ip6.s6_addr[12] == 127);
}
