// A browser that can reach the gateway and nothing else, and what is on its pages.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { base, patience } from "./gateway.mjs";

// launch starts Debian's Chromium for one file of tests.
export function launch() {
  return chromium.launch({
    executablePath: process.env.SLUICE_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
}

// visit opens a page of a new visitor. A request to another host, an error of the page
// or a breach of its Content-Security-Policy fails the test. The origins of options.others may be
// asked as well, whatever they answer, and console errors that options.expected matches are none.
export async function visit(t, browser, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const wrong = [];
  const others = options.others ?? [];
  const tolerated = (message) => options.expected?.test(message.text()) || others.some((origin) => message.location().url.startsWith(`${origin}/`));
  const watch = (page) => {
    page.setDefaultTimeout(patience);
    page.on("pageerror", (error) => wrong.push(`page error: ${error.message}`));
    page.on("console", (message) => message.type() === "error" && !tolerated(message) && wrong.push(`console: ${message.text()}`));
  };
  context.on("page", watch);
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== base && !others.includes(url.origin)) wrong.push(`request to ${url.origin}`);
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  const page = await context.newPage();
  await options.prepare?.(page);
  await page.goto(base + path);
  return page;
}

// GraphiQL is what a person does on that page.
export class GraphiQL {
  static path = "/";

  constructor(page) {
    this.page = page;
  }

  ready() {
    return this.page.waitForSelector(".graphiql-query-editor .CodeMirror-code");
  }

  // example shows the tab of an operation that the page opens with.
  async example(operation) {
    await this.page.click(`.graphiql-tab-button:text-is("${operation}")`);
    await this.page.waitForFunction((text) => document.querySelector(".graphiql-query-editor .CodeMirror").CodeMirror.getValue().includes(text), ` ${operation}(`);
  }

  variables(value) {
    return this.page.evaluate((text) => document.querySelector(".graphiql-editor-tool .CodeMirror").CodeMirror.setValue(text), JSON.stringify(value));
  }

  async run() {
    await this.page.click('button[aria-label^="Execute query"]');
  }

  async stop() {
    await this.page.click('button[aria-label^="Stop query"]');
  }

  shows(...texts) {
    return this.page.waitForFunction((all) => {
      const shown = document.querySelector(".graphiql-response .CodeMirror")?.CodeMirror.getValue() ?? "";
      return all.every((text) => shown.includes(text));
    }, texts);
  }
}

// Plain is what a person does on the page that stands in for GraphiQL.
export class Plain {
  static path = "/console/plain";

  static titles = { Networks: "List networks, a page at a time", CreateNetwork: "Create a network", NetworkChanges: "Watch networks: the state, then every change" };

  constructor(page) {
    this.page = page;
  }

  ready() {
    return this.page.waitForFunction(() => document.getElementById("query").value !== "");
  }

  example(operation) {
    return this.page.getByLabel("Example").selectOption(Plain.titles[operation]);
  }

  variables(value) {
    return this.page.getByLabel("Variables").fill(JSON.stringify(value));
  }

  async run() {
    await this.page.getByLabel("Operation").press("Control+Enter");
  }

  async stop() {
    await this.page.getByRole("button", { name: "Stop" }).click();
    await this.page.getByRole("status").filter({ hasText: "stopped" }).waitFor();
  }

  shows(...texts) {
    return this.page.waitForFunction((all) => {
      const shown = document.getElementById("answer").textContent;
      return all.every((text) => shown.includes(text));
    }, texts);
  }
}
