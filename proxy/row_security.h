/* Row-level security, as statements about the catalogue ask for it. */
#ifndef NESTGUARD_ROW_SECURITY_H
#define NESTGUARD_ROW_SECURITY_H

/* SQL: whether the role may not see all rows of table c (pg_class): row-level security is active
 * for it, unless a permissive policy that applies to it lets everything through and no restrictive
 * one takes any away. */
#define SQL_HIDES_ROWS                                                                             \
    "row_security_active(c.oid) AND NOT coalesce((SELECT"                                          \
    "    bool_or(p.polpermissive AND pg_get_expr(p.polqual, c.oid) = 'true')"                      \
    "    AND bool_and(p.polpermissive)"                                                            \
    "    FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd IN ('r', '*') AND EXISTS"          \
    "        (SELECT FROM unnest(p.polroles) r"                                                    \
    "         WHERE CASE r WHEN 0 THEN true ELSE pg_has_role(r, 'USAGE') END)), false)"

#endif
