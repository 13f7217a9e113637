/**
 * Pauses between attempts, in milliseconds.
 * @typedef {object} Pauses
 * @property {number} [least] The longest first pause. Default: 250.
 * @property {number} [most] No pause is longer, but for what the gateway asks for. Default: 30,000.
 * @property {() => number} [random] Default: Math.random.
 */

/**
 * pauseBefore returns how long to wait before the next attempt: what the gateway asks for and, on top of it, anything between nothing
 * and a bound that doubles with each failure, so that many clients that fail together do not come back together.
 * @param {Pauses | undefined} pauses
 * @param {number} failures How many attempts have failed before this one.
 * @param {number} [atLeast] Milliseconds that the gateway asks for.
 */
export function pauseBefore(pauses, failures, atLeast = 0) {
  const { least = 250, most = 30_000, random = Math.random } = pauses ?? {};
  return atLeast + random() * Math.min(most, least * 2 ** Math.min(failures, 30));
}

/**
 * sleep waits, or until the signal aborts.
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal?.aborted) return done();
    signal?.addEventListener("abort", done);
  });
}
