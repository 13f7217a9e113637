import { pauseBefore, sleep } from "./backoff.js";
import { ofAck, ofResponse, reporter } from "./deprecation.js";
import { isQuery, textOf } from "./document.js";
import { Failure, failureOf } from "./failure.js";
import { events } from "./sse.js";

/**
 * Where the answers of a subscription go.
 * @typedef {object} Sink
 * @property {(result: import("./failure.js").Result) => void} next
 * @property {(error: unknown) => void} error
 * @property {() => void} complete
 */

/**
 * How a live list reaches the gateway. A document is whatever the client takes: a text, a parsed document, a compiled artifact.
 * @typedef {object} Transport
 * @property {(document: any, variables: Record<string, any>, options: {signal?: AbortSignal}) => Promise<import("./failure.js").Result>} query Sends a query or a mutation.
 * @property {(document: any, variables: Record<string, any>, sink: Sink) => () => void} subscribe Returns what ends the subscription.
 */

/**
 * How fetchTransport makes its requests.
 * @typedef {object} FetchOptions
 * @property {string | URL} url The gateway, like https://gateway.example/v1/graphql.
 * @property {HeadersInit | (() => HeadersInit | Promise<HeadersInit>)} [headers] Sent with each request; a function is asked each time.
 * @property {typeof globalThis.fetch} [fetch] Default: the global one.
 * @property {"GET" | "POST"} [method] How queries are sent. By GET, a query is named instead of sent, by `documentId` or by the hash of its text
 *   (automatic persisted queries), and a browser asks only whether the answer that it has is still the same. A query whose URL would be too long goes
 *   by POST, and so does one without an id on a page that is not a secure context, where there is no hash. Variables are in the URL, which proxies
 *   may log. Mutations and subscriptions always go by POST. Default: POST.
 * @property {(document: any) => string | null | undefined} [documentId] Returns the id by which the gateway knows a document (trusted documents). It
 *   is sent instead of the text of a query or mutation. A document that the gateway does not know is sent as text. Default: none has an id.
 * @property {number} [retries] How often a query is sent again at most while the answer is UNAVAILABLE with a time after which to ask
 *   again (`retryAfter`). Mutations are not sent again. Default: 3.
 * @property {import("./backoff.js").Pauses} [pauses] Before a query is sent again, on top of what the gateway asks for. If that alone is more than `most`,
 *   the query is not sent again.
 * @property {import("./deprecation.js").OnDeprecation} [onDeprecation] Called once if the gateway says that the version of the API at `url` is deprecated.
 *   Default: a warning on the console. null: nothing.
 */

const jsonAnswer = "application/graphql-response+json";

/** The longest URL that is sent: servers and proxies accept 8 KiB, some of them less. */
const maxURL = 4000;

/**
 * fetchTransport needs nothing but fetch: queries by POST or GET, subscriptions by server-sent events. A
 * browser has few connections to a host that speaks HTTP/1.1, and each subscription takes one. A document is a text, or one that `gql`, graphql-js
 * or a code generator has made.
 * @param {FetchOptions} options
 * @returns {Transport}
 */
export function fetchTransport({ url, headers = {}, fetch = globalThis.fetch, method = "POST", documentId, retries = 3, pauses, onDeprecation }) {
  const report = reporter(onDeprecation);
  /** @param {Response} response */
  const heard = (response) => {
    report(ofResponse(response, url));
    return response;
  };
  const ownHeaders = async () => new Headers(typeof headers === "function" ? await headers() : headers);
  /** @param {string} accept @param {Record<string, any>} body @param {AbortSignal} [signal] */
  const post = async (accept, body, signal) => {
    const own = await ownHeaders();
    own.set("content-type", "application/json");
    own.set("accept", accept);
    return heard(await fetch(url, { method: "POST", headers: own, body: JSON.stringify(body), signal }));
  };
  /** @param {string} address @param {AbortSignal} [signal] */
  const get = async (address, signal) => {
    const own = await ownHeaders();
    own.set("accept", jsonAnswer);
    return heard(await fetch(address, { method: "GET", headers: own, signal }));
  };
  /** @param {any} document @param {Record<string, any>} variables @param {boolean} byGet @param {AbortSignal} [signal] */
  const request = async (document, variables, byGet, signal) => {
    const query = textOf(document);
    const id = documentId?.(document);
    const name = id ? { documentId: id } : byGet ? await hashed(query) : undefined;
    if (!name) return post(jsonAnswer, { query, variables }, signal);
    const address = addressOf(url, { ...name, variables });
    const named = byGet && address.length <= maxURL ? await get(address, signal) : await post(jsonAnswer, { ...name, variables }, signal);
    if (!(await isUnknown(named))) return named;
    const extensions = "extensions" in name ? name.extensions : undefined; // the gateway then remembers the document
    return post(jsonAnswer, { query, variables, extensions }, signal);
  };
  return {
    async query(document, variables, { signal } = {}) {
      const reads = isQuery(document);
      const most = reads ? retries : 0;
      for (let failures = 0; ; failures++) {
        const response = await request(document, variables, reads && method === "GET", signal);
        const seconds = failures < most ? await unavailableFor(response) : undefined;
        if (seconds === undefined || seconds * 1000 > (pauses?.most ?? 30_000)) return answer(response);
        await sleep(pauseBefore(pauses, failures, seconds * 1000), signal);
        signal?.throwIfAborted();
      }
    },
    subscribe(document, variables, sink) {
      const ending = new AbortController();
      const run = async () => {
        const response = await post("text/event-stream", { query: textOf(document), variables }, ending.signal);
        if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
          const { errors } = await answer(response);
          throw errors?.length ? failureOf(errors) : new Failure("the gateway answered no event stream", { status: response.status });
        }
        for await (const { event, data } of events(response.body)) {
          if (ending.signal.aborted) return;
          if (event === "complete") return sink.complete();
          if (event === "next") sink.next(JSON.parse(data));
        }
        throw new Failure("the connection was lost");
      };
      run().catch((error) => {
        if (!ending.signal.aborted) sink.error(error);
      }).finally(() => ending.abort());
      return () => ending.abort();
    },
  };
}

/**
 * hashed names a document by the hash of its text. It returns undefined where the browser does not hash.
 * @param {string} text
 */
async function hashed(text) {
  const { subtle } = globalThis.crypto ?? {};
  if (!subtle) return undefined;
  const hash = new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const sha256Hash = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { extensions: { persistedQuery: { version: 1, sha256Hash } } };
}

/**
 * addressOf returns the URL of a query: a text stands as it is, everything else as JSON.
 * @param {string | URL} url
 * @param {Record<string, any>} parameters
 */
function addressOf(url, parameters) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) search.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  const address = String(url);
  return `${address}${address.includes("?") ? "&" : "?"}${search}`;
}

/**
 * isUnknown reports whether the gateway does not know the document that a request named. Nothing was executed then.
 * @param {Response} response
 */
async function isUnknown(response) {
  if (response.ok || !isJSON(response)) return false;
  return failureOf((await answer(response.clone())).errors).code === "PERSISTED_QUERY_NOT_FOUND";
}

/** @param {Response} response */
const isJSON = (response) => /json/.test(response.headers.get("content-type") ?? "");
/** @param {Response} response */
const retryAfterOf = (response) => Number(response.headers.get("retry-after")) || undefined;

/**
 * unavailableFor returns after how many seconds to ask again, if the request was not executed and the gateway, or a proxy before it, says when.
 * @param {Response} response
 * @returns {Promise<number | undefined>}
 */
async function unavailableFor(response) {
  if (response.status !== 503) return undefined;
  if (!isJSON(response)) return retryAfterOf(response);
  const { code, retryAfter } = failureOf((await answer(response.clone())).errors);
  return code === "UNAVAILABLE" ? retryAfter : undefined;
}

/**
 * answer is what a response has. Errors say when to ask again, as the response does.
 * @param {Response} response
 * @returns {Promise<import("./failure.js").Result>}
 */
async function answer(response) {
  const retryAfter = retryAfterOf(response);
  if (isJSON(response)) {
    const result = await response.json();
    if (retryAfter) for (const error of result.errors ?? []) error.extensions = { retryAfter, ...error.extensions };
    return result;
  }
  if (response.status === 401) throw new Failure("401, and not by the gateway: a proxy in front of it wants a separate login", { status: 401 });
  throw new Failure(`the gateway answered ${response.status} ${response.statusText}`.trim(), { status: response.status, retryAfter });
}

/**
 * A client of graphql-ws or graphql-sse.
 * @typedef {object} StreamClient
 * @property {(payload: {query: any, variables: any}, sink: any) => () => void} subscribe
 * @property {(event: "connected", listener: (socket: any, payload: any) => void) => unknown} [on] Of graphql-ws.
 */

/**
 * streamingTransport takes queries from one transport and subscriptions from a client of graphql-ws or
 * graphql-sse. Make that client with `retryAttempts: 0`: the live list connects again
 * itself, after the cursor that it has then, where the client would begin at the first one again.
 * @param {Pick<Transport, "query">} transport
 * @param {StreamClient} client
 * @param {{onDeprecation?: import("./deprecation.js").OnDeprecation}} [options] What to call once if a client of graphql-ws hears that the version of
 *   the API is deprecated. Default: a warning on the console. null: nothing.
 * @returns {Transport}
 */
export function streamingTransport({ query }, client, { onDeprecation } = {}) {
  const report = reporter(onDeprecation);
  client.on?.("connected", (_socket, payload) => report(ofAck(payload)));
  return { query, subscribe: (document, variables, sink) => client.subscribe({ query: document, variables }, sink) };
}
