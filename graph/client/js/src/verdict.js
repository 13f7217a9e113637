import { failureOf, Misuse } from "./failure.js";

// What cannot succeed by being asked again: the request itself must change.
const finalCodes = new Set(["GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT", "VALIDATION_FAILED", "FORBIDDEN", "PERSISTED_QUERY_NOT_FOUND", "UNAUTHENTICATED"]);
const anewCodes = new Set(["POSITION_EXPIRED", "CURSOR_INVALID"]);
// Close codes of docs/clients.md after which the client should be mended, and statuses of HTTP likewise.
const finalStatuses = new Set([400, 401, 403, 404, 405, 406, 413, 415, 1002, 1007, 1009, 4400, 4401, 4403, 4406, 4409, 4429]);

/**
 * What to do after a stream or a read has ended.
 * @typedef {object} Verdict
 * @property {"resume" | "anew" | "fail"} then Go on after the cursor, read the list again, or give up.
 * @property {string} [cursor] Where to resume, if the gateway said so.
 * @property {number} pause Milliseconds to wait at least.
 * @property {import("./failure.js").Failure} failure
 */

/**
 * @param {unknown} error
 * @returns {Verdict}
 */
export function verdictOf(error) {
  const failure = failureOf(error);
  const { code, extensions, status } = failure;
  const said = { failure, pause: (failure.retryAfter ?? 0) * 1000, cursor: typeof extensions.cursor === "string" ? extensions.cursor : undefined };
  if (failure.renewed) return { ...said, then: "resume" };
  if (failure instanceof Misuse) return { ...said, then: "fail" };
  if (code !== undefined && anewCodes.has(code)) return { ...said, then: "anew", cursor: undefined };
  if (code === "LIMIT_EXCEEDED" && !extensions.retryable) {
    // The cursor is behind an event that was too large to be sent. A page may show what it changed.
    return { ...said, then: said.cursor ? "anew" : "fail", cursor: undefined };
  }
  const final = code !== undefined ? finalCodes.has(code) : status !== undefined && finalStatuses.has(status);
  return { ...said, then: final ? "fail" : "resume" };
}
