// graphql-js looks at released versions of the API: at their files, at what a gateway serves of them, and at what the
// check of a catalogue refuses.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildClientSchema, buildSchema, findBreakingChanges, findDangerousChanges, getIntrospectionQuery, lexicographicSortSchema, printSchema } from "graphql";
import { Gateway } from "./process.mjs";

const run = promisify(execFile);
const embedded = fileURLToPath(new URL("../../schema/v1", import.meta.url));

let folder;
before(async () => (folder = await mkdtemp(`${tmpdir()}/versions-`)));
after(() => rm(folder, { recursive: true, force: true }));

// grow adds a field to each object of a catalogue that is no kind, a value to each enum, and a kind.
async function grow(kinds) {
  for (const name of (await run("ls", [kinds])).stdout.split("\n").filter((name) => name.endsWith(".graphqls"))) {
    const text = await readFile(`${kinds}/${name}`, "utf8");
    await writeFile(`${kinds}/${name}`, text
      .replace(/^type \w+( @rule[^\n]*)? \{$/gm, (head) => (head.includes("Properties") ? head : `${head}\n  hiddenField: Int`))
      .replace(/^(enum \w+ [^}]*)\}/gm, "$1  HIDDEN_VALUE\n}"));
  }
  await writeFile(`${kinds}/hidden.graphqls`, `type Hidden @resource(plural: "hiddens", group: "example.org", version: "v1", scope: NAMESPACED) { spec: HiddenSpec! }
type HiddenSpec { size: Int }
`);
}

// printed is a schema in one order, without what introspection does not tell: where directives are used.
const printed = (schema) => printSchema(lexicographicSortSchema(schema));

test("the file of a version and its introspection are the same schema", async (t) => {
  const kinds = `${folder}/kinds`;
  await cp(embedded, kinds, { recursive: true });
  await run(process.env.SLUICE_BINARY, ["catalogue", "release", "1.0", kinds]);
  await grow(kinds);
  await run(process.env.SLUICE_BINARY, ["catalogue", "release", "1.1", kinds]);
  const gateway = await new Gateway(t, ["--data", `${folder}/data`], "--catalogue", kinds).start();
  const query = getIntrospectionQuery({ descriptions: false, directiveIsRepeatable: true, inputValueDeprecation: true, oneOf: true, specifiedByUrl: true });
  const views = {};
  for (const version of ["v1.0", "v1.1"]) {
    const text = await readFile(`${kinds}/versions/${version}/api.graphql`, "utf8");
    assert.equal(await (await fetch(`${gateway.base}/${version}/schema.graphql`)).text(), text);
    const response = await fetch(`${gateway.base}/${version}/graphql`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query }) });
    const { data, errors } = await response.json();
    assert.equal(errors, undefined);
    const file = buildSchema(text);
    views[version] = buildClientSchema(data);
    assert.equal(printed(views[version]), printed(file));
    assert.deepEqual([...findBreakingChanges(file, views[version]), ...findDangerousChanges(file, views[version])], []);
  }
  assert.deepEqual(findBreakingChanges(views["v1.0"], views["v1.1"]), []);
  assert.doesNotMatch(printed(views["v1.0"]), /hiddenField|HIDDEN_VALUE|hiddens/);
  assert.match(printed(views["v1.1"]), /hiddenField/);
});

// SLUICE_EDITS is a folder with the APIs of edited catalogues, and says which edits the check of catalogues refuses.
test("what graphql-js calls a breaking change of a catalogue is refused", async () => {
  const edits = JSON.parse(await readFile(`${process.env.SLUICE_EDITS}/edits.json`, "utf8"));
  const read = async (name) => buildSchema(await readFile(`${process.env.SLUICE_EDITS}/${name}`, "utf8"), { assumeValid: true });
  const released = await read("released.graphql");
  let breaking = 0;
  for (const { file, edits: done, refused } of edits) {
    const found = findBreakingChanges(released, await read(file));
    breaking += found.length > 0;
    if (!refused) assert.deepEqual(found, [], `${file}: ${done}`);
  }
  assert.ok(edits.length >= 100 && breaking > edits.length / 10, `${breaking} of ${edits.length} break clients`);
});
