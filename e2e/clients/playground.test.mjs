// GraphQL Playground speaks only the legacy protocol, graphql-ws: these are its messages.
import assert from "node:assert/strict";
import test from "node:test";
import WebSocket from "ws";
import { changes, create, newNamespace, socketEndpoint, within } from "./gateway.mjs";

function dial(t) {
  const socket = new WebSocket(socketEndpoint, "graphql-ws");
  t.after(() => socket.terminate());
  const queue = [], waiting = [];
  socket.on("message", (raw) => {
    const message = JSON.parse(raw);
    if (message.type === "ka") return;
    const next = waiting.shift();
    if (next) next(message);
    else queue.push(message);
  });
  return {
    opened: within(new Promise((resolve, reject) => { socket.on("open", resolve); socket.on("error", reject); }), "the connection"),
    send: (message) => socket.send(JSON.stringify(message)),
    next: () => within(queue.length > 0 ? Promise.resolve(queue.shift()) : new Promise((resolve) => waiting.push(resolve)), "a message"),
    protocol: () => socket.protocol,
  };
}

test("Playground's protocol carries a query and a subscription", async (t) => {
  const namespace = newNamespace("playground");
  const socket = dial(t);
  await socket.opened;
  assert.equal(socket.protocol(), "graphql-ws");
  socket.send({ type: "connection_init", payload: {} });
  assert.equal((await socket.next()).type, "connection_ack");

  socket.send({ id: "1", type: "start", payload: { query: "{ __typename }", variables: {}, extensions: {}, operationName: null } });
  assert.deepEqual(await socket.next(), { id: "1", type: "data", payload: { data: { __typename: "Query" } } });
  assert.deepEqual(await socket.next(), { id: "1", type: "complete" });

  socket.send({ id: "2", type: "start", payload: { query: changes, variables: { namespace }, operationName: "Changes" } });
  assert.equal((await socket.next()).payload.data.networkChanges.type, "IN_SYNC");
  await create(namespace, "a");
  const added = await socket.next();
  assert.equal(added.id, "2");
  assert.equal(added.payload.data.networkChanges.network.metadata.name, "a");

  socket.send({ id: "2", type: "stop" });
  socket.send({ id: "3", type: "start", payload: { query: "{ nothing }" } });
  let message;
  do message = await socket.next(); while (message.id !== "3");
  assert.match(JSON.stringify(message.payload), /nothing/);
});
