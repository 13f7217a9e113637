// A gateway that says what a test tells it to say.
import assert from "node:assert/strict";
import { liveList } from "../src/index.js";

export const network = (name, revision, more = {}) => ({ id: `id-${name}`, metadata: { namespace: "default", name, revision }, ...more });

export class Gateway {
  reads = [];
  streams = [];
  waiting = [];

  // pages are what the next reads of the list answer: names of resources, or a function.
  constructor(...pages) {
    this.pages = pages;
  }

  query = async (document, variables) => {
    this.reads.push(variables);
    const page = this.pages.length > 1 ? this.pages.shift() : this.pages[0];
    return typeof page === "function" ? page(variables) : page;
  };

  subscribe = (document, variables, sink) => {
    const stream = { variables, sink, open: true, send: (type, cursor, resource = null) => sink.next({ data: { networkChanges: { type, cursor, network: resource } } }) };
    stream.fail = (code, extensions) => sink.next({ data: null, errors: [{ message: code, extensions: { code, ...extensions } }] });
    this.streams.push(stream);
    this.waiting.shift()?.(stream);
    return () => (stream.open = false);
  };

  // stream is the n-th subscription, from 0; it waits until there is one.
  async stream(n = 0) {
    while (this.streams.length <= n) await new Promise((resolve) => this.waiting.push(resolve));
    return this.streams[n];
  }
}

export const page = (resources, { changeCursor = "c0", hasNextPage = false, endCursor = null } = {}) => ({
  data: { networks: { changeCursor, pageInfo: { hasNextPage, endCursor }, nodes: resources } },
});

// open is a live list that a test ends.
export function open(t, gateway, options = {}) {
  const list = liveList({ transport: gateway, list: "list", changes: "changes", pauses: { least: 1, most: 2 }, ...options });
  t.after(() => {
    list.close();
    return list.ended;
  });
  return list;
}

export const names = (list) => list.getSnapshot().resources.map((r) => r.metadata.name).join();

// turn lets everything that is due happen.
export const turn = () => new Promise((resolve) => setImmediate(resolve));

// shows waits until a list shows what it should, and fails with what it shows instead.
export async function shows(list, expected, status = "live") {
  const right = () => names(list) === expected && list.getSnapshot().status === status;
  let stop, timer;
  await Promise.race([
    new Promise((resolve) => {
      const look = () => right() && resolve();
      stop = list.subscribe(look);
      look();
    }),
    new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`shows ${names(list)} ${list.getSnapshot().status} ${list.getSnapshot().error}`)), 5000))),
  ]).finally(() => {
    clearTimeout(timer);
    stop();
  });
  assert.ok(right());
}
