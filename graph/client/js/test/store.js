// A gateway with resources, pages, a log and a stream, in memory.
import { compareBy } from "../src/index.js";
import { network } from "./gateway.js";

export class Store {
  rows = new Map();
  log = [];
  streams = new Set();
  reads = [];
  revision = 0;
  // held back are answers of queries, until a test lets them go on.
  gate = Promise.resolve();

  constructor(...criteria) {
    this.compare = compareBy(...criteria, { path: "metadata.name" });
  }

  put(name, more = {}) {
    const type = this.rows.has(name) ? "MODIFIED" : "ADDED";
    const resource = network(name, `r${++this.revision}`, more);
    this.rows.set(name, resource);
    this.#tell(type, resource);
    return resource;
  }

  delete(name) {
    const resource = this.rows.get(name);
    if (!resource) return;
    this.rows.delete(name);
    this.#tell("DELETED", { ...resource, metadata: { ...resource.metadata, revision: `r${++this.revision}` } });
  }

  #tell(type, resource) {
    this.log.push({ type, cursor: String(this.log.length + 1), network: resource });
    for (const send of this.streams) send(this.log.at(-1));
  }

  sorted() {
    return [...this.rows.values()].sort(this.compare);
  }

  names(n) {
    return this.sorted().slice(0, n).map((r) => r.metadata.name).join();
  }

  query = async (document, { first, after }) => {
    this.reads.push(first);
    await this.gate;
    // A cursor is a place in the order: the resource as it was when the page was read.
    const from = after && JSON.parse(after), sorted = this.sorted().filter((r) => !from || this.compare(r, from) > 0);
    const rows = sorted.slice(0, first);
    const edges = rows.map((node) => ({ node, cursor: JSON.stringify(node) }));
    return { data: { networks: { changeCursor: String(this.log.length), edges, pageInfo: { hasNextPage: sorted.length > rows.length, endCursor: edges.at(-1)?.cursor ?? null } } } };
  };

  subscribe = (document, { after }, sink) => {
    let open = true;
    const send = (change) => queueMicrotask(() => open && sink.next({ data: { networkChanges: change } }));
    for (const change of this.log.slice(Number(after))) send(change);
    send({ type: "IN_SYNC", cursor: String(this.log.length), network: null });
    this.streams.add(send);
    return () => {
      open = false;
      this.streams.delete(send);
    };
  };
}
