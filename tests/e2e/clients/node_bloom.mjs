// What an application does with node-redis' filter client: node node_bloom.mjs PORT RESP
// Prints one line of JSON a step.
import { createRequire } from 'node:module';
const { createClient } = createRequire(process.env.NODE_MODULES + '/')('redis');

const [port, RESP] = process.argv.slice(2).map(Number);
const client = createClient({ RESP, socket: { host: '127.0.0.1', port, reconnectStrategy: false } });
await client.connect();

const attempt = (step, promise) => promise.then(
  (value) => console.log(JSON.stringify([step, value])),
  (error) => console.log(JSON.stringify([step, error.message.split(' ')[0]])));

// What is not called of their calls is told at the end.
const called = new Set();
const noting = (name, calls) => new Proxy(calls, {
  get: (_, call) => {
    called.add(`${name}.${call}`);
    return (...words) => calls[call](...words);
  },
});
const bf = noting('bf', client.bf), cf = noting('cf', client.cf);
await attempt('bf exists', bf.exists('items', '1'));
await attempt('bf exists, whole key', bf.exists('items', 'item:1'));
await attempt('bf exists, absent', bf.exists('items', '901'));
await attempt('bf mExists', bf.mExists('items', ['1', '901', '100']));
await attempt('bf add', bf.add('items', '902'));
await attempt('bf add again', bf.add('items', '902'));
await attempt('bf mAdd', bf.mAdd('items', ['903', '1']));
await attempt('bf insert', bf.insert('items', ['904', '2'], { CAPACITY: 100, ERROR: 0.01 }));
await attempt('bf exists, added', bf.mExists('items', ['902', '903', '904', '905']));
await attempt('bf card', bf.card('items'));
const inserted = (info) => info['Number of items inserted'];
await attempt('bf info', bf.info('items').then(inserted));
await attempt('bf reserve', bf.reserve('items', 0.01, 1000));
await attempt('cf exists', cf.exists('items', '1'));
await attempt('cf exists, absent', cf.exists('items', '906'));
await attempt('cf count', cf.count('items', '1'));
await attempt('cf count, absent', cf.count('items', '906'));
await attempt('cf add', cf.add('items', '1'));
await attempt('cf addNX', cf.addNX('items', '1'));
await attempt('cf addNX, new', cf.addNX('items', '907'));
await attempt('cf insert', cf.insert('items', ['1', '908']));
await attempt('cf insertNX', cf.insertNX('items', ['1', '909']));
await attempt('cf info', cf.info('items').then(inserted));
await attempt('cf del', cf.del('items', '1'));
await attempt('cf exists, still', cf.exists('items', '1'));
await attempt('at once', Promise.all(['1', '901', '2'].map((item) => bf.exists('items', item))));
await attempt('another name', bf.exists('mine', '1'));
await attempt('bf scanDump', bf.scanDump('items', 0));
await attempt('bf loadChunk', bf.loadChunk('items', 1, 'x'));
await attempt('cf reserve', cf.reserve('items', 1000));
await attempt('cf scanDump', cf.scanDump('items', 0));
await attempt('cf loadChunk', cf.loadChunk('items', 1, 'x'));
const offered = (name, of) => [...new Set([...Object.keys(of), ...Object.keys(Object.getPrototypeOf(of))])]
  .filter((call) => call !== call.toUpperCase() && !call.startsWith('_') && call !== 'constructor')
  .map((call) => `${name}.${call}`);
const all = [...offered('bf', client.bf), ...offered('cf', client.cf)];
console.log(JSON.stringify(['not called', all.length ? all.filter((call) => !called.has(call)) : 'unknown']));
client.destroy();
