// What an application does with node-redis: node node_redis.mjs PORT RESP [cluster]
// Prints one line of JSON a step. Run against the guard and against Redis, the lines must be alike.
import { createRequire } from 'node:module';
const { createClient } = createRequire(process.env.NODE_MODULES + '/')('redis');

const [port, RESP] = process.argv.slice(2).map(Number);
const inside = 'in{item:901}'; // of a transaction: in a cluster its keys have one slot
const options = { RESP, socket: { host: '127.0.0.1', port, reconnectStrategy: false } };

async function open() {
  const client = createClient(options);
  client.on('error', (error) => say('error', String(error)));
  await client.connect();
  return client;
}

function plain(value) {
  if (value instanceof Map) return [...value].map(([k, v]) => [plain(k), plain(v)]);
  if (value instanceof Set) return [...value].map(plain).sort();
  if (Array.isArray(value)) return value.map(plain);
  if (value && typeof value === 'object') return Object.entries(value).map(([k, v]) => [k, plain(v)]);
  return value;
}

const say = (step, value) => console.log(JSON.stringify([step, plain(value)]));
const attempt = (step, promise) => promise.then((value) => say(step, value), (error) => say(step, error.message));

const client = await open();
const other = await open();

await attempt('ping', client.ping());
await attempt('absent', client.get('item:901'));
await attempt('absent map', client.hGetAll('item:901'));
await attempt('absent many', client.mGet(['item:901', 'item:902', 'none']));
await attempt('set', client.set('text', 'héllo\r\n\0', { EX: 1000 }));
await attempt('get', client.get('text'));
await attempt('counter', client.incrBy('counter', 41));
await attempt('hash', client.hSet('hash', { a: '1', b: 'two' }));
await attempt('hash read', client.hGetAll('hash'));
await attempt('list', client.rPush('list', ['a', 'b', 'c']));
await attempt('list read', client.lRange('list', 0, -1));
await attempt('set', client.sAdd('set', ['1', '2']));
await attempt('set read', client.sMembers('set'));
await attempt('zset', client.zAdd('zset', [{ score: 1.5, value: 'a' }, { score: 2, value: 'b' }]));
await attempt('zset read', client.zRangeWithScores('zset', 0, -1));
await attempt('score', client.zScore('zset', 'a'));
await attempt('no score', client.zScore('item:901', 'a'));
await attempt('stream', client.xAdd('stream', '1-1', { a: '1' }));
await attempt('stream read', client.xRange('stream', '-', '+'));
await attempt('wrong type', client.lPush('text', 'x'));
if (!process.argv.includes('cluster')) await attempt('unknown', client.sendCommand(['NOSUCH', 'x']));
await attempt('script', client.eval('return {KEYS[1], ARGV[1], 7}', { keys: ['text'], arguments: ['x'] }));
await attempt('large', client.set('large', 'x'.repeat(3000000)).then(() => client.get('large')).then((v) => v.length));
await attempt('at once', Promise.all(Array.from({ length: 300 }, (_, i) => client.get(i % 3 ? 'text' : `item:${900 + (i % 2)}`))));
await attempt('transaction', client.multi().set(inside, '1').get(inside).get('item:901').incr(inside).exec());
await attempt('watch', (async () => {
  await client.watch(inside);
  await other.set(inside, '100');
  try { return await client.multi().incr(inside).exec(); } catch (error) { return error.constructor.name; }
})());
await attempt('after', client.get(inside));
await attempt('blocking', (async () => {
  const waiting = other.blPop('queue', 20);
  await client.rPush('queue', 'job');
  return waiting;
})());
await attempt('blocking in vain', other.blPop('queue', 0.05));
await attempt('published', (async () => {
  const subscriber = await open();
  const heard = [];
  let done;
  const all = new Promise((resolve) => { done = resolve; });
  const hear = (message, channel) => { heard.push([channel, message]); if (heard.length === 4) done(); };
  await subscriber.subscribe('news', hear);
  await subscriber.pSubscribe('w*', hear);
  for (const [channel, text] of [['news', 'one'], ['weather', 'two'], ['news', 'three'], ['wind', 'four']])
    await client.publish(channel, text);
  await all;
  await subscriber.unsubscribe('news');
  await subscriber.pUnsubscribe('w*');
  subscriber.destroy();
  return heard;
})());
await attempt('scan', (async () => {
  const keys = [];
  for await (const some of client.scanIterator({ MATCH: '*e*', COUNT: 3 })) keys.push(...[some].flat());
  return keys.sort();
})());
if (!process.argv.includes('cluster')) await attempt('select', (async () => {
  const elsewhere = createClient({ ...options, database: 3 });
  await elsewhere.connect();
  await elsewhere.set('only', 'here');
  const seen = [await elsewhere.get('only'), await client.get('only'), await elsewhere.get('item:901')];
  elsewhere.destroy();
  return seen;
})());
client.destroy();
other.destroy();
