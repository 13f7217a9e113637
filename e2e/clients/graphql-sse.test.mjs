import assert from "node:assert/strict";
import test from "node:test";
import { createClient } from "graphql-sse";
import { changes, create, endpoint, newNamespace, patience, setMTU, within } from "./gateway.mjs";

test("the client of graphql-sse follows changes", async (t) => {
  const namespace = newNamespace("sse");
  const client = createClient({ url: endpoint, singleConnection: false, retryAttempts: 0 });
  t.after(() => client.dispose());
  const stream = client.iterate({ query: changes, variables: { namespace } });
  const synced = await within(stream.next(), "IN_SYNC");
  assert.equal(synced.value.data.networkChanges.type, "IN_SYNC");
  await create(namespace, "a");
  const added = await within(stream.next(), "the change");
  assert.equal(added.value.data.networkChanges.network.metadata.name, "a");
  await stream.return();
});

test("the client of graphql-sse gets queries and errors as events", async (t) => {
  const client = createClient({ url: endpoint, singleConnection: false, retryAttempts: 0 });
  t.after(() => client.dispose());
  const { value } = await within(client.iterate({ query: "{ __typename }" }).next(), "the answer");
  assert.equal(value.data.__typename, "Query");
  const wrong = await within(client.iterate({ query: "subscription { nothing }" }).next(), "the error");
  assert.match(wrong.value.errors[0].message, /nothing/);
});

// open requests a stream as EventSource does: GET, no header but Accept and Last-Event-ID.
async function* open(variables, last, stop) {
  const url = `${endpoint}?${new URLSearchParams({ query: changes, variables: JSON.stringify(variables) })}`;
  const response = await fetch(url, { headers: { accept: "text/event-stream", "cache-control": "no-cache", ...(last && { "last-event-id": last }) }, signal: stop });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  let text = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const event = {};
      for (const line of text.slice(0, end).split("\n")) {
        const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
        if (name) event[name] = value;
      }
      if (event.data !== undefined) yield event;
    }
  }
}

test("EventSource goes on after Last-Event-ID", async () => {
  const namespace = newNamespace("sse");
  const stop = new AbortController();
  const first = open({ namespace, snapshot: true }, undefined, AbortSignal.any([stop.signal, AbortSignal.timeout(patience)]));
  let last;
  for await (const event of first) {
    assert.equal(event.event, "next");
    const change = JSON.parse(event.data).data.networkChanges;
    assert.equal(event.id ?? null, change.cursor, "the id of an event is its cursor");
    last = event.id ?? last;
    if (change.type === "IN_SYNC") await create(namespace, "a");
    if (change.type === "ADDED") break;
  }
  stop.abort();
  await setMTU(namespace, "a", 1400);
  await create(namespace, "b");

  const again = new AbortController();
  const seen = [];
  for await (const event of open({ namespace, snapshot: true }, last, AbortSignal.any([again.signal, AbortSignal.timeout(patience)]))) {
    const change = JSON.parse(event.data).data.networkChanges;
    seen.push(`${change.type} ${change.network?.metadata.name ?? ""}`.trim());
    if (change.type === "IN_SYNC") break;
  }
  again.abort();
  assert.deepEqual(seen, ["MODIFIED a", "ADDED b", "IN_SYNC"]);
});

test("complete has data, so that EventSource fires it", async () => {
  const url = `${endpoint}?${new URLSearchParams({ query: "subscription { nothing }" })}`;
  const response = await fetch(url, { headers: { accept: "text/event-stream" }, signal: AbortSignal.timeout(patience) });
  const text = await response.text();
  assert.match(text, /event: ?next\ndata: ?\{.*errors/);
  assert.match(text, /event: ?complete\ndata:/);
});
