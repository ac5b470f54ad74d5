/* ACL DRYRUN is for administrators and not in every server; trying is for everybody. Servers hold a
 * command against the user's rights before they queue it in a transaction, so all of them are
 * queued and then discarded. For users who may not even MULTI each has arguments with which it does
 * nothing: a key that nobody has, a TTL of zero, an offset below zero.
 */
#include "check/check_rights.h"

#include "base/memory.h"
#include "base/span.h"
#include "check/check_needs.h"
#include "redis/redis_survey.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* One command that is tried. */
struct attempt {
    const struct need *need;
    const struct keyspace *keyspace; /* NULL: of none */
    const char *key;                 /* NULL: of none */
    const char *words[NEED_WORDS];
    char refusal[REDIS_REFUSAL_SIZE];
};

struct rights {
    const struct check_rights *check;
    const char *user;
    struct attempt *attempts;
    size_t count;
    char db[12];
    bool *told; /* by the number of the need: refused for any key */
};

static void add(struct rights *rights, const struct need *need, const struct keyspace *keyspace,
                const char *key)
{
    struct attempt *attempt = &rights->attempts[rights->count++];
    *attempt = (struct attempt){.need = need, .keyspace = keyspace, .key = key};
    for (size_t i = 0; need->words[i]; i++)
        attempt->words[i] = need->words[i] == need_key  ? key
                            : need->words[i] == need_db ? rights->db
                                                        : need->words[i];
}

/* A new string: digits alone, which are a value of most columns' types and patterns, and so many
 * that no row has it. */
static char *key_of_nobody(const struct keyspace *keyspace, bool is_published)
{
    uint64_t random = 0;
    char digits[24];
    struct span columns[KEY_COLUMNS_MAX];
    struct buffer text = {0};
    if (getrandom(&random, sizeof random, 0) < 0)
        random = 0;
    snprintf(digits, sizeof digits, "9%020llu", (unsigned long long)random);
    for (size_t i = 0; i < KEY_COLUMNS_MAX; i++)
        columns[i] = span_of(digits);
    if (is_published)
        buffer_printf(&text, "%s:%s", keyspace->publish.key, digits);
    else
        key_template_render(&keyspace->key, columns, &text);
    char *key = buffer_string(&text);
    buffer_finish(&text);
    return key;
}

static void add_of_keyspace(struct rights *rights, const struct keyspace *keyspace, const char *key,
                            bool is_published)
{
    for (size_t i = 0; key && i < needs_count; i++)
        if ((needs[i].whose == FOR_PUBLISHING) == is_published &&
            need_is_of(&needs[i], keyspace, rights->check->is_replica))
            add(rights, &needs[i], keyspace, key);
}

/* ---- what came of it ---- */

static bool is_unknown(const char *refusal)
{
    return span_starts(span_of(refusal), "ERR unknown command") ||
           span_starts(span_of(refusal), "ERR Unknown subcommand") ||
           span_starts(span_of(refusal), "ERR unknown subcommand");
}

/* "... to access one of the keys used as arguments", "No permissions to access a key". */
static bool is_of_key(const char *refusal)
{
    return span_starts(span_of(refusal), "NOPERM ") && strstr(refusal, " access ") != NULL;
}

/* What is not read from a replica goes to its primary. */
static enum problem_level level_of(const struct rights *rights, const struct need *need)
{
    if (rights->check->is_replica)
        return PROBLEM_WARNING;
    return need->level == PROBLEM_ERROR ? rights->check->down : need->level;
}

static const char *lost_of(const struct rights *rights, const struct need *need)
{
    return rights->check->is_replica ? "what it is to be read for goes to its primary" : need->lost;
}

static void tell_of_command(struct rights *rights, const struct attempt *attempt)
{
    const struct need *need = attempt->need;
    const struct need *first = needs; /* of this command, which several may need */
    while (strcmp(first->name, need->name) != 0)
        first++;
    if (rights->told[first - needs])
        return;
    rights->told[first - needs] = true;
    char *remedy = xasprintf("ACL SETUSER %s %s", rights->user, need->right);
    if (is_unknown(attempt->refusal))
        problems_add(rights->check->problems, level_of(rights, need), rights->check->place, NULL,
                     "it does not know %s, which the guard sends (`rename-command` in its "
                     "configuration?): %s",
                     need->name, lost_of(rights, need));
    else
        problems_add(rights->check->problems, level_of(rights, need), rights->check->place, remedy,
                     "its user %s may not %s, which the guard sends: %s", rights->user, need->name,
                     lost_of(rights, need));
    free(remedy);
}

/* As a pattern has them: a rule of ACLs has no spaces. */
static void append_literal(struct buffer *out, struct span literal)
{
    for (size_t i = 0; i < literal.length; i++) {
        if (strchr("*?[]\\", literal.at[i]))
            buffer_append(out, "\\", 1);
        buffer_append(out, literal.at[i] == ' ' ? "?" : &literal.at[i], 1);
    }
}

static void append_pattern(struct buffer *out, const struct attempt *attempt)
{
    const struct key_template *key = &attempt->keyspace->key;
    buffer_append(out, "~", 1);
    if (attempt->need->whose == FOR_PUBLISHING)
        append_literal(out, span_of(attempt->keyspace->publish.key));
    else
        for (size_t i = 0; i < key->columns; i++) {
            append_literal(out, key->literal[i]);
            if (i + 1 < key->columns)
                buffer_append(out, "*", 1);
        }
    buffer_append(out, "*", 1);
    if (attempt->need->whose != FOR_PUBLISHING)
        append_literal(out, key->literal[key->columns]);
}

/* The attempts with one key stand behind each other: the first that is refused tells of all. */
static void tell_of_key(struct rights *rights, const struct attempt *first)
{
    const struct attempt *end = rights->attempts + rights->count;
    enum problem_level level = PROBLEM_NOTE;
    struct buffer names = {0}, remedy = {0};
    for (const struct attempt *at = first; at < end && at->key == first->key; at++)
        if (is_of_key(at->refusal)) {
            buffer_printf(&names, "%s%s", at == first ? "" : ", ", at->need->name);
            if (level_of(rights, at->need) > level)
                level = level_of(rights, at->need);
        }
    buffer_printf(&remedy, "ACL SETUSER %s ", rights->user);
    append_pattern(&remedy, first);
    char *refused = buffer_string(&names), *line = buffer_string(&remedy);
    problems_add(rights->check->problems, level, rights->check->place, line,
                 "its user %s may not %s keys such as %s, of keyspace %s: %s", rights->user,
                 refused, first->key, first->keyspace->name, lost_of(rights, first->need));
    free(refused);
    free(line);
    buffer_finish(&names);
    buffer_finish(&remedy);
}

static void tell(struct rights *rights)
{
    const char *told = NULL;
    for (size_t i = 0; i < rights->count; i++) {
        const struct attempt *attempt = &rights->attempts[i];
        if (is_of_key(attempt->refusal) && attempt->key != told) {
            tell_of_key(rights, attempt);
            told = attempt->key;
        } else if (!is_of_key(attempt->refusal) &&
                   (span_starts(span_of(attempt->refusal), "NOPERM ") ||
                    is_unknown(attempt->refusal))) {
            tell_of_command(rights, attempt);
        }
    }
}

static void try_all(struct rights *rights)
{
    char error[256];
    struct redis_trial *trials = xcalloc(rights->count + 1, sizeof *trials);
    for (size_t i = 0; i < rights->count; i++) {
        struct attempt *attempt = &rights->attempts[i];
        size_t count = 0;
        while (attempt->need->words[count])
            count++;
        trials[i] = (struct redis_trial){attempt->words, count, attempt->refusal};
    }
    if (redis_try(rights->check->options, trials, rights->count, error) < 0)
        problems_add(rights->check->problems, PROBLEM_NOTE, rights->check->place, NULL,
                     "what its user may do could not be tried: %s", error);
    else
        tell(rights);
    free(trials);
}

void check_rights(const struct check_rights *check)
{
    const struct config *config = check->config;
    const struct redis_options *options = check->options;
    size_t keys = 2 * config->keyspace_count;
    char **key = xcalloc(keys + 1, sizeof *key);
    struct rights rights = {.check = check,
                            .user = options->user ? options->user : "default",
                            .told = xcalloc(needs_count, sizeof *rights.told),
                            .attempts = xcalloc((keys + 1) * needs_count, sizeof *rights.attempts)};
    snprintf(rights.db, sizeof rights.db, "%d", options->db);
    for (size_t i = 0; i < needs_count; i++)
        if (need_is_once(&needs[i], config, check->is_replica))
            add(&rights, &needs[i], NULL, NULL);
    for (size_t i = 0; i < keys; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i / 2];
        if (i % 2 ? keyspace->publish.key != NULL : keyspace->key.columns > 0)
            key[i] = key_of_nobody(keyspace, i % 2);
        add_of_keyspace(&rights, keyspace, key[i], i % 2);
    }
    try_all(&rights);
    for (size_t i = 0; i < keys; i++)
        free(key[i]);
    free(key);
    free(rights.attempts);
    free(rights.told);
}
