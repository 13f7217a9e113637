import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "graphql";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { ask, base, socketEndpoint, within } from "./gateway.mjs";

// examples are those that the page offers.
async function examples() {
  const { examples } = await (await fetch(`${base}/console/data`)).json();
  return examples.map((e) => ({ ...e, definition: parse(e.query).definitions[0], variables: e.variables ? JSON.parse(e.variables) : {} }));
}

test("every example of the page does what it says", async (t) => {
  const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket });
  t.after(() => socket.dispose());
  const all = await examples();
  assert.ok(all.length > 12, `${all.length} examples`);
  const last = (e) => e.definition.name.value.startsWith("Delete");
  for (const example of [...all.filter((e) => !last(e)), ...all.filter(last)]) {
    await t.test(example.title, async () => {
      const { query, variables, definition } = example;
      if (definition.operation === "subscription") {
        const { value } = await within(socket.iterate({ query, variables }).next(), "the first event");
        assert.equal(value.errors, undefined, JSON.stringify(value.errors));
        return;
      }
      let response = await ask(query, variables);
      const [error] = response.errors ?? [];
      const read = { expectedRevision: error?.extensions.currentRevision };
      if (error?.extensions.code === "CONFLICT" && "expectedRevision" in variables) response = await ask(query, { ...variables, ...read });
      if (error?.extensions.code === "CONFLICT" && variables.input) response = await ask(query, { input: { ...variables.input, ...read } });
      assert.equal(response.errors, undefined, JSON.stringify(response.errors));
    });
  }
});
