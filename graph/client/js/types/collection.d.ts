/**
 * Resources by id and in order, at most a number of them.
 * @template T
 */
export class Collection<T> {
    /**
     * @param {{limit: number, idOf: (resource: T) => string, revisionOf: (resource: T) => string | undefined, compare: (a: T, b: T) => number}} config
     */
    constructor(config: {
        limit: number;
        idOf: (resource: T) => string;
        revisionOf: (resource: T) => string | undefined;
        compare: (a: T, b: T) => number;
    });
    config: {
        limit: number;
        idOf: (resource: T) => string;
        revisionOf: (resource: T) => string | undefined;
        compare: (a: T, b: T) => number;
    };
    /** @type {Map<string, T>} */
    byID: Map<string, T>;
    /** @type {T[]} */
    ordered: T[];
    /** Whether there was a resource that found no room. */
    truncated: boolean;
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
     * put adds or replaces a resource and says whether anything changed. One of the revision that is held already changes nothing.
     * @param {T} resource
     */
    put(resource: T): boolean;
    /**
     * remove says whether the resource was there.
     * @param {string} id
     */
    remove(id: string): boolean;
}
