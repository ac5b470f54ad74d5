/* SQL that says whether a condition may give another answer tomorrow for a row that stays the same.
 */
#ifndef NESTGUARD_CONDITION_CHANGES_H
#define NESTGUARD_CONDITION_CHANGES_H

/* CONDITION_CHANGES_OF text CONDITION_CHANGES_IS is a SELECT of one value: a list of what makes the
 * condition (an expression of type text) such a one, or NULL. That is functions all of whose
 * variants are stable or volatile, the words that stand for such, and subqueries. Read off its
 * text, without the string constants. */
#define CONDITION_CHANGES_OF "WITH bare AS (SELECT regexp_replace(lower("

#define CONDITION_CHANGES_IS                                                                       \
    "), '''[^'']*''', '', 'g') AS text)"                                                           \
    "SELECT string_agg(DISTINCT word, ', ') FROM ("                                                \
    "    SELECT p.proname || '()' FROM bare,"                                                      \
    "           regexp_matches(bare.text, E'([a-z_][a-z0-9_]*)\\\\s*\\\\(', 'g') AS m (name)"      \
    "      JOIN pg_proc p ON p.proname = m.name[1]"                                                \
    "     GROUP BY p.proname HAVING bool_and(p.provolatile <> 'i')"                                \
    "    UNION ALL"                                                                                \
    "    SELECT CASE m.name[1] WHEN 'select' THEN 'a subquery' ELSE m.name[1] END FROM bare,"      \
    "           regexp_matches(bare.text,"                                                         \
    "                          E'\\\\m(select|current_(?:date|time|timestamp|user|role)|"          \
    "local(?:time|timestamp)|session_user)\\\\M', 'g') AS m (name)) AS found (word)"

#endif
