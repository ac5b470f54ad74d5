// node ask_published.mjs PORT NAME ITEM...: prints for each item whether it surely has no row.
import { createRequire } from 'node:module';
import { Published } from './published.mjs';
const { createClient } = createRequire(process.env.NODE_MODULES + '/')('redis');

const [port, name, ...items] = process.argv.slice(2);
const client = createClient({ socket: { host: '127.0.0.1', port: +port, reconnectStrategy: false } });
await client.connect();
console.log(JSON.stringify(await new Published(client, name).absent(...items)));
await client.close();
