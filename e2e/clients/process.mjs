// Gateways that a suite starts, kills and puts on other stores, and a way to them that it can cut and stop.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { within } from "./gateway.mjs";

// SLUICE_BINARY is the gateway; SLUICE_STORES are the flags of stores that nobody else uses.
const stores = JSON.parse(process.env.SLUICE_STORES ?? "[]");
let used = 0;

// A gateway refuses variables of its prefix that it does not know.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SLUICE_")));

// newStore returns the flags of a store that is empty.
export function newStore() {
  if (used === stores.length) throw new Error(`there are ${stores.length} stores`);
  return stores[used++];
}

// Gateway is a process that keeps its address over restarts.
export class Gateway {
  constructor(t, store, ...flags) {
    this.store = store;
    this.flags = flags;
    this.listen = "127.0.0.1:0";
    t.after(() => this.kill());
  }

  async start() {
    this.process = spawn(process.env.SLUICE_BINARY, ["serve", "--listen", this.listen, ...this.store, ...this.flags], { env, stdio: ["ignore", "ignore", "pipe"] });
    this.exited = once(this.process, "exit");
    this.log = [];
    this.heard = () => {};
    const address = new Promise((resolve, reject) => {
      createInterface({ input: this.process.stderr }).on("line", (line) => {
        this.log.push(line);
        this.heard();
        const { address } = line.startsWith("{") ? JSON.parse(line) : {};
        if (address) resolve(address);
      }).on("close", () => reject(new Error(`the gateway did not start:\n${this.log.join("\n")}`)));
    });
    this.base = await within(address, "the gateway");
    this.listen = new URL(this.base).host;
    return this;
  }

  // reload makes it read its kinds again, and waits until they are served.
  async reload() {
    const replaced = () => this.log.filter((line) => line.includes(`"result":"replaced"`)).length;
    const before = replaced();
    this.process.kill("SIGHUP");
    await within(new Promise((resolve) => (this.heard = () => replaced() > before && resolve())), "the new catalogue");
  }

  // stop ends it as an operator does.
  async stop() {
    this.process.kill("SIGTERM");
    await within(this.exited, "the end of the gateway");
  }

  // kill ends it as a crash does.
  async kill() {
    this.process?.kill("SIGKILL");
    await this.exited;
  }

  // ask sends a query or mutation that must succeed.
  async ask(query, variables) {
    const response = await fetch(`${this.base}/v1/graphql`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query, variables }) });
    const { data, errors } = await response.json();
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  }
}

// Way is a port that leads to another one, until it is cut.
export class Way {
  pairs = new Set();
  made = 0;

  static async to(t, base) {
    const way = new Way();
    const { hostname, port } = new URL(base);
    const server = createServer((near) => {
      const far = connect({ host: hostname, port: Number(port) });
      const pair = { near, far };
      way.made++;
      way.pairs.add(pair);
      for (const socket of [near, far]) socket.on("error", () => {});
      near.on("close", () => (far.destroy(), way.pairs.delete(pair)));
      far.on("close", () => near.destroy());
      near.pipe(far);
      far.pipe(near);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => (way.cut(), server.close()));
    way.base = `http://127.0.0.1:${server.address().port}`;
    return way;
  }

  // cut breaks all connections off, without a word.
  cut() {
    for (const { near, far } of this.pairs) (near.destroy(), far.destroy());
  }

  // hold lets nothing more through to the client, until the way goes on.
  hold() {
    for (const { near, far } of this.pairs) (far.unpipe(near), far.pause());
  }

  goOn() {
    for (const { near, far } of this.pairs) far.pipe(near);
  }
}
