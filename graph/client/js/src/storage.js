/**
 * What a live list needs to go on after a reload.
 * @template T
 * @typedef {object} Saved
 * @property {string} cursor Place in the stream of changes.
 * @property {ReadonlyArray<T>} [resources] The list at that place. Without it the list is read anew and `onChange` hears what came after the cursor.
 * @property {boolean} [hasNextPage] Whether there were more resources behind these.
 */

/**
 * Where a live list keeps its place. Both methods may be asynchronous; save is not called again before it is done, nor after it has failed.
 * @template T
 * @typedef {object} Storage
 * @property {() => Saved<T> | null | undefined | Promise<Saved<T> | null | undefined>} load
 * @property {(saved: Saved<T>) => void | Promise<void>} save
 */

/**
 * webStorage keeps the place, and the list unless resources is false, in sessionStorage or
 * localStorage. What does not fit, or cannot be read, is forgotten; the list is then read anew.
 * @param {{getItem(key: string): string | null, setItem(key: string, value: string): void, removeItem(key: string): void}} storage
 * @param {string} key Names the list and the documents: what is stored under it has the fields that they select.
 * @param {{resources?: boolean}} [options]
 * @returns {Storage<any>}
 */
export function webStorage(storage, key, { resources: keep = true } = {}) {
  return {
    load() {
      try {
        const saved = JSON.parse(storage.getItem(key) ?? "null");
        return typeof saved?.cursor === "string" ? saved : null;
      } catch {
        return null;
      }
    },
    save(saved) {
      try {
        storage.setItem(key, JSON.stringify(keep ? saved : { cursor: saved.cursor }));
      } catch {
        storage.removeItem(key);
      }
    },
  };
}
