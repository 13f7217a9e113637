// The gateway's own page, and one of another origin, behind a proxy that ends TLS.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { chromium } from "playwright-core";
import { base, patience, within } from "./gateway.mjs";

const own = `https://gateway.test:${process.env.SLUICE_TLS}`;
const other = `https://other.test:${process.env.SLUICE_PAGES}`;

let browser, caddy, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "caddy"));
  await writeFile(join(folder, "Caddyfile"), `{
	admin off
	auto_https disable_redirects
	local_certs
	skip_install_trust
}
${own} {
	reverse_proxy ${new URL(base).host}
}
${other} {
	header Content-Type text/html
	respond "<!doctype html><title>other</title>"
}
`);
  caddy = spawn(process.env.SLUICE_CADDY, ["run", "--adapter", "caddyfile", "--config", join(folder, "Caddyfile")], {
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  await within(new Promise((serves, fails) => {
    caddy.stderr.on("data", (text) => { if ((said += text).includes("serving initial configuration")) serves(); });
    caddy.on("exit", (code) => fails(new Error(`caddy ended with ${code}: ${said}`)));
  }), "Caddy");
  browser = await chromium.launch({
    executablePath: process.env.SLUICE_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
});
after(async () => {
  await browser?.close();
  if (caddy?.exitCode === null) {
    const ended = new Promise((resolve) => caddy.once("exit", resolve));
    caddy.kill();
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
});

async function open(t, address) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  await page.goto(address);
  return page;
}

// The three ways to the API, each with the address of the gateway. They return "served", or how they end otherwise.
const ways = {
  fetch: async (gateway) => {
    const response = await fetch(`${gateway}/graphql`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query: "{ networks { totalCount } }" }),
    }).catch(() => undefined);
    return response === undefined ? "refused" : (await response.json()).data ? "served" : `answered ${response.status}`;
  },
  EventSource: (gateway) => new Promise((resolve) => {
    const query = "subscription { networkChanges(snapshot: true) { type } }";
    const source = new EventSource(`${gateway}/graphql?query=${encodeURIComponent(query)}`);
    source.addEventListener("next", () => { source.close(); resolve("served"); });
    source.onerror = () => { source.close(); resolve("refused"); };
  }),
  WebSocket: (gateway) => new Promise((resolve) => {
    const socket = new WebSocket(`${gateway.replace("https", "wss")}/graphql`, "graphql-transport-ws");
    socket.onopen = () => socket.send('{"type":"connection_init"}');
    socket.onmessage = () => { socket.close(); resolve("served"); };
    socket.onerror = () => resolve("refused");
  }),
};

for (const [name, way] of Object.entries(ways)) {
  test(`${name}: the gateway's own page is served, one of another origin is not`, async (t) => {
    const page = await open(t, own);
    assert.equal(await within(page.evaluate(way, own), name), "served");
    const foreign = await open(t, other);
    assert.equal(await within(foreign.evaluate(way, own), name), "refused");
  });
}
