// Every pair of what the guide shows: a live list, a save, an optimistic change and a conflict, in one page with Apollo, urql and
// Relay, in Node and in a browser. The list, and the rows of the page, come to show what is stored.
import { cp, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import WebSocket from "ws";
import { launch, visit } from "./browser.mjs";
import { base, newNamespace } from "./gateway.mjs";
import { relayTags, unpack } from "./guide.mjs";
import { scenarios } from "./pairs/scenarios.js";

globalThis.WebSocket ??= WebSocket;

const clients = ["apollo", "urql", "relay"];
const url = `${base}/v1/graphql`;
const pages = {}, scripts = {};
let browser;

before(async () => {
  const folder = await unpack("pairs");
  await cp(fileURLToPath(new URL("./pairs", import.meta.url)), `${folder}/pairs`, { recursive: true });
  const plugins = [await relayTags(folder)];
  const bundle = (client, options) => build({ entryPoints: [`${folder}/pairs/${client}.js`], bundle: true, plugins, logLevel: "error", define: { "process.env.NODE_ENV": '"development"' }, ...options });
  for (const client of clients) {
    const node = `${folder}/${client}.cjs`, page = `${folder}/${client}.js`;
    await bundle(client, { platform: "node", format: "cjs", outfile: node });
    await bundle(client, { format: "iife", globalName: "page", target: "es2022", outfile: page });
    pages[client] = createRequire(import.meta.url)(node);
    scripts[client] = await readFile(page, "utf8");
  }
  browser = await launch();
});
after(() => {
  for (const page of Object.values(pages)) page.end?.();
  return browser?.close();
});

for (const client of clients) {
  for (const name of Object.keys(scenarios)) {
    test(`${client} in Node: ${name}`, () => pages[client].play(url, newNamespace(`pairs-${client}`), name));

    test(`${client} in a browser: ${name}`, async (t) => {
      const page = await visit(t, browser, "/console/plain");
      await page.evaluate(scripts[client]);
      await page.evaluate(([url, namespace, name]) => window.page.play(url, namespace, name), [url, newNamespace(`pairs-${client}`), name]);
    });
  }
}
