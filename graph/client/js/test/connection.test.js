import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection, connectionData } from "../src/connection.js";

const row = (revision, mtu) => ({ id: "a", metadata: { revision }, mtu });

const listOf = (stored) => ({
  first: 10,
  getSnapshot: () => ({ status: "live", resources: [stored], hasNextPage: false, endCursor: null }),
  cursorOf: () => "c",
});
const shownBy = (connection, optimistic) => (node) => connectionData(connection, { networks: { nodes: [node] } }, "networks", { optimistic })?.networks.nodes[0];

test("an answer that arrives after the event of a later change is replaced again", () => {
  const stored = row("7-151", 1310);
  const connection = new Connection(listOf(stored), ({ id }) => id, () => {});
  const shown = shownBy(connection, false);
  assert.equal(shown(row("7-149", 1400)), stored);
  assert.equal(shown(stored), undefined, "the cache has it");
  for (const late of ["7-150", "6-900"]) assert.equal(shown(row(late, 1410)), stored, late);
  for (const newer of ["7-152", "8-1", undefined, "rubbish"]) assert.equal(shown(row(newer, 1420)), undefined, String(newer));
});

test("a cache that shows optimistic changes gets a resource again once for each that is older", () => {
  const connection = new Connection(listOf(row("7-151", 1310)), ({ id }) => id, () => {});
  const shown = shownBy(connection, true);
  const givenAgain = (node) => {
    const before = connection.repeats;
    shown(node);
    return connection.repeats - before;
  };
  assert.equal(givenAgain(row("7-149", 1400)), 1);
  assert.equal(givenAgain(row("7-149", 1400)), 0, "an optimistic change covers it");
  assert.equal(givenAgain(row("7-149", 1420)), 1, "another answer");
  assert.equal(givenAgain(row("7-151", 1310)), 0, "the cache has it");
  assert.equal(givenAgain(row("7-149", 1420)), 1, "the same answer came late once more");
});
