/**
 * merge joins what the user changed with what others changed since. A field that only one side changed
 * has that side's value; lists are compared as a whole.
 * @template T
 * @param {T} base What the user's change began with.
 * @param {T} mine The same with the user's changes.
 * @param {T} theirs What is stored now.
 * @returns {Merge<T>}
 */
export function merge<T>(base: T, mine: T, theirs: T): Merge<T>;
/**
 * resolve settles conflicts: choose says for each whether "mine" or "theirs" holds.
 * @template T
 * @param {Merge<T>} merged
 * @param {(conflict: Conflict) => "mine" | "theirs"} choose
 * @returns {T}
 */
export function resolve<T>(merged: Merge<T>, choose: (conflict: Conflict) => "mine" | "theirs"): T;
/**
 * What saveMerged needs.
 * @template T, R
 * @typedef {object} Save
 * @property {T} base What the user's change began with.
 * @property {T} mine The same with the user's changes.
 * @property {string} revision Revision of base.
 * @property {(value: T, expectedRevision: string) => Promise<R>} write Sends the value. It throws what its client throws.
 * @property {() => Promise<{value: T, revision: string}>} read Reads what is stored now.
 * @property {(merge: Merge<T>) => T | null | undefined | Promise<T | null | undefined>} [resolve]
 *   Settles conflicts and returns the value to store; null gives up. Absent: gives up. It is not asked where there are none.
 * @property {number} [attempts] How often a value is sent at most. Default: 5.
 */
/**
 * saveMerged writes what the user changed. If somebody else was faster it reads what they
 * wrote, joins both and writes again; where both changed the same field it asks resolve.
 * @template T, R
 * @param {Save<T, R>} save
 * @returns {Promise<R>} What write returned.
 * @throws {ConflictError} If resolve gives up, or after the last attempt.
 */
export function saveMerged<T, R>({ base, mine, revision, write, read, resolve: ask, attempts }: Save<T, R>): Promise<R>;
/** A change that was given up because others had changed the same fields. */
export class ConflictError extends Error {
    /** @param {Conflict[]} conflicts @param {unknown} cause */
    constructor(conflicts: Conflict[], cause: unknown);
    conflicts: Conflict[];
}
/**
 * What saveMerged needs.
 */
export type Save<T, R> = {
    /**
     * What the user's change began with.
     */
    base: T;
    /**
     * The same with the user's changes.
     */
    mine: T;
    /**
     * Revision of base.
     */
    revision: string;
    /**
     * Sends the value. It throws what its client throws.
     */
    write: (value: T, expectedRevision: string) => Promise<R>;
    /**
     * Reads what is stored now.
     */
    read: () => Promise<{
        value: T;
        revision: string;
    }>;
    /**
     * Settles conflicts and returns the value to store; null gives up. Absent: gives up. It is not asked where there are none.
     */
    resolve?: ((merge: Merge<T>) => T | null | undefined | Promise<T | null | undefined>) | undefined;
    /**
     * How often a value is sent at most. Default: 5.
     */
    attempts?: number | undefined;
};
/**
 * A place that both sides changed, each to another value.
 */
export type Conflict = {
    /**
     * Names of fields, from the outermost.
     */
    path: string[];
    /**
     * What it was when the user began.
     */
    base: any;
    /**
     * What the user made of it.
     */
    mine: any;
    /**
     * What it is now.
     */
    theirs: any;
};
/**
 * The outcome of a three-way merge.
 */
export type Merge<T> = {
    /**
     * Both sides' changes. Where they conflict it has theirs.
     */
    merged: T;
    conflicts: Conflict[];
    /**
     * Paths that the user alone changed.
     */
    mine: string[][];
    /**
     * Paths that the others alone changed.
     */
    theirs: string[][];
};
