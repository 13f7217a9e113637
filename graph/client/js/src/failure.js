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

/**
 * failureOf makes a Failure of what GraphQL clients throw: a list of errors (graphql-ws), an
 * error with `errors` (Apollo), `graphQLErrors` (urql) or `source.errors` (Relay), the event of a
 * closed WebSocket, and anything else, which then is its cause.
 * @param {any} error
 * @returns {Failure}
 */
export function failureOf(error) {
  if (error instanceof Failure) return error;
  const lists = [error, error?.errors, error?.graphQLErrors, error?.source?.errors, error?.cause?.errors];
  const errors = lists.find((list) => Array.isArray(list) && list.length > 0);
  if (errors) return new Failure(errors[0].message, { errors, cause: error });
  if (typeof error?.code === "number" && "reason" in error) {
    // The gateway's reasons begin with a code.
    const [, code, message] = /^([A-Z_]+): (.+)$/s.exec(error.reason) ?? [];
    if (code) return new Failure(message, { errors: [{ message, extensions: { code } }], status: error.code, cause: error });
    return new Failure(`the connection was closed: ${error.code} ${error.reason}`.trim(), { status: error.code, cause: error });
  }
  const status = error?.response?.status; // graphql-sse
  return new Failure(error?.message ?? "the connection was lost", { status: typeof status === "number" ? status : undefined, cause: error });
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
