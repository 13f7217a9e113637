/**
 * An error of the gateway.
 * @typedef {object} GraphQLErrorLike
 * @property {string} message
 * @property {Record<string, any>} [extensions]
 * @property {ReadonlyArray<string | number>} [path]
 */

/**
 * What GraphQL clients answer.
 * @template [D=any]
 * @typedef {object} Result
 * @property {D | null} [data]
 * @property {ReadonlyArray<GraphQLErrorLike>} [errors]
 */

/**
 * A request that was answered with errors, or not at all.
 */
export class Failure extends Error {
  /**
   * @param {string} message
   * @param {{errors?: ReadonlyArray<GraphQLErrorLike>, status?: number, retryAfter?: number, renewed?: boolean, cause?: unknown}} [about]
   */
  constructor(message, about = {}) {
    super(message, { cause: about.cause });
    this.name = "Failure";
    /** The errors of the gateway; empty if it was not reached. */
    this.errors = about.errors ?? [];
    /** `extensions` of the first of them. @type {Record<string, any>} */
    this.extensions = this.errors[0]?.extensions ?? {};
    /** `extensions.code` of the first of them. @type {string | undefined} */
    this.code = this.extensions.code;
    /** HTTP status, or close code of a WebSocket, where one is known. */
    this.status = about.status;
    /** Seconds after which the gateway wants to be asked again. @type {number | undefined} */
    this.retryAfter = about.retryAfter ?? this.extensions.retryAfter;
    /** Whether the credential was refused and another one was obtained, with which to go on. */
    this.renewed = about.renewed ?? false;
  }
}

/** A mistake of the page: a document that does not select what is needed, or a function that throws. */
export class Misuse extends Failure {}

// What the GraphQLWsLink of Apollo throws in place of the event of a closed WebSocket.
const socketClosed = /^Socket closed with event (\d{4}) (.*)$/s;

/**
 * closeOf returns the close code and the reason, if an error is the event of a closed WebSocket, or tells of one: Apollo puts both
 * into the message of a plain Error, and urql has the event as the `networkError` of its error.
 * @param {any} error
 * @returns {{code: number, reason: string} | undefined}
 */
function closeOf(error) {
  for (const one of [error, error?.networkError]) {
    if (typeof one?.code === "number" && "reason" in one) return one;
    const [, code, reason] = socketClosed.exec(one?.message) ?? [];
    if (code) return { code: Number(code), reason };
  }
  return undefined;
}

/**
 * statusOf returns the HTTP status of an answer that was not one of GraphQL: of graphql-sse and urql it is that of `response`, of Apollo
 * `statusCode`.
 * @param {any} error
 * @returns {number | undefined}
 */
function statusOf(error) {
  const statuses = [error?.response?.status, error?.statusCode, error?.networkError?.statusCode];
  return statuses.find((status) => typeof status === "number");
}

/**
 * failureOf makes a Failure of what GraphQL clients throw: a list of errors (graphql-ws), an
 * error with `errors` (Apollo), `graphQLErrors` (urql) or `source.errors` (Relay), the event of a
 * closed WebSocket, or what Apollo and urql make of it, and anything else, which then is its cause.
 * @param {any} error
 * @returns {Failure}
 */
export function failureOf(error) {
  if (error instanceof Failure) return error;
  const lists = [error, error?.errors, error?.graphQLErrors, error?.source?.errors, error?.cause?.errors];
  const errors = lists.find((list) => Array.isArray(list) && list.length > 0);
  if (errors) return new Failure(errors[0].message, { errors, cause: error });
  const closed = closeOf(error);
  if (closed) {
    const { code: status, reason } = closed;
    // The gateway's reasons begin with a code.
    const [, code, message] = /^([A-Z_]+): (.+)$/s.exec(reason) ?? [];
    if (code) return new Failure(message, { errors: [{ message, extensions: { code } }], status, cause: error });
    return new Failure(`the connection was closed: ${status} ${reason}`.trim(), { status, cause: error });
  }
  return new Failure(error?.message ?? "the connection was lost", { status: statusOf(error), cause: error });
}

/**
 * unwrap returns the data of an answer, or throws its errors as a Failure.
 * @template D
 * @param {Result<D>} result
 * @returns {D}
 */
export function unwrap(result) {
  if (result.errors?.length) throw failureOf(result.errors);
  if (result.data == null) throw new Failure("the answer has no data");
  return result.data;
}
