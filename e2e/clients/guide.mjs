// The code of docs/clients.md and docs/client-libraries.md, as files.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { transformAsync } from "@babel/core";
import { base, schemaSDL, tool, workFolder } from "./gateway.mjs";

const pages = ["clients.md", "client-libraries.md"].map((name) => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)));

// snippets returns the fenced pieces of code of the pages by the file that each says it is, for the gateway under test.
export async function snippets() {
  const out = {};
  const text = (await Promise.all(pages.map((page) => readFile(page, "utf8")))).join("\n");
  for (const [, about, code] of text.matchAll(/^```(\S[^\n]*)\n(.*?)^```$/gms)) {
    if (about === "json") continue; // an answer, not code
    const [, file] = /^\w+ file=(\S+)$/.exec(about) ?? [];
    assert.ok(file && !out[file], `code that no test runs, as it has no file of its own: ${about}`);
    out[file] = code.replaceAll("http://127.0.0.1:8080", base).replaceAll("ws://127.0.0.1:8080", base.replace("http", "ws"));
  }
  return out;
}

// unpack writes them into a folder and returns where it is.
export async function unpack(name) {
  const folder = await workFolder(name);
  for (const [file, code] of Object.entries(await snippets())) {
    await mkdir(dirname(`${folder}/${file}`), { recursive: true });
    await writeFile(`${folder}/${file}`, code);
  }
  await writeFile(`${folder}/package.json`, `{"type": "module"}`);
  return folder;
}

// relayTags compiles the code for Relay in such a folder, and returns what esbuild needs to bundle it: Relay's plugin of Babel.
export async function relayTags(folder) {
  await mkdir(`${folder}/relay/__generated__`);
  await writeFile(`${folder}/schema.graphql`, await schemaSDL());
  const config = { src: "./relay", schema: "./schema.graphql", language: "javascript", artifactDirectory: "./relay/__generated__", eagerEsModules: true };
  await writeFile(`${folder}/relay.config.json`, JSON.stringify(config));
  await tool(folder, "relay-compiler", "relay.config.json");
  return {
    name: "relay",
    setup: (b) => b.onLoad({ filter: /\/relay\/\w+\.jsx?$/ }, async ({ path }) => {
      const { code } = await transformAsync(await readFile(path, "utf8"), {
        filename: path, cwd: folder, babelrc: false, configFile: false, parserOpts: { plugins: ["jsx"] },
        plugins: [["relay", { eagerEsModules: true, artifactDirectory: `${folder}/relay/__generated__` }]],
      });
      return { contents: code, loader: "jsx" };
    }),
  };
}
