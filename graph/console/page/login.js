// Logins at an issuer of OpenID Connect, as a public client: the authorization code flow with PKCE
// (RFC 6749, 4.1; RFC 7636; OpenID Connect Core, 3.1), in the page's own window.
"use strict";
(() => {
  // pendingKey names what outlives the redirect: the issuer's name, verifier, state and nonce.
  const pendingKey = "sluice-login";
  const here = location.origin + location.pathname;

  // What an issuer has sent along leaves the address bar, and what was kept for it the storage,
  // before anything else happens.
  const returned = new URLSearchParams(location.search);
  const pending = JSON.parse(sessionStorage.getItem(pendingKey));
  const isAnswer = ["state", "code", "error"].some((name) => returned.has(name));
  sessionStorage.removeItem(pendingKey);
  if (isAnswer) history.replaceState(null, "", location.pathname);

  const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

  // claims reads a token without verifying it, which is the gateway's work.
  function claims(token) {
    const bytes = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0))));
  }

  // ask gets a document of an issuer, or posts a form to it.
  async function ask(issuer, url, form) {
    const response = await fetch(url, form && { method: "POST", body: new URLSearchParams(form) }).catch(() => null);
    const answer = await response?.json().catch(() => null);
    if (response?.ok && answer) return answer;
    const why = answer?.error_description ?? answer?.error ?? (response ? `it answered ${response.status}` : "it cannot be reached from this page");
    throw new Error(`${issuer.name}: ${why}`);
  }

  async function discover(issuer) {
    const found = await ask(issuer, `${issuer.url.replace(/\/$/, "")}/.well-known/openid-configuration`);
    if (found.issuer !== issuer.url) throw new Error(`${issuer.name}: it names itself ${found.issuer}`);
    return found;
  }

  // begin leaves the page for the issuer's.
  async function begin(issuer) {
    if (!crypto.subtle) throw new Error("browsers allow logins on pages of HTTPS only; this one takes a token");
    const { authorization_endpoint: endpoint } = await discover(issuer);
    const kept = { issuer: issuer.name, verifier: random(), state: random(), nonce: random() };
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(kept.verifier));
    const url = new URL(endpoint);
    for (const [name, value] of Object.entries({
      response_type: "code", client_id: issuer.clientId, redirect_uri: here, scope: issuer.scopes.join(" "),
      state: kept.state, nonce: kept.nonce, code_challenge: base64url(new Uint8Array(hash)), code_challenge_method: "S256",
    })) url.searchParams.set(name, value);
    sessionStorage.setItem(pendingKey, JSON.stringify(kept));
    location.assign(url);
  }

  // grant returns a credential: its token; if the issuer gave a refresh token, renew, which returns the
  // next credential, and revoke.
  async function grant(issuer, form) {
    const endpoints = await discover(issuer);
    const answer = await ask(issuer, endpoints.token_endpoint, { ...form, client_id: issuer.clientId });
    if (!answer.id_token) throw new Error(`${issuer.name}: it gave no ID token`);
    const { exp, iat } = claims(answer.id_token);
    const credential = { token: answer.id_token, seconds: exp - iat };
    const refresh = answer.refresh_token ?? form.refresh_token;
    if (refresh) {
      credential.renew = () => grant(issuer, { grant_type: "refresh_token", refresh_token: refresh });
      credential.revoke = () => endpoints.revocation_endpoint && fetch(endpoints.revocation_endpoint, {
        method: "POST", keepalive: true, body: new URLSearchParams({ token: refresh, token_type_hint: "refresh_token", client_id: issuer.clientId }),
      });
    }
    return credential;
  }

  // finish returns the credential of a login that has come back to this page; null if none has.
  async function finish(issuers) {
    if (!isAnswer) return null;
    const issuer = issuers.find((one) => one.name === pending?.issuer);
    if (!issuer || returned.get("state") !== pending.state) throw new Error("the answer of an issuer came that belongs to no login of this page; try again");
    if (returned.has("iss") && returned.get("iss") !== issuer.url) throw new Error(`${issuer.name}: the answer is of another issuer`); // RFC 9207
    if (!returned.has("code")) throw new Error(`${issuer.name}: ${returned.get("error_description") ?? returned.get("error")}`);
    const credential = await grant(issuer, { grant_type: "authorization_code", code: returned.get("code"), redirect_uri: here, code_verifier: pending.verifier });
    if (claims(credential.token).nonce !== pending.nonce) throw new Error(`${issuer.name}: the token is of another login`);
    return credential;
  }

  window.sluice = { login: { begin, finish } };
})();
