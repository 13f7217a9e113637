// A page that is reloaded in the middle of ten thousand events.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, visit } from "./browser.mjs";
import { data, newNamespace, spec } from "./gateway.mjs";

const events = 10_000;
const perRequest = 25;
const writers = 4;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

// listen runs in the page at each load. It notes every event, and the cursor behind it,
// where a reload does not erase them.
function listen({ namespace }) {
  const fields = "{ type cursor network { metadata { name } } }";
  const note = (transport, change) => {
    sessionStorage.setItem(`${transport} cursor`, change.cursor);
    if (change.type !== "ADDED") return;
    const n = Number(sessionStorage.getItem(`${transport} count`) ?? 0);
    sessionStorage.setItem(`${transport} ${n}`, change.network.metadata.name);
    sessionStorage.setItem(`${transport} count`, n + 1);
  };

  const address = new URL("/graphql", location.href);
  address.searchParams.set("query", `subscription { networkChanges(namespace: "${namespace}") ${fields} }`);
  const last = sessionStorage.getItem("events cursor");
  if (last) address.searchParams.set("lastEventId", last);
  new EventSource(address).addEventListener("next", (event) => note("events", JSON.parse(event.data).data.networkChanges));

  const socket = new WebSocket(new URL("/graphql", location.href.replace(/^http/, "ws")), "graphql-transport-ws");
  socket.onopen = () => socket.send(JSON.stringify({ type: "connection_init" }));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "next") note("socket", message.payload.data.networkChanges);
    if (message.type === "connection_ack") {
      socket.send(JSON.stringify({
        id: "1",
        type: "subscribe",
        payload: {
          query: `subscription ($after: String) { networkChanges(namespace: "${namespace}", after: $after) ${fields} }`,
          variables: { after: sessionStorage.getItem("socket cursor") },
        },
      }));
    }
  };
}

// write creates the networks n0, n1, ..., several in one request.
async function write(namespace) {
  let next = 0;
  const input = (n) => `{namespace: "${namespace}", name: "n${n}", spec: $spec}`;
  await Promise.all(Array.from({ length: writers }, async () => {
    while (next < events) {
      const from = next;
      next += perRequest;
      const fields = Array.from({ length: perRequest }, (_, i) => `m${i}: createNetwork(input: ${input(from + i)}) { clientMutationId }`);
      await data(`mutation ($spec: NetworkSpecInput!) { ${fields.join(" ")} }`, { spec: spec() });
    }
  }));
}

test("a page that is reloaded in the middle of ten thousand events misses none and repeats none", { timeout: 240_000 }, async (t) => {
  const namespace = newNamespace("reload");
  const page = await visit(t, browser, "/console/plain", { prepare: (page) => page.addInitScript(listen, { namespace }) });
  page.setDefaultTimeout(200_000);
  const reached = (n) => page.waitForFunction((n) => ["events", "socket"].every((transport) => Number(sessionStorage.getItem(`${transport} count`)) >= n), n);
  await page.waitForFunction(() => sessionStorage.getItem("events cursor") && sessionStorage.getItem("socket cursor"));
  const written = write(namespace);
  for (const n of [2000, 5000, 8000]) {
    await reached(n);
    await page.reload();
  }
  await written;
  await reached(events);
  const told = await page.evaluate(() => ["events", "socket"].map((transport) =>
    Array.from({ length: Number(sessionStorage.getItem(`${transport} count`)) }, (_, n) => sessionStorage.getItem(`${transport} ${n}`))));
  for (const names of told) {
    assert.equal(names.length, events);
    assert.equal(new Set(names).size, events);
  }
  assert.deepEqual(told[0], told[1]);
});
