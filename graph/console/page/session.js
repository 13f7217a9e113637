// Who the page asks as. The credential is in memory and nowhere else: a login, or a token that somebody pastes.
"use strict";
(() => {
  const { login } = window.sluice;
  const at = (id) => document.getElementById(id);

  // data is what the gateway tells about itself: endpoint, version, store, examples; and who asks: viewer.
  const data = {};
  // credential has the token that is sent, and perhaps renew and revoke; see login.js.
  let credential = { token: "" };
  let timer, renewing = null, asking = null, answer;

  // send is fetch with the credential, unless headers have another one.
  const send = (url, { headers, ...rest } = {}) => fetch(url, { ...rest, headers: authorized(headers) });

  const hasOwn = (headers = {}) => Object.keys(headers).some((name) => name.toLowerCase() === "authorization");

  function authorized(headers = {}, { token } = credential) {
    return token === "" || hasOwn(headers) ? headers : { ...headers, authorization: `Bearer ${token}` };
  }

  // use makes a credential the one of the page, if the gateway accepts it.
  async function use(next) {
    const response = await fetch("/console/data", { headers: authorized({}, next) });
    const told = await response.json().catch(() => null);
    if (!response.ok) throw new Error(told?.errors?.[0]?.message ?? `the gateway answered ${response.status}`);
    credential = next;
    Object.assign(data, told);
    const { name, groups, expiresAt } = data.viewer;
    at("viewer").textContent = [name, groups.join(" "), expiresAt && `until ${new Date(expiresAt).toLocaleString()}`].filter(Boolean).join(" · ");
    at("logout").hidden = next.token === "";
    at("login").hidden = true;
    answer?.();
    clearTimeout(timer);
    if (next.renew && next.seconds > 0) timer = setTimeout(renew, Math.min(next.seconds * 800, 2 ** 31 - 1));
  }

  // renew tells whether the issuer gave another credential. A refresh token may be good for one use, so two
  // never ask at once.
  function renew() {
    renewing ??= (async () => {
      try {
        const next = await credential.renew();
        credential.renew = next.renew;
        await use(next);
        return true;
      } catch {
        return false;
      } finally {
        renewing = null;
      }
    })();
    return renewing;
  }

  // renewed waits until the page has another token than the one that was not accepted.
  async function renewed(token, why) {
    if (token !== credential.token || credential.renew && await renew()) return;
    await ask(why);
  }

  // ask shows the form, and waits until somebody is logged in.
  function ask(why) {
    asking ??= new Promise((resolve) => { answer = resolve; }).finally(() => { asking = null; });
    at("why").textContent = why;
    at("viewer").textContent = "not logged in";
    at("logout").hidden = true;
    at("login").hidden = false;
    return asking;
  }

  at("login").addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = at("token").value.trim().replace(/^bearer\s+/i, "");
    at("token").value = "";
    if (!/^[\x21-\x7e]+$/.test(token)) {
      at("why").textContent = "a token is one word of ASCII characters";
      return;
    }
    await use({ token }).catch((error) => { at("why").textContent = error.message; });
  });
  at("logout").addEventListener("click", () => {
    credential.revoke?.();
    location.reload(); // which forgets everything, and closes the sockets
  });

  async function start() {
    try {
      const { issuers } = await (await fetch("/login")).json();
      at("issuers").replaceChildren(...issuers.map((issuer) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = `Log in at ${issuer.name}`;
        button.addEventListener("click", () => login.begin(issuer).catch((error) => { at("why").textContent = error.message; }));
        return button;
      }));
      await use(await login.finish(issuers) ?? credential);
    } catch (error) {
      await ask(error.message);
    }
    return data;
  }

  Object.assign(window.sluice, { data, ready: start(), session: { send, authorized, hasOwn, renewed, token: () => credential.token } });
})();
