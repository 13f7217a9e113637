// The first resources of an order, live.
import assert from "node:assert/strict";
import test from "node:test";
import { compareBy } from "../src/index.js";
import { names, open, shows, turn } from "./gateway.js";
import { Store } from "./store.js";

const filled = (...of) => {
  const store = new Store();
  for (const name of of) store.put(name);
  return store;
};
const alphabet = "abcdefghijklmnopqrstuvwxyz".split("");

// settle lets the list read and follow until nothing is under way.
async function settle() {
  for (let i = 0; i < 30; i++) await turn();
}

test("a window shows the first resources, and reads little more than it shows", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 3 });
  await shows(list, "a,b,c");
  assert.deepEqual(store.reads, [13]);
  assert.equal(list.getSnapshot().hasNextPage, true);
  assert.equal(list.getSnapshot().endCursor, list.cursorOf("id-c"));
});

test("a row that goes is replaced at once by the one behind the window", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 3 });
  await shows(list, "a,b,c");
  const seen = new Set();
  list.subscribe(() => seen.add(list.getSnapshot().resources.length));
  for (const name of alphabet.slice(0, 20)) {
    store.delete(name);
    await settle();
    assert.equal(names(list), store.names(3));
  }
  assert.deepEqual([...seen], [3]);
  assert.ok(store.reads.length < 8, `${store.reads.length} reads`);
});

test("a change of a later row brings it neither into the window nor to its end", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 3 });
  await shows(list, "a,b,c");
  store.delete("a");
  store.put("z", { mtu: 1 });
  await settle();
  assert.equal(names(list), "b,c,d");
  store.put("a");
  await settle();
  assert.equal(names(list), "a,b,c");
  assert.deepEqual(store.reads, [13]);
});

test("many deletions at once, beyond what is held, are made up for by reading again", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 5 });
  await shows(list, "a,b,c,d,e");
  for (const name of alphabet.slice(0, 18)) store.delete(name);
  await settle();
  assert.equal(names(list), "s,t,u,v,w");
  assert.equal(list.getSnapshot().status, "live");
  for (const name of alphabet.slice(18, 23)) store.delete(name);
  await settle();
  assert.equal(names(list), "x,y,z");
  assert.equal(list.getSnapshot().hasNextPage, false);
});

test("the list goes on while it is read again", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 3 });
  await shows(list, "a,b,c");
  let goOn;
  store.gate = new Promise((resolve) => (goOn = resolve));
  for (const name of alphabet.slice(0, 6)) store.delete(name);
  await settle();
  assert.deepEqual(store.reads, [13, 13]);
  store.put("ga");
  await settle();
  assert.equal(names(list), "g,ga,h");
  assert.equal(list.getSnapshot().status, "live");
  goOn();
  await settle();
  assert.equal(names(list), "g,ga,h");
});

test("a reading that fails is repeated, and the list shows what it has", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 3 });
  await shows(list, "a,b,c");
  const { query } = store;
  let failures = 0;
  store.query = async (...args) => (++failures < 3 ? { errors: [{ message: "busy", extensions: { code: "UNAVAILABLE" } }] } : query(...args));
  for (const name of alphabet.slice(0, 12)) store.delete(name);
  await shows(list, "m,n,o");
  assert.equal(failures, 3);
});

test("more shows more, from what is held or by reading", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 2 });
  await shows(list, "a,b");
  await list.more();
  assert.equal(names(list), "a,b,c,d");
  await list.more(20);
  assert.equal(names(list), alphabet.slice(0, 24).join());
  assert.equal(list.getSnapshot().hasNextPage, true);
  await list.more(20);
  assert.equal(names(list), alphabet.join());
  assert.equal(list.getSnapshot().hasNextPage, false);
  store.delete("a");
  store.put("zz");
  await settle();
  assert.equal(names(list), [...alphabet.slice(1), "zz"].join());
});

test("more ends with the list", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 2 });
  await shows(list, "a,b");
  store.gate = new Promise(() => {});
  const more = list.more(20);
  list.close();
  await more;
});

test("a filter: what stops matching leaves the window, and what begins to match enters it", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 2 });
  await shows(list, "a,b");
  store.delete("a"); // the stream tells both in the same way
  store.put("aa");
  await shows(list, "aa,b");
});

test("a page that is loaded again goes on with its window", async (t) => {
  let saved = null;
  const storage = { load: () => saved, save: (s) => void (saved = structuredClone(s)) };
  const store = filled(...alphabet);
  const before = open(t, store, { first: 2, storage });
  await shows(before, "a,b");
  before.close();
  for (const name of alphabet.slice(0, 10)) store.delete(name);
  const list = open(t, store, { first: 2, storage });
  await shows(list, "k,l");
  await list.more(8);
  assert.equal(names(list), "k,l,m,n,o,p,q,r,s,t");
});

test("an own change that is sent while the list is read again is not shown as it was before", async (t) => {
  const store = filled(...alphabet);
  const list = open(t, store, { first: 3 });
  await shows(list, "a,b,c");
  const seen = [];
  list.subscribe(() => seen.push(list.getSnapshot().resources.find(({ id }) => id === "id-c")?.mtu));
  let goOn;
  store.gate = new Promise((resolve) => (goOn = resolve));
  const { query } = store;
  // The page is as it was before the change.
  store.query = async (...args) => {
    const answer = await query(...args);
    return old ?? answer;
  };
  const old = await (async () => {
    const { gate } = store;
    store.gate = Promise.resolve();
    const answer = await query("list", { first: 13, after: null });
    store.gate = gate;
    return answer;
  })();
  list.refresh();
  await list.update("id-c", { change: (r) => ({ ...r, mtu: 9 }), send: async () => store.put("c", { mtu: 9 }) });
  goOn();
  await settle();
  assert.equal(list.stored("id-c").mtu, 9);
  assert.deepEqual([...new Set(seen)], [9]);
});

for (const direction of ["ASC", "DESC"]) {
  for (const first of [1, 4, 30]) {
    test(`a thousand random changes: the window is the first ${first} by mtu ${direction}`, async (t) => {
      let seed = 7 * first;
      const random = (n) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
      const store = new Store({ path: "mtu", direction });
      for (let i = 0; i < 50; i++) store.put(`n${i}`, { mtu: random(20) });
      const list = open(t, store, { first, pageSize: 7, compare: compareBy({ path: "mtu", direction }) });
      await settle();
      for (let i = 0; i < 1000; i++) {
        const name = `n${random(60)}`;
        if (random(5) < 2) store.delete(name);
        else store.put(name, random(6) === 0 ? {} : { mtu: random(20) });
        if (random(10) > 0) continue;
        if (random(8) === 0) for (const row of store.sorted().slice(0, 12)) store.delete(row.metadata.name);
        await settle();
        assert.equal(names(list), store.names(first));
        assert.equal(list.getSnapshot().hasNextPage, store.rows.size > first);
        assert.deepEqual(list.getSnapshot().resources, store.sorted().slice(0, first));
      }
    });
  }
}

test("compareBy is the order of the API: no value first, texts by characters, times by time", () => {
  const sorted = (values, direction) => values.map((v) => ({ v })).sort(compareBy({ path: "v", direction })).map(({ v }) => v);
  assert.deepEqual(sorted([10, null, 9, 100]), [null, 9, 10, 100]);
  assert.deepEqual(sorted([10, null, 9], "DESC"), [10, 9, null]);
  assert.deepEqual(sorted([true, false, null]), [null, false, true]);
  assert.deepEqual(sorted(["\u{1f600}", "\uffff", "a", "", "Z", "\u{1f600}a"]), ["", "Z", "a", "\uffff", "\u{1f600}", "\u{1f600}a"]);
  assert.deepEqual(sorted(["\u{1f601}", "\u{1f600}"]), ["\u{1f600}", "\u{1f601}"]);
  assert.deepEqual(sorted(["2026-01-02T00:00:00.5Z", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"]), ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-02T00:00:00.5Z"]);
  const by = compareBy({ path: "a.b" }, { path: "c", direction: "DESC" });
  assert.ok(by({ a: { b: 1 }, c: 1 }, { a: { b: 1 }, c: 2 }) > 0);
  assert.equal(by({}, {}), 0);
});
