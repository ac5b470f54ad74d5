/* SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
 *
 * A pseudo-random function of short messages: without the 128-bit key nobody can tell its values
 * from random ones, hence nobody can choose messages that collide.
 */
#ifndef NESTGUARD_SIPHASH_H
#define NESTGUARD_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* The key is given as two integers: its first and its last eight bytes, little-endian. */

/* One round a word, three at the end: what hash tables use. */
uint64_t siphash_1_3(uint64_t k0, uint64_t k1, const void *bytes, size_t length);

/* Two rounds a word, four at the end: the paper's first choice. Slower; its vectors are those that
 * the authors published. */
uint64_t siphash_2_4(uint64_t k0, uint64_t k1, const void *bytes, size_t length);

#endif
