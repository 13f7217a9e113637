import assert from "node:assert/strict";
import test from "node:test";
import { Gateway, names, network, open, page, shows, turn } from "./gateway.js";

// views notes what a list shows, each time that it says so.
function views(list) {
  const seen = [];
  list.subscribe(() => seen.push(names(list)));
  return seen;
}

test("all pages are read, and changes follow the changeCursor of the first one", async (t) => {
  const gateway = new Gateway(
    page([network("a", "1"), network("b", "2")], { changeCursor: "first", hasNextPage: true, endCursor: "p1" }),
    page([network("c", "3")], { changeCursor: "second" }),
  );
  const list = open(t, gateway, { variables: { namespace: "default" }, pageSize: 2 });
  const stream = await gateway.stream();
  assert.deepEqual(gateway.reads, [{ namespace: "default", first: 2, after: null }, { namespace: "default", first: 2, after: "p1" }]);
  assert.deepEqual(stream.variables, { namespace: "default", after: "first" });
  await shows(list, "a,b,c", "loading");
  stream.send("IN_SYNC", "c1");
  await shows(list, "a,b,c");
  stream.send("ADDED", "c2", network("bb", "4"));
  stream.send("MODIFIED", "c3", network("a", "5", { mtu: 9000 }));
  stream.send("DELETED", "c4", network("c", "6"));
  await shows(list, "a,b,bb");
  assert.equal(list.getSnapshot().resources[0].mtu, 9000);
});

test("what was changed while the pages were read is never shown as it was before", async (t) => {
  const gateway = new Gateway(page([network("a", "7", { mtu: 7 })]));
  const list = open(t, gateway);
  const stream = await gateway.stream();
  const seen = [];
  list.subscribe(() => seen.push(list.getSnapshot().resources[0].mtu));
  stream.send("MODIFIED", "c1", network("a", "6", { mtu: 6 }));
  await turn();
  stream.send("MODIFIED", "c2", network("a", "7", { mtu: 7 }));
  stream.send("IN_SYNC", "c3");
  await shows(list, "a");
  assert.ok(seen.length > 0 && seen.every((mtu) => mtu === 7), seen.join());
});

test("a change that the list shows already tells nobody", async (t) => {
  const gateway = new Gateway(page([network("a", "1")]));
  const list = open(t, gateway);
  (await gateway.stream()).send("IN_SYNC", "c1");
  await shows(list, "a");
  const before = list.getSnapshot();
  gateway.streams[0].send("MODIFIED", "c2", network("a", "1"));
  await turn();
  assert.equal(list.getSnapshot(), before);
});

test("a RESET replaces the state at IN_SYNC, and the list is never empty in between", async (t) => {
  const gateway = new Gateway(page([network("a", "1"), network("b", "2")]));
  const list = open(t, gateway, { snapshot: true });
  const stream = await gateway.stream();
  assert.equal(stream.variables.snapshot, true);
  stream.send("IN_SYNC", "c1");
  await shows(list, "a,b");
  const seen = views(list);
  stream.send("RESET", null);
  stream.send("SNAPSHOT", null, network("b", "2"));
  await turn();
  stream.send("SNAPSHOT", null, network("c", "3"));
  await shows(list, "a,b", "behind");
  stream.send("IN_SYNC", "c9");
  await shows(list, "b,c");
  assert.deepEqual([...new Set(seen)], ["a,b", "b,c"]);
});

test("a connection that is lost within a snapshot leads to a new list, as there is no place to resume from", async (t) => {
  const gateway = new Gateway(page([network("a", "1")]), page([network("d", "9")], { changeCursor: "anew" }));
  const list = open(t, gateway, { snapshot: true });
  let stream = await gateway.stream();
  stream.send("IN_SYNC", "c1");
  await shows(list, "a");
  const seen = views(list);
  stream.send("RESET", null);
  stream.send("SNAPSHOT", null, network("x", "3"));
  stream.sink.error(new Error("cut"));
  stream = await gateway.stream(1);
  assert.equal(stream.variables.after, "anew");
  assert.equal(names(list), "a");
  stream.send("IN_SYNC", "c2");
  await shows(list, "d");
  assert.deepEqual([...new Set(seen)], ["a", "d"]);
});

for (const [what, end] of Object.entries({
  "a connection that is lost": (stream) => stream.sink.error(new Error("cut")),
  "a socket that is closed with 1001": (stream) => stream.sink.error({ code: 1001, reason: "going away" }),
  "a stream that completes": (stream) => stream.sink.complete(),
  "UNAVAILABLE": (stream) => stream.fail("UNAVAILABLE"),
  "an error of graphql-ws": (stream) => stream.sink.error([{ message: "fault", extensions: { code: "INTERNAL" } }]),
})) {
  test(`${what} is taken up again after the last cursor`, async (t) => {
    const gateway = new Gateway(page([network("a", "1")]));
    const list = open(t, gateway);
    let stream = await gateway.stream();
    stream.send("IN_SYNC", "c1");
    stream.send("ADDED", "c2", network("b", "2"));
    end(stream);
    await shows(list, "a,b", "behind");
    assert.ok(list.getSnapshot().error);
    stream = await gateway.stream(1);
    assert.equal(stream.variables.after, "c2");
    assert.equal(gateway.reads.length, 1);
    stream.send("DELETED", "c3", network("a", "3"));
    stream.send("IN_SYNC", "c4");
    await shows(list, "b");
    assert.equal(list.getSnapshot().error, undefined);
  });
}

for (const code of ["LAGGED", "CATALOGUE_CHANGED"]) {
  test(`after ${code} the list goes on at the cursor of the error`, async (t) => {
    const gateway = new Gateway(page([network("a", "1")]));
    const list = open(t, gateway);
    let stream = await gateway.stream();
    stream.send("IN_SYNC", "c1");
    stream.fail(code, { cursor: "c5" });
    stream.sink.complete();
    stream = await gateway.stream(1);
    assert.equal(stream.variables.after, "c5");
    stream.send("IN_SYNC", "c6");
    await shows(list, "a");
  });
}

test("after POSITION_EXPIRED the list is read anew and swapped when it is in sync", async (t) => {
  const gateway = new Gateway(page([network("a", "1")]), page([network("b", "8")], { changeCursor: "anew" }));
  const list = open(t, gateway);
  let stream = await gateway.stream();
  stream.send("IN_SYNC", "c1");
  await shows(list, "a");
  const seen = views(list);
  stream.fail("POSITION_EXPIRED");
  stream = await gateway.stream(1);
  assert.equal(stream.variables.after, "anew");
  stream.send("ADDED", "c8", network("c", "9"));
  await turn();
  assert.equal(names(list), "a");
  stream.send("IN_SYNC", "c9");
  await shows(list, "b,c");
  assert.deepEqual([...new Set(seen)], ["a", "b,c"]);
});

test("a change without its resource leads to a new list", async (t) => {
  const gateway = new Gateway(page([network("a", "1"), network("b", "1")]), page([network("b", "1")], { changeCursor: "anew" }));
  const list = open(t, gateway);
  (await gateway.stream()).send("IN_SYNC", "c1");
  gateway.streams[0].send("DELETED", "c2", null);
  (await gateway.stream(1)).send("IN_SYNC", "c3");
  await shows(list, "b");
});

for (const [what, end] of Object.entries({
  "a document that is not valid any more": (stream) => stream.fail("GRAPHQL_VALIDATION_FAILED"),
  "a refusal": (stream) => stream.fail("FORBIDDEN"),
  "an event that is over a limit for good": (stream) => stream.fail("LIMIT_EXCEEDED"),
  "a socket that is closed with 4400": (stream) => stream.sink.error({ code: 4400, reason: "not a message" }),
})) {
  test(`${what} ends the list, which keeps its state`, async (t) => {
    const gateway = new Gateway(page([network("a", "1")]));
    const list = open(t, gateway);
    const stream = await gateway.stream();
    stream.send("IN_SYNC", "c1");
    end(stream);
    await list.ended;
    assert.equal(list.getSnapshot().status, "failed");
    assert.ok(list.getSnapshot().error);
    assert.equal(names(list), "a");
    assert.equal(gateway.streams.length, 1);
  });
}

test("a list whose document lacks changeCursor says so", async (t) => {
  const list = open(t, new Gateway({ data: { networks: { pageInfo: { hasNextPage: false }, nodes: [] } } }));
  await list.ended;
  assert.match(list.getSnapshot().error.message, /changeCursor/);
});

test("pauses are anything up to a bound that doubles, on top of Retry-After", async (t) => {
  const pauses = [];
  const real = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", (run, ms) => {
    if (ms !== 90_000) pauses.push(ms);
    return real(run, ms === 90_000 ? ms : 0);
  });
  const gateway = new Gateway(() => {
    if (gateway.reads.length === 6) return { data: null, errors: [{ message: "later", extensions: { code: "UNAVAILABLE", retryAfter: 7 } }] };
    if (gateway.reads.length === 7) return page([]);
    throw new Error("no connection");
  });
  open(t, gateway, { pauses: { least: 100, most: 500, random: () => 0.5 } });
  (await gateway.stream()).send("IN_SYNC", "c1");
  assert.deepEqual(pauses.slice(0, 6), [50, 100, 200, 250, 250, 7250]);
  gateway.streams[0].sink.error(new Error("cut"));
  await gateway.stream(1);
  assert.equal(pauses.at(-1), 50);
});

test("a connection on which nothing is heard is given up", async (t) => {
  const gateway = new Gateway(page([]));
  open(t, gateway, { silence: 20 });
  (await gateway.stream()).send("IN_SYNC", "c1");
  const second = await gateway.stream(1);
  assert.equal(second.variables.after, "c1");
  assert.equal(gateway.streams[0].open, false);
});

test("an AbortSignal ends the list, its subscription and its pauses", async (t) => {
  for (const when of ["while it reads", "while it follows", "while it pauses"]) {
    const ending = new AbortController();
    const gateway = new Gateway(when === "while it reads" ? () => new Promise(() => {}) : page([network("a", "1")]));
    const transport = { subscribe: gateway.subscribe, query: (document, variables, { signal }) => Promise.race([gateway.query(document, variables), new Promise((_, no) => signal.addEventListener("abort", () => no(signal.reason)))]) };
    const list = open(t, transport, { signal: ending.signal, pauses: { least: 1e6, most: 1e6 } });
    if (when !== "while it reads") (await gateway.stream()).send("IN_SYNC", "c1");
    if (when === "while it pauses") gateway.streams[0].sink.error(new Error("cut"));
    await turn();
    ending.abort();
    await list.ended;
    assert.equal(list.getSnapshot().status, "closed", when);
    if (when !== "while it reads") assert.equal(gateway.streams[0].open, false, when);
    gateway.streams[0]?.send("ADDED", "c2", network("late", "2"));
    await turn();
    assert.doesNotMatch(names(list), /late/);
  }
});

test("a comparator makes the order, also of what changes", async (t) => {
  const gateway = new Gateway(page([network("a", "1", { mtu: 3 }), network("b", "2", { mtu: 2 })]));
  const list = open(t, gateway, { compare: (a, b) => a.mtu - b.mtu });
  (await gateway.stream()).send("IN_SYNC", "c1");
  await shows(list, "b,a");
  gateway.streams[0].send("MODIFIED", "c2", network("b", "3", { mtu: 4 }));
  gateway.streams[0].send("ADDED", "c3", network("z", "4", { mtu: 1 }));
  await shows(list, "z,a,b");
});

test("a thousand random changes in random order of names leave the list in order", async (t) => {
  const gateway = new Gateway(page([]));
  const list = open(t, gateway);
  const stream = await gateway.stream();
  stream.send("IN_SYNC", "c1");
  const model = new Map();
  let seed = 42;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
  for (let i = 0; i < 1000; i++) {
    const resource = network(`n${random(60)}`, `r${i}`);
    const deleted = random(3) === 0;
    if (deleted) model.delete(resource.id);
    else model.set(resource.id, resource);
    stream.send(deleted ? "DELETED" : "MODIFIED", `c${i}`, resource);
  }
  const expected = [...model.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  await shows(list, expected.map((r) => r.metadata.name).join());
  assert.deepEqual(list.getSnapshot().resources, expected);
});

test("a page that is loaded again shows what it had and goes on after its cursor", async (t) => {
  let saved = null;
  const storage = { load: () => saved, save: (s) => void (saved = structuredClone(s)) };
  const first = new Gateway(page([network("a", "1")]));
  const before = open(t, first, { storage });
  (await first.stream()).send("IN_SYNC", "c1");
  first.streams[0].send("ADDED", "c2", network("b", "2"));
  await shows(before, "a,b");
  await turn();
  before.close();

  const second = new Gateway(page([]));
  const list = open(t, second, { storage });
  await shows(list, "a,b", "behind");
  const stream = await second.stream();
  assert.equal(stream.variables.after, "c2");
  assert.equal(second.reads.length, 0);
  stream.send("DELETED", "c3", network("a", "3"));
  stream.send("IN_SYNC", "c4");
  await shows(list, "b");
  await turn();
  assert.deepEqual(saved, { cursor: "c4", resources: [network("b", "2")], hasNextPage: false });
});

test("with the cursor alone the list is read anew, and what happened meanwhile is told", async (t) => {
  const heard = [];
  const gateway = new Gateway(page([network("b", "2")], { changeCursor: "now" }));
  const list = open(t, gateway, { storage: { load: () => ({ cursor: "old" }), save() {} }, onChange: (change) => heard.push(`${change.type} ${change.network.metadata.name}`) });
  const stream = await gateway.stream();
  assert.equal(stream.variables.after, "old");
  stream.send("DELETED", "c1", network("a", "1"));
  stream.send("ADDED", "c2", network("b", "2"));
  stream.send("IN_SYNC", "c3");
  await shows(list, "b");
  assert.deepEqual(heard, ["DELETED a", "ADDED b"]);
});

test("a stored cursor that has expired, or is none, leads to a new list", async (t) => {
  for (const code of ["POSITION_EXPIRED", "CURSOR_INVALID"]) {
    const gateway = new Gateway(page([network("b", "2")]));
    const list = open(t, gateway, { storage: { load: () => ({ cursor: "old", resources: [network("a", "1")] }), save() {} } });
    (await gateway.stream()).fail(code);
    (await gateway.stream(1)).send("IN_SYNC", "c1");
    await shows(list, "b");
  }
});

test("a storage that fails is not asked again, and the list goes on", async (t) => {
  let saves = 0;
  const gateway = new Gateway(page([network("a", "1")]));
  const list = open(t, gateway, { storage: { load: () => null, save: async () => { saves++; throw new Error("quota"); } } });
  (await gateway.stream()).send("IN_SYNC", "c1");
  await turn();
  assert.match(list.getSnapshot().error.message, /quota/);
  gateway.streams[0].send("ADDED", "c2", network("b", "2"));
  await shows(list, "a,b");
  assert.equal(saves, 1);
});

test("changes of one turn are told once", async (t) => {
  const gateway = new Gateway(page([]));
  const list = open(t, gateway);
  (await gateway.stream()).send("IN_SYNC", "c0");
  await turn();
  const seen = views(list);
  for (let i = 0; i < 100; i++) gateway.streams[0].send("ADDED", `c${i}`, network(`n${i}`, `${i}`));
  await turn();
  assert.equal(seen.length, 1);
  assert.equal(list.getSnapshot().resources.length, 100);
});
