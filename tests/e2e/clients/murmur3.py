"""MurmurHash3_x64_128 with seed 0, as its author describes it: two numbers of 64 bits."""
MASK = (1 << 64) - 1
C1, C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def rotate(x, n):
    return (x << n | x >> (64 - n)) & MASK


def finish(h):
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return h ^ h >> 33


def mixed(k, first, second, n):
    return rotate(k * first & MASK, n) * second & MASK


def murmur3_x64_128(data):
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        k1, k2 = (int.from_bytes(data[i:i + 8], "little") for i in (at, at + 8))
        h1 = (rotate(h1 ^ mixed(k1, C1, C2, 31), 27) + h2) * 5 + 0x52DCE729 & MASK
        h2 = (rotate(h2 ^ mixed(k2, C2, C1, 33), 31) + h1) * 5 + 0x38495AB5 & MASK
    rest = data[whole:]
    h2 ^= mixed(int.from_bytes(rest[8:], "little"), C2, C1, 33)
    h1 ^= mixed(int.from_bytes(rest[:8], "little"), C1, C2, 31)
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = h1 + h2 & MASK
    h1, h2 = finish(h1), finish(h2 + h1 & MASK)
    h1 = h1 + h2 & MASK
    return h1, h2 + h1 & MASK
