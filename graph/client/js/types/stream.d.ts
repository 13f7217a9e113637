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
export function readPages<T>({ transport, list, variables, pageSize, connection: connectionOf }: import("./settings.js").Settings<T>, signal: AbortSignal, wanted: () => number, take: (page: Page<T>) => void): Promise<string>;
/**
 * follow subscribes and hands over each change. The promise is kept never: it is refused with the reason why the stream ended.
 * @param {import("./settings.js").FollowSettings} settings
 * @param {string | undefined} cursor
 * @param {AbortSignal} signal
 * @param {(change: import("./settings.js").Change) => void} take
 * @returns {Promise<never>}
 */
export function follow({ transport, changes, variables, snapshot, silence, change: changeOf }: import("./settings.js").FollowSettings, cursor: string | undefined, signal: AbortSignal, take: (change: import("./settings.js").Change) => void): Promise<never>;
/**
 * A page of a connection.
 */
export type Page<T> = {
    /**
     * With their cursors, where the document selects them.
     */
    rows: Array<{
        resource: T;
        cursor?: string;
    }>;
    hasNextPage: boolean;
    /**
     * Its `__typename`, where that is selected.
     */
    type?: string | undefined;
};
