// genqlient generates Go, so its part is a Go module of its own, in genqlient/.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { base, schemaSDL } from "./gateway.mjs";

test("code that genqlient generates reads pages, sees a conflict and follows changes", async () => {
  const cwd = fileURLToPath(new URL("./genqlient", import.meta.url));
  const go = (...args) => promisify(execFile)("go", args, { cwd, env: { ...process.env, SLUICE_URL: base, GOFLAGS: "-mod=readonly" } });
  await writeFile(`${cwd}/schema.graphql`, await schemaSDL());
  await go("tool", "genqlient", "genqlient.yaml");
  const { stdout } = await go("run", ".");
  assert.equal(stdout, "changes: IN_SYNC ADDED ADDED ADDED\npages: [a b c]\nconflict: CONFLICT\n");
});
