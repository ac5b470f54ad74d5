/* SQL that says whether a condition, or a value, may be another tomorrow of a row that stays the
 * same. */
#ifndef NESTGUARD_CONDITION_CHANGES_H
#define NESTGUARD_CONDITION_CHANGES_H

/* CONDITION_CHANGES_OF text CONDITION_CHANGES_IS is a SELECT of one value: a list of what makes the
 * condition (an expression of type text) such a one, or NULL. That is functions all of whose
 * variants are stable or volatile, the words that stand for such, and subqueries. Read off its
 * text, without the string constants.
 *
 * The same of a value with VALUE_CHANGES_IS: most functions that format are called stable for the
 * sake of settings, which sessions have for good. So of the server's own stable ones only those
 * count that tell the time, a setting or who asks. */
#define CONDITION_CHANGES_OF "WITH bare AS (SELECT regexp_replace(lower("

#define CONDITION_CHANGES_IS CHANGES_BY_FUNCTIONS_THAT("p.provolatile <> 'i'")

#define VALUE_CHANGES_IS                                                                           \
    CHANGES_BY_FUNCTIONS_THAT("p.provolatile <> 'i' AND (p.provolatile = 'v' OR p.oid >= 16384"    \
                              " OR p.proname IN ('now', 'transaction_timestamp',"                  \
                              " 'statement_timestamp', 'current_setting', 'pg_get_userbyid'))")

#define CHANGES_BY_FUNCTIONS_THAT(condition)                                                       \
    "), '''[^'']*''', '', 'g') AS text)"                                                           \
    "SELECT string_agg(DISTINCT word, ', ') FROM ("                                                \
    "    SELECT p.proname || '()' FROM bare,"                                                      \
    "           regexp_matches(bare.text, E'([a-z_][a-z0-9_]*)\\\\s*\\\\(', 'g') AS m (name)"      \
    "      JOIN pg_proc p ON p.proname = m.name[1]"                                                \
    "     GROUP BY p.proname HAVING bool_and(" condition ")"                                       \
    "    UNION ALL"                                                                                \
    "    SELECT CASE m.name[1] WHEN 'select' THEN 'a subquery' ELSE m.name[1] END FROM bare,"      \
    "           regexp_matches(bare.text,"                                                         \
    "                          E'\\\\m(select|current_(?:date|time|timestamp|user|role)|"          \
    "local(?:time|timestamp)|session_user)\\\\M', 'g') AS m (name)) AS found (word)"

#endif
