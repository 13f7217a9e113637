import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import test, { before } from "node:test";
import { fileURLToPath } from "node:url";
import { createClient } from "graphql-ws";
import relay from "relay-runtime";
import WebSocket from "ws";
import { compile } from "./compile.mjs";
import { ask, create, dryRuns, endpoint, newNamespace, setMTU, socketEndpoint, spec, tool, within } from "./gateway.mjs";

let compiled; // name of an artifact -> the artifact
let persisted; // what the compiler wrote: hash -> text

before(async () => {
  const { folder, artifact } = await compile("relay", fileURLToPath(new URL("./relay", import.meta.url)));
  compiled = artifact;

  // Once more, as a build for trusted documents does it.
  await mkdir(`${folder}/persisted`);
  await writeFile(`${folder}/persisted.json`, "{}");
  const config = JSON.parse(await readFile(`${folder}/relay.config.json`));
  await writeFile(`${folder}/relay.config.json`, JSON.stringify({ ...config, artifactDirectory: "./persisted", persistConfig: { file: "./persisted.json", algorithm: "SHA256" } }));
  await tool(folder, "relay-compiler", "relay.config.json");
  persisted = JSON.parse(await readFile(`${folder}/persisted.json`));
});

function environment(t) {
  const client = createClient({ url: socketEndpoint, webSocketImpl: WebSocket });
  t.after(() => client.dispose());
  return new relay.Environment({
    store: new relay.Store(new relay.RecordSource()),
    network: relay.Network.create(
      (request, variables) => ask(request.text, variables),
      (request, variables) => relay.Observable.create((sink) => client.subscribe({ operationName: request.name, query: request.text, variables }, sink)),
    ),
  });
}

// List is what usePaginationFragment does, without React.
class List {
  constructor(environment, variables) {
    this.environment = environment;
    this.operation = relay.createOperationDescriptor(compiled("pagesQuery"), variables);
    this.fragment = compiled("pages_query");
    environment.retain(this.operation);
  }

  load() {
    return within(relay.fetchQuery(this.environment, compiled("pagesQuery"), this.operation.request.variables).toPromise(), "the query");
  }

  selector() {
    const { data } = this.environment.lookup(this.operation.fragment);
    return relay.getSingularSelector(this.fragment, data);
  }

  connection() {
    return this.environment.lookup(this.selector()).data.networks;
  }

  names() {
    return this.connection().edges.map((e) => e.node.metadata.name);
  }

  async more(direction, count) {
    const { connectionPathInFragmentData, paginationRequest, paginationMetadata } = relay.getPaginationMetadata(this.fragment, "List");
    const { startCursor, endCursor } = this.connection().pageInfo;
    const { variables, owner } = this.selector();
    const page = relay.getPaginationVariables(direction, count, direction === "forward" ? endCursor : startCursor, { ...owner.variables, ...variables }, {}, paginationMetadata);
    assert.deepEqual(connectionPathInFragmentData, ["networks"]);
    await within(relay.fetchQuery(this.environment, paginationRequest, page).toPromise(), "the page");
  }
}

const letters = ["a", "b", "c", "d", "e"];

test("loadNext adds pages to the connection in the store", async (t) => {
  const namespace = newNamespace("relay");
  await create(namespace, ...letters);
  const list = new List(environment(t), { namespace, first: 2 });
  await list.load();
  assert.deepEqual(list.names(), ["a", "b"]);
  await list.more("forward", 2);
  assert.deepEqual(list.names(), ["a", "b", "c", "d"]);
  assert.equal(list.connection().pageInfo.hasNextPage, true);
  await list.more("forward", 2);
  assert.deepEqual(list.names(), letters);
  assert.equal(list.connection().pageInfo.hasNextPage, false);
});

test("loadPrevious puts pages before those in the store", async (t) => {
  const namespace = newNamespace("relay");
  await create(namespace, ...letters);
  const list = new List(environment(t), { namespace, last: 2 });
  await list.load();
  assert.deepEqual(list.names(), ["d", "e"]);
  await list.more("backward", 2);
  assert.deepEqual(list.names(), ["b", "c", "d", "e"]);
  assert.equal(list.connection().pageInfo.hasPreviousPage, true);
  await list.more("backward", 2);
  assert.deepEqual(list.names(), letters);
  assert.equal(list.connection().pageInfo.hasPreviousPage, false);
});

// shown is what a component with the fragment pages_network shows.
function shown(list, name) {
  const { node } = list.connection().edges.find((e) => e.node.metadata.name === name);
  return list.environment.lookup(relay.getSingularSelector(compiled("pages_network"), node)).data;
}

test("a fragment is fetched again by node", async (t) => {
  const namespace = newNamespace("relay");
  const [network] = await create(namespace, "a");
  const list = new List(environment(t), { namespace, first: 5 });
  await list.load();
  assert.equal(shown(list, "a").spec.resource.mtu, 1500);
  await setMTU(namespace, "a", 1400);
  await within(relay.fetchQuery(list.environment, compiled("pagesNetworkQuery"), { id: network.id }).toPromise(), "the network");
  assert.equal(shown(list, "a").spec.resource.mtu, 1400);
});

test("node answers null for an id that names nothing", async () => {
  const { request } = relay.createOperationDescriptor(compiled("pagesNetworkQuery"), { id: "rubbish" });
  const response = await ask(request.node.params.text, { id: "rubbish" });
  assert.ok(response.data?.node === null, JSON.stringify(response));
});

test("a subscription updates the store", async (t) => {
  const namespace = newNamespace("relay");
  await create(namespace, "a");
  const list = new List(environment(t), { namespace, first: 5 });
  await list.load();
  const types = [];
  let heard = () => {};
  const subscription = relay.requestSubscription(list.environment, {
    subscription: compiled("pagesChangesSubscription"),
    variables: { namespace },
    onNext: (response) => { types.push(response.networkChanges.type); heard(); },
    onError: (error) => { throw error; },
  });
  t.after(() => subscription.dispose());
  const has = (type) => within(new Promise((resolve) => { heard = () => types.includes(type) && resolve(); heard(); }), type);
  await has("IN_SYNC");
  const fragment = relay.getSingularSelector(compiled("pages_network"), list.connection().edges[0].node);
  const updates = [];
  const watching = list.environment.subscribe(list.environment.lookup(fragment), (snapshot) => updates.push(snapshot.data.spec.resource.mtu));
  t.after(() => watching.dispose());
  await setMTU(namespace, "a", 1300);
  await has("MODIFIED");
  assert.equal(shown(list, "a").spec.resource.mtu, 1300);
  assert.deepEqual(updates, [1300]);
});

function commit(environment, mutation, variables) {
  return within(new Promise((resolve, reject) => {
    relay.commitMutation(environment, { mutation: compiled(mutation), variables, onCompleted: (response, errors) => resolve({ response, errors }), onError: reject });
  }), mutation);
}

test("mutations edit the connection, and errors reach onCompleted or onError", async (t) => {
  const namespace = newNamespace("relay");
  await create(namespace, "a");
  const list = new List(environment(t), { namespace, first: 5 });
  await list.load();
  const connections = [relay.ConnectionHandler.getConnectionID("client:root", "pages_networks", { namespace })];
  await commit(list.environment, "pagesCreateMutation", { input: { namespace, name: "z", spec: spec() }, connections });
  assert.deepEqual(list.names(), ["a", "z"]);
  await commit(list.environment, "pagesDeleteMutation", { input: { namespace, name: "a" }, connections });
  assert.deepEqual(list.names(), ["z"]);
  const { errors } = await commit(list.environment, "pagesCreateMutation", { input: { namespace, name: "z", spec: spec() }, connections });
  assert.equal(errors[0].extensions.code, "ALREADY_EXISTS");
});

test("a dry run of any verb leaves the store as it was", async (t) => {
  const namespace = newNamespace("relay");
  const [made] = await create(namespace, "a");
  const list = new List(environment(t), { namespace, first: 5 });
  await list.load();
  const page = () => JSON.stringify([list.connection(), shown(list, "a")]);
  const record = () => JSON.stringify(list.environment.getStore().getSource().toJSON()[made.id]);
  const before = { page: page(), record: record() };
  const rendered = [];
  const fragment = relay.getSingularSelector(compiled("pages_network"), list.connection().edges[0].node);
  for (const selector of [fragment, list.selector()]) {
    const watching = list.environment.subscribe(list.environment.lookup(selector), (snapshot) => rendered.push(snapshot.data));
    t.after(() => watching.dispose());
  }
  for (const { verb, input } of dryRuns(namespace, made)) {
    const name = verb[0].toUpperCase() + verb.slice(1).replace("Network", "");
    const { response, errors } = await commit(list.environment, `pagesDry${name}Mutation`, { input });
    assert.ok(!errors, JSON.stringify(errors));
    assert.equal(response.written.network, null, verb);
    assert.equal(response.written.preview.kind, "Network", verb);
    assert.equal(page(), before.page, verb);
    assert.equal(record(), before.record, verb);
  }
  assert.deepEqual(rendered, []);
});

test("the compiler's hashes are those that the gateway knows documents by", async () => {
  const [[hash, query]] = Object.entries(persisted).filter(([, text]) => text.startsWith("query pagesQuery"));
  const post = (body) => fetch(endpoint, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }).then((r) => r.json());
  const variables = { namespace: newNamespace("relay"), first: 1 };
  await post({ query, variables, extensions: { persistedQuery: { version: 1, sha256Hash: hash } } });
  const again = await post({ documentId: `sha256:${hash}`, variables });
  assert.deepEqual(again.data?.networks.edges, [], JSON.stringify(again));
});
