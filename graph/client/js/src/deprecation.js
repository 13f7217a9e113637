/**
 * What a gateway says of a version of its API that new pages should not use.
 * @typedef {object} Deprecation
 * @property {string} message All of it in a sentence.
 * @property {Date} [since] The day since when, or from when on, the version is deprecated.
 * @property {Date} [sunset] The day after which the version may not be served any more.
 * @property {string} [version] The version; over WebSocket.
 * @property {string} [why] What to use instead; over WebSocket.
 */

/**
 * Called once if the gateway says that the version is deprecated. Default: a warning on the console, once for all transports of a page that hear
 * the same. null: nothing.
 * @typedef {((deprecation: Deprecation) => void) | null} OnDeprecation
 */

/** What was warned of. @type {Set<string>} */
const warned = new Set();

/** @param {Deprecation} deprecation */
function warn({ message }) {
  if (warned.has(message)) return;
  warned.add(message);
  console.warn(message);
}

/**
 * reporter returns what tells of a deprecation the first time that there is one.
 * @param {OnDeprecation} [report]
 * @returns {(found: Deprecation | undefined) => void}
 */
export function reporter(report = warn) {
  let told = false;
  return (found) => {
    if (!found || told) return;
    told = true;
    report?.(found);
  };
}

/**
 * ofResponse reads the headers of an answer (RFC 9745, RFC 8594).
 * @param {Response} response
 * @param {string | URL} url
 * @returns {Deprecation | undefined}
 */
export function ofResponse({ headers }, url) {
  const deprecation = headers.get("deprecation");
  if (!deprecation) return undefined;
  const seconds = /^@(-?\d+)/.exec(deprecation)?.[1];
  const since = seconds === undefined ? undefined : day(Number(seconds) * 1000);
  return described(`the API at ${url}`, { since, sunset: day(headers.get("sunset")) });
}

/**
 * ofAck reads the payload of connection_ack.
 * @param {any} payload
 * @returns {Deprecation | undefined}
 */
export function ofAck(payload) {
  if (!payload?.deprecated) return undefined;
  const { version, deprecated, sunset, why } = payload;
  return described(`version ${version} of the API`, { since: day(deprecated), sunset: day(sunset), version, why });
}

/**
 * @param {string | number | null | undefined} at
 * @returns {Date | undefined}
 */
function day(at) {
  const date = new Date(at ?? NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** @param {Date} date */
const dayText = (date) => date.toISOString().slice(0, 10);

/**
 * @param {string} what
 * @param {Omit<Deprecation, "message">} about
 * @returns {Deprecation}
 */
function described(what, about) {
  const { since, sunset, why } = about;
  const message = `${what} is deprecated${since ? ` from ${dayText(since)} on` : ""}${sunset ? `, and may be withdrawn after ${dayText(sunset)}` : ""}${why ? `: ${why}` : ""}`;
  return { message, ...about };
}
