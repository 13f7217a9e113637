// The React example in a browser: what it shows, edits and settles, whoever writes beside it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { launch } from "./browser.mjs";
import { base, create, data, patience, setMTU, spec, within, workFolder } from "./gateway.mjs";

// SLUICE_PAGES is the port of the page; the gateway allows its origin.
const port = Number(process.env.SLUICE_PAGES);
const example = fileURLToPath(new URL("../../examples/react", import.meta.url));
const axe = await readFile(fileURLToPath(new URL("./node_modules/axe-core/axe.min.js", import.meta.url)), "utf8");
const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };

let browser, server;
before(async () => {
  const folder = await workFolder("example");
  await promisify(execFile)(process.execPath, ["build.mjs"], { cwd: example, env: { ...process.env, SLUICE_SERVER: base, OUTFILE: `${folder}/app.js` }, timeout: 3 * patience });
  server = createServer(async (request, response) => {
    const path = request.url === "/" ? "/index.html" : request.url;
    const file = await readFile(path === "/app.js" ? `${folder}/app.js` : `${example}/public${path}`).catch(() => null);
    response.writeHead(file ? 200 : 404, { "content-type": types[extname(path)] ?? "text/plain" }).end(file);
  });
  await new Promise((listening) => server.listen(port, "127.0.0.1", listening));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

// open is the page of a new visitor; an error of the page fails the test.
async function open(t, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const wrong = [];
  page.setDefaultTimeout(patience);
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.getByRole("status").filter({ hasText: /^Live$/ }).waitFor();
  return page;
}

const row = (page, name) => page.locator(`tr[data-name="${name}"]`);
const shows = (page, name, text) => row(page, name).filter({ hasText: text }).waitFor();
const stored = async (name) => (await data(`query ($name: String!) { network(name: $name) { spec { resource { mtu description adminStateUp } } } }`, { name })).network.spec.resource;

async function describe(name, description, mtu) {
  await data(`mutation ($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { created } }`, { input: { name, spec: { ...spec(mtu), resource: { mtu, description } } } });
}

test("a network that somebody else creates appears, changes and goes away by itself", async (t) => {
  const page = await open(t);
  await create("default", "live-a");
  await shows(page, "live-a", "1500");
  await setMTU("default", "live-a", 1400);
  await shows(page, "live-a", "1400");
  await data(`mutation { deleteNetwork(input: { name: "live-a" }) { state } }`);
  await row(page, "live-a").waitFor({ state: "detached" });
});

test("of many networks fifty are shown, also when some go, and More shows more", async (t) => {
  const many = Array.from({ length: 70 }, (_, n) => `many-${n}`);
  await create("a-window", ...many);
  t.after(() => data(`mutation { ${many.map((name, n) => `m${n}: deleteNetwork(input: { namespace: "a-window", name: "${name}" }) { state }`).join(" ")} }`));
  const page = await open(t);
  const rows = (n) => page.waitForFunction((n) => document.querySelectorAll("tbody tr").length === n, n);
  await rows(50);
  await page.getByText("50 of more").waitFor();
  await data(`mutation { ${many.slice(0, 3).map((name, n) => `m${n}: deleteNetwork(input: { namespace: "a-window", name: "${name}" }) { state }`).join(" ")} }`);
  await row(page, "many-1").waitFor({ state: "detached" });
  await rows(50);
  await create("a-window", ...many.slice(0, 3));
  await page.getByRole("button", { name: "More" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length >= 70);
  await row(page, "many-69").waitFor();
});

test("a network is created and edited", async (t) => {
  const page = await open(t);
  const form = page.getByRole("form", { name: "Create a network" });
  await form.getByLabel("Name").fill("made-here");
  await form.getByLabel("MTU").fill("1450");
  await form.getByRole("button", { name: "Create" }).click();
  await shows(page, "made-here", "1450");
  await page.getByRole("button", { name: "Edit made-here" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit made-here" });
  await dialog.getByLabel("Description").fill("Edited");
  await dialog.getByRole("button", { name: "Save" }).click();
  await shows(page, "made-here", "Edited");
  assert.deepEqual(await stored("made-here"), { mtu: 1450, description: "Edited", adminStateUp: true });

  await form.getByLabel("Name").fill("Not A Name");
  await form.getByRole("button", { name: "Create" }).click();
  await form.getByRole("alert").filter({ hasText: "name" }).waitFor();
});

for (const side of ["Yours", "Theirs"]) {
  test(`a conflict is settled: ${side} holds, and what only one of both changed is kept`, async (t) => {
    const name = `conflict-${side.toLowerCase()}`;
    await describe(name, "before", 1500);
    const page = await open(t);
    await page.getByRole("button", { name: `Edit ${name}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("MTU").fill("1300");
    await dialog.getByRole("checkbox", { name: "Up" }).uncheck();
    await describe(name, "by the second writer", 1200);
    await dialog.getByText("Somebody changed this network").waitFor();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog", { name: `${name} was changed by somebody else` }).waitFor();
    assert.equal(await dialog.getByRole("radio").count(), 2);
    assert.equal(await dialog.getByRole("button", { name: "Save" }).isDisabled(), true);
    await dialog.getByRole("radio", { name: side }).check();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const mtu = side === "Yours" ? 1300 : 1200;
    await shows(page, name, String(mtu));
    assert.deepEqual(await stored(name), { mtu, description: "by the second writer", adminStateUp: false });
  });
}

test("changes of different fields are joined without a question", async (t) => {
  await describe("joined", "before", 1500);
  const page = await open(t);
  await page.getByRole("button", { name: "Edit joined" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("MTU").fill("1300");
  await describe("joined", "theirs", 1500);
  await dialog.getByText("Somebody changed this network").waitFor();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const { mtu, description } = await stored("joined");
  assert.deepEqual([mtu, description], [1300, "theirs"]);
});

test("the switch of a row shows at once, before the gateway has answered, and is taken back if it refuses", async (t) => {
  await create("default", "switch");
  const page = await open(t);
  const box = page.getByRole("switch", { name: "switch is up" });
  let answer;
  await page.route("**/v1/graphql", async (route) => {
    if (!route.request().postData()?.includes("PatchNetwork")) return route.continue();
    if (await new Promise((resolve) => (answer = resolve))) return route.continue();
    await route.fulfill({ contentType: "application/json", headers: { "access-control-allow-origin": "*" }, body: JSON.stringify({ data: null, errors: [{ message: "not today", extensions: { code: "FORBIDDEN" } }] }) });
  });
  const asked = () => within((async () => { while (!answer) await new Promise(setImmediate); })(), "the mutation");
  await box.click();
  await asked();
  assert.equal(await box.isChecked(), false);
  answer(true);
  await page.getByText("switch is down.").waitFor();
  assert.equal((await stored("switch")).adminStateUp, false);
  answer = undefined;
  await box.click();
  await asked();
  assert.equal(await box.isChecked(), true);
  answer(false);
  await page.getByText("not today").waitFor();
  assert.equal(await box.isChecked(), false);
});

test("a page that is loaded again shows what it had at once, and what happened meanwhile", async (t) => {
  await create("default", "reload-a");
  const page = await open(t);
  await shows(page, "reload-a", "1500");
  await page.goto("about:blank");
  await setMTU("default", "reload-a", 1350);
  const documents = [];
  page.on("request", (request) => request.postData() && documents.push(request.postData()));
  await page.goto(`http://127.0.0.1:${port}/`);
  await shows(page, "reload-a", "1350");
  assert.ok(documents.length > 0 && documents.every((text) => text.includes("NetworkChanges")), "the list was read again");
});

test("everything can be done by the keyboard, and the focus comes back", async (t) => {
  await create("default", "keyboard");
  const page = await open(t);
  const edit = page.getByRole("button", { name: "Edit keyboard" });
  await edit.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Edit keyboard" });
  await dialog.waitFor();
  await page.keyboard.type("by keys");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await shows(page, "keyboard", "by keys");
  await edit.focus();
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await edit.evaluate((element) => element === document.activeElement), true);
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [390, 1280]) {
    test(`${colorScheme}, ${width} wide: nothing is cut off, and axe finds no barrier`, async (t) => {
      await describe(`a-name-of-some-length.of-a-zone.${colorScheme}-${width}.example`, "A description that does not fit on one line of a narrow screen", 1500);
      const page = await open(t, { viewport: { width, height: 800 }, colorScheme });
      const name = `a-name-of-some-length.of-a-zone.${colorScheme}-${width}.example`;
      await shows(page, name, "1500");
      const check = async (what) => {
        const { scroll, client, cut } = await page.evaluate(() => ({
          scroll: document.documentElement.scrollWidth,
          client: document.documentElement.clientWidth,
          cut: [...document.querySelectorAll("button, label, h1, h2, time")].filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline").map((e) => e.outerHTML),
        }));
        assert.ok(scroll <= client, `${what}: ${scroll} wide of ${client}`);
        assert.deepEqual(cut, [], what);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run());
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((n) => n.html).join(" ")}`), [], what);
      };
      await check("the list");
      await page.getByRole("button", { name: `Edit ${name}` }).click();
      await page.getByRole("dialog").getByLabel("MTU").fill("1300");
      await check("the form");
      await describe(name, "Another description", 1200);
      await page.getByText("Somebody changed this network").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
      await page.getByText("Which value should hold?").waitFor();
      await check("the conflict");
    });
  }
}
