/* Asked with the fingerprint of publication_probe.c, and under its rules: by index, without a lock.
 *
 * A column's row has another xmin after each ALTER that may have rewritten its values, and the same
 * after a table was merely rewritten. It also has after some that change no value (SET STATISTICS):
 * a purge too many harms nothing. So has the rule of a view that is replaced, and a function that
 * is: of those that an expression may use. A table and a view that it uses are found by the type
 * that their rows have, which is called as they are.
 */
#include "database/publication_values.h"

#include "database/printed_types.h"

/* What is of the server itself has a lower oid (FirstNormalObjectId) and is never altered: most
 * tables have no other types. */
#define USERS " >= 16384"

/* The types of columns and those that are printed as a part of them, for values and for keys.
 * UNION, so that each is looked at once. */
const char publication_values[] =
    "valued_of AS (SELECT * FROM located l WHERE l.place = l.keyspace), "
    "printed (place, is_key, type) AS ("
    " SELECT l.place, false, a.type FROM valued_of l, unnest(ARRAY(SELECT a.atttypid FROM "
    "pg_attribute a"
    "         WHERE a.attrelid = l.oid AND a.attnum > 0 AND NOT a.attisdropped"
    "           AND (l.value IS NULL OR a.attname = l.value) AND a.atttypid" USERS ")"
    "         || ARRAY(SELECT y.oid FROM pg_type y WHERE y.typname = ANY (l.used)"
    "           AND y.oid" USERS ")) AS a (type)"
    " UNION SELECT l.place, true, a.type FROM located l, unnest(ARRAY(SELECT a.atttypid"
    "          FROM pg_attribute a WHERE a.attrelid = l.oid AND a.attname = ANY (l.columns)"
    "           AND a.atttypid" USERS ")) AS a (type)"
    " UNION SELECT p.place, p.is_key, i.type"
    "   FROM printed p, unnest(ARRAY(SELECT i.type FROM pg_type y, unnest(" TYPES_PRINTED_IN_Y
    "         ) AS i (type) WHERE y.oid = p.type AND i.type" USERS ")) AS i (type)), "
    /* The table, or a view, and those that an expression or a query names, and the views that they
     * read. */
    "defined (place, oid) AS ("
    " SELECT l.place, l.oid FROM valued_of l"
    " UNION SELECT l.place, y.typrelid FROM valued_of l, unnest(ARRAY(SELECT y.typrelid"
    "            FROM pg_type y WHERE y.typname = ANY (l.used) AND y.typrelid" USERS
    ")) AS y (typrelid)"
    " UNION SELECT d.place, v.oid FROM defined d, unnest(ARRAY(SELECT p.refobjid"
    "            FROM pg_rewrite r, pg_depend p WHERE r.ev_class = d.oid AND r.ev_type = '1'"
    "             AND p.classid = 'pg_rewrite'::regclass AND p.objid = r.oid"
    "             AND p.refclassid = 'pg_class'::regclass)) AS v (oid)), "
    /* A value of a type with a cast to json is what that cast makes of it. */
    "valued (list) AS ("
    " SELECT string_agg(to_hex(hashtextextended(s.text, 0)) || to_hex(hashtextextended(s.text, 1)),"
    "                   ',' ORDER BY s.place)"
    "   FROM (SELECT l.place, (ROW(l.oid,"
    "     (SELECT string_agg(ROW(a.attnum, a.attname, a.atttypid, a.xmin,"
    "               CASE WHEN a.attgenerated <> '' THEN (SELECT ROW(d.oid, d.xmin)::text"
    "                  FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) END"
    "             )::text, ';' ORDER BY a.attnum)"
    "        FROM pg_attribute a WHERE a.attrelid = l.oid AND a.attnum > 0 AND NOT a.attisdropped"
    "         AND (l.value IS NULL OR a.attname = l.value)),"
    "     (SELECT string_agg(ROW(f.oid, f.xmin)::text, ';' ORDER BY f.oid) FROM pg_proc f"
    "       WHERE f.proname = ANY (l.used) AND f.oid" USERS "),"
    "     (SELECT string_agg(ROW(p.type, (SELECT ROW(y.typbasetype, y.typelem, y.typrelid,"
    "               y.typoutput,"
    "               (SELECT string_agg(ROW(e.enumlabel, e.xmin)::text, ',' ORDER BY e.oid)"
    "                  FROM pg_enum e WHERE e.enumtypid = y.oid),"
    "               (SELECT string_agg(ROW(a.attnum, a.attname, a.atttypid, a.xmin)::text, ','"
    "                         ORDER BY a.attnum)"
    "                  FROM pg_attribute a WHERE a.attrelid = y.typrelid AND a.attnum > 0"
    "                   AND NOT a.attisdropped),"
    "               (SELECT string_agg(ROW(w.oid, w.xmin)::text, ',' ORDER BY w.oid)"
    "                  FROM pg_rewrite w WHERE w.ev_class = y.typrelid AND y.typrelid <> 0),"
    "               (SELECT ROW(k.oid, k.xmin, (SELECT f.xmin FROM pg_proc f"
    "                         WHERE f.oid = k.castfunc))::text"
    "                  FROM pg_cast k WHERE k.castsource = y.oid AND k.casttarget = "
    "'json'::regtype)"
    "             )::text FROM pg_type y WHERE y.oid = p.type))::text, ';' ORDER BY p.type)"
    "        FROM printed p WHERE p.place = l.place AND NOT p.is_key),"
    "     (SELECT string_agg(ROW(r.oid, r.xmin)::text, ',' ORDER BY r.oid)"
    "        FROM defined d, pg_rewrite r"
    "       WHERE d.place = l.place AND r.ev_class = d.oid AND r.ev_type = '1'))::text) COLLATE "
    "\"C\" AS text"
    "     FROM valued_of l OFFSET 0) s)";
