/**
 * What to follow.
 * @typedef {object} Changes
 * @property {import("./transport.js").Transport} transport
 * @property {any} document Of the subscription. It selects `type` and `cursor`, and declares `$after: String`.
 * @property {Record<string, any>} [variables]
 * @property {string | null} [after] The cursor last seen. Absent: from the present state on.
 * @property {boolean} [snapshot] The subscription declares `$snapshot: Boolean`: the state comes first where there is no cursor, and anew, after
 *   RESET, where the cursor has expired.
 * @property {(data: any) => Change} [change] The change in the data. Default: the first field.
 * @property {(cause: import("./failure.js").Failure) => void} [lost] Hears why a connection has ended, before another one is made.
 * @property {AbortSignal} [signal] Ends the iteration.
 * @property {import("./backoff.js").Pauses} [pauses] Before connecting again.
 * @property {number} [silence] Milliseconds without an event after which a connection counts as lost. Default: 90,000.
 */
/**
 * changes follows changes until the iteration is left or the signal aborts. It survives the end of a connection and of the gateway: it
 * connects again and goes on after the last cursor, so that no change is lost or comes twice. A BOOKMARK is not among the changes; it
 * moves the place from which the stream resumes. IN_SYNC comes again after each new connection. If a connection ends within a snapshot,
 * the snapshot begins again with RESET.
 * @param {Changes} options
 * @returns {AsyncGenerator<Change, void, void>}
 * @throws {import("./failure.js").Failure} What no new connection can help: POSITION_EXPIRED without `snapshot`, a refusal, a document that
 *   is not valid.
 */
export function changes(options: Changes): AsyncGenerator<Change, void, void>;
/**
 * What to follow.
 */
export type Changes = {
    transport: import("./transport.js").Transport;
    /**
     * Of the subscription. It selects `type` and `cursor`, and declares `$after: String`.
     */
    document: any;
    variables?: Record<string, any> | undefined;
    /**
     * The cursor last seen. Absent: from the present state on.
     */
    after?: string | null | undefined;
    /**
     * The subscription declares `$snapshot: Boolean`: the state comes first where there is no cursor, and anew, after
     * RESET, where the cursor has expired.
     */
    snapshot?: boolean | undefined;
    /**
     * The change in the data. Default: the first field.
     */
    change?: ((data: any) => Change) | undefined;
    /**
     * Hears why a connection has ended, before another one is made.
     */
    lost?: ((cause: import("./failure.js").Failure) => void) | undefined;
    /**
     * Ends the iteration.
     */
    signal?: AbortSignal | undefined;
    /**
     * Before connecting again.
     */
    pauses?: import("./backoff.js").Pauses | undefined;
    /**
     * Milliseconds without an event after which a connection counts as lost. Default: 90,000.
     */
    silence?: number | undefined;
};
export type Change = import("./settings.js").Change;
