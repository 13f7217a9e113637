import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { CombinedGraphQLErrors } from "@apollo/client/errors";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { OperationTypeNode } from "graphql";
import { relayStylePagination } from "@apollo/client/utilities";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { create, changes, dryRuns, endpoint, newNamespace, setMTU, socketEndpoint, within } from "./gateway.mjs";

function apollo(t, http = new HttpLink({ uri: endpoint })) {
  const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket });
  const client = new ApolloClient({
    link: ApolloLink.split(({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION, new GraphQLWsLink(socket), http),
    cache: new InMemoryCache({ typePolicies: { Query: { fields: { networks: relayStylePagination(["namespace"]) } } } }),
  });
  t.after(() => {
    client.stop();
    return socket.dispose();
  });
  return client;
}

const page = gql`
  query Page($namespace: String!, $first: Int, $after: String) {
    networks(namespace: $namespace, first: $first, after: $after) {
      edges { cursor node { id metadata { name } } }
      pageInfo { hasNextPage endCursor }
    }
  }
`;

test("relayStylePagination joins pages", async (t) => {
  const namespace = newNamespace("apollo");
  await create(namespace, "a", "b", "c", "d", "e");
  const client = apollo(t);
  const query = client.watchQuery({ query: page, variables: { namespace, first: 2 } });
  const seen = [];
  let heard = () => {};
  const subscription = query.subscribe(({ data, loading }) => {
    if (!loading && data) seen.push(data.networks);
    heard();
  });
  t.after(() => subscription.unsubscribe());
  const length = (n) => within(new Promise((resolve) => { heard = () => seen.at(-1)?.edges.length === n && resolve(seen.at(-1)); heard(); }), `${n} edges`);
  for (const n of [2, 4, 5]) {
    const networks = await length(n);
    assert.equal(networks.pageInfo.hasNextPage, n < 5);
    if (n < 5) await query.fetchMore({ variables: { after: networks.pageInfo.endCursor } });
  }
  assert.deepEqual(seen.at(-1).edges.map((e) => e.node.metadata.name), ["a", "b", "c", "d", "e"]);
});

test("a conflict is a CombinedGraphQLErrors with the current revision", async (t) => {
  const namespace = newNamespace("apollo");
  const [network] = await create(namespace, "a");
  await setMTU(namespace, "a", 1400);
  const patch = apollo(t).mutate({
    mutation: gql`mutation Patch($input: PatchNetworkInput!) { patchNetwork(input: $input) { network { id } } }`,
    variables: { input: { namespace, name: "a", expectedRevision: network.metadata.revision, spec: { resource: { mtu: 1300 } } } },
  });
  await assert.rejects(within(patch, "the mutation"), (error) => {
    assert.ok(CombinedGraphQLErrors.is(error));
    const { extensions } = error.errors[0];
    assert.equal(extensions.code, "CONFLICT");
    assert.ok(extensions.currentRevision && extensions.currentRevision !== network.metadata.revision);
    return true;
  });
});

test("a subscription over GraphQLWsLink updates what queries show", async (t) => {
  const namespace = newNamespace("apollo");
  await create(namespace, "a");
  const client = apollo(t);
  const query = gql`query One($namespace: String!) { network(namespace: $namespace, name: "a") { id spec { resource { mtu } } } }`;
  await client.query({ query, variables: { namespace } });
  const shown = () => client.readQuery({ query, variables: { namespace } }).network.spec.resource.mtu;
  assert.equal(shown(), 1500);
  const types = [];
  let heard = () => {};
  const subscription = client.subscribe({ query: gql(changes), variables: { namespace } }).subscribe(({ data, error }) => {
    types.push(error ? error.message : data.networkChanges.type);
    heard();
  });
  t.after(() => subscription.unsubscribe());
  const has = (type) => within(new Promise((resolve) => { heard = () => types.includes(type) && resolve(); heard(); }), type);
  await has("IN_SYNC");
  await setMTU(namespace, "a", 1300);
  await has("MODIFIED");
  assert.equal(shown(), 1300);
});

for (const useGETForHashedQueries of [false, true]) {
  test(`automatic persisted queries: the second request has only the hash, by ${useGETForHashedQueries ? "GET" : "POST"}`, async (t) => {
    const requests = [];
    const watched = (url, init) => {
      requests.push(`${init.method} ${/query=|"query"/.test(`${url}${init.body ?? ""}`) ? "text" : "hash"}`);
      return fetch(url, init);
    };
    const sha256 = (text) => createHash("sha256").update(text).digest("hex");
    const client = apollo(t, new PersistedQueryLink({ sha256, useGETForHashedQueries }).concat(new HttpLink({ uri: endpoint, fetch: watched })));
    const namespace = newNamespace("apollo");
    const query = gql(`query APQ${useGETForHashedQueries} { networks(namespace: "${namespace}") { totalCount } }`);
    for (let i = 0; i < 2; i++) {
      const { data } = await client.query({ query, fetchPolicy: "network-only" });
      assert.equal(data.networks.totalCount, 0);
    }
    const hash = useGETForHashedQueries ? "GET hash" : "POST hash";
    assert.deepEqual(requests, [hash, "POST text", hash]);
  });
}

// A page shows what the cache has. A dry run has no resource in its answer, so with the
// default cache the page shows the same before and after it.
test("a dry run of any verb leaves the default cache as it was", async (t) => {
  const namespace = newNamespace("apollo");
  const [network] = await create(namespace, "a");
  const client = new ApolloClient({ link: new HttpLink({ uri: endpoint }), cache: new InMemoryCache() });
  t.after(() => client.stop());
  const query = gql`query Shown($namespace: String!) { networks(namespace: $namespace) { nodes { id metadata { name revision generation } spec { resource { mtu } } } totalCount } }`;
  const pages = [];
  const subscription = client.watchQuery({ query, variables: { namespace } }).subscribe(({ data, loading }) => { if (!loading && data) pages.push(JSON.stringify(data)); });
  t.after(() => subscription.unsubscribe());
  await client.query({ query, variables: { namespace } });
  const before = { store: JSON.stringify(client.cache.extract().ROOT_QUERY), record: client.cache.extract()[`Network:${network.id}`] };
  assert.ok(before.record);
  const fields = "dryRun network { id metadata { name revision generation } spec { resource { mtu } } } preview { kind namespace name uid generation specJSON statusJSON manifest }";
  for (const { verb, input } of dryRuns(namespace, network)) {
    const Verb = verb[0].toUpperCase() + verb.slice(1);
    const { data } = await within(client.mutate({ mutation: gql(`mutation Dry($input: ${Verb}Input!) { written: ${verb}(input: $input) { ${fields} } }`), variables: { input } }), verb);
    assert.equal(data.written.network, null, verb);
    assert.equal(data.written.preview.kind, "Network", verb);
    const now = client.cache.extract();
    assert.deepEqual(now[`Network:${network.id}`], before.record, verb);
    assert.equal(JSON.stringify(now.ROOT_QUERY), before.store, verb);
    assert.deepEqual(Object.keys(now).filter((key) => key.includes("Preview")), [], verb);
  }
  assert.equal(new Set(pages).size, 1);
});
