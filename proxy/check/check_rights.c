/* ACL DRYRUN is for administrators and not in every server; trying is for everybody. Servers hold a
 * command against the user's rights before they queue it in a transaction, so all of them are
 * queued and then discarded. For users who may not even MULTI each has arguments with which it does
 * nothing: a key that nobody has, a TTL of zero, an offset below zero.
 *
 *   keys that nobody has ─┬─ allowed ─▶ nothing to tell
 *                         └─ refused ─▶ keys that are there ─┬─ refused ─▶ what is lost with them
 *                                       (not without MULTI)  ├─ allowed ─▶ a note
 *                                                            └─ untried ─▶ a warning
 */
#include "check/check_rights.h"

#include "base/memory.h"
#include "base/span.h"
#include "check/check_keys.h"
#include "check/check_needs.h"
#include "redis/redis_survey.h"

#include <stdlib.h>
#include <string.h>

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
    bool *told;       /* by the number of the need: refused for any key */
    bool carries_out; /* what was tried was not within a transaction */
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

/* ---- keys ---- */

/* What a key was refused for, which stands behind each other; NULL: for nothing. */
static const struct attempt *refused(const struct rights *rights, const char *key)
{
    for (size_t i = 0; key && i < rights->count; i++)
        if (rights->attempts[i].key == key && is_of_key(rights->attempts[i].refusal))
            return &rights->attempts[i];
    return NULL;
}

/* The names of all commands that were, and how bad that is. */
static char *names_of(const struct rights *rights, const struct attempt *first,
                      enum problem_level *level)
{
    const struct attempt *end = rights->attempts + rights->count;
    struct buffer names = {0};
    *level = PROBLEM_NOTE;
    for (const struct attempt *at = first; at < end && at->key == first->key; at++)
        if (is_of_key(at->refusal)) {
            buffer_printf(&names, "%s%s", at == first ? "" : ", ", at->need->name);
            if (level_of(rights, at->need) > *level)
                *level = level_of(rights, at->need);
        }
    return buffer_string(&names);
}

/* Of a key that is there the level is what is lost with it. Of one that nobody has it is `most`,
 * and `remark` says what is known of those that are. */
static void tell_of_key(const struct rights *rights, const struct attempt *first,
                        enum problem_level most, const char *remark)
{
    enum problem_level level;
    struct buffer remedy = {0};
    char *names = names_of(rights, first, &level);
    buffer_printf(&remedy, "ACL SETUSER %s ", rights->user);
    append_pattern(&remedy, first);
    char *line = buffer_string(&remedy);
    problems_add(rights->check->problems, level < most ? level : most, rights->check->place, line,
                 "its user %s may not %s keys such as %s, of keyspace %s%s: %s", rights->user,
                 names, first->key, first->keyspace->name, remark, lost_of(rights, first->need));
    free(names);
    free(line);
}

/* Within a transaction, or not: that is known behind it. False: there is no answer. */
static bool run(struct rights *rights, char error[256])
{
    struct redis_trial *trials = xcalloc(rights->count + 1, sizeof *trials);
    for (size_t i = 0; i < rights->count; i++) {
        struct attempt *attempt = &rights->attempts[i];
        size_t count = 0;
        while (attempt->need->words[count])
            count++;
        trials[i] = (struct redis_trial){attempt->words, count, attempt->refusal};
    }
    int status = redis_try(rights->check->options, trials, rights->count, error);
    rights->carries_out = status > 0;
    free(trials);
    return status >= 0;
}

/* Keys that are there. *first is the first attempt that was refused; NULL: none was. False: there
 * are none, or they could not be tried. */
static bool try_keys(struct rights *real, const struct rights *rights,
                     const struct check_keys *keys, const struct attempt **first)
{
    char error[256];
    *real = (struct rights){.check = rights->check, .user = rights->user};
    *first = NULL;
    if (!keys->count || rights->carries_out)
        return false;
    real->attempts = xcalloc(keys->count * needs_count, sizeof *real->attempts);
    for (size_t i = 0; i < keys->count; i++)
        add_of_keyspace(real, keys->keyspace, keys->at[i], keys->are_published);
    if (!run(real, error) || real->carries_out)
        return false;
    for (size_t i = 0; i < keys->count && !*first; i++)
        *first = refused(real, keys->at[i]);
    return true;
}

/* A key that nobody has was refused: that says little of those that are there. `usual`: it was such
 * as most are. */
static void judge(const struct rights *rights, const struct attempt *invented, bool usual,
                  const struct check_keys *keys)
{
    struct rights real;
    const struct attempt *first;
    char remark[160];
    bool tried = try_keys(&real, rights, keys, &first);
    snprintf(remark, sizeof remark,
             ", though it may those that are there, of which %zu were tried; where its patterns do "
             "not cover all that will come",
             keys->count);
    if (first)
        tell_of_key(&real, first, PROBLEM_ERROR, "");
    else if (usual && tried)
        tell_of_key(rights, invented, PROBLEM_NOTE, remark);
    else if (usual)
        tell_of_key(rights, invented, PROBLEM_WARNING,
                    ", and no key that is there could be tried; where its patterns do not cover "
                    "all");
    free(real.attempts);
}

/* With `key` of each kind, which nobody has. */
static void judge_keyspace(const struct rights *rights, const struct keyspace *keyspace,
                           char *const *key)
{
    const struct attempt *digits = refused(rights, key[INVENTED_DIGITS]);
    const struct attempt *letters = refused(rights, key[INVENTED_LETTERS]);
    const struct attempt *published = refused(rights, key[INVENTED_PUBLISHED]);
    struct check_keys keys;
    if (digits || letters) {
        check_keys_of_rows(&keys, rights->check->config, keyspace);
        judge(rights, digits ? digits : letters, digits, &keys);
        check_keys_finish(&keys);
    }
    if (published) {
        check_keys_published(&keys, keyspace);
        judge(rights, published, true, &keys);
        check_keys_finish(&keys);
    }
}

/* ---- all ---- */

static void tell_of_commands(struct rights *rights)
{
    for (size_t i = 0; i < rights->count; i++) {
        const struct attempt *attempt = &rights->attempts[i];
        if (!is_of_key(attempt->refusal) &&
            (span_starts(span_of(attempt->refusal), "NOPERM ") || is_unknown(attempt->refusal)))
            tell_of_command(rights, attempt);
    }
}

/* Of each keyspace one of each kind that it has, in `key`. */
static void add_all(struct rights *rights, char **key)
{
    const struct config *config = rights->check->config;
    for (size_t i = 0; i < needs_count; i++)
        if (need_is_once(&needs[i], config, rights->check->is_replica))
            add(rights, &needs[i], NULL, NULL);
    for (size_t i = 0; i < INVENTED_KINDS * config->keyspace_count; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i / INVENTED_KINDS];
        enum invented_key kind = i % INVENTED_KINDS;
        bool is_published = kind == INVENTED_PUBLISHED;
        if (is_published ? keyspace->publish.key != NULL : keyspace->key.columns > 0)
            key[i] = check_keys_invent(keyspace, kind);
        add_of_keyspace(rights, keyspace, key[i], is_published);
    }
}

static void look_at(struct rights *rights, char **key)
{
    const struct config *config = rights->check->config;
    char error[256];
    add_all(rights, key);
    if (!run(rights, error)) {
        problems_add(rights->check->problems, PROBLEM_NOTE, rights->check->place, NULL,
                     "what its user may do could not be tried: %s", error);
        return;
    }
    tell_of_commands(rights);
    for (size_t i = 0; i < config->keyspace_count; i++)
        judge_keyspace(rights, &config->keyspaces[i], &key[INVENTED_KINDS * i]);
}

void check_rights(const struct check_rights *check)
{
    const struct redis_options *options = check->options;
    size_t keys = INVENTED_KINDS * check->config->keyspace_count;
    char **key = xcalloc(keys + 1, sizeof *key);
    struct rights rights = {.check = check,
                            .user = options->user ? options->user : "default",
                            .told = xcalloc(needs_count, sizeof *rights.told),
                            .attempts = xcalloc((keys + 1) * needs_count, sizeof *rights.attempts)};
    snprintf(rights.db, sizeof rights.db, "%d", options->db);
    look_at(&rights, key);
    for (size_t i = 0; i < keys; i++)
        free(key[i]);
    free(key);
    free(rights.attempts);
    free(rights.told);
}
