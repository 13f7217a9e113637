/**
 * apolloTransport asks by an Apollo client. Documents are those of `gql`. The list gets what the gateway sent, and Apollo's cache gets the
 * changes, so every query that shows one of the resources is up to date. The pages of the list are not in the cache: they would
 * replace those that it has. A client with `dataMasking` takes documents whose fragments are spread with `@unmask`.
 * @param {{query(options: any): Promise<any>, subscribe(options: any): {subscribe(sink: any): {unsubscribe(): void}}}} client
 * @returns {import("./transport.js").Transport}
 */
export function apolloTransport(client: {
    query(options: any): Promise<any>;
    subscribe(options: any): {
        subscribe(sink: any): {
            unsubscribe(): void;
        };
    };
}): import("./transport.js").Transport;
/**
 * apolloConnection keeps what the cache has for a query like a live list: its edges or nodes are added,
 * removed and put in order, and `watchQuery` and `useQuery` of it show them. The documents of the list select of a resource
 * what the query does, best by the same fragment. `fetchMore` makes the list show as many resources as the query has then.
 * @template T
 * @param {import("./live.js").LiveList<T>} list
 * @param {object} where
 * @param {{cache: any}} where.client
 * @param {any} where.query
 * @param {Record<string, any>} [where.variables]
 * @param {string} [where.field] The field of the connection. Default: the first of the query's data.
 * @param {(resource: T) => string} [where.idOf] Default: `id`.
 * @returns {() => void} Ends it.
 */
export function apolloConnection<T>(list: import("./live.js").LiveList<T>, { client, query, variables, field, idOf }: {
    client: {
        cache: any;
    };
    query: any;
    variables?: Record<string, any> | undefined;
    field?: string | undefined;
    idOf?: ((resource: T) => string) | undefined;
}): () => void;
