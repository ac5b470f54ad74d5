"""What an application needs to look into a published filter: redis-py, and a hash."""
from murmur3 import murmur3_x64_128


class Published:
    def __init__(self, client, name):
        self.client, self.name, self.info, self.bitmaps = client, name, {}, []

    def learn(self):
        with self.client.pipeline() as asked:
            info, cursor = asked.hgetall(self.name + ":info").get(self.name + "-cursor").execute()
        self.info = {field.decode(): value.decode() for field, value in info.items()}
        if self.info.get("format") != "guava-murmur3-128-64":
            self.info = {}  # it has other bits than places(): anything may have a row
        self.bitmaps = [self.name] if cursor is None else [
            f"{self.name}-{i}" for i in range(int(cursor) + 1)]

    def places(self, item):
        m, (low, high) = int(self.info["m"]), murmur3_x64_128(item.encode())
        return [((low + i * high) & (1 << 63) - 1) % m for i in range(int(self.info["k"]))]

    def absent(self, *items):
        """Of each item whether it surely has no row. Bit m is set where there is a bitmap."""
        for _ in range(3):
            with self.client.pipeline() as asked:  # MULTI: all of it at one moment
                asked.get(self.name + ":lease")
                for item in items if self.info else ():
                    bits = [int(self.info["m"]), *self.places(item)]
                    for bitmap in self.bitmaps:
                        asked.execute_command("BITFIELD", bitmap, *(
                            word for bit in bits for word in ("GET", "u1", bit)))
                lease, *found = asked.execute()
            if lease is None:
                break
            if lease.decode() == self.info.get("generation"):
                count = len(self.bitmaps)
                return [all(bits[0] and 0 in bits for bits in found[i * count:(i + 1) * count])
                        for i in range(len(items))]
            self.learn()  # it was replaced, or is new to us
        return [False] * len(items)
