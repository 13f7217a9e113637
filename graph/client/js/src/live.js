import { pauseBefore, sleep } from "./backoff.js";
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
  /** @type {Snapshot<T>} */ #snapshot = Object.freeze({ resources: Object.freeze([]), status: "loading", hasNextPage: false, endCursor: null });
  /** @type {Set<() => void>} */ #listeners = new Set();
  /** @type {Optimism<T>} */ #optimism;
  #first;
  #ending = new AbortController();
  /** Ends the present connection, with the reason. */ #connection = new AbortController();
  /** The list as it is read beside the present connection. @type {{draft: Collection<T>, cursor: string} | null} */ #refilled = null;
  #refilling = false;
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
    this.#first = this.#settings.first;
    this.#storage = options.storage;
    this.#shown = this.#collection();
    this.#optimism = new Optimism(this.#settings, () => this.#shown, () => this.#changed());
    this.#ending.signal.addEventListener("abort", () => {
      this.#connection.abort(this.#ending.signal.reason);
      this.#show("closed");
    }, { once: true });
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

  /** The type of the connection, like NetworkConnection, if the client selects `__typename`. @type {string | undefined} */
  connectionType = undefined;

  /** How many resources are shown at most. */
  get first() {
    return this.#first;
  }

  /**
   * Shows more resources of the order. The promise is kept once they are shown, or the list has ended; there may be fewer.
   * @param {number} [count] How many more. Default: as many as the list showed at first.
   * @returns {Promise<void>}
   */
  async more(count = this.#settings.first) {
    this.#first += count;
    this.#shown.first = this.#first;
    if (this.#draft) this.#draft.first = this.#first;
    this.#changed();
    if (this.#shown.short) this.refresh();
    await this.#until(() => this.#whole && this.#shown.filled);
  }

  /** Reads the list again, and shows it once it is read. The list goes on meanwhile. */
  refresh() {
    if (this.#refilling || !this.#whole || this.#ending.signal.aborted) return;
    this.#refilling = true;
    void this.#refill();
  }

  /**
   * The resource as it is stored, as far as the list knows: without what is under way.
   * @param {string} id
   * @returns {T | undefined}
   */
  stored(id) {
    return this.#shown.byID.get(id);
  }

  /**
   * The cursor of a resource in the connection, if it was read and has not changed its place since.
   * @param {string} id
   * @returns {string | undefined}
   */
  cursorOf(id) {
    return this.#shown.cursors.get(id);
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

  #collection() {
    return new Collection(this.#settings, this.#first);
  }

  async #run() {
    await this.#restore();
    while (!this.#ending.signal.aborted) {
      try {
        if (this.#cursor === undefined) ({ cursor: this.#cursor, draft: this.#draft } = await this.#read());
        await this.#follow();
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        if (this.#refilled) {
          ({ cursor: this.#cursor, draft: this.#draft } = this.#refilled);
          this.#refilled = null;
          continue;
        }
        const verdict = verdictOf(error);
        if (verdict.then === "fail") return this.#show("failed", verdict.failure);
        if (verdict.then === "anew") this.#cursor = undefined;
        // Within a snapshot there is no place to go on from.
        else if (this.#cursor !== undefined) this.#cursor = verdict.cursor ?? this.#cursor;
        if (this.#cursor === undefined) this.#draft = null;
        this.#show(this.#whole ? "behind" : "loading", verdict.failure);
        await sleep(pauseBefore(this.#settings.pauses, this.#failures++, verdict.pause), this.#ending.signal);
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
    if (saved.hasNextPage) this.#shown.cut();
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
      ({ draft: this.#draft } = await this.#read());
      this.#cursor = cursor;
    } catch {
      this.#cursor = undefined; // the loop reads again, and says what is wrong
    }
  }

  async #read() {
    const draft = this.#collection();
    const wanted = () => {
      draft.first = this.#first;
      return draft.capacity - draft.ordered.length;
    };
    const cursor = await readPages(this.#settings, this.#ending.signal, wanted, ({ rows, hasNextPage, type }) => {
      this.connectionType = type;
      draft.edge = undefined; // the page is what follows it
      for (const { resource, cursor } of rows) {
        draft.put(resource);
        if (cursor !== undefined) draft.cursors.set(this.#settings.idOf(resource), cursor);
      }
      if (hasNextPage) draft.cut();
      if (!this.#whole) {
        this.#shown = draft.copy();
        this.#show("loading");
      }
    });
    return { draft, cursor };
  }

  // What is shown goes on while the list is read: the connection ends when there is another place to go on from.
  async #refill() {
    try {
      this.#refilled = await this.#read();
      this.#connection.abort();
    } catch (error) {
      this.#connection.abort(error);
    }
    this.#refilling = false;
  }

  #follow() {
    this.#connection = new AbortController();
    if (this.#ending.signal.aborted || this.#refilled) this.#connection.abort();
    return follow(this.#settings, this.#cursor, this.#connection.signal, (change) => this.#take(change));
  }

  /** @param {Change} change */
  #take(change) {
    const { type, cursor } = change;
    if (type === "RESET") {
      this.#draft = this.#collection();
      this.#cursor = undefined;
      if (this.#whole) this.#show("behind");
      return;
    }
    if (type === "IN_SYNC" || type === "BOOKMARK") {
      this.#cursor = cursor ?? this.#cursor;
      if (type === "IN_SYNC") this.#synced();
      else this.#optimism.settle();
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
    this.#optimism.note(resource);
    if (cursor) this.#cursor = cursor;
    if (this.#draft) return void this.#apply(this.#draft, type, resource);
    if (this.#optimism.admits(resource) && this.#apply(this.#shown, type, resource)) {
      this.#changed();
      if (this.#shown.short) this.refresh();
    }
    this.#save();
  }

  #synced() {
    if (this.#draft) {
      this.#optimism.carry(this.#draft);
      [this.#shown, this.#draft] = [this.#draft, null];
    } else {
      this.#optimism.settle();
    }
    this.#whole = true;
    this.#show("live");
    if (this.#shown.short) this.refresh();
    else this.#failures = 0;
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
    const held = this.#optimism.over(this.#shown), resources = held.slice(0, this.#first);
    const last = resources.findLast((resource) => this.#shown.cursors.has(this.#settings.idOf(resource)));
    this.#snapshot = Object.freeze({
      resources: Object.freeze(resources),
      status: this.#status,
      error: this.#error,
      hasNextPage: held.length > resources.length || this.#shown.edge !== undefined,
      endCursor: (last && this.#shown.cursors.get(this.#settings.idOf(last))) ?? null,
    });
    for (const listener of [...this.#listeners]) listener();
  }

  /**
   * Waits until something holds of what is shown, or the list has ended.
   * @param {() => boolean} holds
   * @returns {Promise<void>}
   */
  #until(holds) {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.#ending.signal.aborted && (this.#due || !holds())) return;
        stop();
        resolve();
      };
      const stop = this.subscribe(look);
      look();
    });
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
        const { ordered, edge } = this.#shown;
        await this.#storage?.save({ cursor: this.#cursor, resources: ordered.slice(), hasNextPage: edge !== undefined });
      }
    } catch (error) {
      this.#storage = undefined; // the list goes on without it
      this.#show(this.#status, failureOf(error));
    }
    this.#saving = false;
  }
}
