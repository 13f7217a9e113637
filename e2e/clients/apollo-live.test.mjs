// The live list with Apollo: its own mock links say what the adapter does, a gateway that it works.
import assert from "node:assert/strict";
import test from "node:test";
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { MockLink, MockSubscriptionLink } from "@apollo/client/testing";
import { relayStylePagination } from "@apollo/client/utilities";
import { OperationTypeNode } from "graphql";
import { createClient } from "graphql-ws";
import { liveList } from "@sluicegw/client";
import { apolloConnection, apolloTransport } from "@sluicegw/client/apollo";
import WebSocket from "ws";
import { create, data, endpoint, newNamespace, setMTU, socketEndpoint, within } from "./gateway.mjs";

const row = `fragment Row on Network { id metadata { namespace name revision } spec { resource { mtu } } }`;
const documents = {
  list: gql`${row} query Live($namespace: String, $first: Int, $after: String) {
    networks(namespace: $namespace, first: $first, after: $after) { changeCursor edges { node { ...Row } } pageInfo { hasNextPage endCursor } }
  }`,
  changes: gql`${row} subscription Changes($namespace: String, $after: String) {
    networkChanges(namespace: $namespace, after: $after) { type cursor network { ...Row } }
  }`,
};
const shown = gql`${row} query Shown($namespace: String) {
  networks(namespace: $namespace) { edges { cursor node { ...Row } } pageInfo { hasNextPage endCursor } }
}`;

const cache = () => new InMemoryCache({ typePolicies: { Query: { fields: { networks: relayStylePagination(["namespace"]) } } } });
const typed = (name, revision = "1") => ({ __typename: "Network", id: name, metadata: { __typename: "Metadata", namespace: "default", name, revision }, spec: { __typename: "NetworkSpec", resource: { __typename: "NetworkResourceSpec", mtu: 1500 } } });
const edges = (...names) => names.map((name) => ({ __typename: "NetworkEdge", cursor: name, node: typed(name) }));
const pageInfo = { __typename: "PageInfo", hasNextPage: false, endCursor: null };

function follow(t, client, variables) {
  const list = liveList({ transport: apolloTransport(client), ...documents, variables, pauses: { least: 5, most: 50 } });
  t.after(() => (list.close(), list.ended));
  const query = client.watchQuery({ query: shown, variables });
  const views = [];
  let heard = () => {};
  const subscription = query.subscribe(({ data }) => {
    if (data?.networks) views.push(data.networks.edges.map((e) => `${e.node.metadata.name}:${e.node.spec.resource.mtu}`).join(" "));
    heard();
  });
  t.after(() => subscription.unsubscribe());
  const shows = (text) => within(new Promise((resolve) => { heard = () => views.at(-1) === text && resolve(); heard(); }), text)
    .catch((error) => { throw new Error(`${error.message}; shown: ${views.join(" | ")}; ${list.getSnapshot().error}`); });
  return { list, shows, views, stop: () => apolloConnection(list, { client, query: shown, variables }) };
}

test("MockLink: the list asks by the client, and a watched query shows changes as they come", async (t) => {
  const variables = { namespace: "default" };
  const queries = new MockLink([
    { request: { query: documents.list, variables: { ...variables, first: 100, after: null } }, result: { data: { networks: { __typename: "NetworkConnection", changeCursor: "c0", edges: edges("a", "c"), pageInfo } } } },
    { request: { query: shown, variables }, result: { data: { networks: { __typename: "NetworkConnection", edges: edges("a", "c"), pageInfo } } } },
  ], { defaultOptions: { delay: 0 } });
  const streams = new MockSubscriptionLink();
  const operations = [];
  streams.onSetup(() => operations.push(streams.operation.variables));
  const client = new ApolloClient({ cache: cache(), link: ApolloLink.split(({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION, streams, queries) });
  t.after(() => client.stop());
  const { list, shows, stop } = follow(t, client, variables);
  const tell = (type, cursor, network = null) => streams.simulateResult({ result: { data: { networkChanges: { __typename: "NetworkChange", type, cursor, network } } } });
  await shows("a:1500 c:1500");
  await within((async () => { while (operations.length === 0) await new Promise(setImmediate); })(), "the subscription");
  assert.deepEqual(operations, [{ namespace: "default", after: "c0" }]);
  t.after(stop());
  tell("IN_SYNC", "c1");
  tell("ADDED", "c2", typed("b", "2"));
  await shows("a:1500 b:1500 c:1500");
  tell("DELETED", "c3", typed("a", "3"));
  await shows("b:1500 c:1500");
  streams.simulateResult({ error: new Error("cut") });
  await within((async () => { while (operations.length === 1) await new Promise(setImmediate); })(), "the second subscription");
  assert.equal(operations[1].after, "c3");
  assert.equal(list.getSnapshot().resources.length, 2);
});

test("a gateway: a watched query shows what others write", async (t) => {
  const namespace = newNamespace("apollo-live");
  await create(namespace, "a", "c");
  const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, retryAttempts: 0 });
  const client = new ApolloClient({
    cache: cache(),
    link: ApolloLink.split(({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION, new GraphQLWsLink(socket), new HttpLink({ uri: endpoint })),
  });
  t.after(() => (client.stop(), socket.dispose()));
  const { shows, stop } = follow(t, client, { namespace });
  await shows("a:1500 c:1500");
  t.after(stop());
  await create(namespace, "b");
  await shows("a:1500 b:1500 c:1500");
  await setMTU(namespace, "a", 1400);
  await shows("a:1400 b:1500 c:1500");
  await data(`mutation ($input: DeleteNetworkInput!) { deleteNetwork(input: $input) { state } }`, { input: { namespace, name: "c" } });
  await shows("a:1400 b:1500");
});

test("a gateway: a document that is refused ends the list with the gateway's code", async (t) => {
  const client = new ApolloClient({ cache: cache(), link: new HttpLink({ uri: endpoint }) });
  t.after(() => client.stop());
  const list = liveList({ transport: apolloTransport(client), list: gql`query Wrong { nothing { changeCursor } }`, changes: documents.changes });
  await within(list.ended, "the end");
  assert.equal(list.getSnapshot().error.code, "GRAPHQL_VALIDATION_FAILED");
});
