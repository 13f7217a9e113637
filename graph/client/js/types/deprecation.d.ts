/**
 * reporter returns what tells of a deprecation the first time that there is one.
 * @param {OnDeprecation} [report]
 * @returns {(found: Deprecation | undefined) => void}
 */
export function reporter(report?: OnDeprecation): (found: Deprecation | undefined) => void;
/**
 * ofResponse reads the headers of an answer (RFC 9745, RFC 8594).
 * @param {Response} response
 * @param {string | URL} url
 * @returns {Deprecation | undefined}
 */
export function ofResponse({ headers }: Response, url: string | URL): Deprecation | undefined;
/**
 * ofAck reads the payload of connection_ack.
 * @param {any} payload
 * @returns {Deprecation | undefined}
 */
export function ofAck(payload: any): Deprecation | undefined;
/**
 * What a gateway says of a version of its API that new pages should not use.
 */
export type Deprecation = {
    /**
     * All of it in a sentence.
     */
    message: string;
    /**
     * The day since when, or from when on, the version is deprecated.
     */
    since?: Date | undefined;
    /**
     * The day after which the version may not be served any more.
     */
    sunset?: Date | undefined;
    /**
     * The version; over WebSocket.
     */
    version?: string | undefined;
    /**
     * What to use instead; over WebSocket.
     */
    why?: string | undefined;
};
/**
 * Called once if the gateway says that the version is deprecated. Default: a warning on the console, once for all transports of a page that hear
 * the same. null: nothing.
 */
export type OnDeprecation = ((deprecation: Deprecation) => void) | null;
