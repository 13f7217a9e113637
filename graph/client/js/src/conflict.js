import { failureOf } from "./failure.js";

/**
 * A place that both sides changed, each to another value.
 * @typedef {object} Conflict
 * @property {string[]} path Names of fields, from the outermost.
 * @property {any} base What it was when the user began.
 * @property {any} mine What the user made of it.
 * @property {any} theirs What it is now.
 */

/**
 * The outcome of a three-way merge.
 * @template T
 * @typedef {object} Merge
 * @property {T} merged Both sides' changes. Where they conflict it has theirs.
 * @property {Conflict[]} conflicts
 * @property {string[][]} mine Paths that the user alone changed.
 * @property {string[][]} theirs Paths that the others alone changed.
 */

/** @param {any} v @returns {v is Record<string, any>} */
const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);

// Apollo adds __typename to what it reads; it is no field that anybody changes, and no input takes it.
/** @param {any} v */
const fieldsOf = (v) => (isObject(v) ? Object.keys(v).filter((name) => name !== "__typename") : []);

/** @param {any} of @param {string} name */
const field = (of, name) => (isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined);

/**
 * Null is the same as absent, as it is in the API.
 * @param {any} a @param {any} b
 * @returns {boolean}
 */
function same(a, b) {
  if (a == null || b == null) return a == null && b == null;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((v, i) => same(v, b[i]));
  }
  if (isObject(a) && isObject(b)) return [...fieldsOf(a), ...fieldsOf(b)].every((name) => same(field(a, name), field(b, name)));
  return Object.is(a, b);
}

/** @param {any} v @returns {any} */
function plain(v) {
  if (Array.isArray(v)) return v.map(plain);
  return isObject(v) ? Object.fromEntries(fieldsOf(v).map((name) => [name, plain(v[name])])) : v;
}

/**
 * merge joins what the user changed with what others changed since. A field that only one side changed
 * has that side's value; lists are compared as a whole.
 * @template T
 * @param {T} base What the user's change began with.
 * @param {T} mine The same with the user's changes.
 * @param {T} theirs What is stored now.
 * @returns {Merge<T>}
 */
export function merge(base, mine, theirs) {
  /** @type {Merge<any>} */
  const out = { merged: undefined, conflicts: [], mine: [], theirs: [] };
  /** @param {string[]} path @param {any} b @param {any} m @param {any} t @returns {any} */
  const walk = (path, b, m, t) => {
    if (same(m, t)) return plain(t);
    if (isObject(m) && isObject(t) && (isObject(b) || b == null)) {
      const names = [...new Set([...fieldsOf(t), ...fieldsOf(m)])];
      const fields = names.map((name) => [name, walk([...path, name], field(b, name), field(m, name), field(t, name))]);
      return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
    }
    if (same(b, m)) {
      out.theirs.push(path);
      return plain(t);
    }
    if (same(b, t)) {
      out.mine.push(path);
      return plain(m);
    }
    out.conflicts.push({ path, base: b, mine: m, theirs: t });
    return plain(t);
  };
  out.merged = walk([], base, mine, theirs);
  return out;
}

/**
 * resolve settles conflicts: choose says for each whether "mine" or "theirs" holds.
 * @template T
 * @param {Merge<T>} merged
 * @param {(conflict: Conflict) => "mine" | "theirs"} choose
 * @returns {T}
 */
export function resolve(merged, choose) {
  return merged.conflicts.filter((c) => choose(c) === "mine").reduce((value, c) => replace(value, c.path, c.mine), /** @type {any} */ (merged.merged));
}

/** @param {any} value @param {string[]} path @param {any} by @returns {any} */
function replace(value, [name, ...rest], by) {
  if (name === undefined) return plain(by);
  const inner = replace(field(value, name), rest, by);
  const fields = Object.entries(value ?? {}).filter(([other]) => other !== name);
  return Object.fromEntries(inner == null ? fields : [...fields, [name, inner]]);
}

/** A change that was given up because others had changed the same fields. */
export class ConflictError extends Error {
  /** @param {Conflict[]} conflicts @param {unknown} cause */
  constructor(conflicts, cause) {
    super(`others changed ${conflicts.map((c) => c.path.join(".")).join(", ") || "the resource"}`, { cause });
    this.name = "ConflictError";
    this.conflicts = conflicts;
  }
}

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
export async function saveMerged({ base, mine, revision, write, read, resolve: ask, attempts = 5 }) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write(mine, revision);
    } catch (error) {
      if (!["CONFLICT", "ABORTED"].includes(failureOf(error).code ?? "")) throw error;
      const theirs = await read();
      const merged = merge(base, mine, theirs.value);
      if (attempt >= attempts) throw new ConflictError(merged.conflicts, error);
      /** @type {T | null | undefined} */
      let next = merged.merged;
      if (merged.conflicts.length > 0) next = await ask?.(merged);
      if (next == null) throw new ConflictError(merged.conflicts, error);
      [base, mine, revision] = [theirs.value, next, theirs.revision];
    }
  }
}
