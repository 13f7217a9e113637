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
 * @property {number} [retries] How often a query is sent again at most while the answer is UNAVAILABLE with a time after which to ask
 *   again (`retryAfter`). Mutations are not sent again. Default: 3.
 * @property {import("./backoff.js").Pauses} [pauses] Before a query is sent again, on top of what the gateway asks for. If that alone is more than `most`,
 *   the query is not sent again.
 */
/**
 * fetchTransport needs nothing but fetch: queries by POST, subscriptions by server-sent events. A
 * browser has few connections to a host that speaks HTTP/1.1, and each subscription takes one. A document is a text, or one that `gql`, graphql-js
 * or a code generator has made.
 * @param {FetchOptions} options
 * @returns {Transport}
 */
export function fetchTransport({ url, headers, fetch, retries, pauses }: FetchOptions): Transport;
/**
 * streamingTransport takes queries from one transport and subscriptions from a client of graphql-ws or
 * graphql-sse. Make that client with `retryAttempts: 0`: the live list connects again
 * itself, after the cursor that it has then, where the client would begin at the first one again.
 * @param {Pick<Transport, "query">} transport
 * @param {{subscribe(payload: {query: any, variables: any}, sink: any): () => void}} client
 * @returns {Transport}
 */
export function streamingTransport({ query }: Pick<Transport, "query">, client: {
    subscribe(payload: {
        query: any;
        variables: any;
    }, sink: any): () => void;
}): Transport;
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
    fetch?: typeof globalThis.fetch | undefined;
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
};
