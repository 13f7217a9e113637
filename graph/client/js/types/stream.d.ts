/**
 * readPages reads a connection page by page and returns the changeCursor of the first one.
 * @template T
 * @param {import("./settings.js").Settings<T>} settings
 * @param {AbortSignal} signal
 * @param {(resources: T[]) => boolean} page Takes a page and says whether another is wanted.
 * @param {() => void} cut Is told if there is another that was not wanted.
 * @returns {Promise<string>}
 */
export function readPages<T>({ transport, list, variables, pageSize, limit, connection: connectionOf }: import("./settings.js").Settings<T>, signal: AbortSignal, page: (resources: T[]) => boolean, cut: () => void): Promise<string>;
/**
 * follow subscribes and hands over each change. The promise is kept never: it is refused with the reason why the stream ended.
 * @template T
 * @param {import("./settings.js").Settings<T>} settings
 * @param {string | undefined} cursor
 * @param {AbortSignal} signal
 * @param {(change: import("./settings.js").Change) => void} take
 * @returns {Promise<never>}
 */
export function follow<T>({ transport, changes, variables, snapshot, silence, change: changeOf }: import("./settings.js").Settings<T>, cursor: string | undefined, signal: AbortSignal, take: (change: import("./settings.js").Change) => void): Promise<never>;
