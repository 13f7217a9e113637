// How many revisions are remembered for an update that is under way.
const remembered = 1000;

/**
 * Changes that are shown before the gateway has confirmed them.
 * @template T
 */
export class Optimism {
  /** @type {Map<string, Array<{change: (resource: T) => T, seen: Set<string | undefined>}>>} */ #pending = new Map();
  /** The last update of a resource, after which the next is sent. @type {Map<string, Promise<unknown>>} */ #last = new Map();
  /** Payloads that the stream has not told yet. @type {Map<string, {revision: string, base: string | undefined, resource: T}>} */ #awaited = new Map();

  /**
   * @param {{idOf: (resource: T) => string, revisionOf: (resource: T) => string | undefined}} settings
   * @param {() => import("./collection.js").Collection<T>} stored
   * @param {() => void} changed
   */
  constructor(settings, stored, changed) {
    this.settings = settings;
    this.stored = stored;
    this.changed = changed;
  }

  /**
   * The resources that a collection holds, with what is under way.
   * @param {import("./collection.js").Collection<T>} collection
   */
  over(collection) {
    if (this.#pending.size === 0) return collection.ordered.slice();
    const { idOf } = this.settings;
    const shown = collection.ordered.map((resource) => (this.#pending.get(idOf(resource)) ?? []).reduce((r, { change }) => change(r), resource));
    return shown.sort((a, b) => collection.order(a, b));
  }

  /**
   * note is called with each event of the stream.
   * @param {T} resource
   */
  note(resource) {
    const revision = this.settings.revisionOf(resource);
    for (const { seen } of this.#pending.get(this.settings.idOf(resource)) ?? []) {
      if (seen.size >= remembered) seen.delete(seen.values().next().value);
      seen.add(revision);
    }
  }

  /**
   * admits reports whether an event of the stream may be shown: not if a payload has shown a later state already.
   * @param {T} resource
   */
  admits(resource) {
    const id = this.settings.idOf(resource), awaited = this.#awaited.get(id);
    if (!awaited) return true;
    if (awaited.revision === this.settings.revisionOf(resource)) this.#awaited.delete(id);
    return false;
  }

  /**
   * carry puts payloads into a list that was read anew, if the reading was before them.
   * @param {import("./collection.js").Collection<T>} draft
   */
  carry(draft) {
    for (const [id, { base, resource }] of this.#awaited) {
      const held = draft.byID.get(id);
      if (held && this.settings.revisionOf(held) === base) draft.put(resource);
      else this.#awaited.delete(id);
    }
  }

  /** settle is called when the stream has told all that was before. */
  settle() {
    this.#awaited.clear();
  }

  /**
   * @template R
   * @param {string} id
   * @param {{change: (resource: T) => T, send: (resource: T, expectedRevision: string) => Promise<R>}} how
   * @returns {Promise<R>}
   */
  async update(id, { change, send }) {
    const entry = { change, seen: new Set() };
    this.#pending.set(id, [...(this.#pending.get(id) ?? []), entry]);
    this.changed();
    const before = this.#last.get(id);
    const sent = (async () => {
      await before?.catch(() => {});
      const stored = this.stored().byID.get(id);
      if (!stored) throw new Error(`the list has no resource with id ${id}`);
      const result = await send(stored, this.settings.revisionOf(stored) ?? "");
      this.#accept(id, entry.seen, result);
      return result;
    })();
    this.#last.set(id, sent);
    try {
      return await sent;
    } finally {
      const others = (this.#pending.get(id) ?? []).filter((other) => other !== entry);
      if (others.length > 0) this.#pending.set(id, others);
      else this.#pending.delete(id);
      if (this.#last.get(id) === sent) this.#last.delete(id);
      this.changed();
    }
  }

  /**
   * accept takes what a payload shows, unless the stream told it before.
   * @param {string} id @param {Set<string | undefined>} seen @param {any} resource
   */
  #accept(id, seen, resource) {
    const { idOf, revisionOf } = this.settings;
    const held = this.stored().byID.get(id);
    if (!held || typeof resource !== "object" || resource === null || idOf(resource) !== id) return;
    const revision = revisionOf(resource);
    const base = revisionOf(held);
    if (revision === "" || seen.has(revision) || (revision !== undefined && revision === base)) return;
    this.stored().put(resource);
    if (revision !== undefined) this.#awaited.set(id, { revision, base, resource });
  }
}
