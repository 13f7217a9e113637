// Every piece of code of docs/clients.md and docs/client-libraries.md does what the pages say. The one with an
// EventSource is run by the suite browser.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import test, { before } from "node:test";
import { promisify } from "node:util";
import { gql } from "@apollo/client";
import { build } from "esbuild";
import { JSDOM } from "jsdom";
import { failureOf, liveList, resolve } from "@sluicegw/client";
import { apolloTransport } from "@sluicegw/client/apollo";
import WebSocket, { WebSocketServer } from "ws";
import { base, create, data, newNamespace, patience, spec, within } from "./gateway.mjs";
import { relayTags, snippets, unpack } from "./guide.mjs";

globalThis.WebSocket ??= WebSocket;

let folder;
before(async () => (folder = await unpack("guide")));

const load = (file) => import(`${folder}/${file}`);
const read = async (namespace, name) => (await data(`query ($namespace: String, $name: String!) { network(namespace: $namespace, name: $name) { id metadata { namespace name revision } spec { resource { mtu description } } } }`, { namespace, name })).network;
const remove = (namespace, name) => data(`mutation ($input: DeleteNetworkInput!) { deleteNetwork(input: $input) { state } }`, { input: { namespace, name } });
const describe = (namespace, name, description, mtu = 1500) => data(`mutation ($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { created } }`, { input: { namespace, name, spec: { ...spec(), resource: { mtu, description } } } });

// until waits for what somebody else shows.
async function until(what, holds) {
  const late = Date.now() + patience;
  while (!(await holds())) {
    if (Date.now() > late) throw new Error(`${what} did not come in ${patience} ms`);
    await new Promise((again) => setTimeout(again, 5));
  }
}

const names = (list) => list.getSnapshot().resources.map((network) => network.metadata.name).join(" ");

// isLive changes networks beside a list and waits until it shows that.
async function isLive(t, namespace, list) {
  t.after(() => (list.close(), list.ended));
  await until("the list", () => list.getSnapshot().status === "live" && names(list) === "a b c");
  await create(namespace, "aa");
  await remove(namespace, "b");
  await until("the changes", () => names(list) === "a aa c");
}

// isSaved lets a second writer change another field, then the same one, and then delete the network, before a save.
async function isSaved(namespace, save) {
  await describe(namespace, "conflict", "before");
  let seen = await read(namespace, "conflict");
  await describe(namespace, "conflict", "theirs");
  await save(seen, { mtu: 1400 }, () => assert.fail("asked"));
  let now = await read(namespace, "conflict");
  assert.deepEqual(now.spec.resource, { mtu: 1400, description: "theirs" });
  for (const side of ["mine", "theirs"]) {
    seen = await read(namespace, "conflict");
    await describe(namespace, "conflict", "theirs", 1300);
    await save(seen, { mtu: 1200 }, (merge) => resolve(merge, () => side));
    now = await read(namespace, "conflict");
    assert.equal(now.spec.resource.mtu, side === "mine" ? 1200 : 1300);
    await describe(namespace, "conflict", "theirs", 1400);
  }
  seen = await read(namespace, "conflict");
  await remove(namespace, "conflict");
  await assert.rejects(save(seen, { mtu: 1200 }, () => assert.fail("asked")), (error) => failureOf(error).code === "NOT_FOUND");
}

test("fetch", async (t) => {
  const namespace = newNamespace("guide");
  await create(namespace, "a", "b", "c");
  await t.test("a page, and all pages", async () => {
    const { page, all } = await load("fetch/list.js");
    const { nodes, pageInfo } = await page(namespace, 2);
    assert.deepEqual([nodes.map((n) => n.metadata.name), pageInfo.hasNextPage], [["a", "b"], true]);
    const seen = [];
    for await (const network of all(namespace, 2)) seen.push(network.metadata.name);
    assert.deepEqual(seen, ["a", "b", "c"]);
  });
  await t.test("a change, with somebody who was faster", async () => isSaved(namespace, (await load("fetch/update.js")).save));
  await t.test("a change of a network that is deleted after the conflict", async () => {
    const { saver } = await load("shared/save.js");
    const conflict = Object.assign(new Error("changed"), { errors: [{ message: "changed", extensions: { code: "CONFLICT" } }] });
    const save = saver(() => Promise.reject(conflict), async () => ({ network: null }));
    const seen = { id: "a", metadata: { revision: "1" }, spec: { resource: { mtu: 1500 } } };
    await assert.rejects(save(seen, { mtu: 1200 }, () => assert.fail("asked")), /the network was deleted/);
  });
  await t.test("the changes, and those after the last one that was dealt with", async () => {
    const { follow } = await load("fetch/changes.js");
    const heard = [];
    const ending = new AbortController();
    const first = follow(namespace, null, ({ type, network }) => heard.push(`${type} ${network?.metadata.name}`), ending.signal);
    await until("the stream", () => heard.length === 1);
    await create(namespace, "followed");
    await until("the change", () => heard.length === 2);
    ending.abort();
    const after = await first;
    await remove(namespace, "followed");
    const end = new AbortController();
    await follow(namespace, after, ({ type, network }) => {
      if (type !== "IN_SYNC") heard.push(`${type} ${network.metadata.name}`);
      if (heard.length === 3) end.abort();
    }, end.signal);
    assert.deepEqual(heard.slice(1), ["ADDED followed", "DELETED followed"]);
  });
  await t.test("a live list", async (t) => {
    const { liveNetworks, show } = await load("fetch/live.js");
    const list = liveNetworks(namespace);
    const shown = [];
    show(list, (names, status) => shown.push(`${status} ${names.join(" ")}`));
    await isLive(t, namespace, list);
    assert.equal(shown.at(-1), "live a aa c");
  });
});

// guarded stands in front of the gateway and lets those through who have the token of the moment.
async function guarded(t) {
  const guard = { token: "first", sockets: new Set() };
  const server = createServer(async (request, response) => {
    if (request.headers.authorization !== `Bearer ${guard.token}`) {
      response.writeHead(401, { "content-type": "application/json" }).end(`{"errors":[{"message":"no","extensions":{"code":"UNAUTHENTICATED"}}]}`);
      return;
    }
    const { accept, "content-type": type } = request.headers;
    const answer = await fetch(base + request.url, { method: "POST", headers: { accept, "content-type": type }, body: request, duplex: "half" });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") }).end(await answer.text());
  });
  new WebSocketServer({ server, handleProtocols: () => "graphql-transport-ws" }).on("connection", (near, { url }) => {
    const far = new WebSocket(base.replace("http", "ws") + url, "graphql-transport-ws");
    const opened = once(far, "open");
    guard.sockets.add(near);
    near.on("close", () => (guard.sockets.delete(near), far.close()));
    far.on("message", (text) => near.send(text.toString())).on("error", () => {});
    near.on("message", async (raw) => {
      let text = raw.toString();
      const { type, payload } = JSON.parse(text);
      if (type === "connection_init" && payload?.authorization !== `Bearer ${guard.token}`) return near.close(4403, "UNAUTHENTICATED: the credential is not valid");
      if (type === "connection_init") text = `{"type":"connection_init"}`;
      await opened;
      far.send(text);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  guard.url = `http://127.0.0.1:${server.address().port}/v1/graphql`;
  // replace revokes the token, as the gateway does it.
  guard.replace = (token) => {
    guard.token = token;
    for (const socket of guard.sockets) socket.close(4403, "UNAUTHENTICATED: the credential was revoked");
  };
  return guard;
}

test("a credential that is replaced under a live list", async (t) => {
  const namespace = newNamespace("guide");
  await create(namespace, "a", "b", "c");
  const guard = await guarded(t);
  const { transport: over } = await load("login/transport.js");
  const asked = [];
  const transport = over(guard.url, async () => (asked.push(guard.token), guard.token));
  const selected = "id metadata { namespace name revision }";
  const list = liveList({
    transport,
    list: `query ($namespace: String, $first: Int, $after: String) { networks(namespace: $namespace, first: $first, after: $after) { changeCursor nodes { ${selected} } pageInfo { hasNextPage endCursor } } }`,
    changes: `subscription ($namespace: String, $after: String) { networkChanges(namespace: $namespace, after: $after) { type cursor network { ${selected} } } }`,
    variables: { namespace },
  });
  t.after(() => (list.close(), list.ended));
  await until("the list", () => list.getSnapshot().status === "live");
  guard.replace("second");
  await until("the end", () => list.getSnapshot().status === "behind");
  await isLive(t, namespace, list);
  assert.deepEqual(asked, ["first", "second"]);
  guard.token = "third";
  assert.deepEqual((await transport.query("{ __typename }", {}, {})).data, { __typename: "Query" });
});

test("a client of Apollo whose credential is replaced", async (t) => {
  const namespace = newNamespace("guide");
  await create(namespace, "a", "b", "c");
  const guard = await guarded(t);
  const { clientFor } = await load("apollo/login.js");
  const asked = [];
  const client = clientFor(guard.url, async () => (asked.push(guard.token), guard.token));
  t.after(() => client.stop());
  const row = "id metadata { namespace name revision }";
  const list = liveList({
    transport: apolloTransport(client),
    list: gql`query ($namespace: String, $first: Int, $after: String) { networks(namespace: $namespace, first: $first, after: $after) { changeCursor nodes { ${row} } pageInfo { hasNextPage endCursor } } }`,
    changes: gql`subscription ($namespace: String, $after: String) { networkChanges(namespace: $namespace, after: $after) { type cursor network { ${row} } } }`,
    variables: { namespace },
  });
  t.after(() => (list.close(), list.ended));
  await until("the list", () => list.getSnapshot().status === "live");
  guard.replace("second");
  await until("the end", () => list.getSnapshot().status === "behind");
  await isLive(t, namespace, list);
  assert.deepEqual(asked, ["first", "second"]);
  guard.token = "third";
  const { data: found } = await client.query({ query: gql`query ($namespace: String) { networks(namespace: $namespace) { totalCount } }`, variables: { namespace } });
  assert.equal(found.networks.totalCount, 3);
  assert.deepEqual(asked, ["first", "second", "third"]);
});

test("Apollo", async (t) => {
  const namespace = newNamespace("guide");
  await create(namespace, "a", "b", "c");
  const { client, socket } = await load("apollo/client.js");
  t.after(() => (client.stop(), socket.dispose()));
  const { watchNetworks } = await load("apollo/list.js");
  let shown;
  const edges = () => shown?.edges.map((e) => e.node.metadata.name).join(" ");
  await t.test("a page, and the next one", async (t) => {
    const { query, more } = watchNetworks(namespace, 2);
    const subscription = query.subscribe(({ data }) => (shown = data?.networks));
    t.after(() => subscription.unsubscribe());
    await until("the page", () => edges() === "a b");
    await more(shown);
    await until("the next page", () => edges() === "a b c");
  });
  await t.test("a change, with somebody who was faster", async () => isSaved(namespace, (await load("apollo/update.js")).save));
  await t.test("a live list, and a change that is shown at once", async (t) => {
    const { query } = watchNetworks(namespace, 2);
    const subscription = query.subscribe(({ data }) => (shown = data?.networks));
    t.after(() => subscription.unsubscribe());
    const list = (await load("apollo/live.js")).follow(namespace, 2);
    await isLive(t, namespace, list);
    await until("the query", () => edges() === "a aa c");
    const { setMTU: change } = await load("apollo/optimistic.js");
    const first = () => shown.edges[0].node;
    const changed = change(first(), 1280);
    assert.equal(client.cache.extract(true)[`Network:${first().id}`].spec.resource.mtu, 1280, "not at once");
    await changed;
    await until("the query", () => first().spec.resource.mtu === 1280);
    await assert.rejects(change(first(), 1));
    assert.equal(client.cache.extract(true)[`Network:${first().id}`].spec.resource.mtu, 1280, "not taken back");
  });
});

test("urql", async (t) => {
  const namespace = newNamespace("guide");
  await create(namespace, "a", "b", "c");
  const { client } = await load("urql/client.js");
  await t.test("a page, and the next one", async () => {
    const { page } = await load("urql/list.js");
    const first = await page(namespace, 2);
    assert.deepEqual(first.edges.map((e) => e.node.metadata.name), ["a", "b"]);
    const both = await page(namespace, 2, first.pageInfo.endCursor);
    assert.deepEqual(both.edges.map((e) => e.node.metadata.name), ["a", "b", "c"]);
  });
  await t.test("a change, with somebody who was faster", async () => isSaved(namespace, (await load("urql/update.js")).save));
  await t.test("a live list, and a change that is shown at once", async (t) => {
    const { liveNetworks, networksQuery } = await load("urql/live.js");
    let rows;
    const query = client.query(networksQuery, { namespace, first: 3 }).subscribe(({ data }) => data && (rows = data.networks.nodes.map((n) => n.metadata.name).join(" ")));
    t.after(() => query.unsubscribe());
    const list = liveNetworks(namespace, 3);
    await isLive(t, namespace, list);
    await until("the query", () => rows === "a aa c");
    const { gql } = await import("@urql/core");
    const one = gql`query One($namespace: String) { network(namespace: $namespace, name: "a") { id metadata { namespace name revision } spec { resource { mtu description } } } }`;
    const seen = [];
    const subscription = client.query(one, { namespace }).subscribe(({ data }) => data?.network && seen.push(`${data.network.spec.resource.mtu} ${data.network.metadata.revision}`));
    t.after(() => subscription.unsubscribe());
    await until("the network", () => seen.length > 0);
    const patch = gql`mutation P($input: PatchNetworkInput!) { patchNetwork(input: $input) { network { id metadata { namespace name revision } spec { resource { mtu description } } } } }`;
    const network = await read(namespace, "a");
    const input = { id: network.id, expectedRevision: network.metadata.revision, spec: { resource: { mtu: 1280 } } };
    assert.equal((await client.mutation(patch, { input }).toPromise()).error, undefined);
    const { metadata: { revision } } = await read(namespace, "a");
    assert.ok(seen.includes(`1280 ${network.metadata.revision}`), `not at once: ${seen.join()}`);
    const refused = { ...input, expectedRevision: revision, spec: { resource: { mtu: 1 } } };
    assert.ok((await client.mutation(patch, { input: refused }).toPromise()).error);
    assert.ok(seen.includes(`1 ${revision}`), `not at once: ${seen.join()}`);
    await until("the stored value", () => seen.at(-1) === `1280 ${revision}`);
  });
});

// bundle builds what Relay's guide builds: its compiler's artifacts, its plugin of Babel, and JSX.
async function bundle() {
  const tags = await relayTags(folder);
  const entry = ["environment.js", "list.jsx", "live.js", "update.js", "optimistic.js"].map((file, n) => `export * as part${n} from "./relay/${file}";`).join("\n");
  await build({
    stdin: { contents: `${entry}\nexport * as react from "react";\nexport * as dom from "react-dom/client";\nexport { flushSync } from "react-dom";\nexport * as relay from "react-relay";`, resolveDir: folder },
    bundle: true, platform: "node", format: "cjs", jsx: "automatic", outfile: `${folder}/bundle.cjs`, plugins: [tags], logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const { part0, part1, part2, part3, part4, ...others } = createRequire(import.meta.url)(`${folder}/bundle.cjs`);
  return { ...others, ...part0, ...part1, ...part2, update: part3, optimistic: part4 };
}

test("Relay", async (t) => {
  const namespace = newNamespace("guide");
  await create(namespace, "a", "b", "c");
  // Relay keeps a query for minutes after its component is gone; the process need not wait for that.
  const { setTimeout } = globalThis;
  t.mock.method(globalThis, "setTimeout", (run, ms, ...args) => {
    const timer = setTimeout(run, ms, ...args);
    return ms > 3 * patience ? timer.unref() : timer;
  });
  const { window } = new JSDOM("<div id=root></div>");
  Object.assign(globalThis, { window, document: window.document });
  const { environment, socket, Networks, update, optimistic, react, dom, flushSync, relay } = await bundle();
  t.after(() => socket.dispose());
  const root = dom.createRoot(window.document.getElementById("root"));
  t.after(() => {
    flushSync(() => root.unmount()); // its effects end the live list
    window.close();
  });
  root.render(react.createElement(relay.RelayEnvironmentProvider, { environment }, react.createElement(react.Suspense, { fallback: "…" }, react.createElement(Networks, { namespace }))));
  const shown = () => [...window.document.querySelectorAll("li")].map((li) => li.textContent).join(", ");
  const more = () => window.document.querySelector("button");
  await t.test("a page, and the next one, both live", async () => {
    await until("the page", () => shown() === "a 1500, b 1500" && more());
    await create(namespace, "aa");
    await until("a row before the last", () => shown() === "a 1500, aa 1500");
    await remove(namespace, "a");
    await until("a row from behind", () => shown() === "aa 1500, b 1500");
    more().dispatchEvent(new window.MouseEvent("click", { bubbles: true }));
    await until("the next page", () => shown() === "aa 1500, b 1500, c 1500" && !more());
    await create(namespace, "a");
    await remove(namespace, "b");
    await until("the changes", () => shown() === "a 1500, aa 1500, c 1500");
  });
  await t.test("a change, with somebody who was faster", async () => {
    await isSaved(namespace, (...args) => update.save(environment, ...args));
    await until("the list", () => shown() === "a 1500, aa 1500, c 1500");
  });
  await t.test("a change that is shown at once, and taken back if it is refused", async () => {
    const errors = [];
    // inStore is what components are about to show.
    const inStore = ({ id }) => {
      const source = environment.getStore().getSource();
      return source.get(source.get(source.get(id).spec.__ref).resource.__ref).mtu;
    };
    const change = async (mtu) => {
      const network = await read(namespace, "a");
      optimistic.setMTU(environment, network, mtu, (error) => errors.push(error));
      assert.equal(inStore(network), mtu, "not at once");
    };
    await change(1280);
    await until("the change", async () => shown().startsWith("a 1280") && (await read(namespace, "a")).spec.resource.mtu === 1280);
    await change(1);
    await until("the refusal", () => errors.length === 1);
    await until("the stored value", () => shown().startsWith("a 1280"));
  });
});

test("the request by curl is an event stream", async () => {
  const { "events/curl.sh": command } = await snippets();
  const heard = promisify(execFile)("sh", ["-c", command.replace("curl ", "curl --no-progress-meter --max-time 3 ")], { timeout: patience }).catch(({ code, stdout }) => {
    assert.equal(code, 28, stdout); // the time is up
    return { stdout };
  });
  const { stdout } = await within(heard, "the stream");
  assert.match(stdout, /^event: next\n(id: .*\n)?data: .*IN_SYNC/m);
});

test("the queries of the page are answered", async (t) => {
  const { "query/dependencies.graphql": relations, "query/secret.graphql": values, "query/summary.graphql": summary } = await snippets();
  await data(`mutation { upsertSecret(input: {name: "db", spec: {stringData: [{key: "user", value: "ada"}]}}) { created } }`);
  t.after(() => data(`mutation { deleteSecret(input: {name: "db"}) { state } }`));
  assert.deepEqual((await data(values)).reveal.values, [{ path: "spec.data", key: "user", value: "YWRh", encoding: "BASE64", text: "ada" }]);
  await describe("default", "relations", "It names a Secret that is not there.");
  t.after(() => remove("default", "relations"));
  const { network } = await data(relations, { name: "relations" });
  assert.deepEqual(network.dependencies.nodes.map(({ kind, state, guarded, resource }) => ({ kind, state, guarded, resource })), [{ kind: "Secret", state: "MISSING", guarded: true, resource: null }]);
  assert.equal(network.dependents.totalCount + network.blockedBy.totalCount, 0);
  const { groups } = (await data(summary)).networksSummary;
  assert.ok(groups.length > 0 && groups.every(({ keys, count }) => count > 0 && keys.map(({ path }) => path).join() === "labels.team,conditions.Available"), JSON.stringify(groups));
});

test("every piece of code is run by a test", async () => {
  const known = { shared: 2, fetch: 5, login: 1, apollo: 6, urql: 5, relay: 5, events: 2, query: 3 };
  const found = {};
  for (const file of Object.keys(await snippets())) found[file.split("/")[0]] = (found[file.split("/")[0]] ?? 0) + 1;
  assert.deepEqual(found, known, "a new piece of code needs a test; then count it here");
});
