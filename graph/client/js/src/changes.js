import { pauseBefore, sleep } from "./backoff.js";
import { failureOf } from "./failure.js";
import { followSettings } from "./settings.js";
import { follow } from "./stream.js";
import { verdictOf } from "./verdict.js";

/** @typedef {import("./settings.js").Change} Change */

// Events that wait for the program, after which the connection is ended until it has taken them.
const waitingMost = 1000;

/**
 * What to follow.
 * @typedef {object} Changes
 * @property {import("./transport.js").Transport} transport
 * @property {any} document Of the subscription. It selects `type` and `cursor`, and declares `$after: String`.
 * @property {Record<string, any>} [variables]
 * @property {string | null} [after] The cursor last seen. Absent: from the present state on.
 * @property {boolean} [snapshot] The subscription declares `$snapshot: Boolean`: the state comes first where there is no cursor, and anew, after
 *   RESET, where the cursor has expired.
 * @property {(data: any) => Change} [change] The change in the data. Default: the first field.
 * @property {(cause: import("./failure.js").Failure) => void} [lost] Hears why a connection has ended, before another one is made.
 * @property {AbortSignal} [signal] Ends the iteration.
 * @property {import("./backoff.js").Pauses} [pauses] Before connecting again.
 * @property {number} [silence] Milliseconds without an event after which a connection counts as lost. Default: 90,000.
 */

/**
 * changes follows changes until the iteration is left or the signal aborts. It survives the end of a connection and of the gateway: it
 * connects again and goes on after the last cursor, so that no change is lost or comes twice. A BOOKMARK is not among the changes; it
 * moves the place from which the stream resumes. IN_SYNC comes again after each new connection. If a connection ends within a snapshot,
 * the snapshot begins again with RESET.
 * @param {Changes} options
 * @returns {AsyncGenerator<Change, void, void>}
 * @throws {import("./failure.js").Failure} What no new connection can help: POSITION_EXPIRED without `snapshot`, a refusal, a document that
 *   is not valid.
 */
export async function* changes(options) {
  const { signal, lost, pauses, ...rest } = options;
  const settings = followSettings({ ...rest, changes: options.document });
  let after = options.after ?? undefined, failures = 0;
  while (!signal?.aborted) {
    const connection = new Connection(settings, after, signal);
    try {
      for await (const change of connection.events()) {
        failures = 0;
        // Nothing before a RESET can be continued from.
        if (change.type === "RESET") after = undefined;
        else after = change.cursor ?? after;
        if (change.type !== "BOOKMARK") yield change;
      }
    } catch (error) {
      if (signal?.aborted) return;
      const verdict = verdictOf(error);
      if (verdict.then !== "resume") throw verdict.failure;
      if (after !== undefined) after = verdict.cursor ?? after;
      lost?.(verdict.failure);
      await sleep(pauseBefore(pauses, failures++, verdict.pause), signal);
    } finally {
      connection.end();
    }
  }
}

/** One subscription, whose events wait until the program takes them. */
class Connection {
  #ending = new AbortController();
  /** @type {Change[]} */ #waiting = [];
  /** @type {unknown} */ #reason;
  #over = false;
  #heard = () => {};

  /**
   * @param {import("./settings.js").FollowSettings} settings
   * @param {string | undefined} after
   * @param {AbortSignal | undefined} signal
   */
  constructor(settings, after, signal) {
    const ending = signal ? AbortSignal.any([signal, this.#ending.signal]) : this.#ending.signal;
    follow(settings, after, ending, (change) => {
      this.#waiting.push(change);
      // A snapshot has no places to go on from; it is as large as the state.
      if (this.#waiting.length >= waitingMost && change.cursor) this.end();
      this.#heard();
    }).catch((reason) => {
      this.#over = true;
      this.#reason = reason;
      this.#heard();
    });
  }

  end() {
    this.#ending.abort();
  }

  /** @returns {AsyncGenerator<Change, void, void>} */
  async *events() {
    while (true) {
      while (this.#waiting.length > 0) yield /** @type {Change} */ (this.#waiting.shift());
      // Whoever ended it here goes on after the last event.
      if (this.#over && this.#ending.signal.aborted) return;
      if (this.#over) throw failureOf(this.#reason);
      await new Promise((/** @type {(value: void) => void} */ resolve) => (this.#heard = resolve));
    }
  }
}
