// The code of docs/clients.md, as files.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { base, workFolder } from "./gateway.mjs";

const page = fileURLToPath(new URL("../../docs/clients.md", import.meta.url));

// snippets are the fenced pieces of code of the page by the file that each says it is, for the gateway under test.
export async function snippets() {
  const out = {};
  for (const [, about, code] of (await readFile(page, "utf8")).matchAll(/^```(\S[^\n]*)\n(.*?)^```$/gms)) {
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
