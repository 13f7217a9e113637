import { Collection } from "./collection.js";
import { Failure, failureOf } from "./failure.js";
import { Optimism } from "./optimism.js";
import { settingsOf } from "./settings.js";
import { follow, readPages } from "./stream.js";
import { verdictOf } from "./verdict.js";

/** @template T @typedef {import("./settings.js").Options<T>} Options */
/** @template T @typedef {import("./settings.js").Settings<T>} Settings */
/** @template T @typedef {import("./settings.js").Snapshot<T>} Snapshot */
/** @typedef {import("./settings.js").Change} Change */

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
  /** @type {import("./storage.js").Storage<T> | undefined} */ #storage;
  #unsaved = false;
  #saving = false;

  /** @param {Options<T>} options */
  constructor(options) {
    this.#settings = settingsOf(options);
    this.#storage = options.storage;
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
    const saved = await this.#storage?.load();
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
      if (type === "IN_SYNC") {
        if (this.#draft) [this.#shown, this.#draft] = [this.#draft, null];
        this.#whole = true;
        this.#show("live");
      }
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
    if (!this.#storage || this.#draft || this.#cursor === undefined) return;
    this.#unsaved = true;
    if (this.#saving) return;
    this.#saving = true;
    queueMicrotask(() => this.#saveAll());
  }

  async #saveAll() {
    try {
      while (this.#unsaved && !this.#draft && this.#cursor !== undefined) {
        this.#unsaved = false;
        const { ordered, truncated } = this.#shown;
        await this.#storage?.save({ cursor: this.#cursor, resources: ordered.slice(), truncated });
      }
    } catch (error) {
      this.#storage = undefined; // the list goes on without it
      this.#show(this.#status, failureOf(error));
    }
    this.#saving = false;
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
