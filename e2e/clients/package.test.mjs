// The npm package of the project: its unit tests, its types, and that it needs nothing.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse } from "graphql";
import { changes, fetchTransport, unwrap } from "@sluicegw/client";
import { create, endpoint, newNamespace, tool, within, workFolder } from "./gateway.mjs";

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

test("the package has no dependencies", async () => {
  const about = JSON.parse(await readFile(`${home}/package.json`));
  assert.deepEqual([about.dependencies, about.devDependencies, about.peerDependencies], [undefined, undefined, undefined]);
});

const wide = `
  query Wide($names: [String!]! = ["a", "b \\"c\\" \\u{1f600}"], $first: Int = 10, $filter: NetworkFilter = { name: { in: ["x"] }, not: { labels: [{ key: "k", isNull: true }] } }, $all: Boolean! = true) @dir(a: 1) {
    mine: networks(first: $first, filter: $filter, orderBy: [{ field: NAME, direction: DESC }], ratio: -1.5e3, none: null, block: """a "block"
      of text""") @include(if: $all) {
      nodes { ...Row ... on Network @skip(if: false) { spec { resource { mtu } } } ... @include(if: $all) { id } ... { id } }
    }
  }
  fragment Row on Network @dir { id metadata { name } }
  mutation M { a }
  subscription S($after: String) { networkChanges(after: $after) { type } }
`;

test("a parsed document is sent as a text that means the same", async () => {
  const { textOf } = await import(`${home}/src/document.js`);
  // A block string is sent as the same text in quotes.
  const plain = (document) => JSON.parse(JSON.stringify(document, (key, value) => (key === "loc" || key === "block" ? undefined : value)));
  const document = parse(wide), text = textOf(parse(wide, { noLocation: true }));
  assert.deepEqual(plain(parse(text)), plain(document));
  assert.equal(textOf(parse(text)), text);
});

test("a parsed document is answered, and followed", async () => {
  const namespace = newNamespace("package");
  await create(namespace, "a");
  const transport = fetchTransport({ url: endpoint });
  const list = parse("query ($namespace: String) { networks(namespace: $namespace) { changeCursor nodes { metadata { name } } } }");
  const { networks } = unwrap(await transport.query(list, { namespace }, {}));
  assert.deepEqual(networks.nodes, [{ metadata: { name: "a" } }]);
  const document = parse("subscription ($namespace: String, $after: String) { networkChanges(namespace: $namespace, after: $after) { type cursor network { metadata { name } } } }");
  const iteration = changes({ transport, document, variables: { namespace }, after: networks.changeCursor });
  await create(namespace, "b");
  const heard = [];
  await within((async () => {
    for await (const { type, network } of iteration) {
      if (network) heard.push(`${type} ${network.metadata.name}`);
      if (heard.length === 1) break;
    }
  })(), "the change");
  assert.deepEqual(heard, ["ADDED b"]);
});

test("a query by GET has an entity tag, which changes with the answer", async () => {
  const namespace = newNamespace("package");
  await create(namespace, "a");
  const seen = [];
  let tag;
  const tagged = async (url, init) => { // as a browser does
    if (tag) init.headers.set("if-none-match", tag);
    const response = await fetch(url, init);
    seen.push(`${init.method} ${response.status}`);
    tag = response.headers.get("etag") ?? tag;
    return response.status === 304 ? Response.json({ data: null }) : response;
  };
  const document = parse("query ByGet($namespace: String!) { networks(namespace: $namespace) { nodes { metadata { name } } } }");
  const transport = fetchTransport({ url: endpoint, method: "GET", fetch: tagged });
  const ask = () => transport.query(document, { namespace }, {});
  assert.equal(unwrap(await ask()).networks.nodes.length, 1);
  assert.equal(unwrap(await ask()).networks.nodes.length, 1);
  assert.equal((await ask()).data, null);
  await create(namespace, "b");
  assert.equal(unwrap(await ask()).networks.nodes.length, 2);
  assert.deepEqual(seen, ["GET 400", "POST 200", "GET 200", "GET 304", "GET 200"]);
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
    import { changes, compareBy, fetchTransport, liveList, merge, saveMerged, type Change, type Snapshot } from "@sluicegw/client";
    import { apolloTransport } from "@sluicegw/client/apollo";
    import { relayConnection } from "@sluicegw/client/relay";
    import { liveExchange, urqlConnection, urqlTransport } from "@sluicegw/client/urql";
    type Network = { id: string; metadata: { name: string; revision: string }; mtu: number };
    const list = liveList<Network>({ transport: fetchTransport({ url: "/v1/graphql" }), list: "", changes: "" });
    const window = liveList<Network>({ transport: urqlTransport({}), list: "", changes: "", first: 20, compare: compareBy({ path: "mtu", direction: "DESC" }) });
    const shown: Promise<void> = window.more(20);
    const changed: AsyncGenerator<Change, void, void> = changes({ transport: fetchTransport({ url: "", retries: 1 }), document: "" });
    const snapshot: Snapshot<Network> = list.getSnapshot();
    const mtu: number | undefined = snapshot.resources[0]?.mtu;
    const stop: () => void = relayConnection(list, { environment: null, connectionID: "c", edgeType: "NetworkEdge" });
    const saved: Promise<string> = saveMerged({ base: { a: 1 }, mine: { a: 2 }, revision: "1", write: async (value, revision) => revision + value.a, read: async () => ({ value: { a: 3 }, revision: "2" }) });
    // @ts-expect-error an order compares networks
    liveList<Network>({ transport: fetchTransport({ url: "" }), list: "", changes: "", compare: (a, b) => a.nothing });
    export { apolloTransport, changed, liveExchange, merge, mtu, saved, shown, stop, urqlConnection };
  `);
  await writeFile(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions: { strict: true, noEmit: true, target: "es2022", module: "nodenext", lib: ["es2023", "dom"], types: [] }, files: ["program.ts"] }));
  await tool(folder, "tsc", "--project", "tsconfig.json");
});

// npm runs npm in a folder, with the TypeScript of this project, and returns what it printed.
async function npm(folder, ...args) {
  const programs = fileURLToPath(new URL("./node_modules/.bin", import.meta.url));
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` };
  const { stdout } = await promisify(execFile)("npm", args, { cwd: folder, env, timeout: 120_000 }).catch((error) => {
    throw new Error(`npm ${args.join(" ")}: ${error.message}\n${error.stdout}${error.stderr}`);
  });
  return stdout;
}

// What a program in TypeScript and one in JavaScript do with the package, whichever modules they are.
const typed = `
  const list: LiveList<{ id: string }> = liveList({ transport: fetchTransport({ url: "http://127.0.0.1/" }), list: "", changes: "" });
  const snapshot: Snapshot<{ id: string }> = list.getSnapshot();
  // @ts-expect-error there is no such field
  snapshot.nothing;
  relayConnection(list, { environment: null, connectionID: "c", edgeType: "E" });
  console.log(snapshot.status, compareBy, apolloTransport, urqlTransport);
`;
const plain = `
  if (!(new ConflictError([]) instanceof Error) || typeof relayConnection !== "function") throw new Error("something else was imported");
  console.log([liveList, fetchTransport, apolloConnection, urqlConnection].map((one) => typeof one).join());
`;
const names = {
  "@sluicegw/client": ["liveList", "fetchTransport", "compareBy", "ConflictError"],
  "@sluicegw/client/relay": ["relayConnection"],
  "@sluicegw/client/apollo": ["apolloTransport", "apolloConnection"],
  "@sluicegw/client/urql": ["urqlTransport", "urqlConnection"],
};
const imports = (write) => Object.entries(names).map(([from, what]) => write(what.join(", "), from)).join("\n");

test("the package can be published: what npm packs works in a project outside, in both kinds of modules", async (t) => {
  const outside = await mkdtemp(join(tmpdir(), "sluice-package-"));
  t.after(() => rm(outside, { recursive: true, force: true }));
  const [packed] = JSON.parse(await npm(home, "pack", "--json", "--pack-destination", outside));
  const files = packed.files.map(({ path }) => path);
  const sources = (await readdir(`${home}/src`)).map((name) => name.replace(/\.js$/, ""));
  const made = sources.flatMap((name) => [`cjs/${name}.d.ts`, `cjs/${name}.js`, `src/${name}.js`, `types/${name}.d.ts`]);
  assert.deepEqual(files.sort(), ["LICENSE", "README.md", "cjs/package.json", "package.json", ...made].sort());

  const project = join(outside, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify({ name: "outside", private: true }));
  await npm(project, "install", "--offline", "--no-audit", "--no-fund", join(outside, packed.filename));
  const esm = imports((what, from) => `import { ${what} } from "${from}";`);
  const types = 'import type { LiveList, Snapshot } from "@sluicegw/client";\n';
  await writeFile(join(project, "plain.mjs"), esm + plain);
  await writeFile(join(project, "plain.cjs"), imports((what, from) => `const { ${what} } = require("${from}");`) + plain);
  for (const file of ["typed.mts", "typed.cts", "bundled.ts"]) await writeFile(join(project, file), types + esm + typed);
  for (const file of ["plain.mjs", "plain.cjs"]) {
    const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: project });
    assert.equal(stdout.trim(), "function,function,function,function", file);
  }
  const options = { strict: true, noEmit: true, skipLibCheck: false, target: "es2022", lib: ["es2023", "dom", "dom.iterable"], types: [] };
  for (const [module, moduleResolution, files] of [["node16", "node16", ["typed.mts", "typed.cts"]], ["esnext", "bundler", ["bundled.ts"]]]) {
    await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...options, module, moduleResolution }, files }));
    await tool(project, "tsc", "--project", "tsconfig.json");
  }
});
