/**
 * apolloTransport asks by an Apollo client. Documents are those of `gql`. Changes are in Apollo's cache, so every query
 * that shows one of the resources is up to date. The pages of the list are not: they would replace those that the cache has.
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
 * what the query does, best by the same fragment.
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
export function apolloConnection(list, { client, query, variables, field, idOf = (/** @type {any} */ resource) => resource.id }) {
  const bring = () => {
    const { resources, status, truncated } = list.getSnapshot();
    if (status === "loading") return; // not whole yet
    client.cache.updateQuery({ query, variables, overwrite: true }, (/** @type {any} */ data) => {
      const name = field ?? Object.keys(data ?? {}).find((key) => key !== "__typename");
      const connection = name && data?.[name];
      if (!connection) return undefined;
      const known = new Map((connection.edges ?? []).map((/** @type {any} */ edge) => [idOf(edge.node), edge]));
      const edgeType = connection.__typename?.replace(/Connection$/, "Edge");
      return {
        ...data,
        [name]: {
          ...connection,
          ...(connection.edges && { edges: resources.map((node) => ({ ...(known.get(idOf(node)) ?? { __typename: edgeType, cursor: "" }), node })) }),
          ...(connection.nodes && { nodes: resources }),
          ...(connection.pageInfo && { pageInfo: { ...connection.pageInfo, hasNextPage: truncated } }),
        },
      };
    });
  };
  bring();
  return list.subscribe(bring);
}
