/**
 * isOlder reports whether a resource of the cache is older than the one of the list. The answer to a mutation or a query can arrive after
 * the event of a later change, and replace what the event has brought. A revision is `<epoch>-<sequence>`: to programs it is opaque, but this
 * package comes with the gateway. What is no revision is not older.
 * @param {any} held
 * @param {any} listed
 */
export function isOlder(held: any, listed: any): boolean;
/**
 * connectionData returns what a query's data has to be, so that its connection shows the list; undefined if it does.
 * @template T
 * @param {Connection<T>} connection
 * @param {any} data What the cache has.
 * @param {string | undefined} field The field of the connection. undefined: the first one.
 * @param {{optimistic: boolean}} about Whether the data has optimistic changes of the page in it. They are not given back to the cache.
 */
export function connectionData<T>(connection: Connection<T>, data: any, field: string | undefined, { optimistic }: {
    optimistic: boolean;
}): any;
export function idOfResource(resource: any): string;
export function firstField(data: any): any;
/**
 * A connection in a client's cache that shows a list.
 * @template T
 */
export class Connection<T> {
    /**
     * @param {import("./live.js").LiveList<T>} list
     * @param {(resource: T) => string} idOf
     * @param {() => void} bring Brings the connection up to date.
     */
    constructor(list: import("./live.js").LiveList<T>, idOf: (resource: T) => string, bring: () => void);
    list: import("./live.js").LiveList<T>;
    idOf: (resource: T) => string;
    bring: () => void;
    /** How often the cache was given a resource again. */
    repeats: number;
    /** By how many resources the list grows at least, so that those that are created have room. */
    step: number;
    /** Whether the list has something to show, and goes on. */
    get live(): boolean;
    /**
     * rows returns what the connection has to show: the list, and behind it the rows that the page itself has read with the next page,
     * until the list shows as many.
     * @param {string[]} present The ids of the rows that the connection has.
     * @returns {Array<{id: string, resource?: T}>} Those that the page has read come without their resource.
     */
    rows(present: string[]): Array<{
        id: string;
        resource?: T;
    }>;
    /**
     * give reports whether the cache was not given the resource before. What the cache has of it then may be newer than what the list
     * has, after a mutation.
     * @param {string} id
     * @param {T} resource
     */
    give(id: string, resource: T): boolean;
    /**
     * giveAgain reports whether the cache needs a resource again that it was given before: what it shows is older. If it goes on showing
     * the same, an optimistic change of the page covers the resource, and the cache has it below.
     * @param {string} id
     * @param {any} shown
     * @param {T} resource
     */
    giveAgain(id: string, shown: any, resource: T): boolean;
    /**
     * keep forgets all resources but those of these rows.
     * @param {Array<{id: string}>} rows
     */
    keep(rows: Array<{
        id: string;
    }>): void;
    #private;
}
