/* address_leads_to(): what is written differently may be one place. */
#include "base/text/address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>

/* An address of either family, without its port. */
struct place {
    int family;
    struct in_addr four;
    struct in6_addr six;
};

static struct place place_of(const struct sockaddr *at)
{
    struct place place = {.family = at->sa_family};
    if (at->sa_family == AF_INET)
        place.four = ((const struct sockaddr_in *)at)->sin_addr;
    else if (at->sa_family == AF_INET6)
        place.six = ((const struct sockaddr_in6 *)at)->sin6_addr;
    return place;
}

static bool are_equal(const struct place *a, const struct place *b)
{
    if (a->family != b->family)
        return false;
    return a->family == AF_INET ? a->four.s_addr == b->four.s_addr
                                : IN6_ARE_ADDR_EQUAL(&a->six, &b->six);
}

static bool is_wildcard(const struct place *place)
{
    return place->family == AF_INET ? place->four.s_addr == htonl(INADDR_ANY)
                                    : IN6_IS_ADDR_UNSPECIFIED(&place->six);
}

static bool is_loopback(const struct place *place)
{
    return place->family == AF_INET ? ntohl(place->four.s_addr) >> 24 == 127
                                    : IN6_IS_ADDR_LOOPBACK(&place->six);
}

static bool is_of_this_machine(const struct place *place)
{
    struct ifaddrs *all = NULL;
    bool is = is_loopback(place);
    if (!is && getifaddrs(&all) < 0)
        return false;
    for (const struct ifaddrs *one = all; one && !is; one = one->ifa_next) {
        struct place own = {0};
        if (one->ifa_addr)
            own = place_of(one->ifa_addr);
        is = are_equal(&own, place);
    }
    if (all)
        freeifaddrs(all);
    return is;
}

/* Who connects to the wildcard comes to the loopback address. A listener on IPv6's does not take
 * what comes by IPv4 (address_listen()). */
static bool leads(struct place to, const struct place *at)
{
    if (to.family != at->family)
        return false;
    if (is_wildcard(&to)) {
        to.four.s_addr = htonl(INADDR_LOOPBACK);
        to.six = in6addr_loopback;
    }
    return is_wildcard(at) ? is_of_this_machine(&to) : are_equal(&to, at);
}

static struct addrinfo *look_up(const char *host)
{
    struct addrinfo *found = NULL, hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    return getaddrinfo(host, NULL, &hints, &found) ? NULL : found;
}

/* Of a name of several addresses any may be taken. */
static bool hosts_meet(const char *to, const char *at)
{
    struct addrinfo *targets = look_up(to), *listeners = targets ? look_up(at) : NULL;
    bool meet = false;
    for (const struct addrinfo *target = targets; target && !meet; target = target->ai_next)
        for (const struct addrinfo *one = listeners; one && !meet; one = one->ai_next) {
            struct place listener = place_of(one->ai_addr);
            meet = leads(place_of(target->ai_addr), &listener);
        }
    if (targets)
        freeaddrinfo(targets);
    if (listeners)
        freeaddrinfo(listeners);
    return meet;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return strcmp(a, b) == 0 || (stat(a, &one) == 0 && stat(b, &other) == 0 &&
                                 one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

bool address_leads_to(const struct address *to, const struct address *at)
{
    if (to->path || at->path)
        return to->path && at->path && is_same_file(to->path, at->path);
    return to->port == at->port && hosts_meet(to->host, at->host);
}
