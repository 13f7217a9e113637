import { Connection, connectionData, idOfResource } from "./connection.js";

/**
 * apolloTransport asks by an Apollo client. Documents are those of `gql`. The list gets what the gateway sent, and Apollo's cache gets the
 * changes, so every query that shows one of the resources is up to date. The pages of the list are not in the cache: they would
 * replace those that it has. A client with `dataMasking` takes documents whose fragments are spread with `@unmask`.
 * @param {{query(options: any): Promise<any>, subscribe(options: any): {subscribe(sink: any): {unsubscribe(): void}}}} client
 * @returns {import("./transport.js").Transport}
 */
export function apolloTransport(client) {
  return {
    async query(document, variables) {
      const { data } = await client.query({ query: document, variables, fetchPolicy: "no-cache" });
      return { data };
    },
    subscribe(document, variables, sink) {
      const subscription = client.subscribe({ query: document, variables }).subscribe({
        next: (/** @type {any} */ { data, error }) => (error ? sink.error(error) : sink.next({ data })),
        error: sink.error,
        complete: sink.complete,
      });
      return () => subscription.unsubscribe();
    },
  };
}

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
export function apolloConnection(list, { client, query, variables, field, idOf = idOfResource }) {
  let ended = false, bringing = false;
  const bring = () => {
    if (ended || bringing || !connection.live) return;
    bringing = true;
    try {
      client.cache.updateQuery({ query, variables, overwrite: true }, (/** @type {any} */ data) => connectionData(connection, data, field, { optimistic: false }));
    } finally {
      bringing = false;
    }
  };
  const connection = new Connection(list, idOf, bring);
  // The page may read the next rows itself. The cache takes no writes while it tells that.
  const unwatch = client.cache.watch({ query, variables, optimistic: false, callback: () => queueMicrotask(bring) });
  const unsubscribe = list.subscribe(bring);
  const end = () => {
    ended = true;
    unwatch();
    unsubscribe();
  };
  list.ended.then(end);
  bring();
  return end;
}
