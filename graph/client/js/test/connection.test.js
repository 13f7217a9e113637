import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection, connectionData } from "../src/connection.js";

const row = (revision, mtu) => ({ id: "a", metadata: { revision }, mtu });

test("an answer that arrives after the event of a later change is replaced again", () => {
  const stored = row("7-151", 1310);
  const list = {
    first: 10,
    getSnapshot: () => ({ status: "live", resources: [stored], hasNextPage: false, endCursor: null }),
    cursorOf: () => "c",
  };
  const connection = new Connection(list, ({ id }) => id, () => {});
  const shown = (node) => connectionData(connection, { networks: { nodes: [node] } }, "networks", { optimistic: false })?.networks.nodes[0];
  assert.equal(shown(row("7-149", 1400)), stored);
  assert.equal(shown(stored), undefined, "the cache has it");
  for (const late of ["7-150", "6-900"]) assert.equal(shown(row(late, 1410)), stored, late);
  for (const newer of ["7-152", "8-1", undefined, "rubbish"]) assert.equal(shown(row(newer, 1420)), undefined, String(newer));
});
