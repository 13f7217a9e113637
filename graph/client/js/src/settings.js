import { compareNames } from "./order.js";

/**
 * What a page shows. It is a new object after each change and is never changed itself.
 * @template T
 * @typedef {object} Snapshot
 * @property {ReadonlyArray<T>} resources
 * @property {"loading" | "live" | "behind" | "failed" | "closed"} status
 *   loading: there is no whole state yet. live: changes are shown as they happen. behind: the last state, while the list
 *   connects or reads again. failed: it has given up, see error. closed: it was ended.
 * @property {Error} [error] Why it is behind or has failed, or why its storage is not used any more.
 * @property {boolean} hasNextPage Whether there are more resources behind those that are shown.
 * @property {string | null} endCursor Where a page that reads on itself begins (`after`): the cursor of the last resource whose cursor is known.
 */

/**
 * One event of a change stream, as it was selected.
 * @typedef {Record<string, any> & {type: string, cursor?: string | null}} Change
 */

/**
 * What a live list reads, and how.
 * @template T
 * @typedef {object} Options
 * @property {import("./transport.js").Transport} transport
 * @property {any} list Document of a query of one connection. It selects `changeCursor`, `pageInfo {hasNextPage endCursor}`, and `nodes` or
 *   `edges {node}`; it declares `$first: Int` and `$after: String`.
 * @property {any} changes Document of the subscription to the same resources. It selects `type`, `cursor` and the resource with the same fields; it declares `$after: String`.
 * @property {Record<string, any>} [variables] Of both documents.
 * @property {boolean} [snapshot] The subscription declares `$snapshot: Boolean`: the state then comes anew by the stream where a cursor has expired. Otherwise the list is read again.
 * @property {number} [first] How many resources are shown: the first ones of the order. `more` shows more of them. Default: 10,000.
 * @property {number} [pageSize] How many resources are read at once, at most 1,000. Default: 100.
 * @property {(a: T, b: T) => number} [compare] The order, which must be that of the list's `orderBy`: see compareBy. Default: by namespace and
 *   name, which is the API's order without `orderBy`, and decides between equals.
 * @property {(resource: T) => string} [idOf] Default: `id`.
 * @property {(resource: T) => string | undefined} [revisionOf] Default: `metadata.revision`. Where it is selected, what comes twice is known by it.
 * @property {(data: any) => any} [connection] The connection in the data. Default: the first field.
 * @property {(data: any) => Change} [change] The change in the data. Default: the first field.
 * @property {(change: Change) => T | null | undefined} [resource] The resource in a change. Default: the first field that is an object.
 * @property {import("./storage.js").Storage<T>} [storage] Where the place is kept over reloads.
 * @property {(change: Change) => void} [onChange] Hears every change (ADDED, MODIFIED, DELETED) that the stream tells, before the list shows it.
 * @property {AbortSignal} [signal] Ends the list.
 * @property {import("./backoff.js").Pauses} [pauses] Before connecting again.
 * @property {number} [silence] Milliseconds without an event after which a connection counts as lost; the gateway sends one every 30 s. Default: 90,000.
 */

/**
 * @template T
 * @typedef {Options<T> & Required<Pick<Options<T>, "variables" | "pageSize" | "first" | "compare" | "idOf" | "revisionOf" | "connection" | "change" | "resource" | "silence">>} Settings
 */

/** @param {any} data */
const firstField = (data) => Object.entries(data).find(([name]) => name !== "__typename")?.[1];
/** @param {any} change */
const firstObject = (change) => Object.values(change).find((value) => typeof value === "object" && value !== null);

/**
 * What following a stream needs.
 * @typedef {Pick<Settings<any>, "transport" | "changes" | "variables" | "snapshot" | "silence" | "change">} FollowSettings
 */

/**
 * followSettings fills in what a page left out.
 * @template {{variables?: Record<string, any>, change?: (data: any) => Change, silence?: number}} O
 * @param {O} options
 */
export function followSettings(options) {
  return { ...options, variables: options.variables ?? {}, change: options.change ?? firstField, silence: options.silence ?? 90_000 };
}

/**
 * settingsOf fills in what a page left out.
 * @template T
 * @param {Options<T>} options
 * @returns {Settings<T>}
 */
export function settingsOf(options) {
  return {
    ...followSettings(options),
    first: options.first ?? 10_000,
    pageSize: options.pageSize ?? 100,
    compare: options.compare ?? compareNames,
    idOf: options.idOf ?? ((/** @type {any} */ resource) => resource.id),
    revisionOf: options.revisionOf ?? ((/** @type {any} */ resource) => resource.metadata?.revision),
    connection: options.connection ?? firstField,
    resource: options.resource ?? firstObject,
  };
}
