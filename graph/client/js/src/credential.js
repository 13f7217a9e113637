import { Failure, failureOf } from "./failure.js";

/**
 * Returns the bearer token to send, or nothing. It is called for each request and each connection, so a source that asks others
 * keeps what it has. `refused` is a token that the gateway does not accept, or no longer: the source then returns another one.
 * @typedef {(refused?: string) => string | null | undefined | Promise<string | null | undefined>} TokenSource
 */

/**
 * credentialOf makes what requests, connections and `renewing` share of a source of tokens.
 * @param {TokenSource} source
 * @returns {Credential}
 */
export function credentialOf(source) {
  return new Credential(source);
}

/** The tokens of a source, one after the other. */
export class Credential {
  /** @type {TokenSource} */ #source;
  /** The token sent last. @type {string | undefined} */ #sent;
  /** A token that was replaced, and its replacement. @type {string | undefined} */ #refused;
  /** @type {string | undefined} */ #replacement;
  #generation = 0;
  /** Whether the gateway has accepted a token of this generation. */ #accepted = true;
  /** @type {Promise<boolean> | undefined} */ #asking;

  /** @param {TokenSource} source */
  constructor(source) {
    this.#source = source;
  }

  /** How many tokens were replaced because the gateway refused them. */
  get generation() {
    return this.#generation;
  }

  /**
   * The header of a request, and the `connectionParams` of a WebSocket.
   * @returns {Promise<Record<string, string>>}
   */
  authorization = async () => {
    const token = (await this.#source()) || undefined;
    // A source that keeps nothing still has the token that was refused.
    this.#sent = token !== undefined && token === this.#refused ? this.#replacement : token;
    return this.#sent === undefined ? {} : { authorization: `Bearer ${this.#sent}` };
  };

  /**
   * Notes that the gateway answered what was sent in a generation.
   * @param {number} generation
   */
  accept(generation) {
    if (generation === this.#generation) this.#accepted = true;
  }

  /**
   * Asks the source for another token after one was refused, once for all who wait. It tells whether there is another: not if the
   * source has none, nor if the gateway has accepted none since the last time.
   * @param {number} generation When what was refused was sent.
   * @returns {Promise<boolean>}
   */
  async replace(generation) {
    if (generation !== this.#generation) return true;
    if (!this.#accepted) return false;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #ask() {
    const refused = this.#sent;
    const token = refused && (await this.#source(refused));
    if (!token || token === refused) return false;
    [this.#refused, this.#replacement, this.#accepted] = [refused, token, false];
    this.#generation++;
    return true;
  }
}

/**
 * refusal is the failure of a credential that was not accepted, if that is what failed.
 * @param {unknown} error
 */
function refusal(error) {
  const failure = failureOf(error);
  return failure.code === "UNAUTHENTICATED" || (failure.code === undefined && failure.status === 401) ? failure : undefined;
}

/** @param {import("./failure.js").Result} result */
const refusedBy = ({ errors }) => (errors?.length ? refusal(errors) : undefined);

/**
 * renewing makes a transport survive the end of its credential. The transport sends `credential.authorization`. If the gateway refuses
 * that, the source is asked for another token: a request is then sent once more, and a subscription ends with a Failure that is
 * `renewed`, after which a live list resumes. If the gateway refuses the new token too, that is the failure.
 * @param {import("./transport.js").Transport} transport
 * @param {Credential} credential
 * @returns {import("./transport.js").Transport}
 */
export function renewing({ query, subscribe }, credential) {
  return {
    async query(document, variables, options) {
      for (let again = false; ; again = true) {
        const { generation } = credential;
        let result, refused;
        try {
          result = await query(document, variables, options);
          refused = refusedBy(result);
        } catch (error) {
          refused = refusal(error);
          if (!refused) throw error;
        }
        if (result && !refused) {
          credential.accept(generation);
          return result;
        }
        // Without a valid credential nothing was executed, so a mutation is not repeated.
        if (again || !(await credential.replace(generation))) {
          if (!result) throw refused;
          return result;
        }
      }
    },
    subscribe(document, variables, sink) {
      const { generation } = credential;
      let over = false, stopped = false;
      const renew = async (/** @type {Failure} */ refused) => {
        over = true;
        const renewed = await credential.replace(generation);
        if (!stopped) sink.error(renewed ? new Failure(refused.message, { errors: refused.errors, status: refused.status, renewed, cause: refused }) : refused);
      };
      const end = (/** @type {Failure} */ refused) => {
        renew(refused).catch((error) => stopped || sink.error(error)); // the source failed
      };
      const stop = subscribe(document, variables, {
        next(result) {
          if (over) return;
          const refused = refusedBy(result);
          if (refused) return end(refused);
          credential.accept(generation);
          sink.next(result);
        },
        error(error) {
          if (over) return;
          const refused = refusal(error);
          if (refused) return end(refused);
          sink.error(error);
        },
        complete: () => over || sink.complete(),
      });
      return () => {
        stopped = true;
        stop();
      };
    },
  };
}
