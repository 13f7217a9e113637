// Pages with Apollo Client and with Relay, as npm has them and with their default caches, in a browser:
// what a page shows of one object is not changed by what it reads of another, nor by a dry run.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { launch, visit } from "./browser.mjs";
import { compile } from "./compile.mjs";
import { data, newNamespace } from "./gateway.mjs";

const clients = ["apollo", "relay"];

let browser;
const scripts = {};
before(async () => {
  const { folder } = await compile("caches", fileURLToPath(new URL("./caches", import.meta.url)));
  await Promise.all(clients.map(async (client) => {
    const outfile = `${folder}/${client}.js`;
    await build({ entryPoints: [`${folder}/src/${client}.jsx`], bundle: true, outfile, jsx: "automatic", target: "es2022", define: { "process.env.NODE_ENV": '"production"' } });
    scripts[client] = await readFile(outfile, "utf8");
  }));
  browser = await launch();
});
after(() => browser?.close());

// Host b is behind host a, and came when the deletion of the key that a relies on was requested.
async function fill(namespace) {
  const host = (name, spec) => data(`mutation ($input: CreateHostInput!) { createHost(input: $input) { clientMutationId } }`, { input: { namespace, name, spec } });
  await data(`mutation ($input: CreateKeyInput!) { createKey(input: $input) { clientMutationId } }`, { input: { namespace, name: "k", spec: { owner: "ada", token: "open sesame" } } });
  await host("a", { title: "first", keyRef: "k", disks: [{ cloudId: "disk-1", size: 10 }] });
  const { deleteKey } = await data(`mutation ($input: DeleteKeyInput!) { deleteKey(input: $input) { state } }`, { input: { namespace, name: "k" } });
  assert.equal(deleteKey.state, "PENDING");
  await host("b", { title: "second", keyRef: "k", behindRef: "a", disks: [{ cloudId: "disk-1", size: 20 }] });
}

const rows = ["a: first; disk-1 10", "b: second; disk-1 20", "2 in all"];

for (const client of clients) {
  // Visitor looks at the page of a client.
  class Visitor {
    static async open(t) {
      const namespace = newNamespace(`caches-${client}`);
      await fill(namespace);
      const page = await visit(t, browser, `/page?namespace=${namespace}`, {
        prepare: (page) => page.route("**/page*", (route) => route.fulfill({ contentType: "text/html", body: `<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script>${scripts[client].replaceAll("</script", "<\\/script")}</script>` })),
      });
      const visitor = new Visitor(page, namespace);
      await visitor.list().filter({ hasText: "in all" }).waitFor();
      return visitor;
    }

    constructor(page, namespace) {
      this.page = page;
      this.namespace = namespace;
    }

    list() { return this.page.getByRole("list", { name: "Hosts" }); }

    rows() { return this.list().locator("li").allTextContents(); }

    id(name) { return this.list().locator("li", { hasText: `${name}:` }).getAttribute("data-id"); }

    ask(title, section, props) { return this.page.evaluate((args) => window.ask(...args), [title, section, props]); }

    // said is what a section shows once it shows something.
    async said(title) {
      const section = this.page.getByRole("region", { name: title });
      await section.filter({ hasText: /./ }).waitFor();
      return section.textContent();
    }

    // record is what the cache has under the identity of a resource.
    async record(id) {
      const records = await this.page.evaluate(() => JSON.parse(JSON.stringify(window.records())));
      const found = records[id] ?? Object.entries(records).find(([name]) => name.endsWith(`:${id}`))?.[1];
      assert.ok(found, `${id} is in none of ${Object.keys(records)}`);
      return { found, identities: Object.keys(records).filter((name) => name.includes(id)) };
    }
  }

  test(`${client}: objects with equal ids in the cloud are shown as they are`, async (t) => {
    const visitor = await Visitor.open(t);
    assert.deepEqual(await visitor.rows(), rows);
  });

  test(`${client}: a target that two resources share is shown with the state that it has for each`, async (t) => {
    const visitor = await Visitor.open(t);
    const states = { "Needs of a": "k spec.keyRef BOUND", "Needs of b": "a spec.behindRef BOUND, k spec.keyRef DELETING" };
    const trees = { "Tree of a": "k 1 BOUND", "Tree of b": "a 1 BOUND, k 1 DELETING, k 2 BOUND" };
    for (const name of ["a", "b"]) await visitor.ask(`Needs of ${name}`, "Needs", { name });
    for (const name of ["a", "b"]) await visitor.ask(`Tree of ${name}`, "Tree", { id: await visitor.id(name) });
    const sorted = (text) => text.split(", ").sort().join(", ");
    for (const [title, want] of Object.entries({ ...states, ...trees })) assert.equal(sorted(await visitor.said(title)), want, title);
    // Again, now that all answers are in the cache.
    for (const [title, want] of Object.entries({ ...states, ...trees })) assert.equal(sorted(await visitor.said(title)), want, title);
    assert.deepEqual(await visitor.rows(), rows);
  });

  test(`${client}: revealed values stay out of what the cache has of the resource`, async (t) => {
    const visitor = await Visitor.open(t);
    const { id } = (await data(`query ($namespace: String!) { key(namespace: $namespace, name: "k") { id } }`, { namespace: visitor.namespace })).key;
    await visitor.ask("Key", "Key", { name: "k" });
    assert.equal(await visitor.said("Key"), "k of ada");
    const before = await visitor.record(id);
    await visitor.ask("Values", "Reveal", { name: "k" });
    assert.equal(await visitor.said("Values"), "spec.token open sesame");
    assert.equal(await visitor.said("Key"), "k of ada");
    assert.deepEqual(await visitor.record(id), before);
    assert.doesNotMatch(JSON.stringify(before), /sesame/);
  });

  test(`${client}: a dry run shows its preview and changes nothing else on the page`, async (t) => {
    const visitor = await Visitor.open(t);
    const id = await visitor.id("a");
    const record = await visitor.record(id);
    const { revision } = (await data(`query ($id: ID!) { node(id: $id) { ... on Host { metadata { revision } } } }`, { id })).node.metadata;
    const asked = [
      ["create", { name: "c", spec: { title: "third" } }, 'null, would be c {"title":"third"}'],
      ["update", { name: "a", expectedRevision: revision, spec: { title: "changed" } }, 'null, would be a {"title":"changed"}'],
      ["remove", { name: "b" }, 'null, would be b {"behindRef":"a"'],
    ];
    for (const [verb, input, want] of asked) {
      await visitor.ask(verb, "Dry", { verb, input });
      await visitor.page.getByRole("button", { name: verb }).click();
      const section = visitor.page.getByRole("region", { name: verb }).filter({ hasText: "would be" });
      await section.waitFor();
      assert.ok((await section.textContent()).startsWith(want), `${verb}: ${await section.textContent()}`);
      assert.deepEqual(await visitor.rows(), rows, verb);
      assert.deepEqual(await visitor.record(id), record, verb);
    }
  });
}
