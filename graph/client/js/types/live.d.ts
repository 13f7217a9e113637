/** @template T @typedef {import("./settings.js").Options<T>} Options */
/** @template T @typedef {import("./settings.js").Settings<T>} Settings */
/** @template T @typedef {import("./settings.js").Snapshot<T>} Snapshot */
/** @typedef {import("./settings.js").Change} Change */
/**
 * liveList reads a list and follows its changes until it is closed. It survives lost connections, restarts of the
 * gateway and expired cursors, and never shows less than it has while it reads again.
 * @template T
 * @param {Options<T>} options
 * @returns {LiveList<T>}
 */
export function liveList<T>(options: Options<T>): LiveList<T>;
/**
 * A list that follows its changes. `subscribe` and `getSnapshot` are what React's useSyncExternalStore takes.
 * @template T
 */
export class LiveList<T> {
    /** @param {Options<T>} options */
    constructor(options: Options<T>);
    /** Kept when the list has ended and nothing of it is under way. @type {Promise<void>} */
    ended: Promise<void>;
    /** What there is to show. */
    getSnapshot: () => import("./settings.js").Snapshot<T>;
    /**
     * Calls a listener after each change; returns what ends that.
     * @param {() => void} listener
     */
    subscribe: (listener: () => void) => () => undefined;
    /** The type of the connection, like NetworkConnection, if the client selects `__typename`. @type {string | undefined} */
    connectionType: string | undefined;
    /** How many resources are shown at most. */
    get first(): number;
    /**
     * Shows more resources of the order. The promise is kept once they are shown, or the list has ended; there may be fewer.
     * @param {number} [count] How many more. Default: as many as the list showed at first.
     * @returns {Promise<void>}
     */
    more(count?: number): Promise<void>;
    /** Reads the list again, and shows it once it is read. The list goes on meanwhile. */
    refresh(): void;
    /**
     * The resource as it is stored, as far as the list knows: without what is under way.
     * @param {string} id
     * @returns {T | undefined}
     */
    stored(id: string): T | undefined;
    /**
     * The cursor of a resource in the connection, if it was read and has not changed its place since.
     * @param {string} id
     * @returns {string | undefined}
     */
    cursorOf(id: string): string | undefined;
    /**
     * update shows a change at once and sends it. If that fails, the list shows what is stored again.
     * @template {T | null | void} R
     * @param {string} id
     * @param {object} how
     * @param {(resource: T) => T} how.change What the list shows meanwhile. It must not change its argument.
     * @param {(resource: T, expectedRevision: string) => Promise<R>} how.send Sends it; given are the stored resource and its revision. It returns the resource of the payload with the fields of the list, or nothing.
     * @returns {Promise<R>} What send returned.
     */
    update<R extends T | null | void>(id: string, how: {
        change: (resource: T) => T;
        send: (resource: T, expectedRevision: string) => Promise<R>;
    }): Promise<R>;
    /** Ends the list. Its last state stays. */
    close(): void;
    #private;
}
export type Options<T> = import("./settings.js").Options<T>;
export type Settings<T> = import("./settings.js").Settings<T>;
export type Snapshot<T> = import("./settings.js").Snapshot<T>;
export type Change = import("./settings.js").Change;
