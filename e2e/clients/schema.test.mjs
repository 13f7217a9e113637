// Other people's tools look at the schema: graphql-eslint, graphql-inspector and Relay's compiler.
import assert from "node:assert/strict";
import { copyFile, cp, mkdir, readFile, writeFile } from "node:fs/promises";
import test, { before } from "node:test";
import { fileURLToPath } from "node:url";
import { schemaSDL, tool, workFolder } from "./gateway.mjs";
import { forwards, kind, unreachable } from "./schema/eslint.config.mjs";

let folder;
before(async () => {
  folder = await workFolder("schema");
  await copyFile(fileURLToPath(new URL("../../docs/schema.graphql", import.meta.url)), `${folder}/schema.graphql`);
  await writeFile(`${folder}/served.graphql`, await schemaSDL());
  // Introspection tells which directives there are and not where they are used.
  await writeFile(`${folder}/introspected.graphql`, (await readFile(`${folder}/schema.graphql`, "utf8")).replaceAll(/ @semanticNonNull(?!\()/g, ""));
  await cp(fileURLToPath(new URL("./relay", import.meta.url)), `${folder}/relay`, { recursive: true });
});

// lint returns what the rules find in a schema. The tool takes its schema from the folder that it runs in.
async function lint(name, schema) {
  const place = await workFolder(`schema-${name}`);
  await writeFile(`${place}/schema.graphql`, schema);
  await copyFile(fileURLToPath(new URL("./schema/eslint.config.mjs", import.meta.url)), `${place}/eslint.config.mjs`);
  await tool(place, "eslint", "--format", "json", "--output-file", "found.json", "schema.graphql").catch((error) => {
    if (!/Command failed/.test(error.message)) throw error; // it ends with 1 where it finds anything
  });
  const results = JSON.parse(await readFile(`${place}/found.json`, "utf8"));
  return results.flatMap(({ messages }) => messages.filter((m) => !unreachable.test(m.message) && !kind.test(m.message) && !forwards.test(m.message)).map((m) => `line ${m.line}: ${m.ruleId}: ${m.message}`));
}

test("graphql-eslint has nothing to say about the schema", async () => {
  assert.deepEqual(await lint("documented", await readFile(`${folder}/schema.graphql`, "utf8")), []);
});

test("graphql-eslint would say it if a name, a description or PageInfo were wrong", async () => {
  const found = await lint("wrong", "type Query { Field: Int }\ntype Lost { a: Int }\n");
  for (const rule of ["naming-convention", "no-unreachable-types", "require-description", "relay-page-info"]) assert.ok(found.some((f) => f.includes(rule)), `${rule}: ${found.join("\n")}`);
});

test("graphql-inspector sees no difference between the documented schema and the one that is served", async () => {
  assert.match(await tool(folder, "graphql-inspector", "diff", "schema.graphql", "schema.graphql"), /No changes detected/);
  assert.match(await tool(folder, "graphql-inspector", "diff", "introspected.graphql", "served.graphql"), /No changes detected/);
});

test("graphql-inspector reads the schema and finds no two types that are the same by another name", async () => {
  await tool(folder, "graphql-inspector", "introspect", "schema.graphql", "--write", "introspection.json");
  const { __schema } = JSON.parse(await readFile(`${folder}/introspection.json`));
  assert.ok(__schema.types.length > 100);
  // Comparing every two types takes it half a minute; these are the ones that others are likely to repeat.
  for (const name of ["Metadata", "Network", "NetworkConnection", "StringFilter"]) {
    assert.match(await tool(folder, "graphql-inspector", "similar", "schema.graphql", "--name", name, "--threshold", "0.99"), /No similar types found/);
  }
});

test("graphql-inspector finds the documents of other clients valid, and measures what they cover", async () => {
  const documents = fileURLToPath(new URL("./genqlient/operations.graphql", import.meta.url));
  await copyFile(documents, `${folder}/operations.graphql`);
  assert.match(await tool(folder, "graphql-inspector", "validate", "operations.graphql", "schema.graphql"), /All documents are valid/);
  await tool(folder, "graphql-inspector", "coverage", "operations.graphql", "schema.graphql", "--write", "coverage.json");
  const { types } = JSON.parse(await readFile(`${folder}/coverage.json`));
  assert.ok(types.Query.hits > 0 && types.Network.hits > 0);
});

test("Relay's compiler accepts connections and the live list over the documented schema", async () => {
  await mkdir(`${folder}/artifacts`);
  await writeFile(`${folder}/relay.config.json`, JSON.stringify({
    src: "./relay", schema: "./schema.graphql", language: "javascript", artifactDirectory: "./artifacts", eagerEsModules: false,
  }));
  const said = await tool(folder, "relay-compiler", "relay.config.json");
  assert.match(said, /Compilation completed/);
  assert.doesNotMatch(said, /warn/i);
});
