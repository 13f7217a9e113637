import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cp, readFile, writeFile } from "node:fs/promises";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { endpoint, newNamespace, schemaSDL, tool, workFolder } from "./gateway.mjs";

// generated returns a folder with types that were generated and that the compiler accepts with the sources of another folder.
async function generated(sources, schema, config) {
  const folder = await workFolder(sources);
  await cp(fileURLToPath(new URL(`./${sources}`, import.meta.url)), `${folder}/src`, { recursive: true });
  await writeFile(`${folder}/schema.graphql`, schema);
  await writeFile(`${folder}/codegen.json`, JSON.stringify({
    schema: "schema.graphql",
    documents: ["src/*.ts"],
    generates: {
      "src/gql/": {
        preset: "client",
        presetConfig: { persistedDocuments: { hashAlgorithm: "sha256" }, fragmentMasking: false },
        config: { scalars: { Time: "string", SafeInt: "number" }, strictScalars: false, enumsAsTypes: true, useTypeImports: true, ...config },
      },
    },
  }));
  await tool(folder, "graphql-codegen", "--config", "codegen.json");
  await writeFile(`${folder}/tsconfig.json`, JSON.stringify({
    compilerOptions: { strict: true, noEmit: true, target: "es2022", module: "esnext", moduleResolution: "bundler", skipLibCheck: true, types: [] },
    include: ["src"],
  }));
  await tool(folder, "tsc", "--project", "tsconfig.json");
  return folder;
}

test("GraphQL Code Generator makes types for clients that look at errors in each place", async () => {
  await generated("codegen-partial", await schemaSDL());
});

test("with @semanticNonNull it makes types without null for clients that throw errors", async () => {
  const printed = await readFile(new URL("../../docs/schema.graphql", import.meta.url), "utf8");
  const folder = await generated("codegen", printed, { nullability: { errorHandlingClient: true } });

  // Its manifest names documents as the gateway does.
  const manifest = JSON.parse(await readFile(`${folder}/src/gql/persisted-documents.json`));
  const [id, query] = Object.entries(manifest).find(([, text]) => text.startsWith("query Networks"));
  assert.equal(id, `sha256:${createHash("sha256").update(query).digest("hex")}`);
  const post = (body) => fetch(endpoint, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }).then((r) => r.json());
  const variables = { namespace: newNamespace("codegen") };
  await post({ query, variables, extensions: { persistedQuery: { version: 1, sha256Hash: id.slice("sha256:".length) } } });
  const answer = await post({ documentId: id, variables });
  assert.deepEqual(answer.data?.networks.edges, [], JSON.stringify(answer));
});
