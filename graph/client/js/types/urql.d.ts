/**
 * liveExchange stands among the exchanges of a client behind its cache, and before what sends requests:
 * `exchanges: [cacheExchange({...}), liveExchange, fetchExchange]`. By it a list gets what the gateway sent, where the cache would
 * answer with the optimistic changes of the page in it, and urqlConnection writes into the cache.
 * @param {{client: any, forward: (operations: any) => any}} input
 * @returns {(operations: any) => any}
 */
export function liveExchange({ client, forward }: {
    client: any;
    forward: (operations: any) => any;
}): (operations: any) => any;
/**
 * urqlTransport asks by a client of urql that has liveExchange. The list gets what the gateway sent, and the cache gets the changes, so
 * every query that shows one of the resources is up to date. The pages of the list are not in the cache.
 * @param {any} client
 * @returns {import("./transport.js").Transport}
 */
export function urqlTransport(client: any): import("./transport.js").Transport;
/**
 * urqlConnection keeps what the cache has for a query like a live list: its edges or nodes are added, removed and put in order, and
 * whatever executes the query shows them. The documents of the list select of a resource what the query does. The query has no
 * `after`: `more` of the list shows more.
 * @template T
 * @param {import("./live.js").LiveList<T>} list
 * @param {object} where
 * @param {any} where.client It has liveExchange.
 * @param {any} where.query
 * @param {Record<string, any>} [where.variables]
 * @param {string} [where.field] The field of the connection. Default: the first of the query's data.
 * @param {(resource: T) => string} [where.idOf] Default: `id`.
 * @returns {() => void} Ends it.
 */
export function urqlConnection<T>(list: import("./live.js").LiveList<T>, { client, query, variables, field, idOf }: {
    client: any;
    query: any;
    variables?: Record<string, any> | undefined;
    field?: string | undefined;
    idOf?: ((resource: T) => string) | undefined;
}): () => void;
