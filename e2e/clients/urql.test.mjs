import assert from "node:assert/strict";
import test from "node:test";
import { Client, fetchExchange, gql } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { persistedExchange } from "@urql/exchange-persisted";
import { getIntrospectionQuery } from "graphql";
import { changes, create, data, endpoint, newNamespace, setMTU, within } from "./gateway.mjs";

async function urql(options = {}, ...before) {
  const schema = await data(getIntrospectionQuery());
  return new Client({
    url: endpoint,
    exchanges: [
      cacheExchange({ schema, resolvers: { Query: { networks: relayPagination() } }, keys: keysOf(schema) }),
      ...before,
      fetchExchange,
    ],
    fetchSubscriptions: true,
    ...options,
  });
}

// keysOf tells graphcache that types without an id are parts of what holds them.
function keysOf(schema) {
  const parts = schema.__schema.types.filter((t) => t.kind === "OBJECT" && !t.name.startsWith("__") && !t.fields.some((f) => f.name === "id" && f.type.kind === "NON_NULL"));
  return Object.fromEntries(parts.map((t) => [t.name, () => null]));
}

const page = gql`
  query Page($namespace: String!, $first: Int, $after: String, $last: Int, $before: String) {
    networks(namespace: $namespace, first: $first, after: $after, last: $last, before: $before) {
      edges { cursor node { id metadata { name } } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
`;

async function query(client, document, variables, context) {
  const result = await within(client.query(document, variables, context).toPromise(), "the query");
  assert.equal(result.error, undefined, String(result.error));
  return result.data;
}

const names = (connection) => connection.edges.map((e) => e.node.metadata.name);

test("graphcache's relayPagination joins pages forward and backward", async () => {
  const namespace = newNamespace("urql");
  await create(namespace, "a", "b", "c", "d", "e");
  let client = await urql();
  let { networks } = await query(client, page, { namespace, first: 2 });
  ({ networks } = await query(client, page, { namespace, first: 2, after: networks.pageInfo.endCursor }));
  assert.deepEqual(names(networks), ["a", "b", "c", "d"]);
  ({ networks } = await query(client, page, { namespace, first: 2, after: networks.pageInfo.endCursor }));
  assert.deepEqual(names(networks), ["a", "b", "c", "d", "e"]);
  assert.equal(networks.pageInfo.hasNextPage, false);

  client = await urql();
  ({ networks } = await query(client, page, { namespace, last: 2 }));
  ({ networks } = await query(client, page, { namespace, last: 2, before: networks.pageInfo.startCursor }));
  assert.deepEqual(names(networks), ["b", "c", "d", "e"]);
  assert.equal(networks.pageInfo.hasPreviousPage, true);
});

test("persisted queries go by GET, with the hash alone the second time", async () => {
  const requests = [];
  const watched = (url, init) => {
    requests.push(`${init.method} ${/[?&]query=|"query"/.test(`${url}${init.body ?? ""}`) ? "text" : "hash"}`);
    return fetch(url, init);
  };
  const client = await urql({ fetch: watched, requestPolicy: "network-only" }, persistedExchange({ preferGetForPersistedQueries: true }));
  const document = gql(`query APQ { networks(namespace: "${newNamespace("urql")}") { totalCount } }`);
  for (let i = 0; i < 2; i++) assert.equal((await query(client, document, {})).networks.totalCount, 0);
  assert.equal(requests.length, 3, requests.join());
  assert.equal(requests[0], "GET hash");
  assert.match(requests[1], /text$/);
  assert.equal(requests[2], "GET hash");
});

test("a subscription over server-sent events updates the cache", async (t) => {
  const namespace = newNamespace("urql");
  await create(namespace, "a");
  const client = await urql();
  const one = gql`query One($namespace: String!) { network(namespace: $namespace, name: "a") { id spec { resource { mtu } } } }`;
  await query(client, one, { namespace });
  const types = [];
  let heard = () => {};
  const subscription = client.subscription(gql(changes), { namespace }).subscribe(({ data, error }) => {
    types.push(error ? String(error) : data.networkChanges.type);
    heard();
  });
  t.after(() => subscription.unsubscribe());
  const has = (type) => within(new Promise((resolve) => { heard = () => types.includes(type) && resolve(); heard(); }), type);
  await has("IN_SYNC");
  await setMTU(namespace, "a", 1300);
  await has("MODIFIED");
  const { network } = await query(client, one, { namespace }, { requestPolicy: "cache-only" });
  assert.equal(network.spec.resource.mtu, 1300, types.join());
});

test("an error has the gateway's code", async () => {
  const client = await urql();
  const result = await within(client.mutation(gql`mutation { deleteNetwork(input: { namespace: "urql-none", name: "none" }) { state } }`, {}).toPromise(), "the mutation");
  assert.equal(result.error?.graphQLErrors[0].extensions.code, "NOT_FOUND");
});
