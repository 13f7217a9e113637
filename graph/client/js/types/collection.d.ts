/**
 * The first resources of an order, by id and in that order. It holds some more than are shown, so that one that goes is
 * replaced at once.
 * @template T
 */
export class Collection<T> {
    /**
     * @param {{idOf: (resource: T) => string, revisionOf: (resource: T) => string | undefined, compare: (a: T, b: T) => number}} config
     * @param {number} first How many are shown.
     */
    constructor(config: {
        idOf: (resource: T) => string;
        revisionOf: (resource: T) => string | undefined;
        compare: (a: T, b: T) => number;
    }, first: number);
    config: {
        idOf: (resource: T) => string;
        revisionOf: (resource: T) => string | undefined;
        compare: (a: T, b: T) => number;
    };
    first: number;
    /** @type {Map<string, T>} */
    byID: Map<string, T>;
    /** @type {T[]} */
    ordered: T[];
    /** Where it ends: all resources up to this one are held, and none behind it. undefined: all there are. @type {T | undefined} */
    edge: T | undefined;
    /** Cursors of the connection, of resources whose place has not changed since they were read. @type {Map<string, string>} */
    cursors: Map<string, string>;
    /** How many more than are shown are held at most. */
    get spare(): number;
    /** How many are held at most. */
    get capacity(): number;
    /** Whether there are more resources, and too few of them are held. */
    get short(): boolean;
    /** Whether all that are to be shown are held. */
    get filled(): boolean;
    /** A copy that changes on its own. */
    copy(): Collection<T>;
    /** @param {T} a @param {T} b */
    order(a: T, b: T): number;
    /**
     * The first place whose resource does not come before this one.
     * @param {T} resource
     */
    place(resource: T): number;
    /**
     * put adds or replaces a resource and reports whether anything changed. One of the revision that is held already changes nothing.
     * @param {T} resource
     */
    put(resource: T): boolean;
    /**
     * remove reports whether the resource was there.
     * @param {string} id
     */
    remove(id: string): boolean;
    /** cut notes that there are more resources behind those that are held. */
    cut(): void;
}
