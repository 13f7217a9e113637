import assert from "node:assert/strict";
import test from "node:test";
import { changes } from "../src/index.js";
import { Gateway, network, page } from "./gateway.js";

// take is the next n changes, as text.
async function take(iteration, n) {
  const out = [];
  while (out.length < n) {
    const { value, done } = await iteration.next();
    if (done) break;
    out.push(`${value.type} ${value.network?.metadata.name ?? ""}`.trim());
  }
  return out.join();
}

function open(t, options = {}) {
  const gateway = new Gateway(page([]));
  const iteration = changes({ transport: gateway, document: "changes", pauses: { least: 1, most: 2 }, ...options });
  t.after(() => iteration.return());
  return { gateway, iteration };
}

test("changes come one after the other, and bookmarks move the place", async (t) => {
  const { gateway, iteration } = open(t, { variables: { namespace: "a" }, after: "c0" });
  const got = take(iteration, 3);
  const stream = await gateway.stream();
  assert.deepEqual(stream.variables, { namespace: "a", after: "c0" });
  stream.send("IN_SYNC", "c1");
  stream.send("ADDED", "c2", network("a", "1"));
  stream.send("BOOKMARK", "c3");
  stream.send("DELETED", "c4", network("a", "2"));
  assert.equal(await got, "IN_SYNC,ADDED a,DELETED a");
});

test("after a connection was lost it goes on after the last cursor, also that of a bookmark or an error", async (t) => {
  const lost = [];
  const { gateway, iteration } = open(t, { lost: (failure) => lost.push(failure.message) });
  const got = take(iteration, 5);
  let stream = await gateway.stream();
  stream.send("ADDED", "c1", network("a", "1"));
  stream.send("BOOKMARK", "c2");
  stream.sink.error(new Error("cut"));
  stream = await gateway.stream(1);
  assert.equal(stream.variables.after, "c2");
  stream.send("ADDED", "c3", network("b", "1"));
  stream.fail("LAGGED", { cursor: "c5" });
  stream = await gateway.stream(2);
  assert.equal(stream.variables.after, "c5");
  stream.send("IN_SYNC", "c6");
  stream.sink.complete();
  stream = await gateway.stream(3);
  assert.equal(stream.variables.after, "c6");
  stream.send("IN_SYNC", "c6");
  stream.send("ADDED", "c7", network("c", "1"));
  assert.equal(await got, "ADDED a,ADDED b,IN_SYNC,IN_SYNC,ADDED c");
  assert.deepEqual(lost, ["cut", "LAGGED", "the stream ended"]);
});

test("a snapshot that breaks off begins again", async (t) => {
  const { gateway, iteration } = open(t, { snapshot: true, after: "c0" });
  const got = take(iteration, 5);
  let stream = await gateway.stream();
  stream.send("RESET", null);
  stream.send("SNAPSHOT", null, network("a", "1"));
  stream.sink.error(new Error("cut"));
  stream = await gateway.stream(1);
  assert.deepEqual(stream.variables, { after: null, snapshot: true });
  stream.send("RESET", null);
  stream.send("SNAPSHOT", null, network("a", "1"));
  stream.send("IN_SYNC", "c9");
  assert.equal(await got, "RESET,SNAPSHOT a,RESET,SNAPSHOT a,IN_SYNC");
});

for (const [code, extensions] of [["POSITION_EXPIRED"], ["FORBIDDEN"], ["LIMIT_EXCEEDED", { cursor: "c9" }]]) {
  test(`${code} ends the iteration, after what came before it`, async (t) => {
    const { gateway, iteration } = open(t);
    const first = take(iteration, 1);
    const stream = await gateway.stream();
    stream.send("ADDED", "c1", network("a", "1"));
    stream.fail(code, extensions);
    assert.equal(await first, "ADDED a");
    await assert.rejects(iteration.next(), { code });
    assert.equal(stream.open, false);
    assert.equal((await iteration.next()).done, true);
  });
}

test("leaving the iteration, and its signal, end the connection", async (t) => {
  const left = open(t);
  const one = take(left.iteration, 1);
  const stream = await left.gateway.stream();
  stream.send("IN_SYNC", "c1");
  await one;
  await left.iteration.return();
  assert.equal(stream.open, false);

  const ending = new AbortController();
  const ended = open(t, { signal: ending.signal });
  const next = ended.iteration.next();
  const other = await ended.gateway.stream();
  ending.abort();
  assert.equal((await next).done, true);
  assert.equal(other.open, false);
});

test("a program that is slow takes what has come, and then the rest over another connection", async (t) => {
  const { gateway, iteration } = open(t);
  const first = take(iteration, 1);
  const stream = await gateway.stream();
  for (let i = 1; i <= 3000 && stream.open; i++) stream.send("ADDED", `c${i}`, network(`n${i}`, `${i}`));
  assert.equal(stream.open, false);
  assert.equal(await first, "ADDED n1");
  await take(iteration, 999);
  const next = take(iteration, 1);
  const second = await gateway.stream(1);
  assert.equal(second.variables.after, "c1000");
  second.send("ADDED", "c1001", network("n1001", "1"));
  assert.equal(await next, "ADDED n1001");
});
