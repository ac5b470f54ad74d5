/* What is said to the cache of a published filter where more than one thing must happen at once.
 * Each script answers "MILLISECONDS WORD": the cache's own clock, and what it found. Whose the
 * filter is stands in NAME:info (`owner`), and which one it is (`generation`); the lease holds the
 * generation as its value.
 */
#ifndef NESTGUARD_PUBLISH_SCRIPTS_H
#define NESTGUARD_PUBLISH_SCRIPTS_H

/* KEYS lease info bitmap; ARGV owner, "drop" or "". Whether the name may be published under:
 * "free", "lapsed" (another guard's, without a lease), "other" (with one) or "taken" (it is no
 * string). With "drop" an own lease ends: nobody knows what is under the name. */
extern const char publish_script_ask[];

/* KEYS lease info cursor, then all bitmaps' names, then those under which they were built;
 * ARGV owner, generation, deadline, bytes of a bitmap, how many there are, how many names,
 * then fields and values of the info. "kept", "other", or "lost" when a piece of it is missing. */
extern const char publish_script_commit[];

/* KEYS lease info bitmaps...; ARGV owner, generation, deadline, bytes of a bitmap, its last bit,
 * keys. The lease stands until the deadline, on the cache's clock. "kept", "other" or "lost". */
extern const char publish_script_renew[];

/* KEYS lease info; ARGV owner. An own lease ends. */
extern const char publish_script_drop[];

/* KEYS lease info and all else; ARGV owner. What is an own one goes, and its lease first. */
extern const char publish_script_remove[];

/* KEYS lease info cursor bitmap; ARGV owner, generation, generation from now on, last bit, cursor.
 * An empty bitmap beside the others. "kept" or "lost". */
extern const char publish_script_grow[];

#endif
