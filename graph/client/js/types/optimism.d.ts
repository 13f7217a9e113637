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
     * The resources that a collection holds, with what is under way.
     * @param {import("./collection.js").Collection<T>} collection
     */
    over(collection: import("./collection.js").Collection<T>): T[];
    /**
     * note is called with each event of the stream.
     * @param {T} resource
     */
    note(resource: T): void;
    /**
     * admits reports whether an event of the stream may be shown: not if a payload has shown a later state already.
     * @param {T} resource
     */
    admits(resource: T): boolean;
    /**
     * carry puts payloads into a list that was read anew, if the reading was before them.
     * @param {import("./collection.js").Collection<T>} draft
     */
    carry(draft: import("./collection.js").Collection<T>): void;
    /** settle is called when the stream has told all that was before. */
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
