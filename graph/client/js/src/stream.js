import { Failure, failureOf, Misuse, unwrap } from "./failure.js";

/**
 * A page of a connection.
 * @template T
 * @typedef {object} Page
 * @property {Array<{resource: T, cursor?: string}>} rows With their cursors, where the document selects them.
 * @property {boolean} hasNextPage
 * @property {string} [type] Its `__typename`, where that is selected.
 */

/**
 * readPages reads a connection page by page and returns the changeCursor of the first one.
 * @template T
 * @param {import("./settings.js").Settings<T>} settings
 * @param {AbortSignal} signal
 * @param {() => number} wanted How many more resources are wanted.
 * @param {(page: Page<T>) => void} take
 * @returns {Promise<string>}
 */
export async function readPages({ transport, list, variables, pageSize, connection: connectionOf }, signal, wanted, take) {
  let cursor, after = null;
  while (true) {
    const first = Math.min(pageSize, wanted());
    const data = unwrap(await transport.query(list, { ...variables, first, after }, { signal }));
    signal.throwIfAborted();
    const connection = connectionOf(data);
    if (typeof connection?.pageInfo?.hasNextPage !== "boolean") throw new Misuse("the document of the list does not select pageInfo { hasNextPage endCursor }");
    cursor ??= connection.changeCursor;
    if (typeof cursor !== "string") throw new Misuse("the document of the list does not select changeCursor");
    const { hasNextPage, endCursor } = connection.pageInfo;
    take({ rows: rowsOf(connection), hasNextPage, type: connection.__typename });
    if (!hasNextPage || wanted() <= 0) return cursor;
    if (typeof endCursor !== "string") throw new Misuse("the document of the list does not select pageInfo { hasNextPage endCursor }");
    if (endCursor === after) throw new Misuse("the next page is the same again: the document of the list does not use $after");
    after = endCursor;
  }
}

/** @param {any} connection */
function rowsOf({ edges, nodes, pageInfo: { endCursor } }) {
  if (!edges && !nodes) throw new Misuse("the document of the list selects neither nodes nor edges");
  const rows = edges ? edges.map((/** @type {any} */ { node, cursor }) => ({ resource: node, cursor })) : nodes.map((/** @type {any} */ resource) => ({ resource }));
  const last = rows.at(-1);
  if (last) last.cursor ??= endCursor;
  return rows;
}

/**
 * follow subscribes and hands over each change. The promise is kept never: it is refused with the reason why the stream ended.
 * @param {import("./settings.js").FollowSettings} settings
 * @param {string | undefined} cursor
 * @param {AbortSignal} signal
 * @param {(change: import("./settings.js").Change) => void} take
 * @returns {Promise<never>}
 */
export function follow({ transport, changes, variables, snapshot, silence, change: changeOf }, cursor, signal, take) {
  return new Promise((_, reject) => {
    let over = false, stop = () => {};
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const end = (/** @type {unknown} */ reason) => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      signal.removeEventListener("abort", aborted);
      stop();
      reject(reason);
    };
    const aborted = () => end(signal.reason);
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => end(new Failure(`nothing was heard for ${silence} ms`)), silence);
    };
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted);
    heard();
    const asked = { ...variables, after: cursor ?? null, ...(snapshot && { snapshot }) };
    stop = transport.subscribe(changes, asked, {
      next(result) {
        if (over) return;
        heard();
        try {
          const change = result.data && changeOf(result.data);
          if (!change) throw failureOf(result.errors ?? new Failure("an event has no data"));
          take(change);
        } catch (error) {
          end(error instanceof Failure ? error : new Misuse(`a change could not be taken: ${error}`, { cause: error }));
        }
      },
      error: (error) => end(failureOf(error)),
      complete: () => end(new Failure("the stream ended")),
    });
    if (over) stop();
  });
}
