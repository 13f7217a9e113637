/**
 * failureOf makes a Failure of what GraphQL clients throw: a list of errors (graphql-ws), an
 * error with `errors` (Apollo), `graphQLErrors` (urql) or `source.errors` (Relay), the event of a
 * closed WebSocket, or what Apollo and urql make of it, and anything else, which then is its cause.
 * @param {any} error
 * @returns {Failure}
 */
export function failureOf(error: any): Failure;
/**
 * unwrap returns the data of an answer, or throws its errors as a Failure.
 * @template D
 * @param {Result<D>} result
 * @returns {D}
 */
export function unwrap<D>(result: Result<D>): D;
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
    constructor(message: string, about?: {
        errors?: ReadonlyArray<GraphQLErrorLike>;
        status?: number;
        retryAfter?: number;
        renewed?: boolean;
        cause?: unknown;
    });
    /** The errors of the gateway; empty if it was not reached. */
    errors: readonly GraphQLErrorLike[];
    /** `extensions` of the first of them. @type {Record<string, any>} */
    extensions: Record<string, any>;
    /** `extensions.code` of the first of them. @type {string | undefined} */
    code: string | undefined;
    /** HTTP status, or close code of a WebSocket, where one is known. */
    status: number | undefined;
    /** Seconds after which the gateway wants to be asked again. @type {number | undefined} */
    retryAfter: number | undefined;
    /** Whether the credential was refused and another one was obtained, with which to go on. */
    renewed: boolean;
}
/** A mistake of the page: a document that does not select what is needed, or a function that throws. */
export class Misuse extends Failure {
}
/**
 * An error of the gateway.
 */
export type GraphQLErrorLike = {
    message: string;
    extensions?: Record<string, any> | undefined;
    path?: readonly (string | number)[] | undefined;
};
/**
 * What GraphQL clients answer.
 */
export type Result<D = any> = {
    data?: D | null | undefined;
    errors?: readonly GraphQLErrorLike[] | undefined;
};
