/**
 * What to do after a stream or a read has ended.
 * @typedef {object} Verdict
 * @property {"resume" | "anew" | "fail"} then Go on after the cursor, read the list again, or give up.
 * @property {string} [cursor] Where to resume, if the gateway said so.
 * @property {number} pause Milliseconds to wait at least.
 * @property {import("./failure.js").Failure} failure
 */
/**
 * @param {unknown} error
 * @returns {Verdict}
 */
export function verdictOf(error: unknown): Verdict;
/**
 * What to do after a stream or a read has ended.
 */
export type Verdict = {
    /**
     * Go on after the cursor, read the list again, or give up.
     */
    then: "resume" | "anew" | "fail";
    /**
     * Where to resume, if the gateway said so.
     */
    cursor?: string | undefined;
    /**
     * Milliseconds to wait at least.
     */
    pause: number;
    failure: import("./failure.js").Failure;
};
