// MurmurHash3_x64_128 with seed 0: two BigInts.
const u64 = (x) => BigInt.asUintN(64, x);
const rotate = (x, n) => u64(x << n | x >> (64n - n));
const C1 = 0x87C37B91114253D5n, C2 = 0x4CF5AD432745937Fn;
const mixed = (k, a, b, n) => u64(rotate(u64(k * a), n) * b);

function finish(h) {
  h = u64((h ^ h >> 33n) * 0xFF51AFD7ED558CCDn);
  h = u64((h ^ h >> 33n) * 0xC4CEB9FE1A85EC53n);
  return h ^ h >> 33n;
}

export function murmur3(text) {
  const bytes = Buffer.from(text), padded = Buffer.alloc(bytes.length + 16);
  bytes.copy(padded);
  let h1 = 0n, h2 = 0n, at = 0;
  for (; at + 16 <= bytes.length; at += 16) {
    h1 = u64((rotate(h1 ^ mixed(padded.readBigUInt64LE(at), C1, C2, 31n), 27n) + h2) * 5n + 0x52DCE729n);
    h2 = u64((rotate(h2 ^ mixed(padded.readBigUInt64LE(at + 8), C2, C1, 33n), 31n) + h1) * 5n + 0x38495AB5n);
  }
  h2 ^= mixed(padded.readBigUInt64LE(at + 8), C2, C1, 33n) ^ BigInt(bytes.length);
  h1 ^= mixed(padded.readBigUInt64LE(at), C1, C2, 31n) ^ BigInt(bytes.length);
  h1 = u64(h1 + h2);
  [h1, h2] = [finish(h1), finish(u64(h2 + h1))];
  h1 = u64(h1 + h2);
  return [h1, u64(h2 + h1)];
}
