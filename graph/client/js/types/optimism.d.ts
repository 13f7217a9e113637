/**
 * Changes that are shown before the gateway has confirmed them.
 * @template T
 */
export class Optimism<T> {
    /**
     * @param {{idOf: (resource: T) => string, revisionOf: (resource: T) => string | undefined}} settings
     * @param {() => import("./collection.js").Collection<T>} stored
     * @param {() => void} changed
     */
    constructor(settings: {
        idOf: (resource: T) => string;
        revisionOf: (resource: T) => string | undefined;
    }, stored: () => import("./collection.js").Collection<T>, changed: () => void);
    settings: {
        idOf: (resource: T) => string;
        revisionOf: (resource: T) => string | undefined;
    };
    stored: () => import("./collection.js").Collection<T>;
    changed: () => void;
    /**
     * The resources of a collection with what is under way.
     * @param {import("./collection.js").Collection<T>} collection
     */
    over(collection: import("./collection.js").Collection<T>): T[];
    /**
     * admits says whether an event of the stream may be applied: not if a payload has shown a later state already.
     * @param {T} resource
     */
    admits(resource: T): boolean;
    /** settle is called when the stream has told everything. */
    settle(): void;
    /**
     * @template R
     * @param {string} id
     * @param {{change: (resource: T) => T, send: (resource: T, expectedRevision: string) => Promise<R>}} how
     * @returns {Promise<R>}
     */
    update<R>(id: string, { change, send }: {
        change: (resource: T) => T;
        send: (resource: T, expectedRevision: string) => Promise<R>;
    }): Promise<R>;
    #private;
}
