// Relay's compiler, over the schema that the gateway serves.
import { cp, mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { schemaSDL, tool, workFolder } from "./gateway.mjs";

// compile runs the compiler over a folder of sources, and returns its artifacts by name and where they are.
export async function compile(name, sources) {
  const folder = await workFolder(name);
  await cp(sources, `${folder}/src`, { recursive: true });
  await writeFile(`${folder}/schema.graphql`, await schemaSDL());
  await writeFile(`${folder}/package.json`, `{"type": "commonjs"}`);
  await mkdir(`${folder}/artifacts`);
  await writeFile(`${folder}/relay.config.json`, JSON.stringify({
    src: "./src", schema: "./schema.graphql", language: "javascript", artifactDirectory: "./artifacts", eagerEsModules: false,
  }));
  await tool(folder, "relay-compiler", "relay.config.json");
  const require = createRequire(`${folder}/artifacts/`);
  return { folder, artifact: (name) => require(`./${name}.graphql.js`) };
}
