import { Failure, failureOf, Misuse, unwrap } from "./failure.js";

/**
 * readPages reads a connection page by page and returns the changeCursor of the first one.
 * @template T
 * @param {import("./settings.js").Settings<T>} settings
 * @param {AbortSignal} signal
 * @param {(resources: T[]) => boolean} page Takes a page and says whether another is wanted.
 * @param {() => void} cut Is told if there is another that was not wanted.
 * @returns {Promise<string>}
 */
export async function readPages({ transport, list, variables, pageSize, limit, connection: connectionOf }, signal, page, cut) {
  let cursor, after = null;
  while (true) {
    const data = unwrap(await transport.query(list, { ...variables, first: Math.min(pageSize, limit), after }, { signal }));
    signal.throwIfAborted();
    const connection = connectionOf(data);
    if (typeof connection?.pageInfo?.hasNextPage !== "boolean") throw new Misuse("the document of the list does not select pageInfo { hasNextPage endCursor }");
    cursor ??= connection.changeCursor;
    if (typeof cursor !== "string") throw new Misuse("the document of the list does not select changeCursor");
    const resources = connection.nodes ?? connection.edges?.map((/** @type {any} */ edge) => edge.node);
    if (!resources) throw new Misuse("the document of the list selects neither nodes nor edges");
    const wanted = page(resources);
    if (!connection.pageInfo.hasNextPage) return cursor;
    if (!wanted) {
      cut();
      return cursor;
    }
    after = connection.pageInfo.endCursor;
  }
}

/**
 * follow subscribes and hands over each change. The promise is kept never: it is refused with the reason why the stream ended.
 * @template T
 * @param {import("./settings.js").Settings<T>} settings
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
