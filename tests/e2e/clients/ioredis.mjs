// What an application does with ioredis: node ioredis.mjs PORT [cluster]
// Prints one line of JSON a step. Run against the guard and against Redis, the lines must be alike.
import { createRequire } from 'node:module';
const { Redis } = createRequire(process.env.NODE_MODULES + '/')('ioredis');

const port = Number(process.argv[2]);
const inside = 'in{item:901}'; // of a transaction: in a cluster its keys have one slot
const open = (options) => new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: 0, retryStrategy: null, ...options });
const say = (step, value) => console.log(JSON.stringify([step, value]));
const attempt = (step, promise) => promise.then((value) => say(step, value), (error) => say(step, error.message));

const client = open();
const other = open();

await attempt('ping', client.ping());
await attempt('absent', client.get('item:901'));
await attempt('absent buffer', client.getBuffer('item:901'));
await attempt('absent many', client.mget('item:901', 'none', 'item:902'));
await attempt('set', client.set('text', 'héllo', 'EX', 1000));
await attempt('get', client.get('text'));
await attempt('hash', client.hset('hash', { a: 1, b: 'two' }));
await attempt('hash read', client.hgetall('hash'));
await attempt('pipeline', client.pipeline().get('item:901').get('text').incr('counter').lpush('text', 'x').get('item:902').exec()
  .then((all) => all.map(([error, value]) => (error ? error.message : value))));
await attempt('transaction', client.multi().set(inside, '1').get(inside).get('item:901').exec());
await attempt('transaction, step by step', (async () => {
  await client.multi({ pipeline: false });
  await client.set(inside, '2');
  await client.get(inside);
  return client.exec();
})());
await attempt('discard', (async () => {
  await client.multi({ pipeline: false });
  await client.set(inside, '3');
  await client.discard();
  return client.get(inside);
})());
client.defineCommand('twice', { numberOfKeys: 1, lua: 'return {KEYS[1], redis.call("get", KEYS[1])}' });
await attempt('script', client.twice('text'));
await attempt('script again', client.twice('item:901'));
await attempt('blocking', (async () => {
  const waiting = other.brpop('queue', 20);
  await client.lpush('queue', 'job');
  return waiting;
})());
await attempt('blocking stream', (async () => {
  const waiting = other.xread('BLOCK', 20000, 'STREAMS', 'stream', '$');
  while (!/cmd=xread/.test(await client.client('LIST').catch(() => 'cmd=xread'))) await new Promise((r) => setTimeout(r, 5));
  const writing = setInterval(() => client.xadd('stream', '*', 'a', '1'), 20);
  const read = await waiting;
  clearInterval(writing);
  return read.map(([name, rows]) => [name, rows.map(([, fields]) => fields)[0]]);
})());
await attempt('published', (async () => {
  const subscriber = open();
  const heard = [];
  const all = new Promise((resolve) => subscriber.on('message', (channel, text) => {
    heard.push([channel, text]);
    if (heard.length === 2) resolve();
  }));
  await subscriber.subscribe('news', 'weather');
  await client.publish('news', 'one');
  await client.publish('weather', 'two');
  await all;
  const refused = await subscriber.get('text').catch((error) => error.message);
  await subscriber.unsubscribe();
  const after = await subscriber.get('text');
  subscriber.disconnect();
  return [heard, refused, after];
})());
if (!process.argv.includes('cluster')) await attempt('select', (async () => {
  const elsewhere = open({ db: 3 });
  await elsewhere.set('only', 'here');
  const seen = [await elsewhere.get('only'), await client.get('only'), await elsewhere.get('item:901')];
  elsewhere.disconnect();
  return seen;
})());
await attempt('scan', (async () => {
  const keys = [];
  for await (const some of client.scanStream({ match: '*e*', count: 3 })) keys.push(...some);
  return keys.sort();
})());
await attempt('large', client.set('large', 'x'.repeat(3000000)).then(() => client.get('large')).then((v) => v.length));
client.disconnect();
other.disconnect();
