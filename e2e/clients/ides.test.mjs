// GraphQL Playground and Altair, as npm has them, on pages of another origin: a query, a subscription, the documentation and the
// schema. Playground's parser is one of 2018.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { renderAltair } from "altair-static";
import { launch, visit } from "./browser.mjs";
import { base, create, endpoint, newNamespace, patience, socketEndpoint, workFolder } from "./gateway.mjs";

// SLUICE_PAGES is the port of the pages; the gateway allows their origin.
const port = Number(process.env.SLUICE_PAGES);
const origin = `http://127.0.0.1:${port}`;
const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml" };

// The package depends on hundreds of others, which its built files need not: only these are fetched.
const playground = {
  name: "graphql-playground-react@1.7.28",
  integrity: "YPR33Ph9kuKlFOMpc8mKGsL/fOiX0ltgzV1BokXYNsBLtTVQnhdCSKQuZg80CcxWKD8syNuWXDkGZSAdFkwmRg==",
};

async function fetchPlayground() {
  const folder = await workFolder("playground");
  const run = (command, ...args) => promisify(execFile)(command, args, { cwd: folder, timeout: 3 * patience });
  await run("npm", "pack", playground.name, "--prefer-offline", "--loglevel=error");
  const archive = `${playground.name.replace("@", "-")}.tgz`;
  assert.equal(createHash("sha512").update(await readFile(`${folder}/${archive}`)).digest("base64"), playground.integrity);
  await run("tar", "xzf", archive);
  return `${folder}/package/build`;
}

let browser, server;
before(async () => {
  const folders = { playground: await fetchPlayground(), altair: fileURLToPath(new URL("./node_modules/altair-static/build/dist", import.meta.url)) };
  server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, origin);
    const [, ide, ...path] = pathname.split("/");
    if (path.join("/") === "") {
      const html = ide === "altair" ? altair(searchParams.get("operation")) : playgroundPage(searchParams.get("operation"));
      return response.writeHead(200, { "content-type": "text/html" }).end(html);
    }
    const file = await readFile(`${folders[ide]}/${path.join("/")}`).catch(() => null);
    response.writeHead(file ? 200 : 404, { "content-type": types[extname(pathname)] ?? "application/octet-stream" }).end(file);
  });
  await new Promise((listening) => server.listen(port, "127.0.0.1", listening));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

function playgroundPage(query) {
  const config = { endpoint, subscriptionEndpoint: socketEndpoint, settings: { "schema.polling.enable": false }, tabs: [{ name: "test", endpoint, query }] };
  return `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="/playground/static/css/middleware.css">
    <div id="root"></div><script src="/playground/static/js/middleware.js"></script>
    <script>addEventListener("load", () => GraphQLPlayground.init(document.getElementById("root"), ${JSON.stringify(config)}))</script>`;
}

const altair = (query) => renderAltair({ baseURL: "/altair/", endpointURL: endpoint, subscriptionsEndpoint: socketEndpoint, subscriptionsProtocol: "graphql-ws", initialSubscriptionRequestHandlerId: "graphql-ws", initialQuery: query });

// open is an IDE with an operation in its editor.
async function open(t, ide, query) {
  const page = await visit(t, browser, "/console/plain", { others: [origin] });
  await page.goto(`${origin}/${ide}/?operation=${encodeURIComponent(query)}`);
  return page;
}

const watch = (namespace) => `subscription Watch { networkChanges(namespace: "${namespace}") { type network { metadata { name } } } }`;
const list = (namespace) => `query List { networks(namespace: "${namespace}") { totalCount nodes { metadata { name } } } }`;

// contains waits until the text of some elements has all of these.
const contains = (page, selector, ...texts) => page.waitForFunction(([selector, all]) => {
  const shown = [...document.querySelectorAll(selector)].map((e) => e.CodeMirror?.getValue() ?? e.textContent).join("\n");
  return all.every((text) => shown.includes(text));
}, [selector, texts]);

const run = async (page) => {
  await page.locator(".graphiql-wrapper.active .CodeMirror").first().click();
  await page.keyboard.press("Control+Enter");
};

test("Playground: a query, with what its schema knows", async (t) => {
  const namespace = newNamespace("ides");
  await create(namespace, "a", "b");
  const page = await open(t, "playground", list(namespace));
  await page.getByText(/^docs$/i).waitFor();
  await run(page);
  await contains(page, ".CodeMirror", '"totalCount": 2', '"name": "b"');
});

test("Playground: a subscription", async (t) => {
  const namespace = newNamespace("ides");
  const page = await open(t, "playground", watch(namespace));
  await run(page);
  await contains(page, ".CodeMirror", '"IN_SYNC"');
  await create(namespace, "a");
  await contains(page, ".CodeMirror", '"ADDED"', '"name": "a"');
});

test("Playground: the documentation and the schema", async (t) => {
  const page = await open(t, "playground", "{ __typename }");
  await page.getByText(/^docs$/i).click();
  await contains(page, "body", "networks(", "createNetwork(", "networkChanges(");
  await page.getByText(/^networks\(/).first().click();
  await contains(page, "body", "NetworkConnection");
  await page.getByText(/^schema$/i).click();
  await contains(page, ".CodeMirror", "type Network implements Node & Resource", "interface Resource", "type Subscription");
});

const answer = "app-query-result .cm-content, app-query-result";

test("Altair: a query", async (t) => {
  const namespace = newNamespace("ides");
  await create(namespace, "a", "b");
  const page = await open(t, "altair", list(namespace));
  await page.getByRole("button", { name: "Send Request" }).click();
  await contains(page, answer, '"totalCount": 2', '"name": "b"');
});

test("Altair: a subscription", async (t) => {
  const namespace = newNamespace("ides");
  const page = await open(t, "altair", watch(namespace));
  await page.getByRole("button", { name: "Send Request" }).click();
  await contains(page, answer, "IN_SYNC");
  await create(namespace, "a");
  await contains(page, answer, "ADDED");
});

test("Altair: the documentation and the schema", async (t) => {
  const page = await open(t, "altair", "{ __typename }");
  await page.locator('[track-id="reload_docs"]').click();
  await page.locator('[track-id="show_docs"]').click();
  const docs = page.locator(".app-doc-viewer");
  await docs.getByText("Query", { exact: true }).first().click();
  await contains(page, ".doc-viewer-items", "networks", "NetworkConnection");
  await docs.getByText("NetworkConnection", { exact: true }).first().click();
  await contains(page, ".doc-viewer-items", "changeCursor");
});
