import { Failure } from "./failure.js";

// No event of the gateway is larger by default; what is larger comes from something else.
const largest = 32 * 1024 * 1024;

/**
 * events reads server-sent events, as the HTML standard describes them.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<{event: string, data: string}>}
 */
export async function* events(body) {
  const reader = body.pipeThrough(/** @type {ReadableWritablePair<string, Uint8Array>} */ (/** @type {unknown} */ (new TextDecoderStream()))).getReader();
  let rest = "", event = "message", size = 0;
  /** @type {string[]} */
  let data = [];
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      // A \r at the end may be half of a line's end.
      const text = rest + value, end = text.endsWith("\r") ? text.length - 1 : text.length;
      const lines = text.slice(0, end).split(/\r\n|\n|\r/);
      rest = /** @type {string} */ (lines.pop()) + text.slice(end);
      if ((size += value.length) > largest) throw new Failure(`an event has more than ${largest} characters`);
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0 || event !== "message") yield { event, data: data.join("\n") };
          [event, data, size] = ["message", [], rest.length];
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const content = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "event") event = content;
        if (name === "data") data.push(content);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
