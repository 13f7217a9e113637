import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { failureOf, fetchTransport, streamingTransport, webStorage } from "../src/index.js";
import { events } from "../src/sse.js";

const body = (...chunks) => new ReadableStream({
  start(controller) {
    for (const chunk of chunks) controller.enqueue(typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk);
    controller.close();
  },
});

async function all(stream) {
  const out = [];
  for await (const event of events(stream)) out.push(event);
  return out;
}

test("events are read whatever the pieces are that they come in", async () => {
  const text = ': beat\n\nid: 1\nevent: next\ndata: {"a":\ndata:  "ü€"}\r\n\r\nevent: complete\rdata:\r\n\r\n';
  const expected = [{ event: "next", data: '{"a":\n "ü€"}' }, { event: "complete", data: "" }];
  const bytes = new TextEncoder().encode(text);
  for (let size = 1; size <= bytes.length; size++) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.slice(i * size, (i + 1) * size));
    assert.deepEqual(await all(body(...pieces)), expected, `pieces of ${size}`);
  }
});

test("an event without an end is given up", async () => {
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(8 * 1024 * 1024).fill(97)) });
  await assert.rejects(all(endless), /more than/);
});

const answering = (make) => {
  const requests = [];
  return { requests, fetch: async (url, init) => (requests.push({ url, ...init }), make(init)) };
};

function heard() {
  const out = [];
  let done;
  const over = new Promise((resolve) => (done = resolve));
  return { out, over, sink: { next: (r) => out.push(r), error: (e) => (out.push(e), done()), complete: () => (out.push("complete"), done()) } };
}

test("queries go by POST, with the caller's headers", async () => {
  const { requests, fetch } = answering(() => Response.json({ data: { a: 1 } }));
  const transport = fetchTransport({ url: "http://gateway/v1/graphql", headers: async () => ({ authorization: "Bearer x" }), fetch });
  assert.deepEqual(await transport.query("{ a }", { v: 1 }, {}), { data: { a: 1 } });
  assert.equal(requests[0].headers.get("authorization"), "Bearer x");
  assert.deepEqual(JSON.parse(requests[0].body), { query: "{ a }", variables: { v: 1 } });
});

test("of several mutations in one document, those that were answered are there beside the error of another", async () => {
  const result = {
    data: { a: { state: "DELETED" }, b: null, c: { state: "PENDING" } },
    errors: [{ message: "internal error", path: ["b"], extensions: { code: "INTERNAL", outcome: "APPLIED" } }],
  };
  const { requests, fetch } = answering(() => Response.json(result));
  const transport = fetchTransport({ url: "http://gateway/", fetch });
  const answer = await transport.query("mutation { a: x { state } b: x { state } c: x { state } }", {}, {});
  assert.deepEqual(answer, result);
  assert.equal(failureOf(answer.errors).extensions.outcome, "APPLIED");
  assert.equal(requests.length, 1);
});

test("an answer that is no JSON is an error with its status and Retry-After", async () => {
  const { fetch } = answering(() => new Response("busy", { status: 503, headers: { "retry-after": "3" } }));
  await assert.rejects(fetchTransport({ url: "http://gateway/", fetch }).query("{ a }", {}, {}), { status: 503, retryAfter: 3 });
});

test("a subscription is an event stream, and one that breaks off is an error", async () => {
  const stream = (...chunks) => answering(() => new Response(body(...chunks), { headers: { "content-type": "text/event-stream" } })).fetch;
  const whole = heard();
  fetchTransport({ url: "http://gateway/", fetch: stream('event: next\ndata: {"data":1}\n\n', "event: complete\ndata:\n\n") }).subscribe("s", {}, whole.sink);
  await whole.over;
  assert.deepEqual(whole.out, [{ data: 1 }, "complete"]);
  const broken = heard();
  fetchTransport({ url: "http://gateway/", fetch: stream('event: next\ndata: {"data":1}\n\n') }).subscribe("s", {}, broken.sink);
  await broken.over;
  assert.match(broken.out[1].message, /lost/);
});

test("a refusal instead of an event stream is an error with its code", async () => {
  const { fetch } = answering(() => Response.json({ errors: [{ message: "no", extensions: { code: "FORBIDDEN" } }] }, { status: 403 }));
  const { out, over, sink } = heard();
  fetchTransport({ url: "http://gateway/", fetch }).subscribe("s", {}, sink);
  await over;
  assert.equal(out[0].code, "FORBIDDEN");
});

test("whoever ends a subscription hears nothing more", async () => {
  let aborted;
  const fetch = (url, { signal }) => new Promise((_, no) => signal.addEventListener("abort", () => (aborted = true, no(signal.reason))));
  const { out, sink } = heard();
  const stop = fetchTransport({ url: "http://gateway/", fetch }).subscribe("s", {}, sink);
  await new Promise((resolve) => setImmediate(resolve));
  stop();
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(aborted);
  assert.deepEqual(out, []);
});

// unavailable answers that so many times, and then the data.
const unavailable = (times, answer = () => Response.json({ errors: [{ message: "later", extensions: { code: "UNAVAILABLE" } }] }, { status: 503, headers: { "retry-after": "2" } })) =>
  answering(() => (times-- > 0 ? answer() : Response.json({ data: { a: 1 } })));

// paused notes the pauses of a test, and makes them short.
function paused(t) {
  const pauses = [];
  const real = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", (run, ms) => {
    pauses.push(ms);
    return real(run, 0);
  });
  return pauses;
}

test("a query that is answered UNAVAILABLE is sent again after the time that the gateway asks for, and some more", async (t) => {
  const pauses = paused(t);
  const { requests, fetch } = unavailable(3);
  const transport = fetchTransport({ url: "http://gateway/", fetch, pauses: { least: 100, random: () => 0.5 } });
  assert.deepEqual(await transport.query("query Mine { mutation: a }", {}, {}), { data: { a: 1 } });
  assert.deepEqual(pauses, [2050, 2100, 2200]);
  assert.equal(requests.length, 4);
});

test("the time may be in extensions, and the answer of a proxy", async (t) => {
  paused(t);
  for (const answer of [
    () => Response.json({ errors: [{ message: "later", extensions: { code: "UNAVAILABLE", retryAfter: 1 } }] }, { status: 503 }),
    () => new Response("<html>", { status: 503, headers: { "retry-after": "1" } }),
  ]) {
    const { requests, fetch } = unavailable(1, answer);
    assert.deepEqual(await fetchTransport({ url: "http://gateway/", fetch }).query("{ a }", {}, {}), { data: { a: 1 } });
    assert.equal(requests.length, 2);
  }
});

test("it is not sent again for ever, nor after a long time, nor if it is a mutation or failed otherwise", async (t) => {
  const pauses = paused(t);
  const later = (seconds) => () => Response.json({ errors: [{ message: "later", extensions: { code: "UNAVAILABLE" } }] }, { status: 503, headers: { "retry-after": seconds } });
  for (const [sent, document, answer, options] of [
    [4, "{ a }", later("1"), {}],
    [1, "{ a }", later("1"), { retries: 0 }],
    [1, "{ a }", later("31"), {}],
    [2, "{ a }", later("31"), { retries: 1, pauses: { most: 60_000 } }],
    [1, "mutation { a }", later("1"), {}],
    [1, 'query Q($t: String = "}") { a } # {\nmutation M { b }', later("1"), {}],
    [1, parse("query Q { a } mutation M { b }"), later("1"), {}],
    [1, "{ a }", () => Response.json({ errors: [{ message: "no", extensions: { code: "UNAVAILABLE" } }] }, { status: 503 }), {}],
    [1, "{ a }", () => Response.json({ errors: [{ message: "no", extensions: { code: "FORBIDDEN" } }] }, { status: 403 }), {}],
    [1, "{ a }", () => Response.json({ data: { a: null }, errors: [{ message: "later", extensions: { code: "UNAVAILABLE", retryAfter: 1 } }] }), {}],
  ]) {
    const { requests, fetch } = unavailable(9, answer);
    const { errors } = await fetchTransport({ url: "http://gateway/", fetch, ...options }).query(document, {}, {});
    assert.ok(errors.length);
    assert.equal(requests.length, sent, document);
  }
  assert.ok(pauses.every((ms) => ms <= 62_000));
});

test("a query that is ended while it waits is not sent again", async () => {
  const { requests, fetch } = unavailable(9);
  const ending = new AbortController();
  const asked = fetchTransport({ url: "http://gateway/", fetch }).query("{ a }", {}, { signal: ending.signal });
  await new Promise((resolve) => setImmediate(resolve));
  ending.abort();
  await assert.rejects(asked, { name: "AbortError" });
  assert.equal(requests.length, 1);
});

test("a live list whose subscription is refused hears when to ask again", async () => {
  const { fetch } = unavailable(1);
  const { out, over, sink } = heard();
  fetchTransport({ url: "http://gateway/", fetch }).subscribe("s", {}, sink);
  await over;
  assert.equal(out[0].retryAfter, 2);
});

// parse makes what graphql-js would of these two documents, as far as this package reads it.
function parse(text) {
  const name = (value) => ({ kind: "Name", value });
  const operations = [...text.matchAll(/(query|mutation) (\w+) \{ (\w+) \}/g)];
  return { kind: "Document", definitions: operations.map(([, operation, of, field]) => ({
    kind: "OperationDefinition", operation, name: name(of), variableDefinitions: [], directives: [],
    selectionSet: { kind: "SelectionSet", selections: [{ kind: "Field", name: name(field), arguments: [], directives: [] }] },
  })) };
}

test("documents of code generators are sent as text", async () => {
  class TypedDocumentString extends String {}
  for (const [document, text] of [
    [new TypedDocumentString("{ a }"), "{ a }"],
    [parse("query Q { a }"), "query Q { a }"],
  ]) {
    const { requests, fetch } = answering(() => Response.json({ data: {} }));
    await fetchTransport({ url: "http://gateway/", fetch }).query(document, {}, {});
    assert.equal(JSON.parse(requests[0].body).query, text);
  }
  await assert.rejects(fetchTransport({ url: "http://gateway/" }).query({ document: 1 }, {}, {}), /parsed document/);
});

const hashOf = (text) => createHash("sha256").update(text).digest("hex");
const persisted = (text) => ({ persistedQuery: { version: 1, sha256Hash: hashOf(text) } });
const unknown = () => Response.json({ errors: [{ message: "PersistedQueryNotFound", extensions: { code: "PERSISTED_QUERY_NOT_FOUND" } }] }, { status: 400 });
// parametersOf are what a URL or a body says.
const parametersOf = ({ url, body }) => (body ? JSON.parse(body) : Object.fromEntries([...new URL(url).searchParams].map(([name, value]) => [name, /^[{[]/.test(value) ? JSON.parse(value) : value])));

test("a query by GET has the hash of its document, and the caller's headers", async () => {
  const { requests, fetch } = answering(() => Response.json({ data: { a: 1 } }));
  const transport = fetchTransport({ url: "http://gateway/v1/graphql?tenant=t", method: "GET", headers: { authorization: "Bearer x" }, fetch });
  const text = 'query Q($v: String) { a(v: $v) } # "&+ü"';
  assert.deepEqual(await transport.query(text, { v: "&=+ ü" }, {}), { data: { a: 1 } });
  const [{ url, method, headers, body }] = requests;
  assert.deepEqual([method, body, headers.get("authorization"), headers.get("content-type")], ["GET", undefined, "Bearer x", null]);
  assert.equal(headers.get("accept"), "application/graphql-response+json");
  assert.deepEqual(parametersOf({ url }), { tenant: "t", extensions: persisted(text), variables: { v: "&=+ ü" } });
});

test("a document that the gateway does not know is sent once by POST, which registers it", async () => {
  const answers = [unknown(), Response.json({ data: { a: 1 } }), Response.json({ data: { a: 2 } })];
  const { requests, fetch } = answering(() => answers.shift());
  const transport = fetchTransport({ url: "http://gateway/", method: "GET", fetch });
  assert.deepEqual(await transport.query("{ a }", undefined, {}), { data: { a: 1 } });
  assert.deepEqual(await transport.query("{ a }", undefined, {}), { data: { a: 2 } });
  assert.deepEqual(requests.map(({ method }) => method), ["GET", "POST", "GET"]);
  assert.deepEqual(parametersOf(requests[1]), { query: "{ a }", extensions: persisted("{ a }") });
});

test("a document with an id is named by it, by GET or POST", async () => {
  const documentId = (document) => document.__meta__?.hash;
  const document = Object.assign(parse("query Q { a }"), { __meta__: { hash: "id-1" } });
  for (const method of ["GET", "POST"]) {
    const { requests, fetch } = answering(() => Response.json({ data: {} }));
    await fetchTransport({ url: "http://gateway/", method, documentId, fetch }).query(document, { v: 1 }, {});
    assert.equal(requests[0].method, method);
    assert.deepEqual(parametersOf(requests[0]), { documentId: "id-1", variables: { v: 1 } });
  }
  const answers = [unknown(), Response.json({ data: { a: 1 } })];
  const { requests, fetch } = answering(() => answers.shift());
  assert.deepEqual(await fetchTransport({ url: "http://gateway/", method: "GET", documentId, fetch }).query(document, {}, {}), { data: { a: 1 } });
  assert.deepEqual(parametersOf(requests[1]), { query: "query Q { a }", variables: {} });
});

test("mutations, subscriptions and what makes a long URL go by POST", async () => {
  const { requests, fetch } = answering(() => Response.json({ data: {} }));
  const transport = fetchTransport({ url: "http://gateway/", method: "GET", fetch });
  await transport.query("mutation { a }", {}, {});
  await transport.query('query Q($t: String = "}") { a } # {\nmutation M { b }', {}, {});
  await transport.query("{ a }", { v: "ü".repeat(700) }, {});
  const { over, sink } = heard();
  transport.subscribe("subscription { a }", {}, sink);
  await over;
  assert.deepEqual(requests.map(({ method }) => method), ["POST", "POST", "POST", "POST"]);
  assert.deepEqual(parametersOf(requests[0]), { query: "mutation { a }", variables: {} });
  assert.deepEqual(parametersOf(requests[2]).extensions, persisted("{ a }"));
  assert.deepEqual(parametersOf(requests[3]), { query: "subscription { a }", variables: {} });
});

test("where the browser does not hash, a document without an id goes by POST", async (t) => {
  const has = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  t.after(() => Object.defineProperty(globalThis, "crypto", has));
  const { requests, fetch } = answering(() => Response.json({ data: {} }));
  await fetchTransport({ url: "http://gateway/", method: "GET", fetch }).query("{ a }", {}, {});
  await fetchTransport({ url: "http://gateway/", method: "GET", documentId: () => "id-1", fetch }).query("{ a }", {}, {});
  assert.deepEqual(requests.map(({ method }) => method), ["POST", "GET"]);
});

test("a query by GET that is answered UNAVAILABLE is sent again", async (t) => {
  paused(t);
  const { requests, fetch } = unavailable(1);
  assert.deepEqual(await fetchTransport({ url: "http://gateway/", method: "GET", fetch }).query("{ a }", {}, {}), { data: { a: 1 } });
  assert.deepEqual(requests.map(({ method }) => method), ["GET", "GET"]);
});

test("streamingTransport hands subscriptions to another client", () => {
  const calls = [];
  const transport = streamingTransport({ query: async () => ({ data: 1 }) }, { subscribe: (payload, sink) => (calls.push([payload, sink]), () => {}) });
  const sink = {};
  transport.subscribe("s", { v: 1 }, sink);
  assert.deepEqual(calls, [[{ query: "s", variables: { v: 1 } }, sink]]);
});

test("webStorage forgets what does not fit and what it cannot read", () => {
  const map = new Map([["broken", "{"], ["other", "7"]]);
  const web = { getItem: (k) => map.get(k) ?? null, setItem: (k, v) => { if (v.length > 60) throw new Error("quota"); map.set(k, v); }, removeItem: (k) => map.delete(k) };
  assert.equal(webStorage(web, "broken").load(), null);
  assert.equal(webStorage(web, "other").load(), null);
  assert.equal(webStorage(web, "none").load(), null);
  const storage = webStorage(web, "k");
  storage.save({ cursor: "c", resources: [{ id: "1" }] });
  assert.deepEqual(storage.load(), { cursor: "c", resources: [{ id: "1" }] });
  storage.save({ cursor: "c", resources: [{ id: "x".repeat(100) }] });
  assert.equal(storage.load(), null);
  webStorage(web, "k", { resources: false }).save({ cursor: "c", resources: [{ id: "1" }] });
  assert.deepEqual(webStorage(web, "k").load(), { cursor: "c" });
});
