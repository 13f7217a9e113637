// The files that `sluice catalogue init` writes, in the service that editors ask for completion and diagnostics.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { loadConfig } from "graphql-config";
import { getAutocompleteSuggestions, getDiagnostics, GraphQLDocumentMode, Position } from "graphql-language-service";

let folder, text, schema;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "catalogue"));
  execFileSync(process.env.SLUICE_BINARY, ["catalogue", "init", folder]);
  text = await readFile(join(folder, "kinds", "team.graphqls"), "utf8");
  const config = await loadConfig({ rootDir: folder });
  schema = await config.getDefault().getSchema();
});
after(() => rm(folder, { recursive: true, force: true }));

// suggested are the completions at the place of a | in a text.
function suggested(marked) {
  const before = marked.slice(0, marked.indexOf("|")).split("\n");
  const at = new Position(before.length - 1, before.at(-1).length);
  return getAutocompleteSuggestions(schema, marked.replace("|", ""), at, undefined, [], { mode: GraphQLDocumentMode.TYPE_SYSTEM })
    .map(({ label }) => label.replace(/^@/, ""));
}

const problems = (sdl) => getDiagnostics(sdl, schema).map(({ message }) => message);

test("the kinds of a new catalogue have no problem", () => {
  assert.deepEqual(problems(text), []);
});

test("mistakes in annotations are found", () => {
  assert.match(problems(text.replace("@filterable", "@filterabel")).join("\n"), /Unknown directive "@filterabel"/);
  assert.match(problems(text.replace("maxLength: 200", "maxLenght: 200")).join("\n"), /Unknown argument "maxLenght" on directive "@constraint"/);
  assert.match(problems(text.replace("size: Int ", "size: ")).join("\n"), /Syntax Error/);
});

test("directives and types are completed", () => {
  const directives = suggested("type TeamSpec {\n  purpose: String @|\n}\n");
  for (const name of ["constraint", "filterable", "default", "immutable", "ref"]) assert.ok(directives.includes(name), `${name} is not among ${directives}`);
  const types = suggested("type TeamSpec {\n  since: |\n}\n");
  for (const name of ["Time", "SafeInt", "Condition", "TeamSpec"]) assert.ok(types.includes(name), `${name} is not among ${types}`);
});
