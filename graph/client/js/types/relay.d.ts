/**
 * What the adapter uses of relay-runtime, to be handed over by the caller: `import * as runtime from "relay-runtime"`.
 * @typedef {object} Runtime
 * @property {(document: any) => any} getRequest
 * @property {(request: any, variables: any, cacheConfig?: any) => any} createOperationDescriptor
 */
/**
 * relayTransport asks by a Relay environment. Documents are compiled artifacts. The list gets what the gateway sent, with the fields of all
 * fragments, and Relay's store gets it too, so every component that shows one of the resources is up to date.
 * @param {any} environment
 * @param {Runtime} runtime
 * @returns {import("./transport.js").Transport}
 */
export function relayTransport(environment: any, { getRequest, createOperationDescriptor }: Runtime): import("./transport.js").Transport;
/**
 * relayConnection keeps a connection of Relay's store like a live list: it adds and removes edges and puts them in order.
 * The components that show the connection need to know nothing of the list. `loadNext` makes the list show as many resources as the
 * connection has then.
 * @template T
 * @param {import("./live.js").LiveList<T>} list
 * @param {object} where
 * @param {any} where.environment
 * @param {string} where.connectionID From `ConnectionHandler.getConnectionID` or `__id` of the connection.
 * @param {string} where.edgeType Type of its edges, like NetworkEdge.
 * @param {(resource: T) => string} [where.idOf] Default: `id`.
 * @returns {() => void} Ends it.
 */
export function relayConnection<T>(list: import("./live.js").LiveList<T>, { environment, connectionID, edgeType, idOf }: {
    environment: any;
    connectionID: string;
    edgeType: string;
    idOf?: ((resource: T) => string) | undefined;
}): () => void;
/**
 * What the adapter uses of relay-runtime, to be handed over by the caller: `import * as runtime from "relay-runtime"`.
 */
export type Runtime = {
    getRequest: (document: any) => any;
    createOperationDescriptor: (request: any, variables: any, cacheConfig?: any) => any;
};
