// The live list of @sluicegw/client against gateways that are restarted, replaced, held up and cut off.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, readFile, writeFile } from "node:fs/promises";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { SetContextLink } from "@apollo/client/link/context";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { OperationTypeNode } from "graphql";
import { createClient as createSSE } from "graphql-sse";
import { createClient as createWS } from "graphql-ws";
import { ConflictError, credentialOf, failureOf, fetchTransport, liveList, renewing, resolve, saveMerged, streamingTransport, unwrap } from "@sluicegw/client";
import { apolloTransport } from "@sluicegw/client/apollo";
import WebSocket from "ws";
import { api, base, create, data, newNamespace, setMTU, spec, within, workFolder } from "./gateway.mjs";
import { Gateway, newStore, Way } from "./process.mjs";

const fields = "id metadata { namespace name revision annotations { value } } spec { resource { mtu } }";
const documents = {
  list: `query ($namespace: String, $first: Int, $after: String) {
    networks(namespace: $namespace, first: $first, after: $after) { changeCursor nodes { ${fields} } pageInfo { hasNextPage endCursor } }
  }`,
  changes: `subscription ($namespace: String, $after: String, $snapshot: Boolean = false) {
    networkChanges(namespace: $namespace, after: $after, snapshot: $snapshot) { type cursor network { ${fields} } }
  }`,
};
const put = `mutation ($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { created } }`;
const remove = `mutation ($input: DeleteNetworkInput!) { deleteNetwork(input: $input) { state } }`;

// transports are the ways to a gateway that the package has or takes.
const transports = {
  fetch: (t, at, headers) => fetchTransport({ url: `${at}/${api}/graphql`, headers }),
  "graphql-ws": (t, at, headers) => {
    const client = createWS({ url: `${at.replace("http", "ws")}/${api}/graphql`, webSocketImpl: WebSocket, retryAttempts: 0, connectionParams: headers });
    t.after(() => client.dispose());
    return streamingTransport(fetchTransport({ url: `${at}/${api}/graphql`, headers }), client);
  },
  "graphql-sse": (t, at, headers) => {
    const client = createSSE({ url: `${at}/${api}/graphql`, retryAttempts: 0, headers });
    t.after(() => client.dispose());
    return streamingTransport(fetchTransport({ url: `${at}/${api}/graphql`, headers }), client);
  },
};

// noting notes the codes of errors and the types of marks that a transport's subscriptions tell.
const noting = (codes, { query, subscribe }) => ({
  query,
  subscribe: (document, variables, sink) => subscribe(document, variables, {
    ...sink,
    next: (result) => (codes.push(result.data?.networkChanges.type ?? failureOf(result.errors).code), sink.next(result)),
    error: (error) => (codes.push(failureOf(error).code), sink.error(error)),
  }),
});

// open is a live list whose views are noted.
function open(t, transport, options = {}) {
  const list = liveList({ transport, ...documents, pageSize: 2, pauses: { least: 20, most: 200 }, ...options });
  t.after(() => (list.close(), list.ended));
  list.views = [];
  list.subscribe(() => list.views.push({ ...list.getSnapshot(), text: text(list) }));
  return list;
}

// text is what a list shows: names and MTUs.
const text = (list) => list.getSnapshot().resources.map((r) => `${r.metadata.name}:${r.spec.resource.mtu}`).join(" ");

async function until(list, what, holds) {
  let stop;
  await within(new Promise((resolve) => {
    const look = () => holds(list.getSnapshot()) && resolve();
    stop = list.subscribe(look);
    look();
  }), what).catch((error) => {
    throw new Error(`${error.message}; the list shows ${text(list)} ${list.getSnapshot().status} ${list.getSnapshot().error}`);
  }).finally(() => stop());
}

const shows = (list, expected) => until(list, expected, ({ status }) => status === "live" && text(list) === expected);

for (const [name, transport] of Object.entries(transports)) {
  test(`${name}: pages are read, and then every change is shown`, async (t) => {
    const namespace = newNamespace("live");
    await create(namespace, "a", "b", "c", "e", "f");
    const list = open(t, transport(t, base), { variables: { namespace } });
    await shows(list, "a:1500 b:1500 c:1500 e:1500 f:1500");
    await create(namespace, "d");
    await setMTU(namespace, "a", 1400);
    await data(remove, { input: { namespace, name: "f" } });
    await shows(list, "a:1400 b:1500 c:1500 d:1500 e:1500");
  });

  test(`${name}: a restart of the gateway is survived, whether it is stopped or killed`, async (t) => {
    const gateway = await new Gateway(t, newStore()).start();
    const write = (mtu) => gateway.ask(put, { input: { name: "a", spec: spec(mtu) } });
    await write(1001);
    const list = open(t, transport(t, gateway.base));
    await shows(list, "a:1001");
    for (const [end, mtu] of [["stop", 1002], ["kill", 1003]]) {
      await gateway[end]();
      await until(list, "behind", ({ status }) => status === "behind");
      await gateway.start();
      await write(mtu);
      await shows(list, `a:${mtu}`);
    }
    assert.ok(list.views.slice(list.views.findIndex((v) => v.text)).every((v) => v.text !== ""), "the list was empty in between");
  });
}

// tokens changes a file of tokens, as an operator does.
const tokens = async (...args) => (await promisify(execFile)(process.env.SLUICE_BINARY, ["token", ...args])).stdout.trim();

// apollo is a client of Apollo whose subscriptions go over a WebSocket.
function apollo(t, at, headers) {
  const socket = createWS({ url: `${at.replace("http", "ws")}/${api}/graphql`, webSocketImpl: WebSocket, retryAttempts: 0, connectionParams: headers });
  const sent = new SetContextLink(async (context) => ({ headers: { ...context.headers, ...(await headers()) } }));
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      new GraphQLWsLink(socket),
      ApolloLink.from([sent, new HttpLink({ uri: `${at}/${api}/graphql` })]),
    ),
  });
  t.after(() => (client.stop(), socket.dispose()));
  const { query, subscribe } = apolloTransport(client);
  return {
    query: (document, ...more) => query(gql(document), ...more),
    subscribe: (document, ...more) => subscribe(gql(document), ...more),
  };
}

for (const [name, transport] of Object.entries({ ...transports, "Apollo by graphql-ws": apollo })) {
  test(`${name}: a list outlives its token, and fails when there is no other`, async (t) => {
    const file = `${await workFolder(`tokens-${name.replaceAll(" ", "-")}`)}/tokens`;
    let token = await tokens("create", "first", "--tokens", file);
    const gateway = await new Gateway(t, newStore(), "--tokens", file, "--admin-group", "system:authenticated").start();
    const refusals = [];
    const credential = credentialOf(async (refused) => {
      if (refused) refusals.push(refused);
      return token;
    });
    const over = renewing(transport(t, gateway.base, credential.authorization), credential);
    const writing = renewing(transports.fetch(t, gateway.base, credential.authorization), credential);
    const write = async (mtu) => unwrap(await writing.query(put, { input: { name: "a", spec: spec(mtu) } }, {}));
    await write(1001);
    const list = open(t, over);
    await shows(list, "a:1001");
    const first = token;
    token = await tokens("create", "second", "--tokens", file);
    const known = async () => (await fetch(`${gateway.base}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status === 200;
    await within((async () => {
      while (!(await known())); // the gateway reads the file again
    })(), "the second token");
    await tokens("revoke", "first", "--tokens", file);
    await until(list, "the end of the first token", ({ status }) => status === "behind");
    await write(1002);
    await shows(list, "a:1002");
    assert.deepEqual(refusals, [first]);
    await tokens("revoke", "second", "--tokens", file);
    await until(list, "the failure", ({ status }) => status === "failed");
    assert.equal(list.getSnapshot().error.code, "UNAUTHENTICATED");
  });
}

for (const snapshot of [false, true]) {
  test(`a gateway on another store is ${snapshot ? "heard of by RESET" : "POSITION_EXPIRED and the list is read anew"}, and the list is never empty`, async (t) => {
    const gateway = await new Gateway(t, newStore()).start();
    for (const name of ["a", "b"]) await gateway.ask(put, { input: { name, spec: spec(1001) } });
    const types = [];
    const transport = noting(types, fetchTransport({ url: `${gateway.base}/${api}/graphql` }));
    const list = open(t, transport, { snapshot, pauses: { least: 20, most: 100 } });
    await shows(list, "a:1001 b:1001");
    await gateway.kill();
    const other = new Gateway(t, newStore());
    await other.start();
    for (const name of ["b", "c"]) await other.ask(put, { input: { name, spec: spec(1002) } });
    await other.stop();
    gateway.store = other.store;
    await gateway.start();
    await shows(list, "b:1002 c:1002");
    assert.ok(types.includes(snapshot ? "RESET" : "POSITION_EXPIRED"), types.join());
    const whole = list.views.slice(list.views.findIndex((v) => v.status === "live")).map((v) => v.text);
    assert.deepEqual([...new Set(whole)], ["a:1001 b:1001", "b:1002 c:1002"]);
  });
}

test("a list outlives the catalogues that it began with: CATALOGUE_CHANGED, and it goes on", async (t) => {
  const kinds = await workFolder("live-kinds");
  await cp(fileURLToPath(new URL("../../schema/v1", import.meta.url)), kinds, { recursive: true });
  const gateway = await new Gateway(t, newStore(), "--catalogue", kinds).start();
  const write = (mtu) => gateway.ask(put, { input: { name: "a", spec: spec(mtu) } });
  await write(1001);
  const codes = [];
  const list = open(t, noting(codes, fetchTransport({ url: `${gateway.base}/${api}/graphql` })));
  await shows(list, "a:1001");
  for (const n of [2, 3, 4]) {
    const file = `${kinds}/network.graphqls`;
    const field = "  shared: Boolean @filterable\n";
    const sdl = await readFile(file, "utf8");
    assert.ok(sdl.includes(field));
    await writeFile(file, sdl.replace(field, `${field}  "Another field."\n  another${n}: Boolean\n`));
    await gateway.reload();
    await write(1000 + n);
    await until(list, `a:${1000 + n}`, () => text(list) === `a:${1000 + n}`);
  }
  assert.ok(codes.includes("CATALOGUE_CHANGED"), codes.join());
});

test("a list that is too slow is LAGGED, resumes at the cursor and misses nothing", async (t) => {
  const namespace = newNamespace("live");
  const way = await Way.to(t, base);
  const codes = [];
  const list = open(t, noting(codes, transports["graphql-ws"](t, way.base)), { variables: { namespace } });
  await until(list, "live", ({ status }) => status === "live");
  way.hold();
  const large = [{ key: "large", value: "x".repeat(200 * 1024) }];
  for (let mtu = 1001; mtu <= 1120; mtu++) await data(put, { input: { namespace, name: `n${mtu % 10}`, annotations: large, spec: spec(mtu) } });
  way.goOn();
  await shows(list, Array.from({ length: 10 }, (_, n) => `n${n}:${n === 0 ? 1120 : 1110 + n}`).join(" "));
  assert.ok(codes.includes("LAGGED"), codes.join());
});

test("connections that are cut again and again lose no change and bring none back", async (t) => {
  const namespace = newNamespace("live");
  const way = await Way.to(t, base);
  const list = open(t, fetchTransport({ url: `${way.base}/${api}/graphql` }), { variables: { namespace }, pauses: { least: 1, most: 20 } });
  await until(list, "live", ({ status }) => status === "live");
  for (let mtu = 1001; mtu <= 1200; mtu++) {
    await setMTU(namespace, `n${(mtu - 1000) % 7}`, mtu);
    if (mtu % 10 === 0) way.cut();
  }
  await shows(list, "n0:1196 n1:1197 n2:1198 n3:1199 n4:1200 n5:1194 n6:1195");
  assert.ok(way.made > 10, `${way.made} connections`);
  const last = {};
  for (const { resources } of list.views) {
    for (const { metadata: { name }, spec: { resource: { mtu } } } of resources) {
      assert.ok(mtu >= (last[name] ?? 0), `${name} went back from ${last[name]} to ${mtu}`);
      last[name] = mtu;
    }
  }
});

test("a page that is loaded again goes on where it was, without reading the list", async (t) => {
  const namespace = newNamespace("live");
  await create(namespace, "a", "b");
  let saved = null;
  const storage = { load: () => JSON.parse(saved), save: (s) => void (saved = JSON.stringify(s)) };
  const transport = fetchTransport({ url: `${base}/${api}/graphql` });
  const before = open(t, transport, { variables: { namespace }, storage });
  await shows(before, "a:1500 b:1500");
  await setMTU(namespace, "a", 1400);
  await shows(before, "a:1400 b:1500");
  before.close();
  await before.ended;
  await setMTU(namespace, "b", 1300);
  await data(remove, { input: { namespace, name: "a" } });
  const heard = [];
  const list = open(t, { ...transport, query: () => assert.fail("the list was read") }, { variables: { namespace }, storage, onChange: (c) => heard.push(`${c.type} ${c.network.metadata.name}`) });
  await shows(list, "b:1300");
  assert.equal(list.views[0].text, "a:1400 b:1500");
  assert.deepEqual(heard, ["MODIFIED b", "DELETED a"]);
});

const update = `mutation ($input: UpdateNetworkInput!) { updateNetwork(input: $input) { network { ${fields} } } }`;

test("an update shows at once, stays, and is taken back after a conflict", async (t) => {
  const namespace = newNamespace("live");
  const [network] = await create(namespace, "a");
  const transport = fetchTransport({ url: `${base}/${api}/graphql` });
  const list = open(t, transport, { variables: { namespace } });
  await shows(list, "a:1500");
  const change = (mtu) => ({
    change: (resource) => ({ ...resource, spec: { resource: { mtu } } }),
    send: async (resource, expectedRevision) => unwrap(await transport.query(update, { input: { namespace, name: "a", expectedRevision, spec: spec(mtu) } }, {})).updateNetwork.network,
  });
  await list.update(network.id, change(1400));
  await shows(list, "a:1400");
  assert.ok(!list.views.slice(list.views.findIndex((v) => v.text === "a:1400")).some((v) => v.text !== "a:1400"));

  const refused = change(1200);
  const { send } = refused;
  refused.send = async (...args) => (await setMTU(namespace, "a", 1300), send(...args));
  await assert.rejects(list.update(network.id, refused), { code: "CONFLICT" });
  await shows(list, "a:1300");
});

test("saveMerged joins changes of other fields and asks about the same field", async () => {
  const namespace = newNamespace("live");
  const [{ metadata: { revision } }] = await create(namespace, "a");
  const { query } = fetchTransport({ url: `${base}/${api}/graphql` });
  const read = async () => {
    const { network } = unwrap(await query(`query ($namespace: String!) { network(namespace: $namespace, name: "a") { metadata { revision } specJSON } }`, { namespace }, {}));
    return { value: network.specJSON, revision: network.metadata.revision };
  };
  const write = async (value, expectedRevision) => unwrap(await query(`mutation ($input: UpdateNetworkInput!) { updateNetwork(input: $input) { network { specJSON } } }`, { input: { namespace, name: "a", expectedRevision, spec: value } }, {})).updateNetwork.network.specJSON;
  const began = (await read()).value;
  await write({ ...began, resource: { ...began.resource, mtu: 1400 } }, revision);
  const joined = await saveMerged({ base: began, mine: { ...began, resource: { ...began.resource, description: "mine" } }, revision, read, write });
  assert.deepEqual([joined.resource.mtu, joined.resource.description], [1400, "mine"]);

  const mine = { ...began, resource: { ...began.resource, mtu: 1300 } };
  await assert.rejects(saveMerged({ base: began, mine, revision, read, write }), (error) => error instanceof ConflictError && error.conflicts[0].path.join(".") === "resource.mtu");
  const theirs = await saveMerged({ base: began, mine, revision, read, write, resolve: (m) => resolve(m, () => "theirs") });
  assert.equal(theirs.resource.mtu, 1400);
  const settled = await saveMerged({ base: began, mine, revision, read, write, resolve: (m) => resolve(m, () => "mine") });
  assert.deepEqual([settled.resource.mtu, settled.resource.description], [1300, "mine"]);
});
