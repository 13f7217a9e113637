import assert from "node:assert/strict";
import test from "node:test";
import { fetchTransport, streamingTransport } from "../src/index.js";

const headers = { deprecation: "@1769817600", sunset: "Fri, 31 Jul 2026 00:00:00 GMT" };
const [since, sunset] = [new Date("2026-01-31"), new Date("2026-07-31")];

const answering = (own) => async (_url, { headers: asked }) => (asked.get("accept") === "text/event-stream"
  ? new Response("event: complete\ndata:\n\n", { headers: { "content-type": "text/event-stream", ...own } })
  : Response.json({ data: { a: 1 } }, { headers: own }));

const subscribed = (transport) => new Promise((resolve, reject) => transport.subscribe("subscription { a }", {}, { next() {}, error: reject, complete: resolve }));

// warnings are what the console is told while a test runs.
function warnings(t) {
  const told = [];
  t.mock.method(console, "warn", (text) => told.push(text));
  return told;
}

test("a deprecated version is reported once, whatever way a request goes", async () => {
  for (const options of [{}, { method: "GET", documentId: () => "a" }]) {
    const told = [];
    const transport = fetchTransport({ url: "http://gateway/v1.0/graphql", fetch: answering(headers), onDeprecation: (d) => told.push(d), ...options });
    assert.deepEqual(await transport.query("{ a }", {}, {}), { data: { a: 1 } });
    await transport.query("{ a }", {}, {});
    await subscribed(transport);
    const message = "the API at http://gateway/v1.0/graphql is deprecated from 2026-01-31 on, and may be withdrawn after 2026-07-31";
    assert.deepEqual(told, [{ message, since, sunset }]);
  }
  const told = [];
  await subscribed(fetchTransport({ url: "http://gateway/v1.0/graphql", fetch: answering(headers), onDeprecation: (d) => told.push(d) }));
  assert.equal(told.length, 1, "by a stream alone");
});

test("by default the console is warned, once for all transports", async (t) => {
  const told = warnings(t);
  for (let i = 0; i < 2; i++) {
    await fetchTransport({ url: "http://warned/v1.0/graphql", fetch: answering({ deprecation: "@1769817600" }) }).query("{ a }", {}, {});
  }
  assert.deepEqual(told, ["the API at http://warned/v1.0/graphql is deprecated from 2026-01-31 on"]);
});

test("nothing is reported of a version that is not deprecated, nor if nothing is wanted", async (t) => {
  const told = warnings(t);
  await fetchTransport({ url: "http://gateway/v1.2/graphql", fetch: answering({ sunset: headers.sunset }) }).query("{ a }", {}, {});
  await fetchTransport({ url: "http://gateway/v1.0/graphql", fetch: answering(headers), onDeprecation: null }).query("{ a }", {}, {});
  assert.deepEqual(told, []);
});

test("a header of another form is reported without days", async () => {
  const told = [];
  const fetch = answering({ deprecation: "true", sunset: "never" });
  await fetchTransport({ url: "http://gateway/", fetch, onDeprecation: (d) => told.push(d) }).query("{ a }", {}, {});
  assert.deepEqual(told, [{ message: "the API at http://gateway/ is deprecated", since: undefined, sunset: undefined }]);
});

test("a WebSocket says so when it is acknowledged", async () => {
  const told = [], listeners = [];
  const client = { subscribe: () => () => {}, on: (event, listener) => event === "connected" && listeners.push(listener) };
  streamingTransport({ query: async () => ({}) }, client, { onDeprecation: (d) => told.push(d) });
  const payload = { version: "v1.0", deprecated: "2026-01-31", sunset: "2026-07-31", why: "use v1.2" };
  for (const acknowledged of [undefined, null, {}, payload, payload]) listeners[0]({}, acknowledged);
  const message = "version v1.0 of the API is deprecated from 2026-01-31 on, and may be withdrawn after 2026-07-31: use v1.2";
  assert.deepEqual(told, [{ message, since, sunset, version: "v1.0", why: "use v1.2" }]);
  streamingTransport({ query: async () => ({}) }, { subscribe: () => () => {} }); // a client of graphql-sse
});
