/**
 * Pauses between attempts, in milliseconds.
 * @typedef {object} Pauses
 * @property {number} [least] The longest first pause. Default: 250.
 * @property {number} [most] No pause is longer, but for what the gateway asks for. Default: 30,000.
 * @property {() => number} [random] Default: Math.random.
 */
/**
 * pauseBefore returns how long to wait before the next attempt: what the gateway asks for and, on top of it, anything between nothing
 * and a bound that doubles with each failure, so that many clients that fail together do not come back together.
 * @param {Pauses | undefined} pauses
 * @param {number} failures How many attempts have failed before this one.
 * @param {number} [atLeast] Milliseconds that the gateway asks for.
 */
export function pauseBefore(pauses: Pauses | undefined, failures: number, atLeast?: number): number;
/**
 * sleep waits, or until the signal aborts.
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void>;
/**
 * Pauses between attempts, in milliseconds.
 */
export type Pauses = {
    /**
     * The longest first pause. Default: 250.
     */
    least?: number | undefined;
    /**
     * No pause is longer, but for what the gateway asks for. Default: 30,000.
     */
    most?: number | undefined;
    /**
     * Default: Math.random.
     */
    random?: (() => number) | undefined;
};
