import assert from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import test, { after, before } from "node:test";
import { GraphiQL, Plain, launch, visit } from "./browser.mjs";
import { create, setMTU } from "./gateway.mjs";
import { snippets } from "./guide.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

let names = 0;
const newName = () => `browser-${++names}`;

for (const Page of [GraphiQL, Plain]) {
  async function open(t, options) {
    const page = new Page(await visit(t, browser, Page.path, options));
    await page.ready();
    return page;
  }

  test(`${Page.name}: a query, a mutation, and a subscription that shows the change`, async (t) => {
    const watcher = await open(t), writer = await open(t);
    assert.equal(await watcher.page.locator("#session").innerText(), "anonymous");
    await watcher.run();
    await watcher.shows('"totalCount"', '"hasNextPage"');

    await watcher.example("NetworkChanges");
    await watcher.run();
    await watcher.shows('"IN_SYNC"');

    const name = newName();
    await writer.example("CreateNetwork");
    await writer.variables({ name });
    await writer.run();
    await writer.shows('"createNetwork"', `"${name}"`);
    await watcher.shows('"ADDED"', `"${name}"`);

    await watcher.stop();
    await watcher.example("Networks");
    await watcher.run();
    await watcher.shows('"totalCount"', `"${name}"`);
  });

  test(`${Page.name}: a subscription goes on from its cursor after the connection was lost`, async (t) => {
    const name = newName();
    await create("default", name);
    let cut;
    const requests = [];
    const page = await open(t, {
      prepare: (page) => page.routeWebSocket(/graphql$/, (socket) => {
        const gateway = socket.connectToServer();
        let lost = false;
        gateway.onMessage((message) => { if (!lost) socket.send(message); });
        socket.onMessage((message) => {
          const { type, payload } = JSON.parse(message);
          if (type === "subscribe") requests.push(payload.variables?.after ?? null);
          gateway.send(message);
        });
        cut = async () => {
          cut = null;
          lost = true; // the change comes while nothing reaches the page
          await setMTU("default", name, 1234);
          await socket.close({ code: 1012 });
          await gateway.close();
        };
      }),
    });
    await page.example("NetworkChanges");
    await page.run();
    await page.shows('"IN_SYNC"', `"${name}"`);
    await cut();
    await page.shows('"MODIFIED"', "1234");
    assert.equal(requests.length, 2);
    assert.equal(requests[0], null);
    assert.ok(requests[1], "the second request has a cursor");
  });

  test(`${Page.name}: a query that is answered UNAVAILABLE is sent again when the gateway says, a mutation is not`, async (t) => {
    const times = [];
    const name = newName();
    const page = await open(t, {
      expected: /503/,
      prepare: (page) => page.route("**/graphql", (route) => {
        if (!/query Networks|CreateNetwork/.test(route.request().postData() ?? "")) return route.fallback();
        times.push(Date.now());
        if (times.length === 2) return route.fallback();
        const body = JSON.stringify({ errors: [{ message: "busy", extensions: { code: "UNAVAILABLE", retryable: true } }] });
        return route.fulfill({ status: 503, headers: { "retry-after": "1" }, contentType: "application/json", body });
      }),
    });
    await page.run();
    await page.shows('"totalCount"');
    assert.equal(times.length, 2);
    assert.ok(times[1] - times[0] >= 1000, `after ${times[1] - times[0]} ms`);
    await page.example("CreateNetwork");
    await page.variables({ name });
    await page.run();
    await page.shows("busy");
    assert.equal(times.length, 3);
  });

  test(`${Page.name}: errors of a request are shown`, async (t) => {
    const page = await open(t);
    await page.example("CreateNetwork");
    await page.variables({ name: "NOT A NAME" });
    await page.run();
    await page.shows('"errors"', '"code"');
  });
}

test("GraphiQL: completion, documentation, history, examples and dialogs", async (t) => {
  const page = await visit(t, browser, "/");
  const graphiql = new GraphiQL(page);
  await graphiql.ready();
  await graphiql.run();
  await graphiql.shows('"totalCount"');

  await page.click('button[aria-label="Show Documentation Explorer"]');
  await page.click('.graphiql-doc-explorer a:text-is("Query")');
  await page.waitForSelector('.graphiql-doc-explorer a:text-is("networks")');

  await page.click('button[aria-label="Show History"]');
  await page.waitForSelector('.graphiql-history-item:has-text("Networks")');

  await page.click('button[aria-label="Show Examples"]');
  await page.click('.sluice-examples button:text-is("What kinds there are")');
  await page.waitForSelector('.graphiql-tab-active:has-text("Kinds")');
  await graphiql.run();
  await graphiql.shows('"SecurityGroup"');

  await page.evaluate(() => {
    const editor = document.querySelector(".graphiql-query-editor .CodeMirror").CodeMirror;
    editor.setValue("{ netw }");
    editor.setCursor(0, 6);
    editor.focus();
  });
  await page.keyboard.press("Control+Space");
  await page.waitForSelector('.CodeMirror-hint:has-text("networks")');
  await page.keyboard.press("Escape");

  for (const dialog of ["Open short keys dialog", "Open settings dialog"]) {
    await page.click(`button[aria-label="${dialog}"]`);
    await page.waitForSelector(".graphiql-dialog");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".graphiql-dialog", { state: "detached" });
  }

  // Two operations: the button becomes a menu.
  await page.evaluate(() => document.querySelector(".graphiql-query-editor .CodeMirror").CodeMirror.setValue("query One { __typename } query Two { kinds { name } }"));
  await page.click('.graphiql-execute-button[aria-haspopup="menu"]');
  await page.click('[role="menuitem"]:text-is("Two")');
  await graphiql.shows('"Network"');
});

test("Plain: the operation at the text cursor is the one that runs", async (t) => {
  const page = await visit(t, browser, Plain.path);
  const plain = new Plain(page);
  await plain.ready();
  const text = '# query Zero {\nquery One { one: kinds { name } n: __type(name: "}{") { name } }\nfragment F on Query { __typename }\nquery Two { two: __typename ...F }';
  await page.getByLabel("Operation").fill(text);
  await page.getByLabel("Variables").fill("");
  for (const [word, shown] of [["Two", '"two"'], ["One", '"one"'], ["...F", '"two"']]) {
    await page.evaluate((at) => document.getElementById("query").setSelectionRange(at, at), text.indexOf(word));
    await page.getByRole("button", { name: "Run" }).click();
    await plain.shows(shown);
  }
});

test("the browser's own EventSource gets events with cursors, and the end of a stream", async (t) => {
  const page = await visit(t, browser, Plain.path);
  const requests = [];
  page.on("request", (request) => request.resourceType() === "eventsource" && requests.push(request.url()));
  const name = newName();
  await page.evaluate(() => {
    const query = "subscription { networkChanges { type cursor network { metadata { name } } } }";
    window.seen = [];
    window.source = new EventSource(`/graphql?query=${encodeURIComponent(query)}`);
    source.addEventListener("next", (event) => {
      const change = JSON.parse(event.data).data.networkChanges;
      seen.push([change.type, change.network?.metadata.name, event.lastEventId === change.cursor].join(" "));
    });
  });
  const has = (text) => page.waitForFunction((text) => window.seen.some((s) => s === text), text);
  await has("IN_SYNC  true");
  await create("default", name);
  await has(`ADDED ${name} true`);
  await page.evaluate(() => source.close());

  const completed = page.evaluate(() => new Promise((resolve) => {
    const source = new EventSource(`/graphql?query=${encodeURIComponent("subscription { nothing }")}`);
    source.addEventListener("complete", () => { source.close(); resolve("complete"); });
    source.onerror = () => resolve("error");
  }));
  assert.equal(await completed, "complete");
  assert.equal(requests.length, 2);
});

test("the EventSource of docs/clients.md logs changes", async (t) => {
  const page = await visit(t, browser, "/console/plain");
  const { "events/page.js": code } = await snippets();
  const logged = [];
  let heard = () => {};
  page.on("console", async (message) => {
    logged.push(await message.args()[0]?.jsonValue());
    heard();
  });
  const logs = (holds) => new Promise((resolve) => { heard = () => logged.some(holds) && resolve(); heard(); });
  await page.evaluate(code);
  await logs((event) => event?.data?.networkChanges.type === "IN_SYNC");
  const name = newName();
  await create("default", name);
  await logs((event) => event?.data?.networkChanges.network?.metadata.name === name);
});

test("pages fit wide and narrow windows, light and dark", async (t) => {
  const folder = process.env.SLUICE_SCREENSHOTS ?? await mkdtemp(`${tmpdir()}/sluice-screenshots-`);
  for (const Page of [GraphiQL, Plain]) {
    for (const colorScheme of ["light", "dark"]) {
      for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 844 }]) {
        const page = new Page(await visit(t, browser, Page.path, { colorScheme, viewport }));
        await page.ready();
        await page.run();
        await page.shows('"totalCount"');
        const { wide, dark } = await page.page.evaluate(() => ({
          wide: document.documentElement.scrollWidth - innerWidth,
          dark: matchMedia("(prefers-color-scheme: dark)").matches,
        }));
        assert.ok(wide <= 0, `${Page.name} at ${viewport.width}: ${wide} pixels too wide`);
        assert.equal(dark, colorScheme === "dark");
        await page.page.screenshot({ path: `${folder}/${Page.name}-${colorScheme}-${viewport.width}.png` });
      }
    }
  }
  t.diagnostic(`screenshots are in ${folder}`);
});
