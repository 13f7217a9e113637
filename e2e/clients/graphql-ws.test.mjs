import assert from "node:assert/strict";
import test from "node:test";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { changes, create, newNamespace, setMTU, socketEndpoint, spec, within } from "./gateway.mjs";

function connect(t, options) {
  const client = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, retryAttempts: 0, ...options });
  t.after(() => client.dispose());
  return client;
}

// until takes values of a stream up to the first that the condition holds for.
async function until(stream, holds) {
  const out = [];
  while (true) {
    const { value, done } = await within(stream.next(), "the next event");
    assert.ok(!done, `the stream ended after ${JSON.stringify(out)}`);
    assert.equal(value.errors, undefined, JSON.stringify(value.errors));
    out.push(value.data.networkChanges);
    if (holds(value.data.networkChanges)) return out;
  }
}

test("queries and mutations are answered over the socket", async (t) => {
  const client = connect(t);
  const namespace = newNamespace("ws");
  const created = await within(
    client.iterate({
      query: `mutation ($input: CreateNetworkInput!) { createNetwork(input: $input) { network { metadata { name } } } }`,
      variables: { input: { namespace, name: "a", spec: spec() } },
    }).next(),
    "the mutation",
  );
  assert.deepEqual(created.value.data, { createNetwork: { network: { metadata: { name: "a" } } } });
  const listed = await within(client.iterate({ query: `query ($namespace: String) { networks(namespace: $namespace) { totalCount } }`, variables: { namespace } }).next(), "the query");
  assert.equal(listed.value.data.networks.totalCount, 1);
});

test("an invalid document is an error message, and the socket goes on", async (t) => {
  const client = connect(t);
  await assert.rejects(within(client.iterate({ query: "{ nothing }" }).next(), "the error"), (errors) => Array.isArray(errors) && /nothing/.test(errors[0].message));
  const { value } = await within(client.iterate({ query: "{ __typename }" }).next(), "the query");
  assert.equal(value.data.__typename, "Query");
});

test("a subscription resumes after its last cursor and misses nothing", async (t) => {
  const namespace = newNamespace("ws");
  const first = connect(t);
  let stream = first.iterate({ query: changes, variables: { namespace, snapshot: true } });
  await until(stream, (e) => e.type === "IN_SYNC");
  await create(namespace, "a");
  const [added] = await until(stream, (e) => e.type === "ADDED");
  await stream.return();
  await first.dispose();

  await setMTU(namespace, "a", 1400);
  await create(namespace, "b");
  stream = connect(t).iterate({ query: changes, variables: { namespace, after: added.cursor } });
  const missed = await until(stream, (e) => e.type === "IN_SYNC");
  assert.deepEqual(missed.map((e) => [e.type, e.network?.metadata.name ?? null]), [["MODIFIED", "a"], ["ADDED", "b"], ["IN_SYNC", null]]);
});

test("the client's own pings are answered", async (t) => {
  await within(
    new Promise((resolve) => {
      connect(t, { lazy: false, keepAlive: 50, on: { pong: (received) => received && resolve() } });
    }),
    "the pong",
  );
});
