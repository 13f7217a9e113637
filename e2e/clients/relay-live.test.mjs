// The live list with Relay: its own mock environment says what the adapter does, a gateway that it works.
import assert from "node:assert/strict";
import test, { before } from "node:test";
import { fileURLToPath } from "node:url";
import { createClient } from "graphql-ws";
import runtime from "relay-runtime";
import { createMockEnvironment, MockPayloadGenerator } from "relay-test-utils";
import { liveList } from "@sluicegw/client";
import { relayConnection, relayTransport } from "@sluicegw/client/relay";
import WebSocket from "ws";
import { compile } from "./compile.mjs";
import { ask, create, data, newNamespace, setMTU, socketEndpoint, within } from "./gateway.mjs";

let artifact;
before(async () => ({ artifact } = await compile("relay-live", fileURLToPath(new URL("./relay", import.meta.url)))));

const variables = { namespace: "default" };
const open = (t, environment, options = {}) => {
  const list = liveList({ transport: relayTransport(environment, runtime), list: artifact("pagesLiveQuery"), changes: artifact("pagesLiveChangesSubscription"), variables, pauses: { least: 5, most: 50 }, ...options });
  t.after(() => (list.close(), list.ended));
  return list;
};

// connection shows the connection of the query `pages`, as a component with its fragment does.
function connection(environment, variables) {
  const operation = runtime.createOperationDescriptor(artifact("pagesQuery"), variables);
  const retained = environment.retain(operation);
  const fragment = artifact("pages_query");
  return {
    id: runtime.ConnectionHandler.getConnectionID("client:root", "pages_networks", { namespace: variables.namespace }),
    read: () => environment.lookup(runtime.getSingularSelector(fragment, environment.lookup(operation.fragment).data)).data.networks,
    names() { return this.read().edges.map((e) => e.node.metadata.name).join(" "); },
    retained,
    operation,
  };
}

const until = (list, what, holds) => within(new Promise((resolve) => {
  const look = () => holds() && resolve();
  list.subscribe(look);
  look();
}), what);

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("MockEnvironment: the list asks by the environment, and edits the connection as changes come", async (t) => {
  const environment = createMockEnvironment();
  const shown = connection(environment, { ...variables, first: 10 });
  const network = (name, revision = "1") => ({ id: name, metadata: { namespace: "default", name, revision }, spec: { resource: { mtu: 1500 } } });
  const page = (...names) => ({ edges: names.map((name) => ({ cursor: name, node: network(name) })), pageInfo: { hasNextPage: false, endCursor: null }, changeCursor: "c0" });

  environment.execute({ operation: shown.operation }).subscribe({});
  environment.mock.resolve(shown.operation, MockPayloadGenerator.generate(shown.operation, { NetworkConnection: () => page("a", "c") }));
  assert.equal(shown.names(), "a c");

  const list = open(t, environment);
  t.after(relayConnection(list, { environment, connectionID: shown.id, edgeType: "NetworkEdge" }));
  await turn();
  const query = environment.mock.getMostRecentOperation();
  assert.equal(query.request.node.operation.name, "pagesLiveQuery");
  environment.mock.resolve(query, MockPayloadGenerator.generate(query, { NetworkConnection: () => page("a", "c") }));
  await turn();
  const stream = environment.mock.getMostRecentOperation();
  assert.equal(stream.request.node.operation.name, "pagesLiveChangesSubscription");
  assert.equal(stream.request.variables.after, "c0");
  const tell = (type, cursor, network = null) => environment.mock.nextValue(stream, MockPayloadGenerator.generate(stream, { NetworkChange: () => ({ type, cursor, network }) }));
  tell("IN_SYNC", "c1");
  tell("ADDED", "c2", network("b", "2"));
  await turn();
  assert.equal(shown.names(), "a b c");
  assert.deepEqual(shown.read().edges.map((e) => e.__typename ?? "NetworkEdge"), Array(3).fill("NetworkEdge"));
  tell("DELETED", "c3", network("a", "3"));
  await turn();
  assert.equal(shown.names(), "b c");
  environment.mock.rejectMostRecentOperation(new Error("cut"));
  const again = () => environment.mock.getAllOperations().some((o) => o.request.variables.after === "c3");
  await within((async () => { while (!again()) await turn(); })(), "the second subscription");
  assert.equal(shown.names(), "b c");
});

test("MockEnvironment: what an older answer has overwritten is written again, without another request", async (t) => {
  const environment = createMockEnvironment();
  const shown = connection(environment, { ...variables, first: 10 });
  const network = (name, revision, mtu) => ({ id: name, metadata: { namespace: "default", name, revision }, spec: { resource: { mtu } } });
  const page = (revision, mtu) => () => ({ edges: ["a", "b"].map((name) => ({ cursor: name, node: network(name, revision, mtu) })), pageInfo: { hasNextPage: false, endCursor: null }, changeCursor: "c0" });
  const answer = (operation, revision, mtu) => environment.mock.resolve(operation, MockPayloadGenerator.generate(operation, { NetworkConnection: page(revision, mtu) }));
  const mtus = () => shown.read().edges.map(({ node }) => environment.lookup(runtime.getSingularSelector(artifact("pages_network"), node)).data.spec.resource.mtu);

  environment.execute({ operation: shown.operation }).subscribe({});
  answer(shown.operation, "7-1", 1500);
  const list = open(t, environment);
  t.after(relayConnection(list, { environment, connectionID: shown.id, edgeType: "NetworkEdge" }));
  await turn();
  answer(environment.mock.getMostRecentOperation(), "7-9", 1400);
  await turn();
  const stream = environment.mock.getMostRecentOperation();
  const tell = (type, cursor, network = null) => environment.mock.nextValue(stream, MockPayloadGenerator.generate(stream, { NetworkChange: () => ({ type, cursor, network }) }));
  tell("IN_SYNC", "c1");
  tell("MODIFIED", "c2", network("b", "7-10", 1300));
  await turn();
  assert.deepEqual(mtus(), [1400, 1300]);

  environment.execute({ operation: shown.operation }).subscribe({});
  answer(shown.operation, "7-1", 1500);
  assert.deepEqual(mtus(), [1500, 1500]);
  await turn();
  assert.deepEqual(mtus(), [1400, 1300], "one row as it was read, one as the stream told it");
  environment.execute({ operation: shown.operation }).subscribe({});
  answer(shown.operation, "7-11", 1200);
  await turn();
  assert.deepEqual(mtus(), [1200, 1200], "what is newer stays");
  assert.deepEqual(environment.mock.getAllOperations().map(({ request }) => request.node.operation.name), ["pagesLiveChangesSubscription"]);
});

test("a gateway: a component with a connection shows what others write, and its fragments are up to date", async (t) => {
  const namespace = newNamespace("relay-live");
  await create(namespace, "a", "c");
  const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, retryAttempts: 0 });
  t.after(() => socket.dispose());
  const environment = new runtime.Environment({
    store: new runtime.Store(new runtime.RecordSource()),
    network: runtime.Network.create(
      (request, variables) => ask(request.text, variables),
      (request, variables) => runtime.Observable.create((sink) => socket.subscribe({ operationName: request.name, query: request.text, variables }, sink)),
    ),
  });
  const shown = connection(environment, { namespace, first: 10 });
  await runtime.fetchQuery(environment, artifact("pagesQuery"), { namespace, first: 10 }).toPromise();
  const list = open(t, environment, { variables: { namespace } });
  const stop = relayConnection(list, { environment, connectionID: shown.id, edgeType: "NetworkEdge" });
  await until(list, "live", () => list.getSnapshot().status === "live");
  await create(namespace, "b");
  await until(list, "b", () => shown.names() === "a b c");
  await setMTU(namespace, "b", 1400);
  const row = () => environment.lookup(runtime.getSingularSelector(artifact("pages_network"), shown.read().edges[1].node)).data;
  await until(list, "1400", () => row().spec.resource.mtu === 1400);
  await data(`mutation ($input: DeleteNetworkInput!) { deleteNetwork(input: $input) { state } }`, { input: { namespace, name: "a" } });
  await until(list, "the deletion", () => shown.names() === "b c");
  stop();
  await create(namespace, "z");
  await until(list, "z", () => list.getSnapshot().resources.length === 3);
  assert.equal(shown.names(), "b c", "the connection is left alone when it is ended");
});

test("a gateway: a query that is refused ends the list with the gateway's code", async (t) => {
  const environment = new runtime.Environment({
    store: new runtime.Store(new runtime.RecordSource()),
    network: runtime.Network.create(() => ({ data: null, errors: [{ message: "no", extensions: { code: "FORBIDDEN" } }] })),
  });
  const list = open(t, environment);
  await within(list.ended, "the end");
  assert.equal(list.getSnapshot().error.code, "FORBIDDEN");
});
