import { Connection, connectionData, firstField, idOfResource } from "./connection.js";

// In the context of an operation: a list asks, and gets what the gateway sends. In the extensions of its result: that.
const raw = Symbol("raw");

/** By what a result gets into the cache of a client. @type {WeakMap<object, (result: any) => void>} */
const inlets = new WeakMap();

/**
 * liveExchange stands among the exchanges of a client behind its cache, and before what sends requests:
 * `exchanges: [cacheExchange({...}), liveExchange, fetchExchange]`. By it a list gets what the gateway sent, where the cache would
 * answer with the optimistic changes of the page in it, and urqlConnection writes into the cache.
 * @param {{client: any, forward: (operations: any) => any}} input
 * @returns {(operations: any) => any}
 */
export function liveExchange({ client, forward }) {
  return (operations) => {
    const results = forward(operations);
    return (/** @type {(signal: any) => void} */ sink) => {
      inlets.set(client, (result) => sink(push(result)));
      results((/** @type {any} */ signal) => sink(isPush(signal) ? push(withRaw(signal[0])) : signal));
    };
  };
}

// The signals of urql's sources, which are those of Wonka: 0 is the end, the tag 0 has a function that asks for more or (1) ends, the
// tag 1 has a value.
/** @param {any} value */
const push = (value) => Object.assign([value], { tag: 1 });
/** @param {any} signal */
const isPush = (signal) => signal !== 0 && signal.tag === 1;

/**
 * drain takes all values of a source; it returns what ends that.
 * @param {(sink: (signal: any) => void) => void} source
 * @param {(value: any) => void} next
 * @param {() => void} [end]
 */
function drain(source, next, end) {
  let over = false, talkback = (/** @type {number} */ _) => {};
  source((signal) => {
    if (over) return;
    if (signal === 0) {
      over = true;
      end?.();
    } else if (isPush(signal)) {
      next(signal[0]);
      if (!over) talkback(0);
    } else {
      talkback = signal[0];
      talkback(0);
    }
  });
  return () => {
    if (over) return;
    over = true;
    talkback(1);
  };
}

/** @param {any} result */
function withRaw(result) {
  if (!result.operation.context[raw]) return result;
  const extensions = { ...result.extensions, [raw]: result.data };
  // In the cache the pages of a list would be joined to those of the page.
  return result.operation.kind === "query" ? { ...result, extensions, data: undefined } : { ...result, extensions };
}

/** @param {any} client */
function inletOf(client) {
  const inlet = inlets.get(client);
  if (!inlet) throw new Error("the client needs liveExchange among its exchanges, behind that of the cache");
  return inlet;
}

/**
 * urqlTransport asks by a client of urql that has liveExchange. The list gets what the gateway sent, and the cache gets the changes, so
 * every query that shows one of the resources is up to date. The pages of the list are not in the cache.
 * @param {any} client
 * @returns {import("./transport.js").Transport}
 */
export function urqlTransport(client) {
  return {
    query(document, variables, { signal } = {}) {
      return new Promise((resolve, reject) => {
        inletOf(client);
        const take = (/** @type {any} */ { error, extensions }) => {
          signal?.removeEventListener("abort", aborted);
          if (error) reject(error);
          else resolve({ data: extensions?.[raw] });
          queueMicrotask(() => stop());
        };
        const aborted = () => {
          stop();
          reject(signal?.reason);
        };
        signal?.addEventListener("abort", aborted);
        const stop = drain(client.query(document, variables, { requestPolicy: "network-only", [raw]: true }), take);
      });
    },
    subscribe(document, variables, sink) {
      inletOf(client);
      const take = (/** @type {any} */ { error, extensions }) => (error ? sink.error(error) : sink.next({ data: extensions?.[raw] }));
      return drain(client.subscription(document, variables, { [raw]: true }), take, sink.complete);
    },
  };
}

/**
 * typed adds the types that the cache leaves out where the query does not select them, and needs to write.
 * @param {any} data @param {string} name @param {string | undefined} type
 */
function typed(data, name, type) {
  const held = data[name];
  if (!held || !type) return undefined;
  const edgeType = type.replace(/Connection$/, "Edge");
  return {
    ...data,
    [name]: {
      ...held,
      __typename: type,
      ...(held.edges && { edges: held.edges.map((/** @type {any} */ edge) => ({ ...edge, __typename: edgeType })) }),
      ...(held.pageInfo && { pageInfo: { ...held.pageInfo, __typename: "PageInfo" } }),
    },
  };
}

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
export function urqlConnection(list, { client, query, variables, field, idOf = idOfResource }) {
  const give = inletOf(client);
  /** @type {any} */
  let held, ended = false;
  /** What the cache was given last. @type {any[]} */
  let given = [];
  const bring = () => {
    if (ended || !held?.data || !connection.live) return;
    const name = field ?? firstField(held.data);
    const data = connectionData(connection, typed(held.data, name, list.connectionType), name, { optimistic: true });
    if (!data) return;
    const { edges, nodes, pageInfo } = data[name];
    const next = [...(nodes ?? edges.map((/** @type {any} */ edge) => edge.node)), pageInfo?.hasNextPage, pageInfo?.endCursor, connection.repeats];
    // A resolver of the cache may show more than it was given.
    if (next.length === given.length && next.every((value, at) => value === given[at])) return;
    given = next;
    give({ operation: held.operation, data, error: undefined, extensions: undefined, hasNext: false, stale: false });
  };
  const connection = new Connection(list, idOf, bring);
  const stop = drain(client.query(query, variables ?? {}), (result) => {
    held = result;
    queueMicrotask(bring); // the cache is done with the result then
  });
  const unsubscribe = list.subscribe(bring);
  const end = () => {
    ended = true;
    stop();
    unsubscribe();
  };
  list.ended.then(end);
  return end;
}
