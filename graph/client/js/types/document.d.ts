/**
 * textOf returns the text of a document: of a string, of a TypedDocumentString, and of a parsed document, as `gql`, graphql-js and
 * code generators make it.
 * @param {any} document
 * @returns {string}
 */
export function textOf(document: any): string;
/**
 * isQuery reports whether all operations of a document are queries.
 * @param {any} document
 */
export function isQuery(document: any): any;
