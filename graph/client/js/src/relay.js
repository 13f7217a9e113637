import { Connection, idOfResource, isOlder } from "./connection.js";

/**
 * By which operation and field of it an environment got an object that has an id.
 * @type {WeakMap<object, {operation: any, field: any}>}
 */
const origins = new WeakMap();

/**
 * remember notes the origin of each object in an answer that has an id.
 * @param {any} operation
 * @param {any[]} selections
 * @param {any} data
 */
function remember(operation, selections, data) {
  for (const selection of selections) {
    if (selection.kind !== "LinkedField") {
      if (selection.selections) remember(operation, selection.selections, data);
      continue;
    }
    const values = [data[selection.alias ?? selection.name]].flat();
    for (const value of values.filter((one) => typeof one === "object" && one !== null)) {
      // A field that is selected under a condition too is there twice.
      const before = origins.get(value)?.field.selections;
      const whole = before ? { ...selection, selections: [...before, ...selection.selections] } : selection;
      if (value.id !== undefined) origins.set(value, { operation, field: whole });
      remember(operation, selection.selections, value);
    }
  }
}

/**
 * writeAgain writes an object that has an origin into the store, as the field `node(id:)` of the query.
 * @param {any} environment
 * @param {any} resource
 */
function writeAgain(environment, resource) {
  const { operation, field: { concreteType, selections } } = /** @type {any} */ (origins.get(resource));
  const args = [{ kind: "Literal", name: "id", value: resource.id }];
  const node = { ...operation.root.node, selections: [{ ...field("node", selections), concreteType, args }] };
  environment.commitPayload({ ...operation, root: { ...operation.root, node } }, { node: resource });
}

/**
 * What the adapter uses of relay-runtime, to be handed over by the caller: `import * as runtime from "relay-runtime"`.
 * @typedef {object} Runtime
 * @property {(document: any) => any} getRequest
 * @property {(request: any, variables: any, cacheConfig?: any) => any} createOperationDescriptor
 */

/**
 * relayTransport asks by a Relay environment. Documents are compiled artifacts. The list gets what the gateway sent, with the fields of all
 * fragments, and Relay's store gets it too, so every component that shows one of the resources is up to date.
 * @param {any} environment
 * @param {Runtime} runtime
 * @returns {import("./transport.js").Transport}
 */
export function relayTransport(environment, { getRequest, createOperationDescriptor }) {
  // What the store reads back has the optimistic changes of the page in it; a list is told what is stored.
  const operationOf = (/** @type {any} */ document, /** @type {any} */ variables) => createOperationDescriptor(getRequest(document), variables, { force: true });
  const noting = (/** @type {any} */ operation, /** @type {(response: any) => void} */ take) => (/** @type {any} */ response) => {
    if (response.data) remember(operation, operation.root.node.selections, response.data);
    take(response);
  };
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
        const operation = operationOf(document, variables);
        const subscription = environment.execute({ operation }).subscribe({
          next: noting(operation, (response) => over(() => resolve(response))),
          error: (/** @type {unknown} */ error) => over(() => reject(error)),
        });
      });
    },
    subscribe(document, variables, sink) {
      const operation = operationOf(document, variables);
      const subscription = environment.executeSubscription({ operation }).subscribe({
        next: noting(operation, (response) => sink.next(response)),
        error: sink.error,
        complete: sink.complete,
      });
      return () => subscription.unsubscribe();
    },
  };
}

/** @param {string} name @param {any[]} [selections] @param {boolean} [plural] */
const field = (name, selections, plural = false) => ({
  kind: selections ? "LinkedField" : "ScalarField", alias: null, args: null, name, storageKey: null,
  ...(selections && { concreteType: null, plural, selections }),
});

const revisionOfNode = field("node", [field("metadata", [field("revision")])]);

/**
 * watchEdges calls a listener when the edges of a connection change, as after `loadNext`, or the revision of a resource.
 * @param {any} environment @param {string} connectionID @param {() => void} listener
 * @returns {() => void}
 */
function watchEdges(environment, connectionID, listener) {
  const node = { kind: "Fragment", name: "edgesOfLiveList", type: "Connection", metadata: null, argumentDefinitions: [], selections: [field("edges", [field("cursor"), revisionOfNode], true)] };
  const owner = { identifier: `edgesOfLiveList:${connectionID}`, node: { kind: "Request", fragment: node, operation: { kind: "Operation", name: node.name, argumentDefinitions: [], selections: [] }, params: {} }, variables: {}, cacheConfig: null };
  const snapshot = environment.lookup({ kind: "SingularReaderSelector", dataID: connectionID, node, variables: {}, owner, isWithinUnmatchedTypeRefinement: false, clientEdgeTraversalPath: null });
  const subscription = environment.subscribe(snapshot, listener);
  return () => subscription.dispose();
}

/**
 * watchCommits calls a listener after each change of what is stored below optimistic changes: Relay applies these again then, and with
 * them one that changes nothing.
 * @param {any} environment @param {() => void} listener
 * @returns {() => void}
 */
function watchCommits(environment, listener) {
  const { dispose } = environment.applyUpdate({ storeUpdater: listener });
  return dispose;
}

/**
 * relayConnection keeps a connection of Relay's store like a live list: it adds and removes edges and puts them in order.
 * The components that show the connection need to know nothing of the list. `loadNext` makes the list show as many resources as the
 * connection has then.
 * @template T
 * @param {import("./live.js").LiveList<T>} list
 * @param {object} where
 * @param {any} where.environment
 * @param {string} where.connectionID From `ConnectionHandler.getConnectionID` or `__id` of the connection.
 * @param {string} where.edgeType Type of its edges, like NetworkEdge.
 * @param {(resource: T) => string} [where.idOf] Default: `id`.
 * @returns {() => void} Ends it.
 */
export function relayConnection(list, { environment, connectionID, edgeType, idOf = idOfResource }) {
  let ended = false, bringing = false;
  /** Resources of the list of which the store has an older one, below optimistic changes. @type {Set<any>} */
  const late = new Set();
  /** @param {any} store */
  const update = (store) => {
    const connection = store.get(connectionID);
    if (!connection) return;
    /** @type {any[]} */
    const edges = (connection.getLinkedRecords("edges") ?? []).filter(Boolean);
    const known = new Map(edges.map((edge) => [edge.getLinkedRecord("node")?.getDataID(), edge]));
    const rows = shown.rows([...known.keys()]);
    shown.keep(rows);
    let missing = false;
    late.clear();
    const next = rows.map(({ id, resource }) => {
      const node = store.get(id);
      const fresh = resource !== undefined && shown.give(id, resource);
      // Relay forgets what no component shows; reading the list brings it back.
      if (!node && fresh) missing = true;
      const stored = list.stored(id) ?? resource;
      const held = { metadata: { revision: node?.getLinkedRecord("metadata")?.getValue("revision") } };
      if (isOlder(held, stored)) late.add(stored);
      if (known.has(id) || !node) return known.get(id);
      const edgeID = `${connectionID}:live:${id}`;
      const edge = store.get(edgeID) ?? store.create(edgeID, edgeType);
      edge.setLinkedRecord(node, "node");
      edge.setValue(list.cursorOf(id) ?? "", "cursor");
      return edge;
    }).filter(Boolean);
    // What came from elsewhere, as from a storage, can only be read again.
    if (missing || [...late].some((resource) => !origins.has(resource))) list.refresh();
    if (next.length !== edges.length || next.some((edge, i) => edge !== edges[i])) connection.setLinkedRecords(next, "edges");
    const { hasNextPage, endCursor } = list.getSnapshot(), pageInfo = connection.getLinkedRecord("pageInfo");
    // Behind rows that the page has read itself its own place is the right one.
    if (!pageInfo || rows.some(({ resource }) => resource === undefined)) return;
    pageInfo.setValue(hasNextPage, "hasNextPage");
    if (endCursor !== null) pageInfo.setValue(endCursor, "endCursor");
  };
  let unwatchCommits = () => {}, watching = false;
  // An optimistic change of the page at an older revision covers what is stored, and an answer may change that unseen.
  const watchCovered = () => {
    const source = environment.getStore().getSource();
    const covered = !ended && list.getSnapshot().resources.some((resource) => {
      const metadata = source.get(source.get(idOf(resource))?.metadata?.__ref);
      return isOlder({ metadata }, list.stored(idOf(resource)) ?? resource);
    });
    if (covered === watching) return;
    watching = covered;
    if (!covered) return unwatchCommits();
    unwatchCommits = watchCommits(environment, () => {
      if (!bringing) queueMicrotask(bring);
    });
  };
  const bring = () => {
    if (ended || bringing || !shown.live) return;
    bringing = true;
    try {
      environment.commitUpdate(update);
      for (const resource of late) if (origins.has(resource)) writeAgain(environment, resource);
      watchCovered();
    } finally {
      bringing = false;
    }
  };
  const shown = new Connection(list, idOf, bring);
  const unwatch = watchEdges(environment, connectionID, () => queueMicrotask(bring));
  const unsubscribe = list.subscribe(bring);
  const end = () => {
    ended = true;
    if (watching) unwatchCommits();
    unwatch();
    unsubscribe();
  };
  list.ended.then(end);
  bring();
  return end;
}
