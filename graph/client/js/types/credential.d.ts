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
export function credentialOf(source: TokenSource): Credential;
/**
 * renewing makes a transport survive the end of its credential. The transport sends `credential.authorization`. If the gateway refuses
 * that, the source is asked for another token: a request is then sent once more, and a subscription ends with a Failure that is
 * `renewed`, after which a live list resumes. If the gateway refuses the new token too, that is the failure.
 * @param {import("./transport.js").Transport} transport
 * @param {Credential} credential
 * @returns {import("./transport.js").Transport}
 */
export function renewing({ query, subscribe }: import("./transport.js").Transport, credential: Credential): import("./transport.js").Transport;
/** The tokens of a source, one after the other. */
export class Credential {
    /** @param {TokenSource} source */
    constructor(source: TokenSource);
    /** How many tokens were replaced because the gateway refused them. */
    get generation(): number;
    /**
     * The header of a request, and the `connectionParams` of a WebSocket.
     * @returns {Promise<Record<string, string>>}
     */
    authorization: () => Promise<Record<string, string>>;
    /**
     * Notes that the gateway answered what was sent in a generation.
     * @param {number} generation
     */
    accept(generation: number): void;
    /**
     * Asks the source for another token after one was refused, once for all who wait. It tells whether there is another: not if the
     * source has none, nor if the gateway has accepted none since the last time.
     * @param {number} generation When what was refused was sent.
     * @returns {Promise<boolean>}
     */
    replace(generation: number): Promise<boolean>;
    #private;
}
/**
 * Returns the bearer token to send, or nothing. It is called for each request and each connection, so a source that asks others
 * keeps what it has. `refused` is a token that the gateway does not accept, or no longer: the source then returns another one.
 */
export type TokenSource = (refused?: string) => string | null | undefined | Promise<string | null | undefined>;
