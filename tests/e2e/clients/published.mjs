// What an application needs to look into a published filter: node-redis, and a hash.
import { murmur3 } from './murmur3.mjs';

export class Published {
  constructor(client, name) { Object.assign(this, { client, name, info: {}, bitmaps: [] }); }

  async learn() {
    const [info, cursor] = await this.client.multi().hGetAll(`${this.name}:info`).get(`${this.name}-cursor`).exec();
    this.info = info.format === 'guava-murmur3-128-64' ? info : {}; // else bits are others than places()
    this.bitmaps = cursor === null ? [this.name] : Array.from({ length: +cursor + 1 }, (_, i) => `${this.name}-${i}`);
  }

  places(item) {
    const [low, high] = murmur3(item), m = BigInt(this.info.m);
    return Array.from({ length: +this.info.k }, (_, i) => BigInt.asUintN(63, low + BigInt(i) * high) % m);
  }

  // Of each item whether it surely has no row. Bit m is set where there is a bitmap.
  async absent(...items) {
    for (let tries = 0; tries < 3; tries++) {
      const asked = this.client.multi().get(`${this.name}:lease`), count = this.bitmaps.length;
      for (const item of this.info.m ? items : [])
        for (const bitmap of this.bitmaps)
          asked.addCommand(['BITFIELD', bitmap, ...[this.info.m, ...this.places(item)].flatMap((bit) => ['GET', 'u1', `${bit}`])]);
      const [lease, ...found] = await asked.exec();
      if (lease === null) break;
      if (lease === this.info.generation)
        return items.map((_, i) => found.slice(i * count, (i + 1) * count).every((bits) => +bits[0] && bits.some((bit) => !+bit)));
      await this.learn(); // it was replaced, or is new to us
    }
    return items.map(() => false);
  }
}
