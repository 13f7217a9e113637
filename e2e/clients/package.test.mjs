// The npm package of the project: its unit tests, its types, and that it needs nothing.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { tool, workFolder } from "./gateway.mjs";

const home = fileURLToPath(new URL("../../graph/client/js", import.meta.url));

test("the unit tests of the package pass", async () => {
  const files = (await readdir(`${home}/test`)).filter((name) => name.endsWith(".test.js")).map((name) => `test/${name}`);
  assert.ok(files.length >= 4);
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT; // its own run, not a part of this one
  const { stdout } = await promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", ...files], { cwd: home, env, timeout: 60_000 }).catch((error) => {
    throw new Error(error.stdout + error.stderr);
  });
  assert.match(stdout, /^# pass [1-9]/m);
});

test("the package has no dependencies and is not published", async () => {
  const about = JSON.parse(await readFile(`${home}/package.json`));
  assert.deepEqual([about.dependencies, about.devDependencies, about.peerDependencies, about.private], [undefined, undefined, undefined, true]);
});

test("the types are what the comments say, and a program in TypeScript can use them", async () => {
  const folder = await workFolder("package");
  await tool(home, "tsc", "--project", ".", "--outDir", `${folder}/types`);
  const names = await readdir(`${folder}/types`);
  assert.deepEqual((await readdir(`${home}/types`)).sort(), names.sort());
  for (const name of names) {
    assert.equal(await readFile(`${home}/types/${name}`, "utf8"), await readFile(`${folder}/types/${name}`, "utf8"), `${name}: run tsc -p graph/client/js`);
  }
  await writeFile(`${folder}/program.ts`, `
    import { fetchTransport, liveList, merge, saveMerged, type Snapshot } from "@sluicegw/client";
    import { apolloTransport } from "@sluicegw/client/apollo";
    import { relayConnection } from "@sluicegw/client/relay";
    type Network = { id: string; metadata: { name: string; revision: string }; mtu: number };
    const list = liveList<Network>({ transport: fetchTransport({ url: "/v1/graphql" }), list: "", changes: "" });
    const snapshot: Snapshot<Network> = list.getSnapshot();
    const mtu: number | undefined = snapshot.resources[0]?.mtu;
    const stop: () => void = relayConnection(list, { environment: null, connectionID: "c", edgeType: "NetworkEdge" });
    const saved: Promise<string> = saveMerged({ base: { a: 1 }, mine: { a: 2 }, revision: "1", write: async (value, revision) => revision + value.a, read: async () => ({ value: { a: 3 }, revision: "2" }) });
    // @ts-expect-error an order compares networks
    liveList<Network>({ transport: fetchTransport({ url: "" }), list: "", changes: "", compare: (a, b) => a.nothing });
    export { apolloTransport, merge, mtu, saved, stop };
  `);
  await writeFile(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions: { strict: true, noEmit: true, target: "es2022", module: "nodenext", lib: ["es2023", "dom"], types: [] }, files: ["program.ts"] }));
  await tool(folder, "tsc", "--project", "tsconfig.json");
});
