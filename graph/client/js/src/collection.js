/**
 * Resources by id and in order, at most a number of them.
 * @template T
 */
export class Collection {
  /**
   * @param {{limit: number, idOf: (resource: T) => string, revisionOf: (resource: T) => string | undefined, compare: (a: T, b: T) => number}} config
   */
  constructor(config) {
    this.config = config;
    /** @type {Map<string, T>} */
    this.byID = new Map();
    /** @type {T[]} */
    this.ordered = [];
    /** Whether there was a resource that found no room. */
    this.truncated = false;
  }

  /** A copy that changes on its own. */
  copy() {
    const copy = new Collection(this.config);
    copy.byID = new Map(this.byID);
    copy.ordered = this.ordered.slice();
    copy.truncated = this.truncated;
    return copy;
  }

  /** @param {T} a @param {T} b */
  order(a, b) {
    const { compare, idOf } = this.config;
    return compare(a, b) || (idOf(a) < idOf(b) ? -1 : idOf(a) > idOf(b) ? 1 : 0);
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
   * put adds or replaces a resource and says whether anything changed. One of the revision that is held already changes nothing.
   * @param {T} resource
   */
  put(resource) {
    const { idOf, revisionOf, limit } = this.config;
    const id = idOf(resource), held = this.byID.get(id), revision = revisionOf(resource);
    if (held && revision !== undefined && revision === revisionOf(held)) return false;
    if (held) this.remove(id);
    const at = this.place(resource);
    if (this.ordered.length >= limit) {
      this.truncated = true;
      if (at >= limit) return false;
      this.byID.delete(idOf(/** @type {T} */ (this.ordered.pop())));
    }
    this.ordered.splice(at, 0, resource);
    this.byID.set(id, resource);
    return true;
  }

  /**
   * remove says whether the resource was there.
   * @param {string} id
   */
  remove(id) {
    const held = this.byID.get(id);
    if (!held) return false;
    this.byID.delete(id);
    this.ordered.splice(this.place(held), 1);
    return true;
  }
}
