import { Collection } from "./collection.js";
import { Failure } from "./failure.js";
import { Optimism } from "./optimism.js";
import { follow, readPages } from "./stream.js";
import { verdictOf } from "./verdict.js";

/**
 * What a page shows. It is a new object after each change and is never changed itself.
 * @template T
 * @typedef {object} Snapshot
 * @property {ReadonlyArray<T>} resources
 * @property {"loading" | "live" | "behind" | "failed" | "closed"} status
 *   loading: there is no whole state yet. live: changes are shown as they happen. behind: the last state, while the list
 *   connects or reads again. failed: it has given up, see error. closed: it was ended.
 * @property {Error} [error] Why it is behind or has failed.
 * @property {boolean} truncated Whether there are more resources than the list holds.
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
 * @property {number} [pageSize] Resources of a page. Default: 100.
 * @property {number} [limit] Resources held at most, the first ones in order. Default: 10,000.
 * @property {(a: T, b: T) => number} [compare] The order. Default: by namespace and name, as the API does.
 * @property {(resource: T) => string} [idOf] Default: `id`.
 * @property {(resource: T) => string | undefined} [revisionOf] Default: `metadata.revision`. Where it is selected, what comes twice is known by it.
 * @property {(data: any) => any} [connection] The connection in the data. Default: the first field.
 * @property {(data: any) => Change} [change] The change in the data. Default: the first field.
 * @property {(change: Change) => T | null | undefined} [resource] The resource in a change. Default: the first field that is an object.
 * @property {import("./storage.js").Storage<T>} [storage] Where the place is kept over reloads.
 * @property {(change: Change) => void} [onChange] Hears every change (ADDED, MODIFIED, DELETED) that the stream tells, before the list shows it.
 * @property {AbortSignal} [signal] Ends the list.
 * @property {{least?: number, most?: number, random?: () => number}} [pauses] Milliseconds before connecting again: doubled each time, each time
 *   between half of it and the whole. Default: 250 to 30,000.
 * @property {number} [silence] Milliseconds without an event after which a connection counts as lost; the gateway sends one every 30 s. Default: 90,000.
 */

/**
 * @template T
 * @typedef {Options<T> & Required<Pick<Options<T>, "variables" | "pageSize" | "limit" | "compare" | "idOf" | "revisionOf" | "connection" | "change" | "resource" | "silence">>} Settings
 */

/** @param {any} data */
const firstField = (data) => Object.entries(data).find(([name]) => name !== "__typename")?.[1];
/** @param {any} change */
const firstObject = (change) => Object.values(change).find((value) => typeof value === "object" && value !== null);
/** @param {string | null | undefined} a @param {string | null | undefined} b */
const text = (a, b) => ((a ?? "") < (b ?? "") ? -1 : (a ?? "") > (b ?? "") ? 1 : 0);
/** @param {any} a @param {any} b */
const byName = (a, b) => text(a.metadata?.namespace, b.metadata?.namespace) || text(a.metadata?.name, b.metadata?.name);

/**
 * liveList reads a list and follows its changes until it is closed. It survives lost connections, restarts of the
 * gateway and expired cursors, and never shows less than it has while it reads again.
 * @template T
 * @param {Options<T>} options
 * @returns {LiveList<T>}
 */
export function liveList(options) {
  return new LiveList(options);
}

/**
 * A list that follows its changes. `subscribe` and `getSnapshot` are what React's useSyncExternalStore takes.
 * @template T
 */
export class LiveList {
  /** @type {Settings<T>} */ #settings;
  /** @type {Collection<T>} */ #shown;
  /** What will be shown once it is whole: a list read anew, or a snapshot. @type {Collection<T> | null} */ #draft = null;
  /** @type {string | undefined} */ #cursor;
  /** @type {Snapshot<T>} */ #snapshot = Object.freeze({ resources: Object.freeze([]), status: "loading", truncated: false });
  /** @type {Set<() => void>} */ #listeners = new Set();
  /** @type {Optimism<T>} */ #optimism;
  #ending = new AbortController();
  /** @type {Snapshot<T>["status"]} */ #status = "loading";
  /** @type {Error | undefined} */ #error;
  #whole = false;
  #failures = 0;
  #due = false;
  #unsaved = false;
  #saving = false;

  /** @param {Options<T>} options */
  constructor(options) {
    this.#settings = {
      ...options,
      variables: options.variables ?? {},
      pageSize: options.pageSize ?? 100,
      limit: options.limit ?? 10_000,
      compare: options.compare ?? byName,
      idOf: options.idOf ?? ((/** @type {any} */ resource) => resource.id),
      revisionOf: options.revisionOf ?? ((/** @type {any} */ resource) => resource.metadata?.revision),
      connection: options.connection ?? firstField,
      change: options.change ?? firstField,
      resource: options.resource ?? firstObject,
      silence: options.silence ?? 90_000,
    };
    this.#shown = new Collection(this.#settings);
    this.#optimism = new Optimism(this.#settings, () => this.#shown, () => this.#changed());
    this.#ending.signal.addEventListener("abort", () => this.#show("closed"), { once: true });
    if (options.signal?.aborted) this.close();
    options.signal?.addEventListener("abort", () => this.close(), { once: true, signal: this.#ending.signal });
    /** Kept when the list has ended and nothing of it is under way. @type {Promise<void>} */
    this.ended = this.#run().catch((error) => this.#show("failed", error));
  }

  /** What there is to show. */
  getSnapshot = () => this.#snapshot;

  /**
   * Calls a listener after each change; returns what ends that.
   * @param {() => void} listener
   */
  subscribe = (listener) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /**
   * The resource as it is stored, as far as the list knows: without what is under way.
   * @param {string} id
   * @returns {T | undefined}
   */
  stored(id) {
    return this.#shown.byID.get(id);
  }

  /**
   * update shows a change at once and sends it. If that fails, the list shows what is stored again.
   * @template {T | null | void} R
   * @param {string} id
   * @param {object} how
   * @param {(resource: T) => T} how.change What the list shows meanwhile. It must not change its argument.
   * @param {(resource: T, expectedRevision: string) => Promise<R>} how.send Sends it; given are the stored resource and its revision. It returns the resource of the payload with the fields of the list, or nothing.
   * @returns {Promise<R>} What send returned.
   */
  update(id, how) {
    return this.#optimism.update(id, how);
  }

  /** Ends the list. Its last state stays. */
  close() {
    this.#ending.abort();
  }

  async #run() {
    await this.#restore();
    while (!this.#ending.signal.aborted) {
      try {
        if (this.#cursor === undefined) await this.#read();
        await this.#follow();
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        const verdict = verdictOf(error);
        if (verdict.then === "fail") return this.#show("failed", verdict.failure);
        if (verdict.then === "anew") this.#cursor = undefined;
        // Within a snapshot there is no place to go on from.
        else if (this.#cursor !== undefined) this.#cursor = verdict.cursor ?? this.#cursor;
        if (this.#cursor === undefined) this.#draft = null;
        this.#show(this.#whole ? "behind" : "loading", verdict.failure);
        await this.#pause(verdict.pause);
      }
    }
  }

  async #restore() {
    const saved = await this.#settings.storage?.load();
    if (!saved || this.#ending.signal.aborted) return;
    if (!saved.resources) {
      await this.#readAfter(saved.cursor);
      return;
    }
    for (const resource of saved.resources) this.#shown.put(resource);
    this.#shown.truncated ||= saved.truncated ?? false;
    this.#cursor = saved.cursor;
    this.#whole = true;
    this.#show("behind");
  }

  /**
   * Reads the list, to be followed from an earlier place: what happened since is told again.
   * @param {string} cursor
   */
  async #readAfter(cursor) {
    try {
      await this.#read();
      this.#cursor = cursor;
    } catch {
      this.#cursor = undefined; // the loop reads again, and says what is wrong
    }
  }

  async #read() {
    const draft = new Collection(this.#settings);
    const cursor = await readPages(this.#settings, this.#ending.signal, (resources) => {
      for (const resource of resources) draft.put(resource);
      if (!this.#whole) {
        this.#shown = draft.copy();
        this.#show("loading");
      }
      return draft.ordered.length < this.#settings.limit;
    }, () => void (draft.truncated = true));
    this.#cursor = cursor;
    this.#draft = draft;
  }

  #follow() {
    return follow(this.#settings, this.#cursor, this.#ending.signal, (change) => this.#take(change));
  }

  /** @param {Change} change */
  #take(change) {
    const { type, cursor } = change;
    if (type === "RESET") {
      this.#draft = new Collection(this.#settings);
      this.#cursor = undefined;
      if (this.#whole) this.#show("behind");
      return;
    }
    if (type === "IN_SYNC" || type === "BOOKMARK") {
      this.#cursor = cursor ?? this.#cursor;
      this.#failures = 0;
      this.#optimism.settle();
      if (this.#draft) [this.#shown, this.#draft] = [this.#draft, null];
      this.#whole = true;
      this.#show("live");
      this.#save();
      return;
    }
    const resource = this.#settings.resource(change);
    if (!resource) {
      // Which one it was cannot be known; a list that is read anew leaves out what cannot be read.
      this.#cursor = undefined;
      throw new Failure("a change came without its resource");
    }
    if (type !== "SNAPSHOT") this.#settings.onChange?.(change);
    const collection = this.#draft ?? this.#shown;
    const changed = this.#draft || this.#optimism.admits(resource) ? this.#apply(collection, type, resource) : false;
    if (cursor) this.#cursor = cursor;
    if (this.#draft) return;
    if (changed) this.#changed();
    this.#save();
  }

  /** @param {Collection<T>} collection @param {string} type @param {T} resource */
  #apply(collection, type, resource) {
    return type === "DELETED" ? collection.remove(this.#settings.idOf(resource)) : collection.put(resource);
  }

  #changed() {
    if (this.#due) return;
    this.#due = true;
    // Changes of one turn are told once.
    queueMicrotask(() => this.#tell());
  }

  /** @param {Snapshot<T>["status"]} status @param {Error} [error] */
  #show(status, error) {
    if (this.#status === "closed" || this.#status === "failed") return;
    this.#status = status;
    this.#error = error;
    if (status === "failed") this.#ending.abort();
    if (status === "failed" || status === "closed") this.#tell();
    else this.#changed();
  }

  #tell() {
    this.#due = false;
    this.#snapshot = Object.freeze({
      resources: Object.freeze(this.#optimism.over(this.#shown)),
      status: this.#status,
      error: this.#error,
      truncated: this.#shown.truncated,
    });
    for (const listener of [...this.#listeners]) listener();
  }

  #save() {
    const { storage } = this.#settings;
    if (!storage || this.#draft || this.#cursor === undefined) return;
    this.#unsaved = true;
    if (this.#saving) return;
    this.#saving = true;
    queueMicrotask(async () => {
      while (this.#unsaved && !this.#draft && this.#cursor !== undefined) {
        this.#unsaved = false;
        const { ordered, truncated } = this.#shown;
        await storage.save({ cursor: this.#cursor, resources: ordered.slice(), truncated });
      }
      this.#saving = false;
    });
  }

  /** @param {number} atLeast */
  #pause(atLeast) {
    const { least = 250, most = 30_000, random = Math.random } = this.#settings.pauses ?? {};
    const whole = Math.min(most, least * 2 ** Math.min(this.#failures++, 30));
    const { signal } = this.#ending;
    return new Promise((/** @type {(value: void) => void} */ resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.max(atLeast, (whole * (1 + random())) / 2));
      signal.addEventListener("abort", done);
    });
  }
}
