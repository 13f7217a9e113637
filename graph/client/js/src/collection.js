import { compareNames } from "./order.js";

/**
 * The first resources of an order, by id and in that order. It holds some more than are shown, so that one that goes is
 * replaced at once.
 * @template T
 */
export class Collection {
  /**
   * @param {{idOf: (resource: T) => string, revisionOf: (resource: T) => string | undefined, compare: (a: T, b: T) => number}} config
   * @param {number} first How many are shown.
   */
  constructor(config, first) {
    this.config = config;
    this.first = first;
    /** @type {Map<string, T>} */
    this.byID = new Map();
    /** @type {T[]} */
    this.ordered = [];
    /** Where it ends: all resources up to this one are held, and none behind it. undefined: all there are. @type {T | undefined} */
    this.edge = undefined;
    /** Cursors of the connection, of resources whose place has not changed since they were read. @type {Map<string, string>} */
    this.cursors = new Map();
  }

  /** How many more than are shown are held at most. */
  get spare() {
    return Math.max(10, Math.ceil(this.first / 4));
  }

  /** How many are held at most. */
  get capacity() {
    return this.first + this.spare;
  }

  /** Whether there are more resources, and too few of them are held. */
  get short() {
    return this.edge !== undefined && this.ordered.length < this.first + this.spare / 2;
  }

  /** Whether all that are to be shown are held. */
  get filled() {
    return this.edge === undefined || this.ordered.length >= this.first;
  }

  /** A copy that changes on its own. */
  copy() {
    const copy = new Collection(this.config, this.first);
    copy.byID = new Map(this.byID);
    copy.ordered = this.ordered.slice();
    copy.edge = this.edge;
    copy.cursors = new Map(this.cursors);
    return copy;
  }

  /** @param {T} a @param {T} b */
  order(a, b) {
    const { compare, idOf } = this.config;
    return compare(a, b) || compareNames(a, b) || (idOf(a) < idOf(b) ? -1 : idOf(a) > idOf(b) ? 1 : 0);
  }

  /**
   * The first place whose resource does not come before this one.
   * @param {T} resource
   */
  place(resource) {
    let low = 0, high = this.ordered.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.order(this.ordered[middle], resource) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * put adds or replaces a resource and reports whether anything changed. One of the revision that is held already changes nothing.
   * @param {T} resource
   */
  put(resource) {
    const { idOf, revisionOf } = this.config;
    const id = idOf(resource), held = this.byID.get(id), revision = revisionOf(resource);
    if (held && revision !== undefined && revision === revisionOf(held)) return false;
    const cursor = held && this.order(held, resource) === 0 ? this.cursors.get(id) : undefined;
    if (held) this.remove(id);
    if (this.edge !== undefined && this.order(resource, this.edge) > 0) return held !== undefined;
    this.ordered.splice(this.place(resource), 0, resource);
    this.byID.set(id, resource);
    if (cursor !== undefined) this.cursors.set(id, cursor);
    if (this.ordered.length > this.capacity) {
      this.remove(idOf(/** @type {T} */ (this.ordered.at(-1))));
      this.cut();
    }
    return true;
  }

  /**
   * remove reports whether the resource was there.
   * @param {string} id
   */
  remove(id) {
    const held = this.byID.get(id);
    if (!held) return false;
    this.byID.delete(id);
    this.cursors.delete(id);
    this.ordered.splice(this.place(held), 1);
    return true;
  }

  /** cut notes that there are more resources behind those that are held. */
  cut() {
    this.edge = this.ordered.at(-1) ?? this.edge;
  }
}
