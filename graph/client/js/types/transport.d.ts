/**
 * fetchTransport needs nothing but fetch: queries by POST or GET, subscriptions by server-sent events. A
 * browser has few connections to a host that speaks HTTP/1.1, and each subscription takes one. A document is a text, or one that `gql`, graphql-js
 * or a code generator has made.
 * @param {FetchOptions} options
 * @returns {Transport}
 */
export function fetchTransport({ url, headers, fetch, method, documentId, retries, pauses, onDeprecation }: FetchOptions): Transport;
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
export function streamingTransport({ query }: Pick<Transport, "query">, client: StreamClient, { onDeprecation }?: {
    onDeprecation?: import("./deprecation.js").OnDeprecation;
}): Transport;
/**
 * A client of graphql-ws or graphql-sse.
 */
export type StreamClient = {
    subscribe: (payload: {
        query: any;
        variables: any;
    }, sink: any) => () => void;
    /**
     * Of graphql-ws.
     */
    on?: ((event: "connected", listener: (socket: any, payload: any) => void) => unknown) | undefined;
};
/**
 * Where the answers of a subscription go.
 */
export type Sink = {
    next: (result: import("./failure.js").Result) => void;
    error: (error: unknown) => void;
    complete: () => void;
};
/**
 * How a live list reaches the gateway. A document is whatever the client takes: a text, a parsed document, a compiled artifact.
 */
export type Transport = {
    /**
     * Sends a query or a mutation.
     */
    query: (document: any, variables: Record<string, any>, options: {
        signal?: AbortSignal;
    }) => Promise<import("./failure.js").Result>;
    /**
     * Returns what ends the subscription.
     */
    subscribe: (document: any, variables: Record<string, any>, sink: Sink) => () => void;
};
/**
 * How fetchTransport makes its requests.
 */
export type FetchOptions = {
    /**
     * The gateway, like https://gateway.example/v1/graphql.
     */
    url: string | URL;
    /**
     * Sent with each request; a function is asked each time.
     */
    headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>) | undefined;
    /**
     * Default: the global one.
     */
    fetch?: typeof fetch | undefined;
    /**
     * How queries are sent. By GET, a query is named instead of sent, by `documentId` or by the hash of its text
     * (automatic persisted queries), and a browser asks only whether the answer that it has is still the same. A query whose URL would be too long goes
     * by POST, and so does one without an id on a page that is not a secure context, where there is no hash. Variables are in the URL, which proxies
     * may log. Mutations and subscriptions always go by POST. Default: POST.
     */
    method?: "GET" | "POST" | undefined;
    /**
     * Returns the id by which the gateway knows a document (trusted documents). It
     * is sent instead of the text of a query or mutation. A document that the gateway does not know is sent as text. Default: none has an id.
     */
    documentId?: ((document: any) => string | null | undefined) | undefined;
    /**
     * How often a query is sent again at most while the answer is UNAVAILABLE with a time after which to ask
     * again (`retryAfter`). Mutations are not sent again. Default: 3.
     */
    retries?: number | undefined;
    /**
     * Before a query is sent again, on top of what the gateway asks for. If that alone is more than `most`,
     * the query is not sent again.
     */
    pauses?: import("./backoff.js").Pauses | undefined;
    /**
     * Called once if the gateway says that the version of the API at `url` is deprecated.
     * Default: a warning on the console. null: nothing.
     */
    onDeprecation?: import("./deprecation.js").OnDeprecation | undefined;
};
