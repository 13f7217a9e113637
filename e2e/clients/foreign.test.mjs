// Pages of other origins try to reach the API, and the gateway's own pages do.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { fetchTransport } from "@sluicegw/client";
import { base, create, newNamespace, patience, within } from "./gateway.mjs";

// Both names are this machine. A browser tells a server by a name other than
// localhost, on plain HTTP, nothing of where a request comes from.
const named = base.replace("127.0.0.1", "gateway.test");

// SLUICE_PAGES is a port for the pages of other origins; friend.test there is an allowed origin.
const port = Number(process.env.SLUICE_PAGES);
const foreign = `http://foreign.test:${port}/`, friend = `http://friend.test:${port}/`;
// neighbour is an allowed origin as well, and a secure context.
const neighbour = `http://127.0.0.1:${port}/`;

let browser, server;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.SLUICE_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
  server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>foreign</title><body>"));
  await new Promise((listening) => server.listen(port, "127.0.0.1", listening));
});
after(async () => {
  await browser?.close();
  server?.close();
});

async function open(t, address) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  await page.goto(address);
  return page;
}

// answers counts the answers of the API by their status, as the gateway does: a
// browser shows a page of another origin little of them. One whose Origin is
// refused has no path.
async function answers() {
  const counts = {};
  for (const [, status, n] of (await (await fetch(`${base}/metrics`)).text()).matchAll(/^sluice_http_request_duration_seconds_count\{.*path="(?:\/graphql|other)",status="(\d+)"\} (\d+)$/gm)) {
    counts[status] = (counts[status] ?? 0) + Number(n);
  }
  return counts;
}

// answered returns the status of the answer to the one request that start makes.
async function answered(start) {
  const was = await answers();
  await start();
  for (const late = Date.now() + patience; Date.now() < late;) {
    const now = await answers();
    const more = Object.keys(now).filter((status) => now[status] !== (was[status] ?? 0));
    if (more.length > 0) return more.map(Number);
  }
  throw new Error("the gateway was not asked");
}

// get is a query that an element of a page can name.
const get = (gateway) => `${gateway}/graphql?query=${encodeURIComponent("{ networks { totalCount } }")}`;

// What a page can do without asking first, given the address.
const attempts = {
  "an image": (url) => { new Image().src = url; },
  "a script": (url) => { document.head.append(Object.assign(document.createElement("script"), { src: url })); },
  "a style sheet": (url) => { document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: url })); },
  "a frame": (url) => { document.body.append(Object.assign(document.createElement("iframe"), { src: url })); },
  "a video": (url) => { document.body.append(Object.assign(document.createElement("video"), { src: url })); },
  "a fetch without CORS": (url) => { fetch(url, { mode: "no-cors" }).catch(() => {}); },
  "a fetch with CORS": (url) => { fetch(url).catch(() => {}); },
  "an EventSource": (url) => { new EventSource(url); },
  "a beacon": (url) => { navigator.sendBeacon(url, '{"query":"{ __typename }"}'); },
  "a link": (url) => { location.href = url; },
  "a form by GET": (url) => {
    const form = Object.assign(document.createElement("form"), { action: url });
    form.append(Object.assign(document.createElement("input"), { name: "query", value: "{ __typename }" }));
    document.body.append(form);
    form.submit();
  },
  "a form by POST": (url) => {
    const form = Object.assign(document.createElement("form"), { action: url, method: "post", enctype: "text/plain" });
    form.append(Object.assign(document.createElement("input"), { name: '{"query":"{ __typename }", "x":"', value: '"}' }));
    document.body.append(form);
    form.submit();
  },
};

for (const [gateway, how] of [[base, "a gateway on loopback"], [named, "a gateway on plain HTTP"]]) {
  for (const [name, attempt] of Object.entries(attempts)) {
    test(`${how} refuses ${name} of a page of another origin`, async (t) => {
      const page = await open(t, foreign);
      assert.deepEqual(await answered(() => page.evaluate(attempt, get(gateway))), [403]);
    });
  }

  test(`${how} serves its own pages`, async (t) => {
    const page = await open(t, `${gateway}/console/plain`);
    const text = `{ __typename } # ${how}`;
    const results = await within(page.evaluate(async ({ text, hash }) => {
      const json = async (address, init) => (await fetch(address, init)).json();
      const persisted = "/graphql?extensions=" + encodeURIComponent(JSON.stringify({ persistedQuery: { version: 1, sha256Hash: hash } }));
      const accept = { accept: "application/json" };
      const unknown = await json(persisted, { headers: accept });
      const registered = await json(`${persisted}&query=${encodeURIComponent(text)}`, { headers: accept });
      const known = await json(persisted, { headers: accept });
      const posted = await json("/graphql", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query: text }) });
      const source = new EventSource("/graphql?query=" + encodeURIComponent("subscription { networkChanges { type } }"));
      const event = await new Promise((resolve, reject) => {
        source.addEventListener("next", (event) => resolve(JSON.parse(event.data)));
        source.onerror = () => reject(new Error("EventSource failed"));
      });
      source.close();
      return { unknown: unknown.errors[0].message, registered, known, posted, event };
    }, { text, hash: createHash("sha256").update(text).digest("hex") }), "the answers");
    const answer = { data: { __typename: "Query" } };
    assert.deepEqual(results, {
      unknown: "PersistedQueryNotFound", registered: answer, known: answer, posted: answer,
      event: { data: { networkChanges: { type: "IN_SYNC" } } },
    });
  });
}

test("on plain HTTP a fetch without CORS that names the type is served, but not read", async (t) => {
  const page = await open(t, foreign);
  const attempt = (url) => fetch(url, { mode: "no-cors", headers: { accept: "application/json" } }).then((r) => [r.type, r.status], (e) => String(e));
  let seen;
  assert.deepEqual(await answered(async () => { seen = await page.evaluate(attempt, get(named)); }), [200]);
  assert.deepEqual(seen, ["opaque", 0]);
  assert.deepEqual(await answered(() => page.evaluate(attempt, get(base))), [403]);
});

test("pages of an allowed origin read answers and events", async (t) => {
  const page = await open(t, friend);
  const results = await within(page.evaluate(async (gateway) => {
    const answer = await (await fetch(`${gateway}/graphql?query={__typename}`)).json();
    const source = new EventSource(`${gateway}/graphql?query=${encodeURIComponent("subscription { networkChanges { type } }")}`);
    const event = await new Promise((resolve, reject) => {
      source.addEventListener("next", (event) => resolve(JSON.parse(event.data)));
      source.onerror = () => reject(new Error("EventSource failed"));
    });
    source.close();
    return [answer, event];
  }, base), "the answers");
  assert.deepEqual(results, [{ data: { __typename: "Query" } }, { data: { networkChanges: { type: "IN_SYNC" } } }]);
});

const networks = `query Networks($namespace: String!) { networks(namespace: $namespace) { totalCount nodes { id metadata { name } } } }`;

// The package, as a page loads it.
const bundled = build({
  stdin: { contents: 'export { fetchTransport } from "@sluicegw/client";', resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
  bundle: true, write: false, format: "iife", globalName: "client",
}).then(({ outputFiles: [{ text }] }) => text);

for (const [where, address] of [["the gateway's own page", `${base}/console/plain`], ["a page of an allowed origin", neighbour]]) {
  test(`${where} asks by GET, and its browser whether the answer is still the same`, async (t) => {
    const page = await open(t, address);
    const document = `${networks} # ${where}`;
    const namespace = newNamespace("foreign");
    await create(namespace, "a");
    await page.evaluate(`${await bundled}; window.client = client`);
    let names;
    const ask = async (options = {}) => {
      names = await within(page.evaluate(async ([url, query, namespace, options]) => {
        const { data } = await client.fetchTransport({ url, ...options }).query(query, { namespace }, {});
        return data.networks.nodes.map(({ metadata }) => metadata.name).join(" ");
      }, [`${base}/graphql`, document, namespace, { method: "GET", ...options }]), "the answer");
    };
    await ask(); // registers the document
    assert.deepEqual([await answered(ask), names], [[200], "a"]);
    assert.deepEqual([await answered(ask), names], [[304], "a"]);
    await create(namespace, "b");
    assert.deepEqual([await answered(ask), names], [[200], "a b"]);
    assert.deepEqual([await answered(ask), names], [[304], "a b"]);
    assert.deepEqual([await answered(() => ask({ method: "POST" })), names], [[200], "a b"]);
    // A header that needs a preflight.
    const traced = () => ask({ headers: { authorization: "Bearer none", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } });
    await traced();
    assert.equal(names, "a b");
  });
}

test("a page that is no secure context asks by POST, and by GET for documents that have an id", async (t) => {
  const page = await open(t, friend);
  const documentId = `sha256:${createHash("sha256").update(networks).digest("hex")}`;
  const namespace = newNamespace("foreign");
  await fetchTransport({ url: `${base}/graphql`, method: "GET" }).query(networks, { namespace }, {}); // registers the document
  const methods = [];
  page.on("request", (request) => methods.push(request.method()));
  await page.evaluate(`${await bundled}; window.client = client`);
  const counts = await within(page.evaluate(async ([url, query, namespace, id]) => {
    const ask = async (documentId) => (await client.fetchTransport({ url, method: "GET", documentId }).query(query, { namespace }, {})).data.networks.totalCount;
    return [await ask(), await ask(() => id), await ask(() => id)];
  }, [`${base}/graphql`, networks, namespace, documentId]), "the answers");
  assert.deepEqual(counts, [0, 0, 0]);
  assert.deepEqual(methods, ["POST", "GET", "GET"]);
});
