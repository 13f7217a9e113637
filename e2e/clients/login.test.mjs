// The page of a gateway that needs a credential: logins, tokens, and what happens when they end.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import test, { after, before } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { GraphiQL, Plain, launch, visit } from "./browser.mjs";
import { base, create, within } from "./gateway.mjs";

// The file of tokens, the token that is in it at first, and the issuer with the port that steers it.
const { SLUICE_TOKENS: file, SLUICE_TOKEN: ci, SLUICE_ISSUER: issuer, SLUICE_ISSUER_CONTROL: control } = process.env;

let browser;
const lines = new Map();
before(async () => {
  browser = await launch();
  lines.set("ci", await readFile(file, "utf8"));
});
after(() => browser?.close());

async function writeTokens() {
  await writeFile(`${file}.new`, [...lines.values()].join(""), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

// until waits until the gateway accepts a token, or accepts it no more.
const until = (accepted, token) => within((async () => {
  for (;;) {
    const response = await fetch(`${base}/console/data`, { headers: { authorization: `Bearer ${token}` } });
    await response.arrayBuffer();
    if (response.ok === accepted) return;
    await pause(50);
  }
})(), "the change of the tokens");

// addToken makes a token that the gateway knows once this returns.
async function addToken(name) {
  const token = `sluice_${randomBytes(32).toString("base64url")}`;
  lines.set(name, `${name} sha256:${createHash("sha256").update(token).digest("hex")} - -\n`);
  await writeTokens();
  await until(true, token);
  return token;
}

async function revoke(name) {
  lines.delete(name);
  await writeTokens();
}

// setLifetime is how long tokens that the issuer gives from now on are valid.
const setLifetime = (lifetime) => fetch(`${control}/set?lifetime=${lifetime}`, { method: "POST" });

let names = 0;
const newName = () => `login-${++names}`;

for (const Page of [GraphiQL, Plain]) {
  const open = (t, options) => visit(t, browser, Page.path, { others: [issuer], expected: /status of 401/, ...options });

  const field = (page) => page.getByLabel("Token", { exact: true });
  const viewer = (page) => page.locator("#viewer");
  const asks = (page, why) => page.getByRole("form", { name: "Log in" }).getByRole("alert").filter({ hasText: why }).waitFor();

  async function paste(page, token) {
    await field(page).fill(token);
    await page.getByRole("button", { name: "Use the token" }).click();
  }

  async function logIn(page, user = "alice") {
    await page.getByRole("button", { name: "Log in at corp" }).click();
    await page.waitForURL((url) => url.origin === issuer);
    await page.getByLabel("User").fill(user);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.waitForURL((url) => url.origin === base);
  }

  // kept is all that the browser keeps of the page, and its address.
  const kept = (page) => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state]));

  test(`${Page.name}: a token that is pasted, and what keeps it`, async (t) => {
    const page = await open(t);
    await asks(page, "a credential is needed");
    assert.doesNotMatch(await page.content(), /[Nn]etworks|CodeMirror/);
    for (const [wrong, why] of [[`${ci}x`, "the token is not known, or was revoked"], ["two words", "one word"], ["x", "none that this gateway knows"]]) {
      await paste(page, wrong);
      await asks(page, why);
      assert.equal(await field(page).inputValue(), "");
      assert.doesNotMatch(await page.content(), /[Nn]etworks|CodeMirror/);
    }
    await paste(page, ` Bearer ${ci} `);
    await viewer(page).filter({ hasText: /^token:ci · token:ops token:dev · until .*2099/ }).waitFor();
    assert.equal(await page.getByRole("form", { name: "Log in" }).isVisible(), false);
    const shown = new Page(page);
    await shown.ready();
    await shown.run();
    await shown.shows('"totalCount"');
    assert.ok(!(await kept(page)).includes(ci.slice(7)), "the token is kept");
    assert.ok(!(await page.content()).includes(ci.slice(7)), "the token is on the page");

    // A credential in the headers of one request is not the page's.
    const answers = await page.evaluate(async () => {
      const query = "subscription { networkChanges { cursor } }", headers = { AUTHORIZATION: "Bearer other" };
      const { errors } = await sluice.post({ query: "{ kinds { name } }" }, { headers });
      return [errors[0].extensions.code, await new Promise((error) => sluice.subscribe({ query }, { error: (e) => error(e.message) }, { headers }))];
    });
    assert.match(answers.join(), /^UNAUTHENTICATED,the connection was closed \(4403: UNAUTHENTICATED: /);
    assert.equal(await page.getByRole("form", { name: "Log in" }).isVisible(), false);

    await page.getByRole("button", { name: "Log out" }).click();
    await asks(page, "a credential is needed");
    assert.doesNotMatch(await page.content(), /[Nn]etworks|CodeMirror/);
  });

  test(`${Page.name}: a login at an issuer`, async (t) => {
    const page = await open(t);
    const sent = [];
    page.on("request", (request) => sent.push([request.url(), request.postData() ?? ""]));
    await asks(page, "a credential is needed");
    await logIn(page);
    await viewer(page).filter({ hasText: /^oidc:corp:alice · oidc:corp:dev oidc:corp:ops · until / }).waitFor();
    assert.equal(page.url(), base + Page.path);

    const asked = new URL(sent.find(([url]) => url.includes("code_challenge="))[0]).searchParams;
    assert.equal(asked.get("code_challenge_method"), "S256");
    assert.equal(asked.get("redirect_uri"), base + Page.path);
    const form = new URLSearchParams(sent.find(([, body]) => body.includes("authorization_code"))[1]);
    assert.equal(createHash("sha256").update(form.get("code_verifier")).digest("base64url"), asked.get("code_challenge"));
    assert.equal(form.get("client_secret"), null);
    assert.ok(asked.get("state").length >= 43 && asked.get("nonce").length >= 43 && asked.get("state") !== asked.get("nonce"));

    const shown = new Page(page);
    await shown.ready();
    await shown.run();
    await shown.shows('"totalCount"');
    const storage = await kept(page);
    for (const secret of ["code_verifier", "code"].map((name) => form.get(name)).concat(asked.get("state"), asked.get("nonce"), "eyJ", "sluice-login")) {
      assert.ok(!storage.includes(secret), `${secret} is kept`);
    }

    const revocation = page.waitForRequest((request) => request.url().startsWith(issuer) && (request.postData() ?? "").includes("token_type_hint=refresh_token"));
    await page.getByRole("button", { name: "Log out" }).click();
    await revocation;
    await asks(page, "a credential is needed");
  });

  test(`${Page.name}: a proxy says who asks`, async (t) => {
    const page = await open(t, { extraHTTPHeaders: { "X-Forwarded-User": "bob", "X-Forwarded-Groups": "dev" } });
    const shown = new Page(page);
    await shown.ready();
    assert.equal(await page.locator("#session").innerText(), "proxy:bob · proxy:dev");
    await shown.run();
    await shown.shows('"totalCount"');
  });

  test(`${Page.name}: a login that cannot begin`, async (t) => {
    for (const [why, prepare] of [
      ["browsers allow logins on pages of HTTPS only", (page) => page.addInitScript(() => Object.defineProperty(crypto, "subtle", { value: undefined }))],
      ["corp: it cannot be reached from this page", (page) => page.route(`${issuer}/.well-known/**`, (route) => route.abort())],
      ["corp: it names itself https://other.example.com", (page) => page.route(`${issuer}/.well-known/**`, (route) => route.fulfill({ headers: { "access-control-allow-origin": "*" }, json: { issuer: "https://other.example.com" } }))],
    ]) {
      const page = await open(t, { prepare });
      await asks(page, "a credential is needed");
      await page.getByRole("button", { name: "Log in at corp" }).click();
      await asks(page, why);
    }
  });

  test(`${Page.name}: an answer of an issuer that belongs to no login of the page`, async (t) => {
    const page = await open(t);
    await asks(page, "a credential is needed");
    for (const answer of ["?code=c&state=s", "?error=e&error_description=call+555&state=s", "?code=c", "?state="]) {
      await page.goto(base + Page.path + answer);
      await asks(page, "belongs to no login of this page");
      assert.equal(page.url(), base + Page.path);
    }
    for (const [member, why] of [["state", "belongs to no login of this page"], ["nonce", "the token is of another login"], ["verifier", "corp: "]]) {
      const other = await open(t);
      await asks(other, "a credential is needed");
      await other.addInitScript((member) => {
        const pending = JSON.parse(sessionStorage.getItem("sluice-login"));
        if (pending && location.search) sessionStorage.setItem("sluice-login", JSON.stringify({ ...pending, [member]: "another" }));
      }, member);
      await logIn(other);
      await asks(other, why);
      assert.equal(other.url(), base + Page.path);
      assert.equal(await viewer(other).textContent(), "not logged in");
    }
  });

  test(`${Page.name}: a token that is revoked while a stream runs`, async (t) => {
    const [first, second] = [await addToken(`${Page.name}-first`), await addToken(`${Page.name}-second`)];
    const page = await open(t);
    await paste(page, first);
    const shown = new Page(page);
    await shown.ready();
    await shown.example("NetworkChanges");
    await shown.run();
    await shown.shows('"IN_SYNC"');
    await revoke(`${Page.name}-first`);
    await asks(page, "the credential was revoked");
    assert.equal(await viewer(page).textContent(), "not logged in");
    const name = newName();
    await create("default", name);
    await paste(page, second);
    await viewer(page).filter({ hasText: `token:${Page.name}-second` }).waitFor();
    await shown.shows('"ADDED"', `"${name}"`);

    // A query waits as well.
    await shown.stop();
    await revoke(`${Page.name}-second`);
    await until(false, second);
    await shown.example("Networks");
    await shown.run();
    await asks(page, "the token is not known, or was revoked");
    await paste(page, ci);
    await shown.shows('"totalCount"', `"${name}"`);
  });

  test(`${Page.name}: a login is renewed before it ends, and a stream goes on`, async (t) => {
    await setLifetime("6s");
    t.after(() => setLifetime("1h"));
    const sockets = [];
    const page = await open(t, { prepare: (page) => page.on("websocket", (socket) => sockets.push(new Promise((closed) => socket.on("close", closed)))) });
    await logIn(page, "bob");
    await viewer(page).filter({ hasText: "oidc:corp:bob" }).waitFor();
    const shown = new Page(page);
    await shown.ready();
    await shown.example("NetworkChanges");
    await shown.run();
    await shown.shows('"IN_SYNC"');
    await page.waitForResponse((response) => (response.request().postData() ?? "").includes("grant_type=refresh_token"));
    await within(sockets[0], "the end of the first token");
    const name = newName();
    await create("default", name);
    await shown.shows('"ADDED"', `"${name}"`);
    assert.equal(await page.getByRole("form", { name: "Log in" }).isVisible(), false);
    assert.ok(sockets.length > 1);
  });

  test(`${Page.name}: a login that the issuer does not renew`, async (t) => {
    await setLifetime("6s");
    t.after(() => setLifetime("1h"));
    let token;
    const page = await open(t, {
      prepare: (page) => page.route(`${issuer}/**/token`, async (route) => {
        if (route.request().postData()?.includes("grant_type=refresh_token")) {
          return route.fulfill({ status: 400, headers: { "access-control-allow-origin": "*" }, json: { error: "invalid_grant" } });
        }
        const response = await route.fetch();
        token = (await response.json()).id_token;
        await route.fulfill({ response });
      }),
    });
    await logIn(page);
    await viewer(page).filter({ hasText: "oidc:corp:alice" }).waitFor();
    const shown = new Page(page);
    await shown.ready();
    await until(false, token);
    await shown.run();
    await asks(page, "the credential has expired");
    await setLifetime("1h");
    await logIn(page, "bob");
    await viewer(page).filter({ hasText: "oidc:corp:bob" }).waitFor();
  });
}
