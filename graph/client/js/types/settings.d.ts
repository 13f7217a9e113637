/**
 * What following a stream needs.
 * @typedef {Pick<Settings<any>, "transport" | "changes" | "variables" | "snapshot" | "silence" | "change">} FollowSettings
 */
/**
 * followSettings fills in what a page left out.
 * @template {{variables?: Record<string, any>, change?: (data: any) => Change, silence?: number}} O
 * @param {O} options
 */
export function followSettings<O extends {
    variables?: Record<string, any>;
    change?: (data: any) => Change;
    silence?: number;
}>(options: O): O & {
    variables: Record<string, any>;
    change: (data: any) => any;
    silence: number;
};
/**
 * settingsOf fills in what a page left out.
 * @template T
 * @param {Options<T>} options
 * @returns {Settings<T>}
 */
export function settingsOf<T>(options: Options<T>): Settings<T>;
/**
 * What following a stream needs.
 */
export type FollowSettings = Pick<Settings<any>, "transport" | "changes" | "variables" | "snapshot" | "silence" | "change">;
/**
 * What a page shows. It is a new object after each change and is never changed itself.
 */
export type Snapshot<T> = {
    resources: ReadonlyArray<T>;
    /**
     *   loading: there is no whole state yet. live: changes are shown as they happen. behind: the last state, while the list
     *   connects or reads again. failed: it has given up, see error. closed: it was ended.
     */
    status: "loading" | "live" | "behind" | "failed" | "closed";
    /**
     * Why it is behind or has failed, or why its storage is not used any more.
     */
    error?: Error | undefined;
    /**
     * Whether there are more resources behind those that are shown.
     */
    hasNextPage: boolean;
    /**
     * Where a page that reads on itself begins (`after`): the cursor of the last resource whose cursor is known.
     */
    endCursor: string | null;
};
/**
 * One event of a change stream, as it was selected.
 */
export type Change = Record<string, any> & {
    type: string;
    cursor?: string | null;
};
/**
 * What a live list reads, and how.
 */
export type Options<T> = {
    transport: import("./transport.js").Transport;
    /**
     * Document of a query of one connection. It selects `changeCursor`, `pageInfo {hasNextPage endCursor}`, and `nodes` or
     * `edges {node}`; it declares `$first: Int` and `$after: String`.
     */
    list: any;
    /**
     * Document of the subscription to the same resources. It selects `type`, `cursor` and the resource with the same fields; it declares `$after: String`.
     */
    changes: any;
    /**
     * Of both documents.
     */
    variables?: Record<string, any> | undefined;
    /**
     * The subscription declares `$snapshot: Boolean`: the state then comes anew by the stream where a cursor has expired. Otherwise the list is read again.
     */
    snapshot?: boolean | undefined;
    /**
     * How many resources are shown: the first ones of the order. `more` shows more of them. Default: 10,000.
     */
    first?: number | undefined;
    /**
     * How many resources are read at once, at most 1,000. Default: 100.
     */
    pageSize?: number | undefined;
    /**
     * The order, which must be that of the list's `orderBy`: see compareBy. Default: by namespace and
     * name, which is the API's order without `orderBy`, and decides between equals.
     */
    compare?: ((a: T, b: T) => number) | undefined;
    /**
     * Default: `id`.
     */
    idOf?: ((resource: T) => string) | undefined;
    /**
     * Default: `metadata.revision`. Where it is selected, what comes twice is known by it.
     */
    revisionOf?: ((resource: T) => string | undefined) | undefined;
    /**
     * The connection in the data. Default: the first field.
     */
    connection?: ((data: any) => any) | undefined;
    /**
     * The change in the data. Default: the first field.
     */
    change?: ((data: any) => Change) | undefined;
    /**
     * The resource in a change. Default: the first field that is an object.
     */
    resource?: ((change: Change) => T | null | undefined) | undefined;
    /**
     * Where the place is kept over reloads.
     */
    storage?: import("./storage.js").Storage<T> | undefined;
    /**
     * Hears every change (ADDED, MODIFIED, DELETED) that the stream tells, before the list shows it.
     */
    onChange?: ((change: Change) => void) | undefined;
    /**
     * Ends the list.
     */
    signal?: AbortSignal | undefined;
    /**
     * Before connecting again.
     */
    pauses?: import("./backoff.js").Pauses | undefined;
    /**
     * Milliseconds without an event after which a connection counts as lost; the gateway sends one every 30 s. Default: 90,000.
     */
    silence?: number | undefined;
};
export type Settings<T> = Options<T> & Required<Pick<Options<T>, "variables" | "pageSize" | "first" | "compare" | "idOf" | "revisionOf" | "connection" | "change" | "resource" | "silence">>;
