/**
 * What the adapter uses of relay-runtime, to be handed over by the caller: `import * as runtime from "relay-runtime"`.
 * @typedef {object} Runtime
 * @property {(environment: any, document: any, variables: any, options?: any) => {subscribe(sink: any): {unsubscribe(): void}}} fetchQuery
 * @property {(environment: any, config: any) => {dispose(): void}} requestSubscription
 */

/**
 * relayTransport asks by a Relay environment. Documents are compiled artifacts. What is read is in Relay's store, so every component
 * that shows one of the resources is up to date.
 * @param {any} environment
 * @param {Runtime} runtime
 * @returns {import("./transport.js").Transport}
 */
export function relayTransport(environment, { fetchQuery, requestSubscription }) {
  return {
    query(document, variables, { signal } = {}) {
      return new Promise((resolve, reject) => {
        const aborted = () => {
          subscription.unsubscribe();
          reject(signal?.reason);
        };
        const over = (/** @type {() => void} */ settle) => {
          signal?.removeEventListener("abort", aborted);
          settle();
        };
        signal?.addEventListener("abort", aborted);
        // A connection is read again after it was lost; an answer that is kept would be too old.
        const subscription = fetchQuery(environment, document, variables, { fetchPolicy: "network-only", networkCacheConfig: { force: true } }).subscribe({
          next: (/** @type {any} */ data) => over(() => resolve({ data })),
          error: (/** @type {unknown} */ error) => over(() => reject(error)),
        });
      });
    },
    subscribe(document, variables, sink) {
      const subscription = requestSubscription(environment, {
        subscription: document,
        variables,
        onNext: (/** @type {any} */ data) => sink.next({ data }),
        onError: sink.error,
        onCompleted: sink.complete,
      });
      return () => subscription.dispose();
    },
  };
}

/**
 * relayConnection keeps a connection of Relay's store like a live list: it adds and removes edges and puts them in order.
 * The components that show the connection need to know nothing of the list.
 * @template T
 * @param {import("./live.js").LiveList<T>} list
 * @param {object} where
 * @param {any} where.environment
 * @param {string} where.connectionID From `ConnectionHandler.getConnectionID` or `__id` of the connection.
 * @param {string} where.edgeType Type of its edges, like NetworkEdge.
 * @param {(resource: T) => string} [where.idOf] Default: `id`.
 * @returns {() => void} Ends it.
 */
export function relayConnection(list, { environment, connectionID, edgeType, idOf = (/** @type {any} */ resource) => resource.id }) {
  const bring = () => {
    const { resources, status, truncated } = list.getSnapshot();
    if (status === "loading") return; // not whole yet
    environment.commitUpdate((/** @type {any} */ store) => {
      const connection = store.get(connectionID);
      if (!connection) return;
      /** @type {any[]} */
      const edges = (connection.getLinkedRecords("edges") ?? []).filter(Boolean);
      const known = new Map(edges.map((edge) => [edge.getLinkedRecord("node")?.getDataID(), edge]));
      const next = resources.map((resource) => {
        const id = idOf(resource), node = store.get(id);
        if (known.has(id) || !node) return known.get(id);
        const edgeID = `${connectionID}:live:${id}`;
        const edge = store.get(edgeID) ?? store.create(edgeID, edgeType);
        edge.setLinkedRecord(node, "node");
        return edge;
      }).filter(Boolean);
      if (next.length === edges.length && next.every((edge, i) => edge === edges[i])) return;
      connection.setLinkedRecords(next, "edges");
      connection.getLinkedRecord("pageInfo")?.setValue(truncated, "hasNextPage");
    });
  };
  bring();
  return list.subscribe(bring);
}
