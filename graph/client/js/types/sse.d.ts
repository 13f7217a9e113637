/**
 * events reads server-sent events, as the HTML standard describes them.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<{event: string, data: string}>}
 */
export function events(body: ReadableStream<Uint8Array>): AsyncGenerator<{
    event: string;
    data: string;
}>;
