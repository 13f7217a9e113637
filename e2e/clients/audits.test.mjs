import assert from "node:assert/strict";
import test from "node:test";
import { serverAudits } from "graphql-http";
import { endpoint } from "./gateway.mjs";

test("all 61 audits of graphql-http pass", async () => {
  const audits = serverAudits({ url: endpoint, fetchFn: fetch });
  const failed = [];
  for (const audit of audits) {
    const result = await audit.fn();
    if (result.status !== "ok") {
      failed.push(`${audit.id} ${audit.name}: ${result.status}, ${result.reason}; ${result.response?.status} ${result.response?.headers.get("content-type")}`);
    }
  }
  assert.equal(audits.length, 61);
  assert.deepEqual(failed, []);
});
