"""Pictures of few colours, small: PNG with a palette in place of each point's own colour."""
import collections
import functools
import struct
import zlib


def _chunks(data):
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + length]
        at += 12 + length


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _paeth(left, above, corner):
    guess = left + above - corner
    return min((abs(guess - left), 0, left), (abs(guess - above), 1, above),
               (abs(guess - corner), 2, corner))[2]


def _undo(kind, line, above, size):
    """Takes a filter (PNG, section 9) off a line, in place."""
    if kind == 2:
        line[:] = bytes((a + b) & 255 for a, b in zip(line, above))
        return
    for i in range(len(line) if kind else 0):
        left, corner = (line[i - size], above[i - size]) if i >= size else (0, 0)
        add = (left, 0, (left + above[i]) // 2, _paeth(left, above[i], corner))[kind - 1]
        line[i] = (line[i] + add) & 255


def _read(data):
    """(width, height, [line, ...]) of three bytes a point."""
    chunks = list(_chunks(data))
    width, height, depth, colour = struct.unpack(">IIBB", chunks[0][1][:10])
    size = {2: 3, 6: 4}[colour]
    assert depth == 8
    raw = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    lines, above, step = [], bytearray(width * size), width * size + 1
    for at in range(0, height * step, step):
        line = bytearray(raw[at + 1:at + step])
        _undo(raw[at], line, above, size)
        lines.append(line)
        above = line
    return width, height, [[tuple(line[i:i + 3]) for i in range(0, len(line), size)]
                           for line in lines]


def shrink(path):
    """Writes the picture again with the 256 colours that say most of it."""
    width, height, lines = _read(path.read_bytes())
    counts = collections.Counter(point for line in lines for point in line)
    palette = [colour for colour, _ in counts.most_common(256)]

    @functools.lru_cache(maxsize=None)
    def nearest(point):
        return min(range(len(palette)),
                   key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], point)))

    packed = zlib.compress(b"".join(b"\0" + bytes(map(nearest, line)) for line in lines), 9)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" +
                     _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
                     _chunk(b"PLTE", b"".join(map(bytes, palette))) + _chunk(b"IDAT", packed) +
                     _chunk(b"IEND", b""))
